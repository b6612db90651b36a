"""Locally linear embedding: its weights, affine maps, scikit-learn, the swiss roll, new rows, the checker."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial import procrustes
from sklearn import manifold
from sklearn.datasets import make_swiss_roll
from sklearn.exceptions import ConvergenceWarning

from learnable import load, save, verify
from learnable.core.errors import DataError, ParameterError
from learnable.manifold import LocallyLinearEmbedding
from learnable.manifold.locally_linear import mixture_weights

ROLL, POSITION = make_swiss_roll(350, random_state=0)


@given(st.integers(4, 8), st.integers(0, 10**6))
def test_weights_sum_to_one_and_reproduce_affine_maps(k, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(k, 3))
    q = rng.dirichlet(np.ones(k), 1) @ X  # within the span of its neighbours
    w = mixture_weights(q, X, np.arange(k)[None], 0.0)
    assert w.sum() == pytest.approx(1.0, abs=1e-12)
    A, b = rng.normal(size=(3, 2)), rng.normal(size=2)
    if k > 4:
        np.testing.assert_allclose(w @ (X @ A + b), q @ A + b, atol=1e-4)


@pytest.mark.parametrize(
    ("method", "named"), [("standard", "standard"), ("ltsa", "ltsa"), ("ltsa", "hessian"), ("modified", "modified")]
)
def test_scikit_learn_has_the_same_coordinates(method, named):
    # What scikit-learn calls Hessian takes all of Q, not the columns of second derivatives alone: that is LTSA.
    settings = {"n_neighbors": 9, "n_components": 2, "method": method, "eigen_solver": "dense"}
    theirs = manifold.LocallyLinearEmbedding(**settings | {"method": named}).fit(ROLL)
    ours = LocallyLinearEmbedding(**settings).fit(ROLL)
    assert ours.reconstruction_error_ == pytest.approx(theirs.reconstruction_error_, rel=1e-4, abs=1e-12)
    assert procrustes(ours.embedding_, theirs.embedding_)[2] < 1e-6
    assert verify(ours, ROLL)
    sparse = LocallyLinearEmbedding(**settings | {"eigen_solver": "arpack"}).fit(ROLL)
    np.testing.assert_allclose(sparse.eigenvalues_, ours.eigenvalues_, atol=1e-12)


def test_flat_data_are_recovered_up_to_an_affine_map():
    rng = np.random.default_rng(0)
    plane = rng.uniform(size=(200, 2))
    X = plane @ rng.normal(size=(2, 5))
    for method in ("ltsa", "hessian", "modified"):
        Y = LocallyLinearEmbedding(n_neighbors=10, method=method, reg=1e-10).fit(X).embedding_
        design = np.column_stack([np.ones(200), Y])
        left = plane - design @ np.linalg.lstsq(design, plane, rcond=None)[0]
        assert np.abs(left).max() < 1e-5


def test_the_order_along_the_roll_is_found():
    Z, position = make_swiss_roll(900, random_state=1)
    model = LocallyLinearEmbedding(n_neighbors=12, method="ltsa").fit(Z)
    design = np.column_stack([np.ones(900), model.embedding_])
    fit = design @ np.linalg.lstsq(design, position, rcond=None)[0]
    assert np.corrcoef(np.argsort(np.argsort(fit)), np.argsort(np.argsort(position)))[0, 1] > 0.99


def test_rows_of_the_fit_keep_their_coordinates_and_new_ones_are_scikit_learns():
    model = LocallyLinearEmbedding(n_neighbors=8).fit(ROLL)
    np.testing.assert_allclose(model.transform(ROLL), model.embedding_, atol=1e-12)
    theirs = manifold.LocallyLinearEmbedding(n_neighbors=8, eigen_solver="dense").fit(ROLL)
    theirs.embedding_ = model.embedding_
    new = make_swiss_roll(15, random_state=4)[0]
    np.testing.assert_allclose(model.transform(new), theirs.transform(new), atol=1e-8)
    np.testing.assert_allclose(model.transform(new)[2:3], model.transform(new[2:3]), atol=1e-12)


def test_hard_tables_end_well(tmp_path):
    twice = np.vstack([ROLL[:60], ROLL[:60]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = LocallyLinearEmbedding(n_neighbors=6).fit(twice)
        assert verify(model, twice)
        five = np.repeat(ROLL[:8], 6, axis=0)
        assert np.isfinite(LocallyLinearEmbedding(n_neighbors=5).fit(five).embedding_).all()
    with pytest.warns(ConvergenceWarning, match="2 connected components"):
        LocallyLinearEmbedding().fit(np.vstack([ROLL[:50] + 1e3, ROLL[:50] * 0.1]))
    for settings, match in [
        ({"n_neighbors": 5, "method": "hessian"}, "hessian"),
        ({"n_neighbors": 1, "method": "ltsa"}, "ltsa"),
        ({"n_components": 4}, "at most the 3 columns"),
    ]:
        with pytest.raises(ParameterError, match=match):
            LocallyLinearEmbedding(**settings).fit(ROLL)
    with pytest.raises(DataError, match="n_neighbors < n_samples"):
        LocallyLinearEmbedding().fit(ROLL[:5])
    model = LocallyLinearEmbedding(n_neighbors=8).fit(ROLL)
    save(model, tmp_path / "lle.safetensors")
    assert load(tmp_path / "lle.safetensors").transform(ROLL).tobytes() == model.transform(ROLL).tobytes()


@pytest.mark.parametrize("method", ["standard", "ltsa", "hessian"])
def test_every_method_is_verified_and_a_changed_coordinate_is_not(method):
    model = LocallyLinearEmbedding(n_neighbors=9, method=method).fit(ROLL)
    assert verify(model, ROLL)
    model.embedding_ = model.embedding_ * 1.001
    assert not verify(model, ROLL)


def copies_and_a_far_row():
    rows = np.random.default_rng(3).normal(size=(60, 4))
    copies = rows.copy()
    copies[:40] = copies[0]
    return {
        "copies": copies,
        "equal": np.full((30, 4), 0.1),
        "far": np.vstack([rows, np.full((1, 4), 1e6)]),
    }


@pytest.mark.parametrize("method", ["standard", "modified", "ltsa", "hessian"])
@pytest.mark.parametrize("name", ["copies", "equal", "far"])
def test_what_rounding_would_decide_is_decided_by_a_rule(method, name):
    """Directions without length and sums that are zero: the checker, which computes them otherwise, finds the same."""
    rows = copies_and_a_far_row()[name]
    model = LocallyLinearEmbedding(n_neighbors=8, method=method).fit(rows)
    assert model.certificate_.holds and bool(verify(model, rows))
