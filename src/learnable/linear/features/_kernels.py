"""Kernels of the polynomial feature map: every monomial is its parent, one degree lower, times one more feature."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.jit import kernel

Count = NDArray[np.int64]


@kernel
def monomials_dense(X: Any, parent: Count, factor: Count, skip: int, bias: int, out: Any) -> None:
    """OUT out (n, bias + m − skip): the monomials from number `skip` on, and a column of ones if bias is 1.

    Monomial 0 is the constant; monomial c is monomial parent[c] times feature factor[c].
    """
    n, m = X.shape[0], parent.size
    values = np.empty(m)
    values[0] = 1.0
    for i in range(n):
        row, target = X[i], out[i]
        for c in range(1, m):
            values[c] = values[parent[c]] * row[factor[c]]
        if bias == 1:
            target[0] = 1.0
        for c in range(skip, m):
            target[bias + c - skip] = values[c]


@kernel
def monomials_sparse(
    data: Any, indices: Any, indptr: Any, first: Count, child: Count, degrees: tuple[int, int, int, int, int],
    out_data: Any, out_indices: Any, out_indptr: Any,
) -> None:  # fmt: skip
    """OUT the CSR parts of the monomials of CSR rows; columns come out sorted, because features are.

    `degrees` is (least, greatest, step, skip, bias): with step 1 a feature enters a monomial once at most, and the
    monomials before number `skip` are not put out. The children of monomial c are the columns child[c] + feature −
    first[c].
    """
    least, greatest, step, skip, bias = degrees
    position = 0
    for i in range(indptr.size - 1):
        start, stop = indptr[i], indptr[i + 1]
        if bias == 1:
            out_indices[position], out_data[position] = 0, 1.0
            position += 1
        columns, values = np.zeros(1, dtype=np.int64), np.ones(1)
        nexts = np.full(1, start)
        for degree in range(1, greatest + 1):
            count = 0
            for e in range(columns.size):
                count += max(0, stop - nexts[e])
            new_columns, new_values = np.empty(count, dtype=np.int64), np.empty(count)
            new_nexts = np.empty(count, dtype=nexts.dtype)
            k = 0
            for e in range(columns.size):
                for s in range(nexts[e], stop):
                    new_columns[k] = child[columns[e]] + indices[s] - first[columns[e]]
                    new_values[k] = values[e] * data[s]
                    new_nexts[k] = s + step
                    k += 1
            columns, values, nexts = new_columns, new_values, new_nexts
            if degree >= least:
                for e in range(count):
                    out_indices[position] = columns[e] - skip + bias
                    out_data[position] = values[e]
                    position += 1
        out_indptr[i + 1] = position
