r"""Best subset selection: least squares on the best k columns, proven.

    min_{b, β}  Σᵢ wᵢ (yᵢ − b − xᵢᵀβ)² + α‖β‖²   subject to  ‖β‖₀ = k,

for one k, for every k of a range, or for the k that minimises n log(RSS/n) + c·k with c = 2 (AIC) or log n (BIC).
The rows are compressed to a triangle, and a tree of dropped columns is searched (`_kernels`): the residual sum of
squares of all columns that a branch may still use bounds what it can reach. The tree is the proof: its leaves partition
all subsets, and none of them can beat what was found. `verify` walks it again.

References: G. Furnival and R. Wilson, Regressions by leaps and bounds, Technometrics 16, 1974; C. Gatu and
E. Kontoghiorghes, Journal of Computational and Graphical Statistics 15, 2006; M. Hofmann, C. Gatu, E. Kontoghiorghes,
A. Colubi and A. Zeileis, lmSubsets, Journal of Statistical Software 93(3), 2020.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import solve_triangular
from sklearn.base import RegressorMixin

from ...core import (
    TOLERANCE,
    Array,
    Boolean,
    Certificate,
    Matches,
    NDArray,
    Nothing,
    Number,
    Options,
    ParameterError,
    Run,
    fitted,
    law,
    laws,
    param,
)
from ...data import Blocks, Part, Table, door
from ...data.sources import NamedScore
from ..base import LinearRegressorModel
from ..choosing import plain_splits
from ..least_squares.ridge_cv import row_order
from . import _kernels
from ._kernels import Search
from .compressed import FLOOR, Compressed, column_numbers, compressed

COLUMNS = Nothing() | Matches(
    lambda v: (
        not isinstance(v, (str, bytes))
        and hasattr(v, "__len__")
        and all(isinstance(i, (int, np.integer, str)) for i in v)
    ),
    "a list of column numbers or names",
)
GROUPS = Nothing() | Matches(
    lambda v: (
        isinstance(v, (list, tuple)) and all(isinstance(one, (list, tuple, np.ndarray)) and len(one) for one in v)
    ),
    "a list of lists of columns",
)
SIZES = (
    Nothing()
    | Number(low=0, integer=True)
    | Matches(
        lambda v: isinstance(v, (tuple, list)) and len(v) == 2 and all(isinstance(i, (int, np.integer)) for i in v),
        "a pair (smallest, largest) of integers",
    )
)
_PROOF = 2**25  # steps of two bytes: 64 MB
_ARENA = 2**25  # float64 of triangles on the way from the root to a node: 256 MB, of which small tables use little
_NEARLY_EXACT = 1e-6  # share of Σw(y−ȳ)² that dependent columns leave only by their shift, or by chance
_SLICE = 30_000_000  # operations between two looks at the clock: some hundredths of a second
# Putting a node's columns in order costs its free columns cubed, and pays where the subtree is large. From 4 to 14
# columns the time for all sizes of 30, 36 and 40 columns was the same within a tenth.
_ORDERED_FROM = 8
_ORDERED_TO = 160


def fit_by_relaxation(model: Any, table: Table, problem: Compressed, required: list[int], run: Run) -> Certificate:
    """Fit by the tree of relaxations; it stands in a module of its own."""
    from .grouped import fit_grouped

    return fit_grouped(model, table, problem, required, run)


class BestSubset(NamedScore, RegressorMixin, LinearRegressorModel):
    r"""Best subset: minimise Σᵢ wᵢ (yᵢ − b − xᵢᵀβ)² + α‖β‖² over β with k nonzero coefficients, exactly.

    In the form n⁻¹ΣV + λΩ (V squared loss, Ω = ‖β‖₀) a size k stands for a range of λ; AIC and BIC minimise
    n log(RSS/n) + c·k with c = 2 and log n, where n is the sum of the weights and RSS includes α‖β‖². The search takes
    time exponential in the number of columns at worst: every size of 40 columns took 0.6 s where half of them matter.
    A fit that leaves less than 1e-10 of Σ w (y − ȳ)² counts as exact. More columns than rows need α > 0 (or a small
    `size`) for useful bounds. Memory: O(p²) for compressed rows, at most 256 MB for the search and 64 MB for its proof,
    which the model keeps.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable import BestSubset
    >>> X = np.random.default_rng(0).normal(size=(50, 6))
    >>> model = BestSubset().fit(X, X[:, 1] - 2 * X[:, 4] + 0.1 * np.cos(np.arange(50)))
    >>> np.flatnonzero(model.support_).tolist(), model.certificate_.kind, model.certificate_.holds
    ([1, 4], 'gap', True)
    >>> BestSubset(size=(0, 6)).fit(X, X[:, 1] - 2 * X[:, 4]).sizes_.tolist()
    [0, 1, 2, 3, 4, 5, 6]
    """

    _theory = "best-subset"

    size: Any = param(
        SIZES,
        "k; or (smallest, largest) for the best of every size between; or None for the one size that `criterion` "
        "prefers, which is searched much faster than all.",
        default=None,
        kw_only=False,
    )
    criterion: str = param(
        Options("bic", "aic", "ebic", "cp", "cv"),
        'What chooses among several sizes: n log(RSS/n) + c·k, with c = log n + 2 log p for "ebic", which suits many '
        "columns; Mallows' RSS/σ̂² − n + 2k with σ̂² of all columns; or the squared error on folds.",
        default="bic",
    )
    alpha: float = param(Number(low=0.0), "α ≥ 0, a ridge penalty besides.", default=0.0)
    required: Any = param(COLUMNS, "Columns, by number or name, that every subset contains.", default=None)
    groups: Any = param(
        GROUPS,
        "Lists of columns, by number or name, that are in or out together, such as those of one category; columns in "
        "no list are groups of their own. `size` then counts groups.",
        default=None,
    )
    positive: bool = param(Boolean(), "Constrain β ≥ 0.", default=False)
    method: str = param(
        Options("exact", "splicing"),
        '"splicing" exchanges columns until no exchange helps: fast for thousands of columns, and no proof of the best '
        "subset.",
        default="exact",
    )
    cv: Any = param(
        Nothing() | Matches(lambda v: not isinstance(v, (str, float, bool)), "a number of folds or a splitter"),
        'Folds of "cv"; None is 5.',
        default=None,
    )
    tol: float = param(TOLERANCE, "Relative gap up to which a branch is not searched.", default=1e-9)
    coef_: Any = fitted("(n_features,)", "β of the chosen subset.")
    support_: Any = fitted("(n_features,)", "The chosen columns.", kind="b")
    sizes_: Any = fitted("(n_sizes,)", "The sizes that were solved; one if `size` is None.", kind="iu", low=0)
    subsets_: Any = fitted("(n_sizes, n_features)", "The best columns of each size.", kind="b")
    objective_path_: Any = fitted("(n_sizes,)", "Their Σ w r² + α‖β‖².", low=0.0)
    proof_: Any = fitted(
        "(n_steps,)",
        "The tree of the search, depth first: a column that is split (without it first), or −1 for a leaf that "
        "cannot beat what was found. Empty if it was too large to keep.",
        kind="iu",
        low=-1,
    )
    leaves_: Any = fitted(
        "(n_leaves, n_groups)",
        "Where the search used relaxations (groups, β ≥ 0, more columns than rows with α > 0): the share of each group "
        "from which the bound of a leaf follows. `proof_` then splits groups, with the group first.",
        optional=True,
        low=0.0,
        high=1.0,
    )
    cv_errors_: Any = fitted(
        "(n_cv_sizes, n_folds)", 'Mean squared errors on the folds, with "cv".', optional=True, low=0.0
    )
    row_order_: int = fitted("int", "Checksum of the targets in their order, by which `verify` finds the folds again.")
    certificate_: Certificate = fitted(
        "Certificate",
        '`greedy` of "splicing": no exchange lowers the objective. Otherwise `gap` to the best of each size, relative '
        "to it; of e^(criterion/n) where `size` is None.",
    )

    _door = staticmethod(door(target="numeric"))
    _iterates = True
    _remedy = (
        "raise max_seconds, ask for fewer sizes or for the criterion alone, or add alpha where columns outnumber rows"
    )

    def _fit(self, table: Table, run: Run) -> Certificate:
        owner = type(self).__name__
        required = column_numbers(owner, "required", self.required, self)
        problem = compressed(owner, table, intercept=self.fit_intercept, alpha=self.alpha, n_jobs=self.n_jobs)
        self.row_order_ = row_order(table) if table.in_memory else 0
        wide = table.n_columns > len(problem.rows) and self.alpha > 0
        if self.groups is not None or self.positive or self.method == "splicing" or wide:
            return fit_by_relaxation(self, table, problem, required, run)
        low, high = self._range(table.n_columns, len(required))
        if self.size is None and self.criterion == "cv":
            low = high = low + self._size_by_folds(table, required, low, high, run)
        penalty = cost_of(owner, self.criterion, problem)
        jointly = self.size is None and self.criterion in ("aic", "bic", "ebic")
        search = start_search(problem, required, low, high, penalty.factor if jointly else -1.0, self.tol)
        self._walk(search, problem, run)
        self._keep(search, problem, penalty, jointly)
        value = _gap(search, problem)
        if jointly and problem.dependent and self.objective_path_[0] <= _NEARLY_EXACT * problem.total:
            # Columns outnumber rows and fit them exactly: the criterion falls without end, and nothing can be proven.
            value = np.inf
        bound = value if np.isfinite(value) else None
        return Certificate("gap", value, self.tol, bound, max(1, int(search.state[_kernels.NODES])))

    def _walk(self, search: Search, problem: Compressed, run: Run) -> None:
        """Walk the tree to its end, or to that of the time."""
        while not _kernels.walk(search, _SLICE):
            if run.progress(int(search.state[_kernels.NODES]), _gap(search, problem)):
                _kernels.close_open_nodes(search)
                return

    def _size_by_folds(self, table: Table, required: list[int], low: int, high: int, run: Run) -> int:
        """Return how many columns beyond `low` have the least error on the folds, and store all errors."""
        owner = type(self).__name__

        def solve(problem: Compressed) -> Array:
            search = start_search(problem, required, low, high, -1.0, self.tol)
            self._walk(search, problem, run)
            return np.column_stack([problem.coefficients(search.sets[size, :size])[0] for size in range(low, high + 1)])

        self.cv_errors_ = fold_errors(owner, self, table, solve)
        return int(np.argmin(self.cv_errors_.mean(axis=1)))

    def _range(self, p: int, n_required: int) -> tuple[int, int]:
        """Return the smallest and the largest size."""
        wanted = (n_required, p) if self.size is None else self.size
        if isinstance(wanted, (int, np.integer)):
            wanted = (wanted, wanted)
        low, high = (int(end) for end in wanted)
        if not 0 <= low <= high <= p:
            raise ParameterError(
                f"{type(self).__name__}: size must lie between 0 and the number of columns, {p}; got {self.size!r}."
            )
        if high < n_required:
            raise ParameterError(
                f"{type(self).__name__}: size is at most {high}, but `required` holds {n_required} columns; raise size."
            )
        return max(low, n_required), high

    def _keep(self, search: Search, problem: Compressed, penalty: Cost, jointly: bool) -> None:
        """Store the subsets, and the coefficients of the one that the criterion prefers."""
        sizes = np.arange(search.low, search.high + 1)
        floor = max(FLOOR * problem.total, np.finfo(float).tiny)
        value = penalty.of(np.maximum(search.best[sizes], floor), sizes)
        chosen = int(np.argmin(value))
        if jointly:
            sizes = sizes[[chosen]]
            chosen = 0
        p = len(problem.scale)
        subsets = np.zeros((len(sizes), p), dtype=bool)
        objectives = np.empty(len(sizes))
        for row, size in enumerate(sizes.tolist()):
            columns = search.sets[size, :size]
            subsets[row, columns] = True
            coef, intercept = problem.coefficients(columns)
            objectives[row] = problem.objective(coef)
            if row == chosen:
                self._set_coefficients(coef[:, None], np.array([intercept]), ())
        self.sizes_ = sizes
        self.subsets_ = subsets
        self.objective_path_ = objectives
        self.support_ = subsets[chosen].copy()
        length = 0 if search.state[_kernels.LOST] else int(search.state[_kernels.LENGTH])
        self.proof_ = search.proof[:length].copy()

    _laws = laws(
        law(
            "proof_ names a column or group that the model does not have",
            lambda model: model.proof_.max(initial=-1) < model.n_features_in_,
            "proof_",
        ),
    )


class Cost(NamedTuple):
    """What a subset costs: n log RSS + factor·k, or with a known variance RSS/σ² + factor·k."""

    n: float
    factor: float
    variance: float | None = None

    def of(self, rss: Array, sizes: Any) -> Array:
        """Return the criterion of subsets."""
        fit = self.n * np.log(rss) if self.variance is None else rss / self.variance
        return np.asarray(fit + self.factor * np.asarray(sizes))


def cost_of(owner: str, criterion: str, problem: Compressed) -> Cost:
    """Return the cost that a criterion states; Mallows' needs the variance of least squares on all columns."""
    n = problem.weight
    p = len(problem.scale)
    if criterion == "ebic":
        return Cost(n, penalty_of("bic", n) + 2.0 * float(np.log(max(1, p))))
    if criterion != "cp":
        return Cost(n, penalty_of(criterion, n))
    freedom = n - p - 1
    if freedom <= 0:
        raise ParameterError(
            f"{owner}: criterion='cp' needs more rows than columns for the variance of the noise; there are {n:g} rows "
            f"and {p} columns. Use 'bic' or 'cv'."
        )
    coef, _ = problem.coefficients(np.arange(p))
    rss = float(((problem.target - problem.rows @ coef) ** 2).sum())
    return Cost(n, 2.0, max(rss / freedom, np.finfo(float).tiny))


