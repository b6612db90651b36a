"""Dense designs: few rows and many, in either memory order, against the centred matrix itself."""

import numpy as np
import pytest
from tests.oracles.sparse import centred

from learnable.solvers.composite import designs as coordinate_dense
from learnable.solvers.composite.coordinate import GramQuadratic, Penalty
from learnable.solvers.composite.designs import ColumnQuadratic, DenseDesign
from learnable.solvers.composite.working_set import WorkingSet

RNG = np.random.default_rng(0)
X = RNG.standard_normal((40, 15)) + 1.0
Y = RNG.standard_normal((40, 2)) + 4.0
WEIGHT = RNG.random(40) + 0.1


def test_columns_far_from_zero_keep_their_digits():
    far = X + 1e9
    design = DenseDesign(far, Y[:, :1], None)
    A, b = centred(far, Y[:, :1])
    model = design.model(np.array([0, 1]), np.array([[1.0], [2.0]]), None)
    gradient, _ = design.residual(model, np.array([0, 1]))
    kept = design.norm > 0
    np.testing.assert_allclose(gradient[kept], (A.T @ (b - A[:, :2] @ [[1.0], [2.0]]))[kept], atol=1e-5)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("weight", [None, WEIGHT])
@pytest.mark.parametrize("targets", [1, 2])
def test_many_rows_are_added_up_in_tiles(monkeypatch, order, weight, targets):
    """As if forty rows were many: the same numbers, without a copy of the columns."""
    monkeypatch.setattr(coordinate_dense, "_MOST_STORED", 10)
    monkeypatch.setattr(coordinate_dense, "_TILE", 7)
    monkeypatch.setattr(coordinate_dense, "_CHUNK", 64)
    design = DenseDesign(np.array(X, order=order), Y[:, :targets], weight)
    A, B = centred(X, Y[:, :targets], weight)
    W = RNG.standard_normal((3, targets))
    first = design.model(np.array([4, 1]), W[:2], None)
    model = design.model(np.array([4, 1, 9]), W, first)
    assert not hasattr(model, "A")
    S = A[:, [4, 1, 9]]
    np.testing.assert_allclose(model.G[:3, :3], S.T @ S, atol=1e-12)
    np.testing.assert_allclose(model.gradient(), S.T @ (B - S @ W), atol=1e-12)
    gradient, square = design.residual(model, np.array([4, 1, 9]))
    np.testing.assert_allclose(gradient, A.T @ (B - S @ W), atol=1e-12)
    assert square == pytest.approx(((B - S @ W) ** 2).sum())


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("weight", [False, True])
def test_few_of_many_rows_give_the_first_columns_and_nothing_else(order, weight):
    """A thinned problem is a guess: the solution is that of all rows, also where the rows are sorted."""
    rng = np.random.default_rng(1)
    T = np.array(rng.standard_normal((40_000, 40)), order=order)
    T[:, 0] = np.sort(T[:, 0])
    y = T[:, :5] @ [1.0, -2.0, 0.5, 3.0, 0.05] + rng.standard_normal(40_000)
    s = np.where(np.arange(40_000) < 30_000, 0.0, 1.0) if weight else None
    design = DenseDesign(T, y, s)
    few = design.thinned()
    assert few is not None and few.X.shape[0] <= 5000 and few.thinned() is None
    A, b = centred(T, y, s)
    l1 = 0.01 * np.abs(A.T @ b).max()
    found = WorkingSet(design).solve(Penalty(np.full(40, l1), np.zeros(40)), tol=1e-12)
    assert found.converged
    slope = A.T @ (b - A @ found.W[:, 0])
    on = found.W[:, 0] != 0
    assert 3 <= on.sum() < 40 and (np.abs(slope) <= l1 * (1 + 1e-6)).all()
    np.testing.assert_allclose(slope[on], l1 * np.sign(found.W[on, 0]), rtol=1e-5)


