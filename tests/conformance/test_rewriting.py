"""Rewritten test files use our names wherever they import theirs, and nothing else changes."""

import ast

import pytest
from tests.conformance.lists import file_of
from tests.conformance.peers import FILES, Outcome, copy_name, rewrite

OURS = {"Ridge", "SVC"}


@pytest.mark.parametrize(
    ("text", "added"),
    [
        ("from sklearn.linear_model import Ridge", ["Ridge = _overlay.get('Ridge')"]),
        ("from sklearn.linear_model import Ridge as R", ["R = _overlay.get('Ridge')"]),
        ("from sklearn.linear_model import (\n    Ridge,\n    Lars,\n)", ["Ridge = _overlay.get('Ridge')"]),
        ("from sklearn import svm", ["svm = _overlay.module(svm)"]),
        ("from sklearn import datasets", []),
        ("import sklearn.svm as s", ["s = _overlay.module(s)"]),
        ("import numpy as np", []),
        ("from numpy import Ridge", []),
        ("from ..linear_model import Ridge", ["Ridge = _overlay.get('Ridge')"]),
    ],
)
def test_imports_are_followed_by_our_names(text, added):
    for body in (text, "import os\n\ndef test():\n" + "\n".join("    " + line for line in text.split("\n"))):
        lines = rewrite(body, "sklearn.tree.tests", OURS).split("\n")
        assert [line.strip() for line in lines if "_overlay." in line] == added
        ast.parse("\n".join(lines))
        assert not any(line.strip().startswith("from .") for line in lines)


def test_a_future_import_stays_first():
    text = '"""Text."""\nfrom __future__ import annotations\nfrom sklearn.svm import SVC\n'
    ast.parse(rewrite(text, "sklearn.tests", OURS))
    assert rewrite(text, "sklearn.tests", OURS).index("__future__") < rewrite(text, "sklearn.tests", OURS).index(
        "_over"
    )


def test_every_file_has_a_copy_of_its_own_and_a_list_finds_it():
    assert len({copy_name(file) for file in FILES}) == len(FILES)
    for file in FILES:
        stem = "expected_hmmlearn_x" if ":" in file else "expected_x"
        assert file_of(stem, f"Tests of `{file.rpartition(':')[2]}` that …") == file


def test_a_test_goes_by_its_name_with_or_without_class_and_parameters():
    one = Outcome("svm/tests/test_svm.py", "TestSVC::test_fit[a::b-1]", "failed", "")
    assert one.names == {"TestSVC::test_fit[a::b-1]", "TestSVC::test_fit", "test_fit[a::b-1]", "test_fit"}
