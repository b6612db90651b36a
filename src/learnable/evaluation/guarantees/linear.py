"""Training-set bounds of linear and kernel machines: by dimension, by margin, by support vectors, by stability."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from ...core.errors import LearnableError
from ...data.door import read_features
from ...theory import bounds, covering, rademacher, vc
from ...theory.concentration import Check
from ...theory.concentration.binomial import log_binomial
from .record import Array, Draft, Evidence, baseline_of

#: A number of 64 bits that was read off the rows, such as γ = 1/(d Var X), in nats.
NUMBER = 64.0 * math.log(2.0)
#: Margins that are tried, for every scale that numbers can have.
THETAS = tuple(2.0 ** (j / 2.0) for j in range(-80, 81))
#: Norms that are tried.
NORMS = tuple(2.0 ** (j / 2.0) for j in range(-60, 121))
#: With more support vectors the norm takes longer than the fit may have.
MOST_SUPPORT = 4000
#: Share of the rows up to which a fit to the support vectors alone takes a small part of the time of the fit.
MOST_REFITTED = 1.0 / 3.0
#: With more columns the spectrum takes longer than the fit may have.
MOST_COLUMNS = 400

_VC = "V. Vapnik and A. Chervonenkis, 1971; S. Boucheron, O. Bousquet and G. Lugosi, Theory of classification, 2005"
_MASSART = "P. Massart, 2000; M. Mohri, A. Rostamizadeh and A. Talwalkar, Foundations of Machine Learning, 2018, §3.3"
_MARGIN = "V. Koltchinskii and D. Panchenko, 2002; P. Bartlett and S. Mendelson, JMLR 3, 2002"
_PAC_BAYES = "J. Langford and J. Shawe-Taylor, PAC-Bayes and margins, NIPS 2002"


_EXACT = "the machine is the exact solution, a function of its support vectors alone"


class Geometry(NamedTuple):
    """A linear classifier of two classes in some space, with a constant coordinate for its intercept."""

    margins: Array  #: y f(x)/‖w‖
    squares: Array  #: ‖x‖² of each row
    nats: float  #: what was read off the rows to define the space
    spectrum: Array | None  #: eigenvalues of n⁻¹ Σ xxᵀ, where they are cheap
    fixed: Check  #: that the space was fixed beforehand


def rows_of(evidence: Evidence) -> Any:
    """Return X as numbers."""
    return evidence.once("rows", lambda: read_features(evidence.model, evidence.X))


def scores_of_dimension(evidence: Evidence) -> tuple[int, int, str]:
    """Return the dimension of one score, how many pairs of scores decide a label, and in words what they are."""
    model = evidence.model
    d = int(model.n_features_in_)
    K = len(evidence.classes) if evidence.classes is not None else 2
    pairs = K * (K - 1) // 2
    name = type(model).__name__
    if name in QUADRATIC:
        size = 2 * d if name == "GaussianNB" else d * (d + 3) // 2
        return size + 1, pairs, f"quadratic scores with {size} monomials and a constant"
    free = bool(getattr(model, "fit_intercept", True))
    return d + free, pairs, f"linear scores of {d} columns{' and a constant' if free else ''}"


#: Classifiers whose scores are quadratic in the columns.
QUADRATIC = ("GaussianNB", "QuadraticDiscriminantAnalysis")


def growth_relative(evidence: Evidence, delta: float) -> Draft | str:
    """VC bound by relative deviations: labels are decided by the signs of differences of scores."""
    n = evidence.n
    dimension, pairs, words = scores_of_dimension(evidence)
    error = float(evidence.losses.mean())

    def at(m: int) -> float:
        return vc.relative_bound(error, m, pairs * _log_cover(2 * m, dimension), delta)

    statement = "(R − R̂)/√R ≤ 2√A, A = (ln Π(2n) + ln(4/δ))/n, for every member of the class at once"
    inputs = {"dimension": dimension, "pairs": pairs, "ln growth(2n)": pairs * _log_cover(2 * n, dimension)}
    checks = (Check(f"the classifier is made of {words}", True, type(evidence.model).__name__),)
    return Draft("VC, relative deviations", at(n), error, delta, statement, _VC, inputs, checks, at)


def growth_uniform(evidence: Evidence, delta: float) -> Draft | str:
    """VC bound through the Rademacher average of the growth function."""
    n = evidence.n
    dimension, pairs, words = scores_of_dimension(evidence)
    error = float(evidence.losses.mean())

    def at(m: int) -> float:
        return error + vc.growth_bound(m, pairs * _log_cover(m, dimension), delta)

    statement = "R ≤ R̂ + √(2 ln Π(n)/n) + √(ln(1/δ)/(2n)) for every member of the class at once"
    inputs = {"dimension": dimension, "pairs": pairs, "ln growth(n)": pairs * _log_cover(n, dimension)}
    checks = (Check(f"the classifier is made of {words}", True, type(evidence.model).__name__),)
    return Draft("VC dimension", at(n), error, delta, statement, _MASSART, inputs, checks, at)


def growth_on_sample(evidence: Evidence, delta: float) -> Draft | str:
    """Count labelings on the rows themselves, of which only distinct ones count."""
    if type(evidence.model).__name__ in QUADRATIC:
        return "labelings on the sample are counted for linear scores only"
    X = rows_of(evidence)
    if sp.issparse(X):
        return "labelings on the sample are counted for dense tables only"
    distinct_rows = count_distinct(np.asarray(X, dtype=np.float64))
    dimension, pairs, words = scores_of_dimension(evidence)
    log_growth = pairs * _log_cover(distinct_rows, dimension)
    error = float(evidence.losses.mean())

    def at(m: int) -> float:
        distinct = max(1, round(distinct_rows * m / evidence.n))
        return error + vc.growth_bound(m, pairs * _log_cover(distinct, dimension), delta, on_sample=True)

    statement = "R ≤ R̂ + √(2 ln Π_S/n) + 3√(ln(2/δ)/(2n)), with Π_S labelings of the rows themselves"
    inputs = {"distinct rows": distinct_rows, "dimension": dimension, "pairs": pairs, "ln growth": log_growth}
    checks = (Check(f"the classifier is made of {words}", True, type(evidence.model).__name__),)
    return Draft("growth function on the rows", at(evidence.n), error, delta, statement, _MASSART, inputs, checks, at)


def count_distinct(X: Array) -> int:
    """Return how many rows differ: equal rows have equal sums of products, so only rows with equal sums compare."""
    weights = np.sqrt(np.arange(2.0, X.shape[1] + 2.0))
    sums = np.einsum("ij,j->i", X, weights)  # in one order for every row, which a product by BLAS need not have
    _, place, counts = np.unique(sums, return_inverse=True, return_counts=True)
    meeting = np.flatnonzero(counts[place] > 1)
    alone = len(X) - len(meeting)
    return alone + len({row.tobytes() for row in X[meeting] + 0.0})


def rademacher_margin(evidence: Evidence, delta: float) -> Draft | str:
    """Margin bound by the trace of the kernel matrix."""
    found = geometry(evidence)
    if isinstance(found, str):
        return found
    n = evidence.n
    average = math.sqrt(float(found.squares.sum())) / n
    return _margin_draft("margin, Rademacher", evidence, found, average, delta, {"average": average})


def covering_margin(evidence: Evidence, delta: float) -> Draft | str:
    """Margin bound by a cover at one scale: R(F) ≤ α + D√(2 ln N(α)/n)."""
    found = geometry(evidence)
    if isinstance(found, str):
        return found
    if found.spectrum is None:
        return "covering numbers need the spectrum, which is computed for tables of few columns only"
    n = evidence.n
    largest = math.sqrt(max(float(found.spectrum.max()), 0.0))
    average = largest
    for alpha in largest * np.geomspace(1e-3, 0.5, 20):
        entropy = covering.kernel_ball_covering(float(alpha), 1.0, found.spectrum).high
        average = min(average, float(alpha) + largest * math.sqrt(2.0 * entropy / n))
    return _margin_draft("margin, covering number", evidence, found, average, delta, {"average": average})


def dudley_margin(evidence: Evidence, delta: float) -> Draft | str:
    """Margin bound by Dudley's integral."""
    found = geometry(evidence)
    if isinstance(found, str):
        return found
    if found.spectrum is None:
        return "Dudley's integral needs the spectrum, which is computed for tables of few columns only"
    largest = math.sqrt(max(float(found.spectrum.max()), 0.0))
    spectrum = found.spectrum
    integral = covering.dudley_integral(
        lambda eps: covering.kernel_ball_covering(eps, 1.0, spectrum).high, largest, evidence.n
    )
    return _margin_draft(
        "margin, Dudley's integral", evidence, found, integral.bound, delta, {"average": integral.bound}
    )


