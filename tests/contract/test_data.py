"""The encoder of tables, and estimators that read their rows through the door, keep scikit-learn's contract."""

from tests.contract.checks import contract_of
from tests.data.toys import MajorityClassifier, MeanRegressor

from learnable.data import TableEncoder

test_sklearn_contract = contract_of([TableEncoder(), MeanRegressor(), MajorityClassifier()])
