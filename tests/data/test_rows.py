"""Rows of any container, columns by name, and the keyword of the weights."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from learnable import Ridge
from learnable.core import DataError
from learnable.data.rows import count_rows, read_rows, take_rows, weight_keyword

X = np.arange(12.0).reshape(6, 2)
FRAME = pd.DataFrame(X, columns=["a", "b"], index=list("uvwxyz"))


@pytest.mark.parametrize(
    "table",
    [X, sp.csr_array(X), FRAME, pl.from_pandas(FRAME), pa.Table.from_pandas(FRAME, preserve_index=False)],
    ids=lambda table: type(table).__module__,
)
def test_rows_are_taken_in_the_order_asked_and_in_their_container(table):
    taken = take_rows(table, np.array([4, 0, 0]))
    assert type(taken) is type(table) and count_rows(taken) == 3 and count_rows(table) == 6
    values = (
        taken.toarray()
        if sp.issparse(taken)
        else np.asarray(taken if not hasattr(taken, "to_pandas") else taken.to_pandas())
    )
    np.testing.assert_array_equal(values, X[[4, 0, 0]])


def test_pandas_keeps_its_index():
    assert list(take_rows(FRAME, np.array([4, 0])).index) == ["y", "u"]


def test_lists_and_sparse_arrays_become_what_can_be_indexed():
    assert read_rows("test", X.tolist()).X.shape == (6, 2)
    for build in (sp.coo_array, sp.csc_array, sp.lil_matrix, sp.csr_matrix):
        table = read_rows("test", build(X), np.zeros(6))
        np.testing.assert_array_equal(table.take(np.array([1, 3]))[0].toarray(), X[[1, 3]])


def test_columns_by_name_and_by_value():
    frame = FRAME.assign(y=range(6), w=1.0, city=list("ppqqrr"))
    table = read_rows("test", frame, "y", "w", groups="city", time=None)
    assert list(table.X.columns) == ["a", "b"] and table.y.tolist() == list(range(6))
    assert table.columns["groups"].tolist() == list("ppqqrr") and "time" not in table.columns
    taken, y, weight = table.take(np.array([5, 1]))
    assert y.tolist() == [5, 1] and weight.tolist() == [1.0, 1.0] and taken.shape == (2, 2)
    by_value = read_rows("test", FRAME, pd.Series(range(6)), groups=pl.Series(list("ppqqrr")))
    assert by_value.columns["groups"].tolist() == list("ppqqrr") and by_value.weight is None


def test_one_column_of_targets_is_flat_and_text_stays_text():
    assert read_rows("test", X, np.zeros((6, 1))).y.shape == (6,)
    assert read_rows("test", X, np.zeros((6, 3))).y.shape == (6, 3)
    assert read_rows("test", X, list("ababab")).y.tolist() == list("ababab")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((np.empty((0, 2)),), "no rows"),
        ((X, np.zeros(5)), "X has 6 rows, y has shape"),
        ((X, 3.0), "inconsistent"),
        ((X, "y"), "needs a dataframe"),
        ((FRAME, "price"), "no column 'price'"),
        ((X, np.zeros(6), np.zeros(6)), "zero for every row"),
        ((X, np.zeros(6), -np.ones(6)), ">= 0"),
        ((3.0,), "test"),
    ],
)
def test_what_does_not_fit_is_explained(arguments, message):
    with pytest.raises(DataError, match=message):
        read_rows("test", *arguments)


def test_dask_collections_are_explained():
    array = pytest.importorskip("dask.array")
    with pytest.raises(DataError, match=r"Dask collection.*compute"):
        read_rows("test", array.from_array(X), np.zeros(6))


def test_further_columns_have_to_fit():
    with pytest.raises(DataError, match="groups has shape"):
        read_rows("test", X, groups=[1, 2])
    with pytest.raises(DataError, match="time='when' is no column"):
        read_rows("test", FRAME, time="when")


def test_the_keyword_of_the_weights():
    assert weight_keyword("test", Ridge()) == "sample_weight"
    assert weight_keyword("test", make_pipeline(StandardScaler(), Ridge())) == "ridge__sample_weight"
    for model in (KNeighborsRegressor(), make_pipeline(StandardScaler(), KNeighborsRegressor())):
        with pytest.raises(DataError, match="takes no sample_weight"):
            weight_keyword("test", model)


def test_a_cell_that_holds_several_things_is_refused_in_every_row():
    X = np.array([[1.0, "a"], [2.0, None]], dtype=object)
    assert read_rows("Bag", X, [0, 1], None) is not None
    X[1, 0] = {"foo": "bar"}
    with pytest.raises(TypeError, match="Bag: X holds a dict: the argument must be a string or a real number"):
        read_rows("Bag", X, [0, 1], None)
