"""Twelve hundred hostile inputs: each ends in one clear error, or in a fit whose certificate holds or that warned.

A case is drawn from its number: an estimator and one to four changes to clean data, containers and parameters. What a
change must lead to is declared with it: "refuse" (an error of this library), "accept" (a fit), or "either".
"""

from __future__ import annotations

import datetime
import signal
import threading
import warnings
from contextlib import contextmanager
from decimal import Decimal
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from learnable import LinearRegression, LogisticRegression, Ridge, RidgeCV
from learnable.core import LearnableError

ESTIMATORS = [LinearRegression, Ridge, RidgeCV, LogisticRegression]
N_CASES = 1200
SECONDS = 20  # a guard against hangs, a hundred times what the slowest case needs


# ---- changes to the rows, the cells, the targets, the weights ----


def keep_rows(rows):
    def change(case):
        case.X, case.y = case.X[rows], case.y[rows]

    return change


def keep_columns(columns):
    def change(case):
        case.X = case.X[:, columns]

    return change


def put(value):
    def change(case):
        case.X[case.rng.integers(len(case.X)), case.rng.integers(case.X.shape[1])] = value

    return change


def scale_column(factor):
    def change(case):
        case.X[:, case.rng.integers(case.X.shape[1])] *= factor

    return change


def shift_column(offset):
    def change(case):
        case.X[:, case.rng.integers(case.X.shape[1])] += offset

    return change


def set_column(values):
    def change(case):
        case.X[:, case.rng.integers(case.X.shape[1])] = values(len(case.X))

    return change


def change_table(function):
    def change(case):
        case.X = function(case.X)

    return change


def change_target(function):
    def change(case):
        case.y = function(case.y)

    return change


def scale_target(factor):
    def change(case):
        case.y = case.y * factor if not case.classifier else np.asarray(case.y) * 1

    return change


def set_weight(function):
    def change(case):
        case.weight = function(len(case.X))

    return change


def signs(n):
    return np.where(np.arange(n) % 2 == 0, 1.0, -1.0)


def spread(n, digits):
    return 10.0 ** np.linspace(-digits, digits, n)


