r"""Rosenblatt's perceptron.

For every row that is on the wrong side, y(wᵀx + b) ≤ 0:    w ← w + η s y x,   b ← b + η s y,

pass after pass, until a pass makes no mistake. If some unit vector (u, u₀) separates the classes with margin γ = min
y(uᵀx + u₀), and R is the largest ‖(x, 1)‖, it makes at most R²/γ² mistakes in all (Novikoff, 1962). Each step is a
subgradient step on the empirical risk of the loss max(0, −yz) without a penalty: n⁻¹ΣV + λΩ with λ = 0.

If the last pass made no mistake, the data are separated and the certificate says so: the risk's subgradient is zero.
Otherwise nothing is proven; data that no line separates have no perceptron solution, and the weights wander for ever.

References: F. Rosenblatt, Psychological Review 65, 1958; A. Novikoff, On convergence proofs on perceptrons, 1962; Y.
Freund and R. Schapire, Large margin classification using the perceptron algorithm, Machine Learning 37, 1999.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Self, cast

import numpy as np
import scipy.sparse as sp

from ...core import MAX_ITER as MOST_PASSES
from ...core import (
    N_JOBS,
    RANDOM_STATE,
    Array,
    Boolean,
    Certificate,
    DataError,
    Matches,
    NDArray,
    Nothing,
    Number,
    Options,
    ParameterError,
    Progress,
    Run,
    check_parameters,
    fitted,
    no_progress,
    param,
)
from ...core.jit import kernel
from ...data.blocks import Block, map_reduce, unsigned
from ...data.door import Table, class_weights, door, read_features, read_weight, refuse_extreme_sizes
from ..base import LinearClassifierModel
from .dual_descent import pieces
from .svm import random_order_of


@kernel
def perceptron_dense(
    X: Array,
    order: NDArray[np.int64],
    label: Array,
    step: Array,
    intercept: bool,
    average: bool,
    w: Array,
    total: Array,
    done: Array,
) -> tuple[int, float]:
    """One pass; return the mistakes and Σ max(0, −yz). IN/OUT w = (b, w); the mean of all w is w − total/done."""
    d = X.shape[1]
    weights = w[1:]
    sums = total[1:]
    mistakes = 0
    loss = 0.0
    for i in order:
        row = X[i]
        z = w[0]
        for j in range(d):
            z += row[j] * weights[j]
        if label[i] * z <= 0.0:
            mistakes += 1
            loss -= label[i] * z
            change = step[i] * label[i]
            for j in range(d):
                weights[j] += change * row[j]
            if average:
                for j in range(d):
                    sums[j] += change * done[0] * row[j]
            if intercept:
                w[0] += change
                total[0] += change * done[0]
        done[0] += 1.0
    return mistakes, loss


@kernel
def perceptron_sparse(
    data: Array,
    indices: NDArray[Any],
    indptr: NDArray[Any],
    order: NDArray[np.int64],
    label: Array,
    step: Array,
    intercept: bool,
    average: bool,
    w: Array,
    total: Array,
    done: Array,
) -> tuple[int, float]:
    """Do the same over CSR rows."""
    weights = w[1:]
    sums = total[1:]
    mistakes = 0
    loss = 0.0
    for i in order:
        z = w[0]
        for e in range(indptr[i], indptr[i + 1]):
            z += data[e] * weights[indices[e]]
        if label[i] * z <= 0.0:
            mistakes += 1
            loss -= label[i] * z
            change = step[i] * label[i]
            for e in range(indptr[i], indptr[i + 1]):
                weights[indices[e]] += change * data[e]
            if average:
                for e in range(indptr[i], indptr[i + 1]):
                    sums[indices[e]] += change * done[0] * data[e]
            if intercept:
                w[0] += change
                total[0] += change * done[0]
        done[0] += 1.0
    return mistakes, loss


@kernel
def penalised_pass(
    data: Array,
    indices: NDArray[Any],
    indptr: NDArray[Any],
    order: NDArray[np.int64],
    label: Array,
    step: Array,
    form: tuple[bool, float, float],
    w: Array,
    state: Array,
    shrunk: Array,
) -> tuple[int, float]:
    """One pass with a penalty: every row multiplies w by 1 − ηαl₂, and draws what it touches to zero by ηαl₁.

    `form` is (intercept, ηαl₁, ηαl₂). IN/OUT w = (b, w/scale); `state` = (scale, L1 strength so far); `shrunk` what
    each coefficient has had of it (Tsuruoka et al., ACL 2009). Return the mistakes and Σ max(0, −yz).
    """
    intercept, l1, l2 = form
    weights = w[1:]
    mistakes = 0
    loss = 0.0
    for i in order:
        z = 0.0
        for e in range(indptr[i], indptr[i + 1]):
            z += data[e] * weights[indices[e]]
        z = z * state[0] + w[0]
        state[0] *= max(0.0, 1.0 - l2)
        if state[0] < 1e-9:
            for j in range(len(weights)):
                weights[j] *= state[0]
            state[0] = 1.0
        if label[i] * z <= 0.0:
            mistakes += 1
            loss -= label[i] * z
            change = step[i] * label[i]
            for e in range(indptr[i], indptr[i + 1]):
                weights[indices[e]] += change * data[e] / state[0]
            if intercept:
                w[0] += change
        if l1 > 0.0:
            state[1] += l1
            for e in range(indptr[i], indptr[i + 1]):
                j = indices[e]
                before = weights[j] * state[0]
                after = before
                if before > 0.0:
                    after = max(0.0, before - (state[1] + shrunk[j]))
                elif before < 0.0:
                    after = min(0.0, before + (state[1] - shrunk[j]))
                weights[j] = after / state[0]
                shrunk[j] += after - before
    return mistakes, loss


class Walk(NamedTuple):
    """One score's perceptron."""

    w: Array  #: (1 + d,), the intercept first
    n_mistakes: int
    n_iter: int
    separated: bool  #: the last pass made no mistake


