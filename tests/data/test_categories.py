"""Tables as codes: what counts as the same category, and the checksum of the rows."""

import numpy as np
import pandas as pd
import pytest

from learnable.core.errors import DataError, ModelFileError, ParameterError
from learnable.data.categories import check_categories, class_weights, read_categories, read_codes
from learnable.trees.id3 import ID3Classifier


def read(X, y, weight=None):
    model = ID3Classifier()
    return model, read_categories(model, X, y, weight)


def test_codes_are_positions_among_the_sorted_values():
    _, table = read([["b", 2.0], ["a", -1.0], [None, np.nan]], ["y", "x", "y"])
    assert table.codes.tolist() == [[1, 0, 2], [1, 0, 2]]
    assert table.categories[0].tolist() == ["a", "b", None]
    np.testing.assert_array_equal(table.categories[1], [-1.0, 2.0, np.nan])
    assert table.y.tolist() == [1, 0, 1] and table.classes.tolist() == ["x", "y"]


def test_text_and_numbers_in_one_column_are_told_apart_by_spelling():
    _, table = read([["1"], [1], [2.5]], [0, 1, 0])
    assert table.types == ["mixed"] and table.codes.tolist() == [[0, 0, 1]]


def test_a_row_without_weight_is_no_row():
    X, y = [["a"], ["b"], ["c"]], [0, 1, 2]
    _, some = read(X, y, [1.0, 0.0, 2.0])
    assert some.categories[0].tolist() == ["a", "c"] and some.classes.tolist() == [0, 2]
    assert some.fingerprint == read([["a"], ["c"]], [0, 2], [1.0, 2.0])[1].fingerprint


def test_the_fingerprint_knows_words_labels_and_weights_but_not_the_order():
    X, y = [["a", 1], ["b", 2], ["a", 2]], ["p", "q", "q"]
    mine = read(X, y)[1].fingerprint
    assert mine == read(X[::-1], y[::-1])[1].fingerprint == read(pd.DataFrame(X), y)[1].fingerprint
    others = [
        read([["a", 1], ["c", 2], ["a", 2]], y),
        read(X, ["p", "q", "r"]),
        read(X, y, [1, 1, 2]),
        read(X[:2], y[:2]),
        read([["a", 1], ["b", 3], ["a", 3]], y),
    ]
    assert len({mine, *(table.fingerprint for _, table in others)}) == 6


def test_new_rows_get_minus_one_for_what_is_new():
    model, table = read([["a", 1.0], ["b", 2.0]], [0, 1])
    codes = read_codes(model, [["b", 1.5], ["z", 2.0]], table.categories, table.types)
    assert codes.tolist() == [[1, -1], [-1, 1]]
    with pytest.raises(DataError, match="expecting 2 features"):
        read_codes(model, [["a"]], table.categories, table.types)


@pytest.mark.parametrize(
    "categories, types",
    [
        ([np.array(["a", "a"], dtype=object)], ["text"]),
        ([np.array([None, "a"], dtype=object)], ["text"]),
        ([np.array(["b", "a"], dtype=object)], ["text"]),
        ([np.array([1, "a"], dtype=object)], ["text"]),
        ([np.array([np.nan, 1.0])], ["number"]),
        ([np.array([np.nan, np.nan])], ["number"]),
        ([np.array([1.0, 2.0])], ["text"]),
        ([np.array([1.0])], ["colour"]),
        ([[1.0]], ["number"]),
    ],
)
def test_categories_of_a_file_are_checked(categories, types):
    with pytest.raises(ModelFileError, match="load: ID3Classifier"):
        check_categories("ID3Classifier", categories, types)


def test_class_weights():
    _, table = read([["a"]] * 4, [0, 0, 0, 1])
    np.testing.assert_allclose(class_weights("m", "balanced", table), [2 / 3, 2.0])
    np.testing.assert_allclose(class_weights("m", {0: 3.0}, table), [3.0, 1.0])
    with pytest.raises(ParameterError, match="m: class_weight must be positive"):
        class_weights("m", {0: -1.0}, table)
