"""The door: everything it refuses is said in one clear line, with the owner, the place and the remedy."""

from __future__ import annotations

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
import sklearn
from tests.data.tables import (
    NAMES,
    TARGETS,
    VALUES,
    as_arrow,
    as_pandas,
    as_polars,
    classes,
    dense_only,
    numbers,
    pandas_frame,
    read,
    several,
)
from tests.data.toys import MeanRegressor

from learnable import Ridge, TableModel
from learnable.core import DataError
from learnable.core.errors import DataTypeError
from learnable.data import read_features

pytestmark = pytest.mark.sampled(1)  # every case is a promise of its own


def spoilt(value, row=3, column=1, dtype=np.float64, order="C", n_rows=5):
    X = np.array(np.resize(VALUES, (n_rows, 3)), dtype=dtype, order=order)
    X[row, column] = value
    return X


def spoilt_object(value):
    X = VALUES.astype(object)
    X[3, 1] = value
    return X


def frame_with(frame_of, value):
    columns = dict(zip(NAMES, VALUES.T.tolist(), strict=True))
    columns["size"][3] = value
    return frame_of(columns)


def damaged_csr(which, place, value):
    csr = sp.csr_array(VALUES)
    getattr(csr, which)[place] = value
    return csr


def csr_of_objects():
    csr = sp.csr_array(VALUES)
    csr.data = csr.data.astype(object)
    return csr


def damaged_coo():
    coo = sp.coo_array(VALUES)
    coo.coords[1][0] = 99
    return coo


MASKED = np.ma.array(VALUES, mask=VALUES == 5.0)
FIVE = list(range(5))

