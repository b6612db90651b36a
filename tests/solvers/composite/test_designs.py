"""Designs: centring and weighting that is never carried out agrees with the one that is."""

import numpy as np
import pytest
import scipy.sparse as sp
from tests.oracles.sparse import centred

from learnable.data.blocks import Blocks, Part
from learnable.solvers.composite.designs import DenseDesign, SparseDesign, SparseQuadratic
from learnable.solvers.composite.working_set import MomentDesign
from learnable.solvers.systems.moments import centred_moments

RNG = np.random.default_rng(0)
X = RNG.standard_normal((40, 15)) * (RNG.random((40, 15)) < 0.4) + 0.0
X[:, 3] = 2.5
Y = RNG.standard_normal((40, 2)) + 4.0
WEIGHT = RNG.random(40) + 0.1
DESIGNS = {
    "rows": lambda y, w, i: DenseDesign(X, y, w, intercept=i),
    "columns": lambda y, w, i: DenseDesign(np.asfortranarray(X), y, w, intercept=i),
    "sparse": lambda y, w, i: SparseDesign(sp.csr_array(X), y, w, intercept=i),
    "moments": lambda y, w, i: MomentDesign(centred_moments(Blocks([Part(X, y, w)]), intercept=i)),
}


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("weight", [None, WEIGHT])
@pytest.mark.parametrize("targets", [1, 2])
@pytest.mark.parametrize("name", DESIGNS)
def test_products_are_those_of_the_centred_matrix(name, targets, weight, intercept):
    design = DESIGNS[name](Y[:, :targets], weight, intercept)
    A, b = centred(X, Y[:, :targets], weight, intercept)
    columns = np.arange(15) if design.whole else np.array([1, 3, 7, 2])
    W = np.zeros((15, targets))
    W[[1, 7]] = RNG.standard_normal((2, targets))
    model = design.model(columns, np.ascontiguousarray(W[columns]), None)
    gradient, square = design.residual(model, columns)
    residual = b - A @ W
    expected = A.T @ residual
    np.testing.assert_allclose(gradient, expected, atol=1e-12)
    np.testing.assert_allclose(model.gradient(), expected[columns], atol=1e-12)
    assert square == pytest.approx((residual**2).sum(), rel=1e-12)
    assert model.residual_square() == pytest.approx(square, rel=1e-12)
    np.testing.assert_allclose(design.norm, (A * A).sum(axis=0), atol=1e-12)
    np.testing.assert_allclose(design.cross, A.T @ b, atol=1e-12)


def test_a_constant_column_never_counts():
    for make in DESIGNS.values():
        assert make(Y[:, :1], WEIGHT, True).norm[3] == 0


def test_models_grow_without_forgetting():
    for name in ("rows", "sparse"):
        design = DESIGNS[name](Y[:, :1], None, True)
        first = design.model(np.array([0, 1]), np.array([[1.0], [2.0]]), None)
        grown = design.model(np.array([0, 1, 5]), np.array([[1.0], [2.0], [0.0]]), first)
        whole = design.model(np.array([0, 1, 5]), np.array([[1.0], [2.0], [0.0]]), None)
        np.testing.assert_allclose(grown.gradient(), whole.gradient(), atol=1e-12)


def test_sparse_columns_stay_sparse():
    model = DESIGNS["sparse"](Y[:, :1], None, True).model(np.arange(15), np.zeros((15, 1)), None)
    assert isinstance(model, SparseQuadratic)
