"""How far predicted probabilities can be taken at their word: the data of a reliability diagram.

Rows are sorted into bins by their predicted probability; in each, the share that came true is set against the mean
prediction. The expected calibration error is the mean distance between the two, Σ_b (n_b/n) |observed_b − predicted_b|.

Reference: C. Guo et al., On calibration of modern neural networks, ICML 2017, section 2.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from scipy.stats import chi2

from ..core import Array, DataError, NDArray, Number, Options, ParameterError, check_parameters
from ..data.arrays import as_array, as_numbers
from ..data.door import encode_classes, read_values, read_weight
from ..plots import Markup, histogram, side_by_side


@dataclass(frozen=True)
class CalibrationTable:
    """Predicted against observed, bin by bin.

    Attributes
    ----------
    edges : array of shape (n_bins + 1,)
        Ends of the bins; each holds its upper end, the first its lower end too.
    mean_predicted : array of shape (n_bins,)
        Mean probability predicted in the bin; NaN in an empty one.
    observed : array of shape (n_bins,)
        Share of its rows that came true; NaN in an empty one.
    count : array of shape (n_bins,)
        Number of rows.
    expected_error : float
        Mean of |observed − mean_predicted| over the rows.
    largest_error : float
        Greatest |observed − mean_predicted|.
    kind : str
        "positive": probability of the second class; "confidence": of the label that is predicted.
    """

    edges: Array
    mean_predicted: Array
    observed: Array
    count: NDArray[np.int64]
    expected_error: float
    largest_error: float
    kind: str

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON types: empty bins have None."""
        return {
            "bins": self.edges.tolist(),
            "mean_predicted": _without_nan(self.mean_predicted),
            "observed": _without_nan(self.observed),
            "count": self.count.tolist(),
            "expected_error": self.expected_error,
            "largest_error": self.largest_error,
            "kind": self.kind,
        }


def calibration_table(
    y: Any,
    p: Any,
    bins: int = 10,
    *,
    strategy: str = "uniform",
    classes: Any = None,
    sample_weight: Any = None,
) -> CalibrationTable:
    """Return how often predictions of each size came true.

    Parameters
    ----------
    y : array of shape (n_samples,)
        The true labels.
    p : array of shape (n_samples,) or (n_samples, n_classes)
        Probability of the second class; or of all classes. With more than two, what is looked at is the probability of
        the label predicted, and whether it is right.
    bins : int, default=10
        Number of bins.
    strategy : {"uniform", "quantile"}, default="uniform"
        Bins of equal width, or of (nearly) equally many rows; there may then be fewer.
    classes : array of shape (n_classes,), optional
        The labels in the order of the columns of p; needed only when y lacks some of them.
    sample_weight : array of shape (n_samples,), optional
        Weights of the rows in means and errors.

    Returns
    -------
    CalibrationTable
        The bins and the expected calibration error.

    Examples
    --------
    >>> from learnable.evaluation import calibration_table
    >>> table = calibration_table([0, 0, 1, 1], [0.1, 0.3, 0.6, 0.8], bins=2)
    >>> table.mean_predicted, table.observed, table.count
    (array([0.2, 0.7]), array([0., 1.]), array([2, 2]))
    >>> round(table.expected_error, 3)
    0.25
    """
    owner = "calibration_table"
    given = {"bins": bins, "strategy": strategy}
    check_parameters(owner, given, {"bins": Number(low=1, integer=True), "strategy": Options("uniform", "quantile")})
    p = _read_probabilities(owner, p)
    happened, predicted, kind = _events(owner, as_array(owner, read_values(owner, y), "y"), p, classes)
    weight = read_weight(owner, sample_weight, len(p))
    w = np.ones(len(p)) if weight is None else weight
    edges = np.linspace(0.0, 1.0, bins + 1)
    if strategy == "quantile":
        edges = np.unique(np.quantile(predicted, edges))
        edges = edges if len(edges) > 1 else np.array([edges[0], edges[0]])
    n_bins = len(edges) - 1
    place = np.clip(np.searchsorted(edges[1:-1], predicted, side="left"), 0, n_bins - 1)
    total = np.bincount(place, w, n_bins)
    with np.errstate(invalid="ignore"):
        mean = np.bincount(place, w * predicted, n_bins) / total
        share = np.bincount(place, w * happened, n_bins) / total
    miss = np.where(total > 0, np.abs(share - mean), 0.0)
    count = np.bincount(place, minlength=n_bins).astype(np.int64)
    return CalibrationTable(edges, mean, share, count, float(total @ miss / total.sum()), float(miss.max()), kind)


