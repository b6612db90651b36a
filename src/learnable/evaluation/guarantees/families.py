"""Which training-set bounds are tried for which model: fixed before any row is seen, so that δ is split over them."""

from __future__ import annotations

import math
import tempfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from ...core import LearnableError, save
from ...data.door import read_features
from ...theory import bounds, vc
from ...theory.concentration import Check
from ...theory.vc.classes import log_tree_growth
from . import linear
from .linear import rows_of
from .neighbours import MOST_VORONOI_COLUMNS, neighbours, neighbours_compression
from .record import Array, Draft, Evidence

# --------------------------------------------------------------------------------------------------------------------
# Training-set bounds by the length of the model file, and online to batch.


_OCCAM = "A. Blumer, A. Ehrenfeucht, D. Haussler and M. Warmuth, Occam's razor, 1987; J. Langford, JMLR 6, 2005, §4"


#: A pass is a loop over rows: a tenth of a second for so many.
MOST_ONLINE_ROWS = 50_000
#: Models whose predictions are a fixed function of weights and intercepts; a wrapper may hold more.
LINEAR_CODE = {
    *("LinearRegression", "Ridge", "RidgeCV", "Lasso", "LassoCV", "ElasticNet", "ElasticNetCV", "LinearSVR"),
    *("BestSubset", "ForwardStepwise", "BackwardStepwise", "ForwardStagewise", "LassoLars"),
    *("BayesianLinearRegression", "PoissonRegressor", "GammaRegressor", "TweedieRegressor", "GLM"),
    *("LogisticRegression", "LinearSVC", "Perceptron", "LinearDiscriminantAnalysis"),
    *("Lars", "LarsCV", "LassoLarsCV", "LassoLarsIC", "OrthogonalMatchingPursuit", "OrthogonalMatchingPursuitCV"),
    *("LogisticRegressionCV", "RidgeClassifier", "RidgeClassifierCV", "NonconvexRegression"),
    *("BestSubsetClassifier", "StepwiseGLM"),
}


def description(evidence: Evidence, delta: float) -> Draft | str:
    """Occam's bound: a finite class, coded by the weights of a linear model or by the compressed model file."""
    found = description_bits(evidence.model)
    if isinstance(found, str):
        return found
    bits, words = found
    nats = bits * math.log(2.0)
    error = float(evidence.losses.mean())

    def at(m: int) -> float:
        return bounds.description_bound(error, m, nats, delta)

    statement = "R ≤ kl⁻¹(R̂, (L + ln(1/δ))/n) for a hypothesis whose prefix code, fixed beforehand, has L nats"
    checks = (Check("the code was fixed beforehand, and holds all that was read off the rows", True, words),)
    return Draft(
        "finite class (description)", at(evidence.n), error, delta, statement, _OCCAM, {"bits": bits}, checks, at
    )


def description_bits(model: Any) -> tuple[float, str] | str:
    """Return the bits of a prefix code of the model's predictions, and the code in words; or why there is none.

    Linear models: for every score the number of nonzero weights, which they are, and 64 bits each. Others: the
    compressed model file, encoders included, with its own length before it.
    """
    coef = getattr(model, "coef_", None)
    if type(model).__name__ in LINEAR_CODE and coef is not None:
        weights = np.atleast_2d(coef.toarray() if sp.issparse(coef) else np.asarray(coef, dtype=np.float64))
        offsets = np.ravel(np.asarray(model.intercept_, dtype=np.float64))
        if len(offsets) == 1 and len(weights) > 1:
            offsets = np.repeat(offsets, len(weights))
        if len(offsets) == len(weights):
            table = np.column_stack([weights, offsets])
            size = table.shape[1]
            bits = 0.0
            for row in table:
                used = int((row != 0.0).sum())
                which = math.lgamma(size + 1.0) - math.lgamma(used + 1.0) - math.lgamma(size - used + 1.0)
                bits += math.log2(size + 1.0) + which / math.log(2.0) + 64.0 * used
            return bits, "nonzero weights, 64 bits each"
    return _file_bits(model)


