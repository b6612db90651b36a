r"""Markov chains with finitely many states.

A chain moves from i to j with probability P_ij, whatever came before. Its long run is a matter of linear algebra:

- π is stationary if πP = π. States that reach each other form a class; a class that cannot be left is recurrent, and
  each recurrent class carries exactly one stationary law.
- The period of a class is the greatest common divisor of the lengths of its loops. An irreducible chain of period 1
  forgets its start: every row of Pⁿ tends to π, at the rate λ*ⁿ, where λ* is the second-largest modulus of the
  eigenvalues of P. The absolute spectral gap is 1 − λ*.
- For a reversible chain (π_i P_ij = π_j P_ji, detailed balance)

$$ (t_{rel} - 1) \log\frac{1}{2\varepsilon} \le t_{mix}(\varepsilon) \le t_{rel} \log\frac{1}{\varepsilon \min_i \pi_i},
   \qquad t_{rel} = \frac{1}{1 - \lambda_*} . $$

Reference: D. Levin, Y. Peres and E. Wilmer, Markov Chains and Mixing Times (2nd ed., 2017), theorems 12.4 and 12.5.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse.csgraph import breadth_first_order, connected_components
from sklearn.utils import check_random_state

from ..core.errors import DataError, ParameterError
from ..probability.dirichlet import Dirichlet
from ._kernels import walk
from .baum_welch import check_probabilities

Array = NDArray[Any]


class MarkovChain:
    """A Markov chain on finitely many states.

    Parameters
    ----------
    transmat : array of shape (K, K)
        P_ij, the probability of moving from state i to state j; each row sums to one.
    states : sequence of K names, optional
        What the states are called; 0, 1, … if left out.
    startprob : array of shape (K,), optional
        Law of the first state; by default the stationary law, where there is only one, or else the uniform law.

    Examples
    --------
    >>> weather = MarkovChain([[0.9, 0.1], [0.5, 0.5]], states=["dry", "wet"])
    >>> weather.stationary_distribution()
    array([0.8333, 0.1667])
    >>> weather.spectral_gap, weather.is_reversible, weather.period
    (0.6, True, 1)
    >>> weather.mixing_time(0.01)
    5
    """

    def __init__(
        self, transmat: ArrayLike, states: Sequence[Hashable] | None = None, startprob: ArrayLike | None = None
    ) -> None:
        P = check_probabilities("MarkovChain", "transmat", transmat, 2)
        K = len(P)
        if P.shape != (K, K) or K == 0:
            raise ParameterError(f"MarkovChain: transmat must be a square table; got shape {P.shape}.")
        names = list(range(K)) if states is None else list(states)
        if len(names) != K or len(set(names)) != K:
            raise ParameterError(f"MarkovChain: states must be {K} different names; got {names!r}.")
        self._P = P
        self._states = names
        self._codes = {name: code for code, name in enumerate(names)}
        n_classes, self._class_of = connected_components(P > 0, directed=True, connection="strong")
        leaves = (P > 0) & (self._class_of[:, None] != self._class_of)
        self._recurrent = ~np.isin(np.arange(n_classes), self._class_of[leaves.any(axis=1)])
        if startprob is not None:
            start = check_probabilities("MarkovChain", "startprob", startprob, 1)
            if start.shape != (K,):
                raise ParameterError(f"MarkovChain: startprob must have {K} entries; got shape {start.shape}.")
        elif self._recurrent.sum() == 1:
            start = self.stationary_distribution()
        else:
            start = np.full(K, 1 / K)
        self._start = start

    @classmethod
    def from_paths(
        cls, paths: Any, states: Sequence[Hashable] | None = None, *, prior: Any = 0.0, stationary_start: bool = False
    ) -> Self:
        """Return the chain of greatest likelihood, or the posterior mean under a Dirichlet prior, from observed paths.

        Parameters
        ----------
        paths : a sequence of states, or a sequence of such sequences
            What was seen. A missing step (None or NaN) cuts a path in two.
        states : sequence of names, optional
            All states; by default those that were seen, sorted.
        prior : float or array of shape (K, K)
            Dirichlet parameters of the rows. Zero gives P_ij = n_ij / n_i; otherwise the posterior mean.
        stationary_start : bool
            Whether the first state follows the stationary law; otherwise the shares of the paths' first states.
        """
        posterior = TransitionPosterior.from_paths(paths, states, prior=prior)
        empty = posterior.alpha.sum(axis=1) == 0
        if empty.any():
            name = posterior.states[int(empty.argmax())]
            raise DataError(
                f"MarkovChain: no path leaves state {name!r}, so that its row is unknown; "
                "give a prior > 0, or more paths."
            )
        start = None if stationary_start or posterior.starts.sum() == 0 else posterior.starts / posterior.starts.sum()
        return cls(posterior.mean, posterior.states, start)

    @property
    def transmat(self) -> Array:
        """P, of shape (K, K)."""
        return self._P.copy()

    @property
    def states(self) -> list[Any]:
        """The states' names."""
        return list(self._states)

    @property
    def startprob(self) -> Array:
        """The law of the first state."""
        return self._start.copy()

    def communicating_classes(self) -> list[list[Any]]:
        """Return the classes of states that reach each other."""
        return [[self._states[i] for i in self._members(c)] for c in self._ordered_classes()]

    def recurrent_classes(self) -> list[list[Any]]:
        """Return the classes that are never left."""
        return [[self._states[i] for i in self._members(c)] for c in self._ordered_classes() if self._recurrent[c]]

    @property
    def is_irreducible(self) -> bool:
        """Whether every state reaches every other."""
        return len(self._recurrent) == 1

    @property
    def period(self) -> int:
        """The period of an irreducible chain; of others, the least common multiple of their recurrent classes'."""
        return math.lcm(*(gcd_of_loops(self._P, self._members(c)) for c in np.flatnonzero(self._recurrent).tolist()))

    def period_of(self, state: Hashable) -> int:
        """Return the greatest common divisor of the lengths of the loops through a state; 0 if there is none."""
        return gcd_of_loops(self._P, self._members(int(self._class_of[self._code(state)])))

    @property
    def is_ergodic(self) -> bool:
        """Whether some power of P is positive everywhere: irreducible, and of period 1."""
        return self.is_irreducible and self.period == 1

    def stationary_distributions(self) -> Array:
        """Return one stationary law for each recurrent class; all others are mixtures of them."""
        laws = np.zeros((int(self._recurrent.sum()), len(self._P)))
        for law, c in zip(laws, (c for c in self._ordered_classes() if self._recurrent[c]), strict=True):
            members = self._members(c)
            law[members] = stationary_law(self._P[np.ix_(members, members)])
        return laws

    def stationary_distribution(self) -> Array:
        """Return the stationary law π = πP, to full relative precision; raise DataError if there are several."""
        laws = self.stationary_distributions()
        if len(laws) > 1:
            raise DataError(
                f"MarkovChain: there are {len(laws)} recurrent classes and so no single stationary law; "
                "stationary_distributions() returns one for each class."
            )
        return laws[0]

    @property
    def is_reversible(self) -> bool:
        """Whether detailed balance holds, π_i P_ij = π_j P_ji, up to rounding."""
        return self.detailed_balance_error() <= 1e-12

    def detailed_balance_error(self) -> float:
        """Return the largest |π_i P_ij − π_j P_ji|, relative to the largest flow between two states."""
        flow = self.stationary_distribution()[:, None] * self._P
        np.fill_diagonal(flow, 0.0)
        return float(abs(flow - flow.T).max() / max(flow.max(), np.finfo(float).tiny))

    def eigenvalues(self) -> Array:
        """Return the eigenvalues of P, the largest modulus first; real ones for a reversible chain."""
        found: Array
        if self.is_irreducible and self.is_reversible:
            root = np.sqrt(self.stationary_distribution())
            S = root[:, None] * self._P / root  # symmetric, with the eigenvalues of P
            found = np.linalg.eigvalsh((S + S.T) / 2)
        else:
            found = np.linalg.eigvals(self._P)
        return found[np.argsort(-abs(found), kind="stable")]

    @property
    def spectral_gap(self) -> float:
        """1 − λ*, with λ* the second-largest modulus of the eigenvalues; zero if the chain has a period or two ends."""
        moduli = abs(self.eigenvalues())
        return float(min(max(1.0 - moduli[1], 0.0), 1.0)) if len(moduli) > 1 else 1.0

    @property
    def relaxation_time(self) -> float:
        """1/(1 − λ*): how many steps shrink the slowest deviation from the stationary law by about e."""
        return 1.0 / self.spectral_gap if self.spectral_gap > 1e-14 else math.inf

    def distance_to_stationarity(self, steps: int) -> float:
        """Return the largest total variation distance between a row of Pⁿ and π."""
        Pn = np.linalg.matrix_power(self._P, steps)
        return float(abs(Pn - self.stationary_distribution()).sum(axis=1).max() / 2)

    def mixing_time(self, epsilon: float = 0.25) -> int:
        """Return the least n with `distance_to_stationarity(n)` <= epsilon, by doubling and halving."""
        if not 0 < epsilon < 1:
            raise ParameterError(f"MarkovChain: epsilon must be a number > 0 and < 1; got {epsilon!r}.")
        if not (self._recurrent.sum() == 1 and self.period == 1):
            raise DataError("MarkovChain: a chain with a period, or with several recurrent classes, never mixes.")
        pi = self.stationary_distribution()
        powers = [self._P]

        def distance(Q: Array) -> float:
            return float(abs(Q - pi).sum(axis=1).max() / 2)

        if distance(np.eye(len(pi))) <= epsilon:
            return 0
        while distance(powers[-1]) > epsilon:
            if len(powers) > 50:
                raise DataError("MarkovChain: the chain does not mix within 2**50 steps; its gap is rounding.")
            powers.append(powers[-1] @ powers[-1])
        # the distance never rises, so the largest n with a greater one is found bit by bit
        n = 0
        Q = np.eye(len(pi))
        for power in reversed(range(len(powers))):
            further = Q @ powers[power]
            if distance(further) > epsilon:
                n = n + 2**power
                Q = further
        return n + 1

    def mixing_time_bounds(self, epsilon: float = 0.25) -> tuple[float, float]:
        """Return the bounds on the mixing time that the spectral gap of a reversible ergodic chain gives."""
        if not (self.is_ergodic and self.is_reversible):
            raise DataError("MarkovChain: the spectral bounds hold for reversible ergodic chains; use mixing_time().")
        pi = self.stationary_distribution()
        relaxation = self.relaxation_time
        lower = max((relaxation - 1) * math.log(1 / (2 * epsilon)), 0.0)
        return lower, relaxation * math.log(1 / (epsilon * pi.min()))

    def hitting_probabilities(self, targets: Any) -> Array:
        """Return for every state the probability that the chain ever enters one of `targets`."""
        inside = self._mask(targets)
        h = inside.astype(float)
        reaches = self._reaching(inside)
        free = np.flatnonzero(reaches & ~inside)
        A = np.eye(len(free)) - self._P[np.ix_(free, free)]
        h[free] = np.linalg.solve(A, self._P[np.ix_(free, np.flatnonzero(inside))].sum(axis=1))
        return np.clip(h, 0.0, 1.0)

    def hitting_times(self, targets: Any) -> Array:
        """Return for every state the expected number of steps until `targets`; infinite where it may never happen."""
        inside = self._mask(targets)
        lost = ~self._reaching(inside)
        # Whoever may wander into a lost state before the targets waits for ever, in expectation.
        stopped = np.where(inside[:, None], 0.0, self._P)
        doomed = self._reaching(lost, stopped) if lost.any() else lost
        k = np.where(doomed, np.inf, 0.0)
        free = np.flatnonzero(~doomed & ~inside)
        k[inside] = 0.0
        k[free] = np.linalg.solve(np.eye(len(free)) - self._P[np.ix_(free, free)], np.ones(len(free)))
        return k

    def predict_proba(self, start: Any, steps: int = 1) -> Array:
        """Return the law of the state `steps` steps after a state, or after a law over the states."""
        law = np.asarray(start, dtype=float) if np.ndim(start) == 1 else np.eye(len(self._P))[self._code(start)]
        return law @ np.linalg.matrix_power(self._P, steps)

    def log_likelihood(self, paths: Any, *, given_start: bool = False) -> float:
        """Return log P(paths), with or without the probability of the first states."""
        counts, starts, _ = count_moves(paths, self._states, "MarkovChain")
        with np.errstate(divide="ignore"):
            total = np.where(counts > 0, counts * np.log(self._P), 0.0).sum()
            first = 0.0 if given_start else np.where(starts > 0, starts * np.log(self._start), 0.0).sum()
        return float(total + first)

    def sample(self, n_steps: int, n_paths: int | None = None, *, start: Any = None, random_state: Any = None) -> Any:
        """Return simulated paths of `n_steps` states: one list, or `n_paths` of them.

        Parameters
        ----------
        n_steps : int
            Length of a path.
        n_paths : int, optional
            How many; None returns one path by itself.
        start : state, optional
            Where every path begins; by default drawn from `startprob`.
        random_state : int, RandomState or None
            Source of randomness.
        """
        rng = check_random_state(random_state)
        count = 1 if n_paths is None else n_paths
        u = rng.random_sample((count, n_steps))
        codes = np.empty((count, n_steps), dtype=np.int64)
        first = self._start if start is None else np.eye(len(self._P))[self._code(start)]
        walk(_cumulated(first[None])[0], _cumulated(self._P), u, codes)
        names = [[self._states[code] for code in path] for path in codes.tolist()]
        return names[0] if n_paths is None else names

    def __repr__(self) -> str:
        return f"MarkovChain({len(self._P)} states, {len(self._recurrent)} classes)"

    def _code(self, state: Any) -> int:
        if state not in self._codes:
            raise DataError(f"MarkovChain: there is no state {state!r}; the states are {self._states[:10]!r}.")
        return self._codes[state]

    def _mask(self, targets: Any) -> Array:
        single = isinstance(targets, str) or not hasattr(targets, "__iter__")
        mask = np.zeros(len(self._P), dtype=bool)
        mask[[self._code(state) for state in ([targets] if single else targets)]] = True
        return mask

    def _members(self, number: int) -> Array:
        return np.flatnonzero(self._class_of == number)

    def _ordered_classes(self) -> list[int]:
        """Return the classes in the order of their first states."""
        return sorted(range(len(self._recurrent)), key=lambda c: self._members(c)[0])

    def _reaching(self, inside: Array, P: Array | None = None) -> Array:
        """Tell which states reach a set."""
        P = self._P if P is None else P
        K = len(P)
        graph = np.zeros((K + 1, K + 1), dtype=bool)  # backwards, from one more node that leads to the set
        graph[:K, :K] = P.T > 0
        graph[K, :K] = inside
        found = np.zeros(K + 1, dtype=bool)
        found[breadth_first_order(graph, K, return_predecessors=False)] = True
        return found[:K]


