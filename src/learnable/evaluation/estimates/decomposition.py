"""Where the error of a model comes from, by simulation from a known truth.

With Y = f(X) + ε, E[ε | X] = 0, and f̂ fitted to n random rows, the expected squared error splits in two ways:

    E(Y − f̂(X))² = E(f̂̄(X) − f(X))²  +  E(f̂(X) − f̂̄(X))²  +  E ε²        bias² + variance + noise
                 = (R(f*) − R(f))   +  (E R(f̂) − R(f*))  +  R(f)         approximation + estimation + irreducible

where f̂̄ is the mean of f̂ over data sets, R the risk, and f* the best that the model can represent: its fit to many
rows without noise. Approximation falls and estimation rises with complexity; a bias that more rows would remove, such
as the pull of a penalty, counts as estimation.

The right-hand sides are measured at fixed points, the left one on fresh rows with fresh noise; `standard_error` is that
of their difference. Unbiased estimates of bias² may be a little negative where it is zero.

Reference: T. Hastie, R. Tibshirani and J. Friedman, The Elements of Statistical Learning, 2nd ed., sections 2.9, 7.3.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from ...core import RANDOM_STATE, Array, DataError, Matches, Number, ParameterError, check_parameters, optional
from ...meta.folds import naming_place
from ...meta.splits import as_generator

_NOISE_DRAWS = 200_000


@dataclass(frozen=True)
class BiasVariance:
    """The parts of an expected squared error: numbers, or arrays along a sweep.

    Attributes
    ----------
    over : str or None
        What was varied: a parameter, "n", or nothing.
    values : list
        Its values.
    bias2, variance, noise : float or array
        The parts of the first split.
    approximation, estimation : float or array
        The parts of the second split; its irreducible part is `noise`.
    risk : float or array
        The error on fresh rows, measured apart.
    standard_error : float or array
        Of `risk − (bias2 + variance + noise)`.
    train_risk : float or array
        The error on the training rows.
    n_repeats : int
        Number of data sets.
    """

    over: str | None
    values: list[Any]
    bias2: Any
    variance: Any
    noise: Any
    approximation: Any
    estimation: Any
    risk: Any
    standard_error: Any
    train_risk: Any
    n_repeats: int

    @property
    def irreducible(self) -> Any:
        """The error of the truth itself, which is the noise."""
        return self.noise

    @property
    def gap(self) -> Any:
        """How much the training error flatters: risk − training risk."""
        return self.risk - self.train_risk

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON types."""
        names = (*_PARTS, "gap")
        values = [value.item() if isinstance(value, np.generic) else value for value in self.values]
        numbers = {name: np.asarray(getattr(self, name), dtype=np.float64).tolist() for name in names}
        return {"over": self.over, "values": values, **numbers, "n_repeats": self.n_repeats}

    def __str__(self) -> str:
        columns = ("bias2", "variance", "noise", "risk", "standard_error", "approximation", "estimation", "train_risk")
        head = [self.over or "", *("std. error" if name == "standard_error" else name for name in columns)]
        labels = [str(value) for value in self.values] or [""]
        rows = [head]
        for number, label in enumerate(labels):
            rows.append([label, *(f"{np.atleast_1d(getattr(self, name))[number]:.5g}" for name in columns)])
        widths = [max(len(row[column]) for row in rows) for column in range(len(head))]
        return "\n".join("  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)


class _Parts(NamedTuple):
    """One point of a sweep."""

    bias2: float
    variance: float
    noise: float
    approximation: float
    estimation: float
    risk: float
    standard_error: float
    train_risk: float


_PARTS = _Parts._fields


def bias_variance(
    model: Any,
    f: Callable[[Array], Any],
    draw: Callable[[int, np.random.Generator], Any],
    *,
    noise: Any = 1.0,
    n: int = 100,
    name: str | None = None,
    values: Sequence[Any] | None = None,
    sizes: Sequence[int] | None = None,
    best: Any = None,
    n_best: int | None = None,
    n_repeats: int = 100,
    n_test: int = 1000,
    random_state: Any = 0,
) -> BiasVariance:
    """Split a regression model's expected squared error by simulation, perhaps along a parameter or the number of rows.

    Parameters
    ----------
    model : estimator
        Any regressor of scikit-learn's kind, pipelines included.
    f : callable
        The true function: X of shape (m, d) to (m,) values.
    draw : callable
        The law of the inputs: (m, generator) to X of shape (m, d).
    noise : float or callable
        Standard deviation of normal noise; or (X, generator) to noise of mean zero, one number per row.
    n : int
        Rows of a training set.
    name, values : str and sequence, optional
        Vary this parameter (a degree, a penalty, a number of neighbours; `"step__name"` inside a pipeline).
    sizes : sequence of int, optional
        Vary the number of rows instead.
    best : estimator, optional
        What f* is fitted with, if not the model itself: for example the same class without a penalty.
    n_best : int, optional
        Rows, without noise, that f* is fitted to; by default 50 n and at least 5,000.
    n_repeats : int
        Number of training sets. All points of a sweep see the same random numbers.
    n_test : int
        Points at which predictions are compared.
    random_state : int, Generator, RandomState or None
        Where randomness comes from.

    Returns
    -------
    BiasVariance
        The parts; print it to see them as a table.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import PolynomialFeatures
    >>> from learnable import LinearRegression
    >>> from learnable.evaluation import bias_variance
    >>> polynomial = make_pipeline(PolynomialFeatures(), LinearRegression())
    >>> parts = bias_variance(
    ...     polynomial,
    ...     lambda X: np.sin(3 * X[:, 0]),
    ...     lambda m, rng: rng.uniform(-1, 1, size=(m, 1)),
    ...     noise=0.3, n=30, name="polynomialfeatures__degree", values=[1, 3, 9], n_repeats=50,
    ... )
    >>> bool(parts.bias2[0] > parts.bias2[1]), bool(parts.variance[2] > parts.variance[1])
    (True, True)
    >>> total = parts.bias2 + parts.variance + parts.noise
    >>> bool((abs(parts.risk - total) < 4 * parts.standard_error).all())
    True
    """
    owner = "bias_variance"
    whole = Number(low=1, integer=True)
    rules = {
        "noise": Number(low=0.0) | Matches(callable, "a function of (X, generator)"),
        "n": whole,
        "n_best": optional(whole),
        "n_repeats": Number(low=2, integer=True),
        "n_test": Number(low=2, integer=True),
        "random_state": RANDOM_STATE,
    }
    given = {"noise": noise, "n": n, "n_best": n_best, "n_repeats": n_repeats, "n_test": n_test}
    check_parameters(owner, given | {"random_state": random_state}, rules)
    over, points = _points(owner, model, best, n, name, values, sizes)
    truth = _Truth(owner, f, draw, noise)
    rng = as_generator(random_state)
    seeds = [int(seed) for seed in rng.integers(2**63 - 1, size=n_repeats + 1)]
    found = [_simulate(owner, truth, candidate, star, rows, n_best, n_test, seeds) for candidate, star, rows in points]
    parts: dict[str, Any] = {
        part: np.array([getattr(point, part) for point in found]) if over else getattr(found[0], part)
        for part in _PARTS
    }
    labels = list(sizes if over == "n" else values or ()) if over is not None else []  # type: ignore[arg-type]
    return BiasVariance(over, labels, n_repeats=n_repeats, **parts)


class _Truth(NamedTuple):
    """The law of the data."""

    owner: str
    f: Callable[[Array], Any]
    draw: Callable[[int, np.random.Generator], Any]
    noise: Any

    def inputs(self, m: int, rng: np.random.Generator) -> Array:
        """Draw m rows of X."""
        X = np.asarray(self.draw(m, rng), dtype=np.float64)
        if X.ndim != 2 or len(X) != m:
            raise DataError(f"{self.owner}: draw({m}, generator) must give {m} rows of X; got shape {X.shape}.")
        return X

    def mean(self, X: Array) -> Array:
        """Return f(X)."""
        values = np.asarray(self.f(X), dtype=np.float64)
        if values.shape != (len(X),) or not np.isfinite(values).all():
            raise DataError(
                f"{self.owner}: f must give one finite number per row; got shape {values.shape} for {len(X)} rows."
            )
        return values

    def disturb(self, X: Array, rng: np.random.Generator) -> Array:
        """Draw the noise of each row."""
        if not callable(self.noise):
            return float(self.noise) * rng.standard_normal(len(X))
        values = np.asarray(self.noise(X, rng), dtype=np.float64)
        if values.shape != (len(X),) or not np.isfinite(values).all():
            raise DataError(
                f"{self.owner}: noise must give one finite number per row; got shape {values.shape} for {len(X)} rows."
            )
        return values

    def irreducible(self, X: Array, rng: np.random.Generator) -> tuple[float, float]:
        """Return E ε² at the points X, and its standard error."""
        if not callable(self.noise):
            return float(self.noise) ** 2, 0.0
        draws = np.concatenate([self.disturb(X, rng) for _ in range(max(2, _NOISE_DRAWS // len(X)))])
        spread = draws.std() / np.sqrt(len(draws))
        if abs(draws.mean()) > 6.0 * spread:
            raise DataError(
                f"{self.owner}: the noise has mean {draws.mean():.3g} instead of zero; add that to f, which is E[Y|X]."
            )
        return float((draws**2).mean()), float((draws**2).std() / np.sqrt(len(draws)))


def _points(
    owner: str, model: Any, best: Any, n: int, name: str | None, values: Any, sizes: Any
) -> tuple[str | None, list[tuple[Any, Any, int]]]:
    """Return what is varied, and for every point the model, the one that f* is fitted with, and the number of rows."""
    star = model if best is None else best
    if (name is None) != (values is None) or (sizes is not None and name is not None):
        raise ParameterError(f"{owner}: pass name and values together, or sizes, or none of them.")
    if sizes is not None:
        if len(sizes) == 0 or not all(Number(low=1, integer=True).allows(size) for size in sizes):
            raise ParameterError(f"{owner}: sizes must be numbers of rows >= 1; got {sizes!r}.")
        return "n", [(model, star, int(size)) for size in sizes]
    if name is None:
        return None, [(model, star, n)]
    if len(values) == 0 or name not in model.get_params():
        raise ParameterError(
            f"{owner}: needs one or more values of a parameter of {type(model).__name__}; got {name!r} and {values!r}."
        )
    varied = [clone(model).set_params(**{name: value}) for value in values]
    return name, [(candidate, candidate if best is None else best, n) for candidate in varied]


def _simulate(
    owner: str, truth: _Truth, model: Any, star: Any, n: int, n_best: int | None, n_test: int, seeds: list[int]
) -> _Parts:
    """Return the parts for one model and one number of rows."""
    common = np.random.default_rng(seeds[-1])
    X_test = truth.inputs(n_test, common)
    f_test = truth.mean(X_test)
    noise, noise_error = truth.irreducible(X_test, common)
    X_best = truth.inputs(n_best or max(50 * n, 5000), common)
    with naming_place(owner, star, "the fit without noise"):
        f_star = np.asarray(clone(star).fit(X_best, truth.mean(X_best)).predict(X_test), dtype=np.float64)
    n_repeats = len(seeds) - 1
    predictions = np.empty((n_repeats, n_test))
    risks = np.empty(n_repeats)
    train_risks = np.empty(n_repeats)
    for repeat, seed in enumerate(seeds[:-1]):
        # Separate streams, so that training sets of different sizes do not shift the test rows.
        training, testing = np.random.default_rng(seed).spawn(2)
        X = truth.inputs(n, training)
        y = truth.mean(X) + truth.disturb(X, training)
        X_fresh = truth.inputs(n_test, testing)
        y_fresh = truth.mean(X_fresh) + truth.disturb(X_fresh, testing)
        with naming_place(owner, model, f"data set {repeat + 1} of {n_repeats} with {n} rows"):
            fitted = clone(model).fit(X, y)
            predictions[repeat] = fitted.predict(X_test)
            risks[repeat] = np.mean((y_fresh - fitted.predict(X_fresh)) ** 2)
            train_risks[repeat] = np.mean((y - fitted.predict(X)) ** 2)
    variance = predictions.var(axis=0, ddof=1)
    bias2 = (predictions.mean(axis=0) - f_test) ** 2 - variance / n_repeats
    excess = (predictions - f_test) ** 2
    difference = risks - excess.mean(axis=1)
    error = np.sqrt(difference.var(ddof=1) / n_repeats + excess.mean(axis=0).var(ddof=1) / n_test + noise_error**2)
    approximation = float(np.mean((f_star - f_test) ** 2))
    total = float(bias2.mean() + variance.mean())
    return _Parts(
        float(bias2.mean()),
        float(variance.mean()),
        noise,
        approximation,
        total - approximation,
        float(risks.mean()),
        float(error),
        float(train_risks.mean()),
    )
