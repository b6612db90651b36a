"""Tables for the sparse models: any shape, scales from 1e-8 to 1e8, duplicated and constant columns, zero weights."""

import numpy as np
import scipy.sparse as sp
from hypothesis import strategies as st

CHANGES = ("constant", "duplicate", "opposite", "zero weights", "shifted", "scaled", "wide scales", "zero column")


@st.composite
def sparse_tables(draw, n_targets=0, n_classes=0, most_columns=40, kinds=("dense", "fortran", "sparse", "float32")):
    """Draw X, y, the weights (or None), and X again as a dense float64 array; some column always explains y."""
    n, d = draw(st.integers(4, 25)), draw(st.integers(1, most_columns))
    kind, changes = draw(st.sampled_from(kinds)), draw(st.sets(st.sampled_from(CHANGES)))
    x_scale, y_scale = draw(st.sampled_from([1e-8, 1.0, 1e8])), draw(st.sampled_from([1e-8, 1.0, 1e8]))
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    T = rng.standard_normal((n, d))
    if kind == "sparse":
        T *= rng.random((n, d)) < 0.7
    T[:, 0] = rng.standard_normal(n)
    y = rng.standard_normal((n, max(1, n_targets))) + T[:, :1]
    if "constant" in changes and d > 1:
        T[:, d // 2] = 3.0
    if "zero column" in changes and d > 2:
        T[:, 1] = 0.0
    if "duplicate" in changes and d > 1:
        T[:, -1] = T[:, 0]
    if "opposite" in changes and d > 3:
        T[:, 2] = -2.0 * T[:, 0]
    if "scaled" in changes:
        T *= 10.0 ** rng.integers(-4, 5, d)
    if "wide scales" in changes and kind != "float32":
        T *= 10.0 ** rng.choice([-8.0, 0.0, 8.0], d)
    if "shifted" in changes and kind in ("dense", "fortran"):
        T += 1e3 * np.abs(T).max(axis=0)
    weight = None
    if "zero weights" in changes:
        weight = np.where(rng.random(n) < 0.4, 0.0, rng.random(n) + 0.1)
        weight[:4] = 1.0
    if n_classes:
        y = np.digitize(y[:, 0], np.quantile(y[:4, 0], np.linspace(0, 1, n_classes + 1)[1:-1]))
        y[:n_classes] = np.arange(n_classes)
    else:
        y = (y if n_targets else y[:, 0]) * y_scale
    T = T * x_scale
    if kind == "float32":
        T = T.astype(np.float32)
    table = sp.csr_array(T) if kind == "sparse" else np.asfortranarray(T) if kind == "fortran" else T
    return table, y, weight, np.asarray(T, dtype=float)