def fold_errors(owner: str, model: Any, table: Table, solve: Callable[[Compressed], Array]) -> Array:
    """Return the mean squared error on every fold of the coefficients of each size, as `solve` gives them."""
    table.require_memory(f"{owner}: criterion='cv' needs the rows in memory; use 'bic' or read the table.")
    try:
        splits = plain_splits(model.cv, table)
    except (TypeError, ValueError) as error:
        raise ParameterError(f"{owner}: cv={model.cv!r} does not work here: {error}") from error
    errors = []
    for train, test in splits:
        weight = None if table.weight is None else table.weight[train]
        X = table.X[train]
        y = table.y[train]
        part = replace(table, blocks=Blocks([Part(X, y, weight)]), X=X, y=y, weight=weight, kept=None)
        problem = compressed(owner, part, intercept=model.fit_intercept, alpha=model.alpha, n_jobs=model.n_jobs)
        coefs = solve(problem)
        level = problem.y_mean - problem.x_mean @ coefs
        residual = table.y[test][:, None] - (table.X[test] @ coefs + level)
        errors.append(np.average(residual**2, axis=0, weights=None if table.weight is None else table.weight[test]))
    return np.column_stack(errors)


def penalty_of(criterion: str, weight: float) -> float:
    """Return what a column costs in units of twice the log-likelihood."""
    return 2.0 if criterion in ("aic", "cp") else max(0.0, float(np.log(weight)))


