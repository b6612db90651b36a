r"""Support vector classifiers of several classes: one machine for each pair, as in LIBSVM.

Support vectors stand by class; row r of `dual_coef_` holds, of a support vector of class c, its β in the pair with the
r-th of the other classes. A pair (i, j), i < j, has a positive score for class i. With two classes, `dual_coef_` and
`intercept_` are shown for the second class being positive, as scikit-learn does.

Reference: C.-C. Chang and C.-J. Lin, LIBSVM, §2 and §7.

Support vector classification.

    min_{f, b}  ½‖f‖² + Σᵢ cᵢ max(0, 1 − yᵢ(f(xᵢ) + b)),     cᵢ = C × sample weight × class weight

over functions f of the kernel's space, for two classes y = ±1; for more, one machine for each pair. In the form n⁻¹ΣV +
λΩ with Ω = ½‖f‖², λ = 1/(nC). The dual, in signed multipliers β = yα,

    max_β  Σ yᵢβᵢ − ½ βᵀKβ,     0 ≤ yᵢβᵢ ≤ cᵢ,   Σβᵢ = 0,

has no bound cᵢ with C = ∞ (hard margin) and no equality without an offset. f = Σ βᵢ k(·, xᵢ); rows with β = 0 stand
outside the margin, those with 0 < |β| < c on it, those with |β| = c inside.

Reference: C. Cortes and V. Vapnik, Support-vector networks, Machine Learning 20, 1995.

Support vector classification whose margin is as wide as a share ν of the rows allows.

    min_{f, b, ρ}  ½‖f‖² − ν Σcᵢ ρ + Σᵢ cᵢ max(0, ρ − yᵢ(f(xᵢ) + b)),     cᵢ = sample weight × class weight

At most a share ν of the rows lies inside the margin, and at least that share on it or inside. In the dual, Σβ over each
class is ±ν Σcᵢ/2. The machine shown is divided by ρ, so that its margin is at ±1: it is the `SVC` of C = 1/ρ.

Reference: B. Schölkopf et al., New support vector algorithms, Neural Computation 12, 2000.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from itertools import combinations
from numbers import Real
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from ...core import (
    RANDOM_STATE,
    Boolean,
    Certificate,
    DataError,
    Number,
    Options,
    ParameterError,
    Run,
    fitted,
    hook,
    law,
    laws,
    param,
)
from ...data.door import Table, class_weights
from ...data.sources import NamedScore, rowwise
from ...linear.base import CLASS_WEIGHT
from ...risk.kernels import Kernel, Precomputed
from ...solvers.conic.smo import BoxProgram, Team
from .base import (
    COST,
    Array,
    Fit,
    Rows,
    SupportVectorMachine,
    dual_bounds,
    fill_up,
    offset_between,
    put_on_bounds,
    small_matrix,
    solve_program,
    svm_door,
)
from .platt import couple, fit_sigmoid, fold_fits, pair_probabilities

#: (kernel, rows of the pair, y = ±1, costs, team) -> the machine of a pair; y is +1 for the pair's first class.
PairSolver = Callable[[Kernel, Any, Array, Array, Team], Fit]


def _gives_probabilities(model: Any) -> bool:
    """Tell whether the model gives probabilities, as its parameters stand."""
    if isinstance(model.probability, str) or not model.probability:
        raise AttributeError("predict_proba is not available when probability=False")
    return True


class PairwiseSVM(NamedScore, ClassifierMixin, SupportVectorMachine):
    """Base of SVC and NuSVC."""

    probability: Any = param(
        Boolean() | Options("deprecated"),
        "Whether to give probabilities, by sigmoids of scores from five folds (`kernel.platt`): it takes some "
        "five times as long. scikit-learn gives it up for `CalibratedClassifierCV`, and both warn.",
        default="deprecated",
    )
    class_weight: Any = param(
        CLASS_WEIGHT, "Factors of the costs of the classes' rows; 0 gives the rows of a class no say.", default=None
    )
    decision_function_shape: str = param(
        Options("ovr", "ovo"), "Of more than two classes: one score per class, or one per pair.", default="ovr"
    )
    break_ties: bool = param(
        Boolean(), 'Whether `predict` follows the scores of "ovr" instead of the votes.', default=False
    )
    random_state: Any = param(
        RANDOM_STATE, "Kept for compatibility: nothing is random, not even the folds of `probability`.", default=None
    )

    _door: ClassVar[Any] = staticmethod(svm_door("classes"))

    classes_: NDArray[Any] = fitted("(n_classes,)", "The labels.", kind="biufOUST")
    support_: NDArray[np.int32] = fitted("(n_SV,)", "Rows of the support vectors, by class.", kind="i4", low=0)
    dual_coef_: Any = fitted(
        "(n_scores, n_SV)",
        "β in LIBSVM's order, one row less than there are classes; positive for the second of two classes. Sparse "
        "after a fit to sparse rows, as is `coef_`.",
        kind="f8",
    )
    intercept_: Array = fitted("(n_machines,)", "b of each pair.", kind="f8")
    sigmoids_: Array = fitted(
        "(n_machines, 2) or (0, 2)",
        "A and B of each pair's probability 1/(1 + exp(As + B)); `probA_` and `probB_` are its columns. Without rows "
        "if there are no probabilities.",
        kind="f8",
    )
    class_weight_: Array = fitted("array of shape (n_classes,)", "Factor of each class.")

    # -- fitting ------------------------------------------------------------------------------------------------------

    def _fit_pairs(self, table: Table, run: Run, cost: Array) -> tuple[list[Fit], list[Rows]]:
        """Solve all pairs, several at a time on one thread each, or one on all threads; store the machine."""
        self._warn_of_probability()
        X = self._points(table)
        self.classes_ = np.asarray(table.classes)
        mercer = self._mercer()._is_mercer()
        y = table.y
        kernel, X = small_matrix(self._mercer(), X)
        pairs = list(combinations(range(len(self.classes_)), 2))
        members = [np.flatnonzero((y == i) | (y == j)) for i, j in pairs]
        found: list[Any] = [None] * len(pairs)
        wanted = not isinstance(self.probability, str) and bool(self.probability)
        sigmoids = np.empty((len(pairs) if wanted else 0, 2))
        solver = self._pair_solver(run)

        def solve(number: int, team: Team) -> None:
            rows = members[number]
            i, _ = pairs[number]
            part = rows_of(X, rows, kernel)
            sign = np.where(y[rows] == i, 1.0, -1.0)
            try:
                fit = solver(kernel, part, sign, cost[rows], team)
                if wanted:
                    folds, scores = fold_fits(solver, kernel, part, sign, cost[rows], team)
                    sigmoids[number] = fit_sigmoid(scores, sign)
                    worst = max(fold.fit.violation if fold.fit else 0.0 for fold in folds)
                    fit = fit._replace(violation=max(fit.violation, worst))
                found[number] = fit if mercer or dual_bounds(kernel, part) else fit._replace(dual=-np.inf)
            except BaseException:
                run.flag.raise_()  # pairs on other threads end, too
                raise

        with Team(self.n_jobs) as team:
            if len(pairs) == 1:
                solve(0, team)
            else:
                alone = Team(1)
                order = sorted(range(len(pairs)), key=lambda k: -len(members[k]))  # the largest first
                team.run(lambda k: solve(order[k], alone), len(pairs))
        self._store_pairs(table, y, pairs, members, found)
        self.sigmoids_ = sigmoids
        return found, members

    _pair_solver = hook("(run) → PairSolver: Return the solver for a pair of classes.")

    def _folds_again(self, data: tuple[Any, Any, Any], pairs: list[tuple[Rows, Array, Array]]) -> Iterator[list[Any]]:
        """Yield the machines of the folds of each pair (rows, ±1, costs) as the fit made them; they are not stored."""
        draft = self._draft()
        points = draft._points(type(self)._door(draft, *data, Run()))  # which sets γ
        kernel, X = small_matrix(draft._mercer(), points)
        solver = draft._pair_solver(Run())
        with Team(self.n_jobs) as team:
            for members, sign, cost in pairs:
                yield fold_fits(solver, kernel, rows_of(X, members, kernel), sign, cost, team)[0]

    def _warn_of_probability(self) -> None:
        """Warn as scikit-learn does where the parameter is given."""
        if isinstance(self.probability, str):
            return
        owner = type(self).__name__
        warnings.warn(
            "The `probability` parameter was deprecated in 1.9 and will be removed in version 1.11. Use "
            f"`CalibratedClassifierCV({owner}(), ensemble=False)` instead of `{owner}(probability=True)`",
            FutureWarning,
            stacklevel=5,
        )

    def _store_pairs(self, table: Table, y: Rows, pairs: Any, members: Any, found: list[Fit]) -> None:
        """Set support vectors, coefficients and intercepts in LIBSVM's order."""
        n_classes = len(self.classes_)
        n = table.n_rows
        coef = np.zeros((n_classes - 1, n))
        for (i, j), rows, fit in zip(pairs, members, found, strict=True):
            first = y[rows] == i
            coef[j - 1, rows[first]] = fit.beta[first]
            coef[i, rows[~first]] = fit.beta[~first]
        used = np.flatnonzero(coef.any(axis=0))
        used = used[np.argsort(y[used], kind="stable")]
        sign = -1.0 if n_classes == 2 else 1.0
        self._keep_support(table, used)
        self._keep_coefficients(table, sign * coef[:, used] + 0.0)
        self.n_support_ = np.bincount(y[used], minlength=n_classes).astype(np.int32)
        self.intercept_ = sign * np.array([fit.b for fit in found]) + 0.0
        self.n_iter_ = np.array([fit.n_steps for fit in found], dtype=np.int32)
        self.fit_status_ = int(any(fit.violation > self.tol for fit in found))
        self.class_weight_ = class_factors(table, self.class_weight, type(self).__name__)

    def _certify(self, found: list[Fit], start_value: float) -> Certificate:
        """Return the certificate: the worst pair's violation, and the gap of the sum of all pairs' objectives."""
        primal = sum(fit.primal for fit in found)
        dual = sum(fit.dual for fit in found)
        size = max(abs(dual), 1e-8 * start_value)
        proven = np.isfinite(primal) and np.isfinite(dual) and size > 0
        bound = max(primal - dual, 0.0) / size if proven else None
        worst = max(fit.violation for fit in found)
        return Certificate("stationarity", worst, self.tol, bound, int(self.n_iter_.sum()))

    def kkt_report(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Return how every training row stands to the margin, and the residual of every optimality condition."""
        from .report import kkt_report

        return kkt_report(self, X, y, sample_weight)

    # -- predicting ---------------------------------------------------------------------------------------------------

    @rowwise
    def decision_function(self, X: Any) -> Array:
        """Return the scores: (n,) for two classes; else (n, n_classes), or (n, n_pairs) for the shape "ovo"."""
        scores = self._pair_scores(self._read(X))
        if len(self.classes_) == 2:
            return scores[:, 0]
        return scores if self.decision_function_shape == "ovo" else _votes(scores, len(self.classes_))

    @rowwise
    def predict(self, X: Any) -> NDArray[Any]:
        """Return the label of each row: the class that wins most pairs; with `break_ties`, of the largest score."""
        n_classes = len(getattr(self, "classes_", ()))
        if self.break_ties and self.decision_function_shape == "ovo":
            raise ParameterError(
                f"{type(self).__name__}: break_ties must be False when decision_function_shape is 'ovo'; got True."
            )
        scores = self._pair_scores(self._read(X))
        if n_classes == 2:
            return self.classes_[(scores[:, 0] > 0).astype(np.int64)]
        if self.break_ties:
            return self.classes_[_votes(scores, n_classes).argmax(axis=1)]
        wins = np.zeros((len(scores), n_classes), dtype=np.int64)
        for k, (i, j) in enumerate(combinations(range(n_classes), 2)):
            wins[:, i] += scores[:, k] > 0
            wins[:, j] += scores[:, k] <= 0
        return self.classes_[wins.argmax(axis=1)]

    def _pair_scores(self, X: Any) -> Array:
        """Return the scores of all pairs."""
        n_classes = len(self.classes_)
        if n_classes == 2:
            return self._kernel_sums(X)[0] + self.intercept_
        # A column for each pair would be mostly zeros: sums over each class, with a column for each other class.
        sums = self._kernel_sums(X, self.n_support_)
        pairs = combinations(range(n_classes), 2)
        return np.stack([sums[i][:, j - 1] + sums[j][:, i] for i, j in pairs], axis=1) + self.intercept_

    @available_if(_gives_probabilities)  # type: ignore[untyped-decorator]
    @rowwise
    def predict_proba(self, X: Any) -> Array:
        """Return the probabilities of the classes, (n, n_classes): sigmoids of the scores of all pairs, coupled."""
        check_is_fitted(self)
        if not len(self.sigmoids_):
            raise NotFittedError("predict_proba is not available when fitted with probability=False")
        scores = self._pair_scores(self._read(X))
        scores = -scores if len(self.classes_) == 2 else scores  # the first class of a pair is positive
        return couple(pair_probabilities(scores, self.sigmoids_[:, 0], self.sigmoids_[:, 1]), len(self.classes_))

    @available_if(_gives_probabilities)  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: Any) -> Array:
        """Return the logarithms of the probabilities."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    @property
    def probA_(self) -> Array:  # noqa: N802
        """A of each pair's sigmoid 1/(1 + exp(As + B)); empty without `probability`."""
        return self._sigmoid_column("probA_", 0)

    @property
    def probB_(self) -> Array:  # noqa: N802
        """B of each pair's sigmoid."""
        return self._sigmoid_column("probB_", 1)

    def _sigmoid_column(self, name: str, column: int) -> Array:
        warnings.warn(
            f"Attribute `{name}` was deprecated in version 1.9 and will be removed in 1.11.",
            FutureWarning,
            stacklevel=3,
        )
        check_is_fitted(self)
        return self.sigmoids_[:, column]

    def _coefficients(self) -> Array:
        dual = self._dual()
        if len(self.classes_) == 2:
            return np.asarray(dual[0])
        ends = np.concatenate([[0], np.cumsum(self.n_support_)])
        columns = []
        for i, j in combinations(range(len(self.classes_)), 2):
            c = np.zeros(ends[-1])
            c[ends[i] : ends[i + 1]] = dual[j - 1, ends[i] : ends[i + 1]]
            c[ends[j] : ends[j + 1]] = dual[i, ends[j] : ends[j + 1]]
            columns.append(c)
        return np.stack(columns, axis=1)

    _laws = laws(
        law(
            "dual_coef_ or intercept_ does not fit classes_",
            lambda model: (
                model.dual_coef_.shape[0] == len(model.classes_) - 1 >= 1
                and model.intercept_.shape == (len(model.classes_) * (len(model.classes_) - 1) // 2,)
            ),
            "certificate_",
        ),
        law(
            "sigmoids_ does not fit classes_",
            lambda model: len(model.sigmoids_) in (0, len(model.intercept_)),
            "certificate_",
        ),
        law(
            "n_support_ must count the columns of dual_coef_ that belong to each class",
            lambda model: (
                len(model.n_support_) == len(model.classes_)
                and int(model.n_support_.sum()) == model.dual_coef_.shape[1]
            ),
            "certificate_",
        ),
    )


def class_factors(table: Table, class_weight: Any, owner: str) -> Array:
    """Return the factor of each class; zero gives a class's rows no say."""
    classes = np.asarray(table.classes).tolist()
    none = np.zeros(len(classes), dtype=bool)
    if isinstance(class_weight, dict):
        none = np.array([_is_zero(class_weight.get(label, 1.0)) for label in classes])
        class_weight = {label: 1.0 if _is_zero(value) else value for label, value in class_weight.items()}
    found = class_weights(table, class_weight, owner)
    return np.where(none, 0.0, 1.0 if found is None else found)


def _is_zero(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and float(value) == 0.0


def rows_of(X: Any, rows: Rows, kernel: Kernel) -> Any:
    """Return some rows; of a given matrix, their columns too."""
    if len(rows) == X.shape[0]:
        return X
    if isinstance(kernel, Precomputed):
        return X[np.ix_(rows, rows)]
    return X[rows] if sp.issparse(X) else np.ascontiguousarray(X[rows])


def _votes(scores: Array, n_classes: int) -> Array:
    """Return one number per class: the pairs it wins, and less than half a vote for the confidence in them."""
    votes = np.zeros((len(scores), n_classes))
    total = np.zeros((len(scores), n_classes))
    for k, (i, j) in enumerate(combinations(range(n_classes), 2)):
        votes[:, i] += scores[:, k] >= 0
        votes[:, j] += scores[:, k] < 0
        total[:, i] += scores[:, k]
        total[:, j] -= scores[:, k]
    return votes + total / (3.0 * (np.abs(total) + 1.0))


class SVC(PairwiseSVM):
    r"""Support vector classifier: minimise ½‖f‖² + C Σᵢ sᵢ max(0, 1 − yᵢ(f(xᵢ) + b)).

    Each pair of classes has its own machine. In the form n⁻¹ΣV + λΩ with Ω = ½‖f‖², λ = 1/(nC). Memory: four copies
    of X at most, `cache_size` megabytes of kernel rows for each pair in work (at least 1,024 rows), 32 MB per thread
    for working sets and exact sums, O(n). Time: O(nd) for each kernel row that is used, of one row at least
    for each support vector; between O(n²d) and O(n³d), the more the larger C and the noisier the labels.

    Examples
    --------
    >>> from learnable import SVC
    >>> X, y = [[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]], ["same", "same", "other", "other"]
    >>> model = SVC(C=100.0).fit(X, y)
    >>> model.predict([[0.1, 0.1], [0.9, 0.1]])
    array(['same', 'other'], dtype='<U5')
    >>> model.certificate_.kind, model.certificate_.holds
    ('stationarity', True)
    """

    _theory = "svm"

    C: float = param(
        COST,
        "Cost of a row inside the margin; `np.inf` asks for a hard margin, and fails where there is none.",
        default=1.0,
    )
    fit_intercept: bool = param(Boolean(), "Whether there is an offset b.", default=True)
    solver: str = param(
        Options("auto", "decomposition", "primal"),
        '"primal" minimises a smoothed primal by Newton\'s method on representer coefficients; it holds the '
        "kernel matrix, 8n² bytes, of at most 20,000 rows of a pair, and needs a finite C.",
        default="auto",
    )

    def _fit(self, table: Table, run: Run) -> Certificate:
        cost = row_costs(self, table)
        found, members = self._fit_pairs(table, run, cost)
        finite = np.where(np.isfinite(cost), cost, 1.0)
        return self._certify(found, float(sum(finite[rows].sum() for rows in members)))

    def _pair_solver(self, run: Run) -> PairSolver:
        def solve(kernel: Kernel, X: Any, y: Array, c: Array, team: Team) -> Fit:
            if self.solver == "primal":
                from .primal import solve_primal

                return solve_primal(kernel, X, y, c, self, run)
            return solve_pair(
                kernel,
                X,
                y,
                c,
                team,
                fit_intercept=self.fit_intercept,
                tol=self.tol,
                megabytes=self.cache_size,
                max_steps=None if self.max_iter < 0 else self.max_iter,
                shrinking=self.shrinking,
                run=run,
            )

        return solve


def row_costs(model: Any, table: Table, C: float | None = None) -> Array:
    """Return cᵢ = C × sample weight × class weight; C is the model's own unless it is given."""
    owner = type(model).__name__
    C = model.C if C is None else C
    weight = np.ones(table.n_rows) if table.weight is None else table.weight
    share = weight * class_factors(table, model.class_weight, owner)[table.y]
    cost = np.where(share > 0, float(C) * share, 0.0)
    if np.isfinite(C) and not (np.isfinite(cost).all() and (cost[share > 0] > 0).all()):
        raise ParameterError(f"{owner}: C times the weights must be positive and finite; got C = {C!r}.")
    return np.asarray(cost)


def solve_pair(
    kernel: Kernel,
    X: Any,
    y: Array,
    cost: Array,
    team: Team,
    *,
    fit_intercept: bool = True,
    owner: str = "SVC",
    **settings: Any,
) -> Fit:
    """Return the machine of two classes y = ±1; settings are those of `solve_program`."""
    program = BoxProgram(-y, np.where(y > 0, 0.0, -cost), np.where(y > 0, cost, 0.0), constrained=fit_intercept)
    found = solve_program(kernel, X, program, team, **settings)
    if found.runs_away:
        raise DataError(
            f"{owner}: C=inf asks for a hard margin, but the classes are not separable by this kernel: their convex "
            "hulls touch. Use a finite C, or a kernel of smaller scale."
        )
    found = put_on_bounds(found, program)
    b = offset_between(found, program)
    f = found.f
    beta = found.beta
    margin = y * (f + b)
    square = float(beta @ f)
    dual = float(np.abs(beta).sum()) - 0.5 * square
    if np.isfinite(cost).all():
        primal = 0.5 * square + float((cost * np.maximum(0.0, 1.0 - margin)).sum())
    else:  # the function divided by its smallest margin keeps all rows outside
        least = float(margin.min())
        primal = 0.5 * square / least**2 if least > 0 else np.inf
    violation = max(found.rises[0], b) - min(found.falls[0], b)
    return Fit(beta, b, f, max(violation, 0.0), primal, dual, found.n_steps)


class NuSVC(PairwiseSVM):
    r"""ν-support vector classifier: minimise ½‖f‖² − νρ Σsᵢ + Σᵢ sᵢ max(0, ρ − yᵢ(f(xᵢ) + b)) over f, b and ρ.

    The machine is divided by ρ. Each pair of classes has its own. In the form n⁻¹ΣV + λΩ with Ω = ½‖f‖², λ = ρ/n for
    the divided machine. Memory and time: as `SVC`.

    Examples
    --------
    >>> from learnable import NuSVC
    >>> X, y = [[-1.0, -1.0], [-2.0, -1.0], [1.0, 1.0], [2.0, 1.0]], [1, 1, 2, 2]
    >>> NuSVC().fit(X, y).predict([[-0.8, -1.0]])
    array([1])
    """

    _theory = "svm"

    nu: float = param(
        Number(low=0.0, low_open=True, high=1.0),
        "ν: largest share of rows inside the margin, and smallest share of support vectors. Of two classes of "
        "unequal weight, ν/2 must not exceed the smaller one's share.",
        default=0.5,
    )

    def _fit(self, table: Table, run: Run) -> Certificate:
        cost = row_costs(self, table, 1.0)
        totals = np.sort(np.bincount(table.y, cost))
        if 0.5 * self.nu * (totals[0] + totals[-1]) > totals[0] * (1 + 1e-12):
            most = 2.0 * totals[0] / (totals[0] + totals[-1])
            raise DataError(
                f"NuSVC: specified nu is infeasible: with classes of so different weight it is at most {most:.4g}; "
                f"got {self.nu!r}."
            )
        found, _ = self._fit_pairs(table, run, cost)
        return self._certify(found, 0.0)

    def _pair_solver(self, run: Run) -> PairSolver:
        return lambda kernel, X, y, c, team: self._solve_pair(kernel, X, y, c, team, run)

    def _solve_pair(self, kernel: Kernel, X: Any, y: Array, c: Array, team: Team, run: Run) -> Fit:
        """Return the machine of two classes y = ±1, divided by ρ; P and D are those before the division."""
        first = y > 0
        # A fold may lack rows of a class: its ν is then the largest that these allow.
        total = min(0.5 * self.nu * float(c.sum()), float(c[first].sum()), float(c[~first].sum()))
        start = np.empty(len(y))
        start[first] = fill_up(c[first], total)
        start[~first] = -fill_up(c[~first], total)
        program = BoxProgram(np.zeros(len(y)), np.where(first, 0.0, -c), np.where(first, c, 0.0), ~first)
        found = self._solve(kernel, X, program, run, team, start=start)
        lower = offset_between(found, program, 0)
        upper = offset_between(found, program, 1)
        b = 0.5 * (lower + upper)
        rho = 0.5 * (upper - lower)
        if not rho > 0.0 and found.violation > self.tol:
            rho = 1.0  # stopped early: there is no margin yet to divide by
        if not rho > 0.0:
            raise DataError(
                f"NuSVC: with nu={self.nu!r} the margin of this kernel is zero: the classes overlap in more rows. "
                "Use a larger nu; if none will do, the kernel does not tell the rows apart: scale the columns, or use "
                "a larger gamma."
            )
        square = float(found.beta @ found.f)
        slack = np.maximum(0.0, rho - y * (found.f + b))
        primal = 0.5 * square - 2.0 * total * rho + float((c * slack).sum())
        return Fit(found.beta / rho, b / rho, found.f / rho, found.violation, primal, -0.5 * square, found.n_steps)