def test_rows_that_are_few_are_not_thinned():
    assert DenseDesign(X, Y[:, :1], None).thinned() is None


def test_the_kind_of_model_follows_the_shape():
    assert isinstance(DenseDesign(X, Y[:, :1], None).model(np.arange(15), np.zeros((15, 1)), None), GramQuadratic)
    wide = DenseDesign(RNG.standard_normal((3, 600)), Y[:3, :1], None)
    assert isinstance(wide.model(np.arange(600), np.zeros((600, 1)), None), ColumnQuadratic)


@pytest.mark.parametrize("targets", [1, 2])
def test_a_set_that_grows_one_by_one_is_the_set_at_once(targets):
    """Past the number of rows, where columns as rows are square for a moment."""
    T = RNG.standard_normal((12, 40))
    design = DenseDesign(T, Y[:12, :targets], None)
    A, B = centred(T, Y[:12, :targets])
    model, W = None, RNG.standard_normal((30, targets))
    for k in range(1, 31):
        model = design.model(np.arange(k), W[:k], model)
        S = A[:, :k]
        np.testing.assert_allclose(model.gradient(), S.T @ (B - S @ W[:k]), atol=1e-11)
        np.testing.assert_allclose(design.residual(model, np.arange(k))[0], A.T @ (B - S @ W[:k]), atol=1e-11)


def test_columns_follow_a_gram_matrix_when_they_become_too_many():
    T = RNG.standard_normal((5, 700))
    design = DenseDesign(T, Y[:5, :1], None)
    A, b = centred(T, Y[:5, :1])
    W = RNG.standard_normal((700, 1))
    model = None
    for k in (3, 400, 520, 700):
        model = design.model(np.arange(k), W[:k], model)
        np.testing.assert_allclose(model.gradient(), A[:, :k].T @ (b - A[:, :k] @ W[:k]), atol=1e-9)
    assert isinstance(model, ColumnQuadratic)
    np.testing.assert_allclose(model.norm, (A * A).sum(axis=0), atol=1e-12)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("weight", [None, RNG.integers(0, 3, 60).astype(float)])
def test_many_looks_screen_in_single_precision_and_measure_in_double(order, weight):
    """What is clearly below the level has about half the digits; what is not has all of them."""
    T = np.array(RNG.standard_normal((60, 200)) + 5 * RNG.standard_normal(200), order=order)
    y = RNG.standard_normal((60, 1))
    exact, many = (DenseDesign(T, y, weight, n_looks=looks) for looks in (1, 100))
    assert exact.single is None and many.single is not None
    columns, W = np.array([7, 3]), np.array([[0.1], [-0.2]])
    expected, square = exact.residual(exact.model(columns, W, None), columns)
    level = np.full(200, np.quantile(np.abs(expected), 0.8))
    found, same = many.residual(many.model(columns, W, None), columns, level)
    assert same == square
    exactly = (np.abs(expected) >= level[0] * (1 - 1e-9))[:, 0]
    exactly[columns] = True
    np.testing.assert_allclose(found[exactly], expected[exactly], rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert (np.abs(found[~exactly]) < level[0]).all()
    np.testing.assert_array_equal(many.residual(many.model(columns, W, None), columns)[0], expected)


def test_a_path_with_many_looks_is_the_path_with_one():
    T = RNG.standard_normal((50, 120)) @ RNG.standard_normal((120, 120)) * 10.0 ** RNG.uniform(-6, 6, 120)
    y = RNG.standard_normal((50, 1))
    gaps = []
    for looks in (1, 100):
        design = DenseDesign(T, y, None, n_looks=looks)
        solver = WorkingSet(design)
        for share in np.geomspace(0.9, 0.01, 30):
            level = np.full(120, share * np.abs(design.cross).max())
            fit = solver.solve(Penalty(level, np.zeros(120)))
            assert fit.converged
            gaps.append(fit.gap.primal)
    np.testing.assert_allclose(gaps[:30], gaps[30:], rtol=1e-6)
