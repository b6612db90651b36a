"""The checker of mixtures accepts every honest model and no forged one."""

import numpy as np
import pytest

import learnable as ln
from learnable import GMMHMM

LENGTHS = [60, 1, 59]


def rows():
    rng = np.random.default_rng(0)
    states = np.repeat(rng.integers(0, 2, 24), 5)
    X = rng.normal(size=(120, 2)) + 4.0 * (states * rng.choice([-1, 1], 120))[:, None]
    X[20:24, 1], X[40:44] = np.nan, np.nan
    return X


@pytest.mark.parametrize("prior", [False, True])
@pytest.mark.parametrize("shape", ["diag", "spherical", "full", "tied"])
def test_honest_models_are_verified_and_forged_ones_are_not(shape, prior):
    more = {"weights_prior": 1.5, "means_prior": 1.0, "means_weight": 0.5, "covars_prior": 0.1, "covars_weight": 4}
    model = GMMHMM(2, 2, covariance_type=shape, n_iter=500, random_state=0, **(more if prior else {}))
    model.fit(rows(), LENGTHS)
    assert model.converged_ and model.certificate_.holds
    verdict = ln.verify(model, rows(), LENGTHS)
    assert verdict, str(verdict)
    assert not ln.verify(model, rows(), [60, 2, 58])
    for name in ("means_", "covars_"):
        honest = getattr(model, name)
        setattr(model, name, honest * np.where(np.arange(honest.size).reshape(honest.shape) == 0, 1.002, 1.0))
        assert not ln.verify(model, rows(), LENGTHS), name
        setattr(model, name, honest)
    model.weights_ = model.weights_[::-1].copy()
    assert not ln.verify(model, rows(), LENGTHS)