ROWS = {
    "no rows": (keep_rows(slice(0, 0)), "refuse"),
    "one row": (keep_rows(slice(0, 1)), "either"),
    "two rows": (keep_rows(slice(0, 2)), "either"),
    "three rows": (keep_rows(slice(0, 3)), "either"),
    "the same row again and again": (keep_rows(np.zeros(12, dtype=int)), "either"),
    "every row twice": (keep_rows(np.repeat(np.arange(12), 2)), "accept"),
    "no columns": (keep_columns(slice(0, 0)), "refuse"),
    "one column": (keep_columns([0]), "accept"),
    "more columns than rows": (keep_columns(np.arange(80) % 5), "accept"),
    "reversed columns": (keep_columns(slice(None, None, -1)), "accept"),
}
CELLS = {
    "NaN": (put(np.nan), "refuse"),
    "infinity": (put(np.inf), "refuse"),
    "minus infinity": (put(-np.inf), "refuse"),
    "NaN everywhere": (change_table(lambda X: X * np.nan), "refuse"),
    "the largest number": (put(np.finfo(float).max), "either"),
    "a subnormal number": (put(5e-324), "accept"),
    "minus zero": (put(-0.0), "accept"),
    "a constant column": (set_column(lambda n: np.full(n, 3.0)), "accept"),
    "a column of zeros": (set_column(np.zeros), "accept"),
    "a column of 1e300 and -1e300": (set_column(lambda n: 1e300 * signs(n)), "either"),
    "a column of 1.7e308": (set_column(lambda n: np.full(n, 1.7e308)), "either"),
    "a column of subnormals": (set_column(lambda n: 5e-324 * np.arange(n)), "either"),
    "a column from 1e-300 to 1e300": (set_column(lambda n: spread(n, 300)), "either"),
    "all constant": (change_table(np.ones_like), "accept"),
    "all zero": (change_table(np.zeros_like), "accept"),
    "collinear columns": (change_table(lambda X: np.column_stack([X, X @ np.ones(X.shape[1])])), "accept"),
    "nearly collinear columns": (
        change_table(lambda X: np.column_stack([X, X[:, :1] * (1 + 1e-15 * np.arange(len(X))[:, None])])),
        "accept",
    ),
    "duplicated columns": (change_table(lambda X: np.column_stack([X, X, X])), "accept"),
    "columns from 1e-150 to 1e150": (change_table(lambda X: X * spread(X.shape[1], 150)), "either"),
    "columns from 1e-300 to 1e300": (change_table(lambda X: X * spread(X.shape[1], 300)), "either"),
    **{f"a column times {f:g}": (scale_column(f), "either") for f in (1e300, 1e-300, 1e150, 1e-150, 1e30, 1e-30)},
    **{f"X times {f:g}": (change_table(lambda X, f=f: X * f), "either") for f in (1e300, 1e-300, 1e160, 1e-160)},
    **{f"a column plus {f:g}": (shift_column(f), "either") for f in (1e8, 1e15, 1e300)},
}
TARGETS = {
    "y is None": (change_target(lambda y: None), "refuse"),
    "y too long": (change_target(lambda y: np.r_[y, y]), "refuse"),
    "y too short": (change_target(lambda y: y[:-1]), "refuse"),
    "y empty": (change_target(lambda y: y[:0]), "refuse"),
    "y a number": (change_target(lambda y: 3.0), "refuse"),
    "y a name": (change_target(lambda y: "target"), "refuse"),
    "y in one column": (change_target(lambda y: np.asarray(y)[:, None]), "accept"),
    "y in no column": (change_target(lambda y: np.empty((len(y), 0))), "refuse"),
    "y in three dimensions": (change_target(lambda y: np.zeros((len(y), 1, 1))), "refuse"),
    "y a dict": (change_target(lambda y: dict(enumerate(y))), "refuse"),
    "y a set": (change_target(lambda y: set(y.tolist())), "refuse"),
    "y ragged": (change_target(lambda y: [[1.0]] * (len(y) - 1) + [[1.0, 2.0]]), "refuse"),
    "y complex": (change_target(lambda y: y + 1j), "refuse"),
    "y of dates": (change_target(lambda y: np.arange(len(y)).astype("datetime64[D]")), "refuse"),
    "y of mixed objects": (
        change_target(lambda y: np.array([["a", 1, None, 2.5][i % 4] for i in range(len(y))], dtype=object)),
        "refuse",
    ),
    "y with None": (change_target(lambda y: np.r_[y[:-1].astype(object), None]), "refuse"),
    "y with NaN": (change_target(lambda y: np.r_[y[:-1].astype(float), np.nan]), "refuse"),
    "y with infinity": (change_target(lambda y: np.r_[y[:-1].astype(float), np.inf]), "refuse"),
    "y masked": (change_target(lambda y: np.ma.array(y, mask=np.arange(len(y)) == 0)), "refuse"),
    "y masked nowhere": (change_target(lambda y: np.ma.array(y)), "accept"),
    "y sparse": (change_target(lambda y: sp.csr_array(np.asarray(y, dtype=float)[:, None])), "refuse"),
    "y of records": (
        change_target(lambda y: np.array([(1.0, 2)] * len(y), dtype=[("a", "f8"), ("b", "i4")])),
        "refuse",
    ),
    "y of huge integers": (change_target(lambda y: np.array([10**400] * len(y), dtype=object)), "refuse"),
    "y a generator": (change_target(lambda y: (v for v in y.tolist())), "refuse"),
    "y a list": (change_target(lambda y: y.tolist()), "accept"),
    "y a series": (change_target(lambda y: pd.Series(y, index=range(7, 7 + len(y)))), "accept"),
    "y a polars series": (change_target(pl.Series), "accept"),
    "y boolean": (change_target(lambda y: np.arange(len(y)) % 2 == 0), "accept"),
    "y constant": (change_target(lambda y: np.ones(len(y))), "either"),
    "y all different": (change_target(lambda y: np.arange(len(y)) * 7 - 3), "accept"),
    "y of 1e300": (change_target(lambda y: 1e300 * signs(len(y))), "either"),
    "y of 1.7e308": (change_target(lambda y: 1.7e308 * signs(len(y))), "either"),
    "y of 1e-300": (scale_target(1e-300), "either"),
    "y times 1e150": (scale_target(1e150), "either"),
    "y of subnormals": (change_target(lambda y: 5e-324 * (np.arange(len(y)) % 3)), "either"),
    "y in four columns": (change_target(lambda y: np.column_stack([y, y, -y, 0 * y])), "either"),
    "y in columns from 1e-200 to 1e200": (change_target(lambda y: np.outer(y, spread(3, 200))), "either"),
    "y of text": (change_target(lambda y: np.array(["a", "b", "c"])[np.arange(len(y)) % 3]), "either"),
    "y of fractions": (change_target(lambda y: np.arange(len(y)) / 7), "either"),
    "y of huge whole floats": (change_target(lambda y: 1e17 * (np.arange(len(y)) % 2)), "either"),
    "y of uint64": (change_target(lambda y: np.uint64(2**63) + (np.arange(len(y)) % 2).astype(np.uint64)), "either"),
    "y of bytes": (change_target(lambda y: np.array([b"a", b"b"])[np.arange(len(y)) % 2]), "either"),
    "y categorical": (change_target(lambda y: pd.Series(np.arange(len(y)) % 2).astype("category")), "either"),
}
WEIGHTS = {
    "negative weight": (set_weight(lambda n: np.r_[np.ones(n - 1), -1.0]), "refuse"),
    "NaN weight": (set_weight(lambda n: np.r_[np.ones(n - 1), np.nan]), "refuse"),
    "infinite weight": (set_weight(lambda n: np.r_[np.ones(n - 1), np.inf]), "refuse"),
    "no weight at all": (set_weight(np.zeros), "refuse"),
    "too many weights": (set_weight(lambda n: np.ones(n + 1)), "refuse"),
    "weights in two columns": (set_weight(lambda n: np.ones((n, 2))), "refuse"),
    "weights of text": (set_weight(lambda n: np.full(n, "heavy")), "refuse"),
    "a weight's name": (set_weight(lambda n: "weight"), "refuse"),
    "complex weights": (set_weight(lambda n: np.ones(n) + 1j), "refuse"),
    "sparse weights": (set_weight(lambda n: sp.csr_array(np.ones((n, 1)))), "refuse"),
    "weights with None": (set_weight(lambda n: [1.0] * (n - 1) + [None]), "refuse"),
    "weights of dates": (set_weight(lambda n: np.full(n, np.datetime64("2020-01-01"))), "refuse"),
    "one weight": (set_weight(lambda n: 2.5), "accept"),
    "boolean weights": (set_weight(lambda n: np.arange(n) % 3 > 0), "accept"),
    "integer weights": (set_weight(lambda n: 1 + np.arange(n) % 4), "accept"),
    "all weight on one row": (set_weight(lambda n: np.eye(n)[0] if n else np.zeros(0)), "either"),
    "weights of 1e300": (set_weight(lambda n: np.full(n, 1e300)), "either"),
    "weights of 1e-300": (set_weight(lambda n: np.full(n, 1e-300)), "either"),
    "weights of 1.7e308": (set_weight(lambda n: np.full(n, 1.7e308)), "either"),
    "subnormal weights": (set_weight(lambda n: np.full(n, 5e-324)), "either"),
    "weights from 1e-300 to 1e300": (set_weight(lambda n: spread(n, 300)), "either"),
    "weights from 1e-12 to 1e12": (set_weight(lambda n: spread(n, 12)), "either"),
}