def start_search(problem: Compressed, required: list[int], low: int, high: int, penalty: float, tol: float) -> Search:
    """Return the search at its root, whose free columns are in order: those that are missed most come first."""
    A, y = problem.design()
    p = A.shape[1]
    free = np.setdiff1d(np.arange(p), required)
    k = len(required)
    m = len(free)
    R = triangle(A, y, np.r_[required, free].astype(np.int64))
    drops = _without_each(R[k:p, k:p], R[k:p, p])
    free = free[np.argsort(-drops, kind="stable")]
    R = triangle(A, y, np.r_[required, free].astype(np.int64))
    levels = m + 1
    size = min(_ARENA, sum((j + 1) * (j + 2) for j in range(m + 1)) + 1)
    size = max(size, m * (m + 1))
    limit = np.full(p + 2, np.inf)
    search = Search(
        arena=np.empty(size),
        frames=np.zeros((levels, 4), dtype=np.int64),
        rss=np.zeros(levels),
        names=np.zeros((levels, max(1, p)), dtype=np.int64),
        drops=np.zeros((levels, max(1, p))),
        fixed=np.zeros(max(1, p), dtype=np.int64),
        carry=np.zeros(p + 1),
        inverse=np.zeros((min(m, _ORDERED_TO), min(m, _ORDERED_TO))),
        best=np.full(p + 1, np.inf),
        sets=np.zeros((p + 1, max(1, p)), dtype=np.int64),
        limit=limit,
        lower=np.full(p + 1, np.inf),
        proof=np.empty(_PROOF, dtype=np.int16),
        state=np.zeros(5, dtype=np.int64),
        setting=np.array([problem.weight, penalty, max(FLOOR * problem.total, np.finfo(float).tiny), 1.0 + tol]),
        low=low,
        high=high,
        ordered_from=_ORDERED_FROM,
        ordered_to=_ORDERED_TO,
    )
    search.arena[: m * (m + 1)] = R[k:p, k:].ravel()
    search.frames[0] = (0, m, k, 0)
    search.rss[0] = R[p, p] ** 2
    search.names[0, :m] = free
    search.fixed[:k] = required
    search.drops[0, :m] = search.rss[0]
    _kernels.note(search, 0, 0, k, float(search.rss[0] + R[k:p, p] @ R[k:p, p]))
    _kernels.evaluate(search, 0)
    return search


