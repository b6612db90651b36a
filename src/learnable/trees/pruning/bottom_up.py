"""Bottom-up pruning of a classification tree by any estimate of its error.

Every node j, from the leaves to the root, is replaced by whatever makes the estimate f(T) of the whole tree smallest:
a leaf of any class, its left subtree, its right subtree, or itself. Two estimates are built in:

    reduced-error   the error on rows that the tree was not grown on;
    mdl             L_S(T) + √( ((n + 1) log₂(q + K + 1) + ln(2/δ)) / (2m) ), on m rows, with n nodes.

The second is a bound on the true error, with probability 1 − δ, by the length of the tree's description: each node is
one of q questions, one of K labels, or the end. With d binary columns and two classes, q + K + 1 = d + 3. A column of c
distinct values asks c − 1 questions, whose thresholds then come from the sample: the bound is only an estimate there.

Reference: S. Shalev-Shwartz and S. Ben-David, Understanding Machine Learning, 2014, sections 7.3 and 18.2.2.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from copy import copy
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import is_classifier

from ...core import Array, Certificate, DataError, DataTypeError, Matches, NDArray, Number, Options, check_parameters
from ...data.door import read_features, read_target, read_weight, take_named_columns
from ..layout import Trees, renumbered
from ._kernels import errors_below

_TIE = 1e-12  # errors within it are equal
_RULES = {
    "estimate": Options("reduced-error", "mdl") | Matches(callable, "a function of (model, X, y)"),
    "delta": Number(low=0.0, high=1.0, low_open=True, high_open=True),
}


def prune(
    tree: Any, X: Any, y: Any, estimate: Any = "reduced-error", *, delta: float = 0.05, sample_weight: Any = None
) -> Any:
    """Return a smaller tree: every node is replaced by whatever lowers the estimated error of the whole most.

    From the leaves to the root, a node becomes a leaf of any class, its left subtree, its right subtree, or stays; a
    tie goes to the smaller tree. Node statistics (`n_node_samples`, `impurity`) stay those of the growth, and so does
    the value of a leaf unless its class is another one.

    Parameters
    ----------
    tree : DecisionTreeClassifier
        A fitted tree of this library, with one target; it is not changed.
    X, y : arrays, or dataframe and column name
        The rows that judge it: for "reduced-error" rows that it was not grown on, for "mdl" those that it was.
    estimate : {"reduced-error", "mdl"} or callable
        The error on the rows; a bound by the length of the tree's description; or a function of (model, X, y), which is
        called for every candidate with a fitted model and returns a number.
    delta : float, default=0.05
        How often the bound may fail.
    sample_weight : array of shape (n_samples,), optional
        Weights of the rows; not for a function, which sees X and y alone.

    Returns
    -------
    DecisionTreeClassifier
        A new fitted tree. Its certificate proves nothing: where subtrees have been raised, splits are no longer greedy.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable import DecisionTreeClassifier
    >>> from learnable.trees import prune
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 2))
    >>> y = (X[:, 0] > 0) ^ (rng.random(300) < 0.2)
    >>> tree = DecisionTreeClassifier(random_state=0).fit(X[:200], y[:200])
    >>> small = prune(tree, X[200:], y[200:])
    >>> small.get_n_leaves() < tree.get_n_leaves(), small.score(X[200:], y[200:]) > tree.score(X[200:], y[200:])
    (True, True)
    """
    check_parameters("prune", {"estimate": estimate, "delta": delta}, _RULES)
    name, grown = _stored_tree(tree)
    if callable(estimate):
        pruned = prune_generic(grown, lambda candidate: float(estimate(_with_tree(tree, name, candidate), X, y)))
        return _with_tree(tree, name, pruned)
    rows = _read_rows(tree, X, y, sample_weight)
    n_classes = grown.value.shape[1]
    m = len(rows.y)
    if estimate == "reduced-error":
        return _with_tree(tree, name, prune_tree(grown, rows, lambda error, n_nodes: error))
    n_questions = count_questions(rows.X)
    pruned = prune_tree(
        grown, rows, lambda error, n_nodes: description_bound(error, n_nodes, n_questions, n_classes, m, delta)
    )
    return _with_tree(tree, name, pruned)


class PruningRows(NamedTuple):
    """The rows that judge a tree."""

    X: Array  #: (n, d)
    y: NDArray[np.int64]  #: (n,) class codes; −1 for a class that the tree does not know
    weight: Array  #: (n,)


def description_bound(error: float, n_nodes: int, n_questions: int, n_classes: int, n_rows: int, delta: float) -> float:
    """Return the bound on the true error of a tree of n nodes by the length of its description.

    Examples
    --------
    >>> from learnable.trees.pruning.bottom_up import description_bound
    >>> round(description_bound(0.1, n_nodes=3, n_questions=5, n_classes=2, n_rows=1000, delta=0.05), 4)
    0.1885
    """
    bits = (n_nodes + 1) * math.log2(n_questions + n_classes + 1)
    return error + math.sqrt((bits + math.log(2 / delta)) / (2 * n_rows))


def count_questions(X: Array) -> int:
    """Return how many different questions x ≤ s the rows can tell apart, at least one."""
    return max(1, sum(len(np.unique(column[~np.isnan(column)])) - 1 for column in X.T))


def prune_tree(tree: Trees, rows: PruningRows, estimate: Callable[[float, int], float]) -> Trees:
    """Return the pruned tree; `estimate(error, n_nodes)` is made smallest, a tie goes to the smaller tree.

    Only the error of the part that changes is computed anew: O(n · depth²) time.
    """
    work = _Draft(tree)
    nodes = (tree.feature, tree.threshold, work.left, work.right, tree.missing_left, tree.category, tree.bits)
    n_classes = tree.value.shape[1]
    total = rows.weight.sum()
    ends = tree.apply(rows.X)[:, 0]
    here: dict[int, NDArray[np.int64]] = {}
    order = np.argsort(ends, kind="stable")
    cuts = np.flatnonzero(np.diff(ends[order])) + 1
    for part in np.split(order, cuts):
        here[int(ends[part[0]])] = part
    nobody = np.empty(0, dtype=np.int64)
    size = np.ones(tree.n_nodes, dtype=np.int64)
    wrong = np.zeros(tree.n_nodes)
    for j in np.flatnonzero(tree.left < 0).tolist():
        wrong[j] = errors_below(*rows, here.get(j, nobody), j, work.label, nodes)
    all_nodes = tree.n_nodes
    all_wrong = float(wrong.sum())

    def value_of(option: tuple[float, int, int, int], j: int) -> float:
        return estimate((all_wrong - wrong[j] + option[0]) / total, all_nodes - size[j] + option[1])

    for j in range(tree.n_nodes - 1, -1, -1):  # children before parents
        a = int(tree.left[j])
        b = int(tree.right[j])
        options = []  # (errors, nodes, kind, label or child), from the preferred one
        if a >= 0:
            of_a = here.pop(a, nobody)
            of_b = here.pop(b, nobody)
            here[j] = np.concatenate([of_a, of_b])
            wrong[j] = wrong[a] + wrong[b]
            size[j] = 1 + size[a] + size[b]
        counts = np.zeros(n_classes)
        mine = here.get(j, nobody)
        known = mine[rows.y[mine] >= 0]
        np.add.at(counts, rows.y[known], rows.weight[known])
        mass = float(rows.weight[mine].sum())
        options.append((float(wrong[j]), int(size[j]), _KEEP, -1))
        for k in np.argsort(-tree.value[j], kind="stable").tolist():  # the class of the training rows first
            options.append((mass - counts[k], 1, _LEAF, k))
        if a >= 0:
            # What stands in a child's place may be one of its own children by now.
            by_a = errors_below(*rows, of_b, int(work.left[j]), work.label, nodes)
            by_b = errors_below(*rows, of_a, int(work.right[j]), work.label, nodes)
            options.append((wrong[a] + by_a, int(size[a]), _CHILD, a))
            options.append((wrong[b] + by_b, int(size[b]), _CHILD, b))
        values = [value_of(option, j) for option in options]
        good = [o for o, v in zip(options, values, strict=True) if v <= min(values) + _TIE]
        errors, n_nodes, kind, what = min(good, key=lambda option: option[1])
        all_wrong = all_wrong - wrong[j] + errors
        all_nodes = all_nodes - size[j] + n_nodes
        wrong[j] = errors
        size[j] = n_nodes
        work.replace(j, kind, what)
    return work.rebuild()


def prune_generic(tree: Trees, estimate: Callable[[Trees], float]) -> Trees:
    """Return the pruned tree, with each candidate judged as a whole by `estimate`; a tie goes to the smaller tree."""
    work = _Draft(tree)
    for j in range(tree.n_nodes - 1, -1, -1):
        options = [(_KEEP, -1)] + [(_LEAF, k) for k in np.argsort(-tree.value[j], kind="stable").tolist()]
        if tree.left[j] >= 0:
            options += [(_CHILD, int(tree.left[j])), (_CHILD, int(tree.right[j]))]
        found = []
        for kind, what in options:
            candidate = work.copy()
            candidate.replace(j, kind, what)
            built = candidate.rebuild()
            found.append((float(estimate(built)), built.n_nodes, candidate))
        least = min(value for value, _, _ in found)
        if not math.isfinite(least):
            raise DataError(f"prune: the estimate must be a finite number; got {least}.")
        work = min((f for f in found if f[0] <= least + _TIE), key=lambda f: f[1])[2]
    return work.rebuild()


_KEEP, _LEAF, _CHILD = range(3)


class _Draft:
    """A tree whose nodes are being replaced: `moved[j]` is the node that stands where j stood."""

    def __init__(self, tree: Trees) -> None:
        self.tree = tree
        self.left = tree.left.copy()
        self.right = tree.right.copy()
        self.label = np.argmax(tree.value, axis=1).astype(np.int64)
        self.parent = tree.parents()
        self.root = 0

    def copy(self) -> _Draft:
        twin = object.__new__(_Draft)
        twin.tree = self.tree
        twin.parent = self.parent.copy()
        twin.root = self.root
        twin.left = self.left.copy()
        twin.right = self.right.copy()
        twin.label = self.label.copy()
        return twin

    def replace(self, j: int, kind: int, what: int) -> None:
        if kind == _LEAF:
            self.left[j] = self.right[j] = -1
            self.label[j] = what
        elif kind == _CHILD:
            raised = self.left[j] if what == self.tree.left[j] else self.right[j]
            parent = self.parent[j]
            self.parent[raised] = parent
            if parent < 0:
                self.root = int(raised)
            elif self.left[parent] == j:
                self.left[parent] = raised
            else:
                self.right[parent] = raised

    def rebuild(self) -> Trees:
        """Return the draft as a tree of its own, numbered depth first."""
        tree = self.tree
        order = []
        stack = [self.root]
        while stack:
            j = stack.pop()
            order.append(j)
            if self.left[j] >= 0:
                stack += [int(self.right[j]), int(self.left[j])]
        kept = np.array(order)
        value = tree.value[kept].copy()
        # A label that the training rows of a leaf did not choose.
        other = (self.left[kept] < 0) & (self.label[kept] != np.argmax(value, axis=1))
        value[other] = np.eye(value.shape[1])[self.label[kept][other]]
        return renumbered(tree, kept, self.left, self.right, value)


def _stored_tree(model: Any) -> tuple[str, Trees]:
    """Return the attribute that holds the tree of a fitted classifier, and the tree."""
    found = [(name, value) for name, value in vars(model).items() if isinstance(value, Trees)]
    single = len(found) == 1 and found[0][1].n_trees == 1 and isinstance(getattr(model, "classes_", None), np.ndarray)
    if not single or not is_classifier(model):
        raise DataTypeError(
            "prune: needs a fitted DecisionTreeClassifier of this library, with one target; got "
            f"{type(model).__name__}."
        )
    return found[0]


def _with_tree(model: Any, name: str, tree: Trees) -> Any:
    """Return a copy of a fitted model that predicts by another tree."""
    twin = copy(model)
    setattr(twin, name, tree)
    old = model.certificate_
    twin.certificate_ = Certificate("none", math.nan, 0.0, n_iter=old.n_iter, fingerprint=old.fingerprint)
    return twin


def _read_rows(model: Any, X: Any, y: Any, sample_weight: Any) -> PruningRows:
    X, y, sample_weight = take_named_columns("prune", X, y, sample_weight)
    table = read_features(model, X, missing=True)
    if hasattr(table, "toarray"):
        table = table.toarray()
    codes, labels = read_target("prune", y, "classes", multi_output=False)
    weight = read_weight("prune", sample_weight, table.shape[0])
    if len(codes) != table.shape[0]:
        raise DataError(
            f"prune: X and y have inconsistent numbers of samples: X has {table.shape[0]} rows, y has {len(codes)}. "
            "Pass one target per row."
        )
    known = {label: code for code, label in enumerate(model.classes_.tolist())}
    lookup = np.array([known.get(label, -1) for label in labels.tolist()], dtype=np.int64)
    weight = np.ones(len(codes)) if weight is None else weight
    kept = weight > 0
    return PruningRows(np.ascontiguousarray(table[kept], dtype=np.float64), lookup[codes[kept]], weight[kept])
