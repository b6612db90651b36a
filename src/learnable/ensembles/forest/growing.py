"""One tree of a forest on a cluster, as the client sees it: what to ask of the workers, and what the answers mean."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ...core import Array, NDArray
from ...data.any_order import join_limbs
from ...trees._random import child_seed, tree_seed
from ...trees.exact.by_code import CodeSearch, CodeSums, NodeSums, Split, varies
from ...trees.exact.workspace import CodeTable, Goal
from ...trees.growth import Grown, limits_of
from ...trees.layout import Trees
from ..draws import Draw, draw_counts
from .shards import Answer, Ask, PartialTree, Root, Task

#: Rows up to which a node is brought together: 2 MB of 28 columns, about what the sums of √28 columns take.
MOVED_ROWS = 2**16


class Ground(NamedTuple):
    """What all trees of a forest grow on."""

    task: Task
    y: Array | None  #: (n, 1) of a regression
    draw: Draw | None
    n_rows: int
    seed: int
    firsts: list[int]  #: first row of each shard


class Node:
    """A node of a tree that is growing."""

    def __init__(self, number: int, seed: int, depth: int, n_rows: int) -> None:
        self.number = number
        self.seed = seed
        self.depth = depth
        self.n_rows = n_rows
        self.sums: NodeSums | None = None
        self.split: Split | None = None
        self.left: Node | None = None
        self.right: Node | None = None
        self.candidates: list[tuple[int, float]] = []
        self.known: list[CodeSums] = []
        self.rows: NDArray[np.int32] | None = None  # of a regression
        self.subtree: tuple[Trees, NDArray[np.int32], NDArray[np.int64]] | None = None
        self.is_small = False
        self.start = 0


class GrowingTree:
    """Decides what to ask of the workers, and what their answers mean.

    Parameters
    ----------
    ground : Ground
        Of the forest.
    number : int
        Of the tree in the forest.
    """

    def __init__(self, ground: Ground, number: int) -> None:
        self.ground = ground
        self.number = number
        task = ground.task
        bins = task.bins
        codes = CodeTable(np.zeros((0, 0), np.uint8), bins.n_codes, bins.offset, bins.low, bins.high)
        limits = limits_of(task.target, task.rule, np.zeros(1, np.int32), len(bins.n_codes))
        self.search = CodeSearch(codes, task.target, limits, task.rule.splitter == "random")
        self.nodes = [Node(0, tree_seed(ground.seed, number) % 2**64, 0, -1)]
        self.open = [self.nodes[0]]  # large nodes of which something is not known yet
        self.divided: list[Node] = []  # nodes of which is not known yet which rows went left
        self._runs: Any = iter(())  # of small nodes that workers grow
        self._counts: NDArray[np.int64] | None = None
        self._goal: Goal | None = None
        if ground.y is not None:
            self._goal = self.search.goal()._replace(y=ground.y, weight=self.counts().astype(np.float64))

    def counts(self) -> NDArray[np.int64]:
        """Return how often each row is in the bag."""
        if self._counts is None:
            draw = self.ground.draw
            n = self.ground.n_rows
            self._counts = np.ones(n, np.int64) if draw is None else draw_counts(draw, self.number)
        return self._counts

    # Questions

    def asks(self) -> bool:
        """Tell whether something has to be known before the small nodes can be grown."""
        return bool(self.open)

    def ask(self) -> Ask:
        """Return the next question: sums of the columns that open nodes look at first, or of all others."""
        nodes, columns = [], []
        for node in self.open:
            wanted = self._wanted(node)
            nodes += [node.number] * len(wanted)
            columns += wanted
        parents = tuple(node.number for node in self.divided)
        return Ask(self.partial(), np.array(nodes, np.int32), np.array(columns, np.int32), parents)

    def _wanted(self, node: Node) -> list[int]:
        if node.n_rows < 0:
            return [-1]  # the root: how many rows there are
        first = self.search.limits.max_features
        end = first if not node.known else self.search.d
        return [column for column, _ in node.candidates[len(node.known) : end]]

    def partial(self) -> PartialTree:
        """Return the nodes so far."""
        n = len(self.nodes)
        feature = np.full(n, -1, np.int32)
        cut = np.zeros(n, np.int64)
        missing_left = np.zeros(n, np.uint8)
        left = np.full(n, -1, np.int32)
        right = np.full(n, -1, np.int32)
        for i, node in enumerate(self.nodes):
            if node.split is not None and node.left is not None and node.right is not None:
                feature[i], cut[i], missing_left[i] = node.split.column, node.split.cut, node.split.missing_left
                left[i], right[i] = node.left.number, node.right.number
        return PartialTree(feature, cut, missing_left, left, right)

    # Answers

    def take(self, answers: list[Answer]) -> None:
        """Add the answers of all shards, and divide what can be divided."""
        rows = sum(found.rows for found in answers)
        sums = sum(found.sums for found in answers)
        for k, parent in enumerate(self.divided):
            self._divide_rows(parent, [found.went_left[k] for found in answers])
        self.divided = []
        before, self.open = self.open, []
        at = 0
        for node in before:
            n_asked = len(self._wanted(node))
            own = [self._code_sums(rows[k], sums[k]) for k in range(at, at + n_asked)]  # type: ignore[index]
            at += n_asked
            if node.n_rows < 0:
                self._open(node, int(own[0].rows.sum()), own[0].sums.sum(axis=0))
            else:
                node.known += own
                self._decide(node)

    def _code_sums(self, rows: NDArray[np.int64], sums: NDArray[np.int64]) -> CodeSums:
        if self.ground.y is None:
            return CodeSums(rows, sums.astype(np.float64))
        joined = np.zeros((len(rows), 2))
        joined[:, 0] = sums[:, 0]
        for c in np.flatnonzero(rows):
            joined[c, 1] = join_limbs(sums[c, 1], sums[c, 2], sums[c, 3], 1.0)
        return CodeSums(rows, joined)

    def _open(self, node: Node, n_rows: int, classes: Array | None) -> None:
        """Begin with a node whose rows are counted: it is small, a leaf, or sums of its columns are to be asked."""
        node.n_rows = n_rows
        if node.number == 0 and self._goal is not None:
            node.rows = np.flatnonzero(self.counts() > 0).astype(np.int32)
        if n_rows <= MOVED_ROWS:
            node.is_small = True
            return
        if self._goal is None and classes is not None:
            node.sums = self.search.describe_classes(n_rows, classes)
        elif node.rows is not None:
            self._describe(node)
        if node.sums is None or self.search.may_split(node.sums, node.depth):
            node.candidates = self.search.candidates(node.seed)
            self.open.append(node)

    def _describe(self, node: Node) -> None:
        if self._goal is not None and node.rows is not None:
            node.sums = self.search.describe(self._goal, node.rows, node.n_rows)

    def _decide(self, node: Node) -> None:
        """Divide a node, if enough of its columns are known."""
        sums = node.sums
        if sums is None or not self.search.may_split(sums, node.depth):
            node.known = []
            return
        n_codes = self.ground.task.bins.n_codes
        changes = [varies(own, int(n_codes[j])) for own, (j, _) in zip(node.known, node.candidates, strict=False)]
        visited = self.search.visited(changes)
        if visited is None:
            self.open.append(node)
            return
        looked_at = [
            (column, u, own) for (column, u), own in zip(node.candidates[:visited], node.known[:visited], strict=True)
        ]
        node.split = self.search.best(sums, looked_at)
        own = next((own for column, _, own in looked_at if node.split and column == node.split.column), None)
        node.known = []
        if node.split is None or own is None:
            return
        goes_left = np.arange(len(own.rows)) <= node.split.cut
        goes_left[int(n_codes[node.split.column])] = node.split.missing_left
        children = []
        for side, mask in enumerate((goes_left, ~goes_left)):
            seed = int(child_seed(np.uint64(node.seed), side))
            child = Node(len(self.nodes), seed, node.depth + 1, int(own.rows[mask].sum()))
            self.nodes.append(child)
            children.append((child, own.sums[mask].sum(axis=0)))
        node.left, node.right = children[0][0], children[1][0]
        for child, classes in children:
            self._open(child, child.n_rows, classes)
        if self._goal is not None and any(child in self.open for child, _ in children):
            self.divided.append(node)

    def _divide_rows(self, parent: Node, went_left: list[NDArray[np.uint8]]) -> None:
        """Give both children of a node their rows, and describe those that are large."""
        if parent.rows is None or parent.left is None or parent.right is None:
            return
        shards = np.searchsorted(parent.rows, self.ground.firsts)
        heights = np.diff([*shards.tolist(), len(parent.rows)]).tolist()
        bits = [np.unpackbits(own, count=height) for own, height in zip(went_left, heights, strict=True)]
        left = np.concatenate(bits).astype(bool)
        for child, own in ((parent.left, left), (parent.right, ~left)):
            if not child.is_small:
                child.rows = parent.rows[own]
                self._describe(child)
        parent.rows = None

    # Small nodes

    def small_nodes(self, n_rows: int) -> list[list[Root]]:
        """Return the small nodes in runs of about so many rows."""
        runs: list[list[Root]] = []
        filled = n_rows
        for node in self.nodes:
            if not node.is_small:
                continue
            if filled + node.n_rows > n_rows:
                runs.append([])
                filled = 0
            runs[-1].append(Root(node.number, node.seed, node.depth))
            filled += node.n_rows
        self._runs = iter(runs)
        return runs

    def graft(self, subtrees: list[tuple[Trees, NDArray[np.int32], NDArray[np.int64]]]) -> None:
        """Put what workers have grown in place, run by run."""
        for root, subtree in zip(next(self._runs), subtrees, strict=True):
            self.nodes[root.node].subtree = subtree

    def assembled(self, keeps: bool) -> Grown:
        """Return the whole tree in preorder, and of a regression whose leaves are kept the leaf of every row."""
        order: list[Node] = []
        stack = [self.nodes[0]]
        count = 0
        while stack:
            node = stack.pop()
            node.start = count
            count += 1 if node.subtree is None else node.subtree[0].n_nodes
            order.append(node)
            if node.left is not None and node.right is not None:
                stack += [node.right, node.left]
        parts = [
            self._single(node) if node.subtree is None else _shifted(node.subtree[0], node.start) for node in order
        ]
        leaf_of_row = np.full(self.ground.n_rows if keeps else 0, -1, np.int32)
        for node in order if keeps else ():
            if node.subtree is not None:
                leaf_of_row[node.subtree[2]] = node.subtree[1] + node.start
            elif node.left is None and node.rows is not None:
                leaf_of_row[node.rows] = node.start
        return Grown(_joined(parts), leaf_of_row)

    def _single(self, node: Node) -> dict[str, Any]:
        """Return the arrays of a node that the client has described."""
        target = self.ground.task.target
        sums = node.sums
        if sums is None:
            raise RuntimeError("a node was not described")
        inner = node.split is not None and node.left is not None and node.right is not None
        value, impurity = sums.value, np.array([sums.impurity])
        if not target.n_classes[0]:
            value = value * target.scale + target.shift
            impurity = impurity * target.gain_scale
        split = node.split or Split(-1, 0, 0.0, False, 0)
        return {
            "feature": np.array([split.column], np.int32),
            "threshold": np.array([split.threshold]),
            "left": np.array([node.left.start if inner and node.left else -1], np.int32),
            "right": np.array([node.right.start if inner and node.right else -1], np.int32),
            "missing_left": np.array([split.missing_left], np.uint8),
            "impurity": impurity,
            "n_rows": np.array([node.n_rows], np.int64),
            "weight": sums.totals[-1:].copy(),
            "value": value[None],
        }


def _shifted(tree: Trees, start: int) -> dict[str, Any]:
    """Return the arrays of a subtree whose first node has the number `start`."""
    names = ("feature", "threshold", "missing_left", "impurity", "n_rows", "weight", "value")
    found: dict[str, Any] = {name: getattr(tree, name) for name in names}
    for name in ("left", "right"):
        own = getattr(tree, name)
        found[name] = np.where(own >= 0, own + start, -1).astype(np.int32)
    return found


def _joined(parts: Sequence[dict[str, Any]]) -> Trees:
    arrays = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    n = len(arrays["feature"])
    none = np.zeros(0, np.uint32)
    return Trees(start=np.array([0, n], np.int64), category=np.full(n, -1, np.int64), bits=none, **arrays)
