r"""Latent Dirichlet allocation with scikit-learn's names: sampled, variational, or of maximum likelihood.

θ_d ~ Dirichlet(α), φ_k ~ Dirichlet(η); each token has a topic z ~ θ_d and a word w ~ φ_z (D. Blei, A. Ng and M. Jordan,
JMLR 3, 2003).

| method | what it gives | certificate |
|---|---|---|
| `"sparse"` (default), `"gibbs"`, `"collapsed"` | exact posterior draws; see `sample_topics` | `chain` |
| `"variational"` | a bound that never falls (scikit-learn's `learning_method="batch"`, or `"online"`) | `ascent` |
| `"ml"` | maximum likelihood by EM, without priors | `ascent` |
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from ..core.certificate import Certificate
from ..core.declare import (
    FLOATS,
    MAX_ITER,
    MAX_SECONDS,
    N_JOBS,
    RANDOM_STATE,
    TOLERANCE,
    ArrayLike,
    Boolean,
    Matches,
    Number,
    Options,
    fitted,
    optional,
    param,
    tags,
)
from ..core.errors import DataError, ParameterError
from ..core.estimator import Estimator, Run
from ..core.loaded import law, laws
from ..core.threads import resolve_n_jobs
from ..data.dask_blocks import DaskBlocks
from ..data.door import Table, read_features
from ..meta.splits import as_generator
from . import _kernels as kernels
from ._variational_kernels import collect
from .corpus import Corpus, corpus_of
from .lda_answers import TopicAnswers
from .merged import PartitionedDocuments, Settings
from .sampler import METHODS, TopicSampler, run_chains
from .text import TextCounts, are_texts, text_door
from .variational import (
    Documents,
    bound,
    climb_bound,
    climb_likelihood,
    climb_online,
    documents_of,
    expected_logs,
    infer,
    normal_rows,
    variational_step,
)

Array = NDArray[np.float64]

_POSITIVE = Number(low=0.0, low_open=True)
#: Draws between two that are averaged.
_GAP = 10
_LARGEST_COUNT = 2.0**31  # samplers count tokens in 32 bits


#: What a sampled posterior keeps for its certificate.
_SAMPLED = ("topic_counts_", "document_counts_", "n_averaged_", "trace_")


class LatentDirichletAllocation(TopicAnswers, ClassNamePrefixFeaturesOutMixin, TransformerMixin, Estimator):
    r"""Topics of documents: each a distribution over words, and each document a mixture of them.

    `components_` holds what scikit-learn's does, the topics' Dirichlet parameters; of a sampled model η plus the mean
    counts over draws of the chain with the greatest mean log joint. Other chains serve the certificate: topics of
    chains in different modes have no average. α and η are 1/K by default, given, or learned. `learning_method` given
    means `method="variational"`, as in scikit-learn.

    `transform` gives γ normalised, the variational mean given the topics; `transform_interval` draws from the posterior
    of each document. `held_out` estimates the likelihood of new documents from left to right, without bias.

    Of counts on Dask the batch variational method adds the partitions' counts by word and topic; samplers and online
    steps need the counts in memory. Memory: 8 bytes per token and chain, 24 bytes per word and topic.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable.topics import LatentDirichletAllocation
    >>> X = np.array([[9, 8, 0, 0], [7, 9, 1, 0], [0, 0, 9, 8], [0, 1, 8, 9]])
    >>> model = LatentDirichletAllocation(2, n_draws=600, random_state=0).fit(X)
    >>> model.transform(X).argmax(axis=1).tolist() in ([0, 0, 1, 1], [1, 1, 0, 0])
    True
    """

    _theory = "topic-model"
    _remedy = (
        "draw more (n_draws), or raise max_iter; chains that disagree are different modes: compare their log joints"
    )

    n_components: int = param(Number(low=1, integer=True), "Topics, K.", default=10, kw_only=False)
    method: str = param(
        Options("sparse", "gibbs", "collapsed", "variational", "ml"), "See the table above.", default="sparse"
    )
    doc_topic_prior: Any = param(
        optional(_POSITIVE) | ArrayLike(_POSITIVE) | Options("symmetric", "asymmetric"),
        'α; None is 1/K. Of sampled models "symmetric" learns one number, "asymmetric" one per topic.',
        default=None,
    )
    topic_word_prior: Any = param(
        optional(_POSITIVE) | Options("symmetric"), 'η; None is 1/K, "symmetric" learns it.', default=None
    )
    learning_method: str | None = param(
        optional(Options("batch", "online")), 'Of "variational"; given, it chooses that method.', default=None
    )
    learning_decay: float = param(Number(low=0.0, high=1.0), "Exponent of online steps.", default=0.7)
    learning_offset: float = param(Number(low=1.0), "Slows the first online steps.", default=10.0)
    max_iter: int = param(MAX_ITER, 'Most iterations of "variational" and "ml".', default=500)
    batch_size: int = param(Number(low=1, integer=True), "Documents per online step.", default=128)
    evaluate_every: int = param(Number(integer=True), "Kept for compatibility; the bound is always known.", default=-1)
    total_samples: float = param(_POSITIVE, "Documents in all, for `partial_fit`.", default=1e6)
    perp_tol: float = param(Number(low=0.0), "Kept for compatibility; `tol` decides.", default=1e-1)
    mean_change_tol: float = param(Number(low=0.0), "Mean change of γ at which a document is done.", default=1e-3)
    max_doc_update_iter: int = param(MAX_ITER, "Most updates of a document.", default=100)
    tol: float = param(TOLERANCE, 'Relative rise at which "variational" and "ml" stop.', default=1e-7)
    n_chains: int = param(Number(low=1, integer=True), "Chains of sampled models.", default=2)
    n_draws: int = param(Number(low=4, integer=True), "Draws per chain.", default=100)
    n_warmup: int = param(Number(low=0, integer=True), "Sweeps of each chain before.", default=200)
    seeds: Any = param(
        Matches(lambda v: v is None or isinstance(v, dict), "None, or {topic: columns of X}"),
        "Words (columns of X, by number or name) whose tokens start in a topic, by topic; sampled models.",
        default=None,
    )
    text: Any = param(
        Matches(lambda v: v is None or isinstance(v, dict), "None, or settings of TextCounts"),
        "How texts are counted, where X is a list of them: settings of `TextCounts`.",
        default=None,
    )
    max_seconds: float | None = param(MAX_SECONDS, "Time limit.", default=None)
    n_jobs: int | None = param(N_JOBS, "Threads; results do not depend on it.", default=None)
    verbose: Any = param(
        Number(low=0, integer=True) | Boolean(), "Kept for compatibility; set callbacks instead.", default=0
    )
    random_state: Any = param(RANDOM_STATE, "Seed.", default=None)

    components_: Array = fitted("(n_components, n_features)", "Dirichlet parameters of the topics.", low=0.0)
    exp_dirichlet_component_: Array = fitted("(n_components, n_features)", 'exp(E log φ); of "ml" φ itself.', low=0.0)
    doc_topic_: Array = fitted("(n_documents, n_components)", 'Of the documents of the fit: γ, or θ of "ml".', low=0.0)
    doc_topic_prior_: Any = fitted("() or (n_components,)", "α.", low=0.0)
    topic_word_prior_: float = fitted("()", "η.", low=0.0)
    topic_counts_: NDArray[np.int64] = fitted(
        "(n_components, n_features)", "Tokens by topic and word, summed over draws.", kind="i", low=0, optional=True
    )
    document_counts_: NDArray[np.int64] = fitted(
        "(n_documents, n_components)", "Tokens by document and topic, likewise.", kind="i", low=0, optional=True
    )
    n_averaged_: int = fitted("int", "Draws in these sums.", optional=True)
    trace_: Array = fitted("(n_chains, n_draws, n_numbers)", "Log joint, sizes, learned parameters.", optional=True)
    history_: Array = fitted("(n_history,)", "Bound or log-likelihood after each iteration.", optional=True)
    vocabulary_: list[str] = fitted("list of str", "The words, where the fit was given texts.", optional=True)
    bound_: float = fitted("()", "Perplexity of the documents of the fit.", low=0.0)
    n_iter_: int = fitted("int", "Iterations, or sweeps of each chain.")
    n_batch_iter_: int = fitted("int", "Online steps so far.")
    n_features_in_: int = fitted("int", "Number of words.")
    certificate_: Certificate = fitted("Certificate", "`chain` or `ascent`.")

    _door = staticmethod(text_door)
    _tags = tags(
        sparse=True, positive_only=True, categorical=lambda model: model._way in METHODS, preserves_dtype=FLOATS
    )

    @property
    def _way(self) -> str:
        return "variational" if self.learning_method is not None else self.method

    def fit(self, X: Any, y: Any = None) -> Self:  # type: ignore[override]
        """Fit the model to counts of words, (n_documents, n_words), or to a list of texts; y is ignored."""
        return super().fit(X)

    def _fit(self, table: Table, run: Run) -> Certificate:
        on_dask = isinstance(table.blocks, DaskBlocks)
        if table.X is None and not (on_dask and self._way == "variational" and self.learning_method != "online"):
            raise DataError(
                f"LatentDirichletAllocation: method={self._way!r} needs the counts in memory: it goes from token to "
                "token, or from batch to batch. On Dask use learning_method='batch'; for a stream, partial_fit."
            )
        if table.X is not None:
            self._check_counts(table.X)
            if not (table.X.data if sp.issparse(table.X) else table.X).any():
                raise DataError("LatentDirichletAllocation: X holds not a single count; there is nothing to model.")
        K = self.n_components
        given = self.doc_topic_prior
        learns = isinstance(given, str) or isinstance(self.topic_word_prior, str)
        if self._way not in METHODS and learns:
            raise ParameterError("LatentDirichletAllocation: priors are learned by sampled models only; give numbers.")
        if np.ndim(given) == 1 and len(given) != K:
            raise ParameterError(f"LatentDirichletAllocation: doc_topic_prior must be one number or {K}.")
        self.doc_topic_prior_ = 1.0 / K if given is None or isinstance(given, str) else _as_prior(given)
        eta = self.topic_word_prior
        self.topic_word_prior_ = 1.0 / K if eta is None or isinstance(eta, str) else float(eta)
        self.n_batch_iter_ = 1
        if on_dask:
            return self._climb_on_dask(table.blocks, run)
        documents = documents_of(table.X)
        found = self._sample(table.X, documents, run) if self._way in METHODS else self._climb(documents, run)
        self.bound_ = self._perplexity(documents, self.doc_topic_ if self._way in METHODS else None)
        return found

    # ---- sampled ----

    def _sample(self, X: Any, documents: Documents, run: Run) -> Certificate:
        K = self.n_components
        if not documents.counts.sum():
            return self._nothing(documents)
        corpus = corpus_of(X)
        alpha = self.doc_topic_prior if isinstance(self.doc_topic_prior, str) else self.doc_topic_prior_
        beta = self.topic_word_prior if isinstance(self.topic_word_prior, str) else self.topic_word_prior_
        threads = resolve_n_jobs(run.n_jobs) if self.n_chains == 1 else 1
        sampler = TopicSampler(
            corpus, K, alpha=alpha, beta=beta, method=self._way, n_warmup=self.n_warmup, threads=threads
        )
        sampler.name = "LatentDirichletAllocation"
        sampler.halted = run.should_stop
        rng = as_generator(self.random_state)
        starts = [self._start(corpus, rng) for _ in range(self.n_chains)]
        by_word = np.zeros((self.n_chains, corpus.n_words, K), dtype=np.int64)
        by_document = np.zeros((self.n_chains, documents.n, K), dtype=np.int64)
        parameters = np.zeros((self.n_chains, K + 1))
        times = np.zeros(self.n_chains, dtype=np.int64)

        def collect(c: int, place: int, state: Any) -> None:
            by_word[c] += sampler.word_counts(state.z)
            own = np.empty((documents.n, K), dtype=np.int32)
            kernels.count_topics(corpus.starts, state.z, own)
            by_document[c] += own
            parameters[c] += np.r_[state.alpha, state.beta]
            times[c] += 1

        self.trace_, value = run_chains(
            sampler,
            starts,
            n_draws=self.n_draws,
            gap=_GAP,
            random_state=rng,
            run=run,
            max_seconds=self.max_seconds,
            watch="log_joint",
            collect=collect,
        )
        n_averaged = int(times[0])
        best = int(self.trace_[:, :, 0].mean(axis=1).argmax())
        if isinstance(self.doc_topic_prior, str):
            self.doc_topic_prior_ = parameters[best, :K] / n_averaged
        if isinstance(self.topic_word_prior, str):
            self.topic_word_prior_ = float(parameters[best, K] / n_averaged)
        self._set_counts(by_word[best].T.copy(), by_document[best], n_averaged)
        self.n_iter_ = self.trace_.shape[1] + self.n_warmup
        if K == 1:  # nothing moves, and nothing has to
            value = 0.0
        return Certificate("chain", value, 1.0, n_iter=self.n_iter_)

    def _set_counts(self, by_word: Any, by_document: Any, n_averaged: int) -> None:
        self.topic_counts_ = by_word
        self.document_counts_ = by_document
        self.n_averaged_ = n_averaged
        self.components_ = by_word / n_averaged + self.topic_word_prior_
        self.doc_topic_ = by_document / n_averaged + self.doc_topic_prior_
        self.exp_dirichlet_component_ = np.exp(expected_logs(self.components_))

    def _nothing(self, documents: Documents) -> Certificate:
        """Without a single token the posterior is the prior."""
        K = self.n_components
        nothing = np.zeros((K, documents.n_words), dtype=np.int64), np.zeros((documents.n, K), dtype=np.int64)
        self._set_counts(*nothing, 1)
        self.trace_ = np.zeros((self.n_chains, 4, 1 + K))
        self.n_iter_ = 1
        return Certificate("chain", 0.0, 1.0, by_construction=True)

    def _start(self, corpus: Corpus, rng: np.random.Generator) -> Any:
        """Return topics at random, those of seed words in their topics; None without seeds."""
        if not self.seeds:
            return None
        z = rng.integers(0, self.n_components, size=len(corpus.words), dtype=np.int32)
        names = self._words()
        place = {} if names is None else {str(name): j for j, name in enumerate(names)}
        for topic, words in self.seeds.items():
            if not isinstance(topic, (int, np.integer)) or not 0 <= topic < self.n_components:
                raise ParameterError(f"LatentDirichletAllocation: seeds name topic {topic!r}; there are 0 … K − 1.")
            columns = [place.get(word, -1) if isinstance(word, str) else int(word) for word in words]
            if any(not 0 <= column < corpus.n_words for column in columns):
                raise ParameterError(f"LatentDirichletAllocation: seeds of topic {topic} name a word that X lacks.")
            z[np.isin(corpus.words, columns)] = topic
        return z

    # ---- variational, maximum likelihood ----

    def _climb(self, documents: Documents, run: Run) -> Certificate:
        lam = self._first_topics(documents.n_words)
        if self._way == "ml":
            found = climb_likelihood(
                documents, normal_rows(lam), tol=self.tol, max_iter=self.max_iter, progress=run.progress
            )
            self.components_ = found.topics
            self.exp_dirichlet_component_ = normal_rows(found.topics)
            self.doc_topic_ = found.documents
        else:
            alpha = self._alpha()
            eta = self.topic_word_prior_
            inner: dict[str, Any] = {
                "doc_tol": self.mean_change_tol,
                "doc_iter": self.max_doc_update_iter,
                "n_jobs": run.n_jobs,
                "stop": run.should_stop,
            }
            if self.learning_method == "online":
                lam, self.n_batch_iter_ = climb_online(
                    documents,
                    lam,
                    alpha,
                    eta,
                    max_iter=self.max_iter,
                    batch_size=self.batch_size,
                    offset=self.learning_offset,
                    decay=self.learning_decay,
                    n_batches=1,
                    total=documents.n,
                    progress=run.progress,
                    **inner,
                )
                gamma = infer(documents, _weights(lam), alpha, tol=self.mean_change_tol, max_iter=1000)
                value = bound(documents, gamma, lam, alpha, eta)
                after = bound(documents, *variational_step(documents, gamma, lam, alpha, eta), alpha, eta)
                self.components_ = lam
                self.doc_topic_ = gamma
                self.history_ = np.array([value])
                self.n_iter_ = self.max_iter
                self.exp_dirichlet_component_ = np.exp(expected_logs(lam))
                rise = max(0.0, after - value) / max(abs(value), 1e-300)
                return Certificate("ascent", rise, max(self.tol, 0.01), n_iter=self.max_iter)
            found = climb_bound(
                documents, lam, alpha, eta, tol=self.tol, max_iter=self.max_iter, progress=run.progress, **inner
            )
            self.components_ = found.topics
            self.exp_dirichlet_component_ = np.exp(expected_logs(found.topics))
            self.doc_topic_ = found.documents
        self.history_ = found.history
        self.n_iter_ = found.n_iter
        return Certificate("ascent", found.rise, self.tol, n_iter=found.n_iter)

    def _climb_on_dask(self, blocks: Any, run: Run) -> Certificate:
        """Raise the bound of documents that lie in partitions."""
        settings = Settings(self._alpha(), self.topic_word_prior_, self.mean_change_tol, self.max_doc_update_iter)
        documents = PartitionedDocuments(type(self).__name__, blocks, settings)
        lam = self._first_topics(documents.n_words)
        found = documents.climb(lam, tol=self.tol, max_iter=self.max_iter, progress=run.progress)
        self.components_ = found.topics
        self.exp_dirichlet_component_ = np.exp(expected_logs(found.topics))
        self.doc_topic_ = found.documents
        self.history_ = found.history
        self.n_iter_ = found.n_iter
        self.bound_ = documents.perplexity(found.topics)
        return Certificate("ascent", found.rise, self.tol, n_iter=found.n_iter)

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Take online variational steps with more documents, whatever the method; proves nothing."""
        first = not hasattr(self, "components_")
        rows = read_features(self, X, reset=first)
        self._check_counts(rows)
        documents = documents_of(rows)
        K = self.n_components
        if first:
            self.doc_topic_prior_ = 1.0 / K if self.doc_topic_prior is None else _as_prior(self.doc_topic_prior)
            self.topic_word_prior_ = 1.0 / K if self.topic_word_prior is None else float(self.topic_word_prior)
            self.components_ = self._first_topics(documents.n_words)
            self.n_batch_iter_ = 1
            self.n_iter_ = 0
        self.components_, self.n_batch_iter_ = climb_online(
            documents,
            self.components_,
            self._alpha(),
            self.topic_word_prior_,
            max_iter=1,
            batch_size=self.batch_size,
            offset=self.learning_offset,
            decay=self.learning_decay,
            n_batches=self.n_batch_iter_,
            total=self.total_samples,
            doc_tol=self.mean_change_tol,
            doc_iter=self.max_doc_update_iter,
            n_jobs=self.n_jobs,
        )
        self.n_iter_ += 1
        self.exp_dirichlet_component_ = np.exp(expected_logs(self.components_))
        self.doc_topic_ = self._gamma(documents)
        self.bound_ = self._perplexity(documents, self.doc_topic_)
        self.certificate_ = Certificate("none", np.nan, 0.0)
        return self

    # ---- answers ----

    def transform(self, X: Any, *, normalize: bool = True) -> Array:
        """Return the topics' shares in documents.

        Parameters
        ----------
        X : array or sparse array of shape (n_documents, n_words)
            Counts; a document without words has the prior's shares.
        normalize : bool
            Whether rows sum to one; otherwise γ is returned.
        """
        check_is_fitted(self)
        rows = self._rows(X)
        gamma = self._gamma(documents_of(rows))
        return np.asarray(gamma / gamma.sum(axis=1, keepdims=True) if normalize else gamma).astype(
            rows.dtype if rows.dtype == np.float32 else np.float64, copy=False
        )

    def fit_transform(self, X: Any, y: Any = None, *, normalize: bool = True) -> Array:
        """Fit, then transform the same documents."""
        return self.fit(X).transform(X, normalize=normalize)

    def score(self, X: Any, y: Any = None) -> float:
        """Return the variational bound of the documents' log-likelihood; of "ml" the log-likelihood itself."""
        check_is_fitted(self)
        rows = self._rows(X)
        documents = documents_of(rows)
        return self._bound(documents, self._gamma(documents), False)

    def perplexity(self, X: Any, sub_sampling: bool = False) -> float:
        """Return exp(−bound per token); lower is better. `held_out` compares models with less bias."""
        check_is_fitted(self)
        rows = self._rows(X)
        return self._perplexity(documents_of(rows), None, sub_sampling)

    # ---- parts ----

    def _first_topics(self, n_words: int) -> Array:
        """Return topics near equality, those that scikit-learn starts from with the same seed."""
        seed = self.random_state
        rng = seed if isinstance(seed, np.random.Generator) else check_random_state(seed)
        return np.asarray(rng.gamma(100.0, 0.01, (self.n_components, n_words)))

    def _words(self) -> Any:
        return getattr(self, "vocabulary_", None) or getattr(self, "feature_names_in_", None)

    def _rows(self, X: Any) -> Any:
        """Return counts in the columns of the fit, of counts or of texts."""
        if are_texts(X):
            words = getattr(self, "vocabulary_", None)
            if words is None:
                raise DataError("LatentDirichletAllocation: it was fitted to counts; pass counts, not texts.")
            X = TextCounts(**(self.text or {})).with_vocabulary(words).transform(X)
        rows = read_features(self, X)
        self._check_counts(rows)
        return rows

    def _alpha(self) -> Array:
        return np.broadcast_to(np.asarray(self.doc_topic_prior_, dtype=np.float64), (self.n_components,)).copy()

    def _phi(self) -> Array:
        return np.ascontiguousarray(normal_rows(self.components_).T)

    def _gamma(self, documents: Documents) -> Array:
        weights = np.ascontiguousarray(self.exp_dirichlet_component_.T)
        settings: dict[str, Any] = {
            "tol": self.mean_change_tol,
            "max_iter": self.max_doc_update_iter,
            "n_jobs": self.n_jobs,
        }
        if self._way != "ml":
            return infer(documents, weights, self._alpha(), **settings)
        start = np.full((documents.n, self.n_components), 1.0 / self.n_components)
        theta = infer(documents, weights, np.zeros(self.n_components), start=start, smooth=False, **settings)
        total = theta.sum(axis=1, keepdims=True)
        return np.asarray(np.where(total > 0, theta / np.where(total > 0, total, 1.0), 1.0 / self.n_components))

    def _bound(self, documents: Documents, gamma: Array, sub_sampling: bool) -> float:
        if self._way == "ml":
            weights = np.ascontiguousarray(self.exp_dirichlet_component_.T)
            rows = np.empty(documents.n)
            stats = np.empty_like(weights)
            collect(documents.starts, documents.words, documents.counts, weights, gamma, stats, rows)
            return float(rows.sum())
        share = self.total_samples / documents.n if sub_sampling else 1.0
        return bound(documents, gamma, self.components_, self._alpha(), self.topic_word_prior_, share)

    def _perplexity(self, documents: Documents, gamma: Array | None, sub_sampling: bool = False) -> float:
        gamma = self._gamma(documents) if gamma is None else gamma
        tokens = documents.counts.sum()
        if sub_sampling:
            tokens = tokens * (self.total_samples / documents.n)
        value = self._bound(documents, gamma, sub_sampling)
        return float(np.exp(np.clip(-value / max(tokens, 1e-300), -700.0, 700.0)))

    def _perplexity_precomp_distr(self, X: Any, doc_topic_distr: Any, sub_sampling: bool = False) -> float:
        """Return the perplexity with given γ; scikit-learn's private name, which its users know."""
        documents = documents_of(read_features(self, X))
        gamma = np.asarray(doc_topic_distr, dtype=np.float64)
        if len(gamma) != documents.n:
            raise DataError("Number of samples in X and doc_topic_distr do not match.")
        if gamma.shape[1] != self.n_components:
            raise DataError("Number of topics does not match.")
        return self._perplexity(documents, gamma, sub_sampling)

    def _check_counts(self, X: Any) -> None:
        values = X.data if sp.issparse(X) else X
        if (values < 0).any():
            raise DataError("Negative values in data passed to LatentDirichletAllocation: X must hold counts.")
        if values.size and values.max() > _LARGEST_COUNT:
            raise DataError(
                f"LatentDirichletAllocation: the largest count is {values.max():.3g}, and counts beyond 2³¹ drown all "
                "others; divide X by a constant."
            )
        if self._way in METHODS and (values != np.floor(values)).any():
            raise DataError(
                "LatentDirichletAllocation: sampled models count tokens, and X holds fractions; pass counts, or use "
                "method='variational' for weights."
            )

    @property
    def _n_features_out(self) -> int:
        return int(self.components_.shape[0])

    _laws = laws(
        law(
            "components_ and doc_topic_prior_ must have a row for each topic",
            lambda model: (
                len(model.components_) == model.n_components
                and np.shape(model.doc_topic_prior_) in ((), (model.n_components,))
            ),
        ),
        law(
            "vocabulary_ must hold a word for each column",
            lambda model: (
                len(model.vocabulary_) == model.n_features_in_
                and all(isinstance(word, str) for word in model.vocabulary_)
            ),
            "vocabulary_",
        ),
        law(
            "Dirichlet parameters must be positive",
            lambda model: model._way == "ml" or (model.components_ > 0).all(),
        ),
        law(
            "priors must be positive",
            lambda model: (np.asarray(model.doc_topic_prior_) > 0).all() and model.topic_word_prior_ > 0,
        ),
        law(
            "what the certificate is about is missing",
            lambda model: (
                model.certificate_.kind == "none"
                or all(hasattr(model, name) for name in (_SAMPLED if model._way in METHODS else ("history_",)))
            ),
        ),
    )


def _as_prior(given: Any) -> Any:
    return float(given) if np.ndim(given) == 0 else np.asarray(given, dtype=np.float64)


def _weights(lam: Array) -> Array:
    return np.ascontiguousarray(np.exp(expected_logs(lam)).T)
