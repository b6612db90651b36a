"""Every kernel machine on tables that are hard: rows twice, constant columns, one row, one class, extreme costs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone, is_classifier

from learnable import verify
from learnable.core.errors import DataError
from learnable.kernel import (
    SVC,
    SVR,
    GaussianProcessClassifier,
    GaussianProcessRegressor,
    KernelLogisticRegression,
    KernelRidge,
    KernelRidgeClassifier,
    NuSVC,
    NuSVR,
)
from learnable.risk.kernels import Constant, Gaussian, Linear, Matern, Periodic, RationalQuadratic

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 2))
TARGET = np.sin(2 * X[:, 0]) + 0.3 * RNG.normal(size=40)
LABELS = np.where(X[:, 1] + RNG.normal(size=40) > 0, "a", "b")
NEW = RNG.normal(size=(10, 2))
#: The Gaussian kernel of a fixed width, so that rows and columns more change nothing else.
WEIGHTED = {
    "SVC": SVC(gamma=0.5, tol=1e-8),
    "SVC, primal": SVC(gamma=0.5, tol=1e-8, solver="primal"),
    "NuSVC": NuSVC(nu=0.3, gamma=0.5, tol=1e-8),
    "SVR": SVR(gamma=0.5, tol=1e-8),
    "NuSVR": NuSVR(gamma=0.5, tol=1e-8),
    "ridge": KernelRidge(alpha=0.1, kernel="rbf", gamma=0.5),
    "ridge, classes": KernelRidgeClassifier(alpha=0.1, kernel="rbf", gamma=0.5),
    "logistic": KernelLogisticRegression(gamma=0.5, tol=1e-10),
}
MODELS = WEIGHTED | {
    "process": GaussianProcessRegressor(Gaussian(1.0), alpha=0.1, optimizer=None),
    "process, classes": GaussianProcessClassifier(Gaussian(1.0), optimizer=None),
}


def answers(model, points):
    """Return what the model says of points, as numbers."""
    for ask in ("predict_proba", "decision_function"):
        if is_classifier(model) and hasattr(model, ask):
            return getattr(model, ask)(points)
    return model.predict(points)


def y_of(model):
    return LABELS if is_classifier(model) else TARGET


@pytest.mark.parametrize("name", WEIGHTED)
def test_a_table_twice_is_a_table_of_weight_two(name):
    model, y = WEIGHTED[name], y_of(WEIGHTED[name])
    twice = clone(model).fit(np.vstack([X, X]), np.concatenate([y, y]))
    heavy = clone(model).fit(X, y, np.full(40, 2.0))
    expected = answers(heavy, NEW)
    np.testing.assert_allclose(answers(twice, NEW), expected, atol=1e-5 * max(1.0, np.abs(expected).max()))


@pytest.mark.threaded
def test_a_process_that_sees_rows_twice_with_twice_the_noise_knows_as_much():
    once = GaussianProcessRegressor(Gaussian(1.0), alpha=0.1, optimizer=None).fit(X, TARGET)
    twice = GaussianProcessRegressor(Gaussian(1.0), alpha=0.2, optimizer=None)
    twice.fit(np.vstack([X, X]), np.concatenate([TARGET, TARGET]))
    for a, b in zip(once.predict(NEW, return_std=True), twice.predict(NEW, return_std=True), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-10)


@pytest.mark.threaded
@pytest.mark.parametrize("name", MODELS)
def test_constant_columns_say_nothing(name):
    model, y = MODELS[name], y_of(MODELS[name])
    plain = clone(model).fit(X, y)
    wide = clone(model).fit(np.column_stack([X, np.full(40, 7.0)]), y)
    found = answers(wide, np.column_stack([NEW, np.full(10, 7.0)]))
    np.testing.assert_allclose(found, answers(plain, NEW), atol=1e-6)


@pytest.mark.threaded
@pytest.mark.parametrize("name", [name for name in MODELS if name != "NuSVC"])
@pytest.mark.parametrize("width", [1e-12, 1e-2, 1e12])
def test_kernels_that_are_singular_or_the_identity(name, width):
    """All rows alike, or all of them strangers; alike, they have no margin for NuSVC, which says so."""
    model, y = clone(MODELS[name]), y_of(MODELS[name])
    model.set_params(**({"kernel": Gaussian(width)} if "process" in name else {"gamma": 0.5 / width**2}))
    model.fit(X, y)
    assert model.certificate_.holds and verify(model, X, y)
    assert np.isfinite(answers(model, np.vstack([X, NEW]))).all()


def test_rows_that_are_all_alike_leave_nu_svc_no_margin():
    with pytest.raises(DataError, match="margin of this kernel is zero"):
        NuSVC(nu=0.3, gamma=1e-24).fit(X, LABELS)


@pytest.mark.parametrize("name", ["SVC", "SVR", "logistic"])
@pytest.mark.parametrize("C", [1e-12, 1e12])
def test_extreme_costs(name, C):
    model, y = clone(MODELS[name]).set_params(C=C, tol=1e-4), y_of(MODELS[name])[:15]
    model.fit(X[:15], y)
    assert model.certificate_.holds and verify(model, X[:15], y)
    assert np.isfinite(answers(model, NEW)).all()


@pytest.mark.threaded
@pytest.mark.parametrize("name", MODELS)
def test_one_row(name):
    model = clone(MODELS[name])
    if is_classifier(model):
        with pytest.raises(DataError, match="class"):
            model.fit(X[:1], LABELS[:1])
    else:
        low, high = sorted([0.0, TARGET[0]])
        assert low - 1e-9 <= model.fit(X[:1], TARGET[:1]).predict(X[:1])[0] <= high + 1e-9


@pytest.mark.threaded
@pytest.mark.parametrize("name", [name for name, model in MODELS.items() if is_classifier(model)])
def test_one_class(name):
    with pytest.raises(DataError, match="class"):
        clone(MODELS[name]).fit(X, np.full(40, "a"))


KERNELS = (Gaussian(1.0), Gaussian(30.0), Matern(0.5, 1.5), RationalQuadratic(1.0, 0.5), Periodic(1.0, 2.0), Linear())


@pytest.mark.threaded
@settings(max_examples=30)
@given(
    st.lists(st.sampled_from(KERNELS), min_size=2, max_size=2),
    st.booleans(),
    st.sampled_from([1e-10, 1e-3, 1.0]),
    st.integers(0, 1000),
)
def test_data_never_make_a_process_less_certain(parts, product, alpha, seed):
    """0 ≤ variance ≤ the prior's, for sums and products of kernels, where points repeat and where they are new."""
    rng = np.random.default_rng(seed)
    kernel = (parts[0] * parts[1] if product else parts[0] + parts[1]) + Constant(0.1)
    rows = rng.normal(size=(15, 2))
    rows[7:10] = rows[0]
    points = np.vstack([rows, rng.normal(size=(10, 2))])
    model = GaussianProcessRegressor(kernel, alpha=alpha, optimizer=None).fit(rows, rng.normal(size=15))
    variance = model.predict(points, return_std=True)[1] ** 2
    prior = np.diag(kernel(points))
    assert (variance >= 0.0).all() and (variance <= prior * (1 + 1e-9)).all()
