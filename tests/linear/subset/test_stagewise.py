"""Stagewise moves: a plain loop, least squares at the end, the lasso where its path is monotone."""

import copy

import numpy as np
import pytest
from tests.linear.subset.tables import noisy

import learnable as ln
from learnable.linear import ForwardStagewise, LassoLars, LinearRegression


def plain_moves(X, y, epsilon, n_steps):
    """Return the moves of the definition, in plain NumPy."""
    A = X - X.mean(axis=0)
    A = A / np.linalg.norm(A, axis=0)
    r = y - y.mean()
    step = epsilon * np.linalg.norm(r)
    moves = []
    while len(moves) < n_steps:
        c = A.T @ r
        j = int(np.argmax(np.abs(c)))
        if np.abs(c[j]) <= 0.5 * step:
            break
        sign = int(np.sign(c[j]))
        moves.append(sign * (j + 1))
        r = r - sign * step * A[:, j]
    return moves


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("n_steps", [1, 40, 5000])
def test_the_moves_are_those_of_the_definition(seed, n_steps):
    X, y = noisy(6, seed=seed, spread=2.0)
    model = ForwardStagewise(0.013, n_steps=n_steps).fit(X, y)
    assert model.moves_.tolist() == plain_moves(X, y, 0.013, n_steps)
    assert ln.verify(model, X, y)


def test_at_its_end_it_is_least_squares_up_to_a_move():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 5))
    y = X @ rng.normal(size=5) + rng.normal(size=80)
    model = ForwardStagewise(1e-4, n_steps=10**6).fit(X, y)
    assert len(model.moves_) < 10**6
    np.testing.assert_allclose(model.coef_, LinearRegression().fit(X, y).coef_, atol=2e-3)


def test_small_moves_follow_the_lasso_where_it_is_monotone():
    rng = np.random.default_rng(1)
    X = np.linalg.qr(rng.normal(size=(60, 6)) - 0.0)[0]
    X = X - X.mean(axis=0)
    X = X / np.linalg.norm(X, axis=0)
    y = X @ np.array([5.0, -4.0, 3.0, 2.0, -1.0, 0.5]) + 0.1 * rng.normal(size=60)
    lasso = LassoLars(alpha=0.0).fit(X, y)
    assert (np.diff(np.abs(lasso.coef_path_), axis=1) >= -1e-9).all()  # it never turns back
    epsilon = 1e-4
    model = ForwardStagewise(epsilon, n_steps=10**6).fit(X, y)
    for corner in lasso.coef_path_.T[1:]:
        n_moves = round(np.abs(corner).sum() / model.unit_[0])
        np.testing.assert_allclose(model.coefficients_after(n_moves), corner, atol=20 * model.unit_[0])


def test_a_changed_move_is_refused():
    X, y = noisy(5, seed=2)
    model = ForwardStagewise(n_steps=50).fit(X, y)
    forged = copy.deepcopy(model)
    forged.moves_[10] = 5 if abs(forged.moves_[10]) != 5 else 4
    forged.coef_ = forged.coefficients_after(50)
    assert not ln.verify(forged, X, y)


def test_a_constant_target_needs_no_move():
    X, y = noisy(4, seed=3)
    model = ForwardStagewise().fit(X, np.full(len(y), 2.0))
    assert len(model.moves_) == 0
    np.testing.assert_array_equal(model.predict(X), 2.0)
