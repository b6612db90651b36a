"""Topic models and population structure keep scikit-learn's contract."""

from tests.contract.checks import contract_of

from learnable.topics import LatentDirichletAllocation, PopulationStructure

#: Tables of the checks hold larger numbers than two copies.
BRIEF = {"ploidy": 300, "n_jobs": 1, "random_state": 0}

test_sklearn_contract = contract_of(
    [
        PopulationStructure(2, method="ml", n_init=1, max_iter=20, **BRIEF),
        LatentDirichletAllocation(2, method="variational", max_iter=20, n_jobs=1, random_state=0),
        LatentDirichletAllocation(2, n_chains=1, n_draws=4, n_warmup=1, n_jobs=1, random_state=0),
        PopulationStructure(2, admixture=False, n_chains=2, n_draws=8, n_warmup=2, n_kept=4, **BRIEF),
    ]
)
