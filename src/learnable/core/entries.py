"""What the registry says about one class: where it lives, who checks it, what kind of model it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final


@dataclass(frozen=True)
class Entry:
    """Where a class lives and who checks its certificate.

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
