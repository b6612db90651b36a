"""Column statistics: the same bits in any pieces, and those of NumPy and scikit-learn."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import StandardScaler

from learnable.core import DataError
from learnable.data import encoder_fit as encoder_numbers
from learnable.data.encoder_fit import NumberStatistics, median


def summarise(X, weight=None, cuts=()):
    statistics = NumberStatistics("test", [f"c{j}" for j in range(X.shape[1])])
    for rows in np.split(np.arange(len(X)), cuts):
        statistics.update(X[rows], None if weight is None else weight[rows])
    return statistics.finish()


def table(n, seed, gaps=0.1):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4)) * [1.0, 1e-3, 1e6, 1.0] + [0.0, 5.0, 1e8, 0.0]
    X[:, 3] = np.round(X[:, 3])
    X[rng.random((n, 4)) < gaps] = np.nan
    return X


@settings(max_examples=40)
@given(st.integers(1, 700), st.lists(st.integers(0, 700), max_size=6), st.booleans(), st.integers(0, 5))
def test_pieces_do_not_change_a_bit(n, cuts, weighted, seed):
    X = table(n, seed)
    weight = np.random.default_rng(seed).integers(0, 3, n) * 0.7 if weighted else None
    cuts = sorted(min(cut, n) for cut in cuts)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(encoder_numbers, "_BLOCK_ELEMENTS", 2**8)  # several blocks of 256 rows
        patch.setattr(encoder_numbers, "most_rows", lambda columns: 64)
        for a, b in zip(summarise(X, weight), summarise(X, weight, cuts), strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("order", ["C", "F"])
def test_memory_order_does_not_change_a_bit(order):
    X = table(3000, 1)
    for a, b in zip(summarise(X), summarise(np.asarray(X, order=order)), strict=True):
        np.testing.assert_array_equal(a, b)


def test_statistics_are_those_of_scikit_learn():
    X = table(50_000, 2)
    found = summarise(X)
    scaler, imputer = StandardScaler().fit(X), SimpleImputer(strategy="median").fit(X)
    np.testing.assert_allclose(found.mean, scaler.mean_, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(found.std, scaler.scale_, rtol=1e-10)
    np.testing.assert_array_equal(found.median, imputer.statistics_)
    np.testing.assert_array_equal(found.missing, np.isnan(X).sum(axis=0))
    np.testing.assert_array_equal(found.low, np.nanmin(X, axis=0))
    np.testing.assert_array_equal(found.high, np.nanmax(X, axis=0))
    np.testing.assert_array_equal(found.fractional, [True, True, True, False])


@pytest.mark.parametrize("gaps", [0.0, 0.2])
def test_whole_weights_are_repeated_rows(gaps):
    X = table(300, 3, gaps)
    weight = np.random.default_rng(3).integers(0, 4, 300)
    weighted, repeated = summarise(X, weight.astype(float)), summarise(np.repeat(X, weight, axis=0))
    for name in ("mean", "std", "low", "high", "median", "fractional"):
        np.testing.assert_allclose(getattr(weighted, name), getattr(repeated, name), rtol=1e-10, atol=1e-12)


def test_a_large_mean_does_not_hide_the_spread():
    X = 1e9 + np.random.default_rng(4).normal(size=(100_000, 1))
    assert summarise(X).std[0] == pytest.approx(X.std(), rel=1e-6)


def test_columns_without_any_value():
    X = np.array([[np.nan, 1.0], [np.nan, 2.0]])
    found = summarise(X)
    assert found.low[0] > found.high[0] and found.missing[0] == 2
    assert np.isfinite(found.mean).all() and np.isfinite(found.std).all() and np.isfinite(found.median).all()


@pytest.mark.parametrize("gap", [0.0, np.nan])
@pytest.mark.parametrize("infinity", [np.inf, -np.inf])
def test_infinity_is_refused_with_its_place(gap, infinity):
    X = np.full((10, 2), 1.0)
    X[4, 1], X[6, 1] = gap, infinity
    with pytest.raises(DataError, match=r"test: column 'c1' contains infinity, first in row 6"):
        summarise(X)


def test_numbers_whose_squares_overflow_are_refused():
    with pytest.raises(DataError, match=r"column 'c0' reaches 1e\+200; .* Rescale it"):
        summarise(np.array([[1e200], [1.0]]))


@given(st.lists(st.tuples(st.floats(-5, 5), st.integers(0, 3)), min_size=1, max_size=20))
def test_the_weighted_median_is_the_median_of_repeated_values(pairs):
    values, weight = np.array([v for v, _ in pairs]), np.array([w for _, w in pairs])
    expected = np.median(np.repeat(values, weight)) if weight.any() else 0.0
    assert median(values, weight.astype(float)) == pytest.approx(expected)
