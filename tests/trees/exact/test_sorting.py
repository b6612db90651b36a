"""Keys in order, codes of sparse columns, stable orders."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from learnable.trees.exact._sorting import COUNTS, order_of, sort_keys


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 5000),
    st.integers(0, 2**31 - 2**24),
    st.sampled_from([1, 2, 50, 700, 10**5, 2**24]),
    st.booleans(),
    st.integers(0, 10**6),
)
def test_keys_come_out_in_order(n, low, spread, clustered, seed):
    rng = np.random.default_rng(seed)
    codes = low + rng.integers(0, spread, n)
    if clustered:  # nearly all in one bucket
        codes[: n // 2] = codes[0]
        codes[n // 2 :] = np.minimum(codes[0] + rng.integers(0, 40, n - n // 2), low + spread)
    keys = (codes.astype(np.uint64) << np.uint64(32)) | np.arange(n, dtype=np.uint64)
    wanted, other = np.sort(keys), np.empty_like(keys)
    swapped = sort_keys(keys, other, np.empty(COUNTS, np.int64), int(codes.min()), int(codes.max()))
    np.testing.assert_array_equal(other if swapped else keys, wanted)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(-3, 3), max_size=60))
def test_orders_are_stable(values):
    x = np.array(values, dtype=np.float64)
    order, spare = np.empty(len(x), np.int64), np.empty(len(x), np.int64)
    order_of(x, order, spare)
    np.testing.assert_array_equal(order, np.argsort(x, kind="stable"))
