"""L1 and elastic net logistic regression: a general solver, scikit-learn's solvers, working sets, verification."""

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.linear_model as sk
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.linear.sparse_tables import sparse_tables
from tests.oracles.sparse import centred, logistic_optimum

from learnable import LogisticRegression, PolynomialFeatures, verify
from learnable.core.errors import ParameterError

RNG = np.random.default_rng(8)
X = RNG.standard_normal((200, 12)) + RNG.standard_normal(12)
TWO = (X[:, 0] - X[:, 1] + RNG.logistic(size=200) > 0.3).astype(int)
THREE = np.digitize(X[:, 0] + RNG.logistic(size=200), [-0.5, 0.8])
WEIGHT = RNG.integers(0, 3, 200).astype(float)


def objective(model, X, codes, weight, constant=None):
    z = X @ model.coef_.T + model.intercept_
    z = np.column_stack([0 * z[:, 0], z]) if z.shape[1] == 1 else z
    loss = np.log(np.exp(z - z.max(axis=1, keepdims=True)).sum(axis=1)) + z.max(axis=1) - z[np.arange(len(z)), codes]
    w = model.coef_.ravel() if constant is None else np.r_[model.coef_.ravel(), model.intercept_ / constant]
    ratio = model.l1_ratio
    return model.C * weight @ loss + ratio * np.abs(w).sum() + 0.5 * (1 - ratio) * w @ w


@pytest.mark.parametrize("l1_ratio", [1.0, 0.5])
@pytest.mark.parametrize("codes", [TWO, THREE], ids=["two", "three"])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("sparse", [False, True])
def test_the_certificate_is_confirmed_by_a_general_solver(l1_ratio, codes, intercept, sparse):
    T = sp.csr_array(X) if sparse else X
    model = LogisticRegression(C=0.1, l1_ratio=l1_ratio, fit_intercept=intercept).fit(T, codes, WEIGHT)
    kept = WEIGHT > 0
    optimum = logistic_optimum(
        X[kept], codes[kept], len(model.classes_), 0.1, l1_ratio, 1 - l1_ratio, WEIGHT[kept], intercept
    )
    excess = objective(model, X, codes, WEIGHT) / optimum - 1
    assert -1e-8 <= excess <= model.certificate_.bound + 1e-8
    assert model.certificate_.holds and verify(model, T, codes, WEIGHT)
    model.coef_ = model.coef_ * 1.001
    assert not verify(model, T, codes, WEIGHT)


@pytest.mark.parametrize("l1_ratio", [0.0, 1.0])
@pytest.mark.parametrize("scaling", [1.0, 5.0])
@pytest.mark.parametrize("sparse", [False, True])
def test_liblinear_penalises_its_intercept(l1_ratio, scaling, sparse):
    T = sp.csr_array(X) if sparse else X
    options = {"C": 0.2, "l1_ratio": l1_ratio, "solver": "liblinear", "intercept_scaling": scaling}
    ours = LogisticRegression(**options).fit(T, TWO)
    theirs = sk.LogisticRegression(**options, tol=1e-8, max_iter=10_000).fit(T, TWO)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-3)
    ours_at, theirs_at = (objective(model, X, TWO, np.ones(200), scaling) for model in (ours, theirs))
    assert ours_at <= theirs_at * (1 + 1e-6)
    assert verify(ours, T, TWO)


def test_all_coefficients_are_zero_at_the_smallest_c_and_not_above():
    centred = X - X.mean(axis=0)
    smallest = 1 / np.abs(centred.T @ (TWO - TWO.mean())).max()
    assert not LogisticRegression(C=smallest * (1 - 1e-9), l1_ratio=1.0).fit(X, TWO).coef_.any()
    assert LogisticRegression(C=smallest * 1.01, l1_ratio=1.0).fit(X, TWO).coef_.any()


def test_working_sets_find_the_same_optimum():
    wide = RNG.standard_normal((150, 2500))
    y = (wide[:, :3].sum(axis=1) + RNG.logistic(size=150) > 0).astype(int)
    model = LogisticRegression(C=0.3, l1_ratio=1.0).fit(wide, y)
    assert model.certificate_.holds and verify(model, wide, y)
    theirs = sk.LogisticRegression(C=0.3, l1_ratio=1.0, solver="saga", tol=1e-3, max_iter=200).fit(wide, y)
    assert objective(model, wide, y, np.ones(150)) <= objective(theirs, wide, y, np.ones(150)) * (1 + 1e-6)
    again = LogisticRegression(C=0.3, l1_ratio=1.0).fit(sp.csr_array(wide), y)
    np.testing.assert_allclose(again.coef_, model.coef_, atol=1e-4)


@pytest.mark.parametrize("solver", ["lbfgs", "newton-cg", "newton-cholesky", "sag", "saga"])
def test_every_name_of_a_solver_leads_to_the_one_optimum(solver):
    expected = LogisticRegression(C=0.1, l1_ratio=1.0).fit(X, TWO).coef_
    np.testing.assert_allclose(LogisticRegression(C=0.1, l1_ratio=1.0, solver=solver).fit(X, TWO).coef_, expected)


