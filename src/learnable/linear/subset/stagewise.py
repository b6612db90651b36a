r"""Incremental forward stagewise regression: many small moves, each of the column that has most to say.

    j ← argmax_j |x̃ⱼᵀr|,      β̃ⱼ ← β̃ⱼ + δ sign(x̃ⱼᵀr),      δ = ε‖y − ȳ‖,

with unit-norm columns x̃ and residual r, until no move lowers ‖r‖². As ε → 0 the path is the monotone lasso's; it is the
lasso's and that of least angle regression where their coefficients never turn back.

References: B. Efron, T. Hastie, I. Johnstone and R. Tibshirani, Annals of Statistics 32, 2004; T. Hastie, J. Taylor,
R. Tibshirani and G. Walther, Forward stagewise regression and the monotone lasso, Electronic Journal of Statistics 1,
2007.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import RegressorMixin

from ...core import MAX_ITER, Array, Certificate, Number, Run, fitted, law, laws, param
from ...data.door import Table, door
from ...data.sources import NamedScore
from ..base import LinearRegressorModel
from . import _kernels
from .compressed import compressed

#: Share of the greatest correlation by which a move's may fall short: the last digits decide between equal columns.
TOLERANCE = 1e-8
_SLICE = 20_000  # moves between two looks at the clock: a hundredth of a second for a few hundred columns


class ForwardStagewise(NamedScore, RegressorMixin, LinearRegressorModel):
    r"""Forward stagewise: small moves of the coefficient whose column correlates most with the residual.

    A greedy descent of Σᵢ wᵢ (yᵢ − b − xᵢᵀβ)² that may be stopped early, which shrinks as the lasso does: in the form
    n⁻¹ΣV + λΩ, Ω = ‖β‖₁ in scaled columns. It ends where no move helps, so that every correlation is at most ε/2, or
    after `n_steps`. O(p) per move after one Gram matrix of the compressed rows; memory O(p²) and four bytes per move.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable import ForwardStagewise
    >>> X = np.random.default_rng(0).normal(size=(50, 5))
    >>> model = ForwardStagewise(n_steps=90).fit(X, X[:, 3] + 2 * X[:, 1] + 0.1 * np.cos(np.arange(50)))
    >>> np.flatnonzero(model.coef_).tolist(), model.certificate_.kind
    ([1, 3], 'greedy')
    >>> model.coefficients_after(1).round(4)
    array([0.    , 0.0234, 0.    , 0.    , 0.    ])
    """

    _theory = "forward-stagewise"

    epsilon: float = param(
        Number(low=0.0, low_open=True, high=1.0),
        "ε, the length of a move in units of ‖y − ȳ‖ for unit-norm columns.",
        default=0.01,
        kw_only=False,
    )
    n_steps: int = param(MAX_ITER, "Most moves.", default=10_000)
    coef_: Any = fitted("(n_features,)", "β after all moves.")
    moves_: Any = fitted("(n_moves,)", "For each move ±(j + 1): the column, counted from one, and the sign.", kind="i")
    unit_: Any = fitted("(n_features,)", "What one move adds to each coefficient.", low=0.0)
    certificate_: Certificate = fitted(
        "Certificate", "`greedy`: by how much a move's correlation falls short of the greatest."
    )

    _door = staticmethod(door(target="numeric"))
    _iterates = True

    def _fit(self, table: Table, run: Run) -> Certificate:
        problem = compressed(type(self).__name__, table, intercept=self.fit_intercept, n_jobs=self.n_jobs)
        A = problem.rows / problem.scale
        length = np.sqrt(problem.total)
        correlation = A.T @ (problem.target / (length if length > 0 else 1.0))
        gram = np.ascontiguousarray(A.T @ A)
        moves = np.zeros(self.n_steps, dtype=np.int32)
        done = 0
        while done < self.n_steps and not (done and run.progress(done, float(np.abs(correlation).max()))):
            n = min(_SLICE, self.n_steps - done)
            made = _kernels.stagewise(gram, correlation, float(self.epsilon), moves[done : done + n], n)
            done += made
            if made < n:
                break
        self.moves_ = moves[:done].copy()
        self.unit_ = self.epsilon * length / problem.scale
        coef = self.coefficients_after(done)
        self._set_coefficients(coef[:, None], np.array([problem.y_mean - problem.x_mean @ coef]), ())
        return Certificate("greedy", 0.0, TOLERANCE, None, max(1, done), by_construction=True)

    def coefficients_after(self, n_moves: int) -> Array:
        """Return β after the first `n_moves` moves."""
        moves = self.moves_[:n_moves]
        p = len(self.unit_)
        counts = np.bincount(np.abs(moves) - 1, np.sign(moves), minlength=p) if len(moves) else np.zeros(p)
        return np.asarray(counts * self.unit_)

    _laws = laws(
        law(
            "moves_ names a column that the model does not have",
            lambda model: (model.moves_ != 0).all() and np.abs(model.moves_).max(initial=0) <= model.n_features_in_,
            "moves_",
        ),
    )
