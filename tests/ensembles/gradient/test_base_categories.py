"""Levels become codes the same way at every prediction."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from learnable.core.errors import ModelFileError, ParameterError
from learnable.ensembles.gradient.settings import categorical_columns, check_levels, encode, find_levels


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
def test_frames_of_any_library(make):
    frame = make({"a": ["x", "z", None, "y"], "b": [1.0, 2.0, 3.0, 4.0]})
    mask = categorical_columns("t", ["a"], frame)
    levels = find_levels("t", frame, mask)
    assert mask.tolist() == [True, False] and levels[0].tolist() == ["x", "y", "z"]
    codes = encode("t", make({"a": ["z", "unseen", "xylophone", None], "b": [0.0] * 4}), mask, levels)
    np.testing.assert_array_equal(np.asarray(codes["a"]), [2.0, np.nan, np.nan, np.nan])


def test_types_of_frames_decide_and_arrays_have_none():
    frame = pd.DataFrame({"a": pd.Categorical(["u", "v"]), "b": [1.0, 2.0]})
    assert categorical_columns("t", "from_dtype", frame).tolist() == [True, False]
    assert categorical_columns("t", "from_dtype", frame[["b"]]) is None
    assert categorical_columns("t", "from_dtype", np.ones((2, 2))) is None
    assert categorical_columns("t", [False, True], np.ones((2, 2))).tolist() == [False, True]
    with pytest.raises(
        ParameterError, match=r"t: categorical_features has an item value .nobody. which is not a valid feature name"
    ):
        categorical_columns("t", ["nobody"], frame)


def test_numbers_keep_their_order_and_codes_are_left_alone():
    x = np.array([[10.0, 1.0], [-3.0, 2.0], [30.0, 3.0], [np.nan, 4.0]])
    mask = np.array([True, False])
    levels = find_levels("t", x, mask)
    assert levels[0].tolist() == [10.0, 30.0]
    np.testing.assert_array_equal(encode("t", x, mask, levels)[:, 0], [0.0, np.nan, 1.0, np.nan])
    codes = np.array([[0.0, 5.0], [1.0, 6.0], [2.0, 7.0]])
    assert encode("t", codes, mask, find_levels("t", codes, mask)) is codes


def test_damaged_levels_are_refused():
    check_levels(None, None, 3)
    with pytest.raises(ModelFileError, match="levels of the categories"):
        check_levels(np.array([True, False]), [], 2)
