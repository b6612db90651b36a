r"""A mixture of members of one exponential family as the two steps of EM.

$$ p(x) = \sum_k \pi_k\, h(x)\, e^{\langle\eta_k, t(x)\rangle - A(\eta_k)} $$

E-step: responsibilities $r_{ik} = P(k \mid x_i)$, and with them $N_k = \sum_i w_i r_{ik}$ and
$T_k = \sum_i w_i r_{ik}\, t(x_i)$: nothing else is needed of the rows. M-step: the member whose mean statistic is
$T_k/N_k$. A family of numbers has one member for each column and component, independent given the component.

The prior adds κ rows that are distributed like the whole table: with its maximum-likelihood member q,

$$ \log p(\eta, \pi) = -\kappa\sum_k \mathrm{KL}(q \,\|\, p_k) + (\alpha - 1)\sum_k\log\pi_k, $$

the conjugate prior of the family, up to a constant. The M-step then has $(T_k + \kappa\tau)/(N_k + \kappa)$, τ the mean
statistic of the table, and no component can collapse. Normal families sum about the means of the last step
(`normals.py`), so that nothing cancels.

Reference: A. Dempster, N. Laird and D. Rubin, JRSS B 39 (1977), 1–38, section 2; P. Diaconis and D. Ylvisaker,
Conjugate priors for exponential families, Ann. Statist. 7 (1979), 269–281.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from ..core import AnyArray, DataError, ParameterError
from ..probability import MultivariateNormal, Normal
from .normals import Mixture, NormalMixture, Prior, normalise, restrict

_CHUNK_ROWS = 2048  # rows of which all outer products are held at a time
_LOSSLESS = 1e4  # rounding of ⟨η, t⟩ then stays below 1e-11
_IMPOSSIBLE = -1e4  # as a logarithm
_FAR = 40.0  # stands for an infinite natural parameter, such as the logit of zero


class Members(NamedTuple):
    """The parameters."""

    weights: AnyArray  #: (K,) π
    densities: Any  #: members of the family: a batch (K, d), or (K,) of vectors or matrices


class FamilyMixture:
    """The two steps of any exponential family.

    Parameters
    ----------
    example : member of the family
        Lends t(x) and log h(x), which all members share.
    K : int
        Number of components.
    known : dict
        What `from_mean_statistic` takes besides, such as the n of a Binomial.
    centre : member, a batch (d,) or one
        The maximum-likelihood member of the whole table.
    rows, alpha : float
        κ and α of the prior.
    """

    def __init__(self, example: Any, K: int, known: dict[str, Any], centre: Any, rows: float, alpha: float) -> None:
        self.example = example
        self.K = K
        self.known = known
        self.centre = centre
        self.family = type(example)
        self.rows = rows
        self.alpha = alpha
        # of t(x): its deviations, and the largest |t|
        self.spread = np.ones(1)
        self.reach = np.full(1, np.inf)

    def expectation(self, block: Any, mixture: Members) -> tuple[tuple[Any, ...], float]:
        """Return N and T of a block's rows, and their log-likelihood."""
        counts = np.zeros(self.K)
        total = 0.0
        sums: Any = 0.0
        linear = self._linear_form(mixture)
        for X, w, known in chunks(block):
            t = self.statistic(X)
            rows = t.reshape(len(X), -1)
            if linear is None:
                logs = log_joint(mixture, X)
            else:
                logs = linear[0] @ rows.T + linear[1][:, None] + self._log_base(X)
            likelihood, r = normalise(restrict(logs, known))
            total += float(w @ likelihood)
            r *= w
            counts += r.sum(axis=1)
            sums = sums + (r @ rows).reshape(self.K, *t.shape[1:])
        return (counts, sums), total

    def maximisation(self, statistics: tuple[Any, ...], mixture: Members) -> Members:
        """Return the parameters of greatest expected log-likelihood and log-prior."""
        counts, sums = statistics
        n = counts + self.rows
        shape = (-1,) + (1,) * (sums.ndim - 1)
        mean = (sums + self.rows * self.centre.mean_statistic) / np.where(n > 0, n, 1.0).reshape(shape)
        if not (n > 0).all():  # a component without rows keeps its parameters
            mean = np.where((n > 0).reshape(shape), mean, mixture.densities.mean_statistic)
        return Members(self._weights(counts), self.family.from_mean_statistic(mean, **self.known))

    def log_prior(self, mixture: Members) -> float:
        """Return the logarithm of the prior density, up to a constant."""
        value = 0.0 if self.alpha == 1 else float((self.alpha - 1) * np.log(mixture.weights).sum())
        return value - (self.rows * float(np.sum(self.centre.kl(mixture.densities))) if self.rows else 0.0)

    def gain(self, statistics: tuple[Any, ...], mixture: Members, stepped: Members) -> float:
        """Return what the M-step adds to the expected log-likelihood and log-prior: a sum of divergences."""
        n = statistics[0] + self.rows
        divergence = np.asarray(stepped.densities.kl(mixture.densities)).reshape(self.K, -1).sum(axis=1)
        shares = statistics[0] + self.alpha - 1
        change = np.log(np.where(shares > 0, stepped.weights, 1.0) / np.where(shares > 0, mixture.weights, 1.0))
        return float(n @ divergence + shares @ change)

    def start(self, X: AnyArray, r: AnyArray) -> Members:
        """Return a mixture near the means of t(x) under weighted responsibilities r (n, K).

        A tenth of each comes from the whole table, so that no row is impossible and no member degenerate.
        """
        counts = r.sum(axis=0)
        tau = self._centre_statistic()
        share = 0.9 if self.K > 1 else 0.0
        sums = np.tensordot(r.T, self.statistic(X), axes=1)
        shape = (-1,) + (1,) * (sums.ndim - 1)
        mean = np.where((counts > 0).reshape(shape), sums / np.where(counts > 0, counts, 1.0).reshape(shape), tau)
        return Members(self._weights(counts + 1e-3 * counts.sum()), self._from_mean(share * mean + (1 - share) * tau))

    def statistic(self, X: AnyArray) -> AnyArray:
        """Return t(x): (m, d, S) of numbers, (m, S) of vectors and matrices."""
        return np.asarray(self.example.sufficient_statistic(as_events(self.family, X)))

    def pack(self, mixture: Members) -> AnyArray:
        """Return logarithms of the weights and natural parameters, in units of the spread of t(x), as one vector."""
        with np.errstate(divide="ignore"):
            logits = np.log(mixture.weights)
        eta = self._natural(mixture) * self.spread
        return np.nan_to_num(np.concatenate([logits, eta.ravel()]), neginf=-_FAR, posinf=_FAR)

    def unpack(self, z: AnyArray) -> Members | None:
        """Return the mixture that a vector stands for, or None."""
        weights = np.exp(z[: self.K] - z[: self.K].max())
        eta = z[self.K :].reshape(self.K, *self._centre_statistic().shape) / self.spread
        with np.errstate(all="ignore"):
            try:
                members = self._from_natural(eta)
            except (ParameterError, DataError, np.linalg.LinAlgError):
                return None
        sound = all(np.isfinite(each).all() for each in members.parameters.values())
        return Members(weights / weights.sum(), members) if sound and np.isfinite(weights).all() else None

    def gradient(self, statistics: tuple[Any, ...], mixture: Members) -> AnyArray:
        """Return the gradient of the objective at `pack(mixture)`: T − N E[t], by Fisher's identity."""
        counts = statistics[0]
        shares = counts + self.alpha - 1
        of_logits = shares - mixture.weights * shares.sum()
        return np.concatenate([of_logits, (self._excess(statistics, mixture) / self.spread).ravel()])

    def _excess(self, statistics: tuple[Any, ...], mixture: Members) -> AnyArray:
        """Return T + κτ − (N + κ)E[t]."""
        counts, sums = statistics
        n = (counts + self.rows).reshape((-1,) + (1,) * (sums.ndim - 1))
        return np.asarray(
            sums + self.rows * self.centre.mean_statistic - n * np.asarray(mixture.densities.mean_statistic)
        )

    def _linear_form(self, mixture: Members) -> tuple[AnyArray, AnyArray] | None:
        """Return η (K, p) and log πₖ − A(ηₖ), or None where ⟨η, t(x)⟩ would lose the digits that the rest cancels."""
        with np.errstate(divide="ignore", invalid="ignore"):
            eta = np.asarray(mixture.densities.natural_parameter).reshape(self.K, -1)
            constant = np.log(mixture.weights)
            constant = constant - np.asarray(mixture.densities.log_partition).reshape(self.K, -1).sum(axis=1)
        size = np.where(np.isneginf(eta), 0.0, np.abs(eta)) @ np.broadcast_to(self.reach.ravel(), eta.shape[1:])
        if not (size < _LOSSLESS).all() or np.isposinf(constant).any() or np.isnan(constant).any():
            return None
        return np.maximum(eta, _IMPOSSIBLE), constant  # zero times minus infinity would be no number

    def _log_base(self, X: AnyArray) -> AnyArray:
        values = np.asarray(self.example.log_base_measure(as_events(self.family, X)))
        return values if values.ndim == 1 else np.asarray(values.sum(axis=1))

    def _weights(self, counts: AnyArray) -> AnyArray:
        weights = np.maximum(counts + self.alpha - 1, 0.0)
        return np.asarray(weights / weights.sum())

    def _centre_statistic(self) -> AnyArray:
        return np.asarray(self.centre.mean_statistic)

    def _natural(self, mixture: Members) -> AnyArray:
        return np.asarray(mixture.densities.natural_parameter)

    def _from_mean(self, mean: AnyArray) -> Any:
        return self.family.from_mean_statistic(mean, **self.known)

    def _from_natural(self, eta: AnyArray) -> Any:
        return self.family.from_natural_parameter(eta, **self.known)