# ---- containers ----


def objects(values):
    out = np.empty(np.shape(values), dtype=object)
    out[...] = values
    return out


def with_object(value):
    def change(X):
        table = X.astype(object)
        table[0, 0] = value
        return table

    return change


def damaged_csr(X):
    table = sp.csr_array(np.where(X == 0, 1.0, X))
    table.indices = table.indices.copy()
    table.indices[0] = 10**6
    return table


def with_duplicates(X):
    rows, columns = np.nonzero(np.ones(X.shape))
    values = np.r_[X.ravel() / 2, X.ravel() / 2]
    return sp.coo_array((values, (np.r_[rows, rows], np.r_[columns, columns])), shape=X.shape)


def with_explicit_zeros(X):
    table = sp.csr_array(np.where(X == 0, 1.0, X))
    table.data = table.data * (np.arange(table.data.size) % 2)
    return table


def with_empty_rows(X):
    return sp.csr_array(X * (np.arange(len(X)) % 3 == 0)[:, None])


def frame_with(values):
    def change(X):
        frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])
        frame["x0"] = values(len(X))
        return frame

    return change


def frame_named(names):
    def change(X):
        return pd.DataFrame(X, columns=names(X.shape[1]))

    return change


def polars_with(values):
    def change(X):
        return pl.DataFrame({f"x{j}": X[:, j] for j in range(X.shape[1])} | {"x0": values(len(X))})

    return change