def pac_bayes_margin(evidence: Evidence, delta: float) -> Draft | str:
    """PAC-Bayes bound of a Gaussian around the weights; the vote over it is the classifier itself."""
    found = geometry(evidence)
    if isinstance(found, str):
        return found
    norms = np.sqrt(np.maximum(found.squares, 1e-300))
    margins = np.where(found.squares > 0.0, found.margins / norms, 0.0)
    level = delta * math.exp(-found.nats)
    value, scale = bounds.linear_pac_bayes(margins, level)
    empirical = bounds.gaussian_margin_errors(margins, scale)

    def at(m: int) -> float:
        share = level / len(bounds.MARGIN_SCALES)
        each = (
            bounds.pac_bayes_bound(bounds.gaussian_margin_errors(margins, mu), m, mu**2 / 2.0, share)
            for mu in bounds.MARGIN_SCALES
        )
        return 2.0 * min(each)

    statement = "R ≤ 2 kl⁻¹(n⁻¹ Σ Φ̄(μγᵢ), (μ²/2 + ln(2√n m/δ))/n), over m = 25 values of μ fixed beforehand"
    inputs = {"mu": scale, "mean Φ̄(μγ)": empirical, "nats read off the rows": found.nats}
    return Draft("PAC-Bayes margin", value, empirical, delta, statement, _PAC_BAYES, inputs, (found.fixed,), at)


