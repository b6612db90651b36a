"""The registry's entries of spectral methods: principal components, scaling of distances, embeddings."""

from __future__ import annotations

from typing import Final

from .entries import Entry

MANIFOLDS: Final[dict[str, Entry]] = {
    "PCA": Entry("learnable.manifold.pca:PCA", "learnable.manifold.verify:pca"),
    "ProbabilisticPCA": Entry(
        "learnable.manifold.probabilistic:ProbabilisticPCA", "learnable.manifold.verify_factors:probabilistic_pca"
    ),
    "FactorAnalysis": Entry(
        "learnable.manifold.factor_analysis:FactorAnalysis", "learnable.manifold.verify_factors:factor_analysis"
    ),
    "NMF": Entry("learnable.manifold.nmf:NMF", "learnable.manifold.verify_nmf:nmf"),
    "MDS": Entry("learnable.manifold.majorisation:MDS", "learnable.manifold.verify_mds:mds"),
    "TruncatedSVD": Entry("learnable.manifold.truncated:TruncatedSVD", "learnable.manifold.verify:truncated_svd"),
    "ClassicalMDS": Entry("learnable.manifold.scaling:ClassicalMDS", "learnable.manifold.verify:classical_mds"),
    "Isomap": Entry("learnable.manifold.isomap:Isomap", "learnable.manifold.verify_graphs:isomap"),
    "LocallyLinearEmbedding": Entry(
        "learnable.manifold.locally_linear:LocallyLinearEmbedding", "learnable.manifold.verify_graphs:locally_linear"
    ),
    "SpectralEmbedding": Entry(
        "learnable.manifold.spectral:SpectralEmbedding", "learnable.manifold.verify_graphs:spectral_embedding"
    ),
    "LaplacianEigenmaps": Entry(
        "learnable.manifold.spectral:LaplacianEigenmaps", "learnable.manifold.verify_graphs:spectral_embedding"
    ),
    "SpectralClustering": Entry(
        "learnable.manifold.clustering:SpectralClustering", "learnable.manifold.verify_graphs:spectral_clustering"
    ),
    "DiffusionMaps": Entry(
        "learnable.manifold.diffusion:DiffusionMaps", "learnable.manifold.verify_graphs:diffusion_maps"
    ),
}

#: What every fit of them sets; see `fitted_members`.
MANIFOLD_MEMBERS: Final[dict[str, str]] = {
    "PCA": (
        "certificate_, components_, explained_variance_, explained_variance_ratio_, gaps_, mean_, n_components_, "
        "n_features_in_, n_samples_, noise_variance_, singular_values_"
    ),
    "ProbabilisticPCA": (
        "certificate_, components_, explained_variance_, loglike_, mean_, n_features_in_, n_iter_, noise_variance_"
    ),
    "FactorAnalysis": "certificate_, components_, loglike_, mean_, n_features_in_, n_iter_, noise_variance_",
    "NMF": ("certificate_, components_, n_components_, n_features_in_, n_iter_, penalties_, reconstruction_err_"),
    "MDS": (
        "X_fit_, certificate_, dissimilarity_matrix_, embedding_, n_features_in_, n_iter_, stress_, stress_history_"
    ),
    "TruncatedSVD": (
        "certificate_, components_, explained_variance_, explained_variance_ratio_, n_features_in_, singular_values_"
    ),
    "ClassicalMDS": (
        "X_fit_, certificate_, dissimilarity_matrix_, eigenvalues_, embedding_, n_features_in_, negative_share_"
    ),
    "Isomap": (
        "certificate_, eigenvalues_, embedding_, graph_, landmarks_, mean_squares_, n_features_in_, n_parts_, nbrs_, "
        "product_norm_, residual_variance_"
    ),
    "SpectralEmbedding": (
        "X_fit_, affinity_matrix_, certificate_, degrees_, eigenvalues_, embedding_, gamma_, n_features_in_, "
        "n_neighbors_, n_parts_"
    ),
    "LaplacianEigenmaps": (
        "X_fit_, affinity_matrix_, certificate_, degrees_, eigenvalues_, embedding_, gamma_, n_features_in_, "
        "n_neighbors_, n_parts_"
    ),
    "SpectralClustering": (
        "X_fit_, affinity_matrix_, certificate_, cluster_centers_, degrees_, eigenvalues_, embedding_, gamma_, "
        "labels_, n_features_in_, n_neighbors_, n_parts_, normalized_cut_"
    ),
    "LocallyLinearEmbedding": (
        "certificate_, eigenvalues_, embedding_, n_features_in_, n_parts_, nbrs_, reconstruction_error_"
    ),
    "DiffusionMaps": ("X_fit_, certificate_, degrees_, density_, eigenvalues_, embedding_, epsilon_, n_features_in_"),
}