def _file_bits(model: Any) -> tuple[float, str] | str:
    try:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.safetensors"
            save(model, path)
            length = len(zlib.compress(path.read_bytes(), 6))
    except LearnableError as error:
        return f"description: the model has no file; {error}"
    bits = 8.0 * length + 2.0 * math.log2(length + 1.0) + 1.0
    return bits, f"compressed model file of {length} bytes"


def online_pass(evidence: Evidence, delta: float) -> Draft | str:
    """Online to batch: mistakes of one pass bound the mean risk of the vectors that it goes through.

    The pass is made again here, over the rows in their order. The bound is about a vector drawn from that pass, not
    about the fitted one, and says so: it never counts as a bound of this model.
    """
    model = evidence.model
    if evidence.classes is None or len(evidence.classes) != 2 or np.asarray(evidence.codes).min() < 0:
        return "online to batch: for two known classes only"
    X = read_features(model, evidence.X)
    if sp.issparse(X) or evidence.n > MOST_ONLINE_ROWS:
        return f"online to batch: for dense tables of at most {MOST_ONLINE_ROWS} rows"
    rows = np.column_stack([np.asarray(X, dtype=np.float64), np.ones(evidence.n)])
    signed = rows * evidence.signs[:, None]
    w = np.zeros(rows.shape[1])
    mistakes = 0
    for row in signed:
        if float(row @ w) <= 0.0:
            w += row
            mistakes += 1

    def at(m: int) -> float:
        return bounds.online_to_batch(round(mistakes * m / evidence.n), m, delta)

    statement = "the mean risk of the vectors of one pass is at most mistakes/n + √(2 ln(1/δ)/n)"
    source = "N. Cesa-Bianchi, A. Conconi and C. Gentile, IEEE Transactions on Information Theory 50, 2004"
    about = Check("the model is a vector drawn at random from one pass", False, "it is the last vector of all passes")
    name = "online to batch, one pass"
    rate = mistakes / evidence.n
    return Draft(name, at(evidence.n), rate, delta, statement, source, {"mistakes": mistakes}, (about,), at)


# --------------------------------------------------------------------------------------------------------------------
# Training-set bounds of trees, boosted stumps and votes.


_VC = "V. Vapnik and A. Chervonenkis, 1971; S. Boucheron, O. Bousquet and G. Lugosi, Theory of classification, 2005"
_VOTE_SOURCE = "A. Masegosa, S. Lorenzen, C. Igel and Y. Seldin, NeurIPS 2020; S. Lorenzen, C. Igel and Y. Seldin, 2019"
#: Margins of boosted votes that are tried.
THETAS = tuple(2.0 ** (-j / 2.0) for j in range(21))


def tree_growth(evidence: Evidence, delta: float) -> Draft | str:
    """Trees of s splits on d columns with K labels, counted on 2n rows; δ is split over s by 1/((s + 1)(s + 2))."""
    splits = _splits_of(evidence.model)
    if splits is None:
        return "trees: splits on categories are not counted"
    n = evidence.n
    d = int(evidence.model.n_features_in_)
    K = len(evidence.classes) if evidence.classes is not None else 2
    error = float(evidence.losses.mean())
    price = math.log((splits + 1.0) * (splits + 2.0)) + splits * math.log(2.0)  # of s; where missing values go

    def at(m: int) -> float:
        return vc.relative_bound(error, m, log_tree_growth(2 * m, d, splits, K) + price, delta)

    statement = (
        "(R − R̂)/√R ≤ 2√A, A = (ln(C_s (2d(2n − 1) + 2)^s K^{s+1}) + ln(4(s + 1)(s + 2)/δ))/n for trees of s splits"
    )
    inputs = {"splits": splits, "columns": d, "classes": K, "ln growth(2n)": log_tree_growth(2 * n, d, splits, K)}
    checks = (Check("splits compare one column with a threshold", True, f"{splits} splits"),)
    return Draft("growth function of trees", at(n), error, delta, statement, _VC, inputs, checks, at)