def compression_svm(evidence: Evidence, delta: float) -> Draft | str:
    """Sample compression: the machine is a function of its support vectors."""
    model = evidence.model
    if getattr(model, "class_weight", None) == "balanced":
        return "compression: class_weight='balanced' reads the counts of all rows"
    support = np.asarray(getattr(model, "support_", []))
    k = len(support)
    n = evidence.n
    if k == 0 or k >= n:
        return "compression: every row is a support vector"
    nats = read_off(model)
    others = np.ones(n, dtype=bool)
    others[support] = False
    errors = int(evidence.losses[others].sum())
    value = bounds.compression_bound(n, k, errors, delta, nats)
    if value >= baseline_of(evidence, delta):
        same = Check(_EXACT, None, "not fitted again: the bound says nothing that the check could take back")
    elif k > MOST_REFITTED * n:
        same = Check(_EXACT, None, f"not fitted again: {k} support vectors would take as long as the fit")
    else:
        same = _refit_agrees(evidence, support)
    share = k / n
    rate = errors / max(1, n - k)

    def at(m: int) -> float:
        kept = round(share * m)
        return bounds.compression_bound(m, kept, int(rate * (m - kept)), delta, nats)

    statement = "P(Bin(n − k, R) ≤ errors on the others) ≤ δ/(n C(n, k)): k support vectors define the machine"
    inputs = {"support vectors": k, "errors on the others": errors, "nats read off the rows": nats}
    source = "S. Floyd and M. Warmuth, 1995; J. Langford, JMLR 6, 2005, §6"
    return Draft("sample compression", value, rate, delta, statement, source, inputs, (same,), at)


def compression_perceptron(evidence: Evidence, delta: float) -> Draft | str:
    """Sample compression: a perceptron that ended is a function of its mistakes, in their order."""
    model = evidence.model
    if len(np.atleast_1d(model.n_mistakes_)) != 1:
        return "compression: a perceptron per class has no one list of mistakes"
    if model.average or model.penalty is not None or getattr(model, "class_weight", None) is not None:
        return "compression: averages, penalties and class weights depend on every row"
    k = int(np.atleast_1d(model.n_mistakes_)[0])
    n = evidence.n
    if k == 0 or k >= n:
        return f"compression: {k} mistakes are not fewer than the {n} rows"
    # At most k rows made the mistakes; those outside them are judged, and at worst all errors are outside.
    errors = min(evidence.errors, n - k)
    # Lists of k rows, of which some may stand in it twice: n^k of them, C(n, k) of which are counted already.
    nats = k * math.log(n) - log_binomial(n, k)
    value = bounds.compression_bound(n, k, errors, delta, nats)

    def at(m: int) -> float:
        if m <= k:
            return 1.0
        price = k * math.log(m) - log_binomial(m, k)
        return bounds.compression_bound(m, k, min(int(errors / n * m), m - k), delta, price)

    statement = "P(Bin(n − k, R) ≤ errors) ≤ δ/(n nᵏ): w is a function of the list of its k mistakes"
    inputs = {"mistakes": k, "errors": errors}
    source = "S. Floyd and M. Warmuth, 1995"
    check = Check("the start was zero", None, "w is η times a sum of yx over the mistakes")
    return Draft("sample compression", value, errors / n, delta, statement, source, inputs, (check,), at)


