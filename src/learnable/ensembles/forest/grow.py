"""What forests share: bags, trees grown side by side, the invariants of a loaded forest.

Tree t is a function of the forest's seed and of t alone. So the forest is the same for any number of threads, a warm
start continues it, and a checker can grow it again.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from ...core import (
    MAX_SECONDS,
    RANDOM_STATE,
    Boolean,
    Certificate,
    DataError,
    Estimator,
    Matches,
    Number,
    ParameterError,
    Run,
    are_counts,
    fitted,
    hook,
    law,
    laws,
    param,
    passes,
    resolve_n_jobs,
)
from ...data.door import Table
from ...trees import Columns, Grown, GrowthRule, grow
from ...trees._random import seed_of, tree_seed, tree_state
from ...trees.criteria import Target
from ...trees.decision_tree import TOLERANCE
from ...trees.file_layout import narrow, require
from ...trees.layout import Trees, concatenate
from ...trees.models import TreePredictions
from ...trees.predict import questions, rows_for_walks, walk_rows
from ...trees.random.grower import Values, read_table
from ...trees.settings import TreeGrowth, categorical_mask, count_features, growth_rule
from .._cluster import SharedTable, can_share, room_for
from .._crew import run_crew
from .._members import MemberSequence, Tree, member_tree
from ..draws import MAX_SAMPLES, Draw, Rows, bag_size, chances, draw_counts, draw_rows
from ..explain.permutation import Importances, permutation_importances
from ._kernels import group_by_leaf, leaf_quantiles

# --------------------------------------------------------------------------------------------------------------------
# Out-of-bag sums: what the trees that have not seen a row say of it.
#
# A row is out of the bag of about (1 − 1/n)ⁿ ≈ 37 % of the trees. Their mean is an honest prediction: it is the
# forest of those trees, none of which was grown on the row, so that its error estimates that of (a somewhat smaller)
# forest.


Array = NDArray[np.float64]

_CHUNK_ROWS = 4096  # rows of one task
_BITS = 64  # trees whose bags fit into one word per row


def sums_out_of_bag(trees: Trees, X: Any, draw: Draw, n_threads: int = 1) -> tuple[Array, NDArray[np.int64]]:
    """Return, for each training row, the sum of the leaf values of the trees that have not seen it, and their number.

    Trees are added in order, whatever the number of threads.
    """
    return add_out_of_bag(trees, X, lambda member: draw_counts(draw, member) == 0, n_threads)


def add_out_of_bag(
    trees: Trees, X: Any, is_unseen: Callable[[int], NDArray[np.bool_]], n_threads: int = 1
) -> tuple[Array, NDArray[np.int64]]:
    """Do the same for some rows; `is_unseen(member)` tells which of them a tree has not seen."""
    n = X.shape[0]
    total, voters = np.zeros((n, trees.value.shape[1])), np.zeros(n, np.int64)
    dense, sparse = rows_for_walks(X)
    nodes = questions(trees)
    for first in range(0, trees.n_trees, _BITS):
        last = min(trees.n_trees, first + _BITS)
        start, unseen = trees.start[first : last + 1], np.zeros(n, np.uint64)
        for k, member in enumerate(range(first, last)):
            unseen[is_unseen(member)] |= np.uint64(1) << np.uint64(k)

        def chunk(number: int, start: Any = start, unseen: Any = unseen) -> None:
            lo = number * _CHUNK_ROWS
            hi = min(n, lo + _CHUNK_ROWS)
            walk_rows(dense, sparse, lo, hi, start, nodes, None, trees.value, total, unseen, voters)

        run_crew(chunk, -(-n // _CHUNK_ROWS), n_threads, Run())
    return total, voters


# --------------------------------------------------------------------------------------------------------------------
# Quantiles of a forest: the distribution of the training targets that share a leaf with x.
#
# A forest's mean is a weighted mean of the training targets, Σᵢ wᵢ(x) yᵢ with wᵢ(x) = T⁻¹ Σ_t v_ti 1[i in the leaf of
# x in tree t] / (weight of that leaf), where v_ti is how often row i was drawn for tree t. The same weights give a
# distribution, F(y | x) = Σᵢ wᵢ(x) 1[yᵢ <= y], and its quantiles inf{y : F(y | x) >= q}: the quantile regression
# forest. It is consistent as leaves hold ever more rows and shrink; with few rows in a leaf, or on training rows,
# intervals can be too short.
#
# Reference: N. Meinshausen, Quantile regression forests, JMLR 7 (2006), equations 4 to 6; there a leaf's rows are all
# training rows, here those the tree was grown on, so that the mean of F is the forest's prediction.


#: Rows at a time, which bounds the memory. 4,000 rows and 20 trees: 146, 144, 143 and 144 ms of processor time with
#: 64, 256, 1,024 and 4,096.
_QUANTILE_ROWS = 1024


@dataclass(frozen=True)
class LeafTargets:
    """The training targets in the leaves of all trees; four bytes for each row of each tree.

    Attributes
    ----------
    rows : (E,) int32
        Training rows, tree by tree and leaf by leaf, each as often as it was drawn.
    sizes : (T,) int64
        Entries of each tree.
    y : (n, m) float64
        The targets.
    weight : (n,) float64 or None
        The weights of the rows in their leaves, beyond the number of draws.
    """

    rows: NDArray[np.int32]
    sizes: NDArray[np.int64]
    y: Array
    weight: Array | None = None

    def _to_file(self) -> dict[str, Any] | None:
        """Return what a model file holds: row numbers in as few bytes as they need."""
        packed = {"rows": narrow(self.rows), "sizes": self.sizes, "y": self.y}
        return packed if self.weight is None else packed | {"weight": self.weight}

    @classmethod
    def _from_file(cls, packed: dict[str, Any]) -> LeafTargets:
        """Return what `_to_file` packed."""
        rows: Any = packed.get("rows")
        sound = (
            isinstance(rows, np.ndarray) and rows.dtype.kind in "iu" and set(packed) <= {"rows", "sizes", "y", "weight"}
        )
        sound = sound and (not rows.size or (rows.min() >= 0 and rows.max() < 2**31))
        require(sound, "the targets in the leaves are damaged")
        return cls(packed["rows"].astype(np.int32), packed["sizes"], packed["y"], packed.get("weight"))

    def begins(self, trees: Trees, drawn: bool) -> NDArray[np.int64]:
        """Return where each node's entries begin, (N + 1,); inner nodes have none."""
        held = np.rint(trees.weight).astype(np.int64) if drawn else trees.n_rows
        return np.r_[0, np.cumsum(np.where(trees.feature < 0, held, 0))]

    def check(self, trees: Trees, drawn: bool, n_outputs: int) -> None:
        """Raise ModelFileError unless the entries fit the leaves."""
        fits = partial(require, what="the targets in the leaves do not fit the trees")
        fits(self.rows.dtype == np.int32 and self.rows.ndim == 1 and self.rows.flags.c_contiguous)
        fits(self.y.dtype == np.float64 and self.y.ndim == 2 and self.y.shape[1] == n_outputs and len(self.y))
        fits(np.isfinite(self.y).all())
        fits(self.rows.size and self.rows.min() >= 0 and self.rows.max() < len(self.y))
        fits(self.sizes.dtype == np.int64 and self.sizes.shape == (trees.n_trees,))
        if self.weight is not None:
            fits(self.weight.dtype == np.float64 and self.weight.shape == (len(self.y),))
            fits(np.isfinite(self.weight).all() and (self.weight > 0).all())
        fits(((trees.weight < 2**31) & (trees.n_rows < 2**31)).all())
        begin = self.begins(trees, drawn)
        fits(begin[-1] == len(self.rows) and np.array_equal(np.diff(begin[trees.start]), self.sizes))
        fits((np.diff(begin)[trees.feature < 0] > 0).all())