def tree_growth_on_rows(evidence: Evidence, delta: float) -> Draft | str:
    """Count cuts between the values that the columns really have."""
    splits = _splits_of(evidence.model)
    if splits is None:
        return "trees: splits on categories are not counted"
    cuts = count_cuts(rows_of(evidence))
    K = len(evidence.classes) if evidence.classes is not None else 2
    error = float(evidence.losses.mean())
    # log_tree_growth counts d(n − 1) + 1 cuts: one column of cuts + 1 values has as many.
    log_growth = log_tree_growth(cuts + 1, 1, splits, K) + splits * math.log(2.0)
    level = delta / ((splits + 1.0) * (splits + 2.0))

    def at(m: int) -> float:
        return error + vc.growth_bound(m, log_growth, level, on_sample=True)

    statement = (
        "R ≤ R̂ + √(2 ln Π_S/n) + 3√(ln(2(s + 1)(s + 2)/δ)/(2n)), with Π_S labelings of the rows by trees of s splits"
    )
    inputs = {"splits": splits, "cuts": cuts, "ln growth": log_growth}
    checks = (Check("splits compare one column with a threshold", True, f"{splits} splits"),)
    return Draft("growth function on the rows", at(evidence.n), error, delta, statement, _VC, inputs, checks, at)


def tree_description(evidence: Evidence, delta: float) -> Draft | str:
    """Minimum description length: a prefix code of shape, columns, thresholds and labels."""
    splits = _splits_of(evidence.model)
    if splits is None:
        return "trees: splits on categories are not coded"
    n = evidence.n
    d = int(evidence.model.n_features_in_)
    K = len(evidence.classes) if evidence.classes is not None else 2
    error = float(evidence.losses.mean())
    X = rows_of(evidence)
    binary = not sp.issparse(X) and bool(np.isin(X, (0.0, 1.0)).all())
    if binary and K == 2:
        nodes = 2 * splits + 1

        def at(m: int) -> float:
            return bounds.tree_bound(error, m, nodes, d, delta)

        statement = "R ≤ R̂ + √(((t + 1) log₂(d + 3) + ln(2/δ))/(2n)), t nodes over d columns of zeros and ones"
        inputs: dict[str, Any] = {"nodes": nodes, "columns": d}
    else:
        each = 1.0 + math.log2(d) + 1.0  # split or leaf, column, where missing values go
        bits = splits * each + threshold_bits(_thresholds_of(evidence.model)) + (splits + 1) * (1.0 + math.log2(K))
        nats = bits * math.log(2.0)

        def at(m: int) -> float:
            return bounds.description_bound(error, m, nats, delta)

        statement = "R ≤ kl⁻¹(R̂, (L + ln(1/δ))/n), with a prefix code of L nats: at most 65 bits per threshold"
        inputs = {"splits": splits, "bits": bits}
    source = "S. Shalev-Shwartz and S. Ben-David, Understanding Machine Learning, 2014, §18.1"
    checks = (Check("the code was fixed beforehand", True, "shape, column, threshold, label"),)
    return Draft("description length (MDL)", at(n), error, delta, statement, source, inputs, checks, at)


def threshold_bits(thresholds: Any) -> float:
    """Return the bits of a prefix code of some numbers: short ones such as ½ cost less than 64 bits.

    One bit tells the two forms apart. The long form is the number's 64 bits. The short form is sign and exponent (12
    bits), how many bits of the fraction follow (6 bits), and these, up to the last that is not zero.
    """
    words = np.ascontiguousarray(thresholds, dtype=np.float64).view(np.uint64)
    fraction = words & np.uint64(2**52 - 1)
    lowest = (fraction & (~fraction + np.uint64(1))).astype(np.float64)  # 2 to the number of zeros at the end
    zeros = np.where(fraction == 0, 52.0, np.log2(np.maximum(lowest, 1.0)))
    return float(np.minimum(65.0, 1.0 + 12.0 + 6.0 + 52.0 - zeros).sum())


def _thresholds_of(model: Any) -> Array:
    """Return the thresholds of the splits of a single tree."""
    tree = getattr(model, "trees_", None)
    if tree is None:
        tree = model.tree_
    return np.asarray(tree.threshold, dtype=np.float64)[np.asarray(tree.feature) >= 0]


