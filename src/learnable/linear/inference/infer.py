r"""Standard errors, tests, intervals and influence of an unpenalised likelihood fit.

With the information I = Σᵢ sᵢ (dμ/dη)²/V(μᵢ) x̃ᵢx̃ᵢᵀ and the scores vᵢ = sᵢ (yᵢ − μᵢ)/V(μᵢ) · dμ/dη · x̃ᵢ for φ = 1,

    classical      φ I⁻¹                          the model's variance is right
    observed       the same with the second derivatives themselves in place of their expectation
    HC0            I⁻¹ (Σ vᵢvᵢᵀ) I⁻¹               only its mean is
    HC1, HC2, HC3  the same with n/(n − p), vᵢ/√(1 − hᵢ), vᵢ/(1 − hᵢ),   hᵢ the leverage
    cluster        I⁻¹ (Σ_c V_cV_cᵀ) I⁻¹ · G/(G − 1) · (n − 1)/(n − p),   V_c the sum over cluster c of G

A weight is a precision (the row is a mean of s observations, n counts rows) or a frequency (the row stands s times,
n = Σ sᵢ). Where φ is estimated, by Pearson's χ²/(n − p), statistics are compared with Student's t and F, else with the
normal and χ².

Reference: J. MacKinnon and H. White, J. Econometrics 29 (1985); K.-Y. Liang and S. Zeger, Biometrika 73 (1986).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import log_softmax
from sklearn.utils.validation import check_is_fitted

from ...core.errors import DataError, ParameterError
from ...data.blocks import map_reduce
from ...data.door import is_external, read_features
from ...data.sources import named_columns
from .design import (
    Design,
    check_independent,
    cluster_products,
    design_of,
    inverse_of,
    leverages,
    score_products,
    triangle,
)
from .families import BINOMIAL, LINKS, NORMAL, Family, Link, family_of_power
from .refusals import check_is_finite, check_is_maximum, complete_clusters, refuse_penalised
from .summary import Inference

Array = NDArray[np.float64]
Covariance = Literal["classical", "observed", "HC0", "HC1", "HC2", "HC3", "cluster"]

COVARIANCES = ("classical", "observed", "HC0", "HC1", "HC2", "HC3", "cluster")
WEIGHTS = ("precision", "frequency")


def infer(
    model: Any,
    X: Any,
    y: Any,
    *,
    sample_weight: Any = None,
    covariance: Covariance = "classical",
    clusters: Any = None,
    weights: Literal["precision", "frequency"] = "precision",
    level: float = 0.95,
    names: Sequence[str] | None = None,
) -> Inference:
    """Return what the rows of a fit say about its coefficients.

    Parameters
    ----------
    model : LinearRegression, LogisticRegression, PoissonRegressor, GammaRegressor, TweedieRegressor or GLM
        Fitted to these rows without a penalty: `C=np.inf`, `alpha=0`.
    X, y, sample_weight : arrays, or a dataframe and names of columns
        The rows of the fit.
    covariance : {"classical", "observed", "HC0", "HC1", "HC2", "HC3", "cluster"}
        Whether the variance that the model states is believed ("observed" as well, which differs where the link is not
        canonical and is what Stata prints); "HC" only believes its mean and that rows are
        independent, "cluster" that clusters are.
    clusters : array of shape (n_samples,) or str
        The cluster of each row, for `covariance="cluster"`.
    weights : {"precision", "frequency"}
        What a weight of 2 means: an observation of half the variance, or two equal rows.
    level : float
        Level of the confidence intervals that are printed.
    names : sequence of str, optional
        Names of the columns.

    Returns
    -------
    Inference
        Estimates, standard errors, tests, intervals, leverage and influence; it prints as a table.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable import PoissonRegressor, infer
    >>> X, y = np.arange(6.0)[:, None], np.array([1, 1, 2, 4, 4, 9])
    >>> found = infer(PoissonRegressor(alpha=0).fit(X, y), X, y)
    >>> found.std_error.round(3)
    array([0.611, 0.154])
    """
    if covariance not in COVARIANCES:
        raise ParameterError(f"infer: covariance must be one of {', '.join(COVARIANCES)}; got {covariance!r}.")
    if weights not in WEIGHTS:
        raise ParameterError(f"infer: weights must be 'precision' or 'frequency'; got {weights!r}.")
    if (covariance == "cluster") != (clusters is not None):
        raise ParameterError("infer: clusters and covariance='cluster' come together; one of them is missing.")
    terms = row_terms(model, X, y, sample_weight, clusters, names)
    return _conclude(terms, covariance, weights, level)


class RowTerms(NamedTuple):
    """A fit seen row by row. m scores per row: one, or with K > 2 classes K − 1."""

    model: Any
    family: Family | None  #: None for several classes
    link: Link | None
    design: Design
    names: list[str]
    estimate: Array  #: (m·p,), score by score, the intercept first
    y: Array  #: (n,)
    mean: Array  #: (n,) or (n, K)
    weight: Array  #: (n,)
    scores: Array  #: (n, m), uᵢ: derivative of the weighted log-likelihood by the score, φ = 1
    curvature: Array  #: (n, m, m), minus its expected second derivative
    cluster: NDArray[Any] | None
    offset: Array  #: (n,) or zero


def row_terms(
    model: Any, X: Any, y: Any, sample_weight: Any = None, clusters: Any = None, names: Sequence[str] | None = None
) -> RowTerms:
    """Return the scores and the curvature of every row with positive weight at the fitted coefficients."""
    owner = "infer"
    check_is_fitted(model)
    if is_external(X):
        raise DataError("infer: rows on disk or on Dask are not read here; pass them in memory, or a sample of them.")
    refuse_penalised(model)
    if isinstance(clusters, str):
        clusters = np.asarray(X[clusters])
    X, y, sample_weight = named_columns(owner, X, y, sample_weight)
    features = read_features(model, X)
    n = features.shape[0]
    y = np.asarray(y).ravel()
    weight = np.ones(n) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64).ravel()
    for name, values in (("y", y), ("sample_weight", weight), ("clusters", clusters)):
        if values is not None and len(values) != n:
            raise DataError(f"infer: {name} must have one entry per row, {n}; it has {len(values)}.")
    if not ((weight >= 0) & np.isfinite(weight)).all() or not weight.any():
        raise DataError("infer: weights must be finite, not negative, and not all zero.")
    kept = weight > 0
    if not kept.all():
        features = features[np.flatnonzero(kept)]
        y = y[kept]
        weight = weight[kept]
        clusters = None if clusters is None else np.asarray(clusters)[kept]
    columns = _names(model, names)
    free = free_columns(model)
    design = design_of(features, free, bool(model.fit_intercept))
    labels = (["(intercept)"] if model.fit_intercept else []) + [columns[j] for j in free]
    cluster = None if clusters is None else _numbered(complete_clusters(np.asarray(clusters)))
    if hasattr(model, "classes_"):
        return _class_terms(model, features, y, weight, design, labels, cluster)
    family, link = family_and_link(model)
    y = y.astype(np.float64)
    family.check(owner, y)
    coef = np.asarray(model.coef_, dtype=np.float64)
    if coef.ndim != 1:
        raise DataError("infer: models of several targets are read one target at a time; fit one column of y.")
    eta = np.asarray(features @ coef + model.intercept_)
    offset = offset_of(model, features)
    estimate = np.r_[[float(model.intercept_)] if model.fit_intercept else [], coef[free]]
    scores, curvature = score_terms(family, link, y, eta, weight)
    mean = link.mean(eta)
    return RowTerms(
        model,
        family,
        link,
        design,
        labels,
        estimate,
        y,
        mean,
        weight,
        scores[:, None],
        curvature[:, None, None],
        cluster,
        offset,
    )


def _numbered(clusters: NDArray[Any]) -> NDArray[np.int64]:
    """Return clusters as numbers from zero on; small integers are counted, not sorted."""
    if clusters.dtype.kind in "iu" and clusters.ndim == 1 and len(clusters):
        low = int(clusters.min())
        if int(clusters.max()) - low <= 4 * len(clusters):
            place = (clusters - low).astype(np.int64)
            return np.asarray(np.cumsum(np.bincount(place) > 0) - 1, dtype=np.int64)[place]
    return np.asarray(np.unique(clusters, return_inverse=True)[1].ravel(), dtype=np.int64)


def score_terms(family: Family, link: Link, y: Array, eta: Array, weight: Array) -> tuple[Array, Array]:
    """Return derivative and minus expected second derivative of the log-likelihood by η, for φ = 1."""
    mean = link.mean(eta)
    slope = link.slope(eta)
    variance = family.variance(mean)
    if link.name == family.canonical:  # then slope and variance cancel, also where both vanish
        sign = -1.0 if link.name == "inverse" else 1.0
        return sign * weight * (y - mean), weight * np.abs(slope)
    return weight * (y - mean) * slope / variance, weight * slope * slope / variance


def observed_curvature(terms: RowTerms) -> Array:
    """Return minus the second derivative of the log-likelihood by η, for φ = 1."""
    family = terms.family
    link = terms.link
    assert family is not None
    assert link is not None
    if link.name == family.canonical:
        return terms.curvature[:, 0, 0]
    eta = link.score(terms.mean)
    V = family.variance(terms.mean)
    slope = link.slope(eta)
    bend = (link.bend(eta) - slope**2 * family.variance_slope(terms.mean) / V) / V
    return terms.curvature[:, 0, 0] - terms.weight * (terms.y - terms.mean) * bend


def _class_terms(
    model: Any, X: Any, y: Array, weight: Array, design: Design, labels: list[str], cluster: Any
) -> RowTerms:
    """Return the terms of a logistic regression; with K > 2 classes, of the contrasts to the first class."""
    classes = model.classes_
    code = np.searchsorted(classes, y)
    known = code < len(classes)
    known[known] = classes[code[known]] == y[known]
    if not known.all():
        raise DataError(f"infer: y has the label {y[~known][0]!r}, which the model was not fitted to.")
    coef = model.coef_.toarray() if sp.issparse(model.coef_) else np.asarray(model.coef_, dtype=np.float64)
    intercept = np.broadcast_to(np.asarray(model.intercept_, dtype=np.float64), (len(coef),))
    eta = np.asarray(X @ coef.T) + intercept
    if len(classes) == 2:
        truth = code.astype(np.float64)
        scores, curvature = score_terms(BINOMIAL, LINKS["logit"], truth, eta[:, 0], weight)
        estimate = np.r_[intercept if model.fit_intercept else [], coef[0]]
        mean = LINKS["logit"].mean(eta[:, 0])
        return RowTerms(
            model,
            BINOMIAL,
            LINKS["logit"],
            design,
            labels,
            estimate,
            truth,
            mean,
            weight,
            scores[:, None],
            curvature[:, None, None],
            cluster,
            np.zeros(len(mean)),
        )
    p = np.exp(log_softmax(eta, axis=1))
    truth = np.eye(len(classes))[code]
    others = p[:, 1:]
    curvature = weight[:, None, None] * (
        np.eye(others.shape[1]) * others[:, :, None] - others[:, :, None] * others[:, None, :]
    )
    theta = np.column_stack([intercept, coef]) if model.fit_intercept else coef
    names = [f"{label}: {name}" for label in classes[1:] for name in labels]
    scores = weight[:, None] * (truth - p)[:, 1:]
    estimate = (theta[1:] - theta[0]).ravel()
    return RowTerms(
        model,
        None,
        None,
        design,
        names,
        estimate,
        code.astype(float),
        p,
        weight,
        scores,
        curvature,
        cluster,
        np.zeros(len(p)),
    )


def information_factor(terms: RowTerms) -> Array:
    """Return upper triangular F with FᵀF the expected information of all coefficients, for φ = 1."""
    design = terms.design
    m = terms.scores.shape[1]
    n_jobs = getattr(terms.model, "n_jobs", None)
    if m == 1:
        R = triangle(design, terms.curvature[:, 0, 0], n_jobs)
        check_independent("infer", R, terms.names)
        return R
    R = triangle(design, terms.weight, n_jobs)
    check_independent("infer", R, terms.names)
    inverse = inverse_of(R)
    rows = np.vstack([design.rows(design.blocks[k]) for k in range(len(design.blocks))]) @ inverse
    p = design.width
    J = np.empty((m * p, m * p))
    for a in range(m):
        for b in range(a + 1):
            block = rows.T @ (terms.curvature[:, a, b, None] * rows)
            J[a * p : (a + 1) * p, b * p : (b + 1) * p] = block
            J[b * p : (b + 1) * p, a * p : (a + 1) * p] = block.T
    try:
        L = np.linalg.cholesky(J)
    except np.linalg.LinAlgError as error:
        raise DataError(
            "infer: the information matrix is singular: some class has no rows that tell it apart."
        ) from error
    return np.asarray(L.T @ np.kron(np.eye(m), R))


def _conclude(terms: RowTerms, covariance: Covariance, weights: str, level: float) -> Inference:
    n_jobs = getattr(terms.model, "n_jobs", None)
    width = len(terms.estimate)
    count = float(terms.weight.sum()) if weights == "frequency" else float(len(terms.y))
    df = count - width
    family = terms.family
    known = family is None or family.knows_dispersion
    if df <= 0 and not (known and covariance in ("classical", "observed")):
        raise DataError(
            f"infer: {count:g} rows and {width} coefficients leave no degrees of freedom for the noise; get more rows "
            "or fewer columns."
        )
    F = information_factor(terms)
    inverse = inverse_of(F)
    fit = fit_statistics(terms, count, df, precision=weights == "precision")
    check_is_maximum(terms, inverse, fit.dispersion)
    curvature = terms.curvature[:, 0, 0] if terms.scores.shape[1] == 1 else None
    leverage = None if curvature is None else leverages(terms.design, inverse, curvature, n_jobs)
    if leverage is not None:
        check_is_finite(terms, leverage)
    test_df = np.inf if known else df
    if covariance == "classical" or (covariance == "observed" and family is None):
        half = np.sqrt(fit.dispersion) * inverse
        matrix = half @ half.T
    elif covariance == "observed":
        matrix = fit.dispersion * _inverse_observed(terms, inverse)
    else:
        scores = terms.scores / np.sqrt(terms.weight)[:, None] if weights == "frequency" else terms.scores
        if covariance in ("HC2", "HC3"):
            if leverage is None:
                raise ParameterError("infer: HC2 and HC3 are for one score; with several classes use HC0 or HC1.")
            own = leverage / terms.weight if weights == "frequency" else leverage
            free = np.maximum(1.0 - own, np.finfo(float).eps)
            scores = scores / (np.sqrt(free) if covariance == "HC2" else free)[:, None]
        if covariance == "cluster":
            assert terms.cluster is not None
            groups = int(terms.cluster.max()) + 1
            if groups < 2:
                raise DataError("infer: clustered errors need at least two clusters; all rows are in one.")
            full = terms.scores
            meat = cluster_products(terms.design, full, terms.cluster, groups, n_jobs)
            meat *= groups / (groups - 1.0) * (count - 1.0) / (count - width)
            test_df = np.inf if known else groups - 1.0
        else:
            meat = score_products(terms.design, scores, n_jobs)
            meat *= count / df if covariance == "HC1" else 1.0
        bread = inverse @ inverse.T
        matrix = bread @ meat @ bread
    matrix = (matrix + matrix.T) / 2
    residual = None
    if family is not None:
        residual = (terms.y - terms.mean) * np.sqrt(terms.weight / family.variance(terms.mean))
    return Inference(
        model=terms.model,
        title=_title(terms),
        names=terms.names,
        estimate=terms.estimate,
        covariance=matrix,
        covariance_kind=covariance,
        df=test_df,
        level=level,
        n_rows=count,
        df_resid=df,
        dispersion=fit.dispersion,
        deviance=fit.deviance,
        null_deviance=fit.null_deviance,
        log_likelihood=fit.log_likelihood,
        null_log_likelihood=fit.null_log_likelihood,
        n_estimated=width + (0 if known else 1) + extra_parameters(terms.model),
        leverage=leverage,
        pearson=residual,
        family=family,
        link=terms.link,
        design_width=terms.design.width,
        free_columns=terms.design.columns,
    )


def _inverse_observed(terms: RowTerms, inverse: Array) -> Array:
    """Return the inverse of minus the matrix of second derivatives; `inverse` is that of the information's factor."""
    curvature = observed_curvature(terms)

    def part(block: Any) -> Array:
        rows = terms.design.rows(block) @ inverse
        return np.asarray((rows.T * terms.design.cut(curvature, block)) @ rows)

    J = map_reduce(terms.design.blocks, part, lambda a, b: a + b)
    values, vectors = np.linalg.eigh(J)
    if values[0] <= 0:
        raise DataError("infer: the likelihood is not at a maximum here, so its observed information is no covariance.")
    half = inverse @ (vectors / np.sqrt(values))
    return np.asarray(half @ half.T)