def norm_regression(evidence: Evidence, delta: float) -> Draft | str:
    """Rademacher bound of linear functions of bounded norm, for the clipped squared loss.

    In units of the range the loss has slope at most 2 in f. δ is split over the norms.
    """
    model = evidence.model
    coef = np.asarray(model.coef_, dtype=np.float64).ravel()
    X = rows_of(evidence)
    d = X.shape[1]
    if len(coef) != d:
        return "the norm bound is for one linear function of the columns"
    span = evidence.high - evidence.low
    middle = (evidence.high + evidence.low) / 2.0
    offset = (float(np.ravel(model.intercept_)[0]) - middle) / span
    norm = math.hypot(float(np.linalg.norm(coef)) / span, offset)
    squares = _row_squares(X) + 1.0
    B = next((value for value in NORMS if value >= norm), math.inf)
    if not math.isfinite(B):
        return f"the norm {norm:.3g} of the function is beyond every norm that is tried"
    n = evidence.n
    mean_square = float(squares.mean())
    empirical = float(evidence.losses.mean())

    def at(m: int) -> float:
        average = 2.0 * B * math.sqrt(mean_square / m)
        return empirical + rademacher.deviation_bound(average, m, delta / len(NORMS))

    statement = "R ≤ R̂ + 4B√(Σ‖xᵢ‖²)/n + 3√(ln(2m/δ)/(2n)) for all f with ‖(w, b)‖ ≤ B; m norms B fixed beforehand"
    inputs = {"norm": norm, "B": B, "mean ‖x‖²": mean_square}
    check = Check("predictions are clipped to target_range", True, "the loss has slope at most 2 there")
    return Draft("norm, Rademacher", at(n), empirical, delta, statement, _MARGIN, inputs, (check,), at)


def network_margin(evidence: Evidence, delta: float) -> Draft | str:
    """Margin bound of a ReLU network by the Frobenius norms of its layers.

    A bias is the weight of a constant unit, which a ReLU passes on: every layer but the last becomes (W b; 0 1).
    ReLU networks are positively homogeneous, so that only the product of the norms matters, and margins are divided
    by it.
    """
    model = evidence.model
    if evidence.classes is None or len(evidence.classes) != 2 or np.asarray(evidence.codes).min() < 0:
        return "margins: for two known classes only"
    layers = list(getattr(model, "coefs_", []))
    if not layers or getattr(model, "activation", "") != "relu" or layers[-1].shape[1] != 1:
        return "networks: for ReLU units and one output only"
    X = rows_of(evidence) if hasattr(type(model), "_door") else np.asarray(evidence.X, dtype=np.float64)
    values = np.asarray(X, dtype=np.float64)
    product = 1.0
    for depth, (W, b) in enumerate(zip(layers, model.intercepts_, strict=True)):
        last = depth == len(layers) - 1
        values = values @ W + b
        product *= math.sqrt(float((W**2).sum()) + float((b**2).sum()) + (0.0 if last else 1.0))
        if not last:
            values = np.maximum(values, 0.0)
    squares = _row_squares(X) + 1.0
    average = rademacher.network(np.ones(len(layers)), float(squares.sum()), evidence.n)
    fixed = Check("columns were scaled before any row was seen", None, "margins depend on the scale of columns")
    found = Geometry(evidence.signs * values.ravel() / product, squares, 0.0, None, fixed)
    return _margin_draft(
        "margin of the network, by norms", evidence, found, average, delta, {"product of norms": product}
    )


