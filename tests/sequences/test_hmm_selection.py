"""BIC finds the number of states that simulated the data."""

import numpy as np
import pytest
from tests.sequences.models import given

from learnable.core.errors import ParameterError
from learnable.sequences import GaussianHMM, PoissonHMM, select_states


@pytest.mark.parametrize("K", [1, 2, 3])
def test_bic_recovers_the_number_of_states(K):
    X = given("diag", K=K, seed=2).sample(500, random_state=1)[0]
    chosen = select_states(GaussianHMM(n_iter=200, n_init=3, random_state=0), X, candidates=range(1, 5))
    assert chosen.n_components == K and chosen.best.n_components == K
    assert chosen.criteria[K] == min(chosen.criteria.values())


def test_the_criteria_are_their_formulas():
    X = given("poisson").sample(80, random_state=1)[0]
    model = PoissonHMM(2, n_iter=100, random_state=0).fit(X)
    k = 1 + 2 + 4
    assert model.n_parameters() == k
    assert model.aic(X) == pytest.approx(-2 * model.score(X) + 2 * k)
    assert model.bic(X) == pytest.approx(-2 * model.score(X) + np.log(80) * k)


def test_bad_arguments_are_refused():
    with pytest.raises(ParameterError, match="criterion"):
        select_states(PoissonHMM(), [[1]], criterion="cv")
    with pytest.raises(ParameterError, match="candidates"):
        select_states(PoissonHMM(), [[1]], candidates=[])
