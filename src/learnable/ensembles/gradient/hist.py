"""Gradient boosting on histograms: values in at most 255 bins, trees by sums of derivatives over bins.

    F_m = F_{m−1} + ρ_m T_m,    T_m = argmin Σ w(gT + ½hT²) + γ·leaves + ½λ‖T‖²,    g, h = V′, V″ at F_{m−1}

over trees whose cuts lie between bins: second-order boosting of the risk n⁻¹ Σ w V(y, F(x)) (in these units the penalty
on a round's leaf values is λ/(2n), XGBoost's convention). Leaves are −G/(H + λ); losses with a kink get the best value
of each leaf. Scores, parameters and attributes are scikit-learn's; the trees are `trees.histogram.grower`'s. Time O(nd)
per tree, memory about two bytes per cell and 50 bytes per row. From files the codes of the bins lie in mapped files
(`streams`); on a Dask cluster they stay on the workers, which add their histograms (`cluster`).

References: J. Friedman, Annals of Statistics 29 (2001); T. Chen and C. Guestrin, XGBoost, KDD 2016; G. Ke et al.,
LightGBM, NIPS 2017.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np

from ...core import (
    Array,
    ArrayLike,
    BarrierTeam,
    Boolean,
    Certificate,
    DataError,
    Matches,
    NDArray,
    Nothing,
    Number,
    Options,
    ParameterError,
    Run,
    fitted,
    optional,
    param,
    resolve_n_jobs,
)
from ...data.any_order import ALONE, World, count
from ...data.dask_blocks import DaskBlocks, current_client
from ...data.door import Table
from ...data.mapped import MappedArrays
from ...trees import Columns, Grown, GrowthRule, Trees
from ...trees._random import seed_of
from ...trees.decision_tree import TOLERANCE
from ...trees.histogram.bins import BinnedTable
from ...trees.histogram.grower import HistogramGrower, HistogramRule
from ...trees.histogram.merged import MergedGrower
from .base import BoostedClassifier, BoostedRegressor, GradientBoosting
from .checkpoint import Checkpoint
from .cluster import fit_on_cluster
from .driver import Rounds, power_of_two
from .exact import ExactLearner
from .losses import BoostingLoss, ends_of
from .settings import (
    SHARE,
    Part,
    Stopping,
    Watch,
    hold_out,
    interaction_sets,
    least_hessian,
)
from .streams import BinSettings, Encoded, Split, read_codes, read_targets

# --------------------------------------------------------------------------------------------------------------------
# Trees for one round of boosting on a binned table, grown by `trees.histogram.grower`.


class HistLearner:
    """Trees on histograms, one after the other, by a crew of threads of its own.

    Direction "gradient" is "newton" with h = 1 and λ = 0: G²/W is what least squares gain. "inner-product" has another
    score, Σ|G|, and is left to `trees.grow` on the same number of bins.
    """

    def __init__(
        self,
        X: Any,
        binned: BinnedTable,
        rule: HistogramRule,
        max_bins: int,
        n_threads: int,
        stop: NDArray[np.int64],
        empty: Any = np.empty,
        world: World = ALONE,
    ) -> None:
        self.X, self.rule, self.max_bins, self.n_threads, self.stop = X, rule, max_bins, n_threads, stop
        self.categorical = binned.bins.categorical
        self.world = world
        self.crew = BarrierTeam(n_threads)
        self.grower: HistogramGrower
        if world.size > 1:
            self.grower = MergedGrower(binned, rule, world)
        else:
            self.grower = HistogramGrower(binned, rule, self.crew, empty)
        self.signs: ExactLearner | None = None
        self._empty = empty
        self._scratch: list[Array] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """End the threads."""
        self.crew.close()

    def grow(self, direction: str, g: Array, h: Array, w: Array | None, rows: Any, seed: int) -> Grown:
        """Return a tree for the derivatives, and the leaf of every row."""
        if direction == "inner-product":
            return self._sign_learner().grow(direction, g, h, w, rows, seed)
        scale = power_of_two(g, self.world)
        if scale != 1.0 or w is not None or direction == "gradient":
            g, h = self._weighted(direction, g, h, w, scale)
        found = self.grower.grow(g, h, rows=rows, seed=seed, stop=self.stop)
        if scale != 1.0:
            found.tree.value[:] *= scale
            found.tree.impurity[:] *= scale**2
        return found

    def _weighted(self, direction: str, g: Array, h: Array, w: Array | None, scale: float) -> tuple[Array, Array]:
        """Return the derivatives that the tree is grown for, in memory that the next call overwrites."""
        if not self._scratch:
            self._scratch = [self._empty(len(g)), self._empty(len(g))]
        to_g, to_h = self._scratch
        np.divide(g, scale, out=to_g)
        np.copyto(to_h, 1.0 if direction == "gradient" else h)
        if w is not None:
            np.multiply(to_g, w, out=to_g)
            np.multiply(to_h, w, out=to_h)
        return to_g, to_h

    def _sign_learner(self) -> ExactLearner:
        if self.signs is None:
            rule = GrowthRule(
                max_depth=self.rule.max_depth,
                max_leaf_nodes=self.rule.max_leaf_nodes,
                min_samples_leaf=self.rule.min_samples_leaf,
            )
            columns = Columns.build(
                self.X, max_bins=self.max_bins, categorical=self.categorical, n_threads=self.n_threads
            )
            self.signs = ExactLearner(self.X, columns, rule, 0.0, 0.0, 0.0, self.n_threads, self.stop)
        return self.signs


class RoundLines:
    """What a histogram model says with verbose=2: a line for every round; then early stopping looks at the scores."""

    def __init__(self, model: Any, watch: Any) -> None:
        self.model, self.watch = model, watch
        self.began = time.monotonic()

    def __call__(self, rounds: Rounds, trees: list[Trees]) -> bool:
        """Look at one more round; return whether it is enough."""
        enough = self.watch is not None and self.watch(rounds, trees)
        n_leaves = sum(tree.n_leaves for tree in trees)
        depth = max(tree.max_depth for tree in trees)
        grown = "1 tree" if len(trees) == 1 else f"{len(trees)} trees"
        parts = [f"{grown}, {n_leaves} leaves", f"max depth = {depth}", f"train loss: {rounds.losses[-1]:.5f}"]
        if self.watch is not None:
            parts.append(f"score of the rows that decide: {self.watch.decisive()[-1]:.5f}")
        now = time.monotonic()
        print(f"[{len(rounds.steps)}/{self.model._n_rounds()}] {', '.join(parts)}, in {now - self.began:.3f}s")
        self.began = now
        return bool(enough)


_MANY_ROWS = 10_000  # from here on "auto" stops early, as in scikit-learn
_FEW_ROWS = 4096  # up to here exact sums cost next to nothing
#: Largest shortfall of a split, as a share of what its tree could gain, that rounded derivatives explain.
ROUNDED = 1e-2


class HistBoosting(GradientBoosting):
    """What the two models on histograms share; not to be used directly."""

    learning_rate: float = param(Number(low=0.0, low_open=True), "η, the factor on every step.", default=0.1)
    max_iter: int = param(
        Number(low=1, integer=True),
        "Rounds; each has one tree, or one for each of more than two classes (or quantiles).",
        default=100,
    )
    max_leaf_nodes: int | None = param(optional(Number(low=2, integer=True)), "Leaves of a tree.", default=31)
    max_depth: int | None = param(optional(Number(low=1, integer=True)), "Depth of the trees.", default=None)
    min_samples_leaf: int = param(Number(low=1, integer=True), "Rows that a leaf needs.", default=20)
    l2_regularization: float = param(
        Number(low=0.0), "λ in ½λ‖T‖², XGBoost's `reg_lambda`: leaves are −G/(H + λ).", default=0.0
    )
    reg_lambda: float | None = param(
        optional(Number(low=0.0)),
        "XGBoost's name of `l2_regularization`, which it replaces if it is given.",
        default=None,
    )
    min_hessian: float | None = param(
        optional(Number(low=0.0)),
        "Σh that a leaf needs. None: for the log loss min_samples_leaf/80 times the mean weight, with the default h of "
        "one row at even odds (rows that are nearly certain already have less, and their steps would be noise); else "
        "1e-3, as in scikit-learn.",
        default=None,
    )
    category_smoothing: float = param(
        Number(low=0.0),
        "Levels of a category are tried in the order of −G/(H + smoothing), so that rare ones stay in the "
        "middle; 0 gives the best of all sets.",
        default=10.0,
    )
    max_features: float = param(SHARE, "Share of the columns drawn at each node.", default=1.0)
    max_features_tree: float = param(SHARE, "Share of the columns drawn for each tree.", default=1.0)
    max_features_level: float = param(SHARE, "Share of these that is drawn for each level.", default=1.0)
    max_bins: int = param(
        Number(low=2, high=255, integer=True), "Most bins of a column, besides that of missing values.", default=255
    )
    interaction_cst: Any = param(
        Options("pairwise", "no_interactions")
        | optional(Matches(lambda v: isinstance(v, (list, tuple)), "a list of sets of columns")),
        "Columns may meet on a path only if one of the sets holds them all; those in no set form one.",
        default=None,
    )
    early_stopping: Any = param(
        Options("auto") | Boolean(),
        'Whether rounds end when the score of rows held out stops rising; "auto": beyond 10,000 rows, or if '
        "`X_val` is passed to `fit`. The round with the best score is kept (scikit-learn keeps all).",
        default="auto",
    )
    scoring: Any = param(
        Nothing() | Matches(lambda v: isinstance(v, str) or callable(v), "'loss', a name, a scorer"),
        'That score; "loss": minus the loss.',
        default="loss",
    )
    validation_fraction: Any = param(
        Nothing() | Number(low=1, integer=True) | Number(low=0.0, high=1.0, low_open=True, high_open=True),
        "Share or number of rows held out; None: the training rows themselves.",
        default=0.1,
    )
    n_iter_no_change: int = param(
        Number(low=1, integer=True),
        "Rounds end if none of the last so many scores exceeds the one before them by `tol`.",
        default=10,
    )
    tol: float = param(Number(low=0.0), "Rise of the score of the rows held out that counts as one.", default=1e-7)
    growth: str = param(
        Options("leaf", "depth"),
        "Whether the leaf of the largest gain is split next, or level after level.",
        default="leaf",
    )
    histogram: str = param(
        Options("auto", "float64"),
        '"auto": beyond 4,096 rows derivatives are rounded at random to about a hundred steps of the mean '
        "one where that is safe, which is twice as fast; splits then may fall short of the best by a little, "
        'leaf values do not. "float64": sums are exact, and so is the certificate\'s claim.',
        default="auto",
    )

    checkpoint: Any = param(
        Nothing() | Matches(lambda v: isinstance(v, (str, os.PathLike)), "a path"),
        "A file for the rounds so far of a fit on a Dask cluster. A fit of the same data and parameters that finds it "
        "goes on from there; a fit that ends well removes it.",
        default=None,
    )

    _infinite = True
    n_iter_: int = fitted("int", "Rounds that are kept.")

    def _n_rounds(self) -> int:
        return int(self.max_iter)

    def _stopping(self, n_rows: int, given: bool) -> Stopping | None:
        if given and self.early_stopping is False:
            raise ParameterError(
                f"{type(self).__name__}: X_val and y_val are passed to fit while at the same time early_stopping is "
                "False; set it to 'auto' or True."
            )
        stops = given or n_rows > _MANY_ROWS if self.early_stopping == "auto" else self.early_stopping
        if not stops:
            return None
        return Stopping(self.validation_fraction, self.n_iter_no_change, self.tol, self.scoring)

    def _exact_sums(self, part: Part, world: World = ALONE) -> bool:
        """Tell whether histograms are sums in float64: of few rows, and where weights are too wide to be rounded."""
        n_rows = count(part.y, world)
        low, high = (1.0, 1.0) if part.w is None else ends_of(part.w, world)
        return bool(high > 1e3 * low or self.histogram == "float64" or n_rows <= _FEW_ROWS)

    def _claim(self, part: Part, world: World = ALONE) -> float:
        return TOLERANCE if self._exact_sums(part, world) or self.direction == "inner-product" else ROUNDED

    def _rule(self, n_outputs: int, part: Part, world: World = ALONE) -> HistogramRule:
        """Return what the trees may do."""
        second = self.direction == "newton"
        if self.gamma > 0 and not second:
            raise ParameterError(
                f"{type(self).__name__}: gamma is for direction='newton'; got direction={self.direction!r}."
            )
        return HistogramRule(
            max_leaf_nodes=self.max_leaf_nodes,
            max_depth=self.max_depth,
            min_samples_leaf=self.min_samples_leaf,
            min_hessian=least_hessian(self, part.w, world) if second else 0.0,
            reg_lambda=self._lambda() if second else 0.0,
            gamma=self.gamma,
            growth=self.growth,
            monotonic=self._signs(n_outputs),
            interactions=interaction_sets(type(self).__name__, self.interaction_cst, self.n_features_in_),
            columns_per_tree=self.max_features_tree,
            columns_per_level=self.max_features_level,
            columns_per_node=self.max_features,
            category_smoothing=self.category_smoothing,
            histogram="float64" if self._exact_sums(part, world) else "auto",
        )

    def _lambda(self) -> float:
        return float(self.l2_regularization if self.reg_lambda is None else self.reg_lambda)

    def _parts(self, table: Table, run: Run) -> tuple[Part, Part | None, Stopping | None]:
        if table.in_memory:
            return super()._parts(table, run)
        self._refuse_what_needs_rows(run)
        owner, blocks, arrays = type(self).__name__, table.blocks, self._arrays
        y, given_weight = read_targets(blocks, table.classes, run.n_jobs)
        w = self._row_weight(replace(table, y=y, weight=given_weight))
        given = getattr(self, "_validation", None)
        stopping = self._stopping(len(y), given is not None)
        fit, out = None, np.zeros(0, np.int64)
        if given is None and stopping is not None and stopping.fraction is not None:
            fit, out = hold_out(owner, y, table.classes is not None, stopping.fraction, self.seed_)
        self.n_held_out_ = len(out)
        n_classes = 0 if table.classes is None else len(table.classes)
        settings = BinSettings(
            owner, self.max_bins, self.seed_ % 2**32, run.n_jobs, self.is_categorical_, self.levels_, n_classes
        )
        coded, coded_out = read_codes(blocks, Split(len(y), fit, out), w, settings, arrays)
        held = None
        if given is not None:
            held = self._read_validation(*given)
        elif fit is not None:
            held = Part(coded_out, y[out], None if w is None else w[out])
        if fit is not None:
            y, w = y[fit], None if w is None else w[fit]
        y, w = arrays.copy(y), None if w is None else arrays.copy(w)
        return Part(coded, y, w, arrays.empty), held, stopping

    def _fit_on_cluster(self, table: Table, run: Run) -> Certificate:
        """Fit on a Dask collection whose rows stay on the workers."""
        self._refuse_what_needs_rows(run)
        checkpoint = Checkpoint(type(self).__name__, self.checkpoint)
        seed = checkpoint.seed() if self.random_state is None else None
        self.seed_ = seed_of(self.random_state) if seed is None else seed
        held = None if self._validation is None else self._read_validation(*self._validation)
        observe = RoundLines(self, None) if self.verbose > 1 else None
        found = fit_on_cluster(self, table, run, checkpoint, held, observe)
        self.init_ = None
        self._store(found.rounds, None, 0, found.seen)
        self._finish(found.rounds, found.loss, None)
        return self._certified(found.claim)

    def _refuse_what_needs_rows(self, run: Run) -> None:
        owner = type(self).__name__
        if self.warm_start and hasattr(run.previous, "trees_"):
            raise DataError(f"{owner}: warm_start needs all rows in memory; set warm_start=False for files and Dask.")
        if self.direction == "inner-product":
            raise DataError(f"{owner}: direction='inner-product' needs all rows in memory; use 'newton' or 'gradient'.")

    def _bin(self, part: Part, n_threads: int) -> BinnedTable:
        if isinstance(part.X, Encoded):
            return part.X.binned
        return BinnedTable.build(
            part.X,
            max_bins=self.max_bins,
            categorical=self.is_categorical_,
            weight=part.w,
            target=part.y,
            seed=self.seed_ % 2**32,
            n_threads=n_threads,
            owner=type(self).__name__,
        )

    def _make_learner(self, part: Part, loss: BoostingLoss, run: Run) -> HistLearner:
        rule = self._rule(loss.n_outputs, part)
        if self.direction == "inner-product" and (rule.monotonic is not None or rule.interactions is not None):
            raise ParameterError(
                f"{type(self).__name__}: direction='inner-product' does not know constraints; use 'newton'."
            )
        n_threads = resolve_n_jobs(run.n_jobs)
        binned = self._bin(part, n_threads)
        return HistLearner(part.X, binned, rule, self.max_bins, n_threads, run.flag.array, part.empty)

    def _observer(self, watch: Watch | None, keep: Callable[[Rounds], None]) -> Any:
        return RoundLines(self, watch) if self.verbose > 1 else watch

    def _finish(self, rounds: Rounds, loss: BoostingLoss, old: Any) -> None:
        self.n_iter_ = len(self.steps_)

    def _fit(self, table: Table, run: Run) -> Certificate:
        if not table.in_memory and isinstance(table.blocks, DaskBlocks) and current_client() is not None:
            certificate = self._fit_on_cluster(table, run)
        elif table.in_memory:
            certificate = super()._fit(table, run)
        else:
            with MappedArrays(type(self).__name__) as self._arrays:
                try:
                    certificate = super()._fit(table, run)
                finally:
                    del self._arrays
        if self.verbose:
            losses = f"training loss {self.training_loss_[-1]:.6g}"
            print(f"{type(self).__name__}: {self._rounds_done()} rounds, {losses}")
        return certificate


# --------------------------------------------------------------------------------------------------------------------
# Histogram boosting of classes.


class HistGradientBoostingClassifier(BoostedClassifier, HistBoosting):
    r"""Gradient boosting for classification on histograms: scikit-learn's, and more.

    Minimises n⁻¹ Σ w V(y, F(x)) over sums of trees, one round at a time; V is the logistic loss of two classes, the
    cross-entropy of K, or the exponential loss. A round minimises the second-order expansion plus γ·leaves + ½λ‖T‖²,
    which is λ/(2n) for the mean. Memory: two bytes per cell, 50 per row.

    NaN in X is a missing value; infinity is a number beyond all others (the largest of float64).

    Examples
    --------
    >>> import numpy as np
    >>> from learnable import HistGradientBoostingClassifier
    >>> X = np.arange(200.0)[:, None]
    >>> y = np.where(X[:, 0] % 100 < 50, "low", "high")
    >>> model = HistGradientBoostingClassifier(max_iter=20).fit(X, y)
    >>> model.score(X, y), model.certificate_.holds
    (1.0, True)
    """

    _theory = "gradient-boosting"

    _positional: ClassVar[tuple[str, ...]] = ("loss",)


# --------------------------------------------------------------------------------------------------------------------
# Histogram boosting of numbers.


class HistGradientBoostingRegressor(BoostedRegressor, HistBoosting):
    r"""Gradient boosting for regression on histograms: scikit-learn's, and more.

    Minimises n⁻¹ Σ w V(y, F(x)) over sums of trees. Rounds, penalty, missing and infinite values, and memory are as in
    `HistGradientBoostingClassifier`.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable import HistGradientBoostingRegressor
    >>> X = np.arange(200.0)[:, None]
    >>> model = HistGradientBoostingRegressor(max_iter=50).fit(X, np.sin(X[:, 0] / 20.0))
    >>> model.score(X, np.sin(X[:, 0] / 20.0)) > 0.95, model.n_iter_
    (True, 50)
    """

    _theory = "gradient-boosting"

    quantile: Any = param(
        Nothing() | Number(low=0.0, high=1.0) | ArrayLike(Number(low=0.0, high=1.0)),
        'Level of loss="quantile"; several, ascending, are fitted jointly and do not cross. Of '
        'loss="huber": the share of residuals that count as small, 0.9 if None.',
        default=None,
    )
    _positional: ClassVar[tuple[str, ...]] = ("loss",)

    def _level(self) -> Any:
        return self.quantile
