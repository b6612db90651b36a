"""Linear models: one product, and the link of the model."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import scipy.sparse as sp

from ..core.errors import ParameterError
from .graph import Answer, Graph

#: Classifiers whose probabilities are 1/(1 + e^{−z}), or the softmax, of their scores.
_LOGISTIC: Final = ("LogisticRegression", "LogisticRegressionCV", "BestSubsetClassifier", "LinearDiscriminantAnalysis")


def linear_answer(graph: Graph, x: str, model: Any) -> Answer:
    """Return what a linear model computes from the input `x`."""
    coef = model.coef_.toarray() if sp.issparse(model.coef_) else np.asarray(model.coef_)
    flat = coef.ndim == 1
    weights = np.atleast_2d(coef).astype(np.float64)
    offset = np.broadcast_to(np.asarray(model.intercept_, dtype=np.float64), (len(weights),))
    product = graph.add("MatMul", x, graph.constant(np.ascontiguousarray(weights.T)))
    scores = graph.add("Add", product, graph.constant(offset.copy()))
    classes = getattr(model, "classes_", None)
    if classes is None:
        return Answer(scores, len(weights), _link(model), is_flat=flat)
    name = type(model).__name__
    link = ("logit" if len(classes) == 2 else "softmax") if name in _LOGISTIC else "none"
    return Answer(scores, len(weights), link, classes=np.asarray(classes))


def _link(model: Any) -> str:
    """Return how the mean of a regression follows from its score."""
    if hasattr(model, "_generalised"):
        return str(model._generalised()[1].name)
    if type(model).__name__ == "StepwiseGLM":
        return "logit" if model.family == "binomial" else "log"
    return "log" if getattr(model, "log_link", False) else "identity"


def check_linear(model: Any) -> None:
    """Raise ParameterError unless the prediction is a link of b + Xβ."""
    shape = getattr(model.coef_, "shape", ())
    if shape[-1:] != (model.n_features_in_,):
        raise ParameterError(f"to_onnx: {type(model).__name__} has coef_ of shape {shape}, not one per column.")
