r"""Hidden Markov models with Gaussian emissions: x_t | z_t = k ~ N(μ_k, Σ_k).

With S_k = Σ_t γ_t(k)(x_t − μ_k)(x_t − μ_k)ᵀ and n_k = Σ_t γ_t(k), the M-step with the priors below is

$$ \mu_k = \frac{m \mu_0 + \sum_t \gamma_t(k) x_t}{m + n_k}, \qquad
   \Sigma_k = \frac{C_0 + m (\mu_k - \mu_0)(\mu_k - \mu_0)^\top + S_k}{c + n_k}, $$

with m = `means_weight`, C₀ = `covars_prior`, c = max(`covars_weight` − d, 0) (− 1 for diagonals). It maximises the
expected log-likelihood plus −½ Σ_k [c log|Σ_k| + tr Σ_k⁻¹(C₀ + m (μ_k − μ₀)(μ_k − μ₀)ᵀ)]. Second moments are taken
about the means of the last step, so that digits survive a mean that is large against the spread.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from scipy.linalg import cho_solve, solve_triangular

from ..core import AnyArray, ArrayLike, DataError, Number, Options, ParameterError, fitted, param
from ._kernels import log_normal_rows, scatter_rows
from .baum_welch import Theta, check_numbers, padded_size
from .hmm import LETTERS, HiddenMarkovModel


class GaussianRows(HiddenMarkovModel):
    """What models with Gaussian densities share."""

    min_covar: float = param(
        Number(low=0.0), "Added to the diagonal of the first covariances.", default=1e-3, kw_only=False
    )
    covariance_type: str = param(
        Options("diag", "spherical", "full", "tied"), "Shape of the covariances.", default="diag", kw_only=False
    )
    means_weight: Any = param(
        Number(low=0.0) | ArrayLike(Number(low=0.0)), "m of the module.", default=0, kw_only=False
    )

    def _check_rows(self, X: AnyArray) -> None:
        size = np.nanmax(abs(X), initial=0.0)
        if size > 1e150:
            owner = type(self).__name__
            raise DataError(f"{owner}: squares of X overflow; got a number of size {size:.3g}; divide its column.")


class GaussianHMM(GaussianRows):
    """A hidden Markov model with Gaussian emissions.

    Objective: Σ log p(x) plus the log-priors of the module, climbed by expectation–maximisation to a local maximum.
    Names and defaults are hmmlearn's. It differs in two things: a number as `covars_prior` of full matrices is that
    multiple of the identity, where hmmlearn adds it to every entry; and `covars_` always has the compact shape below.
    Memory O(nK).

    Examples
    --------
    >>> import numpy as np
    >>> from learnable import GaussianHMM
    >>> rng = np.random.default_rng(0)
    >>> X = np.r_[rng.normal(0, 1, 50), rng.normal(8, 1, 50)][:, None]
    >>> model = GaussianHMM(n_components=2, random_state=0, n_iter=100).fit(X)
    >>> np.flatnonzero(np.diff(model.predict(X)))
    array([49])
    """

    _theory = "hidden-markov"
    means_prior: Any = param(Number() | ArrayLike(), "μ₀ of the module.", default=0, kw_only=False)
    covars_prior: Any = param(
        Number(low=0.0) | ArrayLike(), "C₀: it keeps every variance above zero.", default=1e-2, kw_only=False
    )
    covars_weight: float = param(Number(), "Degrees of freedom of the prior.", default=1, kw_only=False)
    params: str = param(
        LETTERS, "Which parameters are estimated: s (π), t (A), m (μ), c (Σ).", default="stmc", kw_only=False
    )
    init_params: str = param(
        LETTERS, "Which parameters start anew: s (π), t (A), m (μ), c (Σ).", default="stmc", kw_only=False
    )
    _positional: ClassVar[tuple[str, ...]] = (
        "n_components",
        "covariance_type",
        "min_covar",
        "startprob_prior",
        "transmat_prior",
        "means_prior",
        "means_weight",
        "covars_prior",
        "covars_weight",
        "algorithm",
        "random_state",
        "n_iter",
        "tol",
        "verbose",
        "params",
        "init_params",
        "implementation",
    )

    means_: AnyArray = fitted("(n_components, n_features)", "μ.")
    covars_: AnyArray = fitted(
        "array",
        'Σ: (n_components,) with "spherical", (n_components, n_features) with "diag", (n_components, n_features, '
        'n_features) with "full", (n_features, n_features) with "tied" covariances.',
    )

    _letters: ClassVar[dict[str, str]] = {"m": "means_", "c": "covars_"}

    def _emission(self) -> GaussianEmission:
        priors = (self.means_prior, self.means_weight, self.covars_prior, self.covars_weight)
        return GaussianEmission(self.covariance_type, priors, self.params)

    def _draw_start(self, X: AnyArray, rng: Any) -> dict[str, AnyArray]:

        K = self.n_components
        cov = first_covariance(X, self.min_covar)
        compact = {"full": np.tile(cov, (K, 1, 1)), "tied": cov, "diag": np.tile(np.diag(cov), (K, 1))}
        compact["spherical"] = np.full(K, np.diag(cov).mean())
        return {"means_": draw_means(X, K, rng), "covars_": compact[self.covariance_type]}

    def _emission_of(self, attributes: Mapping[str, Any]) -> Theta:
        means = np.asarray(attributes["means_"], dtype=float)
        K = self.n_components
        d = getattr(self, "n_features_in_", means.shape[-1] if means.ndim else 1)
        shape = {"spherical": (K,), "diag": (K, d), "full": (K, d, d), "tied": (d, d)}[self.covariance_type]
        means = check_numbers("GaussianHMM", "means_", means, (K, d))
        given = attributes["covars_"]
        if self.covariance_type == "spherical" and np.size(given) == K:  # hmmlearn's forms: (K, 1), (K, 1, 1)
            given = np.reshape(given, K)
        covars = check_numbers("GaussianHMM", "covars_", given, shape)
        check_covariances("GaussianHMM", expand(covars, self.covariance_type, K, d))
        return means, covars


class GaussianEmission:
    """N(μ_k, Σ_k) with the priors of the module; θ = (μ, Σ)."""

    def __init__(self, kind: str, priors: tuple[Any, ...], letters: str) -> None:
        self.kind = kind
        self.priors = priors
        self.letters = letters

    def log_frames(self, lines: AnyArray, theta: Theta) -> AnyArray:
        """Return log N(x | μ_k, Σ_k) of the entries that are there."""
        return gaussian_frames(lines, theta[0], theta[1], self.kind)

    def statistics(self, lines: AnyArray, weight: AnyArray, theta: Theta) -> Theta:
        """Return the moments about the present means."""
        return gaussian_statistics(lines, weight, theta[0], theta[1], self.kind)

    def update(self, statistics: Theta, theta: Theta) -> Theta:
        """Return the means and covariances of the module's M-step."""
        return self._rule(theta).update(statistics, theta[0], theta[1], self.letters)

    def log_prior(self, theta: Theta) -> float:
        """Return the log-prior of the module."""
        return self._rule(theta).log_prior(*theta)

    def _rule(self, theta: Theta) -> Covariances:
        K, d = theta[0].shape
        try:
            return Covariances.build(self.kind, K, d, *self.priors)
        except ValueError as error:
            raise ParameterError(f"GaussianHMM: the priors do not fit {K} states of {d} columns: {error}") from error

    def expected(self, theta: Theta, proba: AnyArray) -> AnyArray:
        """Return the mean of the means."""
        return proba @ theta[0]

    def draw(self, theta: Theta, states: AnyArray, rng: Any) -> AnyArray:
        """Return one row for each state."""
        means, covars = theta
        factors = np.linalg.cholesky(expand(covars, self.kind, *means.shape))
        return draw_normals(means[states], factors[states], rng)

    def n_parameters(self, theta: Theta) -> int:
        """Return the entries of the means and of the triangles of the covariances."""
        K, d = theta[0].shape
        return K * d + count_covariances(self.kind, K, d, 1)


