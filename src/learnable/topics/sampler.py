r"""Latent Dirichlet allocation (Blei, Ng and Jordan 2003) by Gibbs sampling, exact, with chains that can be checked.

θ_d ~ Dirichlet(α), φ_k ~ Dirichlet(β); each token's topic z ~ θ_d, its word w ~ φ_z. Three samplers of p(z | w):

| method | draws | a token costs |
|---|---|---|
| `"sparse"` (default) | Φ, then z with θ integrated out | O(topics in its document) |
| `"gibbs"` | Φ, θ, z in turn, as the textbook has it | O(K) |
| `"collapsed"` | each z given all others | O(K) |

The log joint is log p(w, z | α, β) with Φ and θ integrated out, the same number for all three. α and β may be learned:
their prior is uniform on (0, 10] (see `dirichlet`).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.errors import DataError, ParameterError
from ..core.estimator import Run, never
from ..core.threads import resolve_n_jobs, run_tasks
from ..sampling.chains import Chains
from ..sampling.driver import ESS, resume, sample
from ..sampling.metropolis import step_words
from ..sampling.states import Rng, Sampler, Variable, root_seed
from . import _kernels as kernels
from . import dirichlet
from .collapsed import WordOrder
from .corpus import Corpus, corpus_of
from .start import cluster_documents

Array = NDArray[np.float64]
METHODS = ("sparse", "gibbs", "collapsed")
#: Topics up to which all terms of a token are computed instead of looking into alias tables.
MOST_DENSE = 48
#: Collapsed sweeps at the start of a sparse chain: for few topics, and one more for so many. With 500 topics the log
#: joint of 1.8 million tokens rises for 200 sweeps, whatever the start, and 155 leave little of it.
_APPROACH = 30
_TOPICS_PER_SWEEP = 4
#: Parts of the documents and of the words in these sweeps: as many threads can share them.
_PARTS = 4
#: Documents of a task: a fixed cut, whatever the number of threads.
_TASKS = 16
#: Tokens from which a sweep is worth more than one thread (a task costs 0.1 ms to hand over).
_LEAST_TOKENS = 40_000


def sample_topics(
    counts: Any,
    n_topics: int,
    *,
    alpha: Any = None,
    beta: Any = 0.01,
    method: str = "sparse",
    n_draws: int = 200,
    n_warmup: int = 200,
    n_chains: int = 4,
    random_state: Any = None,
    n_jobs: int | None = None,
    max_seconds: float | None = None,
    until: ESS | None = None,
    progress: Any = False,
) -> Chains:
    """Draw assignments of topics to tokens; keep the log joint and the sizes of the topics.

    Parameters
    ----------
    counts : array or sparse array of shape (n_documents, n_words)
        Counts of words.
    n_topics : int
        K.
    alpha : float, array of shape (K,), "symmetric", "asymmetric" or None
        Dirichlet parameter of the topics in a document; None is 1/K. "symmetric" learns one number, "asymmetric" one
        per topic.
    beta : float or "symmetric"
        Dirichlet parameter of the words in a topic; "symmetric" learns it.
    method : {"sparse", "gibbs", "collapsed"}
        See the table above.
    n_draws, n_warmup, n_chains, random_state, n_jobs, max_seconds, until, progress
        As in `sampling.sample`; a step is a sweep over all tokens.

    Returns
    -------
    Chains
        "log_joint" and "sizes", the topics' shares of the tokens, largest first: numbers that do not depend on the
        order of the topics. `states["state.z"]` holds the last assignments of each chain.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable.topics import sample_topics
    >>> counts = np.array([[9, 8, 0, 0], [7, 9, 1, 0], [0, 0, 9, 8], [0, 1, 8, 9]])
    >>> chains = sample_topics(counts, 2, alpha=1.0, beta=0.5, n_draws=600, n_warmup=50, random_state=0)
    >>> chains["sizes"].shape, chains.certificate_.holds
    ((4, 600, 2), True)
    """
    corpus = counts if isinstance(counts, Corpus) else corpus_of(counts)
    threads = 1 if n_chains != 1 else resolve_n_jobs(n_jobs)
    sampler = TopicSampler(corpus, n_topics, alpha=alpha, beta=beta, method=method, n_warmup=n_warmup, threads=threads)
    if not isinstance(n_chains, (int, np.integer)) or isinstance(n_chains, bool) or n_chains < 1:
        raise ParameterError(f"sample_topics: n_chains must be an integer of at least 1; got {n_chains!r}.")
    with warnings.catch_warnings():
        if n_topics == 1:  # nothing moves, and nothing has to
            warnings.simplefilter("ignore")
        return sample(
            sampler,
            [None] * n_chains,
            n_draws=n_draws,
            random_state=random_state,
            n_jobs=n_jobs,
            max_seconds=max_seconds,
            until=until,
            progress=progress,
        )


class TopicState(NamedTuple):
    """Topics of all tokens, and the Dirichlet parameters."""

    z: NDArray[np.int32]
    alpha: Array
    beta: Array  #: one number


class TopicSampler(Sampler):
    """The pair `init`, `step` of the samplers of topics.

    Memory: 8 bytes per token and chain, and 24 bytes per word and topic ("sparse"); while a chain begins, 16 bytes per
    token and 2 bytes per document and topic more.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable.topics import TopicSampler, corpus_of
    >>> sampler, rng = TopicSampler(corpus_of([[3, 0], [0, 3]]), 2), np.random.default_rng(0)
    >>> state, _ = sampler.step(sampler.init(None, rng), rng)
    >>> state.z.shape
    (6,)
    """

    name = "sample_topics"

    def __init__(
        self,
        corpus: Corpus,
        n_topics: int,
        *,
        alpha: Any = None,
        beta: Any = 0.01,
        method: str = "sparse",
        n_warmup: int = 0,
        threads: int = 1,
    ) -> None:
        if not isinstance(n_topics, (int, np.integer)) or isinstance(n_topics, bool) or n_topics < 1:
            raise ParameterError(f"sample_topics: n_topics must be an integer of at least 1; got {n_topics!r}.")
        if method not in METHODS:
            raise ParameterError(f"sample_topics: method must be one of {', '.join(METHODS)}; got {method!r}.")
        if not isinstance(n_warmup, (int, np.integer)) or isinstance(n_warmup, bool) or n_warmup < 0:
            raise ParameterError(f"sample_topics: n_warmup must be an integer of at least 0; got {n_warmup!r}.")
        self.corpus = corpus
        self.K = int(n_topics)
        self.learns_alpha = alpha if isinstance(alpha, str) else ""
        self.learns_beta = isinstance(beta, str)
        self.alpha = _checked_alpha(alpha, self.K)
        self.beta = _checked_beta(beta)
        self.method = method
        self.n_warmup = int(n_warmup)
        self.threads = threads if len(corpus.words) >= _LEAST_TOKENS else 1
        self.variables = (Variable("log_joint"), Variable("sizes", (self.K,)))
        if self.learns_alpha:
            self.variables = (*self.variables, Variable("alpha"))
        if self.learns_beta:
            self.variables = (*self.variables, Variable("beta"))
        self.lengths = np.diff(corpus.starts)
        self._used = np.zeros(corpus.n_words, dtype=np.uint8)
        self._used[corpus.words] = 1
        self._cuts = cut_documents(corpus.starts)
        if method == "collapsed":
            self._order = WordOrder(corpus, self.K)

    #: Whether the time of the fit that asks for the chains is up; the fit sets its own.
    halted: Callable[[], bool] = staticmethod(never)

    def init(self, x: Any, rng: Rng) -> TopicState:
        """Return topics at random, or those given."""
        n = len(self.corpus.words)
        z = rng.integers(0, self.K, size=n, dtype=np.int32) if x is None else np.array(x, dtype=np.int32)
        if z.shape != (n,) or (z < 0).any() or (z >= self.K).any():
            raise ParameterError(f"sample_topics: a start must be {n} topics from 0 to {self.K - 1}.")
        if x is None and self.method == "sparse":
            self._approach(z, rng)
        return TopicState(z, self.alpha.copy(), np.array([self.beta]))

    def _approach(self, z: NDArray[np.int32], rng: Rng) -> None:
        """Begin with clusters of documents and take collapsed sweeps: they move far faster than draws of Φ do."""
        if self.halted():  # the topics stay as they were drawn
            return
        clusters = cluster_documents(self.corpus, self.K, rng)
        if clusters is not None:
            z[:] = np.repeat(clusters, self.lengths)
        if self.halted():
            return
        order = WordOrder(self.corpus, self.K, _PARTS if len(z) >= _LEAST_TOKENS else 1)
        topics, own = order.load(z)
        for _ in range(_APPROACH + self.K // _TOPICS_PER_SWEEP):
            if self.halted():
                break
            order.sweep(topics, own, self.alpha, self.beta, step_words(rng, 1)[0], self.threads)
        order.store(topics, z)

    def template(self) -> TopicState:
        """Return a state of the right form."""
        return TopicState(np.zeros(len(self.corpus.words), dtype=np.int32), np.zeros(self.K), np.zeros(1))

    def step(self, state: TopicState, rng: Rng) -> tuple[TopicState, tuple[float, ...]]:
        """Sweep over all tokens once, then draw what is learned of α and β."""
        words = step_words(rng, 3)
        V = self.corpus.n_words
        z = state.z.copy()
        alpha = state.alpha
        beta = float(state.beta[0])
        if self.method == "collapsed":
            topics, own = self._order.load(z)
            self._order.sweep(topics, own, alpha, beta, words[1])
            self._order.store(topics, z)
        else:
            counts = self.word_counts(z)
            phi = np.empty((V, self.K))
            given = np.full((1, 1), beta)
            self._shared(
                lambda first, last: kernels.draw_gammas(counts, given, words[0], first, last, phi), even_cuts(V)
            )
            phi /= phi.sum(axis=0)
            self._sweep_given(phi, alpha, words, z)
        if self.learns_alpha or self.learns_beta:
            alpha, state_beta = self._learn(z, alpha, beta, rng)
            return TopicState(z, alpha, np.array([state_beta])), ()
        return TopicState(z, alpha, state.beta), ()

    def _sweep_given(self, phi: Array, alpha: Array, words: NDArray[np.uint64], z: NDArray[np.int32]) -> None:
        """Draw the topics of all tokens given Φ."""
        tokens, starts, V = self.corpus
        if self.method == "gibbs":
            D = len(starts) - 1
            own = np.empty((D, self.K), dtype=np.int32)
            kernels.count_topics(starts, z, own)
            theta = np.empty((D, self.K))
            kernels.draw_proportions(own, alpha, words[2], 0, D, theta)
            level = np.empty(D)
            self._shared(
                lambda first, last: kernels.sweep_plain(tokens, starts, first, last, theta, phi, words[1], z, level),
                self._cuts,
            )
        elif self.K <= MOST_DENSE:
            self._shared(
                lambda first, last: kernels.sweep_dense(tokens, starts, first, last, phi, alpha, words[1], z),
                self._cuts,
            )
        else:
            share = np.empty((V, self.K))
            other = np.empty((V, self.K), dtype=np.int32)
            mass = np.empty(V)
            self._shared(
                lambda first, last: kernels.build_aliases(phi, alpha, self._used, first, last, share, other, mass),
                even_cuts(V),
            )
            self._shared(
                lambda first, last: kernels.sweep_sparse(
                    tokens, starts, first, last, phi, share, other, mass, words[1], z
                ),
                self._cuts,
            )

    def _shared(self, work: Any, cuts: NDArray[np.int64]) -> None:
        """Do the pieces on threads; what they write does not depend on how many there are."""
        if self.threads == 1:
            work(int(cuts[0]), int(cuts[-1]))
        else:
            run_tasks(lambda t: work(int(cuts[t]), int(cuts[t + 1])), len(cuts) - 1, self.threads)

    def _learn(self, z: NDArray[np.int32], alpha: Array, beta: float, rng: Rng) -> tuple[Array, float]:
        if self.learns_alpha:
            own = np.empty((len(self.lengths), self.K), dtype=np.int32)
            kernels.count_topics(self.corpus.starts, z, own)
            if self.learns_alpha == "symmetric":
                alpha = np.full(
                    self.K, dirichlet.draw_symmetric(own, self.lengths, self.K, float(alpha[0]), rng), dtype=np.float64
                )
            else:
                alpha = dirichlet.draw_asymmetric(own, self.lengths, alpha, rng)
        if self.learns_beta:
            counts = self.word_counts(z)
            beta = dirichlet.draw_symmetric(counts, counts.sum(axis=0), self.corpus.n_words, beta, rng)
        return alpha, beta

    def word_counts(self, z: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return how often each topic has each word, (V, K)."""
        counts = np.empty((self.corpus.n_words, self.K), dtype=np.int32)
        kernels.count_words(self.corpus.words, z, counts)
        return counts

    def draw(self, state: TopicState) -> Array:
        """Return the log joint, the sizes of the topics, largest first, and what is learned."""
        counts = self.word_counts(state.z)
        sizes = np.sort(counts.sum(axis=0))[::-1] / len(state.z)
        beta = float(state.beta[0])
        level = log_joint(self.corpus, state.z, counts, state.alpha, beta)
        learned = [float(state.alpha.mean())] if self.learns_alpha else []
        learned += [beta] if self.learns_beta else []
        return np.concatenate([[level], sizes, learned])


