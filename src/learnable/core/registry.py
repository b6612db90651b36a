"""Every model this library can build, by name, without importing one.

A class is named as `"module:Class"`, its independent checker as `"module:function"`. The registry is the only list
of classes that a model file may name, and the list that `learnable models`, the coverage table and the contract
tests read.
"""

from __future__ import annotations

import difflib
from dataclasses import replace
from importlib import import_module
from typing import Any, Final

from .entries import KERNEL_MACHINES, KERNELS, MANIFOLDS, RISKS
from .entries import Entry as Entry
from .entries import Traits as Traits
from .entries_linear import LINEAR_CHOICES, SELECTORS
from .entries_topics import TOPICS
from .errors import ModelFileError, ParameterError

_REGRESSION = ("regression",)
_CLASSES = ("binary", "multiclass")
_RESIDUAL = "relative residual of the normal equations"
_NEIGHBOURS = "that the neighbours found are the nearest rows"
_ESTIMATES = "that the estimates follow from the sums over each class"
_LINEAR_REGRESSION = Traits("linear", _REGRESSION, False, True, _RESIDUAL)
_SPARSE_REGRESSION = Traits("linear", _REGRESSION, False, True, "relative duality gap to the optimum")
_SEVERAL_TARGETS = replace(_SPARSE_REGRESSION, targets="several")
_STEPS = Traits("linear", _REGRESSION, False, True, "that every step is the best of its candidates")
_DEVIANCE = Traits("linear", _REGRESSION, False, True, "relative duality gap, or relative gradient, of the deviance")
_KKT = "violation of the optimality conditions, with a relative duality gap"
_SVM_CLASSES = Traits("kernel", _CLASSES, False, False, _KKT)
_SVM_REGRESSION = Traits("kernel", _REGRESSION, False, False, _KKT)

