"""The checker of mixtures of exponential families: changed numbers, other rows and other weights are noticed."""

import numpy as np
import pytest
from tests.mixtures.draws import KNOWN, PAIRS, rows_of

import learnable as ln
from learnable import MixtureModel


@pytest.mark.parametrize("name", PAIRS)
def test_a_changed_parameter_is_noticed(name):
    X, _ = rows_of(name, 120)
    model = MixtureModel(name, 2, known=KNOWN.get(name), random_state=0, tol=1e-8, max_iter=5000).fit(X)
    assert bool(ln.verify(model, X))
    honest = model.parameters_
    for key in honest:
        if key == "n":
            continue
        forged = honest[key] * 1.001
        if key == "p" and name in ("Categorical", "Multinomial"):
            forged = honest[key] + 1e-3 * (np.arange(honest[key].shape[-1]) - (honest[key].shape[-1] - 1) / 2)
            forged = np.clip(forged, 0, None) / np.clip(forged, 0, None).sum(axis=-1, keepdims=True)
        model.parameters_ = honest | {key: np.minimum(forged, 1.0) if key == "p" else forged}
        assert not ln.verify(model, X), key
    model.parameters_ = honest
    model.weights_ = model.weights_ * [1.002, 1.0] / (model.weights_ * [1.002, 1.0]).sum()
    assert not ln.verify(model, X)


def test_other_rows_weights_and_priors_are_noticed():
    X, _ = rows_of("Poisson")
    model = MixtureModel("Poisson", 2, random_state=0, prior={"rows": 2.0}).fit(X)
    assert bool(ln.verify(model, X))
    assert not ln.verify(model, X[:-1])
    assert not ln.verify(model, X, sample_weight=np.full(len(X), 2.0))
    model.prior = {"rows": 1.0}
    assert not ln.verify(model, X)
