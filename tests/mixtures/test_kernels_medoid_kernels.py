"""The kernels of k-medoids against their definitions."""

import numpy as np
import pytest

from learnable.mixtures._kernels import Seats, seat_rows, try_candidates, weigh_candidate

RNG = np.random.default_rng(0)
N = 30
POINTS = RNG.normal(size=(N, 2))
D = np.linalg.norm(POINTS[:, None] - POINTS, axis=2)
W = RNG.uniform(0.5, 2.0, N)


def seats_at(medoids):
    medoids = np.array(medoids)
    whole, real = (np.empty(N, np.int32) for _ in range(2)), (np.empty(N) for _ in range(2))
    seats = Seats(medoids.copy(), D[medoids].copy(), *whole, *real, np.empty(len(medoids)))
    seat_rows(seats, W, -1)
    return seats


def objective(medoids):
    return W @ D[:, medoids].min(axis=1)


def test_rows_know_their_two_nearest_medoids():
    seats = seats_at([3, 8, 21, 5])
    order = np.argsort(D[:, [3, 8, 21, 5]], axis=1)
    assert seats.nearest.tolist() == order[:, 0].tolist() and seats.second.tolist() == order[:, 1].tolist()
    for k in range(4):
        gone = np.delete(seats.medoids, k)
        assert seats.removal[k] == pytest.approx(objective(gone) - objective(seats.medoids))


@pytest.mark.parametrize("medoids", [[4], [3, 8], [3, 8, 21, 5]])
def test_a_candidate_knows_what_every_swap_brings(medoids):
    seats, change = seats_at(medoids), np.empty(len(medoids))
    for candidate in (0, 10, 29):
        best = weigh_candidate(D[candidate], seats, W, change)
        swaps = [objective([*medoids[:k], candidate, *medoids[k + 1 :]]) for k in range(len(medoids))]
        np.testing.assert_allclose(change, np.array(swaps) - objective(medoids), atol=1e-12)
        assert best == int(np.argmin(swaps))


def test_swaps_keep_the_seats_right_and_end_where_none_helps():
    seats, taken, out = seats_at([0, 1, 2]), np.zeros(N, bool), np.zeros(3)
    taken[[0, 1, 2]] = True
    while out[0] < N:
        before = objective(seats.medoids)
        try_candidates(D, 0, seats, W, taken, 1e-12, np.empty(3), out)
        assert objective(seats.medoids) <= before
        fresh = seats_at(seats.medoids)
        for name in ("nearest", "near", "next", "removal"):
            np.testing.assert_allclose(getattr(seats, name), getattr(fresh, name), atol=1e-12)
    assert out[2] > 0 and sorted(np.flatnonzero(taken)) == sorted(seats.medoids)
    swaps = [objective([*np.delete(seats.medoids, k), c]) for k in range(3) for c in range(N)]
    assert min(swaps) >= objective(seats.medoids) - 1e-12
    assert out[1] == pytest.approx(min(0.0, *(s - objective(seats.medoids) for s in swaps)), abs=1e-12)
