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

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from sklearn.base import RegressorMixin

from ...core.declare import TOLERANCE, Matches, Nothing, Number, Options, fitted, param
from ...core.errors import ModelFileError, ParameterError
from ...core.estimator import Certificate, Run
from ...data.door import Table, door
from ...data.sources import NamedScore
from ..base import LinearRegressorModel
from . import _kernels
from ._kernels import Search
from .compressed import FLOOR, Compressed, column_numbers, compressed

Array = NDArray[np.float64]

COLUMNS = Nothing() | Matches(
    lambda v: (
        not isinstance(v, (str, bytes))
        and hasattr(v, "__len__")
        and all(isinstance(i, (int, np.integer, str)) for i in v)
    ),
    "a list of column numbers or names",
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
    criterion: str = param(Options("bic", "aic"), "What chooses among several sizes.", default="bic")
    alpha: float = param(Number(low=0.0), "α ≥ 0, a ridge penalty besides.", default=0.0)
    required: Any = param(COLUMNS, "Columns, by number or name, that every subset contains.", default=None)
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
    certificate_: Certificate = fitted(
        "Certificate",
        "`gap` to the best of each size, relative to it; of e^(criterion/n) where `size` is None.",
    )

    _door = staticmethod(door(target="numeric"))
    _iterates = True
    _remedy = (
        "raise max_seconds, ask for fewer sizes or for the criterion alone, or add alpha where columns outnumber rows"
    )

    def _fit(self, table: Table, run: Run) -> Certificate:
        owner = type(self).__name__
        required = column_numbers(owner, "required", self.required, self)
        low, high = self._range(table.n_columns, len(required))
        problem = compressed(owner, table, intercept=self.fit_intercept, alpha=self.alpha, n_jobs=self.n_jobs)
        penalty = penalty_of(self.criterion, problem.weight)
        search = start_search(problem, required, low, high, penalty if self.size is None else -1.0, self.tol)
        done = 0
        while not done:
            done = _kernels.walk(search, _SLICE)
            if not done and run.progress(int(search.state[_kernels.NODES]), _gap(search, problem)):
                _kernels.close_open_nodes(search)
                done = 1
        self._keep(search, problem, penalty)
        value = _gap(search, problem)
        if self.size is None and problem.dependent and self.objective_path_[0] <= _NEARLY_EXACT * problem.total:
            # Columns outnumber rows and fit them exactly: the criterion falls without end, and nothing can be proven.
            value = np.inf
        bound = value if np.isfinite(value) else None
        return Certificate("gap", value, self.tol, bound, max(1, int(search.state[_kernels.NODES])))

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

    def _keep(self, search: Search, problem: Compressed, penalty: float) -> None:
        """Store the subsets, and the coefficients of the one that the criterion prefers."""
        sizes = np.arange(search.low, search.high + 1)
        floor = max(FLOOR * problem.total, np.finfo(float).tiny)
        value = problem.weight * np.log(np.maximum(search.best[sizes], floor)) + penalty * sizes
        chosen = int(np.argmin(value))
        if self.size is None:
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

    def _check_loaded(self) -> None:
        super()._check_loaded()
        if hasattr(self, "proof_") and self.proof_.max(initial=-1) >= self.n_features_in_:
            raise ModelFileError("load: proof_ names a column that the model does not have.")


def penalty_of(criterion: str, weight: float) -> float:
    """Return what a column costs in units of twice the log-likelihood."""
    return 2.0 if criterion == "aic" else max(0.0, float(np.log(weight)))


def start_search(problem: Compressed, required: list[int], low: int, high: int, penalty: float, tol: float) -> Search:
    """Return the search at its root, whose free columns are in order: those that are missed most come first."""
    A, y = problem.design()
    p = A.shape[1]
    free = np.setdiff1d(np.arange(p), required)
    k, m = len(required), len(free)
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
    n, penalty = search.setting[_kernels.N_OBS], search.setting[_kernels.PENALTY]
    if penalty < 0:
        return float(np.max((found - bound) / np.maximum(bound, 1e-8 * problem.total)))
    cost = n * np.log(found) + penalty * sizes
    least = n * np.log(bound) + penalty * sizes
    with np.errstate(over="ignore"):
        return float(np.expm1((cost.min() - least.min()) / n))