def stability_ridge(evidence: Evidence, delta: float) -> Draft | str:
    """Uniform stability of ridge regression, plain or with a kernel."""
    model = evidence.model
    if getattr(model, "fit_intercept", False):
        return "stability: the intercept is not penalised, so that one row may move it; set fit_intercept=False"
    alphas = np.ravel(getattr(model, "alpha_", getattr(model, "alpha", 0.0)))
    if len(alphas) != 1 or not float(alphas[0]) > 0.0:
        return "stability: one penalty alpha > 0 is needed"
    kappa, fixed = _largest_norm(evidence)
    choices = len(np.ravel(getattr(model, "alphas", [0.0])))
    target = max(abs(evidence.low), abs(evidence.high))
    n = evidence.n
    alpha = float(alphas[0])
    empirical = float(evidence.losses.mean())

    def at(m: int) -> float:
        beta = bounds.ridge_stability(kappa, alpha / m, m, target) / evidence.scale
        return bounds.stability_bound(empirical, m, beta, delta / choices)

    statement = "R ≤ R̂ + 2β + (4nβ + M)√(ln(1/δ)/(2n)), β the most that a loss changes when a row is left out"
    inputs = {"kappa": kappa, "lambda": alpha / n, "choices of alpha": choices}
    source = "O. Bousquet and A. Elisseeff, JMLR 2, 2002, theorems 12 and 22"
    return Draft("stability", at(n), empirical, delta, statement, source, inputs, (fixed,), at)


def geometry(evidence: Evidence) -> Geometry | str:
    """Return margins and norms of a classifier of two classes; or why there are none."""
    found: Geometry | str = evidence.once("geometry", lambda: _geometry(evidence))
    return found


def _geometry(evidence: Evidence) -> Geometry | str:
    model = evidence.model
    if evidence.classes is None or len(evidence.classes) != 2:
        return "margins: for two classes only"
    if np.asarray(evidence.codes).min() < 0:
        return "margins: y has labels that the model does not know"
    if hasattr(type(model), "function_"):
        return _kernel_geometry(evidence)
    coef = getattr(model, "coef_", None)
    if coef is None:
        return "margins: the model has no weights"
    w = coef.toarray() if sp.issparse(coef) else np.asarray(coef, dtype=np.float64)
    w = np.ravel(w)
    X = rows_of(evidence)
    if len(w) != X.shape[1]:
        return "margins: for one score only"
    b = float(np.ravel(model.intercept_)[0])
    norm = math.hypot(float(np.linalg.norm(w)), b)
    if norm == 0.0:
        return "margins: all weights are zero"
    scores = np.asarray(X @ w, dtype=np.float64) + b
    if not _decides_by_sign(evidence, scores):
        return "margins: the prediction is not the sign of the score"
    squares = _row_squares(X) + 1.0
    spectrum = None
    if not sp.issparse(X) and X.shape[1] <= MOST_COLUMNS:
        spectrum = _spectrum(np.asarray(X, dtype=np.float64))
    fixed = Check("columns were scaled before any row was seen", None, "margins depend on the scale of columns")
    return Geometry(evidence.signs * scores / norm, squares, 0.0, spectrum, fixed)


def _spectrum(X: Array) -> Array:
    """Return the eigenvalues of the second moments of the rows, with a column of ones."""
    n, d = X.shape
    moments = np.empty((d + 1, d + 1))
    moments[:d, :d] = X.T @ X / n
    moments[d, :d] = X.mean(axis=0)
    moments[:d, d] = moments[d, :d]
    moments[d, d] = 1.0
    return np.asarray(np.maximum(np.linalg.eigvalsh(moments), 0.0))


def _kernel_geometry(evidence: Evidence) -> Geometry | str:
    model = evidence.model
    try:
        function = model.function_
    except (LearnableError, AttributeError) as error:
        return f"margins: {error}"
    X = rows_of(evidence)
    b = float(np.ravel(getattr(model, "intercept_", 0.0))[0])
    scores = evidence.once(
        "scores", lambda: np.ravel(np.asarray(model.decision_function(evidence.X), dtype=np.float64))
    )
    if len(scores) != evidence.n:
        return "margins: for one score only"
    square = _norm_from_scores(model, scores, b)
    if square is None and function.points.shape[0] > MOST_SUPPORT:
        return f"margins: more than {MOST_SUPPORT} kernel terms; their norm takes longer than the fit"
    own = math.sqrt(square) if square is not None else float(np.ravel(function.norm())[0])
    norm = math.hypot(own, b)
    if not norm > 0.0:
        return "margins: the function is zero"
    if not _decides_by_sign(evidence, scores):
        return "margins: the prediction is not the sign of the score"
    squares = np.asarray(function.kernel.diagonal(X), dtype=np.float64) + 1.0
    nats = read_off(model)
    detail = "γ was read off the rows, and its 64 bits are paid for" if nats else "it does not depend on the rows"
    fixed = Check("the kernel is fixed beforehand", True, detail)
    return Geometry(evidence.signs * scores / norm, squares, nats, None, fixed)


