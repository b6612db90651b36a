"""Toy models with chosen contents."""

import math

import numpy as np
import scipy.sparse as sp
from tests.core.toys import Box

from learnable.core import Certificate


def fitted_box(content=None, **fitted):
    box = Box(content)
    vars(box).update(fitted)
    return box


def rich_box():
    """Return a model with one member of every kind."""
    return fitted_box(
        content={"grid": [0.1, 1, None, True, math.nan], "inner": Box("deep"), "span": slice(1, None, 2)},
        coef_=np.linspace(-1, 1, 5),
        counts_=np.arange(6, dtype=np.int32).reshape(2, 3),
        mask_=np.array([True, False]),
        classes_=np.array(["ja", "nein", "vielleicht"]),
        feature_names_in_=np.array(["größe", "y", "温度", "", "e"], dtype=object),
        n_features_in_=5,
        table_=sp.csr_array(np.array([[0.0, 2.0], [0.0, 0.0], [3.0, 4.0]])),
        certificate_=Certificate("gap", 1e-9, 1e-6, bound=math.inf, n_iter=4, fingerprint="0123"),
    )