def arrow_with(values):
    def change(X):
        return pa.table({f"x{j}": X[:, j] for j in range(X.shape[1])} | {"x0": pa.array(values(len(X)))})

    return change


CONTAINERS = {
    "a list of lists": (lambda X: X.tolist(), "accept"),
    "a tuple of tuples": (lambda X: tuple(map(tuple, X.tolist())), "accept"),
    "float32": (lambda X: X.astype(np.float32), "accept"),
    "float16": (lambda X: X.astype(np.float16), "accept"),
    "long double": (lambda X: X.astype(np.longdouble), "accept"),
    "big-endian": (lambda X: X.astype(">f8"), "accept"),
    "integers": (lambda X: np.round(X * 3).astype(np.int32), "accept"),
    "bytes of integers": (lambda X: np.round(np.abs(X)).astype(np.uint8), "accept"),
    "booleans": (lambda X: X > 0, "accept"),
    "Fortran order": (np.asfortranarray, "accept"),
    "negative strides": (lambda X: X[::-1, ::-1][::-1, ::-1], "accept"),
    "read-only": (lambda X: np.frombuffer(X.tobytes()).reshape(X.shape), "accept"),
    "a matrix": (lambda X: np.asmatrix(X), "either"),
    "a memoryview": (lambda X: memoryview(np.ascontiguousarray(X)), "accept"),
    "objects of numbers": (lambda X: X.astype(object), "accept"),
    "decimals": (lambda X: objects([[Decimal(repr(v)) for v in row] for row in X.tolist()]), "accept"),
    "fractions": (lambda X: objects([[Fraction(v) for v in row] for row in X.tolist()]), "accept"),
    "a masked array without masks": (np.ma.array, "accept"),
    "a masked array": (lambda X: np.ma.array(X, mask=np.arange(X.size).reshape(X.shape) == 0), "refuse"),
    "None in a cell": (with_object(None), "refuse"),
    "text in a cell": (with_object("seven"), "refuse"),
    "a number spelt out": (with_object("7"), "refuse"),
    "a list in a cell": (with_object([1.0, 2.0]), "refuse"),
    "a complex cell": (with_object(1j), "refuse"),
    "a date in a cell": (with_object(datetime.date(2020, 1, 1)), "refuse"),
    "a huge integer in a cell": (with_object(10**400), "refuse"),
    "a missing value of pandas": (with_object(pd.NA), "refuse"),
    "an array in a cell": (with_object(np.ones(2)), "refuse"),
    "text": (lambda X: X.astype(str), "refuse"),
    "bytes": (lambda X: X.astype("S8"), "refuse"),
    "complex": (lambda X: X + 0j, "refuse"),
    "dates": (lambda X: np.zeros(X.shape, dtype="datetime64[s]"), "refuse"),
    "durations": (lambda X: np.zeros(X.shape, dtype="timedelta64[s]"), "refuse"),
    "records": (lambda X: np.zeros(len(X), dtype=[("a", "f8")]), "refuse"),
    "one dimension": (lambda X: X[:, 0], "refuse"),
    "three dimensions": (lambda X: X[:, :, None], "refuse"),
    "a number": (lambda X: 3.0, "refuse"),
    "None": (lambda X: None, "refuse"),
    "a string": (lambda X: "data.csv", "refuse"),
    "a dict": (lambda X: {"a": X[:, 0]}, "refuse"),
    "a set": (lambda X: {1.0, 2.0}, "refuse"),
    "a function": (lambda X: len, "refuse"),
    "a generator": (lambda X: (row for row in X), "refuse"),
    "ragged lists": (lambda X: [*X.tolist(), [1.0]], "refuse"),
    "an empty list": (lambda X: [], "refuse"),
    "nested empty lists": (lambda X: [[] for _ in range(len(X))], "refuse"),
    "CSR": (sp.csr_array, "accept"),
    "CSC": (sp.csc_array, "accept"),
    "COO": (sp.coo_matrix, "accept"),
    "BSR": (sp.bsr_array, "accept"),
    "DIA": (sp.dia_array, "accept"),
    "LIL": (sp.lil_array, "accept"),
    "DOK": (sp.dok_array, "accept"),
    "CSR of integers": (lambda X: sp.csr_array(np.round(X).astype(int)), "accept"),
    "CSR of booleans": (lambda X: sp.csr_array(X > 0), "accept"),
    "CSR of float32": (lambda X: sp.csr_array(X.astype(np.float32)), "accept"),
    "CSR of complex": (lambda X: sp.csr_array(X + 0j), "refuse"),
    "CSR with explicit zeros": (with_explicit_zeros, "accept"),
    "CSR with empty rows": (with_empty_rows, "accept"),
    "CSR of nothing": (lambda X: sp.csr_array(X.shape), "accept"),
    "CSR with NaN": (lambda X: sp.csr_array(np.where(np.eye(*X.shape) == 1, np.nan, X)), "refuse"),
    "COO with duplicates": (with_duplicates, "accept"),
    "damaged CSR": (damaged_csr, "refuse"),
    "sparse in one dimension": (lambda X: sp.coo_array(X[:, 0]), "refuse"),
    "pandas": (frame_named(lambda d: [f"x{j}" for j in range(d)]), "accept"),
    "pandas without names": (pd.DataFrame, "accept"),
    "pandas with one name twice": (frame_named(lambda d: ["x"] * d), "either"),
    "pandas with names of mixed types": (frame_named(lambda d: [0, *map(str, range(1, d))]), "refuse"),
    "pandas with two levels of names": (
        frame_named(lambda d: pd.MultiIndex.from_tuples([("a", j) for j in range(d)])),
        "either",
    ),
    "pandas with text": (frame_with(lambda n: ["a"] * n), "refuse"),
    "pandas with categories": (frame_with(lambda n: pd.Categorical(["a", "b"] * n)[:n]), "refuse"),
    "pandas with dates": (frame_with(lambda n: pd.date_range("2020", periods=n)), "refuse"),
    "pandas with missing integers": (frame_with(lambda n: pd.array([1] * (n - 1) + [None], dtype="Int64")), "refuse"),
    "pandas with nullable integers": (frame_with(lambda n: pd.array(range(n), dtype="Int64")), "accept"),
    "pandas with booleans": (frame_with(lambda n: np.arange(n) % 2 == 0), "accept"),
    "pandas with objects": (frame_with(lambda n: np.arange(n).astype(object)), "accept"),
    "pandas with None": (frame_with(lambda n: [1.0] * (n - 1) + [None]), "refuse"),
    "pandas with complex": (frame_with(lambda n: np.ones(n) + 1j), "refuse"),
    "pandas, sparse": (lambda X: pd.DataFrame.sparse.from_spmatrix(sp.csr_matrix(X)), "accept"),
    "pandas of no columns": (lambda X: pd.DataFrame(index=range(len(X))), "refuse"),
    "a series": (lambda X: pd.Series(X[:, 0]), "refuse"),
    "polars": (polars_with(lambda n: np.arange(float(n))), "accept"),
    "polars with text": (polars_with(lambda n: ["a"] * n), "refuse"),
    "polars with missing": (polars_with(lambda n: [1.0] * (n - 1) + [None]), "refuse"),
    "polars with integers": (polars_with(lambda n: list(range(n))), "accept"),
    "polars with lists": (polars_with(lambda n: [[1.0]] * n), "refuse"),
    "polars, lazy": (lambda X: pl.LazyFrame({"a": X[:, 0]}), "refuse"),
    "arrow": (arrow_with(lambda n: np.arange(float(n))), "accept"),
    "arrow with text": (arrow_with(lambda n: ["a"] * n), "refuse"),
    "arrow with missing": (arrow_with(lambda n: [1.0] * (n - 1) + [None]), "refuse"),
    "arrow with dates": (arrow_with(lambda n: [datetime.date(2020, 1, 1)] * n), "refuse"),
}


