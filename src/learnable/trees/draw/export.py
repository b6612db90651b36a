"""Fitted trees as text, and as a graph for Graphviz: scikit-learn's output for its trees, categories besides."""

from __future__ import annotations

import os
from colorsys import hls_to_rgb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core import Boolean, Number, Options, ParameterError, check_parameters, optional
from .view import TreeView, view_tree

_COUNT = Number(low=0, integer=True)


def export_text(
    decision_tree: Any,
    *,
    feature_names: Any = None,
    class_names: Any = None,
    max_depth: int = 10,
    spacing: int = 3,
    decimals: int = 2,
    show_weights: bool = False,
) -> str:
    """Return the rules of a tree as text.

    Parameters
    ----------
    decision_tree : estimator
        A fitted decision tree or `ID3Classifier`.
    feature_names : sequence of str, optional
        Names of the columns; by default those of the fit, or feature_0, feature_1, …
    class_names : sequence of str, optional
        Names of the classes; by default the labels.
    max_depth : int
        Levels that are shown; what is below is counted.
    spacing : int
        Width of a level.
    decimals : int
        Digits after the point.
    show_weights : bool
        Whether leaves show the weight of each class.

    Returns
    -------
    str
        One line a branch or leaf.

    Examples
    --------
    >>> from learnable import ID3Classifier
    >>> from learnable.trees import export_text
    >>> model = ID3Classifier().fit([["sunny"], ["rain"], ["rain"]], ["no", "yes", "yes"])
    >>> print(export_text(model, feature_names=["outlook"]), end="")
    |--- outlook = rain
    |   |--- class: yes
    |--- outlook = sunny
    |   |--- class: no
    """
    owner = "export_text"
    given = {"max_depth": max_depth, "spacing": spacing, "decimals": decimals, "show_weights": show_weights}
    rules = {
        "max_depth": optional(_COUNT),
        "spacing": optional(Number(low=1, integer=True)),
        "decimals": optional(_COUNT),
        "show_weights": Boolean(),
    }
    check_parameters(owner, given, rules)
    view = view_tree(owner, decision_tree, feature_names, class_names)
    limit = np.inf if max_depth is None else max_depth
    spacing = spacing or 3
    decimals = 2 if decimals is None else decimals
    heights = view.heights()
    lines = []
    waiting: list[tuple[int, int, str]] = [(0, 1, "")]  # node, level, the branch that leads to it
    while waiting:
        node, level, branch = waiting.pop()
        if branch:
            lines.append(f"{_indent(level - 1, spacing)} {branch}")
        if level > limit + 1 and heights[node] > 1:
            lines.append(f"{_indent(level, spacing)} truncated branch of depth {heights[node]}")
        elif view.children[node]:
            below = [
                (child, level + 1, _branch(view, node, at, decimals)) for at, child in enumerate(view.children[node])
            ]
            waiting.extend(reversed(below))
        else:
            lines.append(_indent(level, spacing) + _leaf_text(view, node, decimals, show_weights))
    return "\n".join(lines) + "\n"


def export_graphviz(
    decision_tree: Any,
    out_file: Any = None,
    *,
    max_depth: int | None = None,
    feature_names: Any = None,
    class_names: Any = None,
    label: str = "all",
    filled: bool = False,
    leaves_parallel: bool = False,
    impurity: bool = True,
    node_ids: bool = False,
    proportion: bool = False,
    rotate: bool = False,
    rounded: bool = False,
    special_characters: bool = False,
    precision: int = 3,
    fontname: str = "helvetica",
) -> str | None:
    """Return a tree in the DOT language of Graphviz, or write it to a file.

    Parameters
    ----------
    decision_tree : estimator
        A fitted decision tree or `ID3Classifier`.
    out_file : path, file object or None
        Where to write; None returns the text.
    max_depth : int or None
        Levels that are shown.
    feature_names : sequence of str, optional
        Names of the columns; by default those of the fit.
    class_names : sequence of str, True or None
        Names of the classes; True: y[0], y[1], …; None: no classes are shown.
    label : {"all", "root", "none"}
        Which nodes say what their numbers are.
    filled : bool
        Whether nodes are coloured by majority, or by value.
    leaves_parallel : bool
        Whether all leaves stand at the bottom.
    impurity, node_ids, proportion : bool
        Whether to show impurities, numbers of nodes, and shares instead of counts.
    rotate : bool
        Whether the tree grows from left to right.
    rounded : bool
        Whether boxes have round corners.
    special_characters : bool
        Whether to use HTML's ≤ and subscripts.
    precision : int
        Digits after the point.
    fontname : str
        Font.

    Returns
    -------
    str or None
        The graph, if `out_file` is None.

    Examples
    --------
    >>> from learnable import ID3Classifier
    >>> from learnable.trees import export_graphviz
    >>> model = ID3Classifier().fit([["a"], ["b"]], [0, 1])
    >>> export_graphviz(model).splitlines()[0]
    'digraph Tree {'
    """
    owner = "export_graphviz"
    flags = {
        "filled": filled, "leaves_parallel": leaves_parallel, "impurity": impurity, "node_ids": node_ids,
        "proportion": proportion, "rotate": rotate, "rounded": rounded, "special_characters": special_characters,
    }  # fmt: skip
    check_parameters(owner, flags, dict.fromkeys(flags, Boolean()))
    given = {"max_depth": max_depth, "precision": precision, "label": label}
    rules = {"max_depth": optional(_COUNT), "precision": _COUNT, "label": Options("all", "root", "none")}
    check_parameters(owner, given, rules)
    view = view_tree(owner, decision_tree, feature_names, None if class_names is True else class_names)
    graph = _Graph(view, class_names, label, precision, flags)
    text = graph.dot(max_depth, fontname)
    if out_file is None:
        return text
    if hasattr(out_file, "write"):
        out_file.write(text)
    elif isinstance(out_file, str | os.PathLike):
        with open(out_file, "w", encoding="utf-8") as file:
            file.write(text)
    else:
        raise ParameterError(f"{owner}: out_file must be a path, an open file or None; got {out_file!r}.")
    return None