def _norm_from_scores(model: Any, scores: Array, b: float) -> float | None:
    """Return ‖f‖² = Σ αᵢ f(xᵢ) over the support vectors, which are among the rows; None where they are not known."""
    support = getattr(model, "support_", None)
    alpha = np.ravel(np.asarray(getattr(model, "dual_coef_", []), dtype=np.float64))
    if support is None or len(alpha) != len(support) or np.max(support, initial=-1) >= len(scores):
        return None
    terms = alpha * (scores[np.asarray(support)] - b)
    square = float(terms.sum())
    return square if square > 1e-8 * float(np.abs(terms).sum()) else None


def _decides_by_sign(evidence: Evidence, scores: Array) -> bool:
    """Tell whether the second class is predicted exactly where the score is positive; ties may go either way."""
    predicted = (np.asarray(evidence.codes) == 1) != (evidence.losses > 0.0)
    return bool((((scores > 0.0) == predicted) | (scores == 0.0)).all())


def read_off(model: Any) -> float:
    """Return the nats of what a kernel machine reads off all rows before it starts."""
    kernel = getattr(model, "kernel", None)
    return NUMBER if getattr(model, "gamma", None) == "scale" and kernel != "linear" else 0.0


def _margin_draft(
    name: str, evidence: Evidence, found: Geometry, average: float, delta: float, inputs: dict[str, Any]
) -> Draft:
    level = delta * math.exp(-found.nats)
    value, theta = bounds.margin_bound(found.margins, average, level, THETAS)
    empirical = float(np.clip(1.0 - found.margins / theta, 0.0, 1.0).mean())
    n = evidence.n

    def at(m: int) -> float:
        return bounds.margin_bound(found.margins, average * math.sqrt(n / m), level, THETAS)[0] + 3.0 * (
            math.sqrt(math.log(2.0 * len(THETAS) / level) / (2.0 * m))
            - math.sqrt(math.log(2.0 * len(THETAS) / level) / (2.0 * n))
        )

    statement = "R ≤ n⁻¹ Σ φ(γᵢ/θ) + 2R(F)/θ + 3√(ln(2m/δ)/(2n)), F the unit ball, m = 161 margins θ fixed beforehand"
    given = {**inputs, "theta": theta, "mean ramp loss": empirical, "nats read off the rows": found.nats}
    return Draft(name, value, empirical, delta, statement, _MARGIN, given, (found.fixed,), at)


def _log_cover(n: int, dimension: int) -> float:
    """Return ln of Cover's number of labelings of n points by homogeneous halfspaces of a dimension."""
    return math.log(2.0) + vc.log_sauer(max(n - 1, 0), max(dimension - 1, 0))


def _row_squares(X: Any) -> Array:
    if sp.issparse(X):
        return np.asarray(X.multiply(X).sum(axis=1), dtype=np.float64).ravel()
    dense = np.asarray(X, dtype=np.float64)
    return np.asarray(np.einsum("ij,ij->i", dense, dense))


def _largest_norm(evidence: Evidence) -> tuple[float, Check]:
    model = evidence.model
    if hasattr(type(model), "function_"):
        squares = np.asarray(model.function_.kernel.diagonal(rows_of(evidence)), dtype=np.float64)
        constant = float(squares.max()) == float(squares.min())
    else:
        squares = _row_squares(rows_of(evidence))
        constant = False
    kappa = math.sqrt(float(squares.max()))
    detail = "k(x, x) is constant" if constant else f"the largest of these rows has {kappa:.4g}; others may be longer"
    return kappa, Check("no row is longer than κ", True if constant else None, detail)


def _refit_agrees(evidence: Evidence, support: Any) -> Check:
    """Fit the machine to its support vectors alone: the same predictions, if its solution is exact."""
    assumption = _EXACT
    model = evidence.model
    settings = {} if getattr(model, "gamma", None) != "scale" else {"gamma": float(model.gamma_)}
    try:
        X = rows_of(evidence)
        again = clone(model).set_params(**settings).fit(X[support], evidence.y[support])
        before = evidence.once("predicted", lambda: model.predict(evidence.X))
        differ = int((again.predict(X) != before).sum())
    except (LearnableError, ValueError) as error:
        return Check(assumption, None, f"a fit to them fails: {error}")
    detail = f"a fit to them predicts {differ} of {evidence.n} rows differently"
    return Check(assumption, None if differ == 0 else False, detail)