_SMALL: Final = 0.01  # a difference of mean probabilities that changes no decision


def calibration_verdict(y: NDArray[Any], probabilities: Array, level: float = 0.95) -> dict[str, Any]:
    """Tell whether probabilities can be taken at their word, by Spiegelhalter's test.

    Were the labels drawn from the probabilities, the true label would have a mean probability of Σₖ pₖ² ("promised"),
    with a variance known from them. "kept" is the mean that it had: less is overconfident, more is underconfident.

    Reference: D. Spiegelhalter, Probabilistic prediction in patient management and clinical trials, Statistics in
    Medicine 5, 1986, for any number of classes.

    Parameters
    ----------
    y : (n,) int
        Codes of the classes.
    probabilities : (n, K)
        Of each class.
    level : float
        One minus the chance of a word against probabilities that are right.

    Returns
    -------
    dict
        "promised", "kept", "z", "p_value" and "word": "calibrated" (nothing speaks against it), "nearly" (they are
        off beyond noise, by less than 0.01), "overconfident", "underconfident", or "unknown" where every probability is
        0 or 1 and came true.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable.evaluation.reliability import calibration_verdict
    >>> y = np.array([0, 1] * 50)
    >>> calibration_verdict(y, np.tile([0.99, 0.01], (100, 1)))["word"]
    'overconfident'
    """
    from scipy.special import ndtr

    p = np.asarray(probabilities, dtype=np.float64)
    given = p[np.arange(len(p)), np.asarray(y, dtype=np.intp)]
    squares = (p**2).sum(axis=1)
    variance = float(((p**3).sum(axis=1) - squares**2).sum())
    promised = float(squares.mean())
    kept = float(given.mean())
    found = {"promised": promised, "kept": kept, "level": level}
    if variance <= 1e-12 * len(p):
        word = "unknown" if kept >= promised - 1e-9 else "overconfident"
        return found | {"z": None, "p_value": None, "word": word}
    z = float((squares - given).sum() / variance**0.5)
    p_value = float(2.0 * ndtr(-abs(z)))
    word = "overconfident" if z > 0 else "underconfident"
    if abs(kept - promised) < _SMALL:
        word = "nearly"
    if p_value >= 1.0 - level:
        word = "calibrated"
    return found | {"z": z, "p_value": p_value, "word": word}


def _read_probabilities(owner: str, p: Any) -> Array:
    values = as_numbers(owner, as_array(owner, read_values(owner, p), "p"), "p").astype(np.float64, copy=False)
    if values.ndim not in (1, 2) or not len(values):
        raise DataError(
            f"{owner}: p must have one probability per row, or one column per class; got shape {values.shape}."
        )
    if not ((values >= 0) & (values <= 1)).all():  # NaN fails too
        row = int(np.argmax(~((values >= 0) & (values <= 1)).reshape(len(values), -1).all(axis=1)))
        raise DataError(f"{owner}: p must lie between 0 and 1; row {row} has {values[row]}. Pass probabilities.")
    return values


def _events(owner: str, y: NDArray[Any], p: Array, classes: Any) -> tuple[NDArray[np.bool_], Array, str]:
    """Return whether the event came true, the probability it was given, and what the event is."""
    if y.shape != (len(p),):
        raise DataError(f"{owner}: y must have shape ({len(p)},), one label for each row of p; got {y.shape}.")
    codes, found = encode_classes(owner, y)
    n_classes = p.shape[1] if p.ndim == 2 else 2
    labels = found.tolist() if classes is None else np.asarray(classes).tolist()
    if classes is None and n_classes == 2 and len(labels) == 1 and labels[0] in (0, 1):
        labels = [0, 1]  # a single class, but the usual labels: which one it is can be told
    if len(labels) != n_classes or not set(found.tolist()) <= set(labels):
        raise DataError(
            f"{owner}: p is about {n_classes} classes, but there are {len(labels)} labels: pass `classes`, the labels "
            "in the order of the columns."
        )
    place = np.array([labels.index(label) for label in found.tolist()])[codes]
    if n_classes == 2:
        return place == 1, p if p.ndim == 1 else p[:, 1], "positive"
    best = p.argmax(axis=1)
    return place == best, p[np.arange(len(p)), best], "confidence"