class _Graph:
    """A tree in the DOT language."""

    def __init__(self, view: TreeView, class_names: Any, label: str, precision: int, flags: dict[str, bool]) -> None:
        self.view = view
        self.class_names = class_names
        self.label = label
        self.precision = precision
        self.flags = flags
        html = flags["special_characters"]
        self.hash, self.sub, self.unsub, self.at_most, self.newline, self.close, self.open = (
            ("&#35;", "<SUB>", "</SUB>", "&le;", "<br/>", ">", "<") if html else ("#", "[", "]", "<=", "\\n", '"', '"')
        )
        self.n_classes = view.value.shape[2] if view.is_classifier else 1
        self.colours = _wheel(self.n_classes)

    def dot(self, max_depth: int | None, fontname: str) -> str:
        view = self.view
        flags = self.flags
        style = ", ".join(word for word in ("filled", "rounded") if flags[word])
        look = f', style="{style}", color="black"' if style else ""
        lines = ["digraph Tree {", f'node [shape=box{look}, fontname="{fontname}"] ;']
        if flags["leaves_parallel"]:
            lines.append("graph [ranksep=equally, splines=polyline] ;")
        lines.append(f'edge [fontname="{fontname}"] ;')
        if flags["rotate"]:
            lines.append("rankdir=LR ;")
        ranks: dict[str, list[str]] = {"leaves": []}
        waiting: list[tuple[int, int, int, int]] = [(0, 0, -1, 0)]  # node, depth, parent, which of its children
        while waiting:
            node, depth, parent, at = waiting.pop()
            if max_depth is not None and depth > max_depth:
                ranks["leaves"].append(str(node))
                grey = ', fillcolor="#C0C0C0"' if flags["filled"] else ""
                lines += [f'{node} [label="(...)"{grey}] ;', f"{parent} -> {node} ;"]
                continue
            ranks.setdefault(str(depth) if view.children[node] else "leaves", []).append(str(node))
            fill = f', fillcolor="{self._fill(node)}"' if flags["filled"] else ""
            lines.append(f"{node} [label={self._text(node)}{fill}] ;")
            if parent >= 0:
                lines.append(f"{parent} -> {node}{self._edge(parent, at)} ;")
            below = view.children[node]
            waiting.extend((child, depth + 1, node, at) for at, child in reversed(list(enumerate(below))))
        if flags["leaves_parallel"]:
            lines += ["{rank=same ; " + "; ".join(ranks[rank]) + "} ;" for rank in sorted(ranks)]
        return "\n".join([*lines, "}"])

    def _edge(self, parent: int, at: int) -> str:
        groups = self.view.groups[parent]
        if groups is not None and self.view.named[parent]:
            return f' [label="{_escape(groups[at][0])}"]'
        if parent:
            return ""
        angle = (45, -45)[at] * (-1 if self.flags["rotate"] else 1)
        return f' [labeldistance=2.5, labelangle={angle}, headlabel="{("True", "False")[at]}"]'

    def _text(self, node: int) -> str:
        view = self.view
        flags = self.flags
        digits = self.precision
        labels = self.label == "all" or (self.label == "root" and node == 0)
        lines = []
        if flags["node_ids"]:
            lines.append(f"{'node ' if labels else ''}{self.hash}{node}")
        if view.children[node]:
            lines.append(self._question(node))
        if flags["impurity"]:
            lines.append(f"{f'{view.criterion} = ' if labels else ''}{round(float(view.impurity[node]), digits)}")
        share = f"{round(100.0 * view.n_rows[node] / float(view.n_rows[0]), 1)}%"
        lines.append(f"{'samples = ' if labels else ''}{share if flags['proportion'] else view.n_rows[node]}")
        lines.append(f"{'value = ' if labels else ''}{self._value(node)}")
        if self.class_names is not None and view.is_classifier and view.value.shape[1] == 1:
            lines.append(f"{'class = ' if labels else ''}{self._majority(node)}")
        return self.open + self.newline.join(lines) + self.close

    def _question(self, node: int) -> str:
        view = self.view
        name = _escape(view.column(node)) if view.names is not None else f"x{self.sub}{view.feature[node]}{self.unsub}"
        groups = view.groups[node]
        if groups is None:
            return f"{name} {self.at_most} {round(float(view.threshold[node]), self.precision)}"
        if view.named[node]:
            return name
        return f"{name} {'in' if len(groups[0]) > 1 else '='} {_escape(', '.join(groups[0]))}"

    def _value(self, node: int) -> str:
        """Write numbers as NumPy prints an array, without quotes; one number without brackets."""
        view = self.view
        value = view.value[node] if view.value.shape[1] > 1 else view.value[node][0]
        if view.is_classifier and not self.flags["proportion"]:
            value = value * view.weight[node]
            value = value.astype(int) if np.all(np.mod(value, 1) == 0) else value
        text = str(np.around(value, self.precision).astype("S32")).replace("b'", "'").replace("' '", ", ")
        text = text.replace("'", "")
        if not view.is_classifier and view.value.shape[1] == 1:
            text = text.replace("[", "").replace("]", "")
        return text.replace("\n ", self.newline)

    def _majority(self, node: int) -> str:
        k = int(np.argmax(self.view.value[node][0]))
        if self.class_names is True or self.view.classes is None:
            return f"y{self.sub}{k}{self.unsub}"
        return _escape(str(self.view.classes[k]))

    def _fill(self, node: int) -> str:
        """Mix a colour with white: by the lead of the majority, by value, or by purity of several targets."""
        view = self.view
        several = view.value.shape[1] > 1
        numbers = not view.is_classifier
        strength = 0.0
        colour = self.colours[0]
        if several:
            low = -view.impurity.max()
            high = -view.impurity.min()
            now = -view.impurity[node]
            strength = (now - low) / (high - low) if high > low else 0.0
        elif numbers:
            low = view.value.min()
            high = view.value.max()
            now = view.value[node, 0, 0]
            strength = (now - low) / (high - low) if high > low else 0.0
        else:
            shares = view.value[node, 0]
            first, *rest = sorted(shares.tolist(), reverse=True)
            colour = self.colours[int(np.argmax(shares))]
            strength = (first - rest[0]) / (1 - rest[0]) if rest else 0.0
        mixed = [round(strength * c + (1 - strength) * 255) for c in colour]
        return "#" + "".join(f"{c:02x}" for c in mixed)


