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

from ..core.certificate import Certificate
from ..core.declare import fitted, param
from ..core.parameters import Number, Options
from ..risk.likelihoods import LinearLikelihood
from ._glm_base import DevianceRegressor


class PoissonRegressor(DevianceRegressor):
    r"""Poisson regression of counts y ≥ 0: minimise S⁻¹ Σᵢ sᵢ (μᵢ − yᵢ + yᵢ log(yᵢ/μᵢ)) + ½α‖w‖², μᵢ = exp(b + xᵢᵀw).

    In the form n⁻¹ΣV + λΩ with V half the unit deviance and Ω = ½‖w‖², λ = α. Time O(nd² + iterations·nd) for n ≫ d;
    memory O(n + d²) besides the data.

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

    def _likelihood(self, sum_of_weights: float) -> LinearLikelihood:
        """Return the Poisson likelihood; S times the objective is the negative log posterior."""
        return LinearLikelihood("poisson", self.alpha * sum_of_weights)


class GammaRegressor(DevianceRegressor):
    r"""Gamma regression of targets y > 0: minimise S⁻¹ Σᵢ sᵢ (log(μᵢ/yᵢ) + yᵢ/μᵢ − 1) + ½α‖w‖², μᵢ = exp(b + xᵢᵀw).

    In the form n⁻¹ΣV + λΩ with V half the unit deviance and Ω = ½‖w‖², λ = α. Time and memory are those of
    `PoissonRegressor`.

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

    def _likelihood(self, sum_of_weights: float) -> LinearLikelihood:
        """Return the Gamma likelihood with dispersion φ; S/φ times the objective is the negative log posterior."""
        return LinearLikelihood("gamma", self.alpha * sum_of_weights, in_units_of_noise=True)


class TweedieRegressor(DevianceRegressor):
    r"""Tweedie regression: minimise 1/(2S) Σᵢ sᵢ d_p(yᵢ, μᵢ) + ½α‖w‖², d_p the unit deviance of the variance μᵖ.

    In the form n⁻¹ΣV + λΩ with V half the unit deviance and Ω = ½‖w‖², λ = α. Time and memory are those of
    `PoissonRegressor`.

    Examples
    --------
    >>> from learnable import TweedieRegressor
    >>> X, y = [[1.0, 2.0], [2.0, 3.0], [3.0, 4.0], [4.0, 3.0]], [2.0, 3.5, 5.0, 5.5]
    >>> model = TweedieRegressor().fit(X, y)
    >>> model.coef_.round(4), round(model.intercept_, 4)
    (array([0.6, 0.3]), np.float64(1.6))
    """

    power: float = param(
        Number(low=-100.0, high=100.0),
        "p: 0 normal, 1 Poisson, (1, 2) compound Poisson, 2 Gamma, 3 inverse Gaussian. No distribution has a "
        "power between 0 and 1, but the deviance exists.",
        default=0.0,
    )
    link: str = param(
        Options("auto", "identity", "log"),
        'g; "auto" is the identity for p ≤ 0 and the logarithm otherwise. With the identity and p ≠ 0, '
        "means are kept positive on the rows of the fit; those predicted for others can be negative. Where a "
        "mean of zero would be best, there is no optimum, and the fit warns.",
        default="auto",
    )
    certificate_: Certificate = fitted(
        "Certificate",
        "`gap` where the problem is convex and α > 0: p = 0 with the identity, 1 ≤ p ≤ 2 with the logarithm. "
        "Otherwise `stationarity`.",
    )

    def _family(self) -> tuple[float, bool]:
        power = float(self.power)
        return power, self.link == "log" or (self.link == "auto" and power > 0)
