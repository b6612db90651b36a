"""Tables of transitions: structures, estimates, counts."""

import numpy as np
import pytest

from learnable.core.errors import DataError, ParameterError
from learnable.sequences.baum_welch import allowed_moves, estimate_rows, log_dirichlet
from learnable.sequences.markov import count_moves, gcd_of_loops


def test_structures():
    np.testing.assert_array_equal(allowed_moves("M", "left-right", 3), [[1, 1, 0], [0, 1, 1], [0, 0, 1]])
    np.testing.assert_array_equal(allowed_moves("M", "banded", 3), [[1, 1, 0], [1, 1, 1], [0, 1, 1]])
    assert allowed_moves("M", None, 2).all()
    with pytest.raises(ParameterError, match="out of every state"):
        allowed_moves("M", [[1, 0], [0, 0]], 2)


def test_estimates_keep_zeros_and_rows_without_counts():
    counts = np.array([[2.0, 1.0, 5.0], [0.0, 0.0, 0.0], [1.0, 1.0, 1.0]])
    now = np.array([[0.5, 0.5, 0.0], [0.2, 0.3, 0.5], [1 / 3] * 3])
    found = estimate_rows(counts, np.ones((3, 3)), now)
    np.testing.assert_allclose(found, [[2 / 3, 1 / 3, 0], [0.2, 0.3, 0.5], [1 / 3] * 3])
    assert log_dirichlet(found, np.full((3, 3), 2.0)) == pytest.approx(np.log(found[found > 0]).sum())


def test_counts_of_moves():
    counts, starts, names = count_moves("abba", None, "M")
    np.testing.assert_array_equal(counts, [[0, 1], [1, 1]])
    assert names == ["a", "b"] and starts.tolist() == [1, 0]
    with pytest.raises(DataError, match="mixes"):
        count_moves([["a"], "b"], None, "M")
    with pytest.raises(DataError, match="cannot be sorted"):
        count_moves([1, "b"], None, "M")
    with pytest.raises(DataError, match="must be a sequence"):
        count_moves(3, None, "M")


def test_a_state_without_a_loop_has_no_period():
    assert gcd_of_loops(np.array([[0.0, 1.0], [0.0, 1.0]]), np.array([0])) == 0
