"""Columns and targets in any unit: what is fitted is verified; what float64 cannot hold is refused with a reason."""

import numpy as np
import pytest

import learnable as ln
from learnable.core.errors import DataError

MODELS = {
    "least squares": ln.LinearRegression(),
    "ridge": ln.Ridge(),
    "ridge, conjugate gradients": ln.Ridge(solver="sparse_cg"),
    "ridge cv": ln.RidgeCV(),
    "lasso": ln.Lasso(alpha=0.1),
    "lasso, weak": ln.Lasso(alpha=1e-4),
    "elastic net": ln.ElasticNet(alpha=0.01),
    "lasso cv": ln.LassoCV(alphas=10, cv=3),
    "multi-task lasso": ln.MultiTaskLasso(alpha=0.1),
    "multi-task lasso, weak": ln.MultiTaskLasso(alpha=1e-4),
    "multi-task elastic net": ln.MultiTaskElasticNet(alpha=0.01),
    "Bayesian": ln.BayesianLinearRegression(),
}
#: Units of the six columns, and what is added to them.
COLUMNS = {
    "large": (np.full(6, 1e6), 0.0),
    "small": (np.full(6, 1e-6), 0.0),
    "mixed": (10.0 ** np.array([-6, 6, 0, 3, -3, 5]), 0.0),
    "far from zero": (np.ones(6), 1e6),
    "hardly there": (np.full(6, 1e-300), 0.0),
    "one hardly there": (np.array([1e-300, 1, 1, 1, 1, 1]), 0.0),
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("columns", COLUMNS)
@pytest.mark.parametrize("unit", [1.0, 1e-310, 1e-160, 1e160])
def test_a_certificate_that_holds_is_verified_in_any_unit(name, columns, unit):
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(60, 6))
        Y = X[:, :2] @ rng.normal(size=(2, 3)) + rng.normal(size=(60, 3))
        scale, offset = COLUMNS[columns]
        X, y = X * scale + offset, (Y if "multi" in name else Y[:, 0]) * unit
        model = type(MODELS[name])(**MODELS[name].get_params())
        try:
            model.fit(X, y)
        except DataError as error:
            refusal = str(error)
        else:
            refusal = ""
        assert not refusal or "rescale" in refusal
        if refusal:
            continue
        verdict = ln.verify(model, X, y)
        assert verdict or not model.certificate_.holds, str(verdict)
