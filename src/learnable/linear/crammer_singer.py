r"""The joint support vector machine of all classes, after Crammer and Singer: which method for which table.

    min_W  ½ Σₖ ‖wₖ‖² + C Σᵢ sᵢ max_k (1[k ≠ yᵢ] + wₖᵀxᵢ − w_{yᵢ}ᵀxᵢ)

with x = (intercept_scaling, x), so that intercepts are penalised too. In the form n⁻¹ΣV + λΩ with Ω = ½‖W‖², λ =
1/(nC).

- Two classes: Σₖ wₖ = 0, so that v = w₁ − w₀ is all, and half of ½‖v‖² + 2C Σ s max(0, 1 ∓ vᵀx) is the objective: the
  hinge problem of one score.
- Few columns and classes: the interior-point method, in whatever units. Fewer rows than columns: the same in the space
  of the rows.
- Else, and where rounding stops that: coordinate descent on the dual, with conjugate gradients on the faces.

References: K. Crammer and Y. Singer, JMLR 2, 2001; S. Keerthi et al., A sequential dual method for large scale
multi-class linear SVMs, KDD 2008.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..core.run import Progress
from ..core.threads import interruptible
from ..data.blocks import Blocks, Part
from .joint_descent import joint_descent
from .joint_interior_point import joint_interior_point
from .joint_margin import JointTask, joint_task
from .margin import DualPair, better
from .svm_solvers import MarginFit, Settings, fit_margin

Array = NDArray[np.float64]

_MOST_INTERIOR = 1500  # unknowns, K(1 + d), for which the interior-point method forms its matrix
_MOST_STEPS = 200  # of it
_MOST_ENTRIES = 4e7  # of X that is decomposed into an orthonormal basis and coordinates


def fit_crammer_singer(blocks: Blocks, n_classes: int, settings: Settings, progress: Progress) -> list[MarginFit]:
    """Return one fit a class, all with the gap of the joint problem; for two classes the one difference w₁ − w₀."""
    if n_classes == 2:
        fit = fit_margin(blocks, settings._replace(C=2.0 * settings.C, squared=False), progress)
        return [fit._replace(dual=None if fit.dual is None else 0.5 * fit.dual)]
    task = joint_task(blocks, n_classes, settings.C, settings.bias, settings.n_jobs)
    found: DualPair | None = None
    limits = {"tol": settings.tol, "max_iter": min(settings.max_iter, _MOST_STEPS), "progress": progress}
    if settings.solver != "dual":
        if n_classes * task.width <= _MOST_INTERIOR or settings.solver == "interior-point":
            found = joint_interior_point(task, **limits)  # type: ignore[arg-type]
        elif _prefers_row_space(task):
            found = _solve_in_row_space(task, limits)
    spent = 0 if found is None else found.n_iter
    left = settings.max_iter - spent
    wanted = found is None or (found.gap > settings.tol and not progress(spent, found.gap))
    if left > 0 and wanted and settings.solver != "interior-point":
        again = joint_descent(
            task,
            settings.rng,
            start=None if found is None else found.alpha,
            tol=settings.tol,
            max_iter=left,
            progress=lambda iteration, gap: progress(spent + iteration, gap),
        )
        again = again._replace(n_iter=spent + again.n_iter)
        found = again if found is None else better(found, again, task.start_value)
    assert found is not None
    return [
        MarginFit(found.w[:, k].copy(), found.gap, found.n_iter, found.alpha[:, k].copy()) for k in range(n_classes)
    ]


def _prefers_row_space(task: JointTask) -> bool:
    n, p = task.blocks.n_rows, task.width
    return not task.blocks.sparse and n < p and task.n_classes * (n + 1) <= _MOST_INTERIOR and n * p <= _MOST_ENTRIES


def _solve_in_row_space(task: JointTask, limits: dict[str, object]) -> DualPair:
    """Solve for V in W = QV, where the rows (bias, X) = RᵀQᵀ and Q has orthonormal columns."""
    X = task.blocks.joined().X
    rows = np.column_stack([np.full(len(X), task.bias), X]).astype(np.float64)
    Q, R = interruptible(np.linalg.qr, rows.T)
    inner = JointTask(Blocks([Part(np.ascontiguousarray(R.T))]), task.y, task.n_classes, task.cost, 0.0, task.n_jobs)
    found = joint_interior_point(inner, **{**limits, "tol": limits["tol"] / 4})  # type: ignore[arg-type,operator]
    return task.pair(found.alpha, Q @ found.w[1:], found.n_iter)
