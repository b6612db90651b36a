"""Table models keep scikit-learn's contract."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from learnable import LogisticRegression, Ridge
from learnable.meta import TableModel


@pytest.mark.filterwarnings("ignore:.*stopped after")
@parametrize_with_checks(
    [TableModel(Ridge()), TableModel(LogisticRegression())],
)
def test_sklearn_contract(estimator, check):
    check(estimator)