BAD_X = {
    "NaN": (spoilt(np.nan), "Input X contains NaN, first in row 3, column 1. Impute .*SimpleImputer"),
    "inf": (spoilt(np.inf), "Input X contains infinity, first in row 3, column 1"),
    "-inf": (spoilt(-np.inf), "Input X contains infinity, first in row 3, column 1"),
    "NaN in F": (spoilt(np.nan, order="F"), "NaN, first in row 3, column 1"),
    "inf in float32": (spoilt(np.inf, dtype=np.float32), "infinity, first in row 3, column 1"),
    "two NaN": (np.where(VALUES == 0, np.nan, VALUES), "NaN, first in row 0, column 1"),
    "inf and -inf": (np.where(VALUES == 0, np.inf, -np.inf), "infinity, first in row 0, column 0"),
    "NaN in CSR": (sp.csr_array(spoilt(np.nan)), "NaN, first in row 3, column 1"),
    "inf in CSC": (sp.csc_array(spoilt(-np.inf)), "infinity, first in row 3, column 1"),
    "NaN in a list": (spoilt(np.nan).tolist(), "NaN, first in row 3, column 1"),
    "None in a list": ([[1, 2], [None, 3], [4, 5], [6, 7], [8, 9]], "NaN, first in row 1, column 0"),
    "NaN in objects": (spoilt_object(np.nan), "NaN, first in row 3, column 1"),
    "long double beyond float64": (spoilt(np.longdouble("1e4000"), dtype=np.longdouble), "infinity, first in row 3"),
    "NaN in pandas": (frame_with(as_pandas, np.nan), "NaN, first in row 3, column 'size'"),
    "NA in nullable pandas": (frame_with(as_pandas, None).astype("Float64"), "NaN, first in row 3, column 'size'"),
    "NA in nullable int": (frame_with(as_pandas, None).astype("Int64"), "NaN, first in row 3, column 'size'"),
    "NA in pandas bool": (
        pd.DataFrame({"a": FIVE, "b": pd.Series([True, None, True, True, True], dtype="boolean")}),
        "NaN, first in row 1, column 'b'",
    ),
    "NA in pandas object": (frame_with(as_pandas, pd.NA).astype(object), "column 'size' of X .*row 3 holds <NA>"),
    "null in polars": (frame_with(as_polars, None), "NaN, first in row 3, column 'size'"),
    "null in Arrow": (frame_with(as_arrow, None), "NaN, first in row 3, column 'size'"),
    "inf in polars": (frame_with(as_polars, np.inf), "infinity, first in row 3, column 'size'"),
    "NaN in pandas without names": (pd.DataFrame(spoilt(np.nan)), "NaN, first in row 3, column 1"),
    "masked": (MASKED, r"X has 1 masked value\(s\), the first in row 2, column 1. Fill"),
    "ragged": ([[1, 2], [3, 4], [5], [6, 7], [8, 9]], "X is ragged: row 0 has length 2, row 2 has length 1"),
    "ragged scalar": ([[1, 2], 3, [4, 5], [6, 7], [8, 9]], "X is ragged: row 0 has length 2, row 1 has no length"),
    "1-d": (VALUES[:, 0], r"Expected 2D array, got 1D array instead: X has shape \(5,\). Reshape your data"),
    "1-d list": ([1, 2, 3, 4, 5], "Reshape your data"),
    "empty list": ([], "Reshape your data"),
    "Series": (pd.Series(VALUES[:, 0]), "Reshape your data"),
    "sparse 1-d": (sp.coo_array(VALUES[0]), "Reshape your data"),
    "3-d": (VALUES[None], r"Found array with dim 3, while dim <= 2 is required; X has shape \(1, 5, 3\)"),
    "scalar": (3.0, "X must be a table, but it is a float"),
    "None": (None, "X must be a table, but it is None"),
    "lazy": (pl.LazyFrame({"a": [1.0]}), "X must be a table, but it is a polars LazyFrame"),
    "dict": ({"a": [1.0]}, "X must be a table, but it is a dict"),
    "zero rows": (VALUES[:0], r"Found array with 0 sample\(s\) \(shape=\(0, 3\)\) while a minimum of 1 is required"),
    "zero columns": (VALUES[:, :0], r"0 feature\(s\) \(shape=\(5, 0\)\) while a minimum of 1 is required"),
    "zero rows, sparse": (sp.csr_array((0, 3)), r"0 sample\(s\)"),
    "zero columns, sparse": (sp.csr_array((5, 0)), r"0 feature\(s\)"),
    "zero rows, pandas": (pandas_frame()[:0], r"0 sample\(s\)"),
    "zero columns, polars": (pl.DataFrame(), r"0 sample\(s\)"),
    "zero columns, pandas": (pandas_frame()[[]], r"0 feature\(s\)"),
    "complex": (VALUES + 1j, "Complex data not supported; X is complex128"),
    "complex objects": (spoilt_object(2j), "Complex data not supported; X holds 2j in row 3, column 1"),
    "complex sparse": (sp.csr_array(VALUES + 1j), "Complex data not supported"),
    "complex pandas": (pandas_frame().astype({"size": complex}), "Complex data not supported; column 'size' of X"),
    "text": (VALUES.astype(str), "X is not numeric: it has dtype <U"),
    "bytes": (VALUES.astype(bytes), "X is not numeric: it has dtype .S"),
    "dates": (VALUES.astype("datetime64[D]"), "X is not numeric: it has dtype datetime64"),
    "records": (np.zeros(5, dtype=[("a", float)]), "Reshape your data"),
    "object with text": (spoilt_object("red"), "X is not numeric: row 3, column 1 holds 'red', a str"),
    "object with numbers as text": (spoilt_object("1.5"), "row 3, column 1 holds '1.5', a str"),
    "list with text": ([[1, 2], [3, "four"], [5, 6], [7, 8], [9, 0]], "row 1, column 1 holds 'four', a str"),
    "object with a dict": (
        spoilt_object({"a": 1}),
        "row 3, column 1 holds .*a dict; an argument must be .*string.*number",
    ),
    "object with a long list": (spoilt_object(list(range(99))), "row 3, column 1 holds .*…, a list"),
    "object with a huge integer": (spoilt_object(10**400), "too large for float64"),
    "sparse objects": (csr_of_objects(), "X is not numeric: it has dtype object"),
    "pandas text": (pandas_frame().assign(colour=list("rgbrg")), "column 'colour' is of type String, not a number"),
    "pandas category": (
        pandas_frame().assign(colour=pd.Categorical(list("rgbrg"))),
        "column 'colour' is of type Categorical, not a number. Wrap the model.*TableModel",
    ),
    "pandas category of int": (pandas_frame().astype({"age": "category"}), "column 'age' is of type Categorical"),
    "pandas object text": (
        pandas_frame().assign(colour=pd.Series(list("rgbrg"), dtype=object)),
        "column 'colour'.* String|column 'colour' of X is not numeric: row 0 holds 'r'",
    ),
    "pandas dates": (pandas_frame().assign(day=pd.Timestamp("2020-01-01")), "column 'day' is of type Datetime"),
    "polars text": (pl.DataFrame({"a": FIVE, "colour": list("rgbrg")}), "column 'colour' is of type String"),
    "polars list": (pl.DataFrame({"a": FIVE, "l": [[1]] * 5}), "column 'l' is of type List"),
    "arrow text": (pa.table({"a": FIVE, "colour": list("rgbrg")}), "column 'colour' is of type String"),
    "duplicate names": (pd.DataFrame(VALUES, columns=["a", "b", "a"]), "unique column names, got: - 'a' 2 times"),
    "duplicate names in Arrow": (pa.table([FIVE, FIVE], names=["a", "a"]), "unique column names, got: - 'a' 2 times"),
    "names of two types": (pd.DataFrame(VALUES, columns=["a", 1, 2]), "Feature names are only supported if all"),
    "csr with an index too large": (damaged_csr("indices", 0, 99), "X is a damaged CSR array"),
    "csr with a negative index": (damaged_csr("indices", 0, -1), "X is a damaged CSR array"),
    "csr with falling pointers": (damaged_csr("indptr", 1, 7), "X is a damaged CSR array"),
    "coo with an index too large": (damaged_coo(), "X is a damaged COO array"),
}