class TransitionPosterior:
    """What paths say about a chain: a Dirichlet law for each row of P.

    Examples
    --------
    >>> posterior = TransitionPosterior.from_paths([["a", "a", "b", "a"]], prior=1.0)
    >>> posterior.alpha
    array([[2., 2.], [2., 1.]])
    >>> posterior.mean
    array([[0.5   , 0.5   ], [0.6667, 0.3333]])
    """

    def __init__(self, alpha: Array, states: Sequence[Any], starts: Array) -> None:
        self.alpha = alpha
        self.states = list(states)
        self.starts = starts

    @classmethod
    def from_paths(cls, paths: Any, states: Sequence[Hashable] | None = None, *, prior: Any = 1.0) -> Self:
        """Return the posterior of the rows of P: Dirichlet(prior + counts of moves)."""
        counts, starts, names = count_moves(paths, states, "TransitionPosterior")
        alpha0 = np.asarray(prior, dtype=float)
        if not (np.isfinite(alpha0).all() and (alpha0 >= 0).all() and alpha0.shape in ((), counts.shape)):
            raise ParameterError(
                f"TransitionPosterior: prior must be a number >= 0 or a table of shape {counts.shape} of them; "
                f"got {prior!r}."
            )
        return cls(counts + alpha0, names, starts)

    @property
    def mean(self) -> Array:
        """The posterior mean of P; a row without moves and prior is NaN."""
        total = self.alpha.sum(axis=1, keepdims=True)
        return np.divide(self.alpha, total, out=np.full(self.alpha.shape, np.nan), where=total > 0)

    def row(self, state: Any) -> Dirichlet:
        """Return the Dirichlet law of the moves out of a state."""
        return Dirichlet(self.alpha[code_states("TransitionPosterior", self.states, [state])[0]])

    def sample(self, n_samples: int = 1, random_state: Any = None) -> Array:
        """Return draws of P, of shape (n_samples, K, K)."""
        rng = check_random_state(random_state)
        gammas = rng.standard_gamma(self.alpha, (n_samples, *self.alpha.shape))
        return gammas / gammas.sum(axis=2, keepdims=True)


