"""The checker of Gaussian mixtures: its step is the maximum, and it catches what is not a fit."""

import numpy as np
import pytest

import learnable as ln

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 2)) + np.repeat([[0.0], [5.0]], 60, axis=0)


@pytest.mark.parametrize("name, change", [("means_", 1.001), ("covariances_", 1.01), ("lower_bound_", 1.001)])
def test_a_changed_number_is_noticed(name, change):
    model = ln.GaussianMixture(2, random_state=0).fit(X)
    assert bool(ln.verify(model, X))
    setattr(model, name, getattr(model, name) * change)
    assert not ln.verify(model, X)


def test_other_weights_and_other_rows_are_noticed():
    model = ln.GaussianMixture(2, random_state=0).fit(X)
    assert not ln.verify(model, X, sample_weight=np.full(120, 2.0))
    assert not ln.verify(model, X[:-1])
