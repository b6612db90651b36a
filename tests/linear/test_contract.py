"""Every registered model keeps scikit-learn's contract in full; encoders and wrappers are checked in their packages."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from learnable.core.registry import REGISTRY, registered_class

#: No check is expected to fail; an entry here needs one line of reason.
EXPECTED_FAILURES: dict[str, dict[str, str]] = {}


@pytest.mark.filterwarnings("ignore:.*stopped after")
@parametrize_with_checks(
    [registered_class(name)() for name, entry in REGISTRY.items() if entry.traits],
    expected_failed_checks=lambda estimator: EXPECTED_FAILURES.get(type(estimator).__name__, {}),
)
def test_sklearn_contract(estimator, check):
    check(estimator)
