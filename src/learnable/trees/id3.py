"""ID3: a decision tree over columns of categories, grown by information gain.

Node S with classes y is split by the column j that tells most about y,

    Gain(S, j) = H(y) − Σ_v |S_v|/|S| H(y | x_j = v),      H = −Σ_k p_k log₂ p_k,

into one branch for each of its values, until the node is pure or no column varies in it. The gain ratio divides by the
entropy of the split itself, −Σ_v |S_v|/|S| log₂ |S_v|/|S|, which a column of many values pays for; it is compared
among the columns whose gain is at least the average one.

References: J. R. Quinlan, Induction of decision trees, Machine Learning 1 (1986); T. M. Mitchell, Machine Learning,
1997, chapter 3; S. Shalev-Shwartz and S. Ben-David, Understanding Machine Learning, 2014, section 18.2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from ..core import (
    Array,
    Certificate,
    Estimator,
    Matches,
    NDArray,
    Number,
    Options,
    ParameterError,
    Run,
    fitted,
    is_labels,
    law,
    laws,
    optional,
    param,
    passes,
    tags,
)
from ..core.jit import kernel
from ..data.categories import CategoryTable, check_categories, class_weights, read_categories, read_codes
from ..data.sources import NamedScore, rowwise
from .category_tree import CategoryTree

# --------------------------------------------------------------------------------------------------------------------
# Kernels of ID3: the information gain of every column of categories in one node, in bits.


Codes = NDArray[np.int32]
#: Gains closer than this are equal; the first column, and its first level, then wins.
TIE = 1e-12


@kernel
def plogp(p: float) -> float:
    """Return p log₂ p, with 0 log 0 = 0."""
    return p * math.log2(p) if p > 0.0 else 0.0


@kernel
def measure_node(total: Array) -> tuple[float, float]:
    """Return the weight of a node and the entropy of its classes, from the weight of each class."""
    n = 0.0
    entropy = 0.0
    for k in range(total.size):
        n += total[k]
    for k in range(total.size):
        entropy -= plogp(total[k] / n)
    return n, entropy


@kernel
def score_columns(
    codes: Codes,
    y: NDArray[np.int64],
    weight: Array,
    rows: NDArray[np.int64],
    counts: Array,
    seen: NDArray[np.int64],
    total: Array,
    gains: Array,
    infos: Array,
) -> None:
    """Score the split of `rows` into one branch for each level of a column.

    IN codes (d, n), y, weight (n,), rows (m,), total (K,) weight of each class in the node;
    SCRATCH counts (L, K), all zero and left so, seen (L,); OUT gains, infos (d,): −1 where the column is constant.
    """
    n_classes = total.size
    m = rows.size
    n, entropy = measure_node(total)
    for j in range(codes.shape[0]):
        n_seen = 0
        for i in range(m):
            row = rows[i]
            level = codes[j, row]
            fresh = True
            for k in range(n_classes):
                fresh = fresh and counts[level, k] == 0.0
            if fresh:
                seen[n_seen] = level
                n_seen += 1
            counts[level, y[row]] += weight[row]
        within = 0.0
        info = 0.0
        for s in range(n_seen):
            level = seen[s]
            size = 0.0
            for k in range(n_classes):
                size += counts[level, k]
            for k in range(n_classes):
                within -= size / n * plogp(counts[level, k] / size)
                counts[level, k] = 0.0
            info -= plogp(size / n)
        gains[j] = max(entropy - within, 0.0) if n_seen > 1 else -1.0
        infos[j] = info if n_seen > 1 else -1.0


@kernel
def score_levels(
    codes: Codes,
    y: NDArray[np.int64],
    weight: Array,
    rows: NDArray[np.int64],
    counts: Array,
    total: Array,
    gains: Array,
    infos: Array,
    best: Codes,
    by_ratio: bool,
) -> None:
    """Score, for each column, the best split of `rows` into one level and the rest.

    The arguments are those of `score_columns`; OUT best (d,): the level, the lowest of those that tie.
    """
    n_classes = total.size
    m = rows.size
    n, entropy = measure_node(total)
    for j in range(codes.shape[0]):
        for i in range(m):
            counts[codes[j, rows[i]], y[rows[i]]] += weight[rows[i]]
        gains[j] = -1.0
        infos[j] = -1.0
        best[j] = -1
        score = -1.0
        constant = True
        for i in range(1, m):
            constant = constant and codes[j, rows[i]] == codes[j, rows[0]]
        for i in range(m):
            level = codes[j, rows[i]]
            size = 0.0
            for k in range(n_classes):
                size += counts[level, k]
            if constant or size == 0.0:  # a level that an earlier row has scored
                for k in range(n_classes):
                    counts[level, k] = 0.0
                continue
            rest = max(n - size, 0.0)
            within = 0.0
            for k in range(n_classes):
                within -= size / n * plogp(counts[level, k] / size)
                if rest > 0.0:
                    within -= rest / n * plogp(max(total[k] - counts[level, k], 0.0) / rest)
                counts[level, k] = 0.0
            gain = max(entropy - within, 0.0)
            info = -plogp(size / n) - plogp(rest / n)
            now = gain / info if by_ratio and info > 0.0 else gain
            if now > score + TIE or (now > score - TIE and level < best[j]):
                score = max(score, now)
                gains[j] = gain
                infos[j] = info
                best[j] = level


#: Largest shortfall of a split, in bits, that rounding explains.
_TOLERANCE = 1e-9


class ID3Classifier(NamedScore, ClassifierMixin, Estimator):
    """Decision tree over categories, grown by information gain until every leaf is pure or no column is left.

    Columns hold strings, truth values or numbers, taken as they are: every distinct value is a category, and a missing
    value is one more. A category that no training row of a node has is an empty branch and takes the majority of that
    node. Memory: O(nd).

    Examples
    --------
    >>> from learnable import ID3Classifier
    >>> X = [["sunny", "weak"], ["sunny", "strong"], ["rain", "weak"], ["rain", "strong"]]
    >>> model = ID3Classifier().fit(X, ["no", "no", "yes", "no"])
    >>> model.predict([["rain", "weak"], ["snow", "weak"]]).tolist()
    ['yes', 'no']
    >>> model.certificate_.kind
    'greedy'
    """

    _theory = "tree"

    criterion: str = param(
        Options("information_gain", "gain_ratio"),
        "What the best column maximises. Ties go to the first column.",
        default="information_gain",
    )
    split: str = param(
        Options("multiway", "binary"),
        "One branch for each value of the column, or two: one value against all others.",
        default="multiway",
    )
    max_depth: int | None = param(optional(Number(low=1, integer=True)), "Most questions asked of a row.", default=None)
    min_samples_split: int = param(Number(low=2, integer=True), "Fewest rows that are split.", default=2)
    min_gain: float = param(
        Number(low=0.0),
        "Smallest information gain, in bits, of a split. At 0 a node is split even if no single column tells "
        "anything: two of them together may.",
        default=0.0,
    )
    class_weight: Any = param(
        optional(Options("balanced") | Matches(lambda v: isinstance(v, dict), "a dict of weights")),
        "Weights of the classes.",
        default=None,
    )
    tree_: CategoryTree = fitted("CategoryTree", "The tree as flat arrays.")
    categories_: list[NDArray[Any]] = fitted(
        "list of arrays", "The values of each column, sorted; their positions are the codes in `tree_`."
    )
    types_: list[str] = fitted("list of str", 'What each column holds: "text", "number", …')
    classes_: NDArray[Any] = fitted("(n_classes,)", "The labels, sorted.", kind="biufOUST")
    certificate_: Certificate = fitted("Certificate", "`greedy`: every split is the best of its candidates.")
    _tags = tags(allow_nan=True, categorical=True, string=True)

    def _door(self, X: Any, y: Any, sample_weight: Any, run: Any = None) -> CategoryTable:  # type: ignore[override]
        return read_categories(self, X, y, sample_weight)

    def _fit(self, table: CategoryTable, run: Run) -> Certificate:
        of_class = class_weights(type(self).__name__, self.class_weight, table)
        rule = GainRule(
            by_ratio=self.criterion == "gain_ratio",
            binary=self.split == "binary",
            max_depth=self.max_depth,
            min_samples_split=self.min_samples_split,
            min_gain=self.min_gain,
        )
        self.tree_ = grow_by_gain(table.codes, table.y, table.weight * of_class[table.y], table.n_levels, rule)
        self.classes_ = table.classes
        self.categories_ = table.categories
        self.types_ = table.types
        return Certificate("greedy", 0.0, _TOLERANCE, by_construction=True)

    @rowwise
    def predict_proba(self, X: Any) -> Any:
        """Return the share of each class in the node where a row ends, columns as in `classes_`."""
        nodes = self.apply(X)
        weight = self.tree_.value[nodes]
        return weight / weight.sum(axis=1, keepdims=True)

    def predict_log_proba(self, X: Any) -> Any:
        """Return the logarithm of `predict_proba`."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    @rowwise
    def predict(self, X: Any) -> Any:
        """Return the majority class of the node where a row ends; a tie goes to the first of `classes_`."""
        nodes = self.apply(X)
        return self.classes_[np.argmax(self.tree_.value[nodes], axis=1)]

    @rowwise
    def apply(self, X: Any) -> Any:
        """Return the number of the node where each row ends."""
        check_is_fitted(self)
        return self.tree_.apply(read_codes(self, X, self.categories_, self.types_))

    def get_depth(self) -> int:
        """Return the number of questions on the longest path."""
        check_is_fitted(self)
        return self.tree_.max_depth

    def get_n_leaves(self) -> int:
        """Return the number of leaves."""
        check_is_fitted(self)
        return self.tree_.n_leaves

    @property
    def feature_importances_(self) -> Array:
        """Share of each column in the total information gain of the tree."""
        check_is_fitted(self)
        tree = self.tree_
        inner = self.tree_.feature >= 0
        total = np.zeros(self.n_features_in_)
        np.add.at(total, tree.feature[inner], (tree.gain * tree.value.sum(axis=1))[inner])
        return total / total.sum() if total.any() else total

    _laws = laws(
        law(
            "ID3Classifier: a fitted model has tree_, categories_ and types_",
            lambda model: (
                isinstance(model.tree_, CategoryTree)
                and isinstance(model.categories_, list)
                and isinstance(model.types_, list)
            ),
        ),
        law("ID3Classifier: classes_ must hold labels", lambda model: is_labels(model.classes_, 1)),
        law(
            "ID3Classifier: categories_ and types_ must describe every column",
            lambda model: (
                len(model.types_) == len(model.categories_) == model.n_features_in_
                and passes(check_categories, "ID3Classifier", model.categories_, model.types_)
            ),
        ),
        law(
            "ID3Classifier: tree_ does not fit categories_ and classes_",
            lambda model: passes(
                model.tree_.check, np.array([max(len(levels), 1) for levels in model.categories_]), len(model.classes_)
            ),
        ),
    )


