"""Pairs of classes: LIBSVM's layout, votes, shapes of scores."""

from itertools import combinations

import numpy as np
import pytest
import sklearn.svm
from tests.kernel.kernel_tables import rings
from tests.kernel.svm_tables import noisy

from learnable import SVC, SVR, NuSVC, NuSVR, OneClassSVM
from learnable.core.errors import DataError


def test_every_pair_is_a_machine_of_its_own():
    X, y, w = rings(160, 4)
    model = SVC(decision_function_shape="ovo", gamma=0.5, tol=1e-9).fit(X, y, w)
    scores = model.decision_function(X)
    for k, (i, j) in enumerate(combinations(range(4), 2)):
        rows = (y == i) | (y == j)
        pair = SVC(gamma=0.5, tol=1e-9).fit(X[rows], y[rows], w[rows])
        np.testing.assert_allclose(scores[:, k], -pair.decision_function(X), atol=1e-6)
    np.testing.assert_allclose(model.function_(X) + model.intercept_, scores, atol=1e-9)


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_layout_shapes_and_votes_are_libsvms(n_classes):
    X, y, _ = rings(200, n_classes)
    labels = np.array(list("edcba"))[y]
    for shape in ("ovr", "ovo"):
        ours = SVC(tol=1e-9, decision_function_shape=shape).fit(X, labels)
        theirs = sklearn.svm.SVC(tol=1e-9, decision_function_shape=shape).fit(X, labels)
        np.testing.assert_array_equal(ours.support_, theirs.support_)
        np.testing.assert_allclose(ours.dual_coef_, theirs.dual_coef_, atol=1e-4)
        np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-6)
        np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-6)
        np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
        np.testing.assert_allclose(ours.class_weight_, theirs.class_weight_)


def test_scores_of_a_linear_machine_are_its_weights():
    X, y, _ = rings(120, 3)
    model = SVC(kernel="linear", decision_function_shape="ovo").fit(X, y)
    np.testing.assert_allclose(X @ model.coef_.T + model.intercept_, model.decision_function(X), atol=1e-9)


def test_no_bound_is_claimed_where_the_dual_is_none():
    """With an indefinite kernel local optima differ, so that no gap proves anything; with a Mercer kernel it does."""
    X, y = noisy(60, 2, 0)
    assert SVC().fit(X, y).certificate_.bound is not None
    for kernel, points in (("precomputed", X @ X.T), (lambda A, B: A @ B.T, X)):
        assert SVC(kernel=kernel).fit(points, y).certificate_.bound < 1e-2
        assert SVR(kernel=kernel).fit(points, y).certificate_.bound < 1e-2
    for kernel, points in (("sigmoid", X), (lambda A, B: np.tanh(A @ B.T - 1.0), X), ("precomputed", X @ X.T - 9.0)):
        assert SVC(kernel=kernel).fit(points, y).certificate_.bound is None
        assert SVR(kernel=kernel).fit(points, y).certificate_.bound is None


@pytest.mark.parametrize("machine", [SVC, NuSVC, SVR, NuSVR, OneClassSVM], ids=lambda machine: machine.__name__)
def test_a_given_matrix_must_be_symmetric(machine):
    """Far from symmetry there is no objective, and a fit need not end."""
    X, y = noisy(300, 2, 0)
    K = np.exp(-((X[:, None] - X) ** 2).sum(axis=2))
    machine(kernel="precomputed").fit(K + 1e-9 * np.arange(300), y)  # rounding is none
    K[3, 290] += 0.01
    with pytest.raises(
        DataError, match=rf"{machine.__name__}: a precomputed kernel matrix must be symmetric.* 0\.01\."
    ):
        machine(kernel="precomputed").fit(K, y)
