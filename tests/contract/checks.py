"""scikit-learn's contract, one test per model: all checks run, and those that fail are told together.

A test per check would be 8,000 tests more, and handing a test to a worker costs as much as many a check.
"""

from __future__ import annotations

import traceback
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from sklearn.exceptions import SkipTestWarning
from sklearn.utils.estimator_checks import check_estimator

from learnable.core.registry import REGISTRY, registered_class

WEIGHTS = ("check_sample_weight_equivalence_on_dense_data", "check_sample_weight_equivalence_on_sparse_data")
#: The classes of all models whose contract is checked, filled when the tests are collected.
CHECKED: set[type] = set()


def contract_of(
    models: Sequence[Any],
    expected_failures: Callable[[Any], dict[str, str]] = lambda model: {},
    others: Sequence[Any] = (),
) -> Callable[[Any], None]:
    """Return the test that models keep the contract but for the expected failures, each with its reason.

    Models among `others` are further settings of the same classes, which only `make test-full` checks.
    """
    CHECKED.update(map(type, models))
    long = [pytest.param(model, marks=pytest.mark.long) for model in others]

    @pytest.mark.filterwarnings("ignore:.*stopped after")
    @pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
    @pytest.mark.parametrize("model", [*models, *long], ids=lambda model: "".join(repr(model).split()))
    def test_sklearn_contract(model: Any) -> None:
        assert broken_checks(model, expected_failures(model)) == []

    return test_sklearn_contract


def broken_checks(model: Any, expected_failures: dict[str, str]) -> list[str]:
    """Return what the checks say that a model fails, those expected to fail left out."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SkipTestWarning)
        results = check_estimator(model, expected_failed_checks=expected_failures, on_skip=None, on_fail=None)
    assert any(result["status"] == "passed" for result in results)
    return [
        f"{result['check_name']}: {''.join(traceback.format_exception(result['exception']))}"
        for result in results
        if result["status"] == "failed"
    ]


def registered_models(family: str) -> list[Any]:
    """Return the registered models of a package, brief ones; those without traits (encoders, wrappers) are left out."""
    return [
        brief(registered_class(name)())
        for name, entry in REGISTRY.items()
        if entry.traits and registered_class(name).__module__.startswith(f"learnable.{family}.")
    ]


def brief(model: Any) -> Any:
    """Return the model with fewer members, rounds or penalties: the contract is the same."""
    known = model.get_params(deep=False)
    fewer = {"n_estimators": 10, "alphas": 5, "max_iter": 10 if "max_leaf_nodes" in known else None}
    if "groups" in known and "size" in known:
        model.set_params(size=1)  # a tree for every size takes long on the checks' tables, some of one column
    if "noise_variance" in known:
        model.set_params(noise_variance=1.0)  # some checks have fewer rows than columns
    if "use_legacy_attributes" in known:  # quiet, and few folds: a check has three rows of each class
        model.set_params(Cs=3, cv=3, l1_ratios=(0,), scoring="accuracy", use_legacy_attributes=False)
    return model.set_params(**{k: n for k, n in fewer.items() if n and isinstance(known.get(k), int) and known[k] > n})