def check_covariances(owner: str, full: AnyArray) -> None:
    """Raise ParameterError unless all matrices are symmetric and positive."""
    if not np.allclose(full, full.transpose(0, 2, 1), rtol=1e-8, atol=0) or (np.linalg.eigvalsh(full) <= 0).any():
        raise ParameterError(
            f"{owner}: covars_ must be symmetric and positive; got one that is not. "
            "Raise covars_prior, or leave constant columns out."
        )


def count_covariances(kind: str, K: int, d: int, n_tied: int) -> int:
    """Return how many free entries the covariances of K components have, in `n_tied` groups where they are tied."""
    triangle = d * (d + 1) // 2
    return {"spherical": K, "diag": K * d, "full": K * triangle, "tied": n_tied * triangle}[kind]


def draw_normals(means: AnyArray, factors: AnyArray, rng: Any) -> AnyArray:
    """Return one draw for each mean (n, d) and factor (n, d, d) of a covariance."""
    return means + np.einsum("nij,nj->ni", factors, rng.standard_normal(means.shape))


# Gaussian densities of rows, expected moments, and the M-step, for four shapes of covariance.
#
# Missing entries are integrated out: a diagonal density leaves them away; a full one takes the marginal density of
# what
# is there, and its expected moments use E[x | what is there] and the conditional covariance (R. Little and D. Rubin,
# Statistical Analysis with Missing Data, 2nd ed. 2002, §11.2).

