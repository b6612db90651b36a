"""One small table, in the forms the tests of the door pass it in, and the doors they pass it through."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import scipy.sparse as sp
from tests.data.toys import MeanRegressor

from learnable.core import Run
from learnable.data import door

VALUES = np.array([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0], [4.0, 5.0, 6.0], [0.0, 0.0, 0.0], [7.0, 0.0, 1.0]])
TARGETS = np.array([0.5, 1.5, 2.5, 3.5, 4.5])
WEIGHTS = np.array([1.0, 2.0, 0.5, 1.0, 3.0])
NAMES = ["age", "size", "rate"]

numbers = door(target="numeric")
several = door(target="numeric", multi_output=True)
classes = door(target="classes")
dense_only = door(target="numeric", sparse=False)
unsupervised = door(target="none")


def read(X, y=TARGETS, weight=None, through=numbers):
    return through(MeanRegressor(), X, y, weight, Run())


def dense(X):
    return X.toarray() if sp.issparse(X) else X


def pandas_frame(dtype=None):
    frame = pd.DataFrame(VALUES, columns=NAMES)
    return frame if dtype is None else frame.astype(dtype)


as_pandas, as_polars, as_arrow = pd.DataFrame, pl.DataFrame, pa.table
