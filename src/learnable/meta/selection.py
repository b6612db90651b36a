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

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import pinvh, svdvals
from sklearn.base import clone, is_classifier, is_regressor

from ..core import RANDOM_STATE, Array, Boolean, DataError, NDArray, Options, ParameterError, check_parameters
from ..data.door import is_frame
from ..data.frames import open_frame, read_frame
from ..data.rows import RowTable, read_rows
from .folds import cross_score, fit_whole, scorer_of, splits_for


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
        errors = np.full(len(candidates), np.nan)
        scores = np.empty((len(candidates), 0))
        metric = rule.upper()
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
        criterion = scores.mean(axis=1)
        errors = standard_errors(scores)
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


# Akaike's and the Bayesian information criterion of a fitted model.
#
#     AIC = −2 ℓ + 2 k,        BIC = −2 ℓ + k log n,        smaller is better,
#
# with the log-likelihood ℓ of the rows it was fitted to and k degrees of freedom:
#
#     regression      ℓ = −½ n (log 2πσ̂² + 1) + ½ Σ log wᵢ,  σ̂² = Σ wᵢrᵢ²/n;  k = tr H + 1, the noise variance
# counted
#     classification  ℓ = Σ wᵢ log p(yᵢ | xᵢ);  k = tr (F + P)⁻¹F with the Fisher information F and the penalty P
#     lasso           k = coefficients that are not zero (Zou, Hastie and Tibshirani 2007), + intercept + 1
#     others          a model's own `aic(X)` and `bic(X)`, or `log_likelihood(X, y, sample_weight)` and
#                     `degrees_of_freedom_`
#
# Some texts maximise −BIC/2. R counts the noise variance as we do, statsmodels does not (its values are lower by 2 or
# log n): no difference between models of one family depends on that.
#
# References: H. Akaike 1974; G. Schwarz 1978; T. Hastie, R. Tibshirani and J. Friedman, The Elements of Statistical
# Learning, 2nd ed., sections 7.5 to 7.7.

#: Classes whose penalty is α‖β‖², ours and scikit-learn's; meta stands below them and knows them by name.
_QUADRATIC = {"Ridge", "RidgeCV"}

_LOGISTIC = {"LogisticRegression", "LogisticRegressionCV"}

_SPARSE = {"Lasso", "LassoCV", "LassoLars", "LassoLarsCV"}

_PLAIN = {"LinearRegression"}


def information_criterion(owner: str, model: Any, table: RowTable, rule: str, freedom: Any = None) -> float:
    """Return the AIC or BIC of a model fitted to all rows of a table.

    Parameters
    ----------
    owner : str
        Who asks, for error messages.
    model : estimator
        Fitted.
    table : RowTable
        The rows it was fitted to.
    rule : {"aic", "bic"}
        Which.
    freedom : callable, optional
        Gives the degrees of freedom of a fitted model where they are not known here.
    """
    if freedom is None and hasattr(model, rule) and callable(getattr(model, rule)):
        return float(getattr(model, rule)(table.X))
    likelihood = log_likelihood(owner, model, table)
    k = float(freedom(model)) if freedom is not None else degrees_of_freedom(owner, model, table)
    return -2.0 * likelihood + (2.0 if rule == "aic" else math.log(table.n_rows)) * k


def log_likelihood(owner: str, model: Any, table: RowTable) -> float:
    """Return ℓ; for a regressor with the noise variance that maximises it."""
    if hasattr(model, "log_likelihood"):
        return float(model.log_likelihood(table.X, table.y, table.weight))
    y = np.asarray(table.y)
    w = np.ones(table.n_rows) if table.weight is None else table.weight
    kept = w > 0
    if is_classifier(model) and hasattr(model, "predict_proba"):
        proba = np.asarray(model.predict_proba(table.X))
        of_own_class = proba[np.arange(len(y)), np.searchsorted(model.classes_, y)]
        with np.errstate(divide="ignore"):
            return float(w[kept] @ np.log(of_own_class[kept]))
    if not is_regressor(model):
        raise ParameterError(
            f"{owner}: AIC and BIC need a likelihood, and {type(model).__name__} has none; use rule='min' or '1se'."
        )
    residuals = (np.asarray(y, dtype=np.float64) - np.asarray(model.predict(table.X))).reshape(len(y), -1)[kept]
    targets = np.asarray(y, dtype=np.float64).reshape(len(y), -1)[kept]
    n = int(kept.sum())
    # A perfect fit has no noise, up to rounding; without a floor its likelihood would be infinite.
    floor = (4.0 * np.finfo(np.float64).eps * np.maximum(np.abs(targets).max(axis=0), np.finfo(np.float64).tiny)) ** 2
    variance = np.maximum(w[kept] @ residuals**2 / n, np.maximum(floor, np.finfo(np.float64).tiny))
    of_each = -0.5 * n * (np.log(2.0 * np.pi * variance) + 1.0) + 0.5 * np.log(w[kept]).sum()
    return float(of_each.sum())


