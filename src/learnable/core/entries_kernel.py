"""The registry's entries of kernel machines, and of the kernels that models may be saved with."""

from __future__ import annotations

from typing import Final

from .entries import Entry, Traits

_REGRESSION, _CLASSES = ("regression",), ("binary", "multiclass")
_EQUATIONS = "relative residual of the equations of the coefficients"

#: Their cost grows with the cube of the rows: a comparison races some, on short tables; the others only when named.
KERNEL_MACHINES: Final[dict[str, Entry]] = {
    "KernelRidge": Entry(
        "learnable.kernel.ridge.regression:KernelRidge",
        "learnable.kernel.verify_ridge:kernel_ridge",
        traits=Traits("kernel", _REGRESSION, False, False, _EQUATIONS),
        variants=tuple({"kernel": "rbf", "alpha": alpha} for alpha in (0.01, 0.1, 1.0)),
        most_rows=5000,
        scales_target=True,
    ),
    "KernelRidgeClassifier": Entry(
        "learnable.kernel.ridge.regression:KernelRidgeClassifier",
        "learnable.kernel.verify_ridge:kernel_ridge_classifier",
        traits=Traits("kernel", _CLASSES, False, False, _EQUATIONS),
        only_scores=True,
    ),
    "KernelRidgeCV": Entry(
        "learnable.kernel.ridge.ridge_cv:KernelRidgeCV",
        "learnable.kernel.verify_ridge:kernel_ridge",
        traits=Traits("kernel", _REGRESSION, False, False, _EQUATIONS),
        scales_target=True,
    ),
    "KernelLogisticRegression": Entry(
        "learnable.kernel.logistic.regression:KernelLogisticRegression",
        "learnable.kernel.verify_logistic:kernel_logistic",
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
    "Trend": Entry("learnable.kernel.gp.means:Trend", estimator=False),
    "KernelPCA": Entry("learnable.kernel.features.pca:KernelPCA", "learnable.kernel.verify_pca:kernel_pca"),
    "Nystroem": Entry("learnable.kernel.features.approximations:Nystroem"),
    "RBFSampler": Entry("learnable.kernel.features.approximations:RBFSampler"),
}


def _parts(module: str, *names: str) -> dict[str, Entry]:
    return {name: Entry(f"learnable.risk.kernels.{module}:{name}", estimator=False) for name in names}


#: Kernels that can be a parameter of a saved model; functions cannot.
KERNELS: Final[dict[str, Entry]] = {
    **_parts("dot", "Linear", "Polynomial", "Constant", "White"),
    **_parts("stationary", "Gaussian", "DoubleExponential", "Matern", "RationalQuadratic", "Periodic"),
    **_parts("composed", "Sum", "Product", "Scaled", "Restricted", "Precomputed"),
}