def information_gain(X: Any, y: Any, sample_weight: Any = None, *, criterion: str = "information_gain") -> Array:
    """Return what each column of categories tells about the classes, in bits.

    Parameters
    ----------
    X : dataframe, array or list of rows, of shape (n_samples, n_features)
        Categories: strings, truth values or numbers.
    y : array of shape (n_samples,)
        Class labels.
    sample_weight : array of shape (n_samples,), optional
        Weights of the rows.
    criterion : {"information_gain", "gain_ratio"}
        The gain, or its ratio to the entropy of the column.

    Returns
    -------
    array of shape (n_features,)
        Zero for a constant column.

    Examples
    --------
    >>> from learnable.trees import information_gain
    >>> information_gain([["a", 1], ["a", 2], ["b", 1], ["b", 2]], [0, 0, 1, 1])
    array([1., 0.])
    """
    if criterion not in ("information_gain", "gain_ratio"):
        raise ParameterError(
            f"information_gain: criterion must be 'information_gain' or 'gain_ratio'; got {criterion!r}."
        )
    table = read_categories(ID3Classifier(), X, y, sample_weight, owner="information_gain")
    scorer = _Scorer(table.codes, table.y, table.weight, table.n_levels)
    everything = np.arange(len(table.y))
    gains, infos = scorer.columns(everything, scorer.total(everything))
    gains = np.maximum(gains, 0.0)
    infos = np.maximum(infos, 0.0)
    return gains if criterion == "information_gain" else np.divide(gains, infos, out=gains * 0, where=infos > 0)


