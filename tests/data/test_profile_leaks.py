"""Columns that give the target away are found; columns that are merely good are not."""

import numpy as np
import pandas as pd
import pytest

from learnable.data import profile

RNG = np.random.default_rng(0)
N = 400
X = pd.DataFrame(RNG.normal(size=(N, 4)), columns=["a", "b", "c", "d"])
NUMBER = X["a"] + X["b"] + RNG.normal(size=N)
LABEL = pd.Series(np.where(NUMBER > 0, "yes", "no"))


def leaks(table, target="y"):
    return [warning["column"] for warning in profile(table, target).warnings if warning["kind"] == "leak"]


@pytest.mark.parametrize("y", [NUMBER, LABEL], ids=["regression", "classes"])
def test_honest_columns_are_not_suspected(y):
    assert leaks(X.assign(y=y)) == []


LEAKS = {
    "linear": NUMBER * 3.0 + 5.0,
    "monotone": np.exp(NUMBER),
    "noisy": NUMBER + 1e-3 * RNG.normal(size=N),
    "copy": NUMBER,
    "gaps": NUMBER.where(RNG.random(N) > 0.001) * 2,
}


@pytest.mark.parametrize("column", list(LEAKS.values()), ids=list(LEAKS))
def test_a_column_made_from_a_number_is_suspected(column):
    assert leaks(X.assign(y=NUMBER, z=column)) == ["z"]


CLASS_LEAKS = {
    "copy": LABEL,
    "renamed": LABEL.map({"yes": "accepted", "no": "rejected"}),
    "code": LABEL.map({"yes": 2, "no": 5}),
    "score": NUMBER,
    "finer": LABEL + (X["c"] > 0).astype(str),
}


@pytest.mark.parametrize("column", list(CLASS_LEAKS.values()), ids=list(CLASS_LEAKS))
def test_a_column_made_from_a_class_is_suspected(column):
    assert leaks(X.assign(y=LABEL, z=column)) == ["z"]


def test_a_rare_class_does_not_hide_a_leak_nor_make_one():
    rare = pd.Series(np.where(np.arange(N) % 20 == 0, "yes", "no"))
    assert leaks(X.assign(y=rare)) == []
    assert leaks(X.assign(y=rare, z=rare.map({"yes": 1.0, "no": 0.0}))) == ["z"]


def test_a_column_with_the_name_of_the_target_is_suspected():
    assert leaks(X.assign(Y_=X["a"] ** 2, y=NUMBER)) == ["Y_"]


def test_a_single_good_column_is_not_suspected():
    assert leaks(pd.DataFrame({"x": X["a"], "y": 2 * X["a"] + 1})) == []


def test_good_columns_in_good_company_are_not_suspected():
    base = RNG.normal(size=N)
    table = pd.DataFrame({f"s{j}": base + 1e-3 * RNG.normal(size=N) for j in range(5)})
    assert leaks(table.assign(y=base)) == []


def test_huge_targets_do_not_overflow():
    assert leaks(X.assign(y=NUMBER * 1e200, z=NUMBER)) == ["z"]


def test_rows_without_a_target_do_not_count():
    y = NUMBER.where(np.arange(N) % 3 > 0)
    assert leaks(X.assign(y=y, z=NUMBER)) == ["z"]


def test_the_note_is_with_the_column():
    column = profile(X.assign(y=NUMBER, z=NUMBER * 2), "y").profile[5]
    assert column.role == "feature" and "almost perfectly" in column.notes[-1]