class NormalFamily(FamilyMixture):
    """`Normal` and `MultivariateNormal`: sums about the last means; t(x) and η are those of standardised rows."""

    def __init__(self, example: Any, K: int, mean: AnyArray, cov: AnyArray, rows: float, alpha: float) -> None:
        self.vector = isinstance(example, MultivariateNormal)
        self.shift = mean
        self.scale = np.sqrt(np.diag(cov))
        centre = MultivariateNormal(mean, cov) if self.vector else Normal(mean, self.scale)
        super().__init__(example, K, {}, centre, rows, alpha)
        d = len(mean)
        kind = "full" if self.vector else "diag"
        prior = Prior(alpha)
        if rows:  # κ rows of mean m and covariance C, in the words of the normal–inverse-Wishart prior
            used = d + 2 if self.vector else 3
            prior = Prior(alpha, rows - used, rows * (cov if self.vector else np.diag(cov)), mean, rows)
        self.steps = NormalMixture(kind, K, d, 1.0, 0.0, prior)

    def expectation(self, block: Any, mixture: Members) -> tuple[tuple[Any, ...], float]:
        """Return N, and the first and second moments about the means."""
        return self.steps.expectation(block, self._as_normals(mixture))

    def maximisation(self, statistics: tuple[Any, ...], mixture: Members) -> Members:
        """Return the parameters of greatest expected log-likelihood and log-prior."""
        weights, means, cov = self.steps.maximisation(statistics, self._as_normals(mixture))
        return Members(weights, self.family(means, cov if self.vector else np.sqrt(cov)))

    def statistic(self, X: AnyArray) -> AnyArray:
        """Return t of the standardised rows."""
        return np.asarray(self.example.sufficient_statistic((X - self.shift) / self.scale))

    def _as_normals(self, mixture: Members) -> Mixture:
        density = mixture.densities
        return Mixture(mixture.weights, density.mean, density.cov if self.vector else density.variance)

    def _standard(self, member: Any) -> Any:
        mean = (member.mean - self.shift) / self.scale
        if self.vector:
            return self.family(mean, member.cov / np.outer(self.scale, self.scale))
        return self.family(mean, member.std / self.scale)

    def _unstandard(self, member: Any) -> Any:
        mean = member.mean * self.scale + self.shift
        if self.vector:
            return self.family(mean, member.cov * np.outer(self.scale, self.scale))
        return self.family(mean, member.std * self.scale)

    def _excess(self, statistics: tuple[Any, ...], mixture: Members) -> AnyArray:
        counts, first, second = statistics
        standard = self._standard(mixture.densities)
        first = first / self.scale
        mean = np.asarray(standard.mean)
        if self.vector:
            second = np.tril(second) + np.swapaxes(np.tril(second, -1), 1, 2)
            second = second / np.outer(self.scale, self.scale)
            cross = mean[:, :, None] * first[:, None, :]
            second = second + cross + np.swapaxes(cross, 1, 2) - counts[:, None, None] * standard.cov
            found = np.concatenate([first, second.reshape(self.K, -1)], axis=1)
        else:
            second = second / self.scale**2 + 2 * mean * first - counts[:, None] * standard.variance
            found = np.stack([first, second], axis=-1)
        return np.asarray(found + self.rows * (self._centre_statistic() - standard.mean_statistic))

    def _centre_statistic(self) -> AnyArray:
        return np.asarray(self._standard(self.centre).mean_statistic)

    def _natural(self, mixture: Members) -> AnyArray:
        return np.asarray(self._standard(mixture.densities).natural_parameter)

    def _from_mean(self, mean: AnyArray) -> Any:
        return self._unstandard(self.family.from_mean_statistic(mean))

    def _from_natural(self, eta: AnyArray) -> Any:
        return self._unstandard(self.family.from_natural_parameter(eta))


