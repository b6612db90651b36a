"""Topic models and population structure keep scikit-learn's contract."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from learnable.topics import LatentDirichletAllocation, PopulationStructure

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

#: Tables of the checks hold larger numbers than two copies.
BRIEF = {"ploidy": 300, "n_jobs": 1, "random_state": 0}
MODELS = [
    PopulationStructure(2, method="ml", n_init=1, max_iter=20, **BRIEF),
    LatentDirichletAllocation(2, method="variational", max_iter=20, n_jobs=1, random_state=0),
    LatentDirichletAllocation(2, n_chains=1, n_draws=4, n_warmup=1, n_jobs=1, random_state=0),
    PopulationStructure(2, admixture=False, n_chains=2, n_draws=8, n_warmup=2, n_kept=4, **BRIEF),
]


@parametrize_with_checks(MODELS)
def test_sklearn_contract(estimator, check):
    check(estimator)
