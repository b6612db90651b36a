"""Every registered estimator keeps scikit-learn's contract in full."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from learnable.core.registry import estimator_names, registered_class

#: No check is expected to fail; an entry here needs one line of reason.
EXPECTED_FAILURES: dict[str, dict[str, str]] = {}


@pytest.mark.filterwarnings("ignore:.*stopped after")
@parametrize_with_checks(
    [registered_class(name)() for name in estimator_names()],
    expected_failed_checks=lambda estimator: EXPECTED_FAILURES.get(type(estimator).__name__, {}),
)
def test_sklearn_contract(estimator, check):
    check(estimator)
