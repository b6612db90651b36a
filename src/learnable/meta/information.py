r"""Akaike's and the Bayesian information criterion of a fitted model.

    AIC = −2 ℓ + 2 k,        BIC = −2 ℓ + k log n,        smaller is better,

with the log-likelihood ℓ of the rows it was fitted to and k degrees of freedom:

    regression      ℓ = −½ n (log 2πσ̂² + 1) + ½ Σ log wᵢ,  σ̂² = Σ wᵢrᵢ²/n;  k = tr H + 1, the noise variance counted
    classification  ℓ = Σ wᵢ log p(yᵢ | xᵢ);  k = tr (F + P)⁻¹F with the Fisher information F and the penalty P
    lasso           k = coefficients that are not zero (Zou, Hastie and Tibshirani 2007), + intercept + 1
    others          a model's own `aic(X)` and `bic(X)`, or `log_likelihood(X, y, sample_weight)` and
                    `degrees_of_freedom_`

Some texts maximise −BIC/2. R counts the noise variance as we do, statsmodels does not (its values are lower by 2 or
log n): no difference between models of one family depends on that.

References: H. Akaike 1974; G. Schwarz 1978; T. Hastie, R. Tibshirani and J. Friedman, The Elements of Statistical
Learning, 2nd ed., sections 7.5 to 7.7.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import pinvh, svdvals
from sklearn.base import is_classifier, is_regressor

from ..core.errors import DataError, ParameterError
from ..data.frames import is_frame, open_frame, read_frame
from ..data.rows import RowTable

Array = NDArray[np.float64]

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
    y, w = np.asarray(table.y), np.ones(table.n_rows) if table.weight is None else table.weight
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
    n_scores, width = proba.shape[1], features.shape[1]
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
