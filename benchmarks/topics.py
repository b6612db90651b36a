"""Topic models against tomotopy, gensim and scikit-learn; admixture against adamixture and a loop in NumPy.

The quality is measured here, by code that no contender uses: the log joint of words and topics, the likelihood of
held-out documents by importance sampling from the prior's mixture, and the likelihood of genotypes from Q and P.

Two peers are programs and were measured by hand, by processor time with one thread. STRUCTURE 2.3.4 (the binary that
PyPI's structure_threader ships) takes 5.8 ms per sweep of 200 × 500 × 2 copies, K = 3, and ours 0.43. adamixture 1.8.8
takes 4.1 to 4.7 s for HapMap3, K = 3, as a whole process with all loci; ours 3.7 s for the fit.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.special import gammaln

from .harness import OURS, Row, blas_threads
from .linear import SKLEARN

ALPHA, BETA = 0.1, 0.01


class Texts(NamedTuple):
    X: sp.csr_array
    held: sp.csr_array
    K: int
    sweeps: int


#: Sweeps of ours after its start for every 200 of tomotopy's: the start has most of the way behind it.
OUR_SHARE = 0.025


def make_texts(n: int, length: int, V: int, K: int, sweeps: int) -> Any:
    """Return a maker of documents drawn from the model itself, with as many held out as a tenth of them."""

    def make(quick: bool) -> Texts:
        rng = np.random.default_rng(0)
        documents = n // 20 if quick else n
        words = V // 10 if quick else V
        topics = rng.dirichlet(np.full(words, 0.05), size=min(K, 50))
        shares = rng.dirichlet(np.full(len(topics), 0.1), size=documents)
        table = draw_documents(rng, topics, shares, length)
        tenth = max(1, documents // 10)
        return Texts(table[tenth:], table[:tenth], K, max(5, sweeps // 10) if quick else sweeps)

    return make


def draw_documents(rng: np.random.Generator, topics: Any, shares: Any, length: int) -> sp.csr_array:
    """Return counts of documents of a given length, drawn token by token: no table of all words is ever dense."""
    n = len(shares)
    z = np.array([rng.choice(len(topics), length, p=share) for share in shares])
    words = np.empty((n, length), dtype=np.int64)
    for k, topic in enumerate(topics):
        at = z == k
        words[at] = np.minimum(np.searchsorted(topic.cumsum(), rng.random(at.sum())), topics.shape[1] - 1)
    places = (np.repeat(np.arange(n), length), words.ravel())
    return sp.csr_array((np.ones(n * length), places), shape=(n, topics.shape[1]))


def log_joint(words: Any, documents: Any, z: Any, K: int, V: int) -> float:
    """Return log p(words, topics) of assignments, by counts."""
    by_document = np.zeros((int(documents.max()) + 1, K))
    np.add.at(by_document, (documents, z), 1)
    by_word = np.zeros((K, V))
    np.add.at(by_word, (z, words), 1)
    first = (gammaln(by_document + ALPHA) - gammaln(ALPHA)).sum()
    first += (gammaln(K * ALPHA) - gammaln(by_document.sum(axis=1) + K * ALPHA)).sum()
    second = (gammaln(by_word + BETA) - gammaln(BETA)).sum()
    return float(first + second + (gammaln(V * BETA) - gammaln(by_word.sum(axis=1) + V * BETA)).sum())


def tokens_of(X: sp.csr_array) -> tuple[Any, Any]:
    """Return the word and the document of each token."""
    coo = X.tocoo()
    times = coo.data.astype(int)
    order = np.argsort(np.repeat(coo.row, times), kind="stable")
    return np.repeat(coo.col, times)[order], np.repeat(coo.row, times)[order]


def sampled_ours(method: str) -> Any:
    def fit(data: Texts) -> Any:
        from learnable.topics import sample_topics

        sweeps = max(5, round(OUR_SHARE * data.sweeps))
        chains = sample_topics(
            data.X, data.K, alpha=ALPHA, beta=BETA, method=method, n_draws=4, n_warmup=sweeps - 4, n_chains=1,
            random_state=0, n_jobs=blas_threads(),
        )  # fmt: skip
        words, documents = tokens_of(data.X)
        return SimpleNamespace(words=words, documents=documents, z=chains.states["state.z"][0])

    return fit


def sampled_tomotopy(data: Texts) -> Any:
    import tomotopy

    model = tomotopy.LDAModel(k=data.K, alpha=ALPHA, eta=BETA, seed=1)
    model.optim_interval = 0
    for d in range(data.X.shape[0]):
        row = data.X[[d]]
        model.add_doc([str(w) for w, n in zip(row.indices, row.data, strict=True) for _ in range(int(n))])
    model.train(data.sweeps, workers=blas_threads(), show_progress=False)
    place = np.array([int(word) for word in model.used_vocabs])
    words = np.concatenate([place[list(doc.words)] for doc in model.docs])
    topics = np.concatenate([list(doc.topics) for doc in model.docs])
    documents = np.concatenate([np.full(len(doc.words), d) for d, doc in enumerate(model.docs)])
    return SimpleNamespace(words=words, documents=documents, z=topics)


def joint_quality(found: Any, data: Texts) -> dict[str, float]:
    level = log_joint(found.words, found.documents, found.z, data.K, data.X.shape[1])
    return {"objective": -level}


def topics_ours(data: Texts) -> Any:
    from learnable.topics import LatentDirichletAllocation

    model = LatentDirichletAllocation(
        data.K, doc_topic_prior=ALPHA, topic_word_prior=BETA, n_chains=1, n_draws=10, n_warmup=data.sweeps,
        random_state=0, n_jobs=blas_threads(),
    ).fit(data.X)  # fmt: skip
    return model.components_


def topics_sklearn(learning: str) -> Any:
    def fit(data: Texts) -> Any:
        from sklearn.decomposition import LatentDirichletAllocation

        return LatentDirichletAllocation(
            data.K, doc_topic_prior=ALPHA, topic_word_prior=BETA, max_iter=20, learning_method=learning,
            n_jobs=blas_threads(), random_state=0,
        ).fit(data.X).components_  # fmt: skip

    return fit


def topics_gensim(data: Texts) -> Any:
    from gensim.matutils import Sparse2Corpus
    from gensim.models import LdaModel

    corpus = Sparse2Corpus(sp.csc_matrix(data.X.T))
    names = {j: str(j) for j in range(data.X.shape[1])}
    model = LdaModel(
        corpus, num_topics=data.K, id2word=names, alpha=[ALPHA] * data.K, eta=BETA, passes=10, random_state=0
    )
    return model.get_topics()


def held_out_quality(topics: Any, data: Texts) -> dict[str, float]:
    """Return minus the held-out log-likelihood per token: θ of maximum posterior by EM, the same for all."""
    phi = topics / topics.sum(axis=1, keepdims=True)
    words = np.maximum(phi, 1e-12)
    X = data.held
    rng = np.random.default_rng(0)
    # Half of each document tells its topics, the other half is predicted.
    first = X.copy()
    first.data = rng.binomial(X.data.astype(int), 0.5).astype(float)
    second = X - first
    theta = np.full((X.shape[0], data.K), 1.0 / data.K)
    dense = first.toarray()
    for _ in range(100):
        ratio = dense / (theta @ words)
        theta = theta * (ratio @ words.T) + ALPHA
        theta /= theta.sum(axis=1, keepdims=True)
    level = (second.toarray() * np.log(theta @ words)).sum() / second.sum()
    return {"objective": float(-level)}


class Genes(NamedTuple):
    dosage: Any
    K: int
    sweeps: int = 0


def make_genes(n: int, L: int, K: int, sweeps: int = 0) -> Any:
    def make(quick: bool) -> Genes:
        rng = np.random.default_rng(0)
        loci = L // 20 if quick else L
        P = np.clip(rng.beta(0.8, 0.8, size=(loci, 1)) + 0.15 * rng.normal(size=(loci, K)), 0.02, 0.98)
        Q = rng.dirichlet(np.full(K, 0.2), size=max(20, n // 10) if quick else n)
        return Genes(rng.binomial(2, Q @ P.T), K, max(10, sweeps // 10) if quick else sweeps)

    return make


def ml_ours(data: Genes) -> Any:
    from learnable.topics import PopulationStructure

    model = PopulationStructure(data.K, method="ml", n_init=1, random_state=0).fit(data.dosage)
    return SimpleNamespace(Q=model.Q_, P=model.P_[1::2])


def ml_em(data: Genes) -> Any:
    """EM in NumPy, to the same relative rise."""
    rng = np.random.default_rng(0)
    G = data.dosage.astype(float)
    Q = rng.dirichlet(np.ones(data.K), size=len(G))
    P = np.clip((G.T @ Q / Q.sum(axis=0)) / 2, 0.01, 0.99)
    last = -np.inf
    for _ in range(5000):
        F = Q @ P.T
        up = G / F
        down = (2 - G) / (1 - F)
        level = float((G * np.log(F) + (2 - G) * np.log1p(-F)).sum())
        if level - last <= 1e-9 * abs(level):
            break
        last = level
        a = P * (up.T @ Q)
        b = (1 - P) * (down.T @ Q)
        Q = Q * (up @ P + down @ (1 - P))
        Q /= Q.sum(axis=1, keepdims=True)
        P = np.clip(a / (a + b), 1e-9, 1 - 1e-9)
    return SimpleNamespace(Q=Q, P=P)


def ml_quality(found: Any, data: Genes) -> dict[str, float]:
    F = np.clip(found.Q @ found.P.T, 1e-12, 1 - 1e-12)
    G = data.dosage
    return {"objective": float(-(G * np.log(F) + (2 - G) * np.log1p(-F)).sum())}


def gibbs_ours(data: Genes) -> Any:
    from learnable.topics import Genotypes, PopulationSampler

    sampler = PopulationSampler(Genotypes.from_dosage(data.dosage), data.K, alpha=1.0, threads=blas_threads())
    rng = np.random.default_rng(0)
    state = sampler.init(None, rng)
    for _ in range(data.sweeps):
        state, _ = sampler.step(state, rng)
    return SimpleNamespace(Q=state.Q, P=state.P[1::2])


def gibbs_numpy(data: Genes) -> Any:
    """The same three conditionals, all copies at once in NumPy."""
    rng = np.random.default_rng(0)
    n, L = data.dosage.shape
    alleles = (np.arange(2) >= 2 - data.dosage[..., None]).astype(int)
    z = rng.integers(0, data.K, size=(n, L, 2))
    for _ in range(data.sweeps):
        chosen = np.eye(data.K)[z]
        ones = (chosen * alleles[..., None]).sum(axis=(0, 2))
        zeros = chosen.sum(axis=(0, 2)) - ones
        P = rng.beta(1 + ones, 1 + zeros)
        Q = rng.standard_gamma(1 + chosen.sum(axis=(1, 2)))
        Q /= Q.sum(axis=1, keepdims=True)
        weight = Q[:, None, None] * np.where(alleles[..., None] == 1, P[:, None], 1 - P[:, None])
        edges = weight.cumsum(axis=3)
        z = (rng.random((n, L, 2, 1)) * edges[..., -1:] > edges[..., :-1]).sum(axis=3)
    return SimpleNamespace(Q=Q, P=P)


def lda_row(name: str, K: int, wanted: float) -> Row:
    """Return the row of K topics: tomotopy's log joint after 200 sweeps, or better, by ours after its start."""
    return Row(
        name,
        "LDA by Gibbs sampling, to the log joint of tomotopy's 200 sweeps",
        f"20,000 documents × 100 tokens, 20,000 words, K = {K}",
        make_texts(20_000, 100, 20_000, K, 200),
        {OURS: sampled_ours("sparse"), "tomotopy": sampled_tomotopy},
        joint_quality,
        {"tomotopy": wanted},
        tolerance=1e-3,
    )


