r"""The choice of one parameter: a penalty λ, a degree, a number K of neighbours, clusters or components.

    min   the best mean score over the folds
    1se   the simplest value whose mean score is within one standard error of the best
    aic   the smallest AIC of the fit to all rows
    bic   the smallest BIC; it finds the true degree as n grows, where the AIC keeps choosing too large ones at times

Values are given from simple to complex: strongest penalty, lowest degree, fewest components first (or the other way
round, with `simplest="last"`). A tie goes to the simpler value.

References: L. Breiman et al., Classification and Regression Trees, 1984, section 3.4.3 (one standard error); T. Hastie,
R. Tibshirani and J. Friedman, The Elements of Statistical Learning, 2nd ed., sections 7.7 and 7.10.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from ..core.errors import DataError, ParameterError
from ..core.parameters import RANDOM_STATE, Boolean, Options, check_parameters
from ..data.rows import RowTable, read_rows
from .folds import cross_score, fit_whole, scorer_of, splits_for
from .information import information_criterion

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Selection:
    """A chosen value, and why.

    Attributes
    ----------
    value : object
        The chosen value.
    index : int
        Its position in `values`.
    name : str
        The parameter.
    rule : str
        How it was chosen.
    values : list
        The candidates.
    criterion : array of shape (n_values,)
        Mean score of each, greater is better; for "aic" and "bic" the criterion, smaller is better.
    standard_errors : array of shape (n_values,)
        Of the mean scores; NaN for "aic" and "bic".
    scores : array of shape (n_values, n_folds)
        Every score; without columns for "aic" and "bic".
    metric : str
        Name of the criterion.
    model : estimator or None
        Fitted to all rows with the chosen value.
    """

    value: Any
    index: int
    name: str
    rule: str
    values: list[Any]
    criterion: Array
    standard_errors: Array
    scores: Array
    metric: str
    model: Any

    def __repr__(self) -> str:
        return f"{self.name}={self.value!r} by {self.rule} ({self.metric} {self.criterion[self.index]:.6g})"


def select(
    model: Any,
    X: Any,
    y: Any = None,
    name: str = "alpha",
    values: Sequence[Any] = (),
    *,
    rule: str = "min",
    simplest: str = "first",
    scoring: Any = None,
    scheme: Any = "auto",
    n_splits: int = 5,
    repeats: int = 1,
    groups: Any = None,
    time: Any = None,
    sample_weight: Any = None,
    degrees_of_freedom: Callable[[Any], float] | None = None,
    refit: bool = True,
    random_state: Any = 0,
) -> Selection:
    """Choose a model's parameter from a list of values.

    Parameters
    ----------
    model : estimator
        Any estimator of scikit-learn's kind; it is cloned.
    X, y, sample_weight, groups, time, scoring, scheme, n_splits, repeats, random_state
        As in `evaluate`. All values are scored on the same folds.
    name : str
        The parameter, `"step__name"` inside a pipeline.
    values : sequence
        The candidates, from simple to complex.
    rule : {"min", "1se", "aic", "bic"}
        How to choose.
    simplest : {"first", "last"}
        At which end of `values` the simplest model is.
    degrees_of_freedom : callable, optional
        For "aic" and "bic": the number of free parameters of a fitted model, where it is not known. The noise variance
        of a regression counts as one.
    refit : bool
        Whether to fit the chosen model to all rows.

    Returns
    -------
    Selection
        The value, the criterion along `values`, and the fitted model.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import PolynomialFeatures
    >>> from learnable import LinearRegression
    >>> from learnable.meta.selection import select
    >>> rng = np.random.default_rng(0)
    >>> x = rng.uniform(-1, 1, size=(200, 1))
    >>> y = 1 + x[:, 0] - 2 * x[:, 0] ** 2 + 0.3 * rng.normal(size=200)
    >>> polynomial = make_pipeline(PolynomialFeatures(include_bias=False), LinearRegression())
    >>> select(polynomial, x, y, "polynomialfeatures__degree", [1, 2, 3, 4, 5], rule="bic").value
    2
    """
    owner = "select"
    rules = {
        "rule": Options("min", "1se", "aic", "bic"),
        "simplest": Options("first", "last"),
        "refit": Boolean(),
        "random_state": RANDOM_STATE,
    }
    given = {"rule": rule, "simplest": simplest, "refit": refit, "random_state": random_state}
    check_parameters(owner, given, rules)
    candidates = _candidates(owner, model, name, values)
    table = read_rows(owner, X, y, sample_weight, groups=groups, time=time)
    if rule in ("aic", "bic"):
        criterion = _criteria(owner, candidates, table, rule, degrees_of_freedom)
        errors, scores, metric = np.full(len(candidates), np.nan), np.empty((len(candidates), 0)), rule.upper()
        good = criterion == criterion.min()
    else:
        scorer, metric = scorer_of(owner, model, scoring)
        splits, _ = splits_for(owner, model, table, scheme, n_splits, repeats, random_state)
        scores = np.array(
            [
                [fold.score for fold in cross_score(owner, candidate, table, splits, scorer, place=f" with {label}")]
                for label, candidate in candidates
            ]
        )
        criterion, errors = scores.mean(axis=1), standard_errors(scores)
        good = within_one_error(criterion, errors) if rule == "1se" else criterion == criterion.max()
    index = int(np.flatnonzero(good)[0 if simplest == "first" else -1])
    chosen = fit_whole(owner, candidates[index][1], table) if refit else None
    return Selection(list(values)[index], index, name, rule, list(values), criterion, errors, scores, metric, chosen)


def standard_errors(scores: Array) -> Array:
    """Return the standard error of each mean over folds, s/√J, of scores (n_values, n_folds)."""
    n_folds = scores.shape[1]
    return np.asarray(scores.std(axis=1, ddof=1) / np.sqrt(n_folds)) if n_folds > 1 else np.full(len(scores), np.inf)


def within_one_error(means: Array, errors: Array) -> NDArray[np.bool_]:
    """Tell which means are within one standard error (that of the best) of the best.

    Examples
    --------
    >>> import numpy as np
    >>> within_one_error(np.array([0.70, 0.79, 0.80]), np.array([0.02, 0.02, 0.02]))
    array([False,  True,  True])
    """
    best = int(np.argmax(means))
    return np.asarray(means >= means[best] - errors[best])


def _candidates(owner: str, model: Any, name: str, values: Sequence[Any]) -> list[tuple[str, Any]]:
    """Return the models to compare, each with its label."""
    if isinstance(values, str) or not hasattr(values, "__len__") or len(values) == 0:
        raise ParameterError(f"{owner}: values must be one or more candidates for {name}; got {values!r}.")
    if name not in model.get_params():
        raise ParameterError(
            f"{owner}: {type(model).__name__} has no parameter {name!r}; it has "
            f"{', '.join(sorted(model.get_params()))}."
        )
    return [(f"{name}={value!r}", clone(model).set_params(**{name: value})) for value in values]


def _criteria(
    owner: str, candidates: list[tuple[str, Any]], table: RowTable, rule: str, freedom: Callable[[Any], float] | None
) -> Array:
    found = []
    for label, candidate in candidates:
        fitted = fit_whole(owner, candidate, table, f" with {label}")
        found.append(information_criterion(owner, fitted, table, rule, freedom))
        if not np.isfinite(found[-1]):
            raise DataError(f"{owner}: the {rule.upper()} with {label} is {found[-1]}; use rule='min' or '1se'.")
    return np.array(found)
