"""`to_onnx`: a fitted model as an ONNX file, which runs without Python.

The extra `onnx` brings the package that writes the file; reading it needs only an ONNX runtime.
"""

from __future__ import annotations

import json
import os
from typing import Any, Final

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..core import REGISTRY, ParameterError, registered_name, writing
from .graph import Graph, finish
from .linear import check_linear, linear_answer
from .preparation import prepare
from .trees import tree_answer

_DTYPES: Final = {"float32": np.float32, "float64": np.float64}
#: Models that are linear although their family is another.
_ALSO_LINEAR: Final = ("LinearDiscriminantAnalysis",)


def to_onnx(model: Any, path: str | os.PathLike[str] | None = None, *, dtype: str = "float32") -> Any:
    """Write a fitted model as an ONNX file.

    Its input `X` is a table of numbers, NaN for a missing value. Its outputs are `prediction`, or for classes `label`
    and `probabilities` (`scores` for models without). Everything is computed in double precision, so that the answers
    are those of `predict` and `predict_proba` up to the order in which sums are added: rows of single precision, too,
    take exactly the branches that they take here.

    Parameters
    ----------
    model : estimator or Pipeline
        A linear model, a decision tree, a forest, a bag of decision trees, gradient boosting on histograms or not, or
        AdaBoostClassifier; or a scikit-learn Pipeline that ends in one, after scalers or a SimpleImputer.
    path : str or path, optional
        Where to write; left out, nothing is written.
    dtype : {"float32", "float64"}, default="float32"
        Type of the input.

    Returns
    -------
    onnx.ModelProto
        The model.

    Raises
    ------
    ParameterError
        If ONNX cannot express the model; with the reason.
    ImportError
        Without the package onnx.

    Notes
    -----
    Operators of ai.onnx 18 and ai.onnx.ml 5 (TreeEnsemble); tested with onnxruntime 1.31. A column of categories of
    histogram boosting holds the numbers it was fitted with; categories that are words have to be encoded before the
    fit.

    Examples
    --------
    >>> import learnable as ln
    >>> model = ln.Ridge().fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.5])
    >>> written = ln.to_onnx(model, "model.onnx")  # doctest: +SKIP
    >>> [output.name for output in written.graph.output]  # doctest: +SKIP
    ['prediction']
    """
    if dtype not in _DTYPES:
        raise ParameterError(f"to_onnx: dtype must be 'float32' or 'float64'; got {dtype!r}.")
    _require_onnx()
    steps, last = _unpack(model)
    check_is_fitted(last)
    first = steps[0] if steps else last
    n_features = int(getattr(first, "n_features_in_", last.n_features_in_))
    graph = Graph()
    x = "X" if dtype == "float64" else graph.cast("X", np.float64)
    for step in steps:
        x = prepare(graph, x, step)
    answer = _converter(last)(graph, x, last)
    finish(graph, answer, type(last).__name__)
    written = graph.model(type(last).__name__, _DTYPES[dtype], n_features, _notes(model))
    if path is not None:
        with writing(path) as file:
            file.write(written.SerializeToString())
    return written


def _require_onnx() -> None:
    try:
        import onnx  # noqa: F401
    except ImportError as error:
        raise ImportError(
            "to_onnx: the package onnx is not installed; install it with `pip install learnable[onnx]`."
        ) from error


def _unpack(model: Any) -> tuple[list[Any], Any]:
    """Return the steps before the model, and the model."""
    if type(model).__name__ == "Pipeline" and hasattr(model, "steps"):
        return [step for _, step in model.steps[:-1]], model.steps[-1][1]
    return [], model


def _converter(model: Any) -> Any:
    """Return what turns this kind of model into operators."""
    name = registered_name(type(model))
    entry = REGISTRY.get(name) if name is not None else None
    family = None if entry is None or entry.traits is None else entry.traits.family
    if family == "linear" or name in _ALSO_LINEAR:
        if hasattr(model, "coef_"):
            check_linear(model)
            return linear_answer
    elif family in ("trees", "ensembles") or name in ("BaggingClassifier", "BaggingRegressor"):
        return tree_answer
    raise ParameterError(
        f"to_onnx: {type(model).__name__} cannot be exported. Linear models, decision trees, forests, bags of trees, "
        "gradient boosting and AdaBoostClassifier of this library can, also at the end of a Pipeline."
    )


def _notes(model: Any) -> dict[str, str]:
    """Return what the file says about its origin."""
    notes = {"model": type(model).__name__, "library": "learnable"}
    names = getattr(model, "feature_names_in_", None)
    if names is not None:
        notes["columns"] = json.dumps([str(name) for name in names])
    return notes