def boosted_growth(evidence: Evidence, delta: float) -> Draft | str:
    """Votes of T stumps: labelings of the stumps, times those of halfspaces in T dimensions."""
    found = _stumps(evidence)
    if isinstance(found, str):
        return found
    T = found
    d = int(evidence.model.n_features_in_)
    error = float(evidence.losses.mean())

    def log_growth(m: int) -> float:
        return T * vc.Stumps(d).log_growth(m) + vc.Halfspaces(T, through_origin=True).log_growth(m)

    def at(m: int) -> float:
        return vc.relative_bound(error, m, log_growth(2 * m), delta)

    statement = "(R − R̂)/√R ≤ 2√A, A = (T ln Π_stumps(2n) + ln Π_halfspaces(2n) + ln(4/δ))/n"
    inputs = {"rounds": T, "ln growth(2n)": log_growth(2 * evidence.n)}
    checks = (Check("at most n_estimators stumps vote", True, f"{T} rounds"),)
    return Draft("growth of boosted stumps", at(evidence.n), error, delta, statement, _VC, inputs, checks, at)


def boosted_dimension(evidence: Evidence, delta: float) -> Draft | str:
    """Bound by the textbook's VC dimension of boosted classes."""
    found = _stumps(evidence)
    if isinstance(found, str):
        return found
    dimension = math.ceil(vc.boosted_dimension(found, int(vc.Stumps(int(evidence.model.n_features_in_)).vc_dimension)))
    error = float(evidence.losses.mean())

    def at(m: int) -> float:
        return error + vc.vc_bound(m, dimension, delta, classic=False)

    statement = "R ≤ R̂ + √(2d ln(en/d)/n) + √(ln(1/δ)/(2n)), d = T(d₀ + 1)(3 ln(T(d₀ + 1)) + 2)"
    inputs = {"rounds": found, "dimension": dimension}
    source = "S. Shalev-Shwartz and S. Ben-David, Understanding Machine Learning, 2014, lemma 10.3"
    checks = (Check("at most n_estimators stumps vote", True, f"{found} rounds"),)
    return Draft("VC dimension of boosted stumps", at(evidence.n), error, delta, statement, source, inputs, checks, at)


def boosted_margin(evidence: Evidence, delta: float) -> Draft | str:
    """Margins of the vote; the convex hull of stumps has the Rademacher average of the stumps."""
    found = _stumps(evidence)
    if isinstance(found, str):
        return found
    n = evidence.n
    margins = np.asarray(evidence.model.margins(evidence.X, evidence.y), dtype=np.float64)
    log_growth = math.log(2.0 * count_cuts(rows_of(evidence)) + 2.0)
    average = math.sqrt(2.0 * log_growth / n)
    value, theta = bounds.margin_bound(margins, average, delta, THETAS)
    empirical = float(np.clip(1.0 - margins / theta, 0.0, 1.0).mean())

    def at(m: int) -> float:
        slack = math.sqrt(math.log(2.0 * len(THETAS) / delta) / 2.0)
        spread = 3.0 * slack * (1.0 / math.sqrt(m) - 1.0 / math.sqrt(n))
        return bounds.margin_bound(margins, average * math.sqrt(n / m), delta, THETAS)[0] + spread

    statement = "R ≤ n⁻¹ Σ φ(γᵢ/θ) + (2/θ)√(2 ln Π_S/n) + 3√(ln(2m/δ)/(2n)), over m = 21 margins θ fixed beforehand"
    inputs = {"theta": theta, "mean ramp loss": empirical, "ln labelings by stumps": log_growth}
    source = "R. Schapire, Y. Freund, P. Bartlett and W. Lee, 1998; V. Koltchinskii and D. Panchenko, 2002"
    checks = (Check("votes are a convex combination of stumps", True, "weights are positive and sum to one"),)
    return Draft("margin of the vote", value, empirical, delta, statement, source, inputs, checks, at)


