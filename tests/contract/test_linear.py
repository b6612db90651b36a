"""Linear models and features keep scikit-learn's contract."""

from tests.contract.checks import WEIGHTS, contract_of, registered_models

from learnable.linear import BasisExpansion, BestSubset, BSplines, PolynomialFeatures

ONE_LONG_STEP = "a perceptron answers a row of weight 2 by one step of twice the length, not by two steps"
EXPECTED_FAILURES = {"Perceptron": dict.fromkeys(WEIGHTS, ONE_LONG_STEP)}

test_sklearn_contract = contract_of(
    [*registered_models("linear"), PolynomialFeatures(), BasisExpansion()],
    lambda model: EXPECTED_FAILURES.get(type(model).__name__, {}),
    others=[
        BestSubset(),
        PolynomialFeatures(3, interaction_only=True, include_bias=False),
        BasisExpansion([BSplines(4, 2), "tanh"], include_bias=True),
    ],
)