class FitStatistics(NamedTuple):
    """How well the model fits the rows."""

    dispersion: float
    deviance: float
    null_deviance: float
    log_likelihood: float
    null_log_likelihood: float


def fit_statistics(terms: RowTerms, count: float, df: float, *, precision: bool = True) -> FitStatistics:
    """Return φ, deviances and log-likelihoods of the model and of the one with an intercept only."""
    s = terms.weight
    if terms.family is None:
        code = terms.y.astype(int)
        shares = np.bincount(code, weights=s, minlength=terms.mean.shape[1]) / s.sum()
        if not terms.model.fit_intercept:
            shares = np.full(len(shares), 1.0 / len(shares))
        chosen = terms.mean[np.arange(len(code)), code]
        ll = float(s @ np.log(np.maximum(chosen, np.finfo(float).tiny)))
        null = float(s @ np.log(shares[code]))
        return FitStatistics(1.0, -2 * ll, -2 * null, ll, null)
    family = terms.family
    link = terms.link
    assert link is not None
    null_mean = _null_mean(terms)
    if family is BINOMIAL:
        return _binomial_statistics(terms, null_mean)
    deviance = float(s @ family.deviance(terms.y, terms.mean))
    null_deviance = float(s @ family.deviance(terms.y, null_mean))
    if family.knows_dispersion:
        ll = float(s @ family.log_likelihood(terms.y, terms.mean, 1.0))
        null = float(s @ family.log_likelihood(terms.y, null_mean, 1.0))
        return FitStatistics(1.0, deviance, null_deviance, ll, null)
    pearson = float(s @ ((terms.y - terms.mean) ** 2 / family.variance(terms.mean)))
    null_pearson = float(s @ ((terms.y - null_mean) ** 2 / family.variance(null_mean)))
    dispersion = pearson / df if df > 0 else np.nan
    ll = _weighted_likelihood(
        terms, terms.mean, pearson / count if family is NORMAL else dispersion, precision=precision
    )
    null = _weighted_likelihood(
        terms, null_mean, null_pearson / count if family is NORMAL else dispersion, precision=precision
    )
    return FitStatistics(dispersion, deviance, null_deviance, ll, null)


