"""Prediction intervals for any regressor, in one call."""

from __future__ import annotations

from typing import Any

from .models import ConformalRegressor


def with_intervals(model: Any, method: str = "cv+", level: float = 0.9, **options: Any) -> Any:
    """Return a regressor like `model` whose `predict_interval` holds new targets with probability `level`.

    A model whose own intervals have their probability, from a distribution of new targets, is returned as it is: give
    the level to its `predict_interval`. Any other is wrapped in a `ConformalRegressor`, which keeps its attributes and
    methods, and can be saved and verified; so are forests, whose leaves have quantiles that may be too close.

    Parameters
    ----------
    model : regressor
        Unfitted.
    method : {"cv+", "jackknife+", "split", "cv"}
        How residuals of rows that a fit has not seen are had.
    level : float
        Probability.
    **options
        Those of `ConformalRegressor`.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable import Lasso, LinearRegression, with_intervals
    >>> X = np.random.default_rng(0).normal(size=(100, 3))
    >>> y = X[:, 0] + np.random.default_rng(1).normal(size=100)
    >>> model = with_intervals(Lasso(alpha=0.1)).fit(X, y)
    >>> lower, upper = model.predict_interval(X)
    >>> bool(np.mean((lower <= y) & (y <= upper)) >= 0.9), model.coef_.shape
    (True, (3,))
    >>> with_intervals(LinearRegression())
    LinearRegression()
    """
    own = getattr(model, "predict_interval", None) is not None and not _needs_settings(model)
    if own and not getattr(model, "_intervals_are_plug_in", False):
        return model
    return ConformalRegressor(model, method=method, level=level, **options)


def _needs_settings(model: Any) -> bool:
    """Tell whether the intervals of the model itself need settings that it does not have: quantiles, networks."""
    known = model.get_params(deep=False)
    boosted = known.get("loss") not in (None, "quantile", "normal") and "learning_rate" in known
    network = "ensemble_size" in known and not known.get("calibration_fraction")
    return boosted or network
