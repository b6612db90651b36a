"""Nearest points of two hulls: geometry on paper, and the hard margin."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.kernel.svm_tables import noisy, separable

from learnable.core.errors import DataError, ParameterError
from learnable.kernel import SVC, nearest_points
from learnable.kernel.svm import hulls


def test_a_triangle_and_a_point_on_paper():
    """The nearest point to (3, 3) in the triangle (0, 0), (2, 0), (0, 2) is (1, 1)."""
    found = nearest_points([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0], [3.0, 3.0]], [0, 0, 0, 1])
    assert found.distance == pytest.approx(np.sqrt(8.0))
    assert found.lower_bound == pytest.approx(found.distance)
    assert found.points[0] == pytest.approx([1.0, 1.0]) and found.points[1] == pytest.approx([3.0, 3.0])
    assert found.weights == pytest.approx([0.0, -0.5, -0.5, 1.0], abs=1e-12)
    assert found.margin == pytest.approx(np.sqrt(2.0)) and not found.touch


@settings(max_examples=15)
@given(st.integers(0, 1000), st.sampled_from(["linear", "rbf"]))
def test_the_hard_margin_is_half_the_distance(seed, kernel):
    X, y = separable(30, 2, seed)
    found = nearest_points(X, y, kernel, gamma=0.5)
    model = SVC(C=np.inf, kernel=kernel, gamma=0.5, tol=1e-7).fit(X, y)
    report = model.kkt_report(X, y)
    assert report.margin_width / 2 == pytest.approx(found.margin, rel=1e-6)
    assert model.intercept_[0] == pytest.approx(found.intercept, rel=1e-4, abs=1e-4)


@settings(max_examples=15)
@given(st.integers(0, 1000))
def test_weights_are_convex_and_no_points_are_nearer(seed):
    X, y = separable(25, 3, seed)
    found, rng = nearest_points(X, y), np.random.default_rng(seed)
    for label in (-1.0, 1.0):
        assert (label * found.weights[y == label] >= 0).all()
        assert found.weights[y == label].sum() == pytest.approx(label, rel=1e-12)
    for _ in range(20):
        u, v = rng.dirichlet(np.full((y > 0).sum(), 0.2)), rng.dirichlet(np.full((y < 0).sum(), 0.2))
        assert np.linalg.norm(u @ X[y > 0] - v @ X[y < 0]) >= found.lower_bound * (1 - 1e-12)
    assert found.lower_bound <= found.distance * (1 + 1e-12)


def test_many_rows_by_decomposition_are_the_same(monkeypatch):
    X, y = separable(80, 3)
    whole = nearest_points(X, y, "rbf", gamma=0.1)
    monkeypatch.setattr(hulls, "_SMALL", 10)
    parts = nearest_points(X, y, "rbf", gamma=0.1)
    assert parts.certificate.holds
    assert parts.distance == pytest.approx(whole.distance, rel=1e-6)


@pytest.mark.threaded
def test_threads_change_nothing(monkeypatch):
    monkeypatch.setattr(hulls, "_SMALL", 10)
    X, y = separable(200, 3)
    one, two = (nearest_points(X, y, "rbf", gamma=0.3, n_jobs=n) for n in (1, 2))
    assert one.weights.tobytes() == two.weights.tobytes() and one.distance == two.distance


def test_hulls_that_overlap_touch():
    X, y = noisy(80, 2)
    found = nearest_points(X, y)
    assert found.touch and found.distance == 0.0 and found.lower_bound == 0.0
    with pytest.raises(DataError, match="not separable"):
        SVC(C=np.inf, kernel="linear").fit(X, y)


@pytest.mark.parametrize("n", [300, 1300])
def test_overlapping_hulls_in_a_space_of_low_rank_have_a_point_in_common(n):
    """A polynomial of degree 2 in two columns spans 6 dimensions; the Gaussian kernel, to rounding, few more."""
    X, y = noisy(n, 2)
    for kernel, gamma in (("poly", 1.0), ("rbf", 0.02)):
        found = nearest_points(X, y, kernel, gamma=gamma, degree=2, coef0=1.0)
        assert found.touch and found.certificate.holds and found.certificate.bound <= 1e-6
        for label in (-1.0, 1.0):
            assert (label * found.weights[y == label] >= 0).all()
            assert found.weights[y == label].sum() == pytest.approx(label, rel=1e-9)


def test_far_from_zero_nothing_is_lost():
    X, y = separable(40, 3)
    near, far = nearest_points(X, y), nearest_points(X + 1e6, y)
    assert far.distance == pytest.approx(near.distance, rel=1e-6) and far.certificate.holds
    plane = 2.0 * (far.points[1] - far.points[0]) / far.distance**2
    assert (far.points[1] @ plane + far.intercept) == pytest.approx(1.0, abs=1e-3)
    assert (far.points[0] @ plane + far.intercept) == pytest.approx(-1.0, abs=1e-3)


def test_reduced_hulls_come_apart():
    """With equal weights forced, the hulls are the two means."""
    X, y = noisy(40, 2, 3)
    X, y = np.concatenate([X[y > 0][:10], X[y < 0][:10]]), np.repeat([1, 0], 10)
    found = nearest_points(X, y, largest=0.1)
    assert found.distance == pytest.approx(np.linalg.norm(X[:10].mean(0) - X[10:].mean(0)), rel=1e-9)
    sizes = [nearest_points(X, y, largest=largest).distance for largest in (0.1, 0.15, 0.2, 0.5, 1.0)]
    assert all(a >= b - 1e-12 for a, b in pairwise(sizes))


def test_sparse_rows_and_one_row_each():
    X, y = separable(30)
    assert nearest_points(sp.csr_array(X), y).distance == pytest.approx(nearest_points(X, y).distance, rel=1e-9)
    assert nearest_points([[0.0], [3.0]], ["a", "b"]).distance == pytest.approx(3.0)


def test_bad_calls():
    with pytest.raises(DataError, match="two classes"):
        nearest_points([[0.0], [1.0]], [0, 0])
    with pytest.raises(DataError, match="one label per row"):
        nearest_points([[0.0], [1.0]], [0, 1, 0])
    with pytest.raises(ParameterError, match="largest"):
        nearest_points([[0.0], [1.0]], [0, 1], largest=0.0)
    with pytest.raises(DataError, match="at least 1/1"):
        nearest_points([[0.0], [1.0]], [0, 1], largest=0.5)
    with pytest.raises(DataError, match="finite"):
        nearest_points([[0.0], [np.nan]], [0, 1])