def _checked_alpha(alpha: Any, K: int) -> Array:
    """Return one positive number per topic; 1/K is where learning starts."""
    if alpha is None or (isinstance(alpha, str) and alpha in ("symmetric", "asymmetric")):
        return np.full(K, 1.0 / K)
    try:
        given = np.asarray(alpha, dtype=np.float64)
    except (TypeError, ValueError):
        given = np.full(2, np.nan)
    if given.shape not in ((), (K,)) or not np.isfinite(given).all() or (given <= 0).any():
        raise ParameterError(
            f"sample_topics: alpha must be positive, one number or {K}, or learned ('symmetric', 'asymmetric'); got "
            f"{alpha!r}."
        )
    return np.broadcast_to(given, (K,)).copy()


def _checked_beta(beta: Any) -> float:
    if isinstance(beta, str) and beta == "symmetric":
        return 0.1
    if isinstance(beta, (str, bool)) or not isinstance(beta, (int, float, np.number)) or not 0 < beta < np.inf:
        raise ParameterError(f"sample_topics: beta must be positive, or learned ('symmetric'); got {beta!r}.")
    return float(beta)


def cut_documents(starts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return where tasks begin and end, so that each has about as many tokens."""
    wanted = np.linspace(0, int(starts[-1]), _TASKS + 1)
    return np.unique(np.r_[0, np.searchsorted(starts, wanted[1:-1]), len(starts) - 1])


def even_cuts(n: int) -> NDArray[np.int64]:
    """Return where tasks of about the same size begin and end."""
    return np.unique(np.linspace(0, n, _TASKS + 1).astype(np.int64))


def log_joint(corpus: Corpus, z: NDArray[np.int32], counts: NDArray[np.int32], alpha: Array, beta: float) -> float:
    """Return log p(w, z | α, β), Φ and θ integrated out; counts (V, K)."""
    V, K = counts.shape
    lengths = np.diff(corpus.starts)
    documents = np.repeat(np.arange(len(lengths)), lengths)
    # Only the pairs of document and topic that occur: all others add nothing.
    own = np.bincount(documents * K + z, minlength=len(lengths) * K).reshape(-1, K)
    by_document = sum(dirichlet.log_rising(float(alpha[k]), *dirichlet.frequencies_of(own[:, k])) for k in range(K))
    by_document -= dirichlet.log_rising(float(alpha.sum()), *dirichlet.frequencies_of(lengths))
    by_topic = dirichlet.log_rising(beta, *dirichlet.frequencies_of(counts))
    by_topic -= dirichlet.log_rising(V * beta, *dirichlet.frequencies_of(counts.sum(axis=0)))
    return float(by_document + by_topic)


def run_chains(
    sampler: Sampler,
    starts: list[Any],
    *,
    n_draws: int,
    gap: int,
    random_state: Any,
    run: Run,
    max_seconds: float | None,
    watch: str,
    collect: Callable[[int, int, Any], None],
) -> tuple[Array, float]:
    """Run chains and hand every gap-th state to `collect(chain, place, state)`, for estimators.

    Out of time they end where they stand; if that is during the warm-up, one step of one chain is all there is, and
    nothing is proven. `watch` is the variable that callbacks are told.

    Returns
    -------
    trace, value
        The draws, (n_chains, n_draws, n_numbers), and the certificate's value.
    """
    chains = None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the estimator warns once, at the end
        while chains is None or chains.n_draws < n_draws:
            left = None if max_seconds is None else max(1e-3, max_seconds - run.seconds)
            try:
                if chains is None:
                    chains = sample(
                        sampler,
                        starts,
                        n_draws=min(gap, n_draws),
                        random_state=random_state,
                        n_jobs=run.n_jobs,
                        max_seconds=left,
                    )
                else:
                    more = min(gap, n_draws - chains.n_draws)
                    chains = resume(chains, more, n_jobs=run.n_jobs, max_seconds=left)
            except DataError:
                if max_seconds is None or not run.out_of_time:
                    raise
                return _one_step(sampler, starts, random_state, collect), np.inf
            for c, state in enumerate(chains._states):  # type: ignore[attr-defined]
                collect(c, chains.n_draws - 1, state)
            if run.progress(chains.n_draws, float(chains[watch][:, -1].max())):
                break
    return chains.draws, chains.certificate_.value


def _one_step(sampler: Sampler, starts: list[Any], random_state: Any, collect: Any) -> Array:
    seed = root_seed(sampler.name, random_state).spawn(len(starts))[0]
    rng = np.random.Generator(np.random.PCG64(seed))
    state, _ = sampler.step(sampler.init(starts[0], rng), rng)
    collect(0, 0, state)
    return np.array([[sampler.draw(state)]])