class Perceptron(LinearClassifierModel):
    r"""Perceptron: w ← w + η s y x for every row with y(wᵀx + b) ≤ 0, until none is left.

    Subgradient steps on n⁻¹ Σ max(0, −yz) without a penalty (λ = 0). More than two classes: one against the rest. Time
    O(nd) a pass; memory O(n + d) besides the data.

    Examples
    --------
    >>> from learnable import Perceptron
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], ["no", "no", "yes", "yes"]
    >>> model = Perceptron(tol=None).fit(X, y)
    >>> model.predict([[0.5], [2.5]])
    array(['no', 'yes'], dtype='<U3')
    >>> bool(model.n_mistakes_[0] <= model.mistake_bound_[0]), model.certificate_.holds
    (True, True)
    """

    _theory = "perceptron"

    penalty: str | None = param(
        Nothing() | Options("l1", "l2", "elasticnet"),
        "A penalty that every row applies before the next, as in scikit-learn; nothing is proven then. What "
        "minimises a penalised risk is a support vector machine: `LinearSVC`.",
        default=None,
    )
    alpha: float = param(Number(low=0.0), "Strength of the penalty.", default=0.0001)
    l1_ratio: float = param(Number(low=0.0, high=1.0), 'Share of L1 in "elasticnet".', default=0.15)
    max_iter: int = param(MOST_PASSES, "Most passes over the rows.", default=1000)
    tol: float | None = param(
        Nothing() | Number(low=0.0),
        "Stop when the mean loss max(0, −yz) of a pass has not fallen by `tol` for `n_iter_no_change` passes; "
        "None: only when a pass makes no mistake.",
        default=1e-3,
    )
    shuffle: bool = param(
        Boolean(),
        "Whether every pass has a new random order (of single rows, or of runs of 16 in tables of more than a "
        "million entries).",
        default=True,
    )
    eta0: float = param(
        Number(low=0.0, low_open=True, high=1e100), "η. From zero weights it only scales the result.", default=1.0
    )
    n_jobs: int | None = param(N_JOBS, "Threads that measure the margins; a pass itself is sequential.", default=None)
    random_state: Any = param(RANDOM_STATE, "Orders the rows.", default=0)
    early_stopping: bool = param(
        Matches(lambda v: v is False, "False"), "Kept for compatibility; only early_stopping=False.", default=False
    )
    validation_fraction: float = param(
        Number(low=0.0, high=1.0), "Kept for compatibility; nothing is set aside.", default=0.1
    )
    n_iter_no_change: int = param(Number(low=1, integer=True), "Passes without progress before the end.", default=5)
    average: bool = param(
        Boolean(),
        "Return the mean of the weights after every row instead of the last ones, which generalises better "
        "where the classes overlap.",
        default=False,
    )
    n_iter_: int = fitted("int", "The most passes that a score took.")
    n_mistakes_: Array = fitted("(1,) or (n_classes,)", "Mistakes made in all passes.", kind="iu", low=0)
    margin_: Array = fitted(
        "(1,) or (n_classes,)", "min y(wᵀx + b)/‖(w, b)‖ over the training rows; negative where they are not separated."
    )
    mistake_bound_: Array = fitted(
        "(1,) or (n_classes,)",
        "R²/margin² (times the ratio of the largest weight of a row to the smallest): at least `n_mistakes_`, "
        "if the start was zero; infinite where the rows are not separated.",
        infinite=True,
        low=0.0,
    )
    certificate_: Certificate = fitted(
        "Certificate", "`stationarity` with value 0 if every score separates its rows, else `none`."
    )

    _door = staticmethod(door(target="classes"))

    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, coef_init: Any = None, intercept_init: Any = None
    ) -> Self:
        """Fit the model, from given weights or from zero.

        Parameters
        ----------
        X : array, sparse array, dataframe or list of shape (n_samples, n_features)
            Training data.
        y : array of shape (n_samples,), or str
            Labels; with a dataframe, the name of a column.
        sample_weight : array of shape (n_samples,) or str, optional
            Non-negative weights of the rows.
        coef_init : array of the shape of `coef_`, optional
            Weights to start from.
        intercept_init : array of the shape of `intercept_`, optional
            Intercepts to start from.
        """
        self._initial = (coef_init, intercept_init)
        try:
            return cast(Self, super().fit(X, y, sample_weight))
        finally:
            del self._initial

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Make one pass over some more rows, from the weights so far; nothing is proven about all rows.

        Parameters
        ----------
        X : array, sparse array, dataframe or list of shape (n_samples, n_features)
            Rows, in memory.
        y : array of shape (n_samples,)
            Their labels.
        classes : array of shape (n_classes,), optional
            All labels that will ever be seen; needed in the first call.
        sample_weight : array of shape (n_samples,), optional
            Non-negative weights of the rows.
        """
        check_parameters("Perceptron", self.get_params(deep=False), self._parameters)
        draft = object.__new__(type(self))
        draft.__dict__.update(vars(self))
        known = getattr(self, "classes_", None)
        draft.classes_ = classes_of(known, classes)
        table = read_batch(draft, X, y, sample_weight, first=known is None)
        weight = draft._row_weights(table)
        previous = self if known is not None else None
        draft.max_iter = 1
        walks = [draft._walk(rows_of(table.X), table, weight, k, previous, no_progress) for k in draft._positives()]
        draft.max_iter = self.max_iter
        draft._store(walks)
        seen = getattr(self, "t_", 1.0) + table.n_rows
        draft.t_ = float(seen)
        draft.certificate_ = Certificate("none", float("inf"), 0.0, None, 1)
        for name in ("margin_", "mistake_bound_"):
            draft.__dict__.pop(name, None)  # they were about the rows of a fit
            self.__dict__.pop(name, None)
        self.__dict__.update(draft.__dict__)
        return self

    def _fit(self, table: Table, run: Run) -> Certificate:
        table.require_memory(
            "Perceptron: a pass visits the rows one by one in random order, so they have to fit into memory; "
            "use LinearSVC, or read the table into an array."
        )
        self.classes_ = np.asarray(table.classes)
        weight = self._row_weights(table)
        previous = run.previous if self.warm_start else None
        walks = [self._walk(rows_of(table.X), table, weight, k, previous, run.progress) for k in self._positives()]
        self._store(walks)
        self.t_ = 1.0 + float(self.n_iter_ * table.n_rows)
        wrong = self._measure_margins(table, weight)
        if wrong > 0 or self.penalty is not None:
            return Certificate("none", wrong, 0.0, None, self.n_iter_)
        return Certificate("stationarity", wrong, 0.0, None, self.n_iter_)

    def _row_weights(self, table: Any) -> Array:
        """Return the weight of each row, that of its class included."""
        if self.penalty is not None and self.average:
            raise ParameterError("Perceptron: average=True needs penalty=None; got a penalty. Leave one of them out.")
        of_class = class_weights(table, self.class_weight, "Perceptron")
        weight = np.ones(table.n_rows) if table.weight is None else table.weight
        weight = weight if of_class is None else weight * of_class[table.y]
        refuse_extreme_sizes(table.X, weight, "Perceptron")
        return np.asarray(weight, dtype=np.float64)

    def _store(self, walks: list[Walk]) -> None:
        """Set what the walks of all scores arrived at."""
        self.coef_ = np.stack([walk.w[1:] for walk in walks])
        self.intercept_ = np.array([walk.w[0] for walk in walks])
        self.n_iter_ = max(walk.n_iter for walk in walks)
        self.n_mistakes_ = np.array([walk.n_mistakes for walk in walks])
        if not np.isfinite(self.coef_).all():
            raise DataError("Perceptron: coefficients are beyond the range of float64; rescale X.")

    def _positives(self) -> Any:
        return [1] if len(self.classes_) == 2 else range(len(self.classes_))

    def _walk(
        self, rows: tuple[Any, ...], table: Any, weight: Array, k: int, previous: Any, progress: Progress
    ) -> Walk:
        """Make passes over the rows for one score until one makes no mistake, or nothing improves."""
        rng = random_order_of(self)
        n = table.n_rows
        label = np.where(table.y == k, 1.0, -1.0)
        w = self._start(previous, k, table.n_columns)
        stepper = Stepper(self, rows, label, self.eta0 * weight, w)
        best = np.inf
        patience = self.n_iter_no_change
        mistakes = 0
        n_iter = 0
        separated = False
        width = rows[0].shape[1] if len(rows) == 1 else len(rows[0]) // n
        order = np.arange(n)
        while n_iter < self.max_iter and patience > 0 and not separated:
            n_iter += 1
            if self.shuffle:
                order = random_order(rng, n, width)
            found = 0
            loss = 0.0
            cut = False
            for part in pieces(order, width):
                cut = cut or progress(n_iter, float(mistakes + found))
                if not cut:
                    number, missed = stepper.make_pass(part)
                    found = found + number
                    loss = loss + missed / n
            mistakes += found
            separated = found == 0 and not cut and self.penalty is None
            if self.tol is not None:
                patience = self.n_iter_no_change if loss < best - self.tol else patience - 1
                best = min(best, loss)
            if cut:
                break
        return Walk(stepper.weights(average=self.average and not separated), mistakes, n_iter, separated)

    def _start(self, previous: Any, k: int, n_columns: int) -> Array:
        """Return the weights to begin with: those given, those of the last fit, or zero."""
        n_scores = len(self._positives())
        row = 0 if n_scores == 1 else k
        start = np.zeros(n_columns + 1)
        if np.shape(getattr(previous, "coef_", 0.0)) == (n_scores, n_columns):
            start = np.r_[previous.intercept_[row], previous.coef_[[row]].ravel()]
        coef, intercept = getattr(self, "_initial", (None, None))
        for name, given, place, size in (
            ("coef_init", coef, slice(1, None), n_columns),
            ("intercept_init", intercept, slice(0, 1), 1),
        ):
            if given is None:
                continue
            values = np.asarray(given, dtype=np.float64)
            if values.size != n_scores * size:
                raise DataError(
                    f"Perceptron: Provided {name} does not match dataset: it has shape {values.shape}, not "
                    f"{(n_scores, size)}."
                )
            start[place] = values.reshape(n_scores, size)[row]
        return start

    def _measure_margins(self, table: Table, weight: Array) -> float:
        """Set margins and bounds; return the share of weight on the wrong side of some score."""
        positives = np.array(list(self._positives()))

        def statistic(block: Block) -> tuple[float, Array, float]:
            X = block.X
            own = weight[block.start : block.start + block.X.shape[0]]
            squares = X.multiply(X).sum(axis=1) if table.blocks.sparse else np.einsum("ij,ij->i", X, X)
            label = np.where(np.asarray(block.y)[:, None] == positives, 1.0, -1.0)
            margins = label * (X @ self.coef_.T + self.intercept_)
            return float(np.max(squares)), margins.min(axis=0), float(own @ (margins <= 0).any(axis=1))

        def merge(a: tuple[float, Array, float], b: tuple[float, Array, float]) -> tuple[float, Array, float]:
            return max(a[0], b[0]), np.minimum(a[1], b[1]), a[2] + b[2]

        radius, margin, wrong = map_reduce(table.blocks, statistic, merge, n_jobs=self.n_jobs)
        size = np.sqrt((self.coef_**2).sum(axis=1) + self.intercept_**2)
        self.margin_ = margin / np.where(size > 0, size, 1.0)
        with np.errstate(divide="ignore", over="ignore"):
            bound = (radius + bool(self.fit_intercept)) / self.margin_**2 * (weight.max() / weight[weight > 0].min())
        self.mistake_bound_ = np.where(self.margin_ > 0, bound, np.inf)
        return wrong / float(weight.sum())


_CACHED_ENTRIES = 2**20  # of X, 8 MB: beyond it, runs of neighbours are drawn, which memory serves faster
_RUN = 16  # rows


class Stepper:
    """The state of one score's walk: its weights, and what averaging or a penalty keeps beside them."""

    def __init__(self, model: Any, rows: tuple[Any, ...], label: Array, step: Array, w: Array) -> None:
        self.model = model
        self.label = label
        self.step = step
        self.w = w
        # the mean of all w is w − total/done
        self.total = np.zeros_like(w)
        self.done = np.zeros(1)
        self.state = np.array([1.0, 0.0])
        self.shrunk = np.zeros(len(w) - 1)
        self.rows = rows
        if model.penalty is not None and len(rows) == 1:
            X = sp.csr_array(rows[0].astype(np.float64))
            self.rows = (X.data, unsigned(X.indices), unsigned(X.indptr))

    def make_pass(self, order: NDArray[np.int64]) -> tuple[int, float]:
        """Visit rows; return the mistakes and the loss."""
        model = self.model
        if model.penalty is None:
            one_pass: Callable[..., tuple[int, float]] = perceptron_dense if len(self.rows) == 1 else perceptron_sparse
            kept = (self.w, self.total, self.done)
            return one_pass(*self.rows, order, self.label, self.step, model.fit_intercept, model.average, *kept)
        l1_share = {"l1": 1.0, "l2": 0.0}.get(model.penalty, float(model.l1_ratio))
        strength = float(model.eta0 * model.alpha)
        form = (bool(model.fit_intercept), strength * l1_share, strength * (1.0 - l1_share))
        penalised: Callable[..., tuple[int, float]] = penalised_pass
        return penalised(*self.rows, order, self.label, self.step, form, self.w, self.state, self.shrunk)

    def weights(self, *, average: bool) -> Array:
        """Return (b, w)."""
        if average:
            return np.asarray(self.w - self.total / max(1.0, self.done[0]))
        return np.r_[self.w[0], self.state[0] * self.w[1:]]


