"""Independent check of a non-negative factorisation: rows solved by SciPy's active sets, conditions by NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.optimize import nnls

from ..core.checking import Recheck, has_shapes, relative
from ..core.errors import VerificationError
from ..data.checking import read_table

Array = NDArray[Any]


@np.errstate(all="ignore")
def nmf(model: Any, X: Any, y: Any = None, sample_weight: Any = None) -> Recheck:
    """Recompute the certificate of an NMF: W from H, then how far a step of every coordinate of H moves WH."""
    table = read_table(model, X, None, sample_weight)
    rows = np.asarray(table.X.toarray() if sp.issparse(table.X) else table.X, dtype=np.float64)
    n, d = rows.shape
    k = len(model.components_)
    if not has_shapes(model, components_=(k, d), penalties_=(4,)):
        raise VerificationError("verify: the arrays of this NMF do not fit the data.")
    H = np.asarray(model.components_)
    of_h = model.alpha_W if model.alpha_H == "same" else model.alpha_H
    r = model.l1_ratio
    stated = np.array([model.alpha_W * d * r, model.alpha_W * d * (1 - r), of_h * n * r, of_h * n * (1 - r)])
    W = np.stack([_row(row, H, stated[0], stated[1]) for row in rows])
    size = float(np.linalg.norm(rows)) or 1.0
    moved = 0.0
    G = W.T @ W + stated[3] * np.eye(k)
    C = W.T @ rows - stated[2]
    after = H.copy()
    for t in range(k):
        if G[t, t] <= 0:
            after[t] = 0.0
            continue
        new = np.maximum(after[t] - (G[t] @ after - C[t]) / G[t, t], 0.0)
        moved += G[t, t] * float(((new - after[t]) ** 2).sum())
        after[t] = new
    left = float(np.linalg.norm(rows - W @ H))
    wanted = {None: d, "auto": d}.get(model.n_components, model.n_components)
    custom = model.init == "custom" and model.n_components in (None, "auto")
    # At a minimum the error changes by the square of a change of H: it must be known to more digits than H.
    # Where parts nearly depend on each other, W is known to a share `tol` of the rows only: a little may be left over.
    recorded = float(model.reconstruction_err_)
    most = float(np.hypot(left, 2.0 * model.tol * size))
    facts = [
        relative(model.penalties_, stated, stated.max() or 1.0),
        1e3 * max(left - recorded, recorded - most, 0.0) / size,
        0.0 if (H >= 0).all() and (k == wanted or custom) and model.n_components_ == k else np.inf,
    ]
    value = np.sqrt(moved) / size
    away = float(np.sqrt(max(recorded**2 - left**2, 0.0))) / size  # how far the fit's W was from the best
    return Recheck(float(value) if max(facts) <= 1e-6 else np.inf, 1e-6 * model.tol + away, table.fingerprint)


def _row(x: Array, H: Array, absolute: float, squared: float) -> Array:
    """Return w ≥ 0 with least ½‖x − Hᵀw‖² + absolute Σw + ½ squared Σw²."""
    k = len(H)
    alive = np.flatnonzero((H != 0).any(axis=1) | (squared > 0))
    w = np.zeros(k)
    if not len(alive):
        return w
    A = np.vstack([H[alive].T, np.sqrt(squared) * np.eye(len(alive))])
    b = np.concatenate([x, np.zeros(len(alive))])
    if absolute > 0:
        # ½‖Aw − b‖² + a1ᵀw = ½‖Lᵀw − L⁻¹(Aᵀb − a1)‖² + constant, AᵀA = LLᵀ.
        gram = A.T @ A
        L = np.linalg.cholesky(gram + 1e-14 * np.trace(gram) * np.eye(len(alive)))
        b = np.linalg.solve(L, A.T @ b - absolute)
        A = L.T
    w[alive] = nnls(A, b, maxiter=50 * len(alive) + 100)[0]
    return w
