"""scikit-learn's contract, one test per model: its checks run, and those that fail are told together.

A test per check would be 8,000 tests more, and handing a test to a worker costs as much as many a check. `make test`
runs about one in `SHARE` of the checks of each model, other ones of each; `make test-full` runs all.
"""

from __future__ import annotations

import traceback
import zlib
from collections.abc import Callable, Sequence
from typing import Any
from unittest import SkipTest

import pytest
from sklearn.utils.estimator_checks import estimator_checks_generator
from tests.conftest import IS_BRIEF

from learnable.core.registry import REGISTRY, registered_class

WEIGHTS = ("check_sample_weight_equivalence_on_dense_data", "check_sample_weight_equivalence_on_sparse_data")
SHARE = 3 if IS_BRIEF else 1
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
    cases = [pytest.param(model, SHARE, id=_words(model)) for model in models]
    cases += [
        pytest.param(model, 1, id=f"{_words(model)}-whole", marks=pytest.mark.long) for model in (*models, *others)
    ]

    @pytest.mark.sampled(1)
    @pytest.mark.filterwarnings("ignore:.*stopped after")
    @pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
    @pytest.mark.parametrize(("model", "share"), cases)
    def test_sklearn_contract(model: Any, share: int) -> None:
        assert broken_checks(model, expected_failures(model), share) == []

    return test_sklearn_contract


def _words(model: Any) -> str:
    return "".join(repr(model).split())


def broken_checks(model: Any, expected_failures: dict[str, str], share: int = 1) -> list[str]:
    """Return what about one in `share` of the checks say that a model fails, those expected to fail left out.

    A hash of the model's name and the check's chooses.
    """
    broken = []
    passed = 0
    for estimator, check in estimator_checks_generator(model, expected_failed_checks=expected_failures, mark="skip"):
        name = check.func.__name__ if hasattr(check, "func") else check.__name__
        if zlib.crc32(f"{type(model).__name__} {name}".encode()) % share:
            continue
        try:
            check(estimator)
            passed += 1
        except SkipTest:  # expected to fail, or not to be run here
            pass
        except Exception as error:
            broken.append(f"{name}: {''.join(traceback.format_exception(error))}")
    assert passed
    return broken


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