def rows_by_leaf(leaf_of_row: NDArray[np.int32], rows: NDArray[Any], n_nodes: int) -> NDArray[np.int32]:
    """Return the rows of a bag, leaf by leaf.

    Examples
    --------
    >>> rows_by_leaf(np.array([2, 1, 2], dtype=np.int32), np.array([0, 0, 1, 2]), 3).tolist()
    [1, 0, 0, 2]
    """
    out = np.empty(len(rows), np.int32)
    group_by_leaf(leaf_of_row, rows, np.zeros(n_nodes + 1, np.int64), out)
    return out


def forest_quantiles(trees: Trees, held: LeafTargets, leaves: NDArray[np.int32], levels: Array, drawn: bool) -> Array:
    """Return the quantiles at the (ascending) levels, (n, levels, m), of rows that end in `leaves` (n, T)."""
    begin = held.begins(trees, drawn)
    weight = np.ones(len(held.y)) if held.weight is None else held.weight
    out = np.empty((held.y.shape[1], len(leaves), len(levels)))
    for k in range(held.y.shape[1]):
        order = np.argsort(held.y[:, k], kind="stable")
        rank = np.empty(len(order), np.int32)
        rank[order] = np.arange(len(order), dtype=np.int32)
        y_sorted = held.y[order, k]
        for lo in range(0, len(leaves), _QUANTILE_ROWS):
            hi = min(len(leaves), lo + _QUANTILE_ROWS)
            leaf_quantiles(leaves, trees.start, begin, held.rows, weight, rank, y_sorted, levels, lo, hi, out[k])
    return np.ascontiguousarray(out.transpose(1, 2, 0))


