"""Labels as NumPy reads them."""

import numpy as np
import pytest

from learnable import LogisticRegression, verify
from learnable.data.door import read_target

ROWS = [[0.0], [1.0], [2.0], [3.0]]


@pytest.mark.parametrize(
    "labels", [["foo", "foo", 1, 1], [1, 1, "foo", "foo"], [True, "b", "b", True], [2.5, "b", np.float64(2.5), "b"]]
)
def test_a_list_of_words_and_numbers_is_what_numpy_makes_of_it(labels):
    codes, classes = read_target("test", labels, "classes", multi_output=False)
    assert classes.dtype.kind == "U"
    np.testing.assert_array_equal(classes[codes], np.asarray(labels))
    np.testing.assert_array_equal(classes, np.unique(np.asarray(labels)))


def test_such_labels_come_back_as_words():
    labels = ["foo", "foo", 1, 1]
    model = LogisticRegression().fit(ROWS, labels)
    assert model.predict(ROWS).tolist() == ["foo", "foo", "1", "1"]
    assert model.score(ROWS, labels) == 1.0
    assert verify(model, ROWS, labels)


def test_so_are_several_columns_of_labels():
    codes, classes = read_target("test", [["a", 1], ["b", 2], [3, "c"]], "classes", multi_output=True)
    assert [one.tolist() for one in classes] == [["3", "a", "b"], ["1", "2", "c"]]
    assert codes.tolist() == [[1, 0], [2, 1], [0, 2]]
