"""Out-of-bag sums: what the trees that have not seen a row say of it.

A row is out of the bag of about (1 − 1/n)ⁿ ≈ 37 % of the trees. Their mean is an honest prediction: it is the forest
of those trees, none of which was grown on the row, so that its error estimates that of (a somewhat smaller) forest.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..core.run import Run
from ..trees.layout import Trees
from ._crew import run_crew
from ._kernels import add_unseen_dense, add_unseen_sparse
from .draws import Draw, draw_rows, out_of_bag

Array = NDArray[np.float64]

_CHUNK_ROWS = 4096
_BITS = 64  # trees whose bags fit into one word a row


def sums_out_of_bag(trees: Trees, X: Any, draw: Draw, n_threads: int = 1) -> tuple[Array, NDArray[np.int64]]:
    """Return, for each training row, the sum of the leaf values of the trees that have not seen it, and their number.

    Trees are added in order, whatever the number of threads.
    """
    n = X.shape[0]
    total, voters = np.zeros((n, trees.value.shape[1])), np.zeros(n, np.int64)
    table: tuple[Any, ...] = (X,)
    if sp.issparse(X):
        X = X.tocsr()
        X.sort_indices()
        table = (X.data.astype(np.float64, copy=False), X.indices, X.indptr.astype(np.int64, copy=False))
    function: Any = add_unseen_sparse if sp.issparse(X) else add_unseen_dense
    nodes = (trees.feature, trees.threshold, trees.left, trees.right, trees.missing_left, trees.category, trees.bits)
    for first in range(0, trees.n_trees, _BITS):
        last = min(trees.n_trees, first + _BITS)
        start, unseen = trees.start[first : last + 1], _mark_unseen(draw, range(first, last))

        def chunk(number: int, start: Any = start, unseen: Any = unseen) -> None:
            lo = number * _CHUNK_ROWS
            function(*table, lo, min(n, lo + _CHUNK_ROWS), start, nodes, trees.value, unseen, total, voters)

        run_crew(chunk, -(-n // _CHUNK_ROWS), n_threads, Run())
    return total, voters


def _mark_unseen(draw: Draw, members: range) -> NDArray[np.uint64]:
    """Return a word a row, whose bit k is set if the k-th of these members has not seen the row."""
    unseen = np.zeros(draw.n_rows, np.uint64)
    for k, member in enumerate(members):
        unseen[out_of_bag(draw_rows(draw, member), draw.n_rows)] |= np.uint64(1) << np.uint64(k)
    return unseen