# ---- parameters ----

BAD_NUMBERS = [-1, -1.0, np.nan, np.inf, -np.inf, "1", None, True, 1j, [[]], 10**400, object()]
PARAMETERS: dict[type, dict[str, tuple[dict, str]]] = {cls: {} for cls in ESTIMATORS}


def parameter(classes, name, values, outcome):
    for cls in classes:
        for value in values:
            shown = repr(value)
            shown = "object()" if "object at" in shown else shown if len(shown) < 40 else shown[:20] + "…"
            PARAMETERS[cls][f"{name}={shown}"] = ({name: value}, outcome)


LINEAR, RIDGE, CV, LOGISTIC = ([cls] for cls in ESTIMATORS)
parameter(
    RIDGE, "alpha", [*BAD_NUMBERS, [1.0, 2.0], [np.nan], ["a"], [10**400], np.array([1j]), {}, [1.0, [2.0]]], "refuse"
)
parameter(RIDGE, "alpha", [0.0, 1e300, 1e-300, 5e-324, 1.7e308, 0], "either")
parameter(RIDGE, "alpha", [np.float32(2.0), np.int64(3), Fraction(1, 3), [2.0], np.array(2.0)], "accept")
parameter(
    CV,
    "alphas",
    [[], [0.0], [1.0, -1.0], [np.nan], "auto", None, [[]], ["a"], 0.0, np.inf, np.array([1j]), [10**400]],
    "refuse",
)
parameter(CV, "alphas", [[1e-300, 1e300], [1e-14], [1e300], [5e-324], [1.7e308]], "either")
parameter(CV, "alphas", [2.0, [3], (1.0, 1.0), np.array([[1.0, 2.0]])], "accept")
parameter(CV, "cv", [1, 0, -3, 10**6, "5", 2.5, True, object(), [], [([0, 1], [99])], np.nan], "refuse")
parameter(CV, "scoring", ["nonsense", "accuracy", 7, [], "roc_auc"], "refuse")
parameter(CV, "criterion", ["LOO", None, 3, "aic"], "refuse")
parameter(CV, "gcv_mode", ["automatic", 3], "refuse")
parameter(CV, "store_cv_results", ["yes", 1, None], "refuse")
parameter(CV, "alpha_per_target", ["yes", 1, None], "refuse")
parameter(CV, "alpha_per_target", [True], "either")
parameter(LOGISTIC, "C", [0, 0.0, -1, -1.0, np.nan, -np.inf, "1", None, True, [1.0], 1j], "refuse")
parameter(LOGISTIC, "C", [1e300, 1e-300, 1e16, 5e-324, np.inf, 10**400], "either")
parameter(LOGISTIC, "l1_ratio", [1.1, -0.1, np.nan, "0"], "refuse")
parameter(LOGISTIC, "l1_ratio", [0.5, 1], "accept")
parameter(LOGISTIC, "l1_ratio", [None], "either")  # with a FutureWarning, as in scikit-learn
parameter(
    LOGISTIC,
    "class_weight",
    ["Balanced", {0: -1.0}, {0: np.nan}, {0: np.inf}, {0: "a"}, {0: None}, 3, []],
    "refuse",
)
parameter(LOGISTIC, "class_weight", [{0: 0.0}, {0: 1e300}, {0: 1e-300}, {0: 1e12, 1: 1e-12}], "either")
parameter(LOGISTIC, "class_weight", ["balanced", {}], "accept")
parameter(LOGISTIC, "class_weight", [{99: 2.0}], "refuse")
parameter(LOGISTIC, "intercept_scaling", [0, -1.0, np.nan, "1"], "refuse")
parameter(LOGISTIC, "verbose", [-1, "yes", 0.5], "refuse")
parameter(LOGISTIC, "warm_start", ["yes", None], "refuse")
parameter(LOGISTIC, "dual", ["yes", None], "refuse")
parameter(RIDGE + LOGISTIC, "solver", ["", "Auto", "atuo", "cholesky ", None, 3, "liblinear "], "refuse")
parameter(LOGISTIC, "solver", ["svd"], "refuse")
parameter(LOGISTIC, "solver", ["liblinear"], "accept")
parameter(LOGISTIC, "solver", ["lbfgs", "newton-cg", "newton-cholesky", "sag"], "either")
parameter(RIDGE, "solver", ["newton-cg"], "refuse")
parameter(RIDGE, "solver", ["svd", "cholesky", "sparse_cg", "lsqr", "saga"], "either")
parameter(LINEAR + RIDGE + LOGISTIC, "tol", [-1e-3, np.nan, np.inf, "0.1", None, True, 10**400], "refuse")
parameter(LINEAR + RIDGE + LOGISTIC, "tol", [0, 0.0, 1e-300, 1.0, 1e300], "either")
parameter(LINEAR + RIDGE, "max_iter", [0], "refuse")
parameter(LOGISTIC, "max_iter", [0], "either")
parameter(LINEAR + RIDGE + LOGISTIC, "max_iter", [-1, 1.5, np.nan, "5", True], "refuse")
parameter(LINEAR + RIDGE + LOGISTIC, "max_iter", [1, 10**9, 10**400], "either")
parameter(LINEAR + RIDGE + LOGISTIC, "max_seconds", [0, -1.0, np.nan, np.inf, "1", True], "refuse")
parameter(LINEAR + RIDGE + LOGISTIC, "max_seconds", [1e-9, 1e-300, 10**300], "either")
parameter(LINEAR + RIDGE, "positive", ["yes", 1, None], "refuse")
parameter(LINEAR + RIDGE, "positive", [True], "either")
parameter(ESTIMATORS, "fit_intercept", ["yes", 0, None, np.nan], "refuse")
parameter(ESTIMATORS, "fit_intercept", [False, np.True_], "accept")
parameter(ESTIMATORS, "n_jobs", [0, 1.5, "2", np.nan, True], "refuse")
parameter(ESTIMATORS, "n_jobs", [1, -1, -100, 10**6, 10**400], "either")
parameter(RIDGE + LOGISTIC, "random_state", [-1, "seed", 1.5], "refuse")

