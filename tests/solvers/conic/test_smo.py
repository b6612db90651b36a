"""Rows are what their source computes, however little room there is; threads change nothing."""

import threading

import numpy as np
import pytest

from learnable.solvers.conic.smo import RowCache, Team


class Source:
    """A matrix in memory that counts the rows asked for."""

    dtype = np.float64

    def __init__(self, K, costly=True):
        self.K, self.asked, self.costly = K, [], costly

    def diagonal(self):
        return self.K.diagonal().copy()

    def tasks(self, rows, store, slots):
        self.asked += rows.tolist()

        def task(number):
            store[slots[number]] = self.K[rows[number]]

        return task, len(rows)

    def square(self, rows, out):
        return None

    def sums(self, rows, support, beta, team):
        return self.exact(rows, support, beta)

    def exact(self, rows, support, beta):
        return self.K[np.ix_(rows, support)] @ beta

    def part(self, rows):
        return Source(self.K[np.ix_(rows, rows)])


@pytest.fixture
def K():
    Z = np.random.default_rng(0).standard_normal((60, 5))
    return Z @ Z.T


@pytest.mark.threaded
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_blocks_and_sums_with_little_room(K, n_jobs):
    rng = np.random.default_rng(1)
    with Team(n_jobs) as team:
        cache = RowCache(Source(K), 60, 1e-9, team, 8)
        for _ in range(10):
            rows = np.sort(rng.choice(60, 8, replace=False))
            np.testing.assert_array_equal(cache.block(rows), K[np.ix_(rows, rows)])
            f, delta = np.zeros(60), rng.standard_normal(8)
            cache.add(f, rows, delta)
            np.testing.assert_allclose(f, K[:, rows] @ delta, atol=1e-12)


def test_rows_are_computed_once_while_there_is_room(K):
    source = Source(K)
    with Team(1) as team:
        cache = RowCache(source, 60, 100.0, team, 8)
        for start in (0, 4, 8, 0):
            cache.block(np.arange(start, start + 8))
    assert sorted(source.asked) == list(range(16)) and cache.n_computed == 16


def test_cheap_rows_take_little_memory(K):
    with Team(1) as team:
        assert RowCache(Source(K), 60, 100.0, team, 8)._store.shape == (60, 60)
        assert RowCache(Source(K, costly=False), 60, 100.0, team, 8)._store.shape == (16, 60)


def test_the_row_used_longest_ago_makes_room(K):
    source = Source(K)
    with Team(1) as team:
        cache = RowCache(source, 60, 1e-9, team, 4)
        for rows in ([0, 1], [2, 3], [0, 1], [4, 5], [0, 1]):
            cache.block(np.array(rows))
    assert source.asked == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("megabytes", [1e-9, 0.01, 100.0])
def test_a_part_lies_in_the_same_memory_and_keeps_the_rows_that_were_there(K, megabytes):
    rng = np.random.default_rng(2)
    rows = np.sort(rng.choice(60, 25, replace=False))
    with Team(1) as team:
        cache = RowCache(Source(K), 60, megabytes, team, 8)
        there = rng.permutation(60)[:8]
        cache.block(np.sort(there))
        part = cache.part(rows)
        assert np.shares_memory(part._store, cache._store)
        for chosen in (np.arange(8), np.arange(17, 25)):
            np.testing.assert_array_equal(part.block(chosen), K[np.ix_(rows[chosen], rows[chosen])])
        asked = set(rows[part.source.asked].tolist())
        assert asked == set(rows[np.r_[:8, 17:25]]) - set(there.tolist())
        f = np.zeros(25)
        part.add(f, np.array([3, 20]), np.array([1.0, -2.0]))
        np.testing.assert_allclose(f, K[rows][:, rows[[3, 20]]] @ [1.0, -2.0], atol=1e-12)
        np.testing.assert_array_equal(cache.block(np.arange(8)), K[:8, :8])  # asked again, it starts anew
        np.testing.assert_allclose(cache.sums(rows, there, np.ones(8)), K[np.ix_(rows, there)].sum(axis=1))


def test_a_team_shares_tasks_and_passes_errors_on():
    done = []
    with Team(2) as team:
        team.run(done.append, 100)
        assert sorted(done) == list(range(100))

        def fail(number):
            if threading.current_thread() is threading.main_thread() or number == 5:
                raise ValueError("no")

        with pytest.raises(ValueError, match="no"):
            team.run(fail, 50)
        done.clear()
        team.run(done.append, 3)
        assert sorted(done) == [0, 1, 2]
