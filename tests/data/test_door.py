"""The door: everything it takes means the same table."""

from __future__ import annotations

import re
import tracemalloc
from decimal import Decimal
from fractions import Fraction

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.exceptions import DataConversionWarning
from tests.data.tables import (
    NAMES,
    TARGETS,
    VALUES,
    WEIGHTS,
    as_arrow,
    as_pandas,
    as_polars,
    classes,
    dense,
    numbers,
    pandas_frame,
    read,
    several,
    unsupervised,
)
from tests.data.toys import MeanRegressor

from learnable.core import DataError, Run
from learnable.data import read_features


def with_holes(X):
    wide = np.full((2 * X.shape[0], 3 * X.shape[1]), np.nan)
    wide[::2, ::3] = X
    return wide[::2, ::3]


def unsorted_csr():
    csr = sp.csr_array(VALUES)
    for start, stop in zip(csr.indptr[:-1], csr.indptr[1:], strict=True):
        csr.indices[start:stop] = csr.indices[start:stop][::-1].copy()
        csr.data[start:stop] = csr.data[start:stop][::-1].copy()
    csr.has_sorted_indices = False
    assert csr.indices.tolist() != sp.csr_array(VALUES).indices.tolist()
    return csr


def duplicated_csr():
    csr = sp.csr_array(VALUES)
    halves = np.repeat(csr.data / 2, 2)
    return sp.csr_array((halves, np.repeat(csr.indices, 2), 2 * csr.indptr), shape=csr.shape)


def csr_with_int64_indices():
    csr = sp.csr_array(VALUES)
    csr.indices, csr.indptr = csr.indices.astype(np.int64), csr.indptr.astype(np.int64)
    return csr


def csr_with_explicit_zeros():
    n, d = VALUES.shape
    return sp.csr_array((VALUES.ravel(), np.tile(np.arange(d), n), np.arange(0, n * d + 1, d)), shape=(n, d))


CONTAINERS = {
    "list": lambda: VALUES.tolist(),
    "list of int": lambda: VALUES.astype(int).tolist(),
    "tuple of tuples": lambda: tuple(map(tuple, VALUES.tolist())),
    "list of arrays": lambda: list(VALUES),
    "C": lambda: VALUES.copy(),
    "F": lambda: np.asfortranarray(VALUES),
    "strided": lambda: with_holes(VALUES),
    "reversed": lambda: VALUES[::-1].copy()[::-1],
    "int64": lambda: VALUES.astype(np.int64),
    "uint8": lambda: VALUES.astype(np.uint8),
    "big-endian int": lambda: VALUES.astype(">i4"),
    "float32": lambda: VALUES.astype(np.float32),
    "float16": lambda: VALUES.astype(np.float16),
    "long double": lambda: VALUES.astype(np.longdouble),
    "big-endian": lambda: VALUES.astype(">f8"),
    "big-endian float32": lambda: VALUES.astype(">f4"),
    "object": lambda: VALUES.astype(object),
    "object of many types": lambda: np.array(
        [[1, False, np.int8(2)], [0, Fraction(3), 0.0], [Decimal(4), 5, np.float32(6)], [0] * 3, [7, 0, True]],
        dtype=object,
    ),
    "masked array without masked values": lambda: np.ma.array(VALUES, mask=False),
    "matrix": lambda: np.asmatrix(VALUES),
    "read-only": lambda: np.frombuffer(VALUES.tobytes()).reshape(VALUES.shape),
    "unaligned": lambda: np.frombuffer(b"x" + VALUES.tobytes(), offset=1).reshape(VALUES.shape),
    **{
        f"{format}_{kind}": lambda format=format, kind=kind: getattr(sp, f"{format}_{kind}")(VALUES)
        for format in ("csr", "csc", "coo", "bsr", "lil", "dok", "dia")
        for kind in ("array", "matrix")
    },
    "unsorted csr": unsorted_csr,
    "duplicated csr": duplicated_csr,
    "duplicated coo": lambda: sp.coo_array(duplicated_csr()),
    "csr with int64 indices": csr_with_int64_indices,
    "csr with explicit zeros": csr_with_explicit_zeros,
    "csr of int": lambda: sp.csr_array(VALUES.astype(np.int32)),
    "duplicated csr of float32": lambda: duplicated_csr().astype(np.float32),
    "csr of long double": lambda: sp.csr_array(VALUES.astype(np.longdouble)),
    "pandas": pandas_frame,
    "pandas float32": lambda: pandas_frame(np.float32),
    "pandas int": lambda: pandas_frame(int),
    "pandas mixed": lambda: pandas_frame({"age": int, "size": np.float32, "rate": float}),
    "pandas nullable": lambda: pandas_frame({"age": "Int64", "size": "Float64", "rate": "UInt8"}),
    "pandas nullable floats": lambda: pandas_frame("Float64"),
    "pandas object": lambda: pandas_frame(object),
    "pandas on Arrow": lambda: pandas_frame("double[pyarrow]"),
    "pandas sparse": lambda: pandas_frame(pd.SparseDtype(float, 0.0)),
    "pandas sparse filled with one": lambda: pandas_frame(pd.SparseDtype(float, 1.0)),
    "pandas with one sparse column": lambda: pandas_frame({"age": pd.SparseDtype(float, 0.0)}),
    "pandas with numbered columns": lambda: pd.DataFrame(VALUES),
    "pandas with another index": lambda: pd.DataFrame(VALUES, index=list("edcba")),
    "polars": lambda: pl.DataFrame(VALUES, schema=NAMES),
    "polars float32": lambda: pl.DataFrame(VALUES.astype(np.float32), schema=NAMES),
    "polars mixed": lambda: pl.DataFrame(VALUES, schema=NAMES).cast({"age": pl.Int8, "size": pl.Int128}),
    "polars decimal": lambda: pl.DataFrame(VALUES, schema=NAMES).cast(pl.Decimal(10, 2)),
    "arrow": lambda: pa.table(dict(zip(NAMES, VALUES.T, strict=True))),
    "arrow mixed": lambda: pa.table({"age": VALUES[:, 0].astype(int), "size": VALUES[:, 1], "rate": VALUES[:, 2]}),
    "narwhals": lambda: nw.from_native(pl.DataFrame(VALUES, schema=NAMES)),
}


