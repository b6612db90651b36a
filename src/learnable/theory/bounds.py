"""Bounds of a risk by the size, the description, the margin or the stability of what was learnt: the formulas.

Each takes numbers and returns an upper bound of the risk of a loss in [0, 1] that fails with probability at most δ,
for n independent rows. k errors among n is R̂ = k/n.

    one function           R ≤ kl⁻¹(R̂, ln(1/δ)/n)                                fixed before the rows
    description (Occam)    R ≤ kl⁻¹(R̂, (L + ln(1/δ))/n)                          a prefix code of L nats
    tree of t nodes        R ≤ R̂ + √(((t + 1) log₂(d + 3) + ln(2/δ))/(2n))       d columns of zeros and ones
    compression            P(Bin(n − k, R) ≤ errors on the others) ≤ δ/(n C(n, k))  a function of k of the rows
    PAC-Bayes-kl           kl(R̂_ρ‖R_ρ) ≤ (KL(ρ‖π) + ln(2√n/δ))/n                 a vote errs at most 2R_ρ
    tandem                 kl(T̂_ρ‖T_ρ) ≤ (2KL(ρ‖π) + ln(2√n/δ))/n                a vote errs at most 4T_ρ
    C-bound                a vote errs at most 1 − (1 − 2R_ρ)²/(1 − 4R_ρ + 4T_ρ), for R_ρ < ½
    margin                 R ≤ n⁻¹ Σ φ(γᵢ/θ) + 2R(F)/θ + 3√(ln(2m/δ)/(2n)), m values of θ fixed beforehand
    stability              R ≤ R̂ + 2β + (4nβ + M)√(ln(1/δ)/(2n))
    leave-one-out, k-NN    R ≤ R̂_loo + √((1/n + 4k/(n − 1) + 4k/n)/δ)
    online to batch        mean risk of the hypotheses of one pass ≤ mistakes/n + √(2 ln(1/δ)/n)

φ is the ramp, 1 below 0 and 0 above 1. In the C-bound 1 − 4R + 4T is the second moment of the margin 1 − 2ℓ̄(x),
because E ℓ̄² = T; for votes with 0/1 losses and two classes it is 1 − 2d, with d the expected disagreement.

References: J. Langford, Tutorial on practical prediction theory for classification, JMLR 6, 2005. A. Maurer, A note
on the PAC Bayesian theorem, 2004. A. Masegosa and others, Second order PAC-Bayesian bounds for the weighted majority
vote, 2020. P. Germain and others, Risk bounds for the majority vote, JMLR 16, 2015. S. Shalev-Shwartz and S.
Ben-David, Understanding Machine Learning, 2014, §18.1. O. Bousquet and A. Elisseeff, Stability and generalization,
JMLR 2, 2002. W. Rogers and T. Wagner, 1978; L. Devroye, L. Györfi and G. Lugosi, 1996, theorem 24.2. N.
Cesa-Bianchi, A. Conconi and C. Gentile, 2004.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import gammaln, ndtr

from ..core import DataError, Number, ParameterError, check_parameters
from .concentration.base import COUNT, LEVEL, Array
from .concentration.binomial import kl_lower, kl_upper, log_binomial

_SHARE = Number(low=0.0, high=1.0)
_NON_NEGATIVE = Number(low=0.0)
_NATURAL = Number(low=0, integer=True)


def description_bound(error: float, n: int, nats: float, delta: float) -> float:
    """Return kl⁻¹(R̂, (L + ln(1/δ))/n): Occam's bound of a hypothesis whose prefix code has L nats.

    Every hypothesis h gets the share e^{−L(h)} of δ; by Kraft's inequality the shares sum to at most one.

    Examples
    --------
    >>> from learnable.theory.bounds import description_bound
    >>> round(description_bound(0.1, 10_000, 400.0, 0.05), 4)
    0.2057
    """
    given = {"error": error, "n": n, "nats": nats, "delta": delta}
    rules = {"error": _SHARE, "n": COUNT, "nats": _NON_NEGATIVE, "delta": LEVEL}
    check_parameters("description_bound", given, rules)
    return kl_upper(error, (nats - math.log(delta)) / n)


def tree_bound(error: float, n: int, nodes: int, columns: int, delta: float) -> float:
    """Return the bound by minimum description length of a binary tree over columns of zeros and ones.

    A node is coded by one of d + 3 signs, (t + 1) of them with the end. The textbook's log₂ is kept: in nats the
    code is shorter by ln 2, so that the bound holds with room.

    Examples
    --------
    >>> from learnable.theory.bounds import tree_bound
    >>> round(tree_bound(0.0, 1000, 7, 10, 0.05), 6)
    0.12902
    """
    given = {"error": error, "n": n, "nodes": nodes, "columns": columns, "delta": delta}
    rules = {"error": _SHARE, "n": COUNT, "nodes": COUNT, "columns": COUNT, "delta": LEVEL}
    check_parameters("tree_bound", given, rules)
    return error + math.sqrt(((nodes + 1) * math.log2(columns + 3) + math.log(2.0 / delta)) / (2.0 * n))


def compression_bound(n: int, k: int, errors: int, delta: float, nats: float = 0.0) -> float:
    """Return the bound of a hypothesis that is a function of k of the n rows, with `errors` on the other n − k.

    Parameters
    ----------
    n, k, errors : int
        Rows, rows that define the hypothesis, errors on the others.
    delta : float
        Probability of failure; it is divided by n (for k) and by C(n, k) (for which rows).
    nats : float
        Whatever else the hypothesis depends on: ln k! for the order of the rows, 44.4 for a number of 64 bits.

    Examples
    --------
    >>> from learnable.theory.bounds import compression_bound
    >>> round(compression_bound(1000, 20, 0, 0.05), 6), round(compression_bound(1000, 20, 10, 0.05), 6)
    (0.10209, 0.133686)
    """
    given = {"n": n, "k": k, "errors": errors, "delta": delta, "nats": nats}
    rules = {"n": COUNT, "k": _NATURAL, "errors": _NATURAL, "delta": LEVEL, "nats": _NON_NEGATIVE}
    check_parameters("compression_bound", given, rules)
    if k > n or errors > n - k:
        raise ParameterError(f"compression_bound: k and errors must fit into n = {n}; got k={k}, errors={errors}.")
    log_delta = math.log(delta) - math.log(n) - log_binomial(n, k) - nats
    return binomial_upper_log(errors, n - k, log_delta)


def binomial_upper_log(errors: int, n: int, log_delta: float) -> float:
    """Return Clopper and Pearson's upper bound at δ = e^{log_delta}, which may be below every float.

    Examples
    --------
    >>> from learnable.theory.bounds import binomial_upper_log
    >>> round(binomial_upper_log(10, 100, -2.995732), 6)
    0.163718
    """
    if errors >= n:
        return 1.0
    if errors == 0:
        return -math.expm1(log_delta / n)
    counts = np.arange(errors + 1)
    logs = gammaln(n + 1.0) - gammaln(counts + 1.0) - gammaln(n - counts + 1.0)

    def excess(p: float) -> float:
        terms = logs + counts * math.log(p) + (n - counts) * math.log1p(-p)
        top = float(terms.max())
        return top + math.log(float(np.exp(terms - top).sum())) - log_delta

    # The kl bound is never below; a little above it, for rounding.
    high = min(kl_upper(errors / n, -log_delta / n) * (1.0 + 1e-12), 1.0 - 1e-15)
    if excess(high) > 0.0:
        return 1.0
    return float(brentq(excess, errors / n * 0.5, high, xtol=1e-15, rtol=1e-13))


def pac_bayes_bound(error: float, n: int, kl: float, delta: float) -> float:
    """Return kl⁻¹(R̂_ρ, (KL + ln(2√n/δ))/n): the risk of drawing a member from ρ for every prediction.

    Examples
    --------
    >>> from learnable.theory.bounds import pac_bayes_bound
    >>> round(pac_bayes_bound(0.1, 1000, 5.0, 0.05), 4)
    0.1531
    """
    return kl_upper(*_pac_bayes("pac_bayes_bound", error, n, kl, delta))


def pac_bayes_lower(error: float, n: int, kl: float, delta: float) -> float:
    """Return the lower end that the same event gives."""
    return kl_lower(*_pac_bayes("pac_bayes_lower", error, n, kl, delta))


def tandem_bound(tandem: float, n: int, kl: float, delta: float) -> float:
    """Return 4 kl⁻¹(T̂_ρ, (2KL + ln(2√n/δ))/n): a vote errs only where the mean loss is at least ½, its square ¼.

    n is the number of rows; with out-of-bag rows, the smallest number that two members share.

    Examples
    --------
    >>> from learnable.theory.bounds import tandem_bound
    >>> round(tandem_bound(0.05, 1000, 0.0, 0.05), 6)
    0.321554
    """
    return 4.0 * kl_upper(*_pac_bayes("tandem_bound", tandem, n, 2.0 * kl, delta))


def c_bound(risk: float, tandem: float) -> float:
    """Return 1 − (1 − 2R)²/(1 − 4R + 4T), Cantelli's bound on P(margin ≤ 0); 1 unless R < ½.

    Examples
    --------
    >>> from learnable.theory.bounds import c_bound
    >>> round(c_bound(0.3, 0.12), 4)
    0.4286
    """
    check_parameters("c_bound", {"risk": risk, "tandem": tandem}, {"risk": _SHARE, "tandem": _SHARE})
    second = 1.0 - 4.0 * risk + 4.0 * tandem
    if risk >= 0.5 or second <= 0.0:
        return 1.0
    return min(1.0, max(0.0, 1.0 - (1.0 - 2.0 * risk) ** 2 / second))


def worst_c_bound(risk_low: float, risk_high: float, tandem: float) -> float:
    """Return the largest C-bound over R in an interval and T up to a bound.

    It grows with T. In R it is largest at R = 2T, where it is 4T, or at the end of the interval next to it. (T ≤ R
    always, so that R is at least T; and T is at least R² by Jensen's inequality.)

    Examples
    --------
    >>> from learnable.theory.bounds import worst_c_bound
    >>> round(worst_c_bound(0.2, 0.3, 0.12), 4)  # R = 2T is inside: 4T
    0.48
    """
    if risk_high >= 0.5:
        return 1.0
    return c_bound(min(max(2.0 * tandem, risk_low), risk_high), min(1.0, max(tandem, risk_low**2)))


def gaussian_margin_errors(margins: Array, scale: float) -> float:
    """Return n⁻¹ Σ P(N(0, 1) > μγᵢ): errors of weights drawn from N(μw/‖w‖, I), with γ the normalised margins."""
    return float(ndtr(-scale * margins).mean())


def linear_pac_bayes(margins: Any, delta: float) -> tuple[float, float]:
    """Return the PAC-Bayes margin bound of a linear classifier, and the μ that attains it.

    Posterior N(μw/‖w‖, I), prior N(0, I), KL = μ²/2; the vote over the posterior is the classifier itself, so that its
    risk is at most twice that of a drawn member. δ is split over 25 values of μ.

    Parameters
    ----------
    margins : array of shape (n,)
        y w·x/(‖w‖‖x‖), a constant column included where there is an intercept.
    delta : float
        Probability of failure.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable.theory.bounds import linear_pac_bayes
    >>> value, scale = linear_pac_bayes(np.full(1000, 0.5), 0.05)
    >>> round(value, 4)
    0.0689
    """
    gamma = _finite("linear_pac_bayes", margins)
    n = len(gamma)
    best = (math.inf, 0.0)
    for scale in MARGIN_SCALES:
        risk = pac_bayes_bound(gaussian_margin_errors(gamma, scale), n, scale**2 / 2.0, delta / len(MARGIN_SCALES))
        best = min(best, (2.0 * risk, scale))
    return best


def margin_bound(margins: Any, average: float, delta: float, thetas: Any) -> tuple[float, float]:
    """Return min_θ (n⁻¹ Σ φ(γᵢ/θ) + 2R/θ) + 3√(ln(2m/δ)/(2n)), and the θ that attains it.

    Parameters
    ----------
    margins : array of shape (n,)
        y f(x), with f in the class whose average is given.
    average : float
        R, the Rademacher average of the class on these rows.
    delta : float
        Probability of failure.
    thetas : array of shape (m,)
        Margins to try, fixed before the rows are seen.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable.theory.bounds import margin_bound
    >>> value, theta = margin_bound(np.full(10_000, 1.0), 0.01, 0.05, [0.25, 0.5, 1.0])
    >>> round(value, 4), theta
    (0.0664, 1.0)
    """
    gamma = _finite("margin_bound", margins)
    grid = _finite("margin_bound", thetas)
    check_parameters("margin_bound", {"average": average, "delta": delta}, {"average": _NON_NEGATIVE, "delta": LEVEL})
    if grid.min() <= 0.0:
        raise ParameterError("margin_bound: thetas must be positive.")
    n = len(gamma)
    values = ramp_losses(gamma, grid) + 2.0 * average / grid
    best = int(np.argmin(values))
    return float(values[best]) + 3.0 * math.sqrt(math.log(2.0 * len(grid) / delta) / (2.0 * n)), float(grid[best])


def ramp_losses(margins: Array, thetas: Array) -> Array:
    """Return n⁻¹ Σ φ(γᵢ/θ) for every θ: one sort and running sums in place of a pass over the rows for each.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable.theory.bounds import ramp_losses
    >>> ramp_losses(np.array([-1.0, 0.5, 3.0]), np.array([1.0, 2.0])).round(4)
    array([0.5   , 0.5833])
    """
    ordered = np.sort(margins)
    n = len(ordered)
    first = int(np.searchsorted(ordered, 0.0, side="right"))  # so many are not positive, and lose one each
    running = np.concatenate([[0.0], np.cumsum(ordered[first:])])
    inside = np.searchsorted(ordered[first:], thetas)
    return np.asarray((first + inside - running[inside] / thetas) / n)


def stability_bound(error: float, n: int, beta: float, delta: float, largest: float = 1.0) -> float:
    """Return R̂ + 2β + (4nβ + M)√(ln(1/δ)/(2n)), for a learner of uniform stability β.

    Leaving any one of the n rows out changes no loss by more than β (Bousquet and Elisseeff, theorem 12).

    Examples
    --------
    >>> from learnable.theory.bounds import stability_bound
    >>> round(stability_bound(0.1, 10_000, 1e-5, 0.05), 4)
    0.1172
    """
    given = {"error": error, "n": n, "beta": beta, "delta": delta, "largest": largest}
    rules = {"error": _NON_NEGATIVE, "n": COUNT, "beta": _NON_NEGATIVE, "delta": LEVEL, "largest": _NON_NEGATIVE}
    check_parameters("stability_bound", given, rules)
    return error + 2.0 * beta + (4.0 * n * beta + largest) * math.sqrt(-math.log(delta) / (2.0 * n))


def ridge_stability(kappa: float, penalty: float, n: int, target: float) -> float:
    """Return β of the clipped squared loss for min n⁻¹ Σ (f(xᵢ) − yᵢ)² + λ‖f‖² with |y| ≤ B and K(x, x) ≤ κ².

    Comparing with f = 0, λ‖f‖² ≤ B², so |f| ≤ κB/√λ, and the loss has slope σ ≤ 2(B + κB/√λ) there. Leaving a row out
    moves f by at most σκ/(2λn) in norm, hence predictions by σκ²/(2λn), and a squared loss of predictions clipped to
    [−B, B] by 4B times that.

    Examples
    --------
    >>> from learnable.theory.bounds import ridge_stability
    >>> ridge_stability(1.0, 1.0, 1000, 1.0)
    0.008
    """
    given = {"kappa": kappa, "penalty": penalty, "n": n, "target": target}
    positive = Number(low=0.0, low_open=True)
    rules = {"kappa": _NON_NEGATIVE, "penalty": positive, "n": COUNT, "target": positive}
    check_parameters("ridge_stability", given, rules)
    slope = 2.0 * target * (1.0 + kappa / math.sqrt(penalty))
    return 4.0 * target * slope * kappa**2 / (2.0 * penalty * n)


def neighbours_bound(leave_one_out: float, n: int, k: int, delta: float) -> float:
    """Return R̂_loo + √(s/δ): Markov's inequality for the square, with E(R̂_loo − R)² ≤ s = 1/n + 4k/(n − 1) + 4k/n.

    Let S_m be the probability that a rule on m rows errs on two further rows both. One more row changes the decision
    at a point with probability at most k/m, the chance that it is among the k nearest. So S_m and S_{m−1} differ by
    at most 2k/m; the product of two leave-one-out errors has expectation at most S_{n−2} + 2k/(n − 1), that of one
    with R at least S_{n−1} − k/n, and E R² is S_n. (The literature has 6k + 1 over n.)

    Examples
    --------
    >>> from learnable.theory.bounds import neighbours_bound
    >>> round(neighbours_bound(0.05, 20_000, 1, 0.05), 4)
    0.1449
    """
    given = {"leave_one_out": leave_one_out, "n": n, "k": k, "delta": delta}
    two = Number(low=2, integer=True)
    check_parameters("neighbours_bound", given, {"leave_one_out": _SHARE, "n": two, "k": COUNT, "delta": LEVEL})
    square = 1.0 / n + 4.0 * k / (n - 1.0) + 4.0 * k / n
    return leave_one_out + math.sqrt(square / delta)


def online_to_batch(mistakes: int, n: int, delta: float) -> float:
    """Return mistakes/n + √(2 ln(1/δ)/n): the mean risk of the hypotheses that one pass over n rows goes through.

    Examples
    --------
    >>> from learnable.theory.bounds import online_to_batch
    >>> round(online_to_batch(20, 1000, 0.05), 4)
    0.0974
    """
    check_parameters(
        "online_to_batch",
        {"mistakes": mistakes, "n": n, "delta": delta},
        {"mistakes": _NATURAL, "n": COUNT, "delta": LEVEL},
    )
    return mistakes / n + math.sqrt(-2.0 * math.log(delta) / n)


#: Values of μ over which the PAC-Bayes margin bound is taken.
MARGIN_SCALES: tuple[float, ...] = tuple(2.0 ** (j / 2.0) for j in range(-4, 21))


def _pac_bayes(owner: str, error: float, n: int, kl: float, delta: float) -> tuple[float, float]:
    given = {"error": error, "n": n, "kl": kl, "delta": delta}
    check_parameters(owner, given, {"error": _SHARE, "n": COUNT, "kl": _NON_NEGATIVE, "delta": LEVEL})
    return error, (kl + math.log(2.0 * math.sqrt(n) / delta)) / n


def _finite(owner: str, values: Any) -> Array:
    x = np.asarray(values, dtype=np.float64)
    if x.ndim != 1 or len(x) == 0 or not np.isfinite(x).all():
        raise DataError(f"{owner}: expected finite numbers in one dimension; got shape {x.shape}.")
    return x