def assert_one_clear_line(error, owner="MeanRegressor"):
    message = str(error.value)
    assert message.startswith(f"{owner}: ")
    assert "\n" not in message and message.endswith(".")


@pytest.mark.parametrize("case", BAD_X)
def test_bad_features_are_refused(case):
    X, message = BAD_X[case]
    with pytest.raises(DataError, match=message) as error:
        read(X)
    assert_one_clear_line(error)


@pytest.mark.parametrize("case", [case for case in BAD_X if "NaN" in case or "inf" in case or "null" in case])
def test_bad_features_are_refused_by_predict(case):
    X, message = BAD_X[case]
    good = np.zeros((2, X.shape[1] if hasattr(X, "shape") else len(X[0])))
    names = nw.from_native(X).columns if nw.dependencies.is_into_dataframe(X) else None
    fitted = MeanRegressor().fit(good if names is None else pd.DataFrame(good, columns=names), [0, 1])
    with pytest.raises(DataError, match=message) as error:
        fitted.predict(X)
    assert_one_clear_line(error)


def test_a_late_nan_is_found():
    X = np.zeros((20_000, 3), dtype=np.float32)
    X[19_998, 2] = np.nan
    with pytest.raises(DataError, match="row 19998, column 2"):
        read(X, np.arange(20_000))


def test_numbers_whose_sum_overflows_are_finite():
    X = np.full((5, 3), np.finfo(float).max)
    assert np.array_equal(read_features(MeanRegressor(), X, reset=True), X)
    assert read(X, y=np.full(5, 1e300)).y[0] == 1e300
    with pytest.raises(DataError, match=r"y reaches beyond 1e.300"):
        read(X, y=X[:, 0])


