"""Vectors and tiles inside kernels are NumPy's arithmetic, in float32 and float64."""

import numpy as np
import pytest
from scipy.special import expit

from learnable.core import wide
from learnable.core.jit import ieee_kernel
from learnable.neural import _lstm_kernels as kernels

DTYPES = [np.float32, np.float64]


@ieee_kernel
def arithmetic(a, b, out, half):
    x = wide.load(a, 1)
    y = wide.load(b, 0)
    wide.store(out, 0, wide.add(x, y))
    wide.store(out, half, wide.sub(x, y))
    wide.store(out, 2 * half, wide.mul(x, y))
    wide.store(out, 3 * half, wide.div(x, y))
    wide.store(out, 4 * half, wide.fma(x, y, wide.spread(a[0])))


@ieee_kernel
def squash(x, half, sigmoids, tanhs):
    for j in range(0, x.size, half):
        wide.store(sigmoids, j, wide.sigmoid(wide.load(x, j)))
        wide.store(tanhs, j, wide.tanh(wide.load(x, j)))


@ieee_kernel
def as_numbers(counts, out):
    wide.store(out, 0, wide.load_counts(counts, 1))


@pytest.mark.parametrize("dtype", [np.int16, np.int32])
def test_counts_become_numbers(dtype):
    counts = np.array([9, 0, 1, -1, 2, 300, -300, 32_767, -32_768], dtype=dtype)
    out = np.zeros(8, dtype=np.float32)
    as_numbers(counts, out)
    np.testing.assert_array_equal(out, counts[1:])


@pytest.mark.parametrize("dtype", DTYPES)
def test_arithmetic(dtype):
    half = wide.panel_width(np.dtype(dtype)) // 2
    rng = np.random.default_rng(0)
    a = rng.normal(size=half + 1).astype(dtype)
    b = rng.normal(size=half).astype(dtype)
    out = np.zeros((5, half), dtype=dtype)
    arithmetic(a, b, out.reshape(-1), half)
    x = a[1:]
    expected = [x + b, x - b, x * b, x / b, x * b + a[0]]
    np.testing.assert_allclose(out, expected, rtol=4 * np.finfo(dtype).eps, atol=4 * np.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", DTYPES)
def test_squashing_functions_hold_their_stated_errors(dtype):
    """In float32 1.7e-7 and 2.8e-7 (relative), values never leave [0, 1] and [−1, 1], NaN stays."""
    half = wide.panel_width(np.dtype(dtype)) // 2
    far = [1e30, -1e30, np.inf, -np.inf, 0.0, 8.0, -8.0, 16.0]
    x = np.concatenate([np.linspace(-20, 20, 80_000), np.linspace(-1e-3, 1e-3, 8000), far]).astype(dtype)
    sigmoids = np.empty_like(x)
    tanhs = np.empty_like(x)
    squash(x, half, sigmoids, tanhs)
    exact = x.astype(np.float64)
    single = dtype == np.float32
    assert np.abs(sigmoids - expit(exact)).max() <= (2e-7 if single else 4e-16)
    apart = np.abs(tanhs - np.tanh(exact))
    assert (apart <= (3.1e-7 * np.abs(np.tanh(exact)) if single else 8e-16)).all()
    assert sigmoids.min() >= 0.0
    assert sigmoids.max() <= 1.0
    assert np.abs(tanhs).max() <= 1.0
    x[:] = np.nan
    squash(x, half, sigmoids, tanhs)
    assert np.isnan(sigmoids).all()
    assert np.isnan(tanhs).all()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 5, 6, 13])
def test_products_are_numpys_and_rows_do_not_depend_on_their_neighbours(dtype, n):
    w = wide.panel_width(np.dtype(dtype))
    rng = np.random.default_rng(n)
    k = 7
    columns = 2 * w
    A = rng.normal(size=(n, k)).astype(dtype)
    W = rng.normal(size=(k, columns)).astype(dtype)
    packed = np.empty(W.size, dtype=dtype)
    kernels.pack(W, w, packed)
    out = np.full((n, columns), np.nan, dtype=dtype)
    kernels.multiply(A.reshape(-1), 0, n, k, packed, w, columns, out.reshape(-1), 0)
    close = {"rtol": 1e-6, "atol": 1e-6} if dtype == np.float32 else {"rtol": 1e-14, "atol": 1e-14}
    np.testing.assert_allclose(out, A @ W, **close)
    alone = np.empty((1, columns), dtype=dtype)
    kernels.multiply(A[-1].copy(), 0, 1, k, packed, w, columns, alone.reshape(-1), 0)
    assert (alone[0] == out[-1]).all()
    kernels.multiply_more(A.reshape(-1), 0, n, k, packed, w, columns, out.reshape(-1))
    np.testing.assert_allclose(out, 2 * (A @ W), **close)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("panels", [1, 40])
def test_outer_products_and_transposed_weights(dtype, panels):
    """One panel is read where it stands; forty are too many for the first cache and are copied one by one."""
    w = wide.panel_width(np.dtype(dtype))
    rng = np.random.default_rng(panels)
    n, k = 11, 8
    columns = panels * w
    A = rng.normal(size=(n, k)).astype(dtype)
    D = rng.normal(size=(n, columns)).astype(dtype)
    found = np.ones(k * columns, dtype=dtype)
    panel = np.empty(n * w, dtype=dtype)
    kernels.add_outer(A.reshape(-1), 0, n, k, D.reshape(-1), 0, w, columns, panel, found)
    unpacked = found.reshape(panels, k, w).transpose(1, 0, 2).reshape(k, columns)
    np.testing.assert_allclose(unpacked, A.T @ D + 1.0, rtol=1e-5, atol=1e-5)
    W = rng.normal(size=(2 * w, columns)).astype(dtype)
    transposed = np.empty(W.size, dtype=dtype)
    kernels.pack_transposed(W, 2 * w, w, transposed)
    back = np.empty((n, 2 * w), dtype=dtype)
    kernels.multiply(D.reshape(-1), 0, n, columns, transposed, w, 2 * w, back.reshape(-1), 0)
    np.testing.assert_allclose(back, D @ W.T, rtol=1e-4, atol=1e-4)
