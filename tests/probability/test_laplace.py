"""The Laplace distribution against SciPy, its weighted median, and its edges."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from learnable.core.errors import DataError, ParameterError
from learnable.probability import Laplace
from learnable.probability.laplace import weighted_median


def test_functions_against_scipy():
    loc, scale, x = np.array([0.0, -3.0]), np.array([1.0, 0.2]), np.array([-50.0, -3.1, 0.0, 2.0])[:, None]
    ours, theirs = Laplace(loc, scale), stats.laplace(loc, scale)
    np.testing.assert_allclose(ours.logpdf(x), theirs.logpdf(x), rtol=1e-14)
    np.testing.assert_allclose(ours.cdf(x), theirs.cdf(x), rtol=1e-13)
    p = np.array([1e-300, 0.2, 0.5, 1 - 1e-12])[:, None]
    np.testing.assert_allclose(ours.quantile(p), theirs.ppf(p), rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(ours.entropy(), theirs.entropy(), rtol=1e-14)


@given(x=arrays(np.float64, 6, elements=st.floats(-100, 100)), w=arrays(np.int64, 6, elements=st.integers(1, 4)))
def test_weighted_median_is_that_of_repetitions(x, w):
    assert weighted_median(x, w.astype(float)) == pytest.approx(np.median(np.repeat(x, w)), rel=1e-12, abs=1e-12)


def test_columns_have_their_own_median():
    x = np.array([[1.0, 9.0], [2.0, 7.0], [6.0, 8.0]])
    fit = Laplace.fit_mle(x)
    assert np.array_equal(fit.loc, [2.0, 8.0])
    np.testing.assert_allclose(fit.scale, [5 / 3, 2 / 3])


def test_refusals():
    with pytest.raises(DataError, match="Laplace: fit_mle needs two distinct values"):
        Laplace.fit_mle([1.0, 1.0])
    with pytest.raises(ParameterError, match="Laplace: loc must be finite, got nan"):
        Laplace(np.nan)