BAD_Y = {
    "None": (None, numbers, "requires y to be passed, but the target y is None"),
    "None for classes": (None, classes, "requires y to be passed, but the target y is None"),
    "NaN": ([0, 1, np.nan, 3, 4], numbers, "Input y contains NaN, first in row 2"),
    "inf": ([0, 1, 2, -np.inf, 4], numbers, "Input y contains infinity, first in row 3"),
    "NaN in one of three": (np.where(VALUES == 5, np.nan, VALUES), several, "y contains NaN, first in row 2, column 1"),
    "NA": (pd.Series([1, 2, None, 4, 5], dtype="Int64"), numbers, "Input y contains NaN, first in row 2"),
    "longer": (np.arange(6), numbers, "X has 5 rows, y has 6"),
    "shorter": (np.arange(4) % 2, classes, "X has 5 rows, y has 4"),
    "empty": ([], numbers, "X has 5 rows, y has 0"),
    "empty classes": ([], classes, "X has 5 rows, y has 0"),
    "two columns": (VALUES[:, :2], numbers, r"y should be a 1d array, got an array of shape \(5, 2\)"),
    "two columns for classes": (VALUES[:, :2], classes, "y should be a 1d array"),
    "no columns": (VALUES[:, :0], several, r"y should be a 1d array, got an array of shape \(5, 0\)"),
    "frame without columns": (pandas_frame()[[]], several, "y should be a 1d array"),
    "3-d": (VALUES[None], several, "y should be a 1d array"),
    "scalar": (3.0, numbers, r"y should be a 1d array, got an array of shape \(\)"),
    "ragged": ([[1], [2, 3], [4], [5], [6]], several, "y is ragged"),
    "sparse": (sp.csr_array(VALUES[:, :1]), numbers, "Sparse data was passed for y"),
    "masked": (np.ma.array(TARGETS, mask=TARGETS > 3), numbers, r"y has 2 masked value\(s\), the first in row 3"),
    "text": (list("abcde"), numbers, "y is not numeric: row 0 holds 'a', a str"),
    "numbers as text": (np.array(["1", "2", "3", "4", "5"]), numbers, "y is not numeric: it has dtype <U1"),
    "complex": (TARGETS + 1j, numbers, "Complex data not supported; y is complex128"),
    "complex labels": (TARGETS + 1j, classes, "Complex data not supported"),
    "one class": (np.ones(5, dtype=int), classes, "needs at least two classes .*got 1 class: 1"),
    "one word": (["yes"] * 5, classes, "needs at least two classes .*got 1 class: 'yes'"),
    "continuous": (TARGETS, classes, "Unknown label type: continuous; y holds 0.5 in row 0"),
    "NaN label": ([0, 1, np.nan, 1, 0], classes, "Input y contains NaN, first in row 2"),
    "inf label": ([0, 1, np.inf, 1, 0], classes, "Input y contains infinity, first in row 2"),
    "None label": (["a", "b", None, "a", "b"], classes, "Input y contains NaN: row 2 has the missing label None"),
    "NaN among words": (pd.Series(["a", "b", None, "a", "b"]), classes, "Input y contains NaN: row 2"),
    "NA among words": (pd.Series(["a", "b", None, "a", "b"], dtype="string"), classes, "Input y contains NaN: row 2"),
    "null among words": (pl.Series(["a", "b", None, "a", "b"]), classes, "Input y contains NaN: row 2"),
    "null among truths": (pl.Series([True, False, None, True, True]), classes, "Input y contains NaN, first in row 2"),
    "NaN among objects": (np.array([1, 2, np.nan, 1, 2], dtype=object), classes, "y contains NaN, first in row 2"),
    "words and numbers": (np.array(["a", 1, "b", 2, "a"], object), classes, "Unknown label type: y holds int and str"),
    "words and a gap": (["a", 1, "b", None, "a"], classes, "Input y contains NaN: row 3 has the missing label None"),
    "words and NaN": (["a", 1, "b", float("nan"), "a"], classes, "Input y contains NaN: row 3"),
    "bytes": (np.array([b"a", b"b", b"a", b"b", b"a"]), classes, "Unknown label type: y has dtype .S1"),
    "lists": (np.array([[1], [2, 3], [1], [1], [1]], dtype=object), classes, "Unknown label type: y holds list"),
    "dates": (np.arange(5).astype("datetime64[D]"), classes, "Unknown label type: y has dtype datetime64"),
    "a column name": ("t", numbers, "the column name 't' needs a dataframe, but X is a numpy ndarray"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD_Y)
def test_bad_targets_are_refused(case):
    y, through, message = BAD_Y[case]
    with pytest.raises(DataError, match=message) as error:
        read(VALUES, y, through=through)
    assert_one_clear_line(error)


BAD_WEIGHT = {
    "negative": ([1, 1, -0.5, 1, -2], "sample_weight must be >= 0; row 2 has -0.5"),
    "all zero": (np.zeros(5), "sample_weight is zero for every row"),
    "NaN": ([1, 1, np.nan, 1, 1], "Input sample_weight contains NaN, first in row 2"),
    "inf": ([1, 1, np.inf, 1, 1], "Input sample_weight contains infinity, first in row 2"),
    "too long": (np.ones(6), r"sample_weight must have shape \(5,\), one weight per row; got \(6,\)"),
    "too short": (np.ones(4), r"got \(4,\)"),
    "a column": (np.ones((5, 1)), r"got \(5, 1\)"),
    "text": (["1"] * 5, "sample_weight is not numeric: row 0 holds '1', a str"),
    "complex": (np.ones(5) * 1j, "Complex data not supported; sample_weight"),
    "negative number": (-1.0, "sample_weight must be >= 0"),
    "an object": (object(), "sample_weight is not numeric: it holds .*an object"),
    "sparse": (sp.csr_array(np.ones((5, 1))), "Sparse data was passed for sample_weight"),
}


@pytest.mark.parametrize("case", BAD_WEIGHT)
def test_bad_weights_are_refused(case):
    weight, message = BAD_WEIGHT[case]
    with pytest.raises(DataError, match=message) as error:
        read(VALUES, TARGETS, weight)
    assert_one_clear_line(error)


@pytest.mark.parametrize("frame_of", [as_pandas, as_polars, as_arrow])
@pytest.mark.parametrize(
    "y, weight, message",
    [
        ("price", None, "there is no column 'price'. Name one of these: 'age', 'size', 'rate'"),
        ("age", "w", "there is no column 'w'"),
        ("age", "age", "y and sample_weight both name column 'age'"),
        ("size", [1, 1, -1, 1, 1], "sample_weight must be >= 0; row 2"),
    ],
)
def test_bad_column_names_are_refused(frame_of, y, weight, message):
    frame = frame_of(dict(zip(NAMES, VALUES.T, strict=True)))
    with pytest.raises(DataError, match=message) as error:
        read(frame, y, weight)
    assert_one_clear_line(error)


def test_a_frame_with_nothing_but_the_target_is_refused():
    with pytest.raises(DataError, match=r"0 feature\(s\)"):
        read(pd.DataFrame({"t": TARGETS}), "t")


def test_sparse_input_is_refused_where_it_is_not_supported():
    for X in (sp.csr_array(VALUES), sp.lil_matrix(VALUES), pandas_frame(pd.SparseDtype(float, 0.0))):
        with pytest.raises(DataError, match="Sparse data was passed for X, but dense data is required") as error:
            read(X, through=dense_only)
        assert_one_clear_line(error)


def test_wrong_types_are_type_errors_too():
    for X in (VALUES.astype(str), spoilt_object("red"), pandas_frame().assign(colour="red")):
        with pytest.raises(TypeError):
            read(X)
    with pytest.raises(TypeError):
        read(sp.csr_array(VALUES), through=dense_only)


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_prediction_compares_the_columns_with_those_of_the_fit():
    fitted = MeanRegressor().fit(pandas_frame(), TARGETS)
    with pytest.raises(DataError, match=r"MeanRegressor: X has 2 features, but MeanRegressor is expecting 3") as error:
        fitted.predict(VALUES[:, :2])
    assert_one_clear_line(error)
    with pytest.raises(
        DataError, match=r"(?s)MeanRegressor: The feature names should match.*unseen at fit time:\n- id"
    ):
        fitted.predict(pandas_frame().assign(id="text that the fit has not seen"))
    with pytest.raises(DataError, match=r"(?s)must be in the same order"):
        fitted.predict(pl.DataFrame(VALUES[:, ::-1], schema=NAMES[::-1]))
    with pytest.raises(DataError, match="Reshape your data"):
        fitted.predict(VALUES[0])


def test_prediction_may_be_told_that_all_is_finite():
    fitted = MeanRegressor().fit(VALUES, TARGETS)
    with sklearn.config_context(assume_finite=True):
        assert fitted.predict(spoilt(np.nan)).shape == (5,)
    with sklearn.config_context(assume_finite=True), pytest.raises(DataError, match="NaN"):
        fitted.fit(spoilt(np.nan), TARGETS)


@pytest.mark.parametrize(
    "X",
    [
        [["a"], ["b"], ["c"]],
        np.array([["a"], ["b"], ["c"]], dtype=object),
        pd.DataFrame({"town": ["a", "b", "c"]}),
        pd.DataFrame({"day": pd.to_datetime(["2024-01-01", "2024-01-02", "2024-01-03"])}),
    ],
    ids=["list", "objects", "text", "dates"],
)
def test_an_error_about_text_names_what_takes_text(X):
    with pytest.raises(DataTypeError, match=r"TableModel\(estimator\)\.fit\(table, target\)"):
        Ridge().fit(X, [1.0, 2.0, 3.0])
    assert TableModel(Ridge()).fit(pd.DataFrame(X), [1.0, 2.0, 3.0]).predict(pd.DataFrame(X)).shape == (3,)