def _binomial_statistics(terms: RowTerms, null_mean: Array) -> FitStatistics:
    """Return the same for proportions: deviances are distances from the entropy, and a constant mean needs two logs."""
    s = terms.weight
    y = terms.y
    ll = float(s @ BINOMIAL.log_likelihood(y, terms.mean, 1.0))
    if (null_mean == null_mean[0]).all():
        ones = float(s @ y)
        both = BINOMIAL.log_likelihood(np.array([1.0, 0.0]), np.repeat(null_mean[:1], 2), 1.0)
        null = float(ones * both[0] + (float(s.sum()) - ones) * both[1])
    else:
        null = float(s @ BINOMIAL.log_likelihood(y, null_mean, 1.0))
    entropy = 0.0
    if not ((y == 0.0) | (y == 1.0)).all():
        entropy = float(s @ BINOMIAL.log_likelihood(y, y, 1.0))
    return FitStatistics(1.0, 2.0 * (entropy - ll), 2.0 * (entropy - null), ll, null)


@np.errstate(divide="ignore", invalid="ignore")  # an exact fit has no likelihood to speak of
def _weighted_likelihood(terms: RowTerms, mean: Array, phi: float, *, precision: bool) -> float:
    """Return Σ log p(yᵢ | μᵢ, φ/sᵢ) for precisions, Σ sᵢ log p(yᵢ | μᵢ, φ) for frequencies."""
    s = terms.weight
    assert terms.family is not None
    if precision:
        return float(np.sum(terms.family.log_likelihood(terms.y, mean, phi / s)))
    return float(s @ terms.family.log_likelihood(terms.y, mean, phi))