def test_a_warm_start_at_the_optimum_does_not_move():
    model = LogisticRegression(C=0.1, l1_ratio=1.0, warm_start=True).fit(X, TWO)
    first = model.coef_.copy()
    assert model.fit(X, TWO).certificate_.n_iter == 0
    np.testing.assert_allclose(model.coef_, first, atol=1e-14)


def test_liblinear_takes_two_classes():
    with pytest.raises(ParameterError, match="does not support multiclass"):
        LogisticRegression(solver="liblinear").fit(X, THREE)


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
def test_any_scale_of_the_columns(scale):
    model = LogisticRegression(C=0.1 / scale, l1_ratio=1.0).fit(X * scale, TWO)
    expected = LogisticRegression(C=0.1, l1_ratio=1.0).fit(X, TWO).coef_
    assert model.certificate_.holds and verify(model, X * scale, TWO)
    if scale == 1.0:
        np.testing.assert_allclose(model.coef_, expected)


@given(
    sparse_tables(n_classes=2),
    sparse_tables(n_classes=3),
    st.floats(1.0, 1e3),
    st.sampled_from([1.0, 0.5]),
    st.booleans(),
)
@settings(max_examples=40, deadline=None)
def test_nothing_breaks_and_every_certificate_is_verified(two, three, factor, l1_ratio, intercept):
    """C is a multiple of the smallest at which a coefficient may differ from zero."""
    for n_classes, (T, y, weight, dense) in ((2, two), (3, three)):
        A, R = centred(dense, np.eye(n_classes)[y] - 1 / n_classes, weight, intercept)
        C = factor * l1_ratio / np.abs(A.T @ R).max()
        model = LogisticRegression(C=C, l1_ratio=l1_ratio, fit_intercept=intercept, max_iter=1000).fit(T, y, weight)
        assert model.certificate_.holds
        assert verify(model, T, y, weight), str(verify(model, T, y, weight))


def hard_tables():
    rng = np.random.default_rng(2)
    T = rng.standard_normal((600, 30))
    for j in range(1, 30):
        T[:, j] = 0.9 * T[:, j - 1] + np.sqrt(0.19) * T[:, j]
    z = T[:, :5] @ rng.standard_normal((5, 3))
    two, three = (z[:, 0] + rng.logistic(size=600) > 0).astype(int), (z + rng.gumbel(size=(600, 3))).argmax(axis=1)
    counts = sp.random_array((400, 900), density=0.02, rng=rng, format="csr")
    signal = counts[:, :20].sum(axis=1) - counts[:, 20:40].sum(axis=1)
    words, topics = (signal + 0.2 * rng.logistic(size=400) > 0).astype(int), np.digitize(signal, [-0.2, 0.2])
    return {
        "correlated": (T, two), "correlated, three classes": (T, three),
        "unscaled": (T * 10.0 ** rng.uniform(-4, 4, 30), two), "unscaled, three classes": (T * 1e3, three),
        "far from zero": (T + 1e3 * rng.standard_normal(30), two),
        "sparse": (counts, words), "sparse, three classes": (counts, topics),
        "separable": (T[:60], (T[:60, 0] > 0).astype(int)),
        "duplicated": (np.hstack([T[:, :4], T[:, :4], np.ones((600, 1))]), three),
    }  # fmt: skip


HARD = hard_tables()


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", HARD)
@pytest.mark.parametrize("C", [0.1, 10.0, 1e3])
@pytest.mark.parametrize("l1_ratio", [1.0, 0.5, 0.01])
def test_hard_problems_reach_the_tolerance_within_the_default_iterations(name, C, l1_ratio):
    T, y = HARD[name]
    model = LogisticRegression(C=C, l1_ratio=l1_ratio).fit(T, y)
    assert model.certificate_.holds, str(model.certificate_)
    assert verify(model, T, y), str(verify(model, T, y))


@pytest.mark.threaded
def test_the_number_of_threads_does_not_change_a_bit():
    for name in ("sparse", "sparse, three classes", "correlated"):
        T, y = HARD[name]
        one, two = (LogisticRegression(C=5.0, l1_ratio=1.0, n_jobs=n).fit(T, y) for n in (1, 2))
        assert (one.coef_ == two.coef_).all() and (one.intercept_ == two.intercept_).all()


def test_softmax_on_unscaled_collinear_columns_converges(reference_data):
    """Squares and products of raw measurements: without steps on the support the gap is 22 after 100 Newton steps."""
    table = np.genfromtxt(reference_data / "wine_quality.csv", delimiter=",", skip_header=1)[::3, 1:]
    Z = PolynomialFeatures(2, include_bias=False).fit_transform(table[:, :11])
    y = np.clip(table[:, 11], 4, 7).astype(int)
    model = LogisticRegression(l1_ratio=1.0).fit(Z, y)
    assert model.certificate_.holds
    assert verify(model, Z, y).ok
