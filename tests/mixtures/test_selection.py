"""The number of components by BIC."""

import numpy as np
import pytest

from learnable.core.errors import ParameterError
from learnable.mixtures import GaussianMixture, MixtureModel, select_components


def test_bic_recovers_the_number_of_components():
    rng = np.random.default_rng(0)
    centres = np.array([[0.0, 0.0], [6.0, 0.0], [0.0, 7.0]])
    X = np.concatenate([rng.normal(size=(150, 2)) + centre for centre in centres])
    chosen = select_components(GaussianMixture(random_state=0), X, range(1, 6), covariance_types=["full", "spherical"])
    assert chosen.best.n_components == 3 and chosen.best.covariance_type == "spherical"
    assert chosen.values.min() == pytest.approx(chosen.best.bic(X)) and len(chosen.models) == 10


def test_other_mixtures_have_no_types():
    rng = np.random.default_rng(0)
    counts = np.concatenate([rng.poisson(rate, (150, 2)) for rate in (1.0, 9.0)])
    chosen = select_components(MixtureModel("Poisson", random_state=0), counts, range(1, 5))
    assert chosen.best.n_components == 2 and chosen.settings[0] == {"n_components": 1}


def test_bad_arguments():
    with pytest.raises(ParameterError, match="criterion"):
        select_components(GaussianMixture(), np.zeros((3, 1)), criterion="dic")
    with pytest.raises(ParameterError, match="at least one"):
        select_components(GaussianMixture(), np.zeros((3, 1)), [])