def _wheel(n: int) -> list[NDArray[Any]]:
    """Return n colours at equal distances on the wheel, from orange; those of scikit-learn."""
    hues = np.arange(25, 385, 360.0 / n)[:n] % 360 / 360
    # Saturation 0.75 and value 0.9 of the HSV model, as lightness and saturation.
    lightness = 0.9 * (1 - 0.75 / 2)
    saturation = (0.9 - lightness) / min(lightness, 1 - lightness)
    return [np.array([int(255 * c) for c in hls_to_rgb(hue, lightness, saturation)]) for hue in hues.tolist()]


def _indent(level: int, spacing: int) -> str:
    return ("|" + " " * spacing) * (level - 1) + "|" + "-" * spacing


def _branch(view: TreeView, node: int, at: int, decimals: int) -> str:
    name = view.column(node)
    groups = view.groups[node]
    if groups is None:
        return f"{name} {('<=', '> ')[at]} {view.threshold[node]:.{decimals}f}"
    if not view.named[node]:
        words = ", ".join(groups[0])
        yes, no = (f"in {{{words}}}", f"not in {{{words}}}") if len(groups[0]) > 1 else (f"= {words}", f"!= {words}")
        return f"{name} {(yes, no)[at]}"
    return f"{name} = {groups[at][0]}"


def _leaf_text(view: TreeView, node: int, decimals: int, show_weights: bool) -> str:
    value = view.value[node][0] if view.value.shape[1] == 1 else view.value[node][:, 0]
    if not view.is_classifier:
        return " value: [" + ", ".join(f"{v:.{decimals}f}" for v in value) + "]"
    k = int(np.argmax(value))
    name = k if view.classes is None else view.classes[k]
    if not show_weights:
        return f" class: {name}"
    weights = ", ".join(f"{v * view.weight[node]:.{decimals}f}" for v in value)
    return f" weights: [{weights}] class: {name}"


def _escape(text: str) -> str:
    return text.replace('"', '\\"')