def _null_mean(terms: RowTerms) -> Array:
    """Return the means of the model without columns: the weighted mean, or with an offset its best constant."""
    family = terms.family
    link = terms.link
    assert family is not None
    assert link is not None
    if not terms.model.fit_intercept:
        with np.errstate(all="ignore"):
            return np.asarray(link.mean(terms.offset.copy()))
    if not terms.offset.any():
        return np.full(len(terms.y), float(terms.weight @ terms.y / terms.weight.sum()))
    b = float(link.score(np.array([terms.weight @ terms.y / terms.weight.sum()]))[0] - terms.offset.mean())
    for _ in range(100):
        u, h = score_terms(family, link, terms.y, terms.offset + b, terms.weight)
        step = float(u.sum() / h.sum())
        b += step
        if abs(step) <= 1e-13 * (1 + abs(b)):
            break
    return np.asarray(link.mean(terms.offset + b))


def _names(model: Any, names: Sequence[str] | None) -> list[str]:
    count = int(model.n_features_in_)
    if names is not None:
        if len(names) != count:
            raise ParameterError(f"infer: names must hold {count} names; got {len(names)}.")
        return [str(name) for name in names]
    return [str(name) for name in getattr(model, "feature_names_in_", [f"x{j}" for j in range(count)])]


def _title(terms: RowTerms) -> str:
    if terms.family is None:
        return f"{type(terms.model).__name__}: multinomial, against class {terms.model.classes_[0]}"
    assert terms.link is not None
    of_class = f", of class {terms.model.classes_[1]}" if hasattr(terms.model, "classes_") else ""
    return f"{type(terms.model).__name__}: {terms.family.name} family, {terms.link.name} link{of_class}"


def family_and_link(model: Any) -> tuple[Family, Link]:
    """Return the family and the link of a fitted model, from its `_generalised` or its variance function."""
    if hasattr(model, "_generalised"):
        family, link = model._generalised()
        return family, link
    if hasattr(model, "_family"):
        power, log_link = model._family()
        return family_of_power(power), LINKS["log" if log_link else "identity"]
    return NORMAL, LINKS["identity"]


def free_columns(model: Any) -> list[int]:
    """Return the columns whose coefficients were estimated: all but an offset and what depends on others."""
    if hasattr(model, "free_columns_"):
        return [int(j) for j in model.free_columns_]
    return list(range(int(model.n_features_in_)))


def offset_of(model: Any, X: Any) -> Array:
    """Return the part of the scores that was not estimated."""
    fixed = getattr(model, "offset_column_", None)
    if fixed is None or fixed < 0:
        return np.zeros(X.shape[0])
    column = X[:, [fixed]]
    return np.asarray(column.toarray() if sp.issparse(column) else column, dtype=np.float64).ravel()


def extra_parameters(model: Any) -> int:
    """Return how many parameters besides coefficients and dispersion were estimated."""
    return int(getattr(model, "estimates_overdispersion_", False))
