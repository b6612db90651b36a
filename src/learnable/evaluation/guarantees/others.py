"""Training-set bounds by the length of the model file, and of nearest neighbours by leave-one-out."""

from __future__ import annotations

import math
import tempfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from ...core.errors import LearnableError
from ...core.model_file import save
from ...data.door import read_features
from ...theory import bounds
from ...theory.concentration import Check
from .draft import Draft
from .evidence import Evidence

_OCCAM = "A. Blumer, A. Ehrenfeucht, D. Haussler and M. Warmuth, Occam's razor, 1987; J. Langford, JMLR 6, 2005, §4"


#: A pass is a loop over rows: a tenth of a second for so many.
MOST_ONLINE_ROWS = 50_000
#: Models whose predictions are a fixed function of weights and intercepts; a wrapper may hold more.
LINEAR_CODE = {
    *("LinearRegression", "Ridge", "RidgeCV", "Lasso", "LassoCV", "ElasticNet", "ElasticNetCV", "LinearSVR"),
    *("BestSubset", "ForwardStepwise", "BackwardStepwise", "ForwardStagewise", "LassoLars"),
    *("BayesianLinearRegression", "PoissonRegressor", "GammaRegressor", "TweedieRegressor"),
    *("Lars", "LarsCV", "LassoLarsCV", "LassoLarsIC", "OrthogonalMatchingPursuit", "OrthogonalMatchingPursuitCV"),
    "NonconvexRegression",
    "StepwiseGLM",
    "BestSubsetClassifier",
    *("LogisticRegressionCV", "RidgeClassifier", "RidgeClassifierCV"),
    *("LogisticRegression", "LinearSVC", "Perceptron", "LinearDiscriminantAnalysis"),
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


def neighbours(evidence: Evidence, delta: float) -> Draft | str:
    """Leave-one-out errors of nearest neighbours, by the variance of their distance from the risk."""
    model = evidence.model
    if evidence.classes is None or np.asarray(evidence.codes).min() < 0:
        return "leave-one-out: for known classes only"
    if not isinstance(model.weights, str):
        return "leave-one-out: weights are a function, which may look at all rows"
    k = int(model.n_neighbors)
    n = evidence.n
    if n <= k + 1:
        return "leave-one-out: too few rows"
    distance, index = model.kneighbors()  # of the fitted rows, each without itself
    votes = np.zeros((n, len(evidence.classes)))
    weight = np.ones_like(distance)
    if model.weights == "distance":
        exact = distance == 0.0
        with np.errstate(divide="ignore"):
            weight = np.where(exact.any(axis=1, keepdims=True), exact.astype(np.float64), 1.0 / distance)
    codes = np.asarray(evidence.codes)
    for column in range(index.shape[1]):
        np.add.at(votes, (np.arange(n), codes[index[:, column]]), weight[:, column])
    error = float((votes.argmax(axis=1) != codes).mean())

    def at(m: int) -> float:
        return bounds.neighbours_bound(error, m, k, delta)

    statement = "R ≤ R̂_loo + √(s/δ), by E(R̂_loo − R)² ≤ s = 1/n + 4k/(n − 1) + 4k/n and Markov's inequality"
    source = "W. Rogers and T. Wagner, 1978; L. Devroye, L. Györfi and G. Lugosi, 1996, theorem 24.2"
    checks = (Check("k was fixed beforehand", None, f"k = {k}; a k chosen on these rows needs choices= their number"),)
    return Draft(
        "leave-one-out", at(n), error, delta, statement, source, {"k": k, "leave-one-out error": error}, checks, at
    )


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