_LOG_2PI = float(np.log(2 * np.pi))

_LEAST_SHARE = 1e-26  # of the square of the mean: the variance of a column that is constant but for rounding


def expand(covars: AnyArray, kind: str, K: int, d: int) -> AnyArray:
    """Return covariances as full matrices, (K, d, d)."""
    if kind == "full":
        return covars
    if kind == "tied":
        return np.broadcast_to(covars, (K, d, d))
    return _diagonal(covars, kind, d)[:, :, None] * np.eye(d)


def gaussian_frames(X: AnyArray, means: AnyArray, covars: AnyArray, kind: str) -> AnyArray:
    """Return log N(x | μ_k, Σ_k), (n, K)."""
    K, d = means.shape
    if kind in ("diag", "spherical"):
        variance = _diagonal(covars, kind, d)
        share = -0.5 * (_LOG_2PI + np.log(variance))
        out = np.empty((len(X), padded_size(K)))
        log_normal_rows(X, _lanes(means), _lanes(0.5 / variance), _lanes(share), out.reshape(-1))
        return out[:, :K]
    full = expand(covars, kind, K, d)
    out = np.zeros((len(X), K))
    for rows, there in _patterns(X):
        if not there.any():
            continue
        x = X[rows][:, there]
        for k in range(K):
            factor = np.linalg.cholesky(full[k][np.ix_(there, there)])
            z = solve_triangular(factor, (x - means[k, there]).T, lower=True, check_finite=False)
            out[rows, k] = -0.5 * (z * z).sum(axis=0) - np.log(np.diag(factor)).sum() - 0.5 * len(factor) * _LOG_2PI
    return out


def gaussian_statistics(
    X: AnyArray, weight: AnyArray, means: AnyArray, covars: AnyArray, kind: str
) -> tuple[AnyArray, ...]:
    """Return n, Σγ(x − μ) and Σγ(x − μ)(x − μ)ᵀ about the present means; their diagonals for diagonal shapes.

    The weights γ are (n, K), or padded with columns of zeros to a multiple of four.
    """
    K, d = means.shape
    if kind in ("diag", "spherical"):
        M = padded_size(K)
        if weight.shape[1] != M:
            weight = np.pad(weight, ((0, 0), (0, M - weight.shape[1])))
        sums = np.zeros((3, d * M))
        scatter_rows(X, weight.ravel(), _lanes(means), *sums)
        count, first, second = sums.reshape(3, d, M)[:, :, :K]
        return count.T, first.T, second.T
    full = expand(covars, kind, K, d)
    weight = weight[:, :K]
    count = np.zeros(K)
    first = np.zeros((K, d))
    second = np.zeros((K, d, d))
    for rows, there in _patterns(X):
        if not there.any():
            continue  # a row without entries says nothing about the emissions
        gone = ~there
        gamma = weight[rows]
        count += gamma.sum(axis=0)
        for k in range(K):
            z = np.zeros((len(gamma), d))
            z[:, there] = X[rows][:, there] - means[k, there]
            if gone.any():
                factor = np.linalg.cholesky(full[k][np.ix_(there, there)])
                slope = cho_solve((factor, True), full[k][np.ix_(there, gone)])
                z[:, gone] = z[:, there] @ slope
                rest = full[k][np.ix_(gone, gone)] - full[k][np.ix_(gone, there)] @ slope
                second[k][np.ix_(gone, gone)] += gamma[:, k].sum() * rest
            first[k] += gamma[:, k] @ z
            second[k] += (z * gamma[:, k, None]).T @ z
    return count, first, second


