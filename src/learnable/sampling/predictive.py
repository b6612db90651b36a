"""Predictions of a posterior: each row's distribution is the mean over draws of the likelihood's.

Nothing is summarised before the end: means, intervals and densities are those of the mixture over all draws.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import expit, gammainc, gammaln, log_expit, log_softmax, logsumexp, ndtr, pdtr, stdtr

from ..core.errors import DataError, ParameterError
from ..data.door import read_features
from .chains import Chains
from .psis import LeaveOneOut, psis_loo

Array = NDArray[np.float64]

#: Draws that a predictive distribution is made of; more would change the third digit of its quantiles.
_MOST_DRAWS = 1000


class Spread(NamedTuple):
    """What predictions need besides the chains."""

    family: str
    spread_name: str | None
    df: float
    n_scores: int
    X: Array
    y: Array
    weight: Array


class Posterior:
    """Draws from the posterior of a linear model, and what they predict; made by `posterior`.

    Attributes
    ----------
    chains : Chains
        "coef", "intercept" and the dispersion ("sigma" or "shape").
    model : estimator
        The fitted model.

    Examples
    --------
    >>> import numpy as np
    >>> import learnable as ln
    >>> from learnable.sampling import posterior
    >>> X = np.arange(20.0)[:, None]
    >>> found = posterior(ln.LinearRegression(), X, 2 * X[:, 0] + np.sin(X[:, 0]), random_state=0)
    >>> found.predict([[5.0]]).round()
    array([10.])
    """

    def __init__(self, chains: Chains, model: Any, spread: Spread) -> None:
        self.chains = chains
        self.model = model
        self._spread = spread

    @property
    def certificate_(self) -> Any:
        """The certificate of the chains."""
        return self.chains.certificate_

    def predict_dist(self, X: Any) -> PredictiveDraws:
        """Return the predictive distribution of each row of X."""
        return self._distribution(self._rows(X), _MOST_DRAWS)

    def predict(self, X: Any) -> Any:
        """Return the predictive mean of each row, or its most probable class."""
        if self._spread.family in ("bernoulli", "categorical"):
            return self.model.classes_[np.argmax(self.predict_proba(X), axis=1)]
        return self.predict_dist(X).mean

    def predict_proba(self, X: Any) -> Array:
        """Return the predictive probability of each class, averaged over the draws."""
        if self._spread.family == "bernoulli":
            share = expit(self.predict_dist(X).scores).mean(axis=0)
            return np.stack([1 - share, share], axis=1)
        if self._spread.family == "categorical":
            scores = self._scores(self._rows(X), self._thin(_MOST_DRAWS))
            return np.asarray(np.exp(log_softmax(scores, axis=2)).mean(axis=0))
        raise ParameterError(f"Posterior.predict_proba: {type(self.model).__name__} has no classes; use predict_dist.")

    def predict_interval(self, X: Any, level: float = 0.9) -> tuple[Array, Array]:
        """Return lower and upper ends of central intervals that hold a new target with this probability."""
        ends = self.predict_dist(X).interval(level)
        return ends[:, 0], ends[:, 1]

    def log_predictive(self, X: Any, y: Any) -> Array:
        """Return log p(y | x, data) of each row."""
        terms = self._log_likelihood(self._rows(X), self._codes(y), _MOST_DRAWS)
        return np.asarray(logsumexp(terms, axis=0) - np.log(len(terms)))

    def loo(self) -> LeaveOneOut:
        """Return the leave-one-out log predictive density of the rows of the fit, with Pareto k per row."""
        s = self._spread
        if (s.weight != 1).any():
            raise DataError("Posterior.loo: rows of different weights cannot be left out one by one.")
        return psis_loo(self._log_likelihood(s.X, s.y, 4000))

    # ---- helpers ----

    def _rows(self, X: Any) -> Array:
        table = read_features(self.model, X)
        return np.asarray(table.toarray() if sp.issparse(table) else table, dtype=np.float64)

    def _codes(self, y: Any) -> Array:
        values = np.asarray(y)
        if self._spread.family in ("bernoulli", "categorical"):
            codes = np.minimum(np.searchsorted(self.model.classes_, values), len(self.model.classes_) - 1)
            if (self.model.classes_[codes] != values).any():
                raise DataError("Posterior: y has a class that the fitted model does not know.")
            return codes.astype(np.float64)
        return values.astype(np.float64)

    def _thin(self, most: int) -> Any:
        total = self.chains.n_chains * self.chains.n_draws
        return np.unique(np.linspace(0, total - 1, min(most, total)).astype(np.int64))

    def _scores(self, X: Array, places: Any) -> Array:
        """Return b + xᵀw, (n_draws, n_rows) or (n_draws, n_rows, K)."""
        w = self.chains.flat("coef")[places]
        z = np.einsum("skd,nd->snk", w, X) if self._spread.n_scores > 1 else w @ X.T
        if "intercept" in self.chains:
            z = z + self.chains.flat("intercept")[places][:, None]
        return np.asarray(z)

    def _distribution(self, X: Array, most: int) -> PredictiveDraws:
        if self._spread.family == "categorical":
            raise ParameterError("Posterior.predict_dist: for several classes use predict_proba.")
        places = self._thin(most)
        name = self._spread.spread_name
        spread = self.chains.flat(name)[places][:, None] if name else np.ones((len(places), 1))
        return PredictiveDraws(self._spread.family, self._scores(X, places), spread, self._spread.df)

    def _log_likelihood(self, X: Array, y: Array, most: int) -> Array:
        if self._spread.family == "categorical":
            scores = log_softmax(self._scores(X, self._thin(most)), axis=2)
            return np.asarray(scores[:, np.arange(len(y)), y.astype(np.int64)])
        return self._distribution(X, most).log_terms(y)


class PredictiveDraws:
    """An equal mixture over draws of one distribution per row.

    Attributes
    ----------
    scores : array of shape (n_draws, n_rows)
        z of each draw.

    Examples
    --------
    >>> import numpy as np
    >>> import learnable as ln
    >>> from learnable.sampling import posterior
    >>> X = np.arange(20.0)[:, None]
    >>> found = posterior(ln.LinearRegression(), X, 2 * X[:, 0] + np.sin(X[:, 0]), random_state=0)
    >>> dist = found.predict_dist([[5.0]])
    >>> low, high = dist.interval(0.9)[0]
    >>> bool(low < dist.mean[0] < high)
    True
    """

    def __init__(self, family: str, scores: Array, spread: Array, df: float) -> None:
        self.family = family
        self.scores = scores
        self._spread = spread
        self._df = df

    @property
    def _means(self) -> Array:
        if self.family == "bernoulli":
            return np.asarray(expit(self.scores))
        return np.exp(self.scores) if self.family in ("poisson", "gamma") else self.scores

    @property
    def _variances(self) -> Array:
        mean = self._means
        if self.family == "bernoulli":
            return np.asarray(mean * (1 - mean))
        if self.family == "poisson":
            return mean
        if self.family == "gamma":
            return np.asarray(mean**2 / self._spread)
        factor = 1.0
        if self.family == "student_t":
            factor = self._df / (self._df - 2) if self._df > 2 else np.inf
        return np.asarray(np.broadcast_to(factor * self._spread**2, mean.shape))

    @property
    def mean(self) -> Array:
        """Predictive mean of each row."""
        return np.asarray(self._means.mean(axis=0))

    @property
    def std(self) -> Array:
        """Predictive standard deviation: of the likelihood and of its mean over the draws."""
        return np.asarray(np.sqrt(self._variances.mean(axis=0) + self._means.var(axis=0)))

    def log_terms(self, y: Array) -> Array:
        """Return log p(yᵢ | draw), (n_draws, n_rows)."""
        z = self.scores
        s = self._spread
        if self.family == "bernoulli":
            return np.asarray(np.where(y > 0.5, log_expit(z), log_expit(-z)))
        if self.family == "poisson":
            return np.asarray(y * z - np.exp(z) - gammaln(y + 1))
        if self.family == "gamma":
            return np.asarray(s * (np.log(s) - z + np.log(y) - y * np.exp(-z)) - np.log(y) - gammaln(s))
        r = (y - z) / s
        if self.family == "student_t":
            v = self._df
            constant = gammaln((v + 1) / 2) - gammaln(v / 2) - 0.5 * np.log(v * np.pi)
            return np.asarray(constant - np.log(s) - (v + 1) / 2 * np.log1p(r * r / v))
        return np.asarray(-0.5 * r * r - np.log(s) - 0.5 * np.log(2 * np.pi))

    def logpdf(self, y: Any) -> Array:
        """Return the log predictive density of each row's target."""
        terms = self.log_terms(np.asarray(y, dtype=np.float64))
        return np.asarray(logsumexp(terms, axis=0) - np.log(len(terms)))

    def cdf(self, y: Any) -> Array:
        """Return the predictive probability of at most y, row by row."""
        y = np.asarray(y, dtype=np.float64)
        z = self.scores
        s = self._spread
        if self.family == "bernoulli":
            return np.asarray(np.where(y < 0, 0.0, np.where(y < 1, expit(-z), 1.0)).mean(axis=0))
        if self.family == "poisson":
            return np.asarray(np.where(y < 0, 0.0, pdtr(np.floor(np.maximum(y, 0)), np.exp(z))).mean(axis=0))
        if self.family == "gamma":
            return np.asarray(gammainc(s, s * np.maximum(y, 0) * np.exp(-z)).mean(axis=0))
        r = (y - z) / s
        return np.asarray((stdtr(self._df, r) if self.family == "student_t" else ndtr(r)).mean(axis=0))

    def quantile(self, p: float) -> Array:
        """Return the p-quantile of each row, by bisection; the smallest whole number for counts."""
        if not 0 < p < 1:
            raise ParameterError(f"PredictiveDraws.quantile: p must lie between 0 and 1; got {p!r}.")
        whole = self.family in ("poisson", "bernoulli")
        positive = whole or self.family == "gamma"
        width = np.where(np.isfinite(self.std), self.std, self._spread.max() * 10) + 1e-12
        low = np.zeros_like(width) - (1.0 if whole else 0.0) if positive else self.mean - 8 * width
        high = self.mean + 8 * width
        for _ in range(200):  # widen until the quantile is inside
            short = self.cdf(high) < p
            long = (self.cdf(low) >= p) & (not positive)
            if not short.any() and not long.any():
                break
            high = np.where(short, high + 8 * width, high)
            low = np.where(long, low - 8 * width, low)
            width = width * 2
        if whole:
            high = np.ceil(high)
        for _ in range(200):
            middle = np.floor((low + high) / 2) if whole else (low + high) / 2
            enough = self.cdf(middle) >= p
            high = np.where(enough, middle, high)
            low = np.where(enough, low, middle)
            if (high - low <= (1.0 if whole else 1e-10 * (1 + np.abs(high)))).all():
                break
        return np.asarray(high)

    def interval(self, level: float = 0.9) -> Array:
        """Return the ends of central intervals, (n_rows, 2)."""
        if not 0 < level < 1:
            raise ParameterError(f"interval: level must lie between 0 and 1; got {level!r}.")
        return np.stack([self.quantile((1 - level) / 2), self.quantile((1 + level) / 2)], axis=1)

    def sample(self, size: int = 1, random_state: Any = None) -> Array:
        """Return targets, (size, n_rows): each from a draw at random."""
        rng = np.random.default_rng(random_state)
        n = self.scores.shape[1]
        which = rng.integers(len(self.scores), size=(size, n))
        mean = self._means[which, np.arange(n)]
        s = np.broadcast_to(self._spread, self.scores.shape)[which, np.arange(n)]
        if self.family == "bernoulli":
            return (rng.random(mean.shape) < mean).astype(np.float64)
        if self.family == "poisson":
            return rng.poisson(mean).astype(np.float64)
        if self.family == "gamma":
            return np.asarray(rng.gamma(s, mean / s))
        noise = rng.standard_t(self._df, mean.shape) if self.family == "student_t" else rng.standard_normal(mean.shape)
        return np.asarray(mean + s * noise)