@pytest.mark.filterwarnings("ignore:the matrix subclass")
@pytest.mark.parametrize("container", CONTAINERS)
def test_every_container_is_the_same_table(container):
    X = CONTAINERS[container]()
    table = read(X, weight=WEIGHTS)
    assert np.array_equal(dense(table.X), VALUES)
    assert table.X.dtype in (np.float64, np.float32) and table.X.dtype.isnative
    assert table.fingerprint == read(VALUES, weight=WEIGHTS).fingerprint
    assert (table.n_rows, table.n_columns) == VALUES.shape
    fitted = MeanRegressor().fit(X, TARGETS)
    assert np.array_equal(dense(read_features(fitted, X)), VALUES)


@pytest.mark.parametrize("container", [name for name in CONTAINERS if re.search("_|csr|coo|pandas sparse$", name)])
def test_sparse_tables_come_in_canonical_form(container):
    X = read(CONTAINERS[container]()).X
    assert isinstance(X, sp.csr_array)
    fresh = sp.csr_array((X.data, X.indices, X.indptr), shape=X.shape)
    assert fresh.has_canonical_format


def test_float_arrays_are_not_copied():
    for X in (VALUES, np.asfortranarray(VALUES), with_holes(VALUES), VALUES.astype(np.float32)):
        assert read(X).X is X or np.shares_memory(read(X).X, X)
        assert read(X).X.dtype == X.dtype
    frame = pandas_frame()
    assert np.shares_memory(read(frame).X, frame.to_numpy())
    for X in (sp.csr_array(VALUES), sp.csr_matrix(VALUES), sp.csr_array(VALUES.astype(np.float32))):
        assert np.shares_memory(read(X).X.data, X.data)
    assert np.shares_memory(read(VALUES, TARGETS, WEIGHTS).y, TARGETS)
    assert np.shares_memory(read(VALUES, TARGETS, WEIGHTS).weight, WEIGHTS)


@pytest.mark.parametrize(
    "make, share",
    [(np.ascontiguousarray, 0.5), (np.asfortranarray, 0.5), (lambda X: X.astype(int), 1.5)],
    ids=["C", "F", "int"],
)
def test_memory_stays_within_one_conversion(make, share):
    X = make(np.ones((400_000, 16)))
    X[::2, 0] = 0
    y = np.ones(len(X))
    numbers(MeanRegressor(), X[:10], y[:10])  # whatever is loaded or compiled once is not counted
    tracemalloc.start()
    try:
        numbers(MeanRegressor(), X, y, None, Run(n_jobs=1))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < share * 8 * X.size


def test_the_callers_sparse_array_stays_as_it_is():
    for X in (unsorted_csr(), duplicated_csr(), duplicated_csr().astype(np.float32)):
        before = [array.copy() for array in (X.data, X.indices, X.indptr)]
        read(X)
        for old, new in zip(before, (X.data, X.indices, X.indptr), strict=True):
            assert np.array_equal(old, new)