REGISTRY: Final[dict[str, Entry]] = {
    "LinearRegression": Entry(
        "learnable.linear.least_squares.linear_regression:LinearRegression",
        "learnable.linear.verify:least_squares",
        traits=_LINEAR_REGRESSION,
        variants=({},),
    ),
    "Ridge": Entry(
        "learnable.linear.least_squares.ridge:Ridge",
        "learnable.linear.verify:ridge",
        traits=_LINEAR_REGRESSION,
        variants=({"alpha": 1.0}, {"alpha": 100.0}),
    ),
    "RidgeCV": Entry(
        "learnable.linear.least_squares.ridge_cv:RidgeCV",
        "learnable.linear.verify:ridge",
        traits=_LINEAR_REGRESSION,
        variants=({"alphas": [0.01, 0.1, 1.0, 10.0, 100.0, 1000.0, 10000.0]},),
    ),
    "BayesianLinearRegression": Entry(
        "learnable.linear.bayesian.regression:BayesianLinearRegression",
        "learnable.linear.verify_bayesian:bayesian",
        traits=Traits("linear", _REGRESSION, False, True, "residual of the equations of greatest evidence"),
        variants=({},),
    ),
    "LogisticRegression": Entry(
        "learnable.linear.logistic.regression:LogisticRegression",
        "learnable.linear.verify_glm:logistic",
        traits=Traits("linear", _CLASSES, False, True, "relative duality gap to the optimum"),
        variants=({"C": 1.0}, {"C": 0.01}, {"C": 100.0}, {"C": 1.0, "l1_ratio": 1.0}),
    ),
    "PoissonRegressor": Entry(
        "learnable.linear.glm.regression:PoissonRegressor",
        "learnable.linear.verify_glm:glm",
        traits=replace(_DEVIANCE, targets="counts"),
        variants=({"alpha": 0.01},),
    ),
    "GammaRegressor": Entry(
        "learnable.linear.glm.regression:GammaRegressor",
        "learnable.linear.verify_glm:glm",
        traits=replace(_DEVIANCE, targets="positive"),
        variants=({"alpha": 0.01},),
    ),
    "TweedieRegressor": Entry(
        "learnable.linear.glm.regression:TweedieRegressor",
        "learnable.linear.verify_glm:glm",
        traits=_DEVIANCE,
    ),
    "GLM": Entry(
        "learnable.linear.glm.general:GLM",
        "learnable.linear.verify_likelihood:glm",
        traits=Traits("linear", _REGRESSION, False, True, "distance from the greatest likelihood, in standard errors"),
    ),
    "LinearSVC": Entry(
        "learnable.linear.margin.svm:LinearSVC",
        "learnable.linear.verify_svm:linear_svc",
        traits=Traits("linear", _CLASSES, False, True, "relative duality gap to the optimum"),
        variants=({"C": 1.0}, {"C": 0.01}),
        only_scores=True,
    ),
    "LinearSVR": Entry(
        "learnable.linear.margin.svm:LinearSVR",
        "learnable.linear.verify_svm:linear_svr",
        traits=Traits("linear", _REGRESSION, False, True, "relative duality gap to the optimum"),
        variants=({"C": 1.0},),
        scales_target=True,
    ),
    "SVC": Entry(
        "learnable.kernel.svm.svc:SVC",
        "learnable.kernel.verify_svm:svc",
        traits=_SVM_CLASSES,
        variants=({"C": 1.0}, {"C": 10.0}),
        most_rows=20_000,
        only_scores=True,
    ),
    "NuSVC": Entry(
        "learnable.kernel.svm.svc:NuSVC", "learnable.kernel.verify_svm:nu_svc", traits=_SVM_CLASSES, only_scores=True
    ),
    "SVR": Entry(
        "learnable.kernel.svm.svr:SVR",
        "learnable.kernel.verify_svm:svr",
        traits=_SVM_REGRESSION,
        variants=({"C": 1.0}, {"C": 10.0}),
        most_rows=20_000,
        scales_target=True,
    ),
    "NuSVR": Entry(
        "learnable.kernel.svm.svr:NuSVR",
        "learnable.kernel.verify_svm:nu_svr",
        traits=_SVM_REGRESSION,
        scales_target=True,
    ),
    "OneClassSVM": Entry("learnable.kernel.svm.svr:OneClassSVM", "learnable.kernel.verify_svm:one_class"),
    "Perceptron": Entry(
        "learnable.linear.margin.perceptron:Perceptron",
        "learnable.linear.verify_svm:perceptron",
        traits=Traits("linear", _CLASSES, False, True, "that the rows are separated, where they can be"),
        only_scores=True,
    ),
    "DecisionTreeClassifier": Entry(
        "learnable.trees.decision_tree:DecisionTreeClassifier",
        "learnable.trees.verify:decision_tree",
        traits=Traits("trees", _CLASSES, False, False, "that every split is the best of its candidates"),
        variants=({"ccp_alpha": "cv-1se"}, {"max_depth": 6}),
    ),
    "DecisionTreeRegressor": Entry(
        "learnable.trees.decision_tree:DecisionTreeRegressor",
        "learnable.trees.verify:decision_tree",
        traits=Traits("trees", _REGRESSION, False, False, "that every split is the best of its candidates"),
        variants=({"ccp_alpha": "cv-1se"}, {"max_depth": 6}),
    ),
    "ID3Classifier": Entry(
        "learnable.trees.id3:ID3Classifier",
        "learnable.trees.verify_id3:id3",
        traits=Traits("trees", _CLASSES, False, False, "that every split is the best of its candidates"),
    ),
    "PolynomialFeatures": Entry("learnable.linear.features.polynomial:PolynomialFeatures"),
    "BasisExpansion": Entry("learnable.linear.features.basis:BasisExpansion"),
    "BestSubset": Entry(
        "learnable.linear.subset.best_subset:BestSubset",
        "learnable.linear.verify_subset:best_subset",
        traits=Traits("linear", _REGRESSION, False, True, "relative gap to the best subset, by the tree of the search"),
    ),
    "ForwardStepwise": Entry(
        "learnable.linear.subset.stepwise:ForwardStepwise", "learnable.linear.verify_subset:stepwise", traits=_STEPS
    ),
    "BackwardStepwise": Entry(
        "learnable.linear.subset.stepwise:BackwardStepwise", "learnable.linear.verify_subset:stepwise", traits=_STEPS
    ),
    "ForwardStagewise": Entry(
        "learnable.linear.subset.stagewise:ForwardStagewise", "learnable.linear.verify_subset:stagewise", traits=_STEPS
    ),
    "LassoLars": Entry(
        "learnable.linear.subset.lars:LassoLars", "learnable.linear.verify_subset:lasso_lars", traits=_SPARSE_REGRESSION
    ),
    "ElasticNet": Entry(
        "learnable.linear.sparse.elastic_net:ElasticNet",
        "learnable.linear.verify_sparse:elastic_net",
        traits=_SPARSE_REGRESSION,
        variants=({"alpha": 0.1}, {"alpha": 0.01}),
    ),
    "Lasso": Entry(
        "learnable.linear.sparse.elastic_net:Lasso",
        "learnable.linear.verify_sparse:elastic_net",
        traits=_SPARSE_REGRESSION,
        variants=({"alpha": 0.1}, {"alpha": 0.01}),
    ),
    "LassoCV": Entry(
        "learnable.linear.sparse.lasso_cv:LassoCV",
        "learnable.linear.verify_sparse:elastic_net",
        traits=_SPARSE_REGRESSION,
        variants=({},),
    ),
    "ElasticNetCV": Entry(
        "learnable.linear.sparse.lasso_cv:ElasticNetCV",
        "learnable.linear.verify_sparse:elastic_net",
        traits=_SPARSE_REGRESSION,
    ),
    "MultiTaskLasso": Entry(
        "learnable.linear.sparse.elastic_net:MultiTaskLasso",
        "learnable.linear.verify_sparse:multi_task",
        traits=_SEVERAL_TARGETS,
    ),
    "MultiTaskElasticNet": Entry(
        "learnable.linear.sparse.elastic_net:MultiTaskElasticNet",
        "learnable.linear.verify_sparse:multi_task",
        traits=_SEVERAL_TARGETS,
    ),
    "KNeighborsClassifier": Entry(
        "learnable.neighbors.voting:KNeighborsClassifier",
        "learnable.neighbors.verify:neighbors",
        traits=Traits("neighbors", _CLASSES, False, False, _NEIGHBOURS),
        variants=({"n_neighbors": 5}, {"n_neighbors": 25, "weights": "distance"}),
    ),
    "KNeighborsRegressor": Entry(
        "learnable.neighbors.voting:KNeighborsRegressor",
        "learnable.neighbors.verify:neighbors",
        traits=Traits("neighbors", _REGRESSION, False, False, _NEIGHBOURS),
        variants=({"n_neighbors": 5}, {"n_neighbors": 25, "weights": "distance"}),
    ),
    "NearestNeighbors": Entry("learnable.neighbors.nearest:NearestNeighbors", "learnable.neighbors.verify:neighbors"),
    "GaussianNB": Entry(
        "learnable.generative.gaussian_nb:GaussianNB",
        "learnable.generative.verify:gaussian_nb",
        traits=Traits("generative", _CLASSES, True, True, _ESTIMATES),
        variants=({},),
    ),
    "MultinomialNB": Entry(
        "learnable.generative.counts_nb:MultinomialNB",
        "learnable.generative.verify:counts_nb",
        traits=Traits("generative", _CLASSES, True, True, _ESTIMATES),
    ),
    "BernoulliNB": Entry(
        "learnable.generative.counts_nb:BernoulliNB",
        "learnable.generative.verify:counts_nb",
        traits=Traits("generative", _CLASSES, True, True, _ESTIMATES),
    ),
    "CategoricalNB": Entry(
        "learnable.generative.categorical_nb:CategoricalNB",
        "learnable.generative.verify:counts_nb",
        traits=Traits("generative", _CLASSES, True, True, _ESTIMATES),
    ),
    "LinearDiscriminantAnalysis": Entry(
        "learnable.generative.discriminant:LinearDiscriminantAnalysis",
        "learnable.generative.verify:linear_discriminant",
        traits=Traits("generative", _CLASSES, True, True, "relative residual of the equations of the rule"),
        variants=({}, {"solver": "lsqr", "shrinkage": "auto"}),
    ),
    "QuadraticDiscriminantAnalysis": Entry(
        "learnable.generative.quadratic:QuadraticDiscriminantAnalysis",
        "learnable.generative.verify:quadratic_discriminant",
        traits=Traits("generative", _CLASSES, True, True, _ESTIMATES),
        variants=({"solver": "eigen", "shrinkage": "auto"},),
    ),
    "GenerativeClassifier": Entry(
        "learnable.generative.classifier:GenerativeClassifier",
        "learnable.generative.verify:generative_classifier",
        traits=Traits(
            "generative", _CLASSES, True, True, "that exponential families have the mean statistics of the rows"
        ),
    ),
    "CategoricalHMM": Entry("learnable.sequences.discrete:CategoricalHMM", "learnable.sequences.verify:hmm"),
    "GaussianHMM": Entry("learnable.sequences.gaussian:GaussianHMM", "learnable.sequences.verify:hmm"),
    "GMMHMM": Entry("learnable.sequences.gaussian_mixture:GMMHMM", "learnable.sequences.verify:mixture_hmm"),
    "PoissonHMM": Entry("learnable.sequences.discrete:PoissonHMM", "learnable.sequences.verify:hmm"),
    **KERNEL_MACHINES,
    **MANIFOLDS,
    **TOPICS,
    **LINEAR_CHOICES,
    **SELECTORS,
    "TableEncoder": Entry("learnable.data.encoder:TableEncoder"),
    "TableModel": Entry("learnable.meta.table_model:TableModel", "learnable.meta.verify:table_model"),
    "BlendRegressor": Entry("learnable.meta.blend:BlendRegressor", "learnable.meta.verify:blend"),
    "BlendClassifier": Entry("learnable.meta.blend:BlendClassifier", "learnable.meta.verify:blend"),
    "ScaledTargetRegressor": Entry(
        "learnable.meta.scaled_target:ScaledTargetRegressor", "learnable.meta.verify:scaled_target"
    ),
    "RegularizedRisk": Entry(
        "learnable.meta.regularized.model:RegularizedRisk", "learnable.meta.verify_regularized:regularized_risk"
    ),
    "OneVsRestClassifier": Entry("learnable.meta.one_vs_rest:OneVsRestClassifier", "learnable.meta.verify:one_vs_rest"),
    "OneVsOneClassifier": Entry("learnable.meta.one_vs_one:OneVsOneClassifier", "learnable.meta.verify:one_vs_one"),
    "BaggingClassifier": Entry(
        "learnable.ensembles.bagging.models:BaggingClassifier", "learnable.ensembles.verify:bagging"
    ),
    "BaggingRegressor": Entry(
        "learnable.ensembles.bagging.models:BaggingRegressor", "learnable.ensembles.verify:bagging"
    ),
    "AdaBoostClassifier": Entry(
        "learnable.ensembles.adaboost.classifier:AdaBoostClassifier",
        "learnable.ensembles.verify_adaboost:adaboost_classifier",
        traits=Traits("ensembles", _CLASSES, False, False, "that every stump is the best for its weights"),
        variants=({"n_estimators": 100},),
    ),
    "AdaBoostRegressor": Entry(
        "learnable.ensembles.adaboost.regressor:AdaBoostRegressor",
        "learnable.ensembles.verify_adaboost:adaboost_regressor",
        traits=Traits("ensembles", _REGRESSION, False, False, "that errors and weights follow from the data"),
        variants=({},),
    ),
    "BoostByMajority": Entry(
        "learnable.ensembles.majority.model:BoostByMajority",
        "learnable.ensembles.verify_majority:boost_by_majority",
        traits=Traits("ensembles", ("binary",), False, False, "that every vote of three errs at most on 3ε² − 2ε³"),
    ),
    "ForwardStagewiseAdditive": Entry(
        "learnable.ensembles.stagewise:ForwardStagewiseAdditive",
        "learnable.ensembles.verify_stagewise:stagewise",
        traits=Traits("ensembles", _REGRESSION, False, False, "that every step is the best along its direction"),
    ),
    "RandomForestClassifier": Entry(
        "learnable.ensembles.forest.models:RandomForestClassifier",
        "learnable.ensembles.verify:forest",
        traits=Traits("ensembles", _CLASSES, False, False, "that every split is the best of its candidates"),
        variants=({}, {"min_samples_leaf": 5}),
    ),
    "RandomForestRegressor": Entry(
        "learnable.ensembles.forest.models:RandomForestRegressor",
        "learnable.ensembles.verify:forest",
        traits=Traits("ensembles", _REGRESSION, False, False, "that every split is the best of its candidates"),
        variants=({"max_features": "third"}, {"max_features": "third", "min_samples_leaf": 5}),
    ),
    "ExtraTreesClassifier": Entry(
        "learnable.ensembles.forest.models:ExtraTreesClassifier",
        "learnable.ensembles.verify:forest",
        traits=Traits("ensembles", _CLASSES, False, False, "that every split is the best of its candidates"),
        variants=({},),
    ),
    "ExtraTreesRegressor": Entry(
        "learnable.ensembles.forest.models:ExtraTreesRegressor",
        "learnable.ensembles.verify:forest",
        traits=Traits("ensembles", _REGRESSION, False, False, "that every split is the best of its candidates"),
        variants=({},),
    ),
    "GaussianMixture": Entry(
        "learnable.mixtures.gaussian:GaussianMixture", "learnable.mixtures.verify_gaussian:gaussian_mixture"
    ),
    "MixtureModel": Entry("learnable.mixtures.mixture:MixtureModel", "learnable.mixtures.verify_mixture:mixture_model"),
    "VariationalGaussianMixture": Entry(
        "learnable.mixtures.variational:VariationalGaussianMixture",
        "learnable.mixtures.verify_gaussian:variational_mixture",
    ),
    "MixtureOfExperts": Entry(
        "learnable.mixtures.experts:MixtureOfExperts", "learnable.mixtures.verify:mixture_of_experts"
    ),
    "KMeans": Entry("learnable.mixtures.kmeans:KMeans", "learnable.mixtures.verify:kmeans"),
    "KMedoids": Entry("learnable.mixtures.medoids:KMedoids", "learnable.mixtures.verify:kmedoids"),
    "MiniBatchKMeans": Entry(
        "learnable.mixtures.mini_batch:MiniBatchKMeans", "learnable.mixtures.verify:mini_batch_kmeans"
    ),
    "GradientBoostingClassifier": Entry(
        "learnable.ensembles.gradient.exact:GradientBoostingClassifier",
        "learnable.ensembles.gradient.verify:boosting",
        traits=Traits("ensembles", _CLASSES, False, False, "that every split is the best of its candidates"),
        variants=({},),
    ),
    "GradientBoostingRegressor": Entry(
        "learnable.ensembles.gradient.exact:GradientBoostingRegressor",
        "learnable.ensembles.gradient.verify:boosting",
        traits=Traits("ensembles", _REGRESSION, False, False, "that every split is the best of its candidates"),
        variants=({},),
    ),
    "HistGradientBoostingClassifier": Entry(
        "learnable.ensembles.gradient.hist:HistGradientBoostingClassifier",
        "learnable.ensembles.gradient.verify:boosting",
        traits=Traits("ensembles", _CLASSES, False, False, "that every split is the best of its candidates"),
        variants=({},),
    ),
    "HistGradientBoostingRegressor": Entry(
        "learnable.ensembles.gradient.hist:HistGradientBoostingRegressor",
        "learnable.ensembles.gradient.verify:boosting",
        traits=Traits("ensembles", _REGRESSION, False, False, "that every split is the best of its candidates"),
        variants=({},),
    ),
    "MLPClassifier": Entry(
        "learnable.neural.mlp:MLPClassifier",
        "learnable.neural.verify:network",
        traits=Traits("neural", _CLASSES, False, True, "the gradient of full-batch fits; else nothing"),
        variants=({"preset": "table"},),
    ),
    "MLPRegressor": Entry(
        "learnable.neural.mlp:MLPRegressor",
        "learnable.neural.verify:network",
        traits=Traits("neural", _REGRESSION, False, True, "the gradient of full-batch fits; else nothing"),
        variants=({"preset": "table"},),
    ),
    "ResNetClassifier": Entry("learnable.neural.resnet:ResNetClassifier", "learnable.neural.verify:network"),
    "ResNetRegressor": Entry("learnable.neural.resnet:ResNetRegressor", "learnable.neural.verify:network"),
    "LSTMClassifier": Entry("learnable.neural.recurrent:LSTMClassifier", "learnable.neural.verify_sequences:sequences"),
    "LSTMRegressor": Entry("learnable.neural.recurrent:LSTMRegressor", "learnable.neural.verify_sequences:sequences"),
    "RNNClassifier": Entry("learnable.neural.recurrent:RNNClassifier", "learnable.neural.verify_sequences:sequences"),
    "RNNRegressor": Entry("learnable.neural.recurrent:RNNRegressor", "learnable.neural.verify_sequences:sequences"),
    "CalibratedClassifier": Entry(
        "learnable.evaluation.calibration:CalibratedClassifier", "learnable.evaluation.verify:calibrated_classifier"
    ),
    "ConformalRegressor": Entry(
        "learnable.evaluation.conformal.models:ConformalRegressor", "learnable.evaluation.verify:conformal_regressor"
    ),
    "ConformalClassifier": Entry(
        "learnable.evaluation.conformal.models:ConformalClassifier",
        "learnable.evaluation.verify:conformal_classifier",
    ),
    "MDPSolution": Entry(
        "learnable.decisions.mdp.solution:MDPSolution", "learnable.decisions.mdp.verify:bellman", estimator=False
    ),
    **{
        name: Entry(f"learnable.decisions.bandits.{module}:{name}", estimator=False)
        for module, names in {
            "policies": "RandomArm ExploreThenCommit EpsilonGreedy UCB LCB MOSS KLUCB EXP3 EXP3IX SlidingWindowUCB "
            "DiscountedUCB BudgetUCB Thompson",
            "posterior_sampling": "PosteriorSampling",
            "linear": "LinUCB LinearThompson",
            "combinatorial": "CombinatorialUCB SuccessiveRejects LUCB",
        }.items()
        for name in names.split()
    },
    **{
        name: Entry(f"learnable.decisions.rl.learners:{name}", estimator=False)
        for name in (
            *("QLearning", "Sarsa", "ExpectedSarsa", "DoubleQLearning", "NStepSarsa", "SarsaLambda", "DynaQ"),
            *("MonteCarlo", "OffPolicyMonteCarlo"),
        )
    },
    **{
        name: Entry(
            f"learnable.decisions.rl.deep.{module}:{name}", "learnable.decisions.rl.deep.verify:policy", estimator=False
        )
        for name, module in (("DQN", "dqn"), ("ActorCritic", "policy_gradient"), ("Reinforce", "policy_gradient"))
    },
    "CategoryTree": Entry("learnable.trees.category_tree:CategoryTree", estimator=False),
    "Stumps": Entry("learnable.ensembles.adaboost.stumps:Stumps", estimator=False),
    "LeafTargets": Entry("learnable.ensembles.forest.grow:LeafTargets", estimator=False),
    "AlphaChoice": Entry("learnable.trees.pruning.cost_complexity:AlphaChoice", estimator=False),
    "Identity": Entry("learnable.neural.layers.activations:Identity", estimator=False),
    "Logistic": Entry("learnable.neural.layers.activations:Logistic", estimator=False),
    "Tanh": Entry("learnable.neural.layers.activations:Tanh", estimator=False),
    "Threshold": Entry("learnable.neural.layers.activations:Threshold", estimator=False),
    "ReLU": Entry("learnable.neural.layers.activations:ReLU", estimator=False),
    "LeakyReLU": Entry("learnable.neural.layers.activations:LeakyReLU", estimator=False),
    "GELU": Entry("learnable.neural.layers.activations:GELU", estimator=False),
    "SiLU": Entry("learnable.neural.layers.activations:SiLU", estimator=False),
    "Trees": Entry("learnable.trees.layout:Trees", estimator=False),
    "BSplines": Entry("learnable.linear.features.basis:BSplines", estimator=False),
    "Sigmoid": Entry("learnable.evaluation.calibration:Sigmoid", estimator=False),
    "Isotonic": Entry("learnable.evaluation.calibration:Isotonic", estimator=False),
    "Temperature": Entry("learnable.evaluation.calibration:Temperature", estimator=False),
    **KERNELS,
    **RISKS,
    "Chains": Entry("learnable.sampling.chains:Chains", "learnable.sampling.verify:chains", estimator=False),
    "Certificate": Entry("learnable.core.estimator:Certificate", estimator=False),
}


