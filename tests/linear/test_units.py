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


@pytest.mark.sampled(8)
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


#: Every kind of linear model, with the target that suits it: numbers, tasks, amounts, two classes or three.
ALL_MODELS = {
    "least squares": (ln.LinearRegression(), "numbers"),
    "ridge": (ln.Ridge(), "numbers"),
    "ridge cv": (ln.RidgeCV(), "numbers"),
    "lasso": (ln.Lasso(alpha=0.1), "numbers"),
    "elastic net": (ln.ElasticNet(alpha=0.1), "numbers"),
    "multi-task lasso": (ln.MultiTaskLasso(alpha=0.1), "tasks"),
    "lasso cv": (ln.LassoCV(alphas=10, cv=3), "numbers"),
    "Bayesian": (ln.BayesianLinearRegression(), "numbers"),
    "tube": (ln.LinearSVR(max_iter=100), "numbers"),
    "squared tube": (ln.LinearSVR(loss="squared_epsilon_insensitive"), "numbers"),
    "poisson": (ln.PoissonRegressor(), "amounts"),
    "gamma": (ln.GammaRegressor(), "amounts"),
    "tweedie": (ln.TweedieRegressor(power=1.5), "amounts"),
    "logistic": (ln.LogisticRegression(), "two"),
    "logistic, L1": (ln.LogisticRegression(l1_ratio=1.0, max_iter=50), "two"),
    "logistic, elastic net": (ln.LogisticRegression(l1_ratio=0.5, max_iter=50), "two"),
    "softmax": (ln.LogisticRegression(), "three"),
    "softmax, L1": (ln.LogisticRegression(l1_ratio=1.0, max_iter=50), "three"),
    "squared hinge": (ln.LinearSVC(), "two"),
    "hinge": (ln.LinearSVC(loss="hinge", max_iter=100), "two"),
    "squared hinge, L1": (ln.LinearSVC(penalty="l1", max_iter=100), "two"),
    "joint margin": (ln.LinearSVC(multi_class="crammer_singer", max_iter=100), "three"),
}
SCALES = [1e-310, 1e-300, 1e-150, 1e-30, 1e-12, 1e-6, 1e6, 1e9, 1e12, 1e13, 1e30, 1e150, 1e300]


def targets_of(kind, z):
    if kind == "amounts":
        return np.exp(z / 4.0)
    if kind == "tasks":
        return np.column_stack([z, np.cos(z)])
    return z if kind == "numbers" else np.digitize(z, [0.0] if kind == "two" else [-1.0, 1.0])


def assert_claims_are_found(name, what, scales):
    """Fit with X, y or the weights at each scale: `verify` confirms what is claimed, or the fit is refused in words."""
    model, kind = ALL_MODELS[name]
    for seed in range(2):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(60, 4))
        y = targets_of(kind, X @ [1.0, -2.0, 0.5, 0.0] + rng.normal(size=60))
        weight = rng.uniform(0.5, 2.0, 60)
        for scale in scales:
            rows = X * scale if what == "X" else X
            target = y * scale if what == "y" else y
            s = weight * scale if what == "weights" else weight
            twin = type(model)(**model.get_params())
            refusal = ""
            try:
                twin.fit(rows, target, sample_weight=s)
            except DataError as error:
                refusal = str(error)
            assert not refusal or any(word in refusal for word in ("rescale", "sample_weight", "weight of")), refusal
            if refusal:
                continue
            verdict = ln.verify(twin, rows, target, sample_weight=s)
            assert verdict or not twin.certificate_.holds, f"{scale:g}: {verdict}"


@pytest.mark.sampled(6)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning", "ignore::RuntimeWarning")
@pytest.mark.parametrize("what", ["X", "y", "weights"])
@pytest.mark.parametrize("name", ALL_MODELS)
def test_what_a_fit_claims_is_what_is_found_at_any_scale(name, what):
    if what == "y" and ALL_MODELS[name][1] in ("two", "three"):
        pytest.skip("classes have no unit")
    assert_claims_are_found(name, what, SCALES)


@pytest.mark.sampled(6)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("shape", [(60, 4), (40, 60)])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("l1_ratio", [0.5, 1.0])
def test_heavy_weights_under_an_l1_penalty_are_claimed_as_they_are_found(shape, n_classes, l1_ratio):
    for seed in range(2):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=shape)
        z = X[:, :4] @ [1.0, -2.0, 0.5, 0.0] + rng.normal(size=len(X))
        y = np.digitize(z, [0.0] if n_classes == 2 else [-1.0, 1.0])
        for scale in (1e6, 1e9, 1e10, 1e11, 1e12, 1e13):
            s = scale * rng.uniform(0.5, 2.0, len(X))
            model = ln.LogisticRegression(l1_ratio=l1_ratio).fit(X, y, sample_weight=s)
            verdict = ln.verify(model, X, y, sample_weight=s)
            assert bool(verdict) == model.certificate_.holds, f"{scale:g}: {verdict}"
