"""Models that wrap models keep scikit-learn's contract, in all their methods."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from learnable.evaluation import CalibratedClassifier, ConformalClassifier, ConformalRegressor

#: What is expected to fail, with the reason.
SPLIT_COUNTS_ROWS = {
    "check_sample_weight_equivalence_on_dense_data": "a split counts rows: a repeated row can be on both of its sides",
    "check_sample_weight_equivalence_on_sparse_data": "a split counts rows: a repeated row can be on both of its sides",
}
#: With cv=5 (as here with its 10 rows of 3 classes) check_fit2d_1feature meets a class of 3 rows, which is refused.
FOLDS = 3


def expected_failures(estimator):
    return SPLIT_COUNTS_ROWS if getattr(estimator, "method", None) == "split" else {}


@pytest.mark.filterwarnings("ignore:.*calibration rows")
@parametrize_with_checks(
    [
        ConformalRegressor(),
        ConformalRegressor(method="cv+"),
        ConformalRegressor(method="jackknife+"),
        ConformalClassifier(),
        ConformalClassifier(method="cv+", conformity_score="lac"),
        CalibratedClassifier(cv=FOLDS),
        CalibratedClassifier(method="isotonic", ensemble=False, cv=FOLDS),
        CalibratedClassifier(method="temperature", cv=FOLDS),
    ],
    expected_failed_checks=expected_failures,
)
def test_sklearn_contract(estimator, check):
    check(estimator)
