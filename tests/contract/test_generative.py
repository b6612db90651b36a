"""Naive Bayes, discriminants and neighbours keep scikit-learn's contract."""

from tests.contract.checks import WEIGHTS, contract_of, registered_models

from learnable.neighbors import KNeighborsClassifier, NearestNeighbors

FRACTIONS = "the check's rows are fractions, which are no categories; they are refused rather than cut off"
SINGULAR = "a class of the check has constant or dependent columns, so no density; scikit-learn's takes no weights"
EXPECTED_FAILURES = {
    "CategoricalNB": dict.fromkeys([WEIGHTS[0], "check_classifiers_one_label_sample_weights"], FRACTIONS),
    **{
        name: dict.fromkeys(
            [WEIGHTS[0], "check_sample_weights_shape", "check_sample_weights_not_overwritten"], SINGULAR
        )
        for name in ("QuadraticDiscriminantAnalysis", "GenerativeClassifier")
    },
}

test_sklearn_contract = contract_of(
    [*registered_models("generative"), *registered_models("neighbors"), NearestNeighbors()],
    lambda model: EXPECTED_FAILURES.get(type(model).__name__, {}),
    others=[
        KNeighborsClassifier(weights="distance", algorithm="kd_tree", p=1),
        NearestNeighbors(algorithm="kd_tree"),
    ],
)
