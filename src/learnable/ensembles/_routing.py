"""Metadata of scikit-learn (`enable_metadata_routing=True`) on their way from an ensemble to its members.

A member gets what it has asked for with `set_fit_request`, `set_predict_request` and so on. Which of its methods an
answer of the ensemble is made of depends on the methods that it has: `callee` says it once, for the router and for the
answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import scipy.sparse as sp
from sklearn import get_config
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, get_routing_for_object, process_routing

from ..core.errors import ParameterError
from ..data.frames import is_frame
from ..data.rows import take_rows

#: What the answers of an ensemble are made of: the first that the members have.
SOURCES: Final[Mapping[str, tuple[str, ...]]] = {
    "fit": ("fit",),
    "predict": ("predict_proba", "predict"),
    "predict_proba": ("predict_proba", "predict"),
    "predict_log_proba": ("predict_log_proba", "predict_proba", "predict"),
    "decision_function": ("decision_function",),
}


def is_routing() -> bool:
    """Tell whether metadata are routed."""
    return bool(get_config()["enable_metadata_routing"])


def callee(template: Any, caller: str) -> str:
    """Return the method of a member that the method `caller` of the ensemble asks."""
    names = SOURCES[caller]
    return next((name for name in names if hasattr(template, name)), names[-1])


def router_of(ensemble: Any, template: Any) -> MetadataRouter:
    """Return what is routed where."""
    mapping = MethodMapping()
    for caller in SOURCES:
        mapping.add(caller=caller, callee=callee(template, caller))
    return MetadataRouter(owner=ensemble).add(estimator=template, method_mapping=mapping)


def routed(ensemble: Any, template: Any, caller: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metadata for the members' method, checked against what they asked for."""
    if not is_routing():
        if given:
            raise ParameterError(
                f"{type(ensemble).__name__}: {caller} got {', '.join(sorted(given))}, which is not allowed without "
                "metadata routing: set it with sklearn.set_config(enable_metadata_routing=True)."
            )
        return {}
    found = process_routing(ensemble, caller, **given)
    return dict(found.estimator[callee(template, caller)])


def asks_for_weights(template: Any) -> bool:
    """Tell whether a member has asked for sample_weight in `fit`; without routing nobody has to."""
    return not is_routing() or bool(get_routing_for_object(template).consumes("fit", ("sample_weight",)))


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
