"""Programs as data: what they are made of, their values, and what they refuse."""

import numpy as np
import pytest
import scipy.sparse as sp

from learnable.core.errors import DataError
from learnable.solvers import Multipliers, QuadraticProgram


def test_values_are_the_formula():
    P, q, x = np.array([[2.0, 1.0], [1.0, 3.0]]), np.array([1.0, -1.0]), np.array([0.5, 2.0])
    program = QuadraticProgram(P, q, [[1.0, 1.0]], [1.0], lower=[0.0, -np.inf])
    assert program.value(x) == pytest.approx(0.5 * x @ P @ x + q @ x)
    assert program.goal(x).gradient == pytest.approx(P @ x + q)
    assert program.inequalities(x).value == pytest.approx([1.5, -0.5])
    assert program.inequalities(x).jacobian.toarray().tolist() == [[1.0, 1.0], [-1.0, 0.0]]


def test_the_dual_value_is_the_lagrangian():
    program = QuadraticProgram([[2.0]], [-4.0], upper=[1.0])
    multipliers = Multipliers(np.zeros(0), np.zeros(0), np.zeros(1), np.array([2.0]))
    assert program.dual_value(np.array([1.0]), multipliers) == -3.0
    assert program.flat(multipliers).tolist() == [2.0]


def test_sparse_and_dense_are_the_same_program():
    x = np.array([1.0, 2.0])
    dense = QuadraticProgram(np.eye(2), [1.0, 1.0], np.eye(2), [1.0, 1.0])
    sparse = QuadraticProgram(sp.eye_array(2), [1.0, 1.0], sp.csr_array(np.eye(2)), [1.0, 1.0])
    assert sparse.sparse and not dense.sparse
    assert sparse.value(x) == dense.value(x)
    assert sparse.inequalities(x).size.tolist() == dense.inequalities(x).size.tolist()
    assert sparse.unit == dense.unit


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"q": []}, "q must be a vector"),
        ({"q": ["a"]}, "q must be a vector"),
        ({"q": [np.nan]}, "finite"),
        ({"P": [[1.0, 2.0]]}, "P must be a matrix of 1 columns"),
        ({"P": [[1.0], [2.0]]}, "P must have shape"),
        ({"P": [[np.inf]]}, "P must hold finite"),
        ({"P": [["x"]]}, "P must be a matrix"),
        ({"G": [[1.0]]}, "belong together"),
        ({"b": [1.0]}, "belong together"),
        ({"G": [[1.0]], "h": [1.0, 2.0]}, "h must have 1 entries"),
        ({"A": [[1.0, 1.0]], "b": [1.0]}, "A must be a matrix of 1 columns"),
        ({"lower": [np.nan]}, "lower must be"),
        ({"lower": np.inf}, "lower must be"),
        ({"upper": [1.0, 2.0]}, "upper must be"),
    ],
)
def test_what_is_no_program_is_refused(arguments, words):
    with pytest.raises(DataError, match=words):
        QuadraticProgram(**({"P": None, "q": [1.0]} | arguments))


def test_an_asymmetric_matrix_is_refused_and_rounding_is_not():
    with pytest.raises(DataError, match="symmetric"):
        QuadraticProgram([[1.0, 1.0], [0.0, 1.0]], [0.0, 0.0])
    P = QuadraticProgram([[1.0, 0.1], [0.1 + 1e-15, 1.0]], [0.0, 0.0]).P
    assert P[0, 1] == P[1, 0]


def test_the_arrays_given_are_copied():
    q = np.ones(2)
    program = QuadraticProgram(None, q)
    q[0] = 5.0
    assert program.q.tolist() == [1.0, 1.0]