def triangle(A: Array, y: Array, order: NDArray[np.int64]) -> Array:
    """Return R of [A in this order, y], with as many rows as columns."""
    R = np.asarray(np.linalg.qr(np.column_stack([A[:, order], y]), mode="r"))
    return np.pad(R, ((0, R.shape[1] - len(R)), (0, 0)))


def _without_each(R: Array, z: Array) -> Array:
    """Return how much the residual sum of squares grows without each column."""
    if not len(R):
        return np.zeros(0)
    inverse = solve_triangular(R, np.eye(len(R)), check_finite=False)
    return np.asarray((inverse @ z) ** 2 / (inverse**2).sum(axis=1))


def _gap(search: Search, problem: Compressed) -> float:
    """Return how far above the optimum the subsets found may be; while the search goes on, what its leaves leave."""
    sizes = np.arange(search.low, search.high + 1)
    found = search.best[sizes]
    bound = np.minimum(found, search.lower[sizes])
    if problem.total == 0:
        return 0.0
    n = search.setting[_kernels.N_OBS]
    penalty = search.setting[_kernels.PENALTY]
    if penalty < 0:
        return float(np.max((found - bound) / np.maximum(bound, 1e-8 * problem.total)))
    cost = n * np.log(found) + penalty * sizes
    least = n * np.log(bound) + penalty * sizes
    with np.errstate(over="ignore"):
        return float(np.expm1((cost.min() - least.min()) / n))
