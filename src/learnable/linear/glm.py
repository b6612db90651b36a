r"""Generalised linear models of counts and positive targets: Poisson, Gamma and Tweedie regression.

    min_{w, b}  1/(2S) Σᵢ sᵢ d(yᵢ, μᵢ) + ½α‖w‖²,      g(μᵢ) = b + xᵢᵀw,      S = Σᵢ sᵢ

with d the unit deviance of a family whose variance is φμᵖ: p = 0 normal, 1 Poisson, between 1 and 2 compound Poisson
(zeros and positive numbers), 2 Gamma, 3 inverse Gaussian. In the form n⁻¹ΣV + λΩ, with V = d/2 and Ω = ½‖w‖², λ = α. It
is the MAP estimate under w ~ N(0, φ/(Sα)). The intercept is never penalised.

With the log link and 1 ≤ p ≤ 2, and for p = 0 with the identity, the problem is convex, and with α > 0 the certificate
is its duality gap. Otherwise it is the relative gradient: with p outside [1, 2] a fit may be a local optimum.

Reference: P. McCullagh and J. Nelder, Generalized Linear Models, 2nd ed., 1989; B. Jørgensen, J. R. Statist. Soc. B 49
(1987).
"""

from __future__ import annotations

from typing import ClassVar

from ..core.parameters import Number, Options, Rule
from ._glm_base import DevianceRegressor
from .scores import DEFAULT_TOLERANCE


class PoissonRegressor(DevianceRegressor):
    r"""Poisson regression of counts y ≥ 0: minimise S⁻¹ Σᵢ sᵢ (μᵢ − yᵢ + yᵢ log(yᵢ/μᵢ)) + ½α‖w‖², μᵢ = exp(b + xᵢᵀw).

    In the form n⁻¹ΣV + λΩ with V half the unit deviance and Ω = ½‖w‖², λ = α. Time O(nd² + iterations·nd) for n ≫ d;
    memory O(n + d²) besides the data.

    Parameters
    ----------
    alpha : float, default=1.0
        α ≥ 0. With α = 0 the maximum of the likelihood may lie at infinity, for example if a column is positive only
        where y = 0.
    fit_intercept : bool, default=True
        Whether b is free or zero.
    solver : str, default="auto"
        "auto" chooses by shape; "lbfgs", "newton-cholesky" and "newton-cg" do what they say. The optimum is the same.
    max_iter : int, default=100
        Most iterations.
    tol : float, default=1e-8
        Relative duality gap (relative gradient if α = 0) at which to stop; at least 1e-6 for float32 data. A number
        given here also bounds the largest entry of the gradient, which is what scikit-learn's `tol` bounds.
    warm_start : bool, default=False
        Start from the last fit's coefficients.
    verbose : int, default=0
        Kept for compatibility; progress comes through `set_callbacks`.
    n_jobs : int or None, default=None
        Threads; None uses all that BLAS may use. The result does not depend on it.
    max_seconds : float or None, default=None
        Time after which the best so far is returned.

    Attributes
    ----------
    coef_ : array of shape (n_features,)
        w.
    intercept_ : float
        b.
    n_iter_ : int
        Iterations on all rows.
    certificate_ : Certificate
        `gap`, or `stationarity` if α = 0.

    Examples
    --------
    >>> from learnable import PoissonRegressor
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [1, 1, 3, 7]
    >>> model = PoissonRegressor(alpha=0.01).fit(X, y)
    >>> model.predict([[0.0], [3.0]]).round(2)
    array([0.67, 6.76])
    >>> model.certificate_.kind, model.certificate_.holds
    ('gap', True)
    """

    def _family(self) -> tuple[float, bool]:
        return 1.0, True