STAGES = {"rows": ROWS, "cells": CELLS, "target": TARGETS, "weights": WEIGHTS, "container": CONTAINERS}


# ---- cases ----


def singles():
    """Return every estimator with every change alone."""
    plans = []
    for cls in ESTIMATORS:
        for stage, changes in STAGES.items():
            plans += [(cls, {stage: name}) for name in changes]
        plans += [(cls, {"parameters": name}) for name in PARAMETERS[cls]]
    return plans


def combination(number):
    """Return an estimator with two to four changes, drawn from the number alone."""
    rng = np.random.default_rng([2024, number])
    cls = ESTIMATORS[number % len(ESTIMATORS)]
    stages = rng.permutation([*STAGES, "parameters"])[: rng.integers(2, 5)]
    # What is refused alone hides what the others do: mostly combine what a fit may have to live with.
    harmless = rng.random() < 0.7
    plan = {}
    for stage in stages:
        changes = PARAMETERS[cls] if stage == "parameters" else STAGES[stage]
        names = [name for name, (_, outcome) in changes.items() if not (harmless and outcome == "refuse")]
        plan[str(stage)] = names[rng.integers(len(names))]
    return cls, plan


SINGLES = singles()
PLANS = SINGLES + [combination(number) for number in range(max(500, N_CASES - len(SINGLES)))]