@pytest.mark.parametrize("frame_of", [as_pandas, as_polars, as_arrow])
def test_columns_by_name(frame_of):
    frame = frame_of({"w": WEIGHTS, **dict(zip(NAMES, VALUES.T, strict=True)), "t": TARGETS})
    expected = read(VALUES, TARGETS, WEIGHTS)
    estimator = MeanRegressor()
    table = numbers(estimator, frame, "t", "w")
    assert table.fingerprint == expected.fingerprint
    assert list(estimator.feature_names_in_) == NAMES
    mixed = frame_of({**dict(zip(NAMES, VALUES.T, strict=True)), "t": TARGETS})
    assert read(mixed, "t", WEIGHTS).fingerprint == expected.fingerprint
    labelled = frame_of({"a": [1.0, 2.0, 3.0], "t": ["no", "yes", "no"]})
    table = read(labelled, "t", through=classes)
    assert table.classes.tolist() == ["no", "yes"] and table.y.tolist() == [0, 1, 0]
    fitted = MeanRegressor().fit(frame, "t", "w")
    assert fitted.mean_ == pytest.approx(np.average(TARGETS, weights=WEIGHTS))
    assert fitted.n_features_in_ == 3


@pytest.mark.parametrize(
    "wrap",
    [list, tuple, pd.Series, pl.Series, pa.array, lambda y: pa.chunked_array([y]), pd.array, np.ma.array],
    ids=["list", "tuple", "pandas", "polars", "arrow", "chunked", "pandas array", "masked"],
)
def test_targets_and_weights_in_every_container(wrap):
    expected = read(VALUES, TARGETS, WEIGHTS)
    assert read(VALUES, wrap(TARGETS), wrap(WEIGHTS)).fingerprint == expected.fingerprint
    labels = np.array([3, 1, 3, 2, 1])
    table = read(VALUES, wrap(labels), through=classes)
    assert table.classes.tolist() == [1, 2, 3] and table.y.tolist() == [2, 0, 2, 1, 0]


def test_targets_become_float64():
    for y in ([1, 2, 3, 4, 5], TARGETS.astype(np.float32), [True, False, True, True, False], TARGETS.astype(object)):
        table = read(VALUES, y)
        assert table.y.dtype == np.float64 and np.array_equal(table.y, np.asarray(y, dtype=float))
    assert read(VALUES, None, through=unsupervised).y is None


def test_several_targets():
    y = np.column_stack([TARGETS, -TARGETS])
    assert read(VALUES, y, through=several).y.shape == (5, 2)
    assert read(VALUES, y[:, :1], through=several).y.shape == (5, 1)
    assert read(VALUES, TARGETS, through=several).y.shape == (5,)
    assert np.array_equal(read(VALUES, pd.DataFrame(y), through=several).y, y)
    assert np.array_equal(read(VALUES, pl.DataFrame(y), through=several).y, y)


def test_a_column_vector_is_taken_with_a_warning():
    with pytest.warns(DataConversionWarning, match="A column-vector y was passed when a 1d array was expected"):
        assert read(VALUES, TARGETS[:, None]).y.shape == (5,)
    with pytest.warns(DataConversionWarning):
        assert read(VALUES, pd.DataFrame({"t": list("abbaa")}), through=classes).y.tolist() == [0, 1, 1, 0, 0]


def test_a_single_weight_is_every_rows_weight():
    assert read(VALUES, weight=2.0).fingerprint == read(VALUES, weight=np.full(5, 2)).fingerprint


LABELS = {
    "int": np.array([0, 1, 1, 0, 2]),
    "negative int": np.array([-1, 1, 1, -1, -7]),
    "far apart": np.array([-(2**62), 2**62, 0, 2**62, 5]),
    "int8 over its whole range": np.array([-128, 127, 0, 127, -128], dtype=np.int8),
    "uint8": np.array([255, 0, 255, 3, 0], dtype=np.uint8),
    "uint64": np.array([2**64 - 1, 2**64 - 2, 2**64 - 1, 2**64 - 1, 2**64 - 2], dtype=np.uint64),
    "uint64 far apart": np.array([2**64 - 1, 0, 3, 0, 3], dtype=np.uint64),
    "bool": np.array([True, False, True, True, False]),
    "text": np.array(["b", "a", "ü", "b", "aa"]),
    "object text": np.array(["b", "a", "ü", "b", "aa"], dtype=object),
    "whole float": np.array([1.0, -1.0, 3.0, 1.0, 1.0]),
    "whole float32": np.array([1.0, -1.0, 3.0, 1.0, 1.0], dtype=np.float32),
    "whole float16": np.array([1.0, -1.0, 3.0, 1.0, 1.0], dtype=np.float16),
    "large float": np.array([1e300, -1e300, 1e300, 0.0, 1.0]),
    "big-endian": np.array([3, 1, 3, 2, 1], dtype=">i4"),
}


