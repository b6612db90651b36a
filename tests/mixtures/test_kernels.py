"""The kernels of k-means against their definitions."""

import numpy as np
import pytest

from learnable.mixtures._kernels import (
    Motion,
    RowState,
    Tile,
    assign_rows,
    fill_panel,
    lower_squares,
    screen_rows,
    spread_of_rows,
    square_distance,
    squares_to_own,
)
from learnable.mixtures.lloyd import sum_rows

RNG = np.random.default_rng(0)
X, C = RNG.normal(size=(50, 3)), RNG.normal(size=(7, 3))
SQUARES = ((X[:, None] - C) ** 2).sum(axis=2)
NONE = np.empty(0)


def tile_of(scores, margin, names):
    level = np.empty(1, np.float32)
    return Tile(scores.view(np.int32), names.astype(np.int32), margin, 1.0, level, level.view(np.int32))


def new_state():
    return RowState(np.full(50, -1, np.int32), np.zeros(50), np.zeros(50), np.zeros(7), np.zeros((7, 3)))


def test_rows_get_the_nearest_centre_with_true_bounds():
    state = new_state()
    margin = np.full(50, 0.3)  # crude scores: within the margin every centre must be measured
    scores = (0.5 * SQUARES + RNG.uniform(0, 0.3, SQUARES.shape)).astype(np.float32)
    assign_rows(tile_of(scores, margin, np.arange(7)), np.arange(50), False, X, C, NONE, np.zeros(3), state)
    assert state.labels.tolist() == SQUARES.argmin(axis=1).tolist()
    np.testing.assert_allclose(state.upper, np.sqrt(SQUARES.min(axis=1)))
    others = np.sort(SQUARES, axis=1)[:, 1]
    assert (state.lower <= np.sqrt(others) * (1 + 1e-6)).all()
    np.testing.assert_allclose(state.counts, np.bincount(state.labels, minlength=7))
    sums, counts = np.zeros((7, 3)), np.zeros(7)
    sum_rows(X, state.labels, NONE, np.zeros(sums.shape), counts, sums)
    np.testing.assert_allclose(state.sums, sums, atol=1e-12)


def settled_state(squares):
    state = new_state()
    state.labels[:] = squares.argmin(axis=1)
    state.upper[:], state.lower[:] = np.sqrt(np.sort(squares, axis=1)[:, :2]).T
    return state


def test_a_row_whose_bounds_allow_no_doubt_is_skipped():
    state, rows, count = settled_state(SQUARES), np.empty((2, 50), np.int64), np.empty(2, np.int64)
    still = Motion(np.zeros(7), 0.0, 0, 0.0, 0.0, np.zeros(7), 1e-12)
    screen_rows(X, C, state, still, rows, count)
    assert count.tolist() == [0, 0]
    moved = Motion(np.full(7, 9.0), 9.0, 0, 9.0, 9.0, np.zeros(7), 1e-12)
    screen_rows(X, C, state, moved, rows, count)
    assert count.tolist() == [50, 0]


def test_rows_that_only_the_movers_may_win_are_measured_against_them_alone():
    moved = C.copy()
    moved[[1, 4]] += RNG.normal(size=(2, 3))
    squares = ((X[:, None] - moved) ** 2).sum(axis=2)
    state, rows, count = settled_state(SQUARES), np.empty((2, 50), np.int64), np.empty(2, np.int64)
    move = np.sqrt(((moved - C) ** 2).sum(axis=1))
    most, mover = move.max(), int(move.argmax())
    motion = Motion(move, most, mover, np.sort(move)[-2], 0.0, np.zeros(7), 1e-12)
    screen_rows(X, moved, state, motion, rows, count)
    whole, part = rows[0, : count[0]], rows[1, : count[1]]
    assert len(part) > 10 and not np.isin(state.labels[whole], [0, 2, 3, 5, 6]).any()  # the own centre moved away
    names, margin = np.array([1, 4]), np.full(50, 1e-4)
    for some, known, of in ((whole, False, np.arange(7)), (part, True, names)):
        scores = (0.5 * squares[np.ix_(some, of)]).astype(np.float32) + np.float32(5e-5)
        assign_rows(tile_of(scores, margin[some], of), some, known, X, moved, NONE, np.zeros(3), state)
    assert state.labels.tolist() == squares.argmin(axis=1).tolist()
    assert (state.lower <= np.sqrt(np.sort(squares, axis=1)[:, 1]) * (1 + 1e-9)).all()
    assert (state.upper >= np.sqrt(squares.min(axis=1)) * (1 - 1e-12)).all()


def test_distances():
    assert square_distance(X, 3, C, 2) == np.float64(((X[3] - C[2]) ** 2).sum()) or np.isclose(
        square_distance(X, 3, C, 2), SQUARES[3, 2], rtol=1e-14
    )
    out, labels = np.empty(50), SQUARES.argmin(axis=1).astype(np.int32)
    squares_to_own(X, C, labels, out)
    np.testing.assert_allclose(out, SQUARES.min(axis=1))
    trials, potentials = np.empty((7, 50)), np.empty(7)
    closest = np.full(50, 1.0)
    lower_squares(X, C, closest, NONE, trials, potentials)
    np.testing.assert_allclose(trials, np.minimum(SQUARES.T, 1.0))
    np.testing.assert_allclose(potentials, trials.sum(axis=1))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_extended_rows(dtype):
    rows = X.astype(dtype)
    panel = np.full((50, 5), np.nan, np.float32)
    squares = RNG.uniform(size=50)
    fill_panel(rows, C[0], 0.25, 0.75, squares, panel)
    expected = np.column_stack([(rows - C[0]) * 0.25, 0.75 * squares, np.ones(50)])
    assert np.array_equal(panel, expected.astype(np.float32))


@pytest.mark.parametrize("weight", [NONE, RNG.uniform(0.1, 3, 50)])
def test_squared_deviations_and_the_farthest_of_them(weight):
    squares = np.ones(3)
    tops = np.array([0.0, 100.0, 0.0])
    spread_of_rows(X, C[0], weight, squares, tops)
    w = weight[:, None] if weight.size else 1.0
    np.testing.assert_allclose(squares, 1 + (w * (X - C[0]) ** 2).sum(axis=0), rtol=1e-14)
    farthest = np.abs(w * (X - C[0])).max(axis=0)
    assert tops.tolist() == [farthest[0], 100.0, farthest[2]]
