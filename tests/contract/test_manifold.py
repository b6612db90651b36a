"""Every spectral method keeps scikit-learn's contract."""

from tests.contract.checks import contract_of

from learnable.manifold import (
    MDS,
    NMF,
    PCA,
    TSNE,
    ClassicalMDS,
    DiffusionMaps,
    FactorAnalysis,
    Isomap,
    LaplacianEigenmaps,
    LocallyLinearEmbedding,
    ProbabilisticPCA,
    SpectralClustering,
    SpectralEmbedding,
    TruncatedSVD,
)


def expected(estimator):
    if isinstance(estimator, PCA) and estimator.n_components is None:
        # All components of 27 rows in 30 columns: those without variance may be any axes, which show in rows of weight
        # zero. With as many components as there is variance, the check passes.
        reason = "axes of variance zero are arbitrary"
        return {f"check_sample_weight_equivalence_on_{kind}_data": reason for kind in ("dense", "sparse")}
    if isinstance(estimator, FactorAnalysis):
        # A test of our own asks for four digits.
        reason = "EM ends within its tolerance, which the order of additions decides in the eighth digit"
        return {"check_sample_weight_equivalence_on_dense_data": reason}
    return {}


test_sklearn_contract = contract_of(
    [
        PCA(),
        TruncatedSVD(n_components=1),
        ProbabilisticPCA(n_components=1),
        FactorAnalysis(n_components=1),
        NMF(n_components=1),
        MDS(),
        MDS(metric_mds=False),
        ClassicalMDS(),
        Isomap(),
        SpectralEmbedding(),
        LaplacianEigenmaps(),
        DiffusionMaps(),
        LocallyLinearEmbedding(),
        SpectralClustering(n_clusters=2),
        TSNE(perplexity=2, max_iter=50, tol=1.0),
    ],
    expected,
    others=[PCA(n_components=2, whiten=True)],
)
