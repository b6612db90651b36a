"""Clusters of documents in which chains of topics begin, and the sweep in blocks."""

from __future__ import annotations

import numpy as np

from learnable.topics import TopicSampler, corpus_of
from learnable.topics._collapsed_kernels import BLOCK, sweep_words
from learnable.topics.collapsed import WordOrder
from learnable.topics.start import cluster_documents


def subjects(rng: np.random.Generator, n_subjects: int, per_subject: int) -> np.ndarray:
    """Return counts of documents of one subject each, and words of their own for every subject."""
    rows = []
    for k in range(n_subjects):
        p = np.full(10 * n_subjects, 0.01)
        p[10 * k : 10 * k + 10] = 1.0
        rows.append(rng.multinomial(30, p / p.sum(), size=per_subject))
    return np.concatenate(rows)


def test_every_subject_has_a_cluster_of_its_own() -> None:
    counts = subjects(np.random.default_rng(0), 12, 20)
    for seed in range(5):
        found = cluster_documents(corpus_of(counts), 12, np.random.default_rng(seed))
        assert found is not None
        by_subject = found.reshape(12, 20)
        assert all(len(np.unique(row)) == 1 for row in by_subject)
        assert len(np.unique(found)) == 12


def test_too_few_documents_or_one_topic_have_no_clusters() -> None:
    counts = subjects(np.random.default_rng(0), 3, 2)
    assert cluster_documents(corpus_of(counts), 3, np.random.default_rng(0)) is None
    assert cluster_documents(corpus_of(counts), 1, np.random.default_rng(0)) is None


def test_empty_documents_and_equal_documents_are_clustered_without_trouble() -> None:
    counts = np.zeros((40, 5), dtype=int)
    counts[::2, 1] = 3
    found = cluster_documents(corpus_of(counts), 4, np.random.default_rng(0))
    assert found is not None
    assert found.min() >= 0
    assert found.max() < 4


def test_a_sweep_in_blocks_keeps_its_counts_and_draws_by_the_formula() -> None:
    """40 topics fill two blocks, the second in part; the share of each topic is that of the full conditional."""
    K, V, beta = 40, 3, 0.5
    alpha = np.linspace(0.1, 2.0, K)
    padded = np.zeros((2, BLOCK), dtype=np.float32)
    padded.reshape(-1)[:K] = alpha
    # One document of one token, word 1, is swept; 400 tokens of another, which is not, make the counts.
    rng = np.random.default_rng(1)
    fixed_words = np.sort(rng.integers(0, V, size=400))
    fixed_topics = rng.integers(0, K, size=400)
    of_word = fixed_topics[fixed_words == 1]
    before = np.r_[fixed_topics[fixed_words == 0], of_word, 0, fixed_topics[fixed_words == 2]].astype(np.int32)
    before_starts = np.r_[0, np.cumsum(np.bincount(np.append(fixed_words, 1), minlength=V))]
    held = np.bincount(fixed_topics, minlength=K).astype(float)
    n = 4000
    drawn = np.zeros(K)
    for _ in range(n):
        own = np.zeros((1, 2, BLOCK), dtype=np.int16)
        own[0, 0, 0] = 1
        sizes = held.copy()
        sizes[0] += 1.0
        z = np.zeros(1, dtype=np.int32)
        words = rng.integers(2**63, size=4).astype(np.uint64)
        sweep_words(
            np.zeros(1, dtype=np.int32), np.array([0, 0, 1, 1]), before, before_starts, own, sizes, V * beta, padded,
            beta, words, 0, z,
        )  # fmt: skip
        assert own.reshape(-1)[z[0]] == own.sum() == 1
        assert sizes.sum() == 401
        drawn[z[0]] += 1
    chance = alpha * (np.bincount(of_word, minlength=K) + beta) / (held + V * beta)
    chance /= chance.sum()
    score = (drawn - n * chance) / np.sqrt(n * chance * (1.0 - chance))
    assert abs(score).max() < 4.5


def test_parts_of_a_corpus_hold_every_token_once_and_give_the_same_bits() -> None:
    rng = np.random.default_rng(0)
    counts = rng.poisson(0.4, size=(50, 30))
    counts[7] = 0  # an empty document
    corpus = corpus_of(counts)
    z = rng.integers(0, 5, size=len(corpus.words), dtype=np.int32)
    found = []
    for threads in (1, 2):
        order = WordOrder(corpus, 5, 4)
        assert (np.sort(order.order) == np.arange(len(z))).all()
        topics, own = order.load(z)
        for sweep in range(3):
            order.sweep(topics, own, np.full(5, 0.1), 0.01, np.arange(sweep, sweep + 4, dtype=np.uint64), threads)
        after = np.empty_like(z)
        order.store(topics, after)
        _, recounted = order.load(after)
        np.testing.assert_array_equal(own, recounted)
        found.append(after)
    np.testing.assert_array_equal(found[0], found[1])
    assert (found[0] != z).any()


def test_the_start_has_the_subjects_before_the_first_draw() -> None:
    counts = subjects(np.random.default_rng(0), 12, 20)
    sampler = TopicSampler(corpus_of(counts), 12, alpha=0.1, beta=0.01)
    state = sampler.init(None, np.random.default_rng(0))
    by_word = sampler.word_counts(state.z)
    owner = by_word.argmax(axis=1).reshape(12, 10)
    assert all(len(np.unique(row)) == 1 for row in owner)
    assert len(np.unique(owner)) == 12