def describe(plan):
    cls, changes = plan
    return f"{cls.__name__}: {' | '.join(changes.values())}"


def build(number):
    """Return the estimator, its arguments for `fit`, and the outcomes that the plan declares."""
    cls, plan = PLANS[number]
    rng = np.random.default_rng([7, number])
    classifier = cls is LogisticRegression
    X = rng.normal(size=(24, 5))
    y = X @ [1.0, -2.0, 0.5, 0.0, 3.0] + rng.normal(size=24)
    case = SimpleNamespace(rng=rng, X=X, y=y, weight=None, classifier=classifier)
    if classifier:
        case.y = np.digitize(y, np.quantile(y, [0.35, 0.7])) if number % 2 else (y > 0).astype(int)
    outcomes = []
    for stage, changes in STAGES.items():
        if stage not in plan:
            continue
        change, outcome = changes[plan[stage]]
        outcomes.append(outcome)
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if case.X.size == 0:
                continue  # nothing is left to change, and that alone is refused
            if stage == "container":
                case.X = change(case.X)
            else:
                change(case)
    parameters = {}
    if "parameters" in plan:
        parameters, outcome = PARAMETERS[cls][plan["parameters"]]
        outcomes.append(outcome)
    return cls(**parameters), case, outcomes


class HangError(BaseException):
    """The fit took too long."""