@pytest.mark.parametrize("kind", LABELS)
def test_labels_of_every_sort(kind):
    y = LABELS[kind]
    table = read(VALUES, y, through=classes)
    expected, codes = np.unique(y, return_inverse=True)
    assert table.classes.dtype == expected.dtype and table.classes.tolist() == expected.tolist()
    assert table.y.dtype == np.int64 and table.y.tolist() == codes.tolist()


def test_labels_of_further_containers():
    words = ["b", "a", "b", "b", "a"]
    for y in (pd.Series(words), pd.Series(words, dtype="category"), pl.Series(words), pd.Categorical(words)):
        table = read(VALUES, y, through=classes)
        assert table.classes.tolist() == ["a", "b"] and table.y.tolist() == [1, 0, 1, 1, 0]
    assert read(VALUES, pl.Series(words, dtype=pl.Enum(["b", "a"])), through=classes).y.tolist() == [1, 0, 1, 1, 0]
    assert read(VALUES, words, through=classes).classes.dtype.kind == "U"
    assert read(VALUES, np.array([2, 1, 2, 2, 1], dtype=object), through=classes).classes.tolist() == [1, 2]
    nullable = pd.Series([True, False, True, True, False], dtype="boolean")
    assert read(VALUES, nullable, through=classes).classes.tolist() == [False, True]


@settings(deadline=None)
@given(
    st.sampled_from([np.int8, np.int64, np.uint8, np.uint64, np.bool_, np.float32]).flatmap(
        lambda dtype: hnp.arrays(
            dtype,
            st.integers(2, 30),
            elements=st.integers(-1000, 1000).map(float) if dtype is np.float32 else None,
        )
    )
)
def test_codes_and_classes_are_numpys(y):
    expected, codes = np.unique(y, return_inverse=True)
    if len(expected) < 2:
        with pytest.raises(DataError, match="1 class"):
            read(np.zeros((len(y), 1)), y, through=classes)
        return
    table = read(np.zeros((len(y), 1)), y, through=classes)
    assert np.array_equal(table.classes, expected) and np.array_equal(table.y, codes)


@pytest.mark.parametrize("container", ["C", "F", "csr_array", "pandas"])
def test_a_row_of_weight_zero_is_left_out(container):
    weight = np.array([1.0, 0.0, 2.0, 0.0, 1.0])
    kept = weight > 0
    table = read(CONTAINERS[container](), TARGETS, weight)
    assert np.array_equal(dense(table.X), VALUES[kept])
    assert np.array_equal(table.y, TARGETS[kept]) and np.array_equal(table.weight, weight[kept])
    assert table.fingerprint == read(VALUES[kept], TARGETS[kept], weight[kept]).fingerprint


def test_a_class_without_weight_is_no_class():
    table = read(VALUES, ["a", "b", "c", "b", "a"], [1, 0, 1, 0, 1], through=classes)
    assert table.classes.tolist() == ["a", "c"] and table.y.tolist() == [0, 1, 0]
    with pytest.raises(DataError, match=r"at least two classes .* got 1 class: 'a'"):
        read(VALUES, ["a", "b", "b", "b", "a"], [1, 0, 0, 0, 1], through=classes)


def test_nan_is_refused_in_a_row_of_weight_zero_too():
    X = VALUES.copy()
    X[3, 1] = np.nan
    for weight in ([1, 1, 1, 0, 1], [0, 0, 1, 1, 1]):
        with pytest.raises(DataError, match="row 3, column 1"):
            read(X, TARGETS, weight)


def test_prediction_takes_every_frame_with_the_columns_of_the_fit():
    fitted = MeanRegressor().fit(pandas_frame(), TARGETS)
    for container in ("pandas", "pandas int", "polars", "arrow", "narwhals"):
        assert fitted.predict(CONTAINERS[container]()).shape == (5,)


@pytest.mark.parametrize("order", ["C", "F"])
def test_an_array_at_an_odd_address_is_read_as_any_other(order):
    """What came over a network may lie at any address; BLAS is not asked for it, and other loops round otherwise."""
    X = np.asarray(np.random.default_rng(0).normal(size=(300, 3)), order=order)
    odd = np.frombuffer(b"x" + X.tobytes(order="A"), dtype=np.float64, offset=1).reshape(X.shape, order=order)
    assert not odd.flags.aligned
    read = read_features(MeanRegressor().fit(X, X[:, 0]), odd)
    assert read.flags.aligned and read.strides == X.strides and np.array_equal(read, X)