def degrees_of_freedom(owner: str, model: Any, table: RowTable) -> float:
    """Return k, by the model's own attribute or by what is known of its class."""
    last, X = _last_model(model, table.X)
    known = getattr(last, "degrees_of_freedom_", None)
    n_targets = 1 if table.y is None or table.y.ndim == 1 else table.y.shape[1]
    noise = 0.0 if is_classifier(last) else float(n_targets)
    if known is not None:
        return float(known) + noise
    names = {base.__name__ for base in type(last).__mro__}
    intercept = float(bool(getattr(last, "fit_intercept", False)))
    if names & _LOGISTIC and not getattr(last, "l1_ratio", None):
        return _logistic_freedom(last, _dense(owner, X), np.asarray(last.predict_proba(X)), table.weight)
    if names & _SPARSE:
        return float(np.count_nonzero(last.coef_)) + n_targets * intercept + noise
    if names & (_QUADRATIC | _PLAIN) and not getattr(last, "positive", False):
        alpha = 0.0 if names & _PLAIN else getattr(last, "alpha_", getattr(last, "alpha", 0.0))
        values = _squared_singular_values(_dense(owner, X), table.weight, bool(intercept))
        alphas = np.broadcast_to(np.asarray(alpha, dtype=np.float64), (n_targets,))
        return float(sum((values / (values + a)).sum() for a in alphas)) + n_targets * intercept + noise
    raise ParameterError(
        f"{owner}: the degrees of freedom of {type(last).__name__} are not known; pass degrees_of_freedom, a function "
        "of the fitted model."
    )


def _squared_singular_values(X: Array, weight: Array | None, intercept: bool) -> Array:
    """Return s² > 0 of the centred, weighted rows; directions below rounding do not count."""
    w = np.ones(len(X)) if weight is None else weight
    Z = np.sqrt(w)[:, None] * (X - (w @ X / w.sum() if intercept else 0.0))
    s = svdvals(Z, check_finite=False)
    return np.asarray(s[s > np.finfo(np.float64).eps * max(Z.shape) * s.max(initial=0.0)] ** 2)


def _logistic_freedom(model: Any, X: Array, proba: Array, weight: Array | None) -> float:
    """Return tr (F + P)⁺F of a penalised (softmax) likelihood; without a penalty its rank, (K − 1)(d + 1)."""
    C = np.ravel(getattr(model, "C_", getattr(model, "C", np.inf)))[0]
    w = np.ones(len(X)) if weight is None else weight
    features = np.column_stack([np.ones(len(X)), X]) if model.fit_intercept else X
    proba = proba[:, 1:] if proba.shape[1] == 2 else proba  # two classes have one score
    n_scores = proba.shape[1]
    width = features.shape[1]
    F = np.empty((n_scores, width, n_scores, width))
    for a in range(n_scores):
        for b in range(n_scores):
            curvature = w * proba[:, a] * (float(a == b) - proba[:, b])
            F[a, :, b, :] = features.T @ (curvature[:, None] * features)
    F = F.reshape(n_scores * width, -1)
    penalty = np.full((n_scores, width), 0.0 if np.isinf(C) else 1.0 / C)
    if model.fit_intercept:
        penalty[:, 0] = 0.0
    # Columns in other units must not decide which directions count as none.
    scale = 1.0 / np.sqrt(np.maximum(np.diag(F) + penalty.ravel(), np.finfo(np.float64).tiny))
    total = scale[:, None] * (F + np.diag(penalty.ravel())) * scale
    return float(np.trace(pinvh(total, rtol=1e-10) @ (scale[:, None] * F * scale)))


def _last_model(model: Any, X: Any) -> tuple[Any, Any]:
    """Return the model at the end of a pipeline or inside a TableModel, and what it sees."""
    from sklearn.pipeline import Pipeline

    if isinstance(model, Pipeline):
        return _last_model(model.steps[-1][1], model[:-1].transform(X) if len(model.steps) > 1 else X)
    if hasattr(model, "encoder_") and hasattr(model, "model_"):
        return _last_model(model.model_, model.encoder_.transform(X))
    return model, X


def _dense(owner: str, X: Any) -> Array:
    if is_frame(X):
        X = read_frame(owner, open_frame(owner, X))
    X = X.toarray() if hasattr(X, "toarray") else np.asarray(X, dtype=np.float64)
    if X.ndim != 2:
        raise DataError(f"{owner}: X must have rows and columns; got shape {X.shape}.")
    return np.asarray(X, dtype=np.float64)