def log_joint(mixture: Members, X: AnyArray) -> AnyArray:
    """Return log πₖ + log pₖ(x) as (K, m)."""
    density = mixture.densities
    K = len(mixture.weights)
    events = as_events(type(density), X)
    with np.errstate(divide="ignore"):
        out = np.repeat(np.log(mixture.weights)[:, None], len(X), axis=1)
    for k in range(K):
        values = np.asarray(density[k].logpdf(events))
        out[k] += values if values.ndim == 1 else values.sum(axis=1)
    return out


def as_events(family: type[Any], X: AnyArray) -> AnyArray:
    """Return rows as draws of a family: numbers and vectors as they are, matrices unfolded row by row."""
    X = np.asarray(X, dtype=np.float64)
    if family._event_rank < 2:
        return X
    size = round(float(np.sqrt(X.shape[1])))
    return X.reshape(len(X), size, size)


def chunks(block: Any) -> Iterator[tuple[AnyArray, AnyArray, AnyArray | None]]:
    """Yield some rows of a block at a time, with their weights and known components."""
    w = np.ones(len(block.X)) if block.weight is None else block.weight
    for start in range(0, len(block.X), _CHUNK_ROWS):
        part = slice(start, start + _CHUNK_ROWS)
        yield block.X[part], w[part], None if block.y is None else block.y[part].astype(np.int64)
