"""The door of support vector machines: texts for functions, LIBSVM's rule for weights, every memory order."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.kernel.kernel_tables import curved, rings

import learnable as ln
from learnable.core.errors import DataError

WORDS = ["red", "green", "blue", "round", "flat"]


def counts(texts):
    return np.array([[text.split().count(word) for word in WORDS] for text in texts], dtype=float)


def word_kernel(A, B):
    """Return inner products of the counts of words."""
    assert isinstance(A[0], str)
    return counts(A) @ counts(B).T


def texts(n=30, seed=0):
    rng = np.random.default_rng(seed)
    return [" ".join(rng.choice(WORDS, size=4)) for _ in range(n)]


MACHINES = [ln.SVC(), ln.NuSVC(nu=0.2), ln.SVR(), ln.NuSVR(), ln.OneClassSVM()]


def answers(model, X):
    return model.decision_function(X) if hasattr(model, "decision_function") else model.predict(X)


@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: type(machine).__name__)
@pytest.mark.parametrize("as_rows", [list, lambda rows: np.array(rows, dtype=object), np.array])
def test_a_function_may_compare_texts(machine, as_rows):
    rows = texts()
    y = (counts(rows)[:, 0] > 0).astype(int)
    machine = machine.__class__(kernel=word_kernel).fit(as_rows(rows), y)
    other = machine.__class__(**machine.get_params()).set_params(kernel="precomputed").fit(word_kernel(rows, rows), y)
    new = texts(seed=1)
    np.testing.assert_allclose(answers(machine, as_rows(new)), answers(other, word_kernel(new, rows)), atol=1e-12)
    assert machine.support_vectors_.shape == (0, 0) and ln.verify(machine, as_rows(rows), y)
    with pytest.raises(DataError, match="matrix of shape"):
        machine.__class__(kernel=lambda A, B: np.ones((1, 1))).fit(as_rows(rows), y)


@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: type(machine).__name__)
def test_rows_of_negative_weight_are_left_out(machine):
    X, y, w = curved(50)
    y = np.where(y > np.median(y), 1.0, 0.0)
    negative = np.where(np.arange(50) % 7 == 0, -w, w)
    machine = machine.__class__()
    found = machine.fit(X, y, negative).support_.copy(), answers(machine, X), ln.verify(machine, X, y, negative)
    assert found[2]
    expected = machine.fit(X, y, np.maximum(negative, 0.0))
    np.testing.assert_array_equal(found[0], expected.support_)
    np.testing.assert_array_equal(found[1], answers(expected, X))
    with pytest.raises(DataError, match="all samples have zero or negative weights"):
        machine.fit(X, y, np.minimum(negative, 0.0))


@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: type(machine).__name__)
@given(st.integers(0, 10_000), st.sampled_from(["linear", "poly", "rbf"]))
@settings(deadline=None, max_examples=8)
def test_layout_and_type_of_the_rows_do_not_matter(machine, seed, kernel):
    """Bits are the same for C and Fortran order, strides, float32 numbers in float64, and sparse rows."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, 3)).astype(np.float32).astype(np.float64)
    X[rng.random(X.shape) < 0.3] = 0.0
    y = X[:, 0] ** 2 + rng.normal(size=60)
    y = y if "SVR" in type(machine).__name__ else (y > np.median(y)).astype(int)
    nu = {"nu": 0.95} if isinstance(machine, ln.NuSVC) else {}
    machine = machine.__class__(kernel=kernel, **nu)
    expected = machine.fit(X, y).dual_coef_
    wide = np.zeros((60, 6))
    wide[:, ::2] = X
    for rows in (np.asfortranarray(X), wide[:, ::2], X.astype(np.float32), sp.csr_array(X), sp.csc_array(X)):
        found = machine.fit(rows, y).dual_coef_
        found = found.toarray() if sp.issparse(found) else found
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: type(machine).__name__)
def test_streams_are_refused_with_the_machines_name(machine, tmp_path):
    import dask.array as da

    X, y, _ = rings(40, 2)
    machine = machine.__class__()
    with pytest.raises(DataError, match=f"{type(machine).__name__}: a kernel machine needs its rows in memory"):
        machine.fit(da.from_array(X, chunks=10), da.from_array(y, chunks=10))


def test_class_weight_zero_and_no_steps():
    X, y, _ = rings(60, 3)
    for weight in ({0: 0.0}, {0: 0.0, 1: 2.0}):
        model = ln.SVC(class_weight=weight, tol=1e-6).fit(X, y)
        alone = ln.SVC(class_weight={1: weight.get(1, 1.0)}, tol=1e-6, gamma=model.gamma_).fit(X[y > 0], y[y > 0])
        np.testing.assert_array_equal(model.predict(X), alone.predict(X))
        assert model.class_weight_[0] == 0.0 and ln.verify(model, X, y)
    for machine in MACHINES:
        with pytest.warns(match=r"Solver terminated early \(max_iter=0\)"):
            found = machine.__class__(max_iter=0).fit(X[y < 2], y[y < 2] % 2)
        assert np.sum(found.n_iter_) == 0


@given(st.integers(0, 10_000), st.sampled_from([0.0, 0.1]))
@settings(deadline=None, max_examples=10)
def test_an_infinite_cost_is_a_large_one(seed, epsilon):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(40, 6)), rng.normal(size=40)
    hard = ln.SVR(C=np.inf, epsilon=epsilon, tol=1e-7).fit(X, y)
    large = ln.SVR(C=1e10, epsilon=epsilon, tol=1e-7).fit(X, y)
    np.testing.assert_allclose(hard.predict(X), large.predict(X), rtol=1e-6, atol=1e-6)
    assert np.abs(hard.predict(X) - y).max() <= epsilon + 1e-6
    assert ln.verify(hard, X, y)


def test_an_infinite_cost_without_solution_is_refused():
    with pytest.raises(DataError, match="every row lies in the tube"):
        ln.SVR(C=np.inf, kernel="linear").fit([[0.0], [0.0], [1.0], [2.0]], [0.0, 5.0, 1.0, 2.0])


def test_a_column_of_targets_warns_and_works():
    X, y, _ = rings(40, 2)
    for machine in (ln.SVC(), ln.NuSVC(nu=0.2), ln.SVR(), ln.NuSVR()):
        with pytest.warns(match="column-vector"):
            found = machine.fit(X, y[:, None])
        np.testing.assert_array_equal(found.predict(X), machine.__class__(**machine.get_params()).fit(X, y).predict(X))