@dataclass(frozen=True)
class GainRule:
    """How a tree grows: its measure, the shape of its splits, and when it stops."""

    by_ratio: bool = False
    binary: bool = False
    max_depth: int | None = None
    min_samples_split: int = 2
    min_gain: float = 0.0


def grow_by_gain(
    codes: NDArray[np.int32], y: NDArray[np.int64], weight: Array, n_levels: NDArray[np.int64], rule: GainRule
) -> CategoryTree:
    """Grow the tree depth first; `codes` is (d, n)."""
    scorer = _Scorer(codes, y, weight, n_levels)
    nodes: list[tuple[Any, ...]] = []
    stack: list[tuple[NDArray[np.int64], int, int, int]] = [(np.arange(len(y)), -1, -1, 0)]
    while stack:
        rows, parent, code, depth = stack.pop()
        total = scorer.total(rows)
        impurity = _entropy(total)
        may_split = impurity > 0.0 and len(rows) >= rule.min_samples_split and depth != rule.max_depth
        feature, level, gain = scorer.best(rows, total, rule) if may_split else (-1, -1, 0.0)
        number = len(nodes)
        nodes.append((feature, level, parent, code, gain, impurity, len(rows), total))
        if feature >= 0:
            branch = codes[feature, rows] if level < 0 else (codes[feature, rows] == level).astype(np.int32)
            order = np.argsort(branch, kind="stable")
            rows = rows[order]
            branch = branch[order]
            cuts = [0, *(np.flatnonzero(branch[1:] != branch[:-1]) + 1).tolist(), len(rows)]
            for a, b in zip(cuts[-2::-1], cuts[:0:-1], strict=True):  # the last branch first: it is popped last
                stack.append((rows[a:b], number, int(branch[a]), depth + 1))
    columns = list(zip(*nodes, strict=True))
    dtypes = (np.int32, np.int32, np.int32, np.int32, np.float64, np.float64, np.int64, np.float64)
    return CategoryTree(*(np.array(column, dtype=dtype) for column, dtype in zip(columns, dtypes, strict=True)))


