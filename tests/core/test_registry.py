import pytest
from tests.core import toys

from learnable.core import Certificate, ModelFileError, ParameterError
from learnable.core.registry import (
    REGISTRY,
    Entry,
    check_model_name,
    check_one_target,
    estimator_names,
    registered_class,
    registered_name,
    resolve,
)

pytestmark = pytest.mark.sampled(1)  # every case is a promise of its own


@pytest.mark.parametrize("name", REGISTRY)
def test_every_entry_leads_to_its_class_and_its_checker(name):
    entry = REGISTRY[name]
    cls = registered_class(name)
    assert cls.__name__ == name
    assert registered_name(cls) == name
    assert hasattr(cls, "fit") == entry.estimator
    if entry.checker:
        assert callable(resolve(entry.checker))
    assert entry.checker or not (entry.traits and entry.estimator)


def test_estimators_are_listed_and_parts_are_not():
    assert "Ridge" in estimator_names()
    assert "Certificate" not in estimator_names()
    assert registered_class("Certificate") is Certificate


@pytest.mark.parametrize(
    "name",
    ["", "os:system", "os.system", "builtins:eval", "learnable.core.errors:DataError", "ridge", "__class__"],
)
def test_a_name_that_is_not_registered_is_never_looked_up(name):
    with pytest.raises(ModelFileError, match="which this version of learnable does not know"):
        registered_class(name)


def test_only_the_class_itself_has_the_name(monkeypatch):
    toys.register(monkeypatch)
    assert registered_name(toys.Box) == "Box"
    assert registered_name(toys.SubBox) is None
    impostor = type("Box", (toys.Box,), {"__module__": "elsewhere"})
    assert registered_name(impostor) is None


def test_an_entry_is_an_estimator_without_a_checker_unless_it_says_otherwise():
    assert Entry("a:B") == Entry("a:B", None, True)


@pytest.mark.parametrize(
    "name, words",
    [("OneClassSVM", "predicts no column of a table"), ("Rigde", "did you mean Ridge"), ("X", "no model")],
)
def test_what_is_no_model_of_a_column_is_said(name, words):
    with pytest.raises(ParameterError, match=f"^fit: .*{words}"):
        check_model_name("fit", name)
    check_model_name("fit", "Ridge")


def test_models_of_several_targets_are_known():
    with pytest.raises(ParameterError, match=r"^fit: MultiTaskLasso predicts several.* use Lasso"):
        check_one_target("fit", "MultiTaskLasso")
    check_one_target("fit", "Lasso")