class GammaRegressor(DevianceRegressor):
    r"""Gamma regression of targets y > 0: minimise S⁻¹ Σᵢ sᵢ (log(μᵢ/yᵢ) + yᵢ/μᵢ − 1) + ½α‖w‖², μᵢ = exp(b + xᵢᵀw).

    In the form n⁻¹ΣV + λΩ with V half the unit deviance and Ω = ½‖w‖², λ = α. Parameters, attributes, time and memory
    are those of `PoissonRegressor`.

    Parameters
    ----------
    alpha, fit_intercept, solver, max_iter, tol, warm_start, verbose, n_jobs, max_seconds
        As in `PoissonRegressor`.

    Attributes
    ----------
    coef_, intercept_, n_iter_, certificate_
        As in `PoissonRegressor`.

    Examples
    --------
    >>> from learnable import GammaRegressor
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [1.0, 2.0, 5.0, 7.0]
    >>> model = GammaRegressor(alpha=0.01).fit(X, y)
    >>> round(model.score(X, y), 2)
    0.97
    """

    def _family(self) -> tuple[float, bool]:
        return 2.0, True


class TweedieRegressor(DevianceRegressor):
    r"""Tweedie regression: minimise 1/(2S) Σᵢ sᵢ d_p(yᵢ, μᵢ) + ½α‖w‖², d_p the unit deviance of the variance μᵖ.

    In the form n⁻¹ΣV + λΩ with V half the unit deviance and Ω = ½‖w‖², λ = α. Time and memory are those of
    `PoissonRegressor`.

    Parameters
    ----------
    power : float, default=0.0
        p: 0 normal, 1 Poisson, (1, 2) compound Poisson, 2 Gamma, 3 inverse Gaussian. No distribution has a power
        between 0 and 1, but the deviance exists.
    alpha, fit_intercept, solver, max_iter, tol, warm_start, verbose, n_jobs, max_seconds
        As in `PoissonRegressor`.
    link : {"auto", "identity", "log"}, default="auto"
        g; "auto" is the identity for p ≤ 0 and the logarithm otherwise. With the identity and p ≠ 0, means are kept
        positive on the rows of the fit; those predicted for others can be negative. Where a mean of zero would be best,
        there is no optimum, and the fit warns.

    Attributes
    ----------
    coef_, intercept_, n_iter_
        As in `PoissonRegressor`.
    certificate_ : Certificate
        `gap` where the problem is convex and α > 0: p = 0 with the identity, 1 ≤ p ≤ 2 with the logarithm. Otherwise
        `stationarity`.

    Examples
    --------
    >>> from learnable import TweedieRegressor
    >>> X, y = [[1.0, 2.0], [2.0, 3.0], [3.0, 4.0], [4.0, 3.0]], [2.0, 3.5, 5.0, 5.5]
    >>> model = TweedieRegressor().fit(X, y)
    >>> model.coef_.round(4), round(model.intercept_, 4)
    (array([0.6, 0.3]), np.float64(1.6))
    """

    _parameters: ClassVar[dict[str, Rule]] = {
        "power": Number(low=-100.0, high=100.0),
        "link": Options("auto", "identity", "log"),
        **DevianceRegressor._parameters,
    }

    def __init__(
        self,
        *,
        power: float = 0.0,
        alpha: float = 1.0,
        fit_intercept: bool = True,
        link: str = "auto",
        solver: str = "auto",
        max_iter: int = 100,
        tol: float = DEFAULT_TOLERANCE,
        warm_start: bool = False,
        verbose: int = 0,
        n_jobs: int | None = None,
        max_seconds: float | None = None,
    ) -> None:
        super().__init__(
            alpha=alpha,
            fit_intercept=fit_intercept,
            solver=solver,
            max_iter=max_iter,
            tol=tol,
            warm_start=warm_start,
            verbose=verbose,
            n_jobs=n_jobs,
            max_seconds=max_seconds,
        )
        self.power = power
        self.link = link

    def _family(self) -> tuple[float, bool]:
        power = float(self.power)
        return power, self.link == "log" or (self.link == "auto" and power > 0)