def _cumulated(P: Array) -> Array:
    """Return cumulated rows whose last positive entry is exactly one, so that no draw falls beyond it."""
    total = np.cumsum(P, axis=1)
    last = P.shape[1] - 1 - np.argmax(P[:, ::-1] > 0, axis=1)
    return np.where(np.arange(P.shape[1]) >= last[:, None], 1.0, np.minimum(total, 1.0))


# Tables of transition probabilities: checks, counts of moves, the stationary law, periods.


def stationary_law(P: Array) -> Array:
    """Return the stationary law of an irreducible chain by elimination without subtractions.

    Every entry has full relative precision, however small (W. Grassmann, M. Taksar and D. Heyman, Regenerative analysis
    and steady state distributions for Markov chains, Operations Research 33 (1985), 1107–1116).
    """
    A = np.array(P, dtype=np.float64)
    K = len(A)
    for n in range(K - 1, 0, -1):  # take state n out: its visits are spread over the states before it
        A[:n, n] /= A[n, :n].sum()
        A[:n, :n] += A[:n, n, None] * A[n, :n]
    pi = np.ones(K)
    for n in range(1, K):
        pi[n] = pi[:n] @ A[:n, n]
    return pi / pi.sum()


def gcd_of_loops(P: Array, members: Array) -> int:
    """Return the period of a class of states: gcd of level(i) + 1 − level(j) over its moves i → j; 0 without moves."""
    inner = P[np.ix_(members, members)] > 0
    order, before = breadth_first_order(inner, 0)
    level = np.zeros(len(members), dtype=int)
    for state in order[1:]:
        level[state] = level[before[state]] + 1
    i, j = np.nonzero(inner)
    return math.gcd(*(level[i] + 1 - level[j]).tolist())