def _entropy(total: Array) -> float:
    """Return the entropy of the classes in bits, exactly zero for one class."""
    if np.count_nonzero(total) == 1:
        return 0.0
    p = total[total > 0] / total.sum()
    return float(-(p * np.log2(p)).sum())


class _Scorer:
    """Scores the columns in one node after another, with scratch memory that is made once."""

    def __init__(self, codes: Any, y: Any, weight: Array, n_levels: NDArray[np.int64]) -> None:
        self.codes = np.ascontiguousarray(codes)
        self.y = y
        self.weight = np.ascontiguousarray(weight)
        self.n_classes = int(y.max()) + 1
        most = max(1, int(n_levels.max()))
        self.counts = np.zeros((most, self.n_classes))
        self.seen = np.zeros(most, dtype=np.int64)
        self.gains = np.empty(len(codes))
        self.infos = np.empty(len(codes))
        self.levels = np.empty(len(codes), dtype=np.int32)

    def total(self, rows: NDArray[np.int64]) -> Array:
        """Return the weight of each class among some rows."""
        return np.bincount(self.y[rows], self.weight[rows], self.n_classes).astype(np.float64, copy=False)

    def columns(self, rows: NDArray[np.int64], total: Array) -> tuple[Array, Array]:
        """Return the gain and the split information of each column, −1 where it is constant."""
        score_columns(self.codes, self.y, self.weight, rows, self.counts, self.seen, total, self.gains, self.infos)
        return self.gains, self.infos

    def best(self, rows: NDArray[np.int64], total: Array, rule: GainRule) -> tuple[int, int, float]:
        """Return column, level (−1: all of them) and gain of the best split; column −1 if there is none."""
        if rule.binary:
            score_levels(
                self.codes, self.y, self.weight, rows, self.counts, total, self.gains, self.infos, self.levels,
                rule.by_ratio,
            )  # fmt: skip
        else:
            self.columns(rows, total)
        gains = self.gains
        candidates = self.gains >= max(rule.min_gain - TIE, 0.0)
        if not candidates.any():
            return -1, -1, 0.0
        score = gains
        if rule.by_ratio:
            candidates &= gains >= gains[gains >= 0].mean() - TIE
            score = np.divide(gains, self.infos, out=np.zeros_like(gains), where=self.infos > 0)
        score = np.where(candidates, score, -1.0)
        j = int(np.argmax(score >= score.max() - TIE))
        return j, int(self.levels[j]) if rule.binary else -1, float(gains[j])