class Plan(NamedTuple):
    """All that a tree depends on besides its number."""

    columns: Columns | Values
    target: Target
    rule: GrowthRule
    draw: Draw | None  #: None: every tree has all rows
    reweigh: Callable[[Target, Rows], Target] | None = None  #: balanced_subsample


def grow_some(forest: Any, table: Table, numbers: list[int]) -> list[tuple[Trees, NDArray[np.int32] | None]]:
    """Return some trees of a forest. Runs on a worker."""
    plan = _plan_of(forest, table)
    return [forest._grow_one(plan, number, Run()) for number in numbers]


def finish_forest(forest: Any, table: Table, grown: list[Any]) -> dict[str, Any]:
    """Return the attributes of a forest whose trees are grown. Runs on a worker."""
    plan = _plan_of(forest, table)
    forest.trees_ = concatenate([tree for tree, _ in grown])
    forest._keep_leaves(table, plan, grown, None)
    if forest.oob_score and plan.draw is not None:
        forest._judge_out_of_bag(table, *sums_out_of_bag(forest.trees_, table.X, plan.draw))
    return {name: value for name, value in vars(forest).items() if name.endswith("_")}


def _plan_of(forest: Any, table: Table) -> Plan:
    """Return the plan of a forest for a table; the table keeps it, because sorting its columns takes long."""
    key = (forest.seed_, repr(forest.get_params(deep=False)))
    kept = getattr(table.blocks, "_kept_plan", None)
    if kept is None or kept[0] != key:
        forest.n_outputs_ = int(np.prod(table.y_shape, initial=1))
        forest.n_samples_ = table.n_rows
        plan = forest._plan(table, Run(n_jobs=1))
        known = {name: value for name, value in vars(forest).items() if name.endswith("_")}
        kept = table.blocks._kept_plan = (key, plan, known)
    vars(forest).update(kept[2])
    return kept[1]