@contextmanager
def time_guard():
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "setitimer"):
        yield
        return

    def ring(signum, frame):
        raise HangError(f"no end after {SECONDS} seconds")

    previous = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


def test_there_are_over_a_thousand_different_cases():
    assert len(PLANS) >= N_CASES
    assert len({describe(plan) for plan in PLANS}) > 1000


@pytest.mark.sampled(8)
@pytest.mark.threaded
@pytest.mark.parametrize("number", range(len(PLANS)), ids=[describe(plan) for plan in PLANS])
def test_a_hostile_input_ends_in_a_clear_error_or_an_honest_fit(number):
    model, case, outcomes = build(number)
    owner, before = type(model).__name__, dict(vars(model))
    with time_guard(), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.simplefilter("error", RuntimeWarning)
        try:
            model.fit(case.X, case.y, case.weight)
        except LearnableError as error:
            message = str(error)
            assert message.startswith(f"{owner}: "), f"the error does not name the estimator: {message}"
            assert "\n" not in message and len(message) < 600
            assert vars(model).keys() == before.keys(), "a failed fit left attributes behind"
            assert outcomes != ["accept"], f"refused: {message}"
            return
        assert "refuse" not in outcomes, "a fit of what has to be refused"
        warned = any(issubclass(w.category, ConvergenceWarning) for w in caught)
        assert model.certificate_.holds or warned, f"neither certified nor warned: {model.certificate_}"
        assert np.isfinite(model.coef_).all() and np.isfinite(model.intercept_).all(), "coefficients are not finite"
        predictions = model.predict(case.X)
        if owner == "LogisticRegression":
            proba = model.predict_proba(case.X)
            assert np.isfinite(proba).all() and np.allclose(proba.sum(axis=1), 1.0)
            assert np.isin(predictions, model.classes_).all()
        else:
            assert np.isfinite(predictions).all(), "predictions are not finite"
