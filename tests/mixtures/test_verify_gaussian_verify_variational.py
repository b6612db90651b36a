"""The checker of variational mixtures: changed numbers and other rows are noticed."""

import numpy as np
import pytest

import learnable as ln

X = np.random.default_rng(0).normal(size=(120, 2)) + np.repeat([[0.0], [5.0]], 60, axis=0)


@pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical"])
@pytest.mark.parametrize(
    "name, change",
    [
        ("means_", 1.001),
        ("covariances_", 1.001),
        ("counts_", 1.001),
        ("weights_", 1.001),
        ("lower_bound_", 1.001),
        ("degrees_of_freedom_", 1.001),
        ("covariance_prior_", 1.001),
    ],
)
def test_a_changed_number_is_noticed(kind, name, change):
    model = ln.VariationalGaussianMixture(2, covariance_type=kind, random_state=0).fit(X)
    assert bool(ln.verify(model, X))
    setattr(model, name, getattr(model, name) * change)
    assert not ln.verify(model, X)


def test_other_rows_are_noticed():
    model = ln.VariationalGaussianMixture(2, random_state=0).fit(X)
    assert not ln.verify(model, X[:-1])
    assert not ln.verify(model, X, sample_weight=np.full(120, 2.0))
