"""What all embeddings share: reading the rows, the coordinates as a transformer's output, the dtype that came in."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin

from ..core.declare import FLOATS, fitted, tags
from ..core.errors import DataError
from ..core.estimator import Estimator
from ..core.loaded import law
from ..data.door import Table, door, refuse_extreme_sizes
from ..neighbors import NearestNeighbors

Array = NDArray[np.float64]


def rows_in_memory(owner: str, table: Table, least: int = 2) -> Any:
    """Return the rows of a table; raise DataError where they are not in memory, too large or too few."""
    if table.X is None:
        raise DataError(f"{owner}: the rows must be in memory.")
    refuse_extreme_sizes(table.X, None, owner)
    if table.n_rows < least:
        raise DataError(f"{owner}: found n_samples = {table.n_rows}; distances need at least {least} rows.")
    return table.X


#: What a model that keeps its rows in a search over neighbours asks of a loaded one.
SEARCHES_ROWS = law(
    "nbrs_ must be a search over the rows of embedding_",
    lambda model: isinstance(model.nbrs_, NearestNeighbors) and model.nbrs_.n_samples_fit_ == len(model.embedding_),
)


def kept_rows(X: Any) -> Any:
    """Return a copy of rows for a model to keep."""
    return X.copy() if sp.issparse(X) else np.array(X, order="C")


def dense_rows(X: Any) -> Array:
    """Return rows as a float64 array."""
    return np.asarray(X.toarray() if sp.issparse(X) else X, dtype=np.float64)


class Embedding(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Estimator):
    """Base of the models that give every row coordinates; they keep the rows as `X_fit_` or in `nbrs_`."""

    embedding_: Array = fitted("(n_rows, n_components)", "Coordinates of the rows.")
    n_features_in_: int = fitted("int", "Number of columns.")

    _door = staticmethod(door(target="none"))
    _tags = tags(sparse=True, preserves_dtype=FLOATS)

    def fit(self, X: Any, y: Any = None) -> Self:  # type: ignore[override]
        """Embed the rows of X; y is ignored."""
        return super().fit(X)

    def fit_transform(self, X: Any, y: Any = None) -> Array:
        """Embed the rows of X and return their coordinates; float32 for float32."""
        self.fit(X)
        rows = self.nbrs_.rows_ if hasattr(self, "nbrs_") else self.X_fit_
        return np.asarray(self.embedding_, dtype=rows.dtype)

    @property
    def _n_features_out(self) -> int:
        return int(self.embedding_.shape[1])