def resolve(path: str) -> Any:
    """Import `"module:name"` and return the object."""
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)


def registered_class(name: str) -> type:
    """Return the class called `name`; a name that is not in the registry is refused, never looked up elsewhere."""
    if name not in REGISTRY:
        raise ModelFileError(f"load: the file names the class {name!r}, which this version of learnable does not know.")
    return resolve(REGISTRY[name].path)  # type: ignore[no-any-return]


def registered_name(cls: type) -> str | None:
    """Return the name under which `cls` itself (not a subclass) is registered, or None."""
    entry = REGISTRY.get(cls.__name__)
    return cls.__name__ if entry and entry.path == f"{cls.__module__}:{cls.__qualname__}" else None


def check_model_name(owner: str, name: str) -> None:
    """Raise ParameterError, in the name of `owner`, unless the registry has a model of this name."""
    known = [known for known in estimator_names() if REGISTRY[known].traits is not None]
    if name in REGISTRY and name not in known:
        raise ParameterError(
            f"{owner}: {name} predicts no column of a table; call it from Python. `learnable models` lists what does."
        )
    if name not in known:
        close = difflib.get_close_matches(name, known, 1)
        hint = f"did you mean {close[0]}? " if close else ""
        raise ParameterError(f"{owner}: there is no model {name!r}; {hint}`learnable models` lists them.")


def check_one_target(owner: str, name: str) -> None:
    """Raise ParameterError, in the name of `owner`, if a model is made for several targets per row."""
    traits = REGISTRY[name].traits
    if traits is not None and traits.targets == "several":
        single = name.removeprefix("MultiTask")
        hint = f"use {single} for it, or " if single != name and single in REGISTRY else ""
        raise ParameterError(
            f"{owner}: {name} predicts several targets per row, and here is one column; {hint}call {name} from Python."
        )


def estimator_names() -> list[str]:
    """Return the names of all registered estimators, in the registry's order."""
    return [name for name, entry in REGISTRY.items() if entry.estimator]
