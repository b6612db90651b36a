r"""Latent Dirichlet allocation (Blei, Ng and Jordan 2003) by Gibbs sampling, exact, with chains that can be checked.

θ_d ~ Dirichlet(α), φ_k ~ Dirichlet(β); each token's topic z ~ θ_d, its word w ~ φ_z. Three samplers of p(z | w):

| method | draws | a token costs |
|---|---|---|
| `"sparse"` (default) | Φ, then z with θ integrated out | O(topics in its document) |
| `"gibbs"` | Φ, θ, z in turn, as the textbook has it | O(K) |
| `"collapsed"` | each z given all others | O(K) |

The log joint is log p(w, z | α, β) with Φ and θ integrated out, the same number for all three.
"""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from ..core.errors import ParameterError
from ..sampling.chains import Chains
from ..sampling.driver import ESS, sample
from ..sampling.metropolis import step_words
from ..sampling.states import Rng, Sampler, Variable
from . import _kernels as kernels
from .corpus import Corpus, corpus_of

Array = NDArray[np.float64]
METHODS = ("sparse", "gibbs", "collapsed")


def sample_topics(
    counts: Any,
    n_topics: int,
    *,
    alpha: Any = None,
    beta: float = 0.01,
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
    alpha : float, array of shape (K,) or None
        Dirichlet parameter of the topics in a document; None is 1/K.
    beta : float
        Dirichlet parameter of the words in a topic.
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
    sampler = TopicSampler(corpus, n_topics, alpha=alpha, beta=beta, method=method, n_warmup=n_warmup)
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
    """Topics of all tokens."""

    z: NDArray[np.int32]


class TopicSampler(Sampler):
    """The pair `init`, `step` of the samplers of topics.

    Memory: 8 bytes per token and chain, and 24 bytes per word and topic ("sparse").

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
        beta: float = 0.01,
        method: str = "sparse",
        n_warmup: int = 0,
    ) -> None:
        if not isinstance(n_topics, (int, np.integer)) or isinstance(n_topics, bool) or n_topics < 1:
            raise ParameterError(f"sample_topics: n_topics must be an integer of at least 1; got {n_topics!r}.")
        if method not in METHODS:
            raise ParameterError(f"sample_topics: method must be one of {', '.join(METHODS)}; got {method!r}.")
        self.corpus = corpus
        self.K = int(n_topics)
        given = np.asarray(1.0 / self.K if alpha is None else alpha, dtype=np.float64)
        if given.shape not in ((), (self.K,)) or not np.isfinite(given).all() or (given <= 0).any():
            raise ParameterError(f"sample_topics: alpha must be positive, one number or {self.K}; got {alpha!r}.")
        if not 0 < beta < np.inf:
            raise ParameterError(f"sample_topics: beta must be positive; got {beta!r}.")
        if not isinstance(n_warmup, (int, np.integer)) or isinstance(n_warmup, bool) or n_warmup < 0:
            raise ParameterError(f"sample_topics: n_warmup must be an integer of at least 0; got {n_warmup!r}.")
        self.alpha = np.broadcast_to(given, (self.K,)).copy()
        self.beta = float(beta)
        self.method = method
        self.n_warmup = int(n_warmup)
        self.variables = (Variable("log_joint"), Variable("sizes", (self.K,)))
        self._used = np.zeros(corpus.n_words, dtype=np.uint8)
        self._used[corpus.words] = 1

    def init(self, x: Any, rng: Rng) -> TopicState:
        """Return topics at random, or those given."""
        n = len(self.corpus.words)
        z = rng.integers(0, self.K, size=n, dtype=np.int32) if x is None else np.array(x, dtype=np.int32)
        if z.shape != (n,) or (z < 0).any() or (z >= self.K).any():
            raise ParameterError(f"sample_topics: a start must be {n} topics from 0 to {self.K - 1}.")
        return TopicState(z)

    def template(self) -> TopicState:
        """Return a state of the right form."""
        return TopicState(np.zeros(len(self.corpus.words), dtype=np.int32))

    def step(self, state: TopicState, rng: Rng) -> tuple[TopicState, tuple[float, ...]]:
        """Sweep over all tokens once."""
        words = step_words(rng, 2)
        tokens, starts, V = self.corpus
        z = state.z.copy()
        counts = np.empty((self.K, V), dtype=np.int32)
        kernels.count_words(tokens, z, counts)
        if self.method == "collapsed":
            kernels.sweep_collapsed(tokens, starts, counts, self.alpha, self.beta, words[1], z)
            return TopicState(z), ()
        phi = np.empty((V, self.K))
        kernels.draw_topics(counts, self.beta, words[0], phi)
        if self.method == "gibbs":
            kernels.sweep_plain(tokens, starts, phi, self.alpha, words[1], z)
            return TopicState(z), ()
        share = np.empty((V, self.K))
        other = np.empty((V, self.K), dtype=np.int32)
        mass = np.empty(V)
        kernels.build_aliases(phi, self.alpha, self._used, share, other, mass)
        kernels.sweep_sparse(tokens, starts, 0, len(starts) - 1, phi, share, other, mass, words[1], z)
        return TopicState(z), ()

    def draw(self, state: TopicState) -> Array:
        """Return the log joint and the sizes of the topics, largest first."""
        counts = np.empty((self.K, self.corpus.n_words), dtype=np.int32)
        kernels.count_words(self.corpus.words, state.z, counts)
        sizes = np.sort(counts.sum(axis=1))[::-1] / len(state.z)
        level = log_joint(self.corpus, state.z, counts, self.alpha, self.beta)
        return np.concatenate([[level], sizes])


def log_joint(corpus: Corpus, z: NDArray[np.int32], counts: NDArray[np.int32], alpha: Array, beta: float) -> float:
    """Return log p(w, z | α, β), Φ and θ integrated out."""
    K, V = counts.shape
    lengths = np.diff(corpus.starts)
    documents = np.repeat(np.arange(len(lengths)), lengths)
    # Only the pairs of document and topic that occur: all others add nothing.
    pairs, n = np.unique(documents * K + z, return_counts=True)
    own = alpha[pairs % K]
    by_document = (gammaln(n + own) - gammaln(own)).sum()
    by_document += (gammaln(alpha.sum()) - gammaln(lengths + alpha.sum())).sum()
    seen = counts[counts > 0]
    by_topic = (gammaln(seen + beta) - gammaln(beta)).sum()
    by_topic += (gammaln(V * beta) - gammaln(counts.sum(axis=1) + V * beta)).sum()
    return float(by_document + by_topic)