@dataclass(frozen=True)
class Covariances:
    """The priors of means and covariances, and the M-step under them."""

    kind: str
    mean: AnyArray  #: μ₀ (K, d)
    mean_weight: AnyArray  #: m (K, 1)
    scale: AnyArray  #: C₀, shaped as the covariances: (K, d), (K, d, d) or (d, d)
    excess: float  #: c
    owner: str = "GaussianHMM"  #: the class that an error names

    @classmethod
    def build(
        cls, kind: str, K: int, d: int, mean: Any, weight: Any, scale: Any, excess: Any, owner: str = "GaussianHMM"
    ) -> Self:
        """Return the rule with everything broadcast to K states of d columns."""
        mean0 = np.asarray(mean, dtype=float)
        weight0 = np.asarray(weight, dtype=float)
        mean0 = mean0[:, None] if mean0.shape == (K,) and mean0.shape != (d,) else mean0
        weight0 = weight0[:, None] if weight0.ndim == 1 else weight0
        scale0 = np.asarray(scale, dtype=float)
        matrix = kind in ("full", "tied")
        if matrix and scale0.ndim == 0:
            scale0 = scale0 * np.eye(d)
        elif scale0.shape == (K,) and not matrix:
            scale0 = scale0[:, None]
        shape = {"full": (K, d, d), "tied": (d, d)}.get(kind, (K, d))
        degrees = max(float(excess) - (d if matrix else 1), 0.0)
        return cls(
            kind,
            np.broadcast_to(mean0, (K, d)),
            np.broadcast_to(weight0, (K, 1)),
            np.broadcast_to(scale0, shape),
            degrees,
            owner,
        )

    def update(
        self, statistics: tuple[AnyArray, ...], means: AnyArray, covars: AnyArray, letters: str
    ) -> tuple[AnyArray, AnyArray]:
        """Return the means and covariances that maximise the expected log-likelihood plus the log-prior."""
        count, first, second = statistics
        n = count if count.ndim == 2 else count[:, None]
        m = self.mean_weight
        shift = np.zeros_like(means)
        if "m" in letters:
            total = m + n
            shift = np.where(total > 0, (m * (self.mean - means) + first) / np.where(total > 0, total, 1.0), 0.0)
        if "c" in letters:
            covars = self._covariances(n, first, second, shift, means + shift - self.mean, covars)
        return means + shift, covars

    def _covariances(
        self, n: AnyArray, first: AnyArray, second: AnyArray, shift: AnyArray, away: AnyArray, covars: AnyArray
    ) -> AnyArray:
        if self.kind in ("diag", "spherical"):
            spread = np.maximum(second - 2 * shift * first + n * shift**2, 0.0)
            top = self.scale + self.mean_weight * away**2 + spread
            bottom = self.excess + n
            if self.kind == "spherical":
                bottom = np.broadcast_to(bottom, top.shape).sum(axis=1)
                top = top.sum(axis=1)
            found = np.where(bottom > 0, top / np.where(bottom > 0, bottom, 1.0), covars)
            variance = _diagonal(found, self.kind, away.shape[1])
        else:
            cross = shift[:, :, None] * first[:, None, :]
            spread = second - cross - cross.transpose(0, 2, 1) + n[:, :, None] * _outer(shift)
            spread = spread + self.mean_weight[:, :, None] * _outer(away)
            if self.kind == "tied":
                total = self.excess + n.sum()
                found = (self.scale + spread.sum(axis=0)) / total if total > 0 else covars
            else:
                bottom = self.excess + n[:, :, None]
                found = np.where(bottom > 0, (self.scale + spread) / np.where(bottom > 0, bottom, 1.0), covars)
            found = (found + np.swapaxes(found, -1, -2)) / 2
            variance = np.where(np.linalg.eigvalsh(found) > 0, np.diagonal(found, axis1=-2, axis2=-1), 0.0)
        # A variance that float64 cannot tell from zero beside the mean is none.
        if not (variance > _LEAST_SHARE * (self.mean + away) ** 2).all():
            raise DataError(
                f"{self.owner}: a covariance collapsed onto a few equal rows, where the likelihood has no maximum; "
                "raise covars_prior, use fewer states, divide large columns, or leave constant ones out."
            )
        return found

    def log_prior(self, means: AnyArray, covars: AnyArray) -> float:
        """Return −½ Σ_k [c log|Σ_k| + tr Σ_k⁻¹ (C₀ + m (μ_k − μ₀)(μ_k − μ₀)ᵀ)]; the first two terms once if tied."""
        d = means.shape[1]
        away = means - self.mean
        if self.kind in ("diag", "spherical"):
            variance = _diagonal(covars, self.kind, d)
            top = self.scale + self.mean_weight * away**2
            return float(-0.5 * (self.excess * np.log(variance) + top / variance).sum())
        full = covars[None] if self.kind == "tied" else covars
        pull = self.mean_weight[:, :, None] * _outer(away)
        top = (self.scale + pull.sum(axis=0))[None] if self.kind == "tied" else self.scale + pull
        trace = np.trace(np.linalg.solve(full, top), axis1=1, axis2=2)
        return float(-0.5 * (self.excess * np.linalg.slogdet(full)[1] + trace).sum())


