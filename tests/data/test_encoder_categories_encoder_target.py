"""What a target is taken for."""

import numpy as np
import pandas as pd
import pytest

from learnable.core import DataError
from learnable.data.encoder_categories import guess_task, read_encoder_target, read_rows


@pytest.mark.parametrize(
    ("y", "task"),
    [
        (["a", "b", "a"], "binary"),
        (["a", "b", "c"], "multiclass"),
        ([True, False], "binary"),
        ([0, 1, 1, 0], "binary"),
        ([0.0, 1.0], "binary"),
        ([3, 4, 5] * 10, "multiclass"),
        ([3, 4, 5], "regression"),  # as many numbers as rows
        (list(range(100)), "regression"),
        ([0.5, 1.0, 2.0], "regression"),
        ([100.0, 200.0, 300.0, 250.0], "regression"),
        (np.array([["x"], ["y"]]), "binary"),
        (np.ones((5, 3)), "regression"),
        (pd.Series(["a", None, "b"]), "binary"),
        (pd.Series([1, None, 2, 3.5]), "regression"),
        (pd.Series([True, None, False], dtype=object), "binary"),
        (pd.Categorical(["u", "v", "w"]), "multiclass"),
        (np.array([1, None, 2], dtype=object), "binary"),
    ],
)
def test_the_task_is_guessed(y, task):
    found, reason = guess_task(y)
    assert found == task and reason


def test_classes_of_some_rows_are_numbered_among_all():
    target, classes = read_encoder_target("test", ["c", "a"], "classification", np.array(["a", "b", "c"]))
    assert target.values.tolist() == [2, 0] and target.n_classes == 3 and len(classes) == 3
    with pytest.raises(DataError, match="test: y holds the label 'd', which is not one of the classes given"):
        read_encoder_target("test", ["d"], "classification", np.array(["a", "b"]))


def test_numbers_are_a_column():
    target, classes = read_encoder_target("test", [1, 2, 4], "regression")
    assert target.values.shape == (3, 1) and classes is None and target.n_classes == 0


@pytest.mark.parametrize("y", [[1.0], 5.0, None])
def test_there_is_one_target_a_row(y):
    with pytest.raises(DataError, match=r"X has 2 rows, y has (1|no length)"):
        read_rows("test", y, 2)
