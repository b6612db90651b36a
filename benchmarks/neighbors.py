"""Nearest neighbours against scikit-learn, scikit-learn-intelex and faiss (flat, exact).

A job is a fit and the k nearest rows of 10,000 queries. The quality is the sum of the distances to the rows named,
measured here in float64: a neighbour that is not among the nearest raises it.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from .harness import OURS, Row, blas_threads
from .linear import INTELEX, SKLEARN

FAISS = "faiss-cpu"
MODULES = {OURS: "learnable.neighbors", SKLEARN: "sklearn.neighbors", INTELEX: "sklearnex.neighbors"}


class Data(NamedTuple):
    X: np.ndarray
    Q: np.ndarray
    k: int


def contender(library: str, **parameters: Any) -> Callable[[Data], Any]:
    """Return the function that fits the rows and finds the neighbours of the queries."""

    def find(data: Data) -> SimpleNamespace:
        if library == INTELEX:
            import_module("daal4py").daalinit(blas_threads())
        estimator = import_module(MODULES[library]).NearestNeighbors
        threads = {"n_jobs": -1} if library == SKLEARN else {}
        model = estimator(n_neighbors=data.k, **parameters, **threads).fit(data.X)
        rows = model.kneighbors(data.Q)[1]
        return SimpleNamespace(rows=rows, certificate_=getattr(model, "certificate_", None))

    return find


def faiss_flat(data: Data) -> SimpleNamespace:
    """Find by faiss, whose rows and queries are float32."""
    faiss = import_module("faiss")
    faiss.omp_set_num_threads(blas_threads())
    index = faiss.IndexFlatL2(data.X.shape[1])
    index.add(data.X.astype(np.float32))
    return SimpleNamespace(rows=index.search(data.Q.astype(np.float32), data.k)[1])


def normal_rows(n: int, d: int, k: int, rank: int | None = None) -> Callable[[bool], Data]:
    """Return independent normal columns, or `rank` of them mixed to d."""

    def make(quick: bool) -> Data:
        rng = np.random.default_rng(0)
        m, rows = (500, n // 50) if quick else (10_000, n)
        mixing = np.eye(d) if rank is None else rng.normal(size=(rank, d))
        X, Q = (rng.normal(size=(size, len(mixing))) @ mixing for size in (rows, m))
        return Data(X, Q, k)

    return make


def distance_sum(found: Any, data: Data) -> dict[str, float]:
    """Return the sum of the distances from the queries to the rows found."""
    total = sum(
        float(np.sqrt(((data.X[found.rows[:, j]] - data.Q) ** 2).sum(axis=1)).sum()) for j in range(found.rows.shape[1])
    )
    return {"objective": total}


def contenders() -> dict[str, Callable[[Data], Any]]:
    return {
        OURS: contender(OURS),
        SKLEARN: contender(SKLEARN, algorithm="brute"),
        f"{SKLEARN} (auto)": contender(SKLEARN),
        INTELEX: contender(INTELEX, algorithm="brute"),
        FAISS: faiss_flat,
    }


def row(name: str, size: str, make: Callable[[bool], Data]) -> Row:
    return Row(
        name,
        "NearestNeighbors, 10,000 queries",
        size,
        make,
        contenders(),
        distance_sum,
        {SKLEARN: 1.0, INTELEX: 1.0, FAISS: 1.0},
        tolerance=1e-7,  # faiss decides in float32
    )


ROWS = [
    row("neighbors", "100,000 × 20, k = 5", normal_rows(100_000, 20, 5)),
    row("neighbors_wide", "50,000 × 100, k = 10", normal_rows(50_000, 100, 10)),
    row("neighbors_narrow", "100,000 × 3, k = 5", normal_rows(100_000, 3, 5)),
    row("neighbors_low_rank", "100,000 × 20 of rank 3, k = 5", normal_rows(100_000, 20, 5, rank=3)),
]
