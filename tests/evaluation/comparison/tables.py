"""Small tables for the tests of the comparison."""

import numpy as np
import pyarrow as pa


def numbers(n=240, seed=0):
    """A target that is linear in one column and differs by the other; some values are missing."""
    rng = np.random.default_rng(seed)
    x, kind = rng.normal(size=n), rng.choice(["a", "b", "c"], n)
    y = 2.0 * x + (kind == "a") + rng.normal(size=n)
    return pa.table({"x": pa.array(x, mask=rng.random(n) < 0.1), "kind": kind, "y": y})


def classes(n=240, k=3, seed=0):
    """A target of k classes around k centres."""
    rng = np.random.default_rng(seed)
    y = rng.integers(k, size=n)
    centre = rng.normal(size=(k, 2)) * 2.0
    X = centre[y] + rng.normal(size=(n, 2))
    return pa.table({"u": X[:, 0], "v": X[:, 1], "label": np.array(["one", "two", "three", "four"])[y]})
