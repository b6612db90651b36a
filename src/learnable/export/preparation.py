"""The steps before a model in a scikit-learn pipeline that are formulas by column."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from ..core.errors import ParameterError
from .graph import Graph


def prepare(graph: Graph, x: str, step: Any) -> str:
    """Apply a fitted transformer; return the name of the result."""
    if step is None or step == "passthrough":
        return x
    convert = _STEPS.get(type(step).__name__) if type(step).__module__.startswith("sklearn.") else None
    if convert is None:
        raise ParameterError(
            f"to_onnx: the step {type(step).__name__} of the pipeline cannot be exported; {', '.join(_STEPS)} can. "
            "Export the model alone and prepare the rows outside."
        )
    return convert(graph, x, step)


def _standard(graph: Graph, x: str, step: Any) -> str:
    if step.with_mean:
        x = graph.add("Sub", x, _row(graph, step.mean_))
    return graph.add("Div", x, _row(graph, step.scale_)) if step.with_std else x


def _robust(graph: Graph, x: str, step: Any) -> str:
    if step.with_centering:
        x = graph.add("Sub", x, _row(graph, step.center_))
    return graph.add("Div", x, _row(graph, step.scale_)) if step.with_scaling else x


def _largest(graph: Graph, x: str, step: Any) -> str:
    return graph.add("Div", x, _row(graph, step.scale_))


def _range(graph: Graph, x: str, step: Any) -> str:
    moved = graph.add("Add", graph.add("Mul", x, _row(graph, step.scale_)), _row(graph, step.min_))
    if not step.clip:
        return moved
    low, high = step.feature_range
    capped = graph.add("Min", moved, graph.constant(np.float64(high)))
    return graph.add("Max", capped, graph.constant(np.float64(low)))


def _impute(graph: Graph, x: str, step: Any) -> str:
    fill = np.asarray(step.statistics_)
    plain = isinstance(step.missing_values, float) and np.isnan(step.missing_values)
    if fill.dtype.kind != "f" or not plain or step.add_indicator or np.isnan(fill).any():
        raise ParameterError(
            "to_onnx: SimpleImputer can be exported if it fills NaN in columns of numbers, none of them empty, and "
            "adds no indicator."
        )
    return graph.add("Where", graph.add("IsNaN", x), _row(graph, fill), x)


def _row(graph: Graph, values: Any) -> str:
    return graph.constant(np.asarray(values, dtype=np.float64)[None, :])


_STEPS: Final[dict[str, Callable[[Graph, str, Any], str]]] = {
    "StandardScaler": _standard,
    "RobustScaler": _robust,
    "MaxAbsScaler": _largest,
    "MinMaxScaler": _range,
    "SimpleImputer": _impute,
}