def vote_first_order(evidence: Evidence, delta: float) -> Draft | str:
    """PAC-Bayes-kl of the members on rows out of their bags; the vote errs at most twice as often."""
    found = out_of_bag_losses(evidence)
    if isinstance(found, str):
        return found
    losses, seen = found
    counts = seen.sum(axis=1)
    n = int(counts.min())
    risk = float((losses.sum(axis=1) / counts).mean())
    share = n / evidence.n

    def at(m: int) -> float:
        return 2.0 * bounds.pac_bayes_bound(risk, max(1, int(share * m)), 0.0, delta)

    statement = "R ≤ 2 kl⁻¹(R̂, ln(2√n/δ)/n), R̂ the mean loss of the members out of their bags, n the fewest rows of one"
    inputs = {"members": len(losses), "mean loss": risk, "fewest rows": n}
    return Draft("PAC-Bayes, out of bag", at(evidence.n), risk, delta, statement, _VOTE_SOURCE, inputs, (_bags(),), at)


def vote_tandem(evidence: Evidence, delta: float) -> Draft | str:
    """Second order: products of two members' losses, on rows out of both bags."""
    found = _tandem(evidence)
    if isinstance(found, str):
        return found
    tandem, n = found
    share = n / evidence.n

    def at(m: int) -> float:
        return bounds.tandem_bound(tandem, max(1, int(share * m)), 0.0, delta)

    statement = (
        "R ≤ 4 kl⁻¹(T̂, ln(2√n/δ)/n), T̂ the mean product of two members' losses, n the fewest rows out of two bags"
    )
    inputs = {"tandem loss": tandem, "fewest rows": n}
    return Draft("tandem, out of bag", at(evidence.n), tandem, delta, statement, _VOTE_SOURCE, inputs, (_bags(),), at)


def vote_c_bound(evidence: Evidence, delta: float) -> Draft | str:
    """C-bound: Cantelli's inequality for the margin of the vote, with both moments bounded at δ/2."""
    first = out_of_bag_losses(evidence)
    second = _tandem(evidence)
    if isinstance(first, str):
        return first
    if isinstance(second, str):
        return second
    losses, seen = first
    counts = seen.sum(axis=1)
    n = int(counts.min())
    risk = float((losses.sum(axis=1) / counts).mean())
    tandem, n_pairs = second

    def at(m: int) -> float:
        rows = max(1, int(n / evidence.n * m))
        pairs = max(1, int(n_pairs / evidence.n * m))
        low = bounds.pac_bayes_lower(risk, rows, 0.0, delta / 2.0)
        high = bounds.pac_bayes_bound(risk, rows, 0.0, delta / 2.0)
        top = bounds.tandem_bound(tandem, pairs, 0.0, delta / 2.0) / 4.0
        return bounds.worst_c_bound(low, high, min(1.0, top))

    statement = "R ≤ 1 − (1 − 2R_ρ)²/(1 − 4R_ρ + 4T_ρ), the worst over what PAC-Bayes-kl allows R_ρ and T_ρ"
    inputs = {"mean loss": risk, "tandem loss": tandem, "fewest rows": n_pairs}
    source = "P. Germain, A. Lacasse, F. Laviolette, M. Marchand and J.-F. Roy, JMLR 16, 2015"
    return Draft("C-bound, out of bag", at(evidence.n), risk, delta, statement, source, inputs, (_bags(),), at)


def out_of_bag_losses(evidence: Evidence) -> tuple[Array, Any] | str:
    """Return each member's losses 1 − p(y) on rows out of its bag, zero elsewhere, and which rows those are.

    The vote by mean probabilities errs on a row only where the mean of 1 − p(y) is at least ½.
    """
    found: tuple[Array, Any] | str = evidence.once("out of bag", lambda: _out_of_bag_losses(evidence))
    return found


