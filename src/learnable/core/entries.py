"""What the registry says about one class: where it lives, which checker verifies it, what kind of model it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final


@dataclass(frozen=True)
class Entry:
    """Where a class lives and which checker verifies its certificate.

    Attributes
    ----------
    path : str
        `"module:Class"`.
    checker : str or None
        `"module:function"`; called as `function(model, X, y, sample_weight)`, returns a fresh certificate value.
    estimator : bool
        False for parts that are stored inside models, such as distributions.
    traits : Traits or None
        What kind of model it is; None for what is no model of data, such as an encoder.
    variants : tuple of dict
        The settings that a comparison tries; empty if it leaves the class out.
    most_rows : int or None
        A comparison leaves the class out of longer tables, unless it is named; None if it never does.
    scales_target : bool
        Whether its parameters are in the units of the target, so that a comparison standardises the targets for it.
    only_scores : bool
        Whether a classifier has scores and no probabilities by default; a comparison calibrates it.
    """

    path: str
    checker: str | None = None
    estimator: bool = True
    traits: Traits | None = None
    variants: tuple[dict[str, Any], ...] = ()
    most_rows: int | None = None
    scales_target: bool = False
    only_scores: bool = False


@dataclass(frozen=True)
class Traits:
    """What a textbook says of a model before it looks at any data.

    Attributes
    ----------
    family : str
        "linear", "trees", …
    tasks : tuple of {"regression", "binary", "multiclass"}
        What it predicts.
    generative : bool
        Whether it models how x arises (p(x, y)), rather than y given x.
    parametric : bool
        Whether the number of parameters is fixed before the data are seen.
    certifies : str
        What a fit proves, in words.
    targets : {"any", "counts", "positive", "several"}
        Which numbers it is made for; a comparison leaves it out, unless it is named, where the targets are others.
        "several": rows of at least two numbers, which a tool for one column cannot give.
    """

    family: str
    tasks: tuple[str, ...]
    generative: bool
    parametric: bool
    certifies: str
    targets: str = "any"


# The registry's entries of kernel machines, and of the kernels that models may be saved with.

_REGRESSION = ("regression",)
_CLASSES = ("binary", "multiclass")

_EQUATIONS = "relative residual of the equations of the coefficients"

#: Their cost grows with the cube of the rows: a comparison races some, on short tables; the others only when named.
KERNEL_MACHINES: Final[dict[str, Entry]] = {
    "KernelRidge": Entry(
        "learnable.kernel.ridge.regression:KernelRidge",
        "learnable.kernel.verify_representer:kernel_ridge",
        traits=Traits("kernel", _REGRESSION, False, False, _EQUATIONS),
        variants=tuple({"kernel": "rbf", "alpha": alpha} for alpha in (0.01, 0.1, 1.0)),
        most_rows=5000,
        scales_target=True,
    ),
    "KernelRidgeClassifier": Entry(
        "learnable.kernel.ridge.regression:KernelRidgeClassifier",
        "learnable.kernel.verify_representer:kernel_ridge_classifier",
        traits=Traits("kernel", _CLASSES, False, False, _EQUATIONS),
        only_scores=True,
    ),
    "KernelRidgeCV": Entry(
        "learnable.kernel.ridge.ridge_cv:KernelRidgeCV",
        "learnable.kernel.verify_representer:kernel_ridge",
        traits=Traits("kernel", _REGRESSION, False, False, _EQUATIONS),
        scales_target=True,
    ),
    "KernelLogisticRegression": Entry(
        "learnable.kernel.logistic.regression:KernelLogisticRegression",
        "learnable.kernel.verify_representer:kernel_logistic",
        traits=Traits("kernel", _CLASSES, False, False, "relative duality gap to the optimum"),
        variants=({},),
        most_rows=1000,
    ),
    "GaussianProcessRegressor": Entry(
        "learnable.kernel.gp.regressor:GaussianProcessRegressor",
        "learnable.kernel.verify_gp:gaussian_process_regressor",
        traits=Traits("kernel", _REGRESSION, False, False, "relative gradient of the marginal likelihood"),
        variants=({"alpha": 0.1, "normalize_y": True}, {"alpha": 0.5, "normalize_y": True}),  # noise, of variance one
        most_rows=500,
    ),
    "GaussianProcessClassifier": Entry(
        "learnable.kernel.gp.classifier:GaussianProcessClassifier",
        "learnable.kernel.verify_gp:gaussian_process_classifier",
        traits=Traits("kernel", _CLASSES, False, False, "relative gradient of the approximate marginal likelihood"),
    ),
    "Trend": Entry("learnable.kernel.gp.posterior:Trend", estimator=False),
    "KernelPCA": Entry("learnable.kernel.features.pca:KernelPCA", "learnable.kernel.verify_representer:kernel_pca"),
    "Nystroem": Entry("learnable.kernel.features.approximations:Nystroem"),
    "RBFSampler": Entry("learnable.kernel.features.approximations:RBFSampler"),
}


def _parts(module: str, *names: str) -> dict[str, Entry]:
    return {name: Entry(f"learnable.risk.kernels.{module}:{name}", estimator=False) for name in names}


#: Kernels that can be a parameter of a saved model; functions cannot.
KERNELS: Final[dict[str, Entry]] = {
    **_parts("base", "Gaussian"),
    **_parts("elementary", "Linear", "Polynomial", "Constant", "White"),
    **_parts("elementary", "DoubleExponential", "Matern", "RationalQuadratic", "Periodic"),
    **_parts("composed", "Sum", "Product", "Scaled", "Restricted", "Precomputed"),
}


# --------------------------------------------------------------------------------------------------------------------
# The registry's entries of spectral methods: principal components, scaling of distances, embeddings.


MANIFOLDS: Final[dict[str, Entry]] = {
    "ProbabilisticPCA": Entry(
        "learnable.manifold.probabilistic:ProbabilisticPCA", "learnable.manifold.verify_factors:probabilistic_pca"
    ),
    "FactorAnalysis": Entry(
        "learnable.manifold.factor_analysis:FactorAnalysis", "learnable.manifold.verify_factors:factor_analysis"
    ),
    "NMF": Entry("learnable.manifold.nmf:NMF", "learnable.manifold.verify_nmf:nmf"),
    "MDS": Entry("learnable.manifold.majorisation:MDS", "learnable.manifold.verify_mds:mds"),
    "TSNE": Entry("learnable.manifold.tsne:TSNE", "learnable.manifold.verify_tsne:tsne"),
    "PCA": Entry("learnable.manifold.pca:PCA", "learnable.manifold.verify:pca"),
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
    "ProbabilisticPCA": (
        "certificate_, components_, explained_variance_, loglike_, mean_, n_features_in_, n_iter_, noise_variance_"
    ),
    "FactorAnalysis": "certificate_, components_, loglike_, mean_, n_features_in_, n_iter_, noise_variance_",
    "NMF": "certificate_, components_, n_components_, n_features_in_, n_iter_, penalties_, reconstruction_err_",
    "MDS": (
        "X_fit_, certificate_, dissimilarity_matrix_, embedding_, n_features_in_, n_iter_, stress_, stress_history_"
    ),
    "PCA": (
        "certificate_, components_, explained_variance_, explained_variance_ratio_, gaps_, mean_, n_components_, "
        "n_features_in_, n_samples_, noise_variance_, singular_values_"
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
    "TSNE": "certificate_, embedding_, kl_divergence_, learning_rate_, n_features_in_, n_iter_, nbrs_",
    "DiffusionMaps": ("X_fit_, certificate_, degrees_, density_, eigenvalues_, embedding_, epsilon_, n_features_in_"),
}


# --------------------------------------------------------------------------------------------------------------------
# The scikit-learn classes that a model file may name: what carries their fitted state, and which checker verifies it.
#
# A file names them with a prefix, `"sklearn.StandardScaler"`, because some names are ours too. The fitted state of a
# class is a list of members, written `name: kind`, or `name?: kind` where only some fits set it. The kinds are
#
# | kind         | what it is                                                                       |
# |--------------|----------------------------------------------------------------------------------|
# | `count`      | a whole number, not negative                                                     |
# | `number`     | a number, or an array of numbers                                                 |
# | `flag`       | a truth value                                                                    |
# | `text`       | a string                                                                         |
# | `dtype`      | a NumPy dtype                                                                    |
# | `float[k,p]` | an array of numbers; p is `n_features_in_`, other letters are sizes that agree   |
# | `int[p]`     | an array of integers                                                             |
# | `any[p]`     | an array of any dtype                                                            |
# | `object`     | whatever the check of the class says                                             |
#
# `or None` may follow. A member that stands neither here nor among the parameters stops `save`: another version of
# scikit-learn may need it. `left_out` is what `save` drops, because the loader computes it or no method needs it.


PREFIX: Final = "sklearn."


@dataclass(frozen=True)
class Foreign:
    """One class of scikit-learn.

    Attributes
    ----------
    module : str
        Where to import it from, and where it is documented.
    state : str
        Its fitted members, as the module's docstring says.
    check : str or None
        `"module:function"`, called as `function(model, path)` after the kinds have been checked.
    restore : str or None
        `"module:function"`, called as `function(model)`: computes the members that are left out.
    left_out : tuple of str
        Members that are not stored.
    checker : str or None
        `"module:function"`, called as `function(model, X, y, sample_weight)`: what `verify` does with it.
    """

    module: str
    state: str = ""
    check: str | None = None
    restore: str | None = None
    left_out: tuple[str, ...] = ()
    checker: str | None = None


_CHECKS: Final = "learnable.core._soundness_sklearn:"
_VERIFY: Final = "learnable.meta.verify_sklearn:"
_COLUMNS: Final = "n_features_in_: count; feature_names_in_?: object; "
_NAMES: Final = "feature_names_in_?: object; "
_CATEGORIES: Final = (
    _COLUMNS + "_infrequent_enabled: flag; categories_: object; _infrequent_indices?: object; "
    "_default_to_infrequent_mappings?: object; "
)
_SELECTION: Final = Foreign("sklearn.feature_selection", _COLUMNS + "scores_: float[p]; pvalues_: float[p] or None")
_SEARCH: Final = Foreign(
    "sklearn.model_selection",
    _NAMES + "n_splits_: count; multimetric_: flag; cv_results_: object; best_index_?: count; best_score_?: number; "
    "best_params_?: object; best_estimator_?: object; refit_time_?: number",
    _CHECKS + "check_search",
    _CHECKS + "restore_scorer",
    ("_checked_cv_orig", "scorer_"),
    _VERIFY + "search",
)
_MEMBERS: Final = _NAMES + "estimators_: object; "
_RESTORE: Final = _CHECKS + "restore_named_estimators"

#: name -> class; the only classes of scikit-learn that a file may name.
SKLEARN: Final[dict[str, Foreign]] = {
    "StandardScaler": Foreign(
        "sklearn.preprocessing",
        _COLUMNS + "n_samples_seen_: number; mean_: float[p] or None; var_: float[p] or None; scale_: float[p] or None",
    ),
    "MinMaxScaler": Foreign(
        "sklearn.preprocessing",
        _COLUMNS + "n_samples_seen_: count; scale_: float[p]; min_: float[p]; data_min_: float[p]; "
        "data_max_: float[p]; data_range_: float[p]",
    ),
    "MaxAbsScaler": Foreign(
        "sklearn.preprocessing", _COLUMNS + "n_samples_seen_: count; max_abs_: float[p]; scale_: float[p]"
    ),
    "RobustScaler": Foreign("sklearn.preprocessing", _COLUMNS + "center_: float[p] or None; scale_: float[p] or None"),
    "Normalizer": Foreign("sklearn.preprocessing", _COLUMNS),
    "Binarizer": Foreign("sklearn.preprocessing", _COLUMNS),
    "FunctionTransformer": Foreign("sklearn.preprocessing", "n_features_in_?: count; feature_names_in_?: object"),
    "OneHotEncoder": Foreign(
        "sklearn.preprocessing",
        _CATEGORIES + "drop_idx_: object; _drop_idx_after_grouping: object; _n_features_outs: object",
        _CHECKS + "check_one_hot",
    ),
    "OrdinalEncoder": Foreign(
        "sklearn.preprocessing", _CATEGORIES + "_missing_indices: object", _CHECKS + "check_ordinal"
    ),
    "TargetEncoder": Foreign(
        "sklearn.preprocessing",
        _CATEGORIES + "target_type_: text; classes_: any[c] or None; target_mean_: number; encodings_: object",
        _CHECKS + "check_target_encoder",
    ),
    "LabelEncoder": Foreign("sklearn.preprocessing", "classes_: any[c]"),
    "SimpleImputer": Foreign(
        "sklearn.impute",
        _COLUMNS + "_fit_dtype: dtype; _fill_dtype: dtype; indicator_: object; statistics_: any[p]",
        _CHECKS + "check_imputer",
    ),
    "MissingIndicator": Foreign(
        "sklearn.impute",
        "n_features_in_?: count; feature_names_in_?: object; _precomputed: flag; _n_features: count; features_: int[k]",
        _CHECKS + "check_indicator",
    ),
    "PolynomialFeatures": Foreign(
        "sklearn.preprocessing",
        _COLUMNS + "_min_degree: count; _max_degree: count; n_output_features_: count; _n_out_full: count",
        _CHECKS + "check_polynomial",
    ),
    "SplineTransformer": Foreign(
        "sklearn.preprocessing", _COLUMNS + "bsplines_: object; n_features_out_: count", _CHECKS + "check_splines"
    ),
    "KBinsDiscretizer": Foreign(
        "sklearn.preprocessing",
        _COLUMNS + "bin_edges_: any[p]; n_bins_: int[p]; _encoder?: object",
        _CHECKS + "check_bins",
    ),
    "PowerTransformer": Foreign(
        "sklearn.preprocessing", _COLUMNS + "lambdas_: float[p]; _scaler?: object", _CHECKS + "check_power"
    ),
    "QuantileTransformer": Foreign(
        "sklearn.preprocessing", _COLUMNS + "n_quantiles_: count; references_: float[q]; quantiles_: float[q,p]"
    ),
    "VarianceThreshold": Foreign("sklearn.feature_selection", _COLUMNS + "variances_: float[p]"),
    "SelectKBest": _SELECTION,
    "SelectPercentile": _SELECTION,
    "TruncatedSVD": Foreign(
        "sklearn.decomposition",
        _COLUMNS + "components_: float[k,p]; explained_variance_: float[k]; explained_variance_ratio_: float[k]; "
        "singular_values_: float[k]",
    ),
    "PCA": Foreign(
        "sklearn.decomposition",
        _COLUMNS + "_fit_svd_solver: text; mean_: float[p]; noise_variance_: number; n_samples_: count; "
        "n_components_: count; components_: float[k,p]; explained_variance_: float[k]; "
        "explained_variance_ratio_: float[k]; singular_values_: float[k]",
    ),
    "ColumnTransformer": Foreign(
        "sklearn.compose",
        _COLUMNS + "_columns: object; _transformer_to_input_indices: object; _remainder: object; "
        "sparse_output_: flag; transformers_: object; output_indices_: object; "
        "_transformers_feature_names_out?: any[c]",
        _CHECKS + "check_column_transformer",
    ),
    "Pipeline": Foreign("sklearn.pipeline", "", _CHECKS + "check_pipeline", checker=_VERIFY + "pipeline"),
    "FeatureUnion": Foreign("sklearn.pipeline", _NAMES, _CHECKS + "check_union"),
    "GridSearchCV": _SEARCH,
    "RandomizedSearchCV": _SEARCH,
    "VotingClassifier": Foreign(
        "sklearn.ensemble",
        _MEMBERS + "le_: object; classes_: any[c]",
        _CHECKS + "check_voting",
        _RESTORE,
        ("named_estimators_",),
        _VERIFY + "voting",
    ),
    "VotingRegressor": Foreign(
        "sklearn.ensemble", _MEMBERS, _CHECKS + "check_voting", _RESTORE, ("named_estimators_",), _VERIFY + "voting"
    ),
    "StackingClassifier": Foreign(
        "sklearn.ensemble",
        _MEMBERS + "_label_encoder: object; classes_: any[c]; final_estimator_: object; stack_method_: object; "
        "_n_feature_outs: object",
        _CHECKS + "check_stacking",
        _RESTORE,
        ("named_estimators_",),
        _VERIFY + "stacking",
    ),
    "StackingRegressor": Foreign(
        "sklearn.ensemble",
        _MEMBERS + "final_estimator_: object; stack_method_: object; _n_feature_outs: object",
        _CHECKS + "check_stacking",
        _RESTORE,
        ("named_estimators_", "stack_method"),
        _VERIFY + "stacking",
    ),
}

#: Ways to cut rows into folds, and a choice of columns by dtype: objects that are their arguments and nothing else.
ARGUMENTS_ONLY: Final[dict[str, tuple[str, tuple[str, ...]]]] = {
    "KFold": ("sklearn.model_selection", ("n_splits", "shuffle", "random_state")),
    "StratifiedKFold": ("sklearn.model_selection", ("n_splits", "shuffle", "random_state")),
    "GroupKFold": ("sklearn.model_selection", ("n_splits", "shuffle", "random_state")),
    "TimeSeriesSplit": ("sklearn.model_selection", ("n_splits", "max_train_size", "test_size", "gap")),
    "ShuffleSplit": ("sklearn.model_selection", ("n_splits", "test_size", "train_size", "random_state")),
    "StratifiedShuffleSplit": ("sklearn.model_selection", ("n_splits", "test_size", "train_size", "random_state")),
    "LeaveOneOut": ("sklearn.model_selection", ()),
    "make_column_selector": ("sklearn.compose", ("pattern", "dtype_include", "dtype_exclude")),
}

#: Functions that may be a parameter; a file names them.
FUNCTIONS: Final[dict[str, str]] = {
    name: f"sklearn.feature_selection:{name}"
    for name in ("f_classif", "f_regression", "r_regression", "chi2", "mutual_info_classif", "mutual_info_regression")
}

#: Distributions of SciPy that a randomised search may draw from.
DISTRIBUTIONS: Final = (
    *("uniform", "loguniform", "reciprocal", "norm", "truncnorm", "expon", "gamma", "beta", "lognorm", "halfnorm"),
    *("randint", "poisson", "geom", "binom", "bernoulli"),
)

#: Types that may be a parameter, such as the dtype of an encoder's output.
TYPES: Final = (
    *("bool", "int", "float", "str", "object"),
    *("numpy.number", "numpy.integer", "numpy.floating", "numpy.object_", "numpy.bool_", "numpy.str_"),
    *(f"numpy.{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)),
    *("numpy.float16", "numpy.float32", "numpy.float64"),
)


#: Losses and penalties that can be a parameter of a saved model.
RISKS: Final[dict[str, Entry]] = {
    name: Entry(f"learnable.risk.{module}:{name}", estimator=False)
    for module, names in {
        "losses.regression": "SquaredLoss AbsoluteLoss HuberLoss EpsilonInsensitiveLoss SquaredEpsilonInsensitiveLoss "
        "PoissonLoss QuantileLoss GammaLoss DevianceLoss",
        "losses.margin": "LogisticLoss HingeLoss SquaredHingeLoss ExponentialLoss PerceptronLoss",
        "losses.multiclass": "SoftmaxLoss MulticlassHingeLoss",
        "penalties": "L1Penalty L2Penalty ElasticNetPenalty Lq",
        "norms": "NormPenalty GroupPenalty SupNormPenalty TotalVariationPenalty NuclearPenalty",
    }.items()
    for name in names.split()
}