ROWS = [
    lda_row("topics_lda", 20, 1.0),
    lda_row("topics_lda_100", 100, 2.0),
    lda_row("topics_lda_500", 500, 4.0),
    Row(
        "topics_reuters",
        "LDA: held-out likelihood",
        "2,000 documents × 150 tokens, 4,000 words, K = 20",
        make_texts(2_000, 150, 4_000, 20, 600),
        {
            OURS: topics_ours,
            f"{SKLEARN} (batch)": topics_sklearn("batch"),
            f"{SKLEARN} (online)": topics_sklearn("online"),
            "gensim": topics_gensim,
        },
        held_out_quality,
        {SKLEARN: 1.0, "gensim": 1.0},
        tolerance=0.01,
    ),
    Row(
        "admixture_ml",
        "admixture by maximum likelihood",
        "300 × 10,000, K = 3",
        make_genes(300, 10_000, 3),
        {OURS: ml_ours, "EM in NumPy": ml_em},
        ml_quality,
        {"EM in NumPy": 3.0},
        tolerance=1e-5,
    ),
    Row(
        "admixture_gibbs",
        "admixture by Gibbs sampling, 100 sweeps",
        "200 × 500 × 2 copies, K = 3",
        make_genes(200, 500, 3, 100),
        {OURS: gibbs_ours, "NumPy": gibbs_numpy},
        ml_quality,
        {"NumPy": 5.0},
        tolerance=0.02,
        same_steps=True,
    ),
]
