"""Every registered estimator is among the models whose contract is checked; a check that fails is told."""

from importlib import import_module
from pathlib import Path

from tests.contract.checks import CHECKED, broken_checks

from learnable import Ridge
from learnable.core.registry import estimator_names, registered_class

#: Rows of their X are steps of sequences, which the checks' tables are not; tests of their own stand in `sequences`.
SEQUENCES = {"CategoricalHMM", "GaussianHMM", "GMMHMM", "PoissonHMM"}


class Forgetful(Ridge):
    """A model that breaks the contract: it does not know how many features it was fitted to."""

    def fit(self, X, y, sample_weight=None):
        super().fit(X, y, sample_weight)
        del self.n_features_in_
        return self


def test_every_registered_estimator_is_checked():
    for path in Path(__file__).parent.glob("test_*.py"):
        import_module(f"tests.contract.{path.stem}")
    checked = {name for name in estimator_names() if registered_class(name) in CHECKED}
    assert set(estimator_names()) - checked == SEQUENCES


def test_what_breaks_the_contract_is_told_and_what_is_expected_is_not():
    broken = broken_checks(Forgetful(), {})
    assert any(line.startswith("check_n_features_in:") for line in broken)
    expected = {line.partition(":")[0]: "it forgets" for line in broken}
    assert broken_checks(Forgetful(), expected) == []