def _diagonal(covars: AnyArray, kind: str, d: int) -> AnyArray:
    return np.repeat(covars[:, None], d, axis=1) if kind == "spherical" else covars


def _lanes(values: AnyArray) -> AnyArray:
    """Return values (K, d) as rows over states, padded with zeros to a multiple of four: (d · M,)."""
    K, d = values.shape
    out = np.zeros((d, padded_size(K)))
    out[:, :K] = values.T
    return out.ravel()


def _outer(v: AnyArray) -> AnyArray:
    return v[:, :, None] * v[:, None, :]


def _patterns(X: AnyArray) -> Iterator[tuple[Any, AnyArray]]:
    """Yield rows with the same missing entries, and which entries they have."""
    gone = np.isnan(X)
    if not gone.any():
        yield slice(None), np.ones(X.shape[1], dtype=bool)
        return
    kinds, of = np.unique(gone, axis=0, return_inverse=True)
    for number, pattern in enumerate(kinds):
        yield np.flatnonzero(of.ravel() == number), ~pattern


# Where climbs of Gaussian emissions begin: clusters of the rows, and the covariance of all of them.

_MOST_ROWS = 20_000  # clusters of a start need no more


def whole_rows(X: AnyArray) -> AnyArray:
    """Return the rows without missing entries, or as many as a start needs, spread over the sequences."""
    whole = X[~np.isnan(X).any(axis=1)]
    if len(whole) > _MOST_ROWS:
        whole = whole[np.linspace(0, len(whole) - 1, _MOST_ROWS).astype(int)]
    return whole


def centre_and_spread(X: AnyArray) -> tuple[AnyArray, AnyArray]:
    """Return the mean and the variance of each column, over the entries that are there."""
    n = np.maximum((~np.isnan(X)).sum(axis=0), 1)
    centre = np.nansum(X, axis=0) / n
    return centre, np.nansum((X - centre) ** 2, axis=0) / n


def cluster_rows(rows: AnyArray, K: int, rng: Any) -> tuple[AnyArray, AnyArray] | None:
    """Return K centres and each row's cluster, or None where there are too few distinct rows for clusters."""
    if len(np.unique(rows, axis=0)) < K:
        return None
    from ..mixtures.lloyd import cluster  # here: a loaded model needs no start

    return cluster(rows, K, np.random.default_rng(int(rng.randint(2**31 - 1))))


def draw_means(X: AnyArray, K: int, rng: Any) -> AnyArray:
    """Return K means: centres of clusters, or draws about the centre of all rows."""
    found = cluster_rows(whole_rows(X), K, rng)
    if found is not None:
        return found[0]
    centre, spread = centre_and_spread(X)
    return np.asarray(centre + rng.standard_normal((K, X.shape[1])) * np.sqrt(spread))


def first_covariance(X: AnyArray, least: float) -> AnyArray:
    """Return the covariance of the rows, with `least` added to its diagonal."""
    whole = whole_rows(X)
    d = X.shape[1]
    cov = np.cov(whole.T, bias=True).reshape(d, d) if len(whole) > d else np.diag(centre_and_spread(X)[1])
    return np.asarray(cov + least * np.eye(d))
