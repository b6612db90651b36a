"""Every registered model keeps scikit-learn's contract in full; encoders and wrappers are checked in their packages."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from learnable.core.registry import REGISTRY, registered_class

#: No check is expected to fail; an entry here needs one line of reason.
ONE_LONG_STEP = "a perceptron answers a row of weight 2 by one step of twice the length, not by two steps"
DRAWN = "weights are chances of being drawn, as in scikit-learn: repeated rows give other random bags"
FRACTIONS = "the check's rows are fractions, which are no categories; they are refused rather than cut off"
SINGULAR = "a class of the check has constant or dependent columns, so no density; scikit-learn's takes no weights"
LAST_DIGITS = "equal gains are told apart by the last digits of sums, which repeated rows change; so in scikit-learn"
NO_OFFSET = "without an offset even a class of weight 1e-4 owns the region that no row of the others comes near"
TO_TOLERANCE = "both machines are right to the tolerance of 1e-3, not to the last digits; so in scikit-learn"
INFEASIBLE = "the check weighs its classes so differently that nu=0.5 has no machine; so in scikit-learn"
BATCHES = "mini-batches of repeated rows are others than mini-batches of weighted rows"
EXPECTED_FAILURES: dict[str, dict[str, str]] = {
    "KernelRidgeClassifier": {"check_class_weight_classifiers": NO_OFFSET},
    **{
        name: {
            "check_sample_weight_equivalence_on_dense_data": DRAWN,
            "check_sample_weight_equivalence_on_sparse_data": DRAWN,
        }
        for name in ("RandomForestClassifier", "RandomForestRegressor")
    },
    **{
        name: {
            "check_sample_weight_equivalence_on_dense_data": BATCHES,
            "check_sample_weight_equivalence_on_sparse_data": BATCHES,
        }
        for family in ("MLP", "ResNet", "LSTM", "RNN")
        for name in (f"{family}Classifier", f"{family}Regressor")
    },
    "CategoricalNB": {
        "check_sample_weight_equivalence_on_dense_data": FRACTIONS,
        "check_classifiers_one_label_sample_weights": FRACTIONS,
    },
    **{
        name: {
            "check_sample_weights_shape": SINGULAR,
            "check_sample_weights_not_overwritten": SINGULAR,
            "check_sample_weight_equivalence_on_dense_data": SINGULAR,
        }
        for name in ("QuadraticDiscriminantAnalysis", "GenerativeClassifier")
    },
    **{
        name: {
            "check_sample_weight_equivalence_on_dense_data": LAST_DIGITS,
            "check_sample_weight_equivalence_on_sparse_data": LAST_DIGITS,
        }
        for name in ("GradientBoostingClassifier", "GradientBoostingRegressor")
    },
    **{
        name: {
            "check_sample_weight_equivalence_on_dense_data": TO_TOLERANCE,
            "check_sample_weight_equivalence_on_sparse_data": TO_TOLERANCE,
        }
        for name in ("SVC", "SVR", "NuSVR")
    },
    "NuSVC": {
        "check_sample_weight_equivalence_on_dense_data": INFEASIBLE,
        "check_sample_weight_equivalence_on_sparse_data": INFEASIBLE,
        "check_class_weight_classifiers": INFEASIBLE,
    },
    "Perceptron": {
        "check_sample_weight_equivalence_on_dense_data": ONE_LONG_STEP,
        "check_sample_weight_equivalence_on_sparse_data": ONE_LONG_STEP,
    },
}


def brief(model):
    """Return the model with fewer members, rounds or penalties: the contract is the same."""
    known = model.get_params(deep=False)
    fewer = {"n_estimators": 20, "alphas": 10, "max_iter": 20 if "max_leaf_nodes" in known else None}
    if "groups" in known and "class_weight" in known:
        model.set_params(size=1)  # a tree for every size takes long on the checks' tables, some of one column
    if "noise_variance" in known:
        model.set_params(noise_variance=1.0)  # some checks have fewer rows than columns
    if "use_legacy_attributes" in known:  # quiet, and few folds: a check has three rows of each class
        model.set_params(Cs=3, cv=3, l1_ratios=(0,), scoring="accuracy", use_legacy_attributes=False)
    return model.set_params(**{k: n for k, n in fewer.items() if n and isinstance(known.get(k), int) and known[k] > n})


@pytest.mark.filterwarnings("ignore:.*stopped after")
@parametrize_with_checks(
    [brief(registered_class(name)()) for name, entry in REGISTRY.items() if entry.traits],
    expected_failed_checks=lambda estimator: EXPECTED_FAILURES.get(type(estimator).__name__, {}),
)
def test_sklearn_contract(estimator, check):
    check(estimator)
