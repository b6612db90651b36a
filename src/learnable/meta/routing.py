"""Metadata of scikit-learn (`enable_metadata_routing=True`) on their way from a model of models to its members."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn import get_config

from ..core.errors import ParameterError
from ..data.door import is_frame
from ..data.rows import take_rows


def is_routing() -> bool:
    """Tell whether metadata are routed."""
    return bool(get_config()["enable_metadata_routing"])


def refuse_without_routing(owner: str, caller: str, given: Mapping[str, Any]) -> None:
    """Raise ParameterError if something is to be passed on that only routing passes on."""
    if given:
        raise ParameterError(
            f"{owner}: {caller} got {', '.join(sorted(given))}, which is not allowed without "
            "metadata routing: set it with sklearn.set_config(enable_metadata_routing=True)."
        )


def of_rows(metadata: Mapping[str, Any], n_rows: int, rows: Any) -> dict[str, Any]:
    """Return the metadata of some rows: of what has an entry for each of `n_rows`, these; all else as it is."""
    found = {}
    for name, value in metadata.items():
        if isinstance(value, (list, tuple)) and len(value) == n_rows:
            found[name] = [value[row] for row in rows]
        elif np.size(getattr(value, "shape", ())) and value.shape[0] == n_rows:
            found[name] = take_rows(value if is_frame(value) or sp.issparse(value) else np.asarray(value), rows)
        else:
            found[name] = value
    return found
