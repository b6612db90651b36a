"""Clusters, mixtures and mixtures of experts keep scikit-learn's contract."""

from tests.contract.checks import WEIGHTS, contract_of

from learnable.mixtures import (
    GaussianMixture,
    KMeans,
    KMedoids,
    MiniBatchKMeans,
    MixtureModel,
    MixtureOfExperts,
    VariationalGaussianMixture,
)

STARTS = "the starts and the batches are drawn at random, and rows in another order are drawn otherwise"


def expected_failures(model):
    return dict.fromkeys(WEIGHTS if isinstance(model, KMeans | MiniBatchKMeans) else WEIGHTS[:1], STARTS)


test_sklearn_contract = contract_of(
    [
        KMeans(n_clusters=2),
        MiniBatchKMeans(n_clusters=2),
        KMedoids(n_clusters=2),
        GaussianMixture(2, max_iter=1000, tol=1e-4),
        VariationalGaussianMixture(2, max_iter=500),
        MixtureModel("Normal", 2, prior="default"),
        MixtureOfExperts(2, tol=1e-3),
        MixtureOfExperts(2, experts="logistic", alpha=0.1, gate_alpha=0.1, tol=1e-3),
    ],
    expected_failures,
)