def _without_nan(values: Array) -> list[float | None]:
    return [None if np.isnan(value) else float(value) for value in values]


# --------------------------------------------------------------------------------------------------------------------
# Simulation-based calibration: whether a posterior is the posterior.
#
# Draw θ from the prior, data from the model given θ, and L draws from what claims to be the posterior of the data. If
# the claim is true, the rank of θ among the draws is uniform on 0 … L, for every number θ holds (Talts et al., arXiv
# 1804.06788; Cook, Gelman and Rubin 2006). A posterior that is too narrow gives ranks at both ends, one that is too
# wide ranks in the middle, one that is shifted a slope.


@dataclass(frozen=True)
class CalibrationCheck:
    """Ranks of true parameters among draws that claim to be from their posterior.

    Attributes
    ----------
    ranks : dict of str to array of shape (n_simulations,)
        From 0 to `n_draws`.
    n_draws : int
        Draws that each truth is ranked among.
    p_values : dict of str to float
        Of the χ² test that the ranks are uniform.
    level : float
        Probability of a false alarm over all parameters together (Bonferroni).
    """

    ranks: dict[str, NDArray[np.int64]]
    n_draws: int
    p_values: dict[str, float]
    level: float = 0.01

    @property
    def holds(self) -> bool:
        """Whether no parameter's ranks are far from uniform."""
        return min(self.p_values.values()) >= self.level / len(self.p_values)

    def shape(self, name: str) -> str:
        """Say what the ranks of a parameter look like, in words."""
        u = (self.ranks[name] + 0.5) / (self.n_draws + 1)
        n = len(u)
        tilt = (u.mean() - 0.5) * np.sqrt(12 * n)
        bend = (((u - 0.5) ** 2).mean() - 1 / 12) * np.sqrt(180 * n)
        if abs(tilt) > max(3.0, abs(bend)):
            return "draws are too small" if tilt > 0 else "draws are too large"
        if abs(bend) > 3:
            return "draws are too narrow" if bend > 0 else "draws are too wide"
        return "uniform"

    def __str__(self) -> str:
        lines = [f"{name}: p = {p:.3g}, {self.shape(name)}" for name, p in self.p_values.items()]
        verdict = "calibrated" if self.holds else "NOT calibrated"
        n = len(next(iter(self.ranks.values())))
        return "\n".join([f"{verdict} ({n} simulations, ranks among {self.n_draws} draws)", *lines])

    def plot(self) -> Markup:
        """Return the rank histograms as SVG."""
        figures = []
        for name, ranks in self.ranks.items():
            edges = np.linspace(0, self.n_draws + 1, _n_bins(len(ranks), self.n_draws) + 1)
            counts = np.histogram(ranks + 0.5, edges)[0]
            figures.append(histogram(edges, counts, title=name, x_label=f"rank of {name}", y_label="simulations"))
        return side_by_side(*figures, title="Ranks of the truth")