class Forest(TreePredictions, MemberSequence, TreeGrowth, Estimator):
    """Base of the four forests; not to be used directly."""

    n_estimators: int = param(Number(low=1, integer=True), "Number of trees T.", default=100, kw_only=False)
    bootstrap: bool = param(Boolean(), "Whether a tree gets rows drawn with replacement, or all rows.", default=True)
    oob_score: Any = param(
        Boolean() | Matches(callable, "a function of (y, predictions)"),
        "Whether to compute `oob_score_`, the accuracy, R² or a function of (y, predictions), from rows out "
        "of the bags.",
        default=False,
    )
    random_state: Any = param(RANDOM_STATE, "Seed of the bags and of what trees draw.", default=None)
    verbose: int = param(
        Boolean() | Number(low=0, integer=True),
        "1 prints a line at the end, more also one for each tree; callbacks report progress, too.",
        default=0,
    )
    warm_start: bool = param(
        Boolean(),
        "Whether to keep the trees of the last fit, on the same table, and add to them; the result is that of one fit.",
        default=False,
    )
    ccp_alpha: float = param(
        Number(low=0.0), "Each tree is pruned to the smallest minimiser of impurity + ccp_alpha · leaves.", default=0.0
    )
    max_samples: float | None = param(
        MAX_SAMPLES | Number(low=1.0),  # rows are drawn with replacement: a bag may hold more than all
        "Rows drawn for a tree: a number, a share, or as many as there are.",
        default=None,
    )
    max_seconds: float | None = param(
        MAX_SECONDS, "Time after which no more trees are grown; at least one is.", default=None
    )

    oob_score_: float = fitted(
        "()",
        "With `oob_score`: accuracy, R² or the function's value, of the trees that have not seen the row.",
        finite=False,
        optional=True,
    )
    certificate_: Certificate = fitted("Certificate", "`greedy`: every split is the best of its node's candidates.")

    _splitter: ClassVar[str]
    _tree_class: ClassVar[type[Tree]]
    _remedy = "fit again"

    # What a classifier and a regressor do differently

    _target = hook("(table) → Target")

    def _row_weight(self, table: Table) -> Array | None:
        """Return the weights of the rows, those of their classes included."""
        return table.weight

    def _reweigher(self, table: Table) -> Callable[[Target, Rows], Target] | None:
        return None

    def _keep_leaves(self, table: Table, plan: Plan, grown: list[Any], previous: Any) -> None:
        """Remember what the leaves hold, where it is needed."""

    _judge_out_of_bag = hook("(table, total, voters) → None")

    # The fit

    def _fit(self, table: Table, run: Run) -> Certificate:
        owner = type(self).__name__
        if not table.in_memory:
            return self._fit_on_cluster(table, run)
        old = run.previous if self.warm_start and hasattr(run.previous, "trees_") else None
        self.n_outputs_ = int(np.prod(table.y_shape, initial=1))
        self.seed_ = seed_of(self.random_state) if old is None else old.seed_
        self.n_samples_ = table.n_rows
        plan = self._plan(table, run)
        done = self._count_old(old)
        n_threads = resolve_n_jobs(run.n_jobs)
        grown = run_crew(
            lambda job: self._grow_one(plan, done + job, run), self.n_estimators - done, n_threads, run, at_least=1
        )
        if len(grown) < self.n_estimators - done:
            warnings.warn(
                f"{owner}: {done + len(grown)} of {self.n_estimators} trees were grown in time; raise max_seconds.",
                UserWarning,
                stacklevel=4,
            )
        parts = [tree for tree, _ in grown]
        self.trees_ = concatenate(parts if old is None else [old.trees_, *parts])
        self._keep_leaves(table, plan, grown, old)
        if self.oob_score and plan.draw is not None:
            self._judge_out_of_bag(table, *sums_out_of_bag(self.trees_, table.X, plan.draw, n_threads))
        if self.verbose:
            print(f"{owner}: {len(grown)} trees grown, {self.trees_.n_trees} in all, {run.seconds:.1f} s")
        return Certificate("greedy", 0.0, TOLERANCE, n_iter=self.trees_.n_trees, by_construction=True)

    def _fit_on_cluster(self, table: Table, run: Run) -> Certificate:
        """Fit on a Dask collection: by workers that hold all rows, or, if they have no room, by merged sums."""
        owner = type(self).__name__
        if not can_share(table):
            raise DataError(
                f"{owner}: a forest needs all rows in memory. Pass fewer rows, or X.compute() for Dask; with a "
                "distributed.Client the trees are grown on its workers."
            )
        if self.warm_start and hasattr(run.previous, "trees_"):
            raise DataError(f"{owner}: warm_start needs all rows in memory; set warm_start=False on Dask.")
        self.seed_ = seed_of(self.random_state)
        need, room, _ = room_for(table.blocks.n_rows, table.blocks.n_columns)
        merges = need > room and self.max_bins is not None
        grown = self._grow_merged(table, run) if merges else self._grow_shared(table, run)
        if len(grown) < self.n_estimators:
            warnings.warn(
                f"{owner}: {len(grown)} of {self.n_estimators} trees were grown in time; raise max_seconds.",
                UserWarning,
                stacklevel=4,
            )
        return Certificate("greedy", 0.0, TOLERANCE, n_iter=self.trees_.n_trees, by_construction=True)

    def _grow_shared(self, table: Table, run: Run) -> list[Any]:
        """Let workers grow some of the trees each, on copies of the table."""
        twin = self._twin()
        shared = SharedTable(type(self).__name__, table)
        grown: list[Any] = []
        try:
            chunks = shared.chunks(range(self.n_estimators))
            for found in shared.map(partial(grow_some, twin), chunks):
                grown += found
                if run.progress(len(grown), 0.0):
                    break
            finished = shared.call(partial(finish_forest, twin), grown)
        finally:
            shared.close()
        for name, value in finished.items():
            setattr(self, name, value)
        return grown

    def _grow_merged(self, table: Table, run: Run) -> list[Any]:
        """Grow the trees by merged sums: the rows stay where they are."""
        from .merged import MergedForest  # which is built on this module

        fit = MergedForest(self, table.blocks, table.classes)
        try:
            grown = fit.grow_all(run)
            self.trees_ = concatenate([tree for tree, _ in grown])
            if self.oob_score and fit.draw is not None:
                self._judge_out_of_bag(fit.table, *fit.sums_out_of_bag(self.trees_))
        finally:
            fit.close()
        return grown

    def _twin(self) -> Any:
        """Return a forest of the same parameters that knows its columns and its seed, and nothing else."""
        twin = type(self)(**{**self.get_params(deep=False), "random_state": None})
        for name in ("n_features_in_", "feature_names_in_", "seed_"):
            if hasattr(self, name):
                setattr(twin, name, getattr(self, name))
        return twin

    def _plan(self, table: Table, run: Run) -> Plan:
        target, rule, draw = self._plan_rows(table)
        columns = read_table(
            table.X,
            target,
            rule,
            max_bins=self.max_bins,
            categorical=categorical_mask(self, table.n_columns),
            n_threads=resolve_n_jobs(run.n_jobs),
            owner=type(self).__name__,
        )
        return Plan(columns, target, rule, draw, self._reweigher(table))

    def _plan_rows(self, table: Table) -> tuple[Target, GrowthRule, Draw | None]:
        """Return what a plan needs of targets and weights; nothing here reads X."""
        owner, n = type(self).__name__, table.n_rows
        weight = self._row_weight(table)
        if self.bootstrap:
            self.max_samples_: int | None = bag_size(owner, self.max_samples, n, True, weight)
        elif self.max_samples is not None:
            raise ParameterError(
                f"{owner}: `max_sample` cannot be set if `bootstrap=False`. Either switch to `bootstrap=True` or set "
                f"`max_sample=None`. Every tree has all rows then; got {self.max_samples!r}."
            )
        elif self.oob_score:
            raise ParameterError(
                f"{owner}: Out of bag estimation only available if bootstrap=True; otherwise every tree has all rows."
            )
        else:
            self.max_samples_ = None
        self.sample_weight_ = weight
        target = self._target(table)
        if not self.bootstrap and weight is not None:
            target = replace(target, weight=weight, unit=bool((weight == 1.0).all()))
        return target, self._rule(table, weight), self._draw()

    def _grow_one(self, plan: Plan, number: int, run: Run) -> tuple[Trees, NDArray[np.int32] | None]:
        rows, target = None, plan.target
        if self.verbose > 1:
            print(f"building tree {number + 1} of {self.n_estimators}")
        if plan.draw is not None:
            rows = draw_rows(plan.draw, number)
            target = target if plan.reweigh is None else plan.reweigh(target, rows)
        found = grow(
            plan.columns, target, plan.rule, rows=rows, seed=tree_seed(self.seed_, number), stop=run.flag.array
        )
        return self._finish_tree(found, rows)

    def _finish_tree(self, found: Grown, rows: Rows | None) -> tuple[Trees, NDArray[np.int32] | None]:
        return found.tree, None

    def _draw(self) -> Draw | None:
        if self.max_samples_ is None:
            return None
        return Draw(self.seed_, self.n_samples_, self.max_samples_, True, chances(self.sample_weight_))

    def _count_old(self, old: Any) -> int:
        """Return how many trees a warm start keeps."""
        if old is None:
            return 0
        owner = type(self).__name__
        if (old.n_samples_, old.n_features_in_, old.n_outputs_) != (
            self.n_samples_,
            self.n_features_in_,
            self.n_outputs_,
        ):
            raise DataError(
                f"{owner}: warm_start goes on with {old.n_samples_} rows and {old.n_features_in_} columns; got "
                f"{self.n_samples_} and {self.n_features_in_}. Set warm_start=False for another table."
            )
        if self.n_estimators < old.trees_.n_trees:
            raise ParameterError(
                f"{owner}: n_estimators must be >= {old.trees_.n_trees}, the number of trees there are; got "
                f"{self.n_estimators}. Set warm_start=False to begin anew."
            )
        if self.n_estimators == old.trees_.n_trees:
            warnings.warn(
                "Warm-start fitting without increasing n_estimators does not fit new trees.", UserWarning, stacklevel=5
            )
        return int(old.trees_.n_trees)

    def _rule(self, table: Table, weight: Array | None) -> GrowthRule:
        """Return what stops the trees; the whole of a bag weighs as much as it has draws."""
        if self.max_samples_ is None:
            return growth_rule(self, table, weight, self._splitter)
        rule = growth_rule(self, table, None, self._splitter)
        return replace(rule, min_weight_leaf=self.min_weight_fraction_leaf * self.max_samples_)

    # What a fitted forest shows

    @property
    def estimator(self) -> Tree:
        """The tree that the forest is made of, unfitted, with the forest's parameters."""
        shared = self._tree_class().get_params(deep=False).keys() & self.get_params(deep=False).keys()
        own = {name: getattr(self, name) for name in shared - {"random_state", "n_jobs", "class_weight"}}
        if hasattr(self, "feature_names_in_"):  # the trees know numbers, not names
            own["categorical_features"] = categorical_mask(self, self.n_features_in_)
        return self._tree_class(splitter=self._splitter, **own)

    @property
    def estimator_(self) -> Tree:
        """The tree that the forest is made of, unfitted, with the forest's parameters."""
        check_is_fitted(self, "trees_")
        return self.estimator

    @property
    def estimators_(self) -> list[Tree]:
        """The fitted trees, views of `trees_`; the forest is a sequence of them.

        Those of a classifier name the classes by their numbers, as in scikit-learn.
        """
        check_is_fitted(self, "trees_")
        return self._kept(self.trees_, self._members_of_trees)

    def _members_of_trees(self) -> list[Tree]:
        template, d = self.estimator, self.n_features_in_
        drawn = count_features(type(self).__name__, self.max_features, d)
        members = []
        for number in range(self.trees_.n_trees):
            state = tree_state(self.seed_, number)
            member = member_tree(template, self.trees_.tree(number), state, d, self.n_outputs_, self._class_numbers())
            member.max_features_ = int(drawn)
            members.append(member)
        return members

    def _class_numbers(self) -> Any:
        return None

    @property
    def estimators_samples_(self) -> list[NDArray[np.int32]]:
        """The rows of each tree's bag, drawn again from the seed."""
        check_is_fitted(self, "trees_")
        draw = self._draw()
        if draw is None:
            return [np.arange(self.n_samples_, dtype=np.int32)] * self.trees_.n_trees
        return [draw_rows(draw, number).astype(np.int32) for number in range(self.trees_.n_trees)]

    def oob_importances(self, X: Any, y: Any, sample_weight: Any = None) -> Importances:
        """Return how much the out-of-bag error of the trees rises when a column is shuffled.

        Parameters
        ----------
        X, y, sample_weight
            The training data, as they were passed to `fit`.

        Returns
        -------
        Importances
            The mean over the trees and its standard error, each of shape (n_features,).
        """
        check_is_fitted(self, "trees_")
        owner, draw = type(self).__name__, self._draw()
        if draw is None:
            raise ParameterError(f"{owner}: oob_importances needs rows out of the bags. Fit with bootstrap=True.")
        table = type(self)._door(self._draft(), X, y, sample_weight)
        if table.fingerprint != self.certificate_.fingerprint:
            raise DataError(f"{owner}: oob_importances needs the training data; these are others.")
        return permutation_importances(
            self.trees_, table.X, table.y, draw, classes=table.classes is not None, n_jobs=self.n_jobs
        )

    def apply(self, X: Any) -> NDArray[np.int32]:
        """Return the leaf of each row in each tree, (n_samples, n_estimators)."""
        X = self._read(X)
        return self.trees_.apply(X, self.n_jobs)

    def decision_path(self, X: Any) -> tuple[Any, NDArray[np.int64]]:
        """Return the nodes that each row passes, as a sparse indicator matrix, and the first node of each tree."""
        X = self._read(X)
        return self.trees_.decision_path(X)

    _laws = laws(
        law("{owner}: trees_ must be trees", lambda forest: isinstance(forest.trees_, Trees), "trees_"),
        law(
            "{owner}: seed_, n_samples_, n_outputs_ must be whole numbers",
            lambda forest: are_counts(forest, "seed_", "n_samples_", "n_outputs_", "n_features_in_"),
            "trees_",
        ),
        law(
            "{owner}: max_samples_ must be a number of rows",
            lambda forest: (
                (drawn := getattr(forest, "max_samples_", None)) is None
                or (isinstance(drawn, int) and 1 <= drawn < 2**31)
            ),
            "trees_",
        ),
        law(
            "{owner}: sample_weight_ must hold one weight per row",
            lambda forest: (
                (weight := getattr(forest, "sample_weight_", None)) is None or weight.shape == (forest.n_samples_,)
            ),
            "trees_",
        ),
        law("{owner}: the trees do not fit the model", lambda forest: passes(forest._check_values), "trees_"),
    )