def _out_of_bag_losses(evidence: Evidence) -> tuple[Array, Any] | str:
    model = evidence.model
    if evidence.classes is None:
        return "votes: for classifiers only"
    if np.asarray(evidence.codes).min() < 0:
        return "votes: y has labels that the model does not know"
    if not getattr(model, "bootstrap", False) and getattr(model, "max_samples", None) in (None, 1.0):
        return "votes: every member has seen every row; set bootstrap=True"
    if getattr(model, "class_weight", None) == "balanced":
        return "votes: class_weight='balanced' reads the labels of all rows; 'balanced_subsample' does not"
    if getattr(model, "max_bins", None):
        return "votes: columns were binned on all rows, those out of the bags included"
    samples = model.estimators_samples_
    n = evidence.n
    seen = np.ones((len(samples), n), dtype=bool)
    losses = np.zeros((len(samples), n))
    X = rows_of(evidence)
    codes = np.asarray(evidence.codes)
    trees = getattr(model, "trees_", None)
    for t, rows in enumerate(samples):
        seen[t, np.asarray(rows)] = False
        out = np.flatnonzero(seen[t])
        if len(out) == 0:
            return "votes: a member has no row out of its bag"
        shares = trees.tree(t).mean(X[out]) if trees is not None else _member_shares(model, t, X[out])
        losses[t, out] = 1.0 - shares[np.arange(len(out)), codes[out]]
    return np.clip(losses, 0.0, 1.0), seen


def count_cuts(X: Any) -> int:
    """Return how many cuts of one column separate the rows: distinct values minus one, summed."""
    if sp.issparse(X):
        X = X.tocsc()
        return sum(len(np.union1d(X.data[X.indptr[j] : X.indptr[j + 1]], [0.0])) - 1 for j in range(X.shape[1]))
    dense = np.sort(np.asarray(X, dtype=np.float64), axis=0)
    return int((dense[1:] != dense[:-1]).sum())


def _member_shares(model: Any, t: int, X: Any) -> Array:
    member = model.estimators_[t]
    part = X[:, np.asarray(model.estimators_features_[t])]
    K = len(model.classes_)
    known = np.asarray(member.classes_, dtype=np.int64)
    shares = np.zeros((X.shape[0], K))
    if hasattr(member, "predict_proba"):
        shares[:, known] = member.predict_proba(part)
    else:
        shares[np.arange(X.shape[0]), np.asarray(member.predict(part), dtype=np.int64)] = 1.0
    return shares


def _tandem(evidence: Evidence) -> tuple[float, int] | str:
    found: tuple[float, int] | str = evidence.once("tandem", lambda: _tandem_of(evidence))
    return found


def _tandem_of(evidence: Evidence) -> tuple[float, int] | str:
    found = out_of_bag_losses(evidence)
    if isinstance(found, str):
        return found
    losses, seen = found
    weights = seen.astype(np.float64)
    overlaps = weights @ weights.T
    if overlaps.min() < 1.0:
        return "tandem: two members share no row out of their bags"
    products = losses @ losses.T
    return float((products / overlaps).mean()), int(overlaps.min())


def _bags() -> Check:
    return Check("members were fitted to their bags alone", True, "bags are drawn again from the seed")


def _splits_of(model: Any) -> int | None:
    """Return the number of splits of a single tree on numbers; None if it splits on categories."""
    tree = getattr(model, "trees_", None)
    if tree is None:
        tree = getattr(model, "tree_", None)
    feature = np.asarray(getattr(tree, "feature", np.empty(0)))
    category = np.asarray(getattr(tree, "category", np.full(len(feature), -1)))
    if tree is None or len(feature) == 0 or (category >= 0).any():
        return None
    return int((feature >= 0).sum())


def _stumps(evidence: Evidence) -> int | str:
    model = evidence.model
    if getattr(model, "stumps_", None) is None or getattr(model, "variant", "") != "discrete":
        return "boosting: counted for discrete votes of stumps only"
    if evidence.classes is None or len(evidence.classes) != 2 or np.asarray(evidence.codes).min() < 0:
        return "boosting: for two known classes only"
    return int(model.n_estimators)


# --------------------------------------------------------------------------------------------------------------------
# Which bounds are tried for which model.

Candidate = Callable[[Evidence, float], "Draft | str"]

