"""The checker accepts every honest model and no forged one."""

import numpy as np
import pytest

import learnable as ln
from learnable import CategoricalHMM, GaussianHMM, PoissonHMM

LENGTHS = [60, 1, 59]


def rows(kind, seed=0):
    rng = np.random.default_rng(seed)
    states = np.repeat(rng.integers(0, 2, 24), 5)
    if kind == "categorical":
        X = (rng.random(120) < np.where(states, 0.8, 0.2)).astype(float)[:, None] + rng.integers(0, 2, (120, 1))
    elif kind == "poisson":
        X = rng.poisson(np.where(states, 9.0, 2.0)[:, None] * [1.0, 0.5]).astype(float)
    else:
        X = rng.normal(size=(120, 2)) + 4.0 * states[:, None]
        X[20:24, 1] = np.nan
    X[40:44] = np.nan
    return X


MODELS = {
    "categorical": [CategoricalHMM(2), CategoricalHMM(2, 2.0, 3.0, emissionprob_prior=1.5)],
    "poisson": [PoissonHMM(2), PoissonHMM(2, lambdas_prior=2.0, lambdas_weight=1.0)],
    "gaussian": [
        GaussianHMM(2, kind, means_prior=1.0, means_weight=weight, covars_weight=1 + 4 * weight)
        for kind in ("diag", "spherical", "full", "tied")
        for weight in (0, 1)
    ],
}
CASES = [(kind, model) for kind, models in MODELS.items() for model in models]


@pytest.mark.parametrize("kind, model", CASES)
def test_honest_models_are_verified_and_forged_ones_are_not(kind, model):
    X = rows(kind)
    model.set_params(n_iter=500, random_state=0).fit(X, LENGTHS)
    assert model.converged_ and model.certificate_.holds
    verdict = ln.verify(model, X, LENGTHS)
    assert verdict, str(verdict)
    assert not ln.verify(model, X, [60, 2, 58])
    assert not ln.verify(model, X[::-1], [59, 1, 60])
    for name in model._letters.values():
        honest = getattr(model, name)
        setattr(model, name, honest * np.where(np.arange(honest.size).reshape(honest.shape) == 0, 1.002, 1.0))
        assert not ln.verify(model, X, LENGTHS), name
        setattr(model, name, honest)
    model.transmat_ = model.transmat_[::-1].copy()
    assert not ln.verify(model, X, LENGTHS)


def test_other_data_are_not_verified():
    model = PoissonHMM(2, n_iter=500, random_state=0).fit(rows("poisson"))
    assert ln.verify(model, rows("poisson"))
    assert not ln.verify(model, rows("poisson", seed=1))
