"""Which tests belong to a changed file."""

from pathlib import Path

from tests.changed import ROOT, files_to_run, imported_modules, module_name, public_names


def test_a_changed_test_is_run_and_a_module_is_tested_by_what_names_it():
    # One test: what all files import is read once a process.
    assert files_to_run([Path(__file__)]) == [Path(__file__)]
    found = files_to_run([ROOT / "src/learnable/core/estimator.py"])
    assert ROOT / "tests/core/test_estimator_certificate.py" in found
    assert files_to_run([ROOT / "README.md"]) == []
    found = files_to_run([ROOT / "src/learnable/generative/gaussian_nb.py"])
    assert found == [ROOT / "tests/generative/test_classifier.py", ROOT / "tests/generative/test_gaussian_nb.py"]


def test_public_names_are_traced_to_the_module_that_defines_them():
    homes = public_names()
    assert homes["learnable.GaussianNB"] == "learnable.generative.gaussian_nb"
    assert homes["learnable.generative.GaussianNB"] == "learnable.generative.gaussian_nb"


def test_relative_imports_are_resolved(tmp_path):
    path = ROOT / "src/learnable/core/estimator.py"
    assert module_name(path) == "learnable.core.estimator"
    assert "learnable.core.declare" in imported_modules(path)
    outside = tmp_path / "test_x.py"
    outside.write_text("from learnable.linear import ridge\nimport learnable.core.threads\nimport numpy\n")
    assert imported_modules(outside) == {"learnable.linear", "learnable.linear.ridge", "learnable.core.threads"}
