r"""Maximum likelihood of the admixture model: block relaxation with an extrapolation that is kept only if it helps.

An individual's copies at locus l show allele a with probability f = Σ_k q_ik p_lak. The log-likelihood

$$ \ell(Q, P) = \sum_{i,l,a} n_{ila} \log \sum_k q_{ik} p_{lak} $$

(copies are counted, without binomial coefficients; missing ones are left out) is concave in Q given P and in P given Q.
Each half of a step maximises its second-order expansion under the constraints, one small quadratic program per
individual or locus, and shortens what lowers the likelihood, so that it never falls. With more than two alleles at a
locus, P moves by an EM step. Every third step is followed by a quasi-Newton extrapolation through three secants.

References: D. Alexander, J. Novembre and K. Lange, Fast model-based estimation of ancestry in unrelated individuals,
Genome Research 19 (2009), 1655–1664; H. Zhou, D. Alexander and K. Lange, A quasi-Newton acceleration for
high-dimensional optimization algorithms, Statistics and Computing 21 (2011), 261–273.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.threads import one_thread_blas, ordered_map, resolve_n_jobs
from . import _ml_kernels as kernels
from .genotypes import Genotypes, pack

Array = NDArray[np.float64]

#: Least value of a proportion or a frequency: f must not be 0 where the allele was seen.
LEAST = 1e-9
#: Loci per task: their weights (three arrays of 8 bytes per genotype) stay in the cache of a core for 1,000 people.
_BLOCK = 128
#: How often a step that lowers the likelihood is halved before it is dropped.
_HALVINGS = 6
#: Relative rounding of the log-likelihood of an individual: near the end every move is within it, and halving such
#: moves would take six passes over the genotypes each time.
_ROUNDING = 1e-12
#: Secants of the extrapolation (Zhou et al. found 2 to 4 best).
_SECANTS = 3


class Fit(NamedTuple):
    """A maximum and how it was reached."""

    Q: Array  #: (n, K)
    P: Array  #: (n_alleles in all, K)
    history: Array  #: log-likelihood after each iteration
    rise: float  #: relative rise of one EM step from here
    n_iter: int


class Likelihood:
    """Genotypes as the likelihood needs them: two bits each where they have two alleles and two copies."""

    def __init__(self, genotypes: Genotypes, n_jobs: int | None = None) -> None:
        self.n = genotypes.n_individuals
        self.starts = genotypes.starts
        self.threads = resolve_n_jobs(n_jobs)
        two = genotypes.is_biallelic and genotypes.ploidy == 2 and not genotypes._has_half_genotypes
        self.two = two
        self.with_second = np.flatnonzero(genotypes.n_alleles == 2)
        if two:
            packed = genotypes.packed
            self.packed = pack(np.ascontiguousarray(genotypes.dosage.T)) if packed is None else packed
            edges = range(0, genotypes.n_loci, _BLOCK)
            self.blocks = [slice(first, min(first + _BLOCK, genotypes.n_loci)) for first in edges]
        else:
            self.counts = np.ascontiguousarray(genotypes.counts().T.astype(np.float64))
            ends = np.searchsorted(self.starts, np.arange(0, int(self.starts[-1]), 2 * _BLOCK))
            places = np.unique(np.r_[self.starts[ends], self.starts[-1]])
            self.blocks = [slice(a, b) for a, b in pairwise(places.tolist())]

    def frequencies(self, P: Array) -> Array:
        """Return frequencies of all alleles from those that the search moves."""
        if not self.two:
            return P
        whole = np.ones((int(self.starts[-1]), P.shape[1]))
        first = self.starts[self.with_second]
        whole[first] = 1.0 - P[self.with_second]
        whole[first + 1] = P[self.with_second]
        return whole

    def moved(self, P: Array) -> Array:
        """Return the frequencies that the search moves: those of the second alleles where there are two."""
        if not self.two:
            return P
        found = np.full((len(self.starts) - 1, P.shape[1]), LEAST)  # a locus with one allele has no second
        found[self.with_second] = P[self.starts[self.with_second] + 1]
        return found

    def by_row(self, Q: Array, P: Array) -> Array:
        """Return the log-likelihood of each individual."""

        def work(block: slice) -> Array:
            rows = np.zeros(self.n)
            F = P[block] @ Q.T
            if self.two:
                kernels.likelihood_rows(self.packed[block], F, rows)
            else:
                kernels.weigh_counts(self.counts[block], F, np.empty_like(F), np.empty_like(F), rows)
            return rows

        return np.asarray(self._sum(work))

    def value(self, Q: Array, P: Array) -> float:
        """Return the log-likelihood."""
        return float(self.by_row(Q, P).sum())

    def _sum(self, work: Callable[[slice], Any]) -> Any:
        total: Any = None
        with one_thread_blas():
            for part in ordered_map(work, self.blocks, self.threads):
                total = part if total is None else _added(total, part)
        return total

    # ---- one half of a step: Q given P ----

    def move_rows(self, Q: Array, P: Array) -> tuple[Array, Array]:
        """Return Q after its half of a step, and the log-likelihoods of the individuals there."""
        K = Q.shape[1]
        upper = np.triu_indices(K)

        def work(block: slice) -> tuple[Array, Array, Array]:
            part = P[block]
            rows = np.zeros(self.n)
            F = part @ Q.T
            gain = np.empty_like(F)
            second = np.empty_like(F)
            products = part[:, upper[0]] * part[:, upper[1]]
            if not self.two:
                kernels.weigh_counts(self.counts[block], F, gain, second, rows)
                return gain.T @ part, second.T @ products, rows
            lost = np.empty_like(F)
            other = np.empty_like(F)
            kernels.weigh_rows(self.packed[block], F, gain, lost, second, other, rows)
            rest = 1.0 - part
            both = rest[:, upper[0]] * rest[:, upper[1]]
            return gain.T @ part + lost.T @ rest, second.T @ products + other.T @ both, rows

        slope, curve, before = self._sum(work)
        proposed = np.empty_like(Q)
        kernels.simplex_steps(Q, slope, curve, LEAST, proposed)
        return self._kept_rows(Q, proposed, P, before)

    def _kept_rows(self, Q: Array, proposed: Array, P: Array, before: Array) -> tuple[Array, Array]:
        """Halve the moves of individuals whose likelihood would fall by more than rounding."""
        least = before - _ROUNDING * np.abs(before)
        for _ in range(_HALVINGS):
            after = self.by_row(proposed, P)
            worse = after < least
            if not worse.any():
                return proposed, after
            proposed[worse] = 0.5 * (proposed[worse] + Q[worse])
        after = self.by_row(proposed, P)
        worse = after < least
        proposed[worse] = Q[worse]
        return proposed, np.where(worse, before, after)

    # ---- the other half: P given Q ----

    def move_frequencies(self, Q: Array, P: Array) -> Array:
        """Return P after its half of a step."""
        K = Q.shape[1]
        upper = np.triu_indices(K)
        products = Q[:, upper[0]] * Q[:, upper[1]]

        def work(block: slice) -> Array:
            part = np.ascontiguousarray(P[block])
            F = part @ Q.T
            first = np.empty_like(F)
            second = np.empty_like(F)
            if not self.two:
                kernels.weigh_counts(self.counts[block], F, first, second, np.zeros(self.n))
                return self._em_frequencies(block, part, first @ Q)
            packed = self.packed[block]
            before = np.empty(len(F))
            kernels.weigh_loci(packed, F, first, second, before)
            new = np.empty_like(part)
            kernels.box_steps(part, first @ Q, second @ products, LEAST, new)
            after = np.empty(len(F))
            for _ in range(_HALVINGS):
                kernels.likelihood_loci(packed, new @ Q.T, after)
                worse = after < before
                if not worse.any():
                    return new
                new[worse] = 0.5 * (new[worse] + part[worse])
            kernels.likelihood_loci(packed, new @ Q.T, after)
            new[after < before] = part[after < before]
            return new

        with one_thread_blas():
            return np.concatenate(list(ordered_map(work, self.blocks, self.threads)))

    def _em_frequencies(self, block: slice, part: Array, ratio: Array) -> Array:
        """Return p·Σ q n/f, divided by its sum over each locus."""
        new = part * ratio
        first = self.starts[(self.starts >= block.start) & (self.starts < block.stop)] - block.start
        sizes = np.diff(np.r_[first, len(part)])
        total = np.repeat(np.add.reduceat(new, first, axis=0), sizes, axis=0)
        new = np.where(total > 0, new / np.where(total > 0, total, 1.0), part)
        new = np.maximum(new, LEAST)
        return np.asarray(new / np.repeat(np.add.reduceat(new, first, axis=0), sizes, axis=0))

    # ---- EM: the step that certifies ----

    def em_step(self, Q: Array, P: Array) -> tuple[Array, Array]:
        """Return Q and P after one EM step."""

        def work(block: slice) -> tuple[Array, list[Array]]:
            part = np.ascontiguousarray(P[block])
            F = part @ Q.T
            gain = np.empty_like(F)
            lost = np.empty_like(F)
            if not self.two:
                kernels.weigh_counts(self.counts[block], F, gain, lost, np.zeros(self.n))
                return gain.T @ part, [self._em_frequencies(block, part, gain @ Q)]
            kernels.weigh_rows(self.packed[block], F, gain, lost, np.empty_like(F), np.empty_like(F), np.zeros(self.n))
            up = part * (gain @ Q)
            down = (1.0 - part) * (lost @ Q)
            total = up + down
            new = np.where(total > 0, up / np.where(total > 0, total, 1.0), part)
            return gain.T @ part + lost.T @ (1.0 - part), [np.clip(new, LEAST, 1.0 - LEAST)]

        slope, parts = self._sum(work)
        new = Q * slope
        total = new.sum(axis=1, keepdims=True)
        moved = np.where(total > 0, new / np.where(total > 0, total, 1.0), Q)
        return np.asarray(feasible_rows(moved)), np.concatenate(parts)


def _added(a: Any, b: Any) -> Any:
    if isinstance(a, tuple):
        return tuple(_added(x, y) for x, y in zip(a, b, strict=True))
    return a + b  # arrays add, lists of parts grow


def feasible_rows(Q: Array) -> Array:
    """Return the rows with no entry below the least value and sum one."""
    raised = np.maximum(Q, LEAST)
    return np.asarray(raised / raised.sum(axis=1, keepdims=True))


def maximise(
    likelihood: Likelihood,
    Q: Array,
    P: Array,
    *,
    tol: float,
    max_iter: int,
    progress: Callable[[int, float], bool],
) -> Fit:
    """Climb from (Q, P) until an iteration raises the log-likelihood by no more than `tol` times its size.

    Parameters
    ----------
    likelihood : Likelihood
        The genotypes.
    Q, P : arrays of shape (n, K) and (n_alleles in all, K)
        The start.
    tol : float
        Relative rise at which to stop.
    max_iter : int
        Most iterations.
    progress : callable
        Told the iteration and the log-likelihood; true stops the search.

    Returns
    -------
    Fit
        Its `history` never falls.
    """
    Q = feasible_rows(Q)
    P = likelihood.moved(np.asarray(P))
    P = np.clip(P, LEAST, 1.0 - LEAST) if likelihood.two else P
    history = [likelihood.value(Q, P)]
    steps: list[tuple[Array, Array]] = []  # pairs x, M(x)
    n_iter = 0
    small = 0
    while n_iter < max_iter:
        n_iter += 1
        before = np.concatenate([Q.ravel(), P.ravel()])
        Q1, _ = likelihood.move_rows(Q, P)
        P1 = likelihood.move_frequencies(Q1, P)
        after = np.concatenate([Q1.ravel(), P1.ravel()])
        value = likelihood.value(Q1, P1)
        steps = [*steps, (before, after)][-_SECANTS - 1 :]
        if len(steps) > 1:
            jump = _extrapolate(steps)
            if jump is not None:
                Qj, Pj = _feasible(likelihood, jump, Q.shape, P.shape)
                reached = likelihood.value(Qj, Pj)
                if reached > value:
                    Q1 = Qj
                    P1 = Pj
                    value = reached
        if value < history[-1]:  # rounding: no more progress
            break
        Q = Q1
        P = P1
        rise = value - history[-1]
        history.append(value)
        small = small + 1 if rise <= tol * abs(value) else 0
        if small >= 2 or progress(n_iter, value):
            break
    Q2, P2 = likelihood.em_step(Q, P)
    rise = max(0.0, likelihood.value(Q2, P2) - history[-1]) / max(abs(history[-1]), 1e-300)
    return Fit(Q, likelihood.frequencies(P), np.array(history), float(rise), n_iter)


def _extrapolate(steps: list[tuple[Array, Array]]) -> Array | None:
    """Return M(x) − V(UᵀU − UᵀV)⁻¹Uᵀ(x − M(x)) of the last steps, with U, V differences of x and of M(x) − x."""
    x, image = steps[-1]
    U = np.array([b - a for a, b in steps[:-1]])
    V = np.array(
        [second - first for first, second in zip([b for _, b in steps[:-1]], [b for _, b in steps[1:]], strict=True)]
    )
    system = U @ (U - V).T
    try:
        weights = np.linalg.solve(system, U @ (x - image))
    except np.linalg.LinAlgError:
        return None
    jump = image - V.T @ weights
    return jump if np.isfinite(jump).all() else None


def _feasible(likelihood: Likelihood, x: Array, rows: tuple[int, ...], columns: tuple[int, ...]) -> tuple[Array, Array]:
    cut = rows[0] * rows[1]
    Q = feasible_rows(x[:cut].reshape(rows))
    P = x[cut:].reshape(columns)
    if likelihood.two:
        return Q, np.clip(P, LEAST, 1.0 - LEAST)
    P = np.maximum(P, LEAST)
    sizes = np.diff(likelihood.starts)
    return Q, P / np.repeat(np.add.reduceat(P, likelihood.starts[:-1], axis=0), sizes, axis=0)


def project(likelihood: Likelihood, P: Array, n_populations: int, max_iter: int = 200) -> Array:
    """Return the proportions of greatest likelihood given the frequencies, each individual for itself."""
    Q = np.full((likelihood.n, n_populations), 1.0 / n_populations)
    part = likelihood.moved(P)
    part = np.clip(part, LEAST, 1.0 - LEAST) if likelihood.two else np.maximum(part, LEAST)
    for _ in range(max_iter):
        new, _ = likelihood.move_rows(Q, part)
        moved = np.abs(new - Q).max()
        Q = new
        if moved < 1e-7:
            break
    return Q


def spectral_start(genotypes: Genotypes, K: int, rng: np.random.Generator) -> Array:
    """Return proportions from the corners of the cloud of individuals in its K − 1 leading directions.

    Admixed individuals lie between the populations they come from, so corners stand for populations (successive
    projections; U. Araújo et al. 2001). The start is mixed with equal proportions, so that no zero is final.
    """
    n = genotypes.n_individuals
    gram = np.zeros((n, n))
    for loci in blocks_of(genotypes):
        counts = genotypes.counts(loci).astype(np.float64)
        sizes = genotypes.n_alleles[loci]
        first = np.r_[0, np.cumsum(sizes)[:-1]]
        typed = np.repeat(np.add.reduceat(counts, first, axis=1), sizes, axis=1)
        share = counts.sum(axis=0) / np.maximum(typed.sum(axis=0), 1.0)
        centred = (counts - typed * share) / np.sqrt(np.maximum(share * (1.0 - share), 1e-3))
        gram += centred @ centred.T
    values, vectors = np.linalg.eigh(gram)
    k = min(K - 1, n - 1)
    scores = vectors[:, ::-1][:, :k] * np.sqrt(np.maximum(values[::-1][:k], 0.0))
    points = np.column_stack([np.ones(n) * np.abs(scores).max(initial=1.0), scores])
    corners = []
    left = points.copy()
    for _ in range(min(K, points.shape[1], n)):
        i = int(np.argmax((left**2).sum(axis=1)))
        corners.append(i)
        size = float(np.sqrt((left[i] ** 2).sum()))
        if size <= 1e-12:
            break
        direction = left[i] / size
        left = left - np.outer(left @ direction, direction)
    basis = points[corners]
    weights = np.linalg.lstsq(basis.T, points.T, rcond=None)[0].T
    weights = np.clip(weights, 0.0, None)
    if weights.shape[1] < K:
        weights = np.column_stack([weights, np.zeros((n, K - weights.shape[1]))])
    weights = weights + 1e-3 * rng.random(weights.shape)
    weights /= weights.sum(axis=1, keepdims=True)
    return np.asarray(0.85 * weights + 0.15 / K)


def start_frequencies(genotypes: Genotypes, Q: Array) -> Array:
    """Return the weighted allele frequencies of each population, with half a copy more of each allele."""
    found = np.concatenate([genotypes.counts(loci).T.astype(np.float64) @ Q for loci in blocks_of(genotypes)]) + 0.5
    total = np.add.reduceat(found, genotypes.starts[:-1], axis=0)
    return np.asarray(found / np.repeat(total, genotypes.n_alleles, axis=0))


def blocks_of(genotypes: Genotypes, size: int = 2048) -> list[slice]:
    """Return the loci in pieces whose counts take little memory."""
    return [slice(first, min(first + size, genotypes.n_loci)) for first in range(0, genotypes.n_loci, size)]
