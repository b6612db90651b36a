"""Give models damaged sparse arrays, in a process of their own: `python -m tests.damaged_sparse NAME…`.

Prints a line for each case before it is tried, so that after a crash the last line names it, and what happened unless
the case was refused.
"""

import sys
import warnings

import numpy as np
import scipy.sparse as sp
from tests.registered import brief, build, small_table

from learnable.core.errors import DataError

FAR = 10**6


def damaged(csr, kind):
    """Return a copy of a CSR array, damaged in one way."""
    X = csr.copy()
    if kind == "a row ends far outside":
        X.indptr[5] = FAR
    elif kind == "the last row ends far outside":
        X.indptr[-1] = FAR
    elif kind == "a row ends before the array":
        X.indptr[5] = -FAR
    elif kind == "the first row begins inside":
        X.indptr[0] = 2
    elif kind == "row ends fall":
        X.indptr[5], X.indptr[6] = X.indptr[7], X.indptr[4]
    elif kind == "a column far outside":
        X.indices[3] = FAR
    elif kind == "a negative column":
        X.indices[3] = -FAR
    elif kind == "fewer numbers than columns":
        X.data = X.data[:10]
    elif kind == "fewer row ends than rows":
        X.indptr = X.indptr[:10]
    elif kind == "CSC: a column ends far outside":
        X = X.tocsc()
        X.indptr[1] = FAR
    elif kind == "CSC: a row far outside":
        X = X.tocsc()
        X.indices[0] = FAR
    elif kind == "COO: a row far outside":
        X = X.tocoo()
        X.coords = (np.where(np.arange(X.nnz) == 0, FAR, X.coords[0]), X.coords[1])
    elif kind == "LIL: a column far outside":
        X = X.tolil()
        X.rows[2] = [FAR] * len(X.rows[2])
    return X


KINDS = (
    "a row ends far outside",
    "the last row ends far outside",
    "a row ends before the array",
    "the first row begins inside",
    "row ends fall",
    "a column far outside",
    "a negative column",
    "fewer numbers than columns",
    "fewer row ends than rows",
    "CSC: a column ends far outside",
    "CSC: a row far outside",
    "COO: a row far outside",
    "LIL: a column far outside",
)


def try_all(name):
    """Give one model every damaged array, to fit and to predict; return the number of cases that were not refused."""
    X, y = small_table(name)
    X = sp.csr_array(np.where(np.abs(X) > 0.5, X, 0.0))
    sound = brief(build(name)).fit(X, y)
    missed = 0
    for kind in KINDS:
        bad = damaged(X, kind)
        for what, act in {
            "fit": lambda bad=bad: brief(build(name)).fit(bad, y),
            "predict": lambda bad=bad: (sound.predict if hasattr(sound, "predict") else sound.transform)(bad),
        }.items():
            print(f"{name}.{what}: {kind}", flush=True)
            try:
                act()
                print("    not refused")
            except DataError:
                continue
            except Exception as error:
                print(f"    no DataError but {type(error).__name__}: {error}")
            missed += 1
    return missed


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    sys.exit(sum(try_all(name) for name in sys.argv[1:]))
