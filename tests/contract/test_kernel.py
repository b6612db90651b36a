"""Kernel machines, Gaussian processes and features of kernels keep scikit-learn's contract."""

from tests.contract.checks import WEIGHTS, contract_of, registered_models

from learnable.kernel import KernelPCA, Nystroem, OneClassSVM, RBFSampler

NO_OFFSET = "without an offset even a class of weight 1e-4 owns the region that no row of the others comes near"
TO_TOLERANCE = "both machines are right to the tolerance of 1e-3, not to the last digits; so in scikit-learn"
INFEASIBLE = "the check weighs its classes so differently that nu=0.5 has no machine; so in scikit-learn"
EXPECTED_FAILURES = {
    "KernelRidgeClassifier": {"check_class_weight_classifiers": NO_OFFSET},
    "NuSVC": dict.fromkeys([*WEIGHTS, "check_class_weight_classifiers"], INFEASIBLE),
    **{name: dict.fromkeys(WEIGHTS, TO_TOLERANCE) for name in ("SVC", "SVR", "NuSVR", "OneClassSVM")},
}

test_sklearn_contract = contract_of(
    [*registered_models("kernel"), OneClassSVM(), KernelPCA(), Nystroem(n_components=5), RBFSampler(n_components=5)],
    lambda model: EXPECTED_FAILURES.get(type(model).__name__, {}),
)
