"""A messy table with a column of every kind, for the tests of encoders and profiles."""

import datetime as dt

import numpy as np
import pandas as pd


def messy_columns(n=200, seed=0):
    """Return the columns as lists of Python values, None where missing, and a target."""
    rng = np.random.default_rng(seed)

    def with_gaps(values, share=0.1):
        return [None if gap else value for value, gap in zip(values, rng.random(n) < share, strict=True)]

    size = rng.normal(50, 20, n)
    city = [f"city {k}" for k in rng.integers(0, 40, n)]
    words = np.array(["red", "old", "house", "garden", "sea", "view", "quiet", "street", "large", "new"])
    day = dt.datetime(2020, 1, 1)
    columns = {
        "size": with_gaps(size.tolist()),
        "rooms": rng.integers(1, 8, n).tolist(),
        "new": with_gaps((rng.random(n) < 0.4).tolist()),
        "kind": with_gaps(rng.choice(["flat", "house", "hut"], n).tolist()),
        "city": with_gaps(city, 0.05),
        "sold": with_gaps([day + dt.timedelta(days=int(d), hours=int(d) % 24) for d in rng.integers(0, 900, n)]),
        "note": with_gaps([" ".join(rng.choice(words, 6)) for _ in range(n)], 0.05),
        "country": ["X"] * n,
        "blank": [None] * n,
    }
    effect = np.array([0.0 if c is None else int(c.split()[1]) / 10 for c in columns["city"]])
    return columns, size / 10 + effect + rng.normal(size=n)


def messy_frame(n=200, seed=0):
    """Return the same as a pandas frame, and the target."""
    columns, y = messy_columns(n, seed)
    frame = pd.DataFrame({name: pd.Series(values, dtype=object) for name, values in columns.items()})
    return frame.assign(size=frame["size"].astype(float), rooms=frame["rooms"].astype(int)), y
