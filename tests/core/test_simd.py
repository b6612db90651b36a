"""Vectors of four numbers against NumPy."""

import numpy as np

from learnable.core import simd
from learnable.core.jit import lean_kernel


@lean_kernel
def each_operation(a, b, out):
    x, y = simd.load(a, 1), simd.load(b, 0)
    simd.store(out, 0, simd.add(x, y))
    simd.store(out, 4, simd.sub(x, y))
    simd.store(out, 8, simd.mul(x, y))
    simd.store(out, 12, simd.fma(x, y, simd.spread(2.0)))
    simd.store(out, 16, simd.larger(x, y))
    simd.store(out, 20, simd.repeat(a, 2))
    return simd.total(x), simd.top(y)


@lean_kernel
def columns_stored(columns, out, step):
    for i in range(0, columns.shape[1], 4):
        v, w = simd.load(columns[0], i), simd.load(columns[1], i)
        x, y = simd.load(columns[2], i), simd.load(columns[3], i)
        simd.store_columns(out, 1 + i * step, step, v, w, x, y)


@lean_kernel
def exponentials(a, out):
    for i in range(0, a.size, 4):
        simd.store(out, i, simd.exp(simd.load(a, i)))


@lean_kernel
def single_exponentials(a, out):
    for i in range(a.size):
        out[i] = simd.exp(a[i])


def test_operations_are_numpys():
    rng = np.random.default_rng(0)
    a, b, out = rng.normal(size=5), rng.normal(size=4), np.empty(24)
    total, top = each_operation(a, b, out)
    x = a[1:]
    expected = [x + b, x - b, x * b, x * b + 2, np.maximum(x, b), np.full(4, a[2])]
    np.testing.assert_allclose(out, np.concatenate(expected), rtol=1e-15)
    np.testing.assert_allclose([total, top], [x.sum(), b.max()], rtol=1e-15)


def test_columns_are_stored_as_rows():
    columns = np.random.default_rng(0).normal(size=(4, 8))
    out = np.zeros((8, 7))
    columns_stored(columns, out.ravel(), 7)
    expected = np.zeros((8, 7))
    expected[:, 1:5] = columns.T
    np.testing.assert_array_equal(out, expected)


def test_exponentials_are_exact_to_two_units_of_the_last_digit():
    x = np.concatenate([np.linspace(-708, 700, 40_000), np.linspace(-1, 1, 4000), [0.0, -0.0, 1e-300, -1e-17]])
    out = np.empty_like(x)
    exponentials(x, out)
    single = np.empty_like(x)
    single_exponentials(x, single)
    np.testing.assert_array_equal(single, out)
    assert (abs(out - np.exp(x)) <= 2 * np.spacing(np.exp(x))).all()


def test_exponentials_far_below_zero_vanish():
    out = np.empty(4)
    exponentials(np.array([-np.inf, -708.5, -1e308, -708.0]), out)
    np.testing.assert_array_equal(out[:3], 0.0)
    assert out[3] > 0.0
