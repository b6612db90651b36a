"""A graph of ONNX operators in the making, and the last operators of every model: links, probabilities, labels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ..core.errors import ParameterError

Array = NDArray[np.float64]

#: Operators of ai.onnx; 18 is the first in which reductions take their axes as an input.
OPSET: Final = 18
#: Operators for trees; 5 is the first that computes in double precision and knows sets of categories.
TREE_OPSET: Final = 5
#: The file format that goes with them.
IR_VERSION: Final = 9


class Graph:
    """Operators and constants in the order in which they are computed.

    Everything between the input and the outputs is in double precision: a threshold or a coefficient is the model's
    own number, and a row of single precision takes the same branches here and there.
    """

    def __init__(self) -> None:
        import onnx

        self._onnx = onnx
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.outputs: list[Any] = []

    def constant(self, array: Any) -> str:
        """Store an array; return its name."""
        name = f"constant_{len(self.constants)}"
        values = np.asarray(array)
        if values.dtype.kind in "OU":
            values = np.array([str(value).encode() for value in values.ravel()], dtype=object).reshape(values.shape)
        self.constants.append(self._onnx.numpy_helper.from_array(values, name))
        return name

    def tensor(self, array: Any) -> Any:
        """Return an array as the attribute of an operator."""
        return self._onnx.numpy_helper.from_array(np.asarray(array), "")

    def add(self, operator: str, *inputs: str, domain: str = "", name: str | None = None, **attributes: Any) -> str:
        """Apply an operator; return the name of its result."""
        result = name or f"{operator.lower()}_{len(self.nodes)}"
        self.nodes.append(self._onnx.helper.make_node(operator, inputs, [result], domain=domain, **attributes))
        return result

    def cast(self, name: str, dtype: Any) -> str:
        """Change the type of the numbers."""
        return self.add("Cast", name, to=self._onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))

    def output(self, name: str, result: str, dtype: Any, shape: list[int | str]) -> None:
        """Give a result to the outside under this name."""
        self.add("Identity", result, name=name)
        kind = np.dtype(dtype)
        code = self._onnx.TensorProto.STRING
        if kind.kind not in "OU":
            code = self._onnx.helper.np_dtype_to_tensor_dtype(kind)
        self.outputs.append(self._onnx.helper.make_tensor_value_info(name, code, shape))

    def model(self, title: str, dtype: Any, n_features: int, notes: dict[str, str]) -> Any:
        """Return the finished, checked model; its input is the table X."""
        helper = self._onnx.helper
        code = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        entry = helper.make_tensor_value_info("X", code, ["rows", n_features])
        graph = helper.make_graph(self.nodes, title, [entry], self.outputs, self.constants)
        versions = [helper.make_opsetid("", OPSET), helper.make_opsetid("ai.onnx.ml", TREE_OPSET)]
        model = helper.make_model(graph, opset_imports=versions, ir_version=IR_VERSION, producer_name="learnable")
        helper.set_model_props(model, notes)
        self._onnx.checker.check_model(model)
        return model


@dataclass(frozen=True)
class Answer:
    """What a model computes for a row, and what is to be made of it.

    Attributes
    ----------
    scores : str
        Name of the (n, K) scores; K = 1 for one number and for two classes.
    n_scores : int
        K.
    link : str
        A number: what its mean is. Classes: "logit" or "softmax" make probabilities of scores, "shares" are
        probabilities, and with "none" there are scores only.
    factor : float
        What scores are multiplied by before they become probabilities.
    classes : array or None
        The labels.
    is_flat : bool
        Whether numbers are returned as (n,).
    """

    scores: str
    n_scores: int
    link: str = "identity"
    factor: float = 1.0
    classes: NDArray[Any] | None = None
    is_flat: bool = True


def _square(graph: Graph, score: str) -> str:
    return graph.add("Mul", score, score)


def _complementary(graph: Graph, score: str) -> str:
    """Return 1 − exp(−exp(z))."""
    survives = graph.add("Exp", graph.add("Neg", graph.add("Exp", score)))
    return graph.add("Sub", graph.constant(np.float64(1.0)), survives)


#: How a score becomes a mean.
_LINKS: Final[dict[str, Callable[[Graph, str], str]]] = {
    "identity": lambda graph, score: score,
    "log": lambda graph, score: graph.add("Exp", score),
    "logit": lambda graph, score: graph.add("Sigmoid", score),
    "inverse": lambda graph, score: graph.add("Reciprocal", score),
    "sqrt": _square,
    "cloglog": _complementary,
}


def finish(graph: Graph, answer: Answer, owner: str) -> None:
    """Add the outputs: `prediction`, or `label` with `probabilities` or `scores`."""
    if answer.classes is None:
        _finish_numbers(graph, answer, owner)
    elif len(answer.classes) == 2:
        _finish_two_classes(graph, answer)
    else:
        _finish_classes(graph, answer)


def _finish_numbers(graph: Graph, answer: Answer, owner: str) -> None:
    if answer.link not in _LINKS:
        raise ParameterError(
            f"to_onnx: {owner} has the {answer.link} link, for which ONNX has no operator; the links "
            f"{', '.join(_LINKS)} can be exported."
        )
    result = _LINKS[answer.link](graph, answer.scores)
    shape: list[int | str] = ["rows", answer.n_scores]
    if answer.is_flat:
        result = graph.add("Squeeze", result, graph.constant(np.array([1])))
        shape = ["rows"]
    graph.output("prediction", result, np.float64, shape)


def _finish_two_classes(graph: Graph, answer: Answer) -> None:
    """Name the second class where its score is positive; of shares, where it is more than one half."""
    edge = 0.5 if answer.link == "shares" else 0.0
    column = graph.add("Squeeze", answer.scores, graph.constant(np.array([1])))
    codes = graph.cast(graph.add("Greater", column, graph.constant(np.float64(edge))), np.int64)
    _put_labels(graph, codes, answer.classes)
    if answer.link == "none":
        graph.output("scores", column, np.float64, ["rows"])
        return
    if answer.link == "shares":
        first = graph.add("Sub", graph.constant(np.float64(1.0)), answer.scores)
        second = answer.scores
    else:
        scaled = graph.add("Mul", answer.scores, graph.constant(np.float64(answer.factor)))
        first = graph.add("Sigmoid", graph.add("Neg", scaled))
        second = graph.add("Sigmoid", scaled)
    graph.output("probabilities", graph.add("Concat", first, second, axis=1), np.float64, ["rows", 2])


def _finish_classes(graph: Graph, answer: Answer) -> None:
    """Name the class of the largest score; of several, the first."""
    codes = graph.add("ArgMax", answer.scores, axis=1, keepdims=0)
    _put_labels(graph, codes, answer.classes)
    shape: list[int | str] = ["rows", answer.n_scores]
    if answer.link == "none":
        graph.output("scores", answer.scores, np.float64, shape)
        return
    result = answer.scores
    if answer.link == "softmax":
        result = graph.add("Softmax", graph.add("Mul", result, graph.constant(np.float64(answer.factor))), axis=1)
    graph.output("probabilities", result, np.float64, shape)


def _put_labels(graph: Graph, codes: str, classes: Any) -> None:
    labels = np.asarray(classes)
    if labels.dtype.kind in "iu":
        labels = labels.astype(np.int64)
    elif labels.dtype.kind not in "bf":
        labels = labels.astype(str)
    graph.output("label", graph.add("Gather", graph.constant(labels), codes, axis=0), labels.dtype, ["rows"])
