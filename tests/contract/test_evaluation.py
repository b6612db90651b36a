"""Models with intervals and with calibrated probabilities keep scikit-learn's contract, in all their methods."""

import pytest
from tests.contract.checks import WEIGHTS, contract_of

from learnable.evaluation import CalibratedClassifier, ConformalClassifier, ConformalRegressor

SPLIT_COUNTS_ROWS = "a split counts rows: a repeated row can be on both of its sides"
#: With cv=5 (as here with its 10 rows of 3 classes) check_fit2d_1feature meets a class of 3 rows, which is refused.
FOLDS = 3


def expected_failures(model):
    return dict.fromkeys(WEIGHTS, SPLIT_COUNTS_ROWS) if getattr(model, "method", None) == "split" else {}


test_sklearn_contract = pytest.mark.filterwarnings("ignore:.*calibration rows")(
    contract_of(
        [ConformalRegressor(), ConformalRegressor(method="cv+"), ConformalClassifier(), CalibratedClassifier(cv=FOLDS)],
        expected_failures,
        others=[
            ConformalRegressor(method="jackknife+"),
            ConformalClassifier(method="cv+", conformity_score="lac"),
            CalibratedClassifier(method="isotonic", ensemble=False, cv=FOLDS),
            CalibratedClassifier(method="temperature", cv=FOLDS),
        ],
    )
)
