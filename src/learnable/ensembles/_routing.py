"""Metadata of scikit-learn (`enable_metadata_routing=True`) on their way from an ensemble to its members.

A member gets what it has asked for with `set_fit_request`, `set_predict_request` and so on. Which of its methods an
answer of the ensemble is made of depends on the methods that it has: `callee` says it once, for the router and for the
answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, get_routing_for_object, process_routing

from ..meta.routing import is_routing, of_rows, refuse_without_routing

__all__ = ["SOURCES", "asks_for_weights", "callee", "of_rows", "routed", "router_of"]

#: What the answers of an ensemble are made of: the first that the members have.
SOURCES: Final[Mapping[str, tuple[str, ...]]] = {
    "fit": ("fit",),
    "predict": ("predict_proba", "predict"),
    "predict_proba": ("predict_proba", "predict"),
    "predict_log_proba": ("predict_log_proba", "predict_proba", "predict"),
    "decision_function": ("decision_function",),
}


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
        refuse_without_routing(type(ensemble).__name__, caller, given)
        return {}
    found = process_routing(ensemble, caller, **given)
    return dict(found.estimator[callee(template, caller)])


def asks_for_weights(template: Any) -> bool:
    """Tell whether a member has asked for sample_weight in `fit`; without routing nobody has to."""
    return not is_routing() or bool(get_routing_for_object(template).consumes("fit", ("sample_weight",)))