def calibrate(
    model: Callable[..., Any],
    prior: Callable[[np.random.Generator], Mapping[str, Any]],
    simulate: Callable[..., Any],
    *,
    n_simulations: int = 200,
    n_draws: int = 99,
    level: float = 0.01,
    random_state: Any = None,
) -> CalibrationCheck:
    """Check a sampler, or a conjugate or approximate posterior, against its own model.

    Parameters
    ----------
    model : callable
        (data, rng) ↦ draws from the posterior: `Chains`, a mapping of names to arrays of shape (n_draws, …), or a
        mapping of names to distributions.
    prior : callable
        rng ↦ a mapping of names to values.
    simulate : callable
        (parameters, rng) ↦ data.
    n_simulations : int
        How often.
    n_draws : int
        Draws to rank the truth among; of more, evenly spaced ones are taken, which makes draws of chains nearly
        independent.
    level : float
        Probability of a false alarm.
    random_state : int, Generator or None
        Seed.

    Returns
    -------
    CalibrationCheck
        True to its model if `holds`.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable.evaluation import calibrate
    >>> from learnable.probability import Normal
    >>> check = calibrate(
    ...     lambda y, rng: {"mu": Normal(y.sum() / (1 + len(y)), (1 + len(y)) ** -0.5)},
    ...     lambda rng: {"mu": rng.normal()},
    ...     lambda p, rng: p["mu"] + rng.normal(size=5),
    ...     random_state=0,
    ... )
    >>> check.holds
    True
    """
    for name, value, least in (("n_simulations", n_simulations, 20), ("n_draws", n_draws, 4)):
        if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < least:
            raise ParameterError(f"calibrate: {name} must be an integer of at least {least}; got {value!r}.")
    if not 0 < level < 1:
        raise ParameterError(f"calibrate: level must lie between 0 and 1; got {level!r}.")
    seed = random_state if isinstance(random_state, np.random.Generator) else np.random.default_rng(random_state)
    ranks: dict[str, list[int]] = {}
    for rng in seed.spawn(int(n_simulations)):
        truth = {name: np.asarray(value, dtype=np.float64) for name, value in prior(rng).items()}
        draws = model(simulate(dict(truth), rng), rng)
        for variable, true_value in truth.items():
            found = _draws_of(draws, variable, true_value.shape, int(n_draws), rng)
            for label, true, column in _numbers(variable, true_value, found):
                # Ties are broken at random: whole numbers have uniform ranks then, too.
                below = int((column < true).sum())
                ties = int((column == true).sum())
                ranks.setdefault(label, []).append(below + int(rng.integers(ties + 1)))
    arrays = {name: np.array(values, dtype=np.int64) for name, values in ranks.items()}
    p_values = {name: uniform_p_value(values, int(n_draws)) for name, values in arrays.items()}
    return CalibrationCheck(arrays, int(n_draws), p_values, level)


def uniform_p_value(ranks: NDArray[np.int64], n_draws: int) -> float:
    """Return the p-value of the χ² test that ranks are uniform on 0 … n_draws."""
    bins = _n_bins(len(ranks), n_draws)
    edges = np.round(np.linspace(0, n_draws + 1, bins + 1))
    counts = np.histogram(ranks + 0.5, edges)[0]
    expected = len(ranks) * np.diff(edges) / (n_draws + 1)
    return float(chi2.sf(((counts - expected) ** 2 / expected).sum(), bins - 1))


def _n_bins(n: int, n_draws: int) -> int:
    """Return the number of bins: at least ten expected ranks in each."""
    return int(np.clip(n // 10, 2, min(20, n_draws + 1)))


def _draws_of(draws: Any, name: str, shape: tuple[int, ...], n: int, rng: np.random.Generator) -> Array:
    """Return n draws of one parameter, (n, …)."""
    try:
        given = draws.flat(name) if hasattr(draws, "flat") and hasattr(draws, "n_chains") else draws[name]
    except (KeyError, TypeError):
        raise DataError(f"calibrate: model must return draws of {name!r}, which the prior draws.") from None
    if hasattr(given, "sample") and hasattr(given, "logpdf"):
        return np.asarray(given.sample(n, random_state=rng), dtype=np.float64).reshape(n, *shape)
    array = np.asarray(given, dtype=np.float64)
    if array.ndim != len(shape) + 1 or array.shape[1:] != shape or len(array) < n:
        raise DataError(f"calibrate: draws of {name!r} must have shape (at least {n}, *{shape}); got {array.shape}.")
    return array[np.linspace(0, len(array) - 1, n).astype(np.int64)]


def _numbers(name: str, value: Array, draws: Array) -> list[tuple[str, float, Array]]:
    if not value.shape:
        return [(name, float(value), draws)]
    places = list(np.ndindex(*value.shape))
    return [(f"{name}[{','.join(map(str, p))}]", float(value[p]), draws[(slice(None), *p)]) for p in places]