def count_moves(paths: Any, states: Sequence[Any] | None, owner: str) -> tuple[Array, Array, list[Any]]:
    """Return the counts of moves (K, K), the counts of first states (K,) and the names of the states."""
    listed = _list_of_paths(owner, paths)
    seen = {state for path in listed for state in path if not _is_missing(state)}
    if states is None:
        try:
            names = sorted(seen)
        except TypeError as error:
            raise DataError(f"{owner}: the states cannot be sorted; give them as states=[…].") from error
    else:
        names = list(states)
    if not names:
        raise DataError(f"{owner}: the paths hold no state; give at least one.")
    K = len(names)
    counts = np.zeros((K, K))
    starts = np.zeros(K)
    for path in listed:
        present = np.array([not _is_missing(state) for state in path], dtype=bool)
        codes = np.zeros(len(path), dtype=np.int64)
        codes[present] = code_states(owner, names, [state for state in path if not _is_missing(state)])
        both = present[:-1] & present[1:]
        np.add.at(counts, (codes[:-1][both], codes[1:][both]), 1.0)
        if len(path) and present[0]:
            starts[codes[0]] += 1
    return counts, starts, names


def code_states(owner: str, names: Sequence[Any], path: Sequence[Any]) -> Array:
    """Return the number of each state of a path."""
    code_of = {name: code for code, name in enumerate(names)}
    try:
        return np.array([code_of[state] for state in path], dtype=np.int64)
    except KeyError as error:
        raise DataError(
            f"{owner}: the state {error.args[0]!r} is not among the states {list(names)[:10]!r}."
        ) from error


def _list_of_paths(owner: str, paths: Any) -> list[list[Any]]:
    if isinstance(paths, str):
        return [list(paths)]
    if isinstance(paths, np.ndarray):
        paths = paths.tolist()
    if not hasattr(paths, "__iter__"):
        raise DataError(f"{owner}: paths must be a sequence of states or of such sequences; got {paths!r}.")
    items = [each.tolist() if isinstance(each, np.ndarray) else each for each in paths]
    nested = [isinstance(each, (list, tuple)) for each in items]
    if any(nested):
        if not all(nested):
            raise DataError(f"{owner}: paths mixes states and sequences of states; wrap every path in a list.")
        return [list(each) for each in items]
    return [items]


def _is_missing(state: Any) -> bool:
    return state is None or (isinstance(state, float) and math.isnan(state))
