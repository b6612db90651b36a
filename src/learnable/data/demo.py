"""The two tables that come with the library, to try it on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ..core.errors import DataError

if TYPE_CHECKING:
    import numpy as np

#: The column to predict in each built-in table.
DEMO_TARGETS: Final = {"demo:houses": "price", "demo:tumours": "diagnosis"}


def demo_table(name: str) -> Any:
    """Return a built-in table as a pyarrow.Table.

    Examples
    --------
    >>> from learnable.data.demo import demo_table
    >>> demo_table("demo:houses").num_rows
    1200
    """
    if name == "demo:houses":
        return _houses()
    if name == "demo:tumours":
        return _tumours()
    raise DataError(f"there is no built-in table {name!r}; there are {' and '.join(DEMO_TARGETS)}.")


def _houses() -> Any:
    """Return 1,200 invented house sales with what real tables have: gaps, text, dates, an identifier, a constant."""
    import numpy as np
    import pyarrow as pa

    rng = np.random.default_rng(20240229)
    n = 1200
    area = np.round(np.exp(rng.normal(4.7, 0.35, n)), 0)
    rooms = np.clip(np.round(area / 28 + rng.normal(0, 0.8, n)), 1, 12).astype(np.int64)
    year = rng.integers(1900, 2024, n)
    town = rng.choice(["Aldham", "Brook", "Castle Hill", "Dunmore", "Eastport"], n, p=[0.3, 0.25, 0.2, 0.15, 0.1])
    worth = {"Aldham": 0.0, "Brook": -0.08, "Castle Hill": 0.25, "Dunmore": -0.2, "Eastport": 0.4}
    heating = rng.choice(["gas", "district", "heat pump", "oil"], n, p=[0.5, 0.2, 0.2, 0.1])
    garden = rng.random(n) < 0.55
    day = rng.integers(0, 365 * 4, n)
    log_price = 7.6 + 0.9 * np.log(area) + 0.02 * rooms + np.array([worth[t] for t in town]) + 0.0016 * (year - 1960)
    log_price += 0.06 * garden + 0.05 * (heating == "heat pump") + 0.00006 * day + rng.normal(0, 0.13, n)
    dates = np.datetime64("2020-01-01") + day.astype("timedelta64[D]")
    return pa.table(
        {
            "sale_id": np.arange(100_001, 100_001 + n),
            "sold": dates,
            "town": town,
            "area": _with_gaps(area, rng, 0.04),
            "rooms": rooms,
            "built": _with_gaps(year.astype(float), rng, 0.08),
            "heating": pa.array(heating.tolist(), mask=rng.random(n) < 0.06),
            "garden": garden,
            "country": ["Northland"] * n,
            "price": np.round(np.exp(log_price), -2),
        }
    )


def _with_gaps(values: np.ndarray[Any, Any], rng: np.random.Generator, share: float) -> Any:
    import pyarrow as pa

    return pa.array(values, mask=rng.random(len(values)) < share)


def _tumours() -> Any:
    """Return 569 breast tumours (W. Street, W. Wolberg and O. Mangasarian, 1993), as scikit-learn ships them."""
    import pyarrow as pa
    from sklearn.datasets import load_breast_cancer

    bunch = load_breast_cancer()
    columns = {str(name): bunch.data[:, j] for j, name in enumerate(bunch.feature_names)}
    return pa.table(columns | {"diagnosis": bunch.target_names[bunch.target].tolist()})
