"""Non-negative factors: conditions of optimality, exact tables, scikit-learn, starts, penalties, the checker."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import nnls
from sklearn import decomposition
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from tests.oracles.scaling import coordinate_sweep

from learnable import load, save, verify
from learnable.core.errors import DataError, ParameterError
from learnable.manifold import NMF
from learnable.manifold._kernels import descend_rows

RNG = np.random.default_rng(0)
X = RNG.gamma(1.0, size=(60, 4)) @ RNG.gamma(0.5, size=(4, 9)) + 0.1 * RNG.random((60, 9))


def objective(model, W, Z=X):
    """Return the objective as the docstring states it."""
    H = model.components_
    n, d = Z.shape
    of_h = model.alpha_W if model.alpha_H == "same" else model.alpha_H
    r = model.l1_ratio
    penalties = [a * (r * F.sum() + 0.5 * (1 - r) * (F**2).sum()) for a, F in ((model.alpha_W * d, W), (of_h * n, H))]
    return 0.5 * ((Z - W @ H) ** 2).sum() + sum(penalties)


@given(st.integers(1, 5), st.integers(1, 6), st.integers(0, 10**6))
def test_a_sweep_is_that_of_the_definition(k, m, seed):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(k + 1, k))
    gram, cross, W = A.T @ A, rng.normal(size=(m, k)), np.abs(rng.normal(size=(m, k)))
    expected = coordinate_sweep(W, gram, cross)
    moves = np.empty(m)
    descend_rows(W, gram, cross, 1, 0.0, moves)
    np.testing.assert_allclose(W, expected, atol=1e-12)


@pytest.mark.parametrize(
    "penalty", [{}, {"alpha_W": 0.01, "l1_ratio": 0.5}, {"alpha_W": 0.02, "alpha_H": 0.03}], ids=str
)
def test_the_conditions_of_optimality_hold(penalty):
    model = NMF(3, tol=1e-7, max_iter=5000, random_state=0, **penalty)
    W = model.fit_transform(X)
    H = model.components_
    a, b, c, e = model.penalties_
    for F, gradient in ((W, (W @ H - X) @ H.T + a + b * W), (H, W.T @ (W @ H - X) + c + e * H)):
        assert (F >= 0).all()
        assert np.abs(np.minimum(F, gradient)).max() < 1e-4 * np.abs(X).max()
    np.testing.assert_allclose(model.transform(X), W, atol=1e-6)
    assert model.certificate_.kind == "stationarity"
    assert model.certificate_.holds
    assert verify(model, X)
    assert not verify(model, X + 0.1)


def test_rows_are_solved_given_the_parts():
    model = NMF(3, random_state=0).fit(X)
    expected = np.stack([nnls(model.components_.T, row)[0] for row in X])
    np.testing.assert_allclose(model.transform(X), expected, atol=1e-6)
    np.testing.assert_allclose(model.inverse_transform(expected), expected @ model.components_)
    assert model.reconstruction_err_ == pytest.approx(np.linalg.norm(X - expected @ model.components_))


@settings(max_examples=10)
@given(st.integers(0, 10**6))
def test_no_round_raises_the_objective(seed):
    Z = np.random.default_rng(seed).random((12, 6))
    reached = []
    for rounds in (1, 2, 4, 8, 16):
        model = NMF(2, max_iter=rounds, tol=1e-12, init="nndsvda")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            reached.append(objective(model, model.fit_transform(Z), Z))
    assert (np.diff(reached) <= 1e-10).all()


@pytest.mark.parametrize("init", [None, "random", "nndsvd", "nndsvda", "nndsvdar"])
def test_every_start_is_near_scikit_learns_error(init):
    ours = NMF(4, init=init, random_state=0, max_iter=2000).fit(X)
    theirs = decomposition.NMF(4, init=init, random_state=0, max_iter=2000).fit(X)
    assert ours.reconstruction_err_ <= 1.1 * theirs.reconstruction_err_
    assert verify(ours, X)


def test_a_table_with_exact_parts_is_recovered():
    parts = np.array([[1.0, 2.0, 0.0, 0.0, 0.0], [0.0, 0.0, 3.0, 1.0, 0.0], [0.0, 0.0, 0.0, 0.0, 2.0]])
    Z = RNG.gamma(0.5, size=(40, 3)) @ parts
    model = NMF(3, max_iter=2000, tol=1e-8).fit(Z)
    assert model.reconstruction_err_ < 1e-5 * np.linalg.norm(Z)
    found = model.components_ / np.linalg.norm(model.components_, axis=1, keepdims=True)
    wanted = parts / np.linalg.norm(parts, axis=1, keepdims=True)
    np.testing.assert_allclose((found @ wanted.T).max(axis=0), 1.0, atol=1e-3)


def test_sparse_rows_threads_files_and_given_starts(tmp_path):
    Z = load_digits().data[:700]
    dense = NMF(5, random_state=0, n_jobs=1).fit(Z)
    two = NMF(5, random_state=0, n_jobs=2).fit(Z)
    assert dense.components_.tobytes() == two.components_.tobytes()
    sparse = NMF(5, random_state=0).fit(sp.csr_array(Z))
    np.testing.assert_allclose(sparse.reconstruction_err_, dense.reconstruction_err_, rtol=1e-6)
    save(dense, tmp_path / "nmf.safetensors")
    assert load(tmp_path / "nmf.safetensors").transform(Z[:9]).tobytes() == dense.transform(Z[:9]).tobytes()
    W, H = np.ones((60, 2)), RNG.random((2, 9))
    assert NMF(init="custom").fit(X, W=W, H=H).components_.shape == (2, 9)
    with pytest.warns(RuntimeWarning, match="not used"):
        NMF(2).fit_transform(X, H=H)


@pytest.mark.parametrize(
    ("model", "table", "match"),
    [
        (NMF(2), -X, "Negative values"),
        (NMF(20, init="nndsvd"), X, "n_components <= min"),
        (NMF(2, init="custom"), X, "both W and H"),
        (NMF(2, solver="mu"), X, "solver must be"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_bad_input_is_refused_in_words(model, table, match):
    with pytest.raises((DataError, ParameterError), match=match):
        model.fit(table)


def test_zeros_constant_columns_and_many_parts_end_well():
    zero = NMF(2).fit(np.zeros((5, 3)))
    assert zero.reconstruction_err_ == 0.0
    Z = np.column_stack([X, np.zeros(60), np.ones(60)])
    assert verify(NMF(3, random_state=0, max_iter=1000).fit(Z), Z)
    many = NMF(12, random_state=0, max_iter=1000).fit(X)
    assert many.reconstruction_err_ < 0.2 * np.linalg.norm(X)
