"""Functions as kernels: what they must return, and what is said if they do not."""

import numpy as np
import pytest

import learnable as ln
from learnable.core.errors import DataError
from learnable.risk.kernels import FunctionKernel, Gaussian, Linear, Precomputed, White, as_kernel

X = np.arange(6.0).reshape(3, 2)


def test_both_kinds_of_functions_give_the_same_matrix():
    whole, pairs = FunctionKernel(lambda A, B: A @ B.T), FunctionKernel(lambda x, z: x @ z, pairwise=True)
    np.testing.assert_array_equal(whole(X, X[:2]), X @ X[:2].T)
    np.testing.assert_array_equal(pairs(X, X[:2]), X @ X[:2].T)
    np.testing.assert_array_equal(whole.diagonal(X), (X**2).sum(axis=1))


def test_compositions_are_shown_as_they_are_written():
    kernel = (Gaussian(2.0) + White(0.5)) * Linear() + 3.0 * Gaussian()
    shown = repr(kernel)
    assert shown.startswith("(Gaussian(length_scale=2.0) + White(noise=0.5)) * Linear() + 3.0 * Gaussian(")
    names = {"Gaussian": Gaussian, "White": White, "Linear": Linear}
    np.testing.assert_array_equal(eval(shown, names)(X), kernel(X))


@pytest.mark.parametrize(
    "function, pairwise, words",
    [
        (lambda A, B: 3.0, False, r"a matrix of shape \(3, 3\) for 3 and 3 points; got \(\)"),
        (lambda A, B: np.ones((2, 2)), False, r"got \(2, 2\)"),
        (lambda A, B: np.full((len(A), len(B)), np.nan), False, r"finite numbers; got nan for the points \[0. 1.\]"),
        (lambda x, z: np.outer(x, z), True, r"one number for two points; got shape \(2, 2\)"),
        (lambda x, z: -np.inf, True, "finite numbers; got -inf"),
    ],
)
def test_what_is_no_kernel_function_is_said(function, pairwise, words):
    with pytest.raises(DataError, match=words):
        FunctionKernel(function, pairwise)(X, X)


def test_machines_pass_the_message_on():
    with pytest.raises(DataError, match="finite numbers; got nan"):
        ln.SVC(kernel=lambda A, B: np.full((len(A), len(B)), np.nan)).fit(X, [0, 1, 1])
    with pytest.raises(DataError, match="one number for two points"):
        ln.KernelRidge(kernel=lambda x, z: x).fit(X, [0.0, 1.0, 1.0])


def test_only_kernels_that_are_known_to_be_mercer_say_so():
    known, unknown = Gaussian() * Linear() + 2.0 * White(), FunctionKernel(lambda A, B: A @ B.T)
    assert known._is_mercer() and known.on(0)._is_mercer()
    for kernel in (unknown, known + unknown, 2.0 * unknown, unknown.on(0), Precomputed(), as_kernel("sigmoid")):
        assert not kernel._is_mercer()