class Batch(NamedTuple):
    """The rows of a partial fit."""

    X: Any
    y: NDArray[np.int64]
    weight: Array | None
    classes: NDArray[Any]
    class_weight: None = None  #: totals of rows beyond memory, which there are none of

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return int(self.X.shape[0])

    @property
    def n_columns(self) -> int:
        """How many columns a row has."""
        return int(self.X.shape[1])


def classes_of(known: Any, given: Any) -> NDArray[Any]:
    """Return the labels of all partial fits, sorted."""
    if known is None and given is None:
        raise ParameterError("Perceptron: classes must be passed on the first call to partial_fit.")
    if given is None:
        return np.asarray(known)
    classes = np.unique(np.asarray(given))
    if known is not None and not np.array_equal(classes, known):
        raise ParameterError(
            f"Perceptron: classes={given!r} is not the same as on the last call to partial_fit, which had {known!r}."
        )
    if len(classes) < 2:
        raise DataError("Perceptron: the number of classes has to be greater than one; got 1 class.")
    return classes


def read_batch(draft: Any, X: Any, y: Any, sample_weight: Any, *, first: bool) -> Batch:
    """Return some rows whose labels are numbered as in `draft.classes_`."""
    if isinstance(draft.class_weight, str):
        raise ParameterError(
            "Perceptron: class_weight='balanced' is not supported for partial_fit, which does not see all rows; pass "
            "the weights as a dict."
        )
    X = read_features(draft, X, reset=first)
    labels = np.asarray(y).ravel()
    if len(labels) != X.shape[0]:
        raise DataError(
            f"Perceptron: X and y have inconsistent numbers of samples: X has {X.shape[0]} rows, y has {len(labels)}."
        )
    codes = np.searchsorted(draft.classes_, labels)
    unknown = draft.classes_[np.minimum(codes, len(draft.classes_) - 1)] != labels
    if unknown.any():
        raise DataError(f"Perceptron: y has the label {labels[unknown][0]!r}, which is none of `classes`.")
    return Batch(X, codes, read_weight("Perceptron", sample_weight, X.shape[0]), draft.classes_)


def random_order(rng: np.random.Generator, n: int, width: int) -> NDArray[np.int64]:
    """Return the rows in random order; of a table beyond the cache, runs of neighbours, which memory serves faster."""
    if n * width <= _CACHED_ENTRIES:
        return rng.permutation(n)
    runs = rng.permutation(-(-n // _RUN))[:, None] * _RUN + np.arange(_RUN)
    return runs[runs < n]


def rows_of(X: Any) -> tuple[Any, ...]:
    """Return the arrays of the rows as the compiled passes take them."""
    if hasattr(X, "indptr"):
        return X.data.astype(np.float64, copy=False), unsigned(X.indices), unsigned(X.indptr)
    return (np.ascontiguousarray(X),)