_LINEAR: tuple[Candidate, ...] = (
    description,
    linear.growth_relative,
    linear.growth_uniform,
    linear.growth_on_sample,
    linear.rademacher_margin,
    linear.covering_margin,
    linear.dudley_margin,
    linear.pac_bayes_margin,
)
_KERNEL: tuple[Candidate, ...] = (linear.rademacher_margin, linear.pac_bayes_margin)
_SVM: tuple[Candidate, ...] = (*_KERNEL, linear.compression_svm)
_TREE: tuple[Candidate, ...] = (tree_description, tree_growth, tree_growth_on_rows)
_VOTES: tuple[Candidate, ...] = (vote_first_order, vote_tandem, vote_c_bound)
_BOOSTED: tuple[Candidate, ...] = (boosted_growth, boosted_dimension, boosted_margin)
_QUADRATIC: tuple[Candidate, ...] = (description, linear.growth_relative, linear.growth_uniform)
_FUNCTION: tuple[Candidate, ...] = (description, linear.norm_regression)
_FILE: tuple[Candidate, ...] = (description,)

CANDIDATES: dict[str, tuple[Candidate, ...]] = {
    "LogisticRegression": _LINEAR,
    "LogisticRegressionCV": _LINEAR,
    "BestSubsetClassifier": _LINEAR,
    "RidgeClassifier": _LINEAR,
    "RidgeClassifierCV": _LINEAR,
    "LinearSVC": _LINEAR,
    "LinearDiscriminantAnalysis": _LINEAR,
    "Perceptron": (*_LINEAR, linear.compression_perceptron, online_pass),
    "GaussianNB": _QUADRATIC,
    "QuadraticDiscriminantAnalysis": _QUADRATIC,
    "SVC": _SVM,
    "NuSVC": _KERNEL,
    "KernelLogisticRegression": _KERNEL,
    "KernelRidgeClassifier": _KERNEL,
    "DecisionTreeClassifier": _TREE,
    "RandomForestClassifier": _VOTES,
    "ExtraTreesClassifier": _VOTES,
    "BaggingClassifier": _VOTES,
    "AdaBoostClassifier": _BOOSTED,
    "KNeighborsClassifier": (neighbours,),
    "MLPClassifier": (linear.network_margin, description),
    "LinearRegression": _FUNCTION,
    "Ridge": (*_FUNCTION, linear.stability_ridge),
    "RidgeCV": (*_FUNCTION, linear.stability_ridge),
    "Lasso": _FUNCTION,
    "LassoCV": _FUNCTION,
    "BestSubset": _FUNCTION,
    "ForwardStepwise": _FUNCTION,
    "BackwardStepwise": _FUNCTION,
    "ForwardStagewise": _FUNCTION,
    "LassoLars": _FUNCTION,
    **dict.fromkeys(("NonconvexRegression", "Lars", "LarsCV", "LassoLarsCV", "LassoLarsIC"), _FUNCTION),
    **dict.fromkeys(("OrthogonalMatchingPursuit", "OrthogonalMatchingPursuitCV"), _FUNCTION),
    "ElasticNet": _FUNCTION,
    "ElasticNetCV": _FUNCTION,
    "LinearSVR": _FUNCTION,
    "BayesianLinearRegression": _FUNCTION,
    "KernelRidge": (linear.stability_ridge,),
    "KernelRidgeCV": (linear.stability_ridge,),
}

#: Models whose file holds the rows, or one number per row and tree: no code of it is shorter than the labels.
LONG_FILES = {
    "RandomForestRegressor",
    "ExtraTreesRegressor",
    "BaggingRegressor",
    "KNeighborsRegressor",
    "GaussianProcessRegressor",
    "GaussianProcessClassifier",
    "SVR",
    "NuSVR",
}


def candidates_of(model: Any) -> tuple[Candidate, ...] | str:
    """Return the bounds that are tried for a model; or why there are none."""
    name = type(model).__name__
    if name == "KNeighborsClassifier" and model.n_neighbors == 1 and model.n_features_in_ <= MOST_VORONOI_COLUMNS:
        return (*CANDIDATES[name], neighbours_compression)  # its setting and the number of columns are no draw
    if name in CANDIDATES:
        return CANDIDATES[name]
    if name in LONG_FILES:
        return f"{name} holds the training rows, or as much: no training-set bound is known that is not vacuous"
    return _FILE
