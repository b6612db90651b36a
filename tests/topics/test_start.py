"""Clusters of documents in which chains of topics begin, and the collapsed sweep."""

from __future__ import annotations

import numpy as np
import pytest

from learnable.topics import TopicSampler, corpus_of
from learnable.topics._collapsed_kernels import GROUP, sweep_words
from learnable.topics.collapsed import WordOrder
from learnable.topics.sampler import log_joint
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


def test_a_sweep_keeps_its_counts_and_draws_by_the_formula() -> None:
    """100 topics fill two groups, the second in part; the share of each topic is that of the full conditional."""
    K, V, beta = 100, 3, 0.5
    alpha = np.linspace(0.1, 2.0, K)
    padded = np.zeros(2 * GROUP, dtype=np.float32)
    padded[:K] = alpha
    # Document 1 has three tokens of word 1, one of which is swept: it alone is in the second part.
    rng = np.random.default_rng(1)
    fixed_words = np.sort(rng.integers(0, V, size=900))
    fixed_topics = rng.integers(0, K, size=900)
    row = np.bincount(fixed_topics[fixed_words == 1], minlength=K)
    begins = np.r_[0, np.cumsum(np.bincount(fixed_words, minlength=V))]
    starts = np.array([begins, [900, 900, 901, 901]])
    documents = np.r_[np.zeros(900), 1].astype(np.int32)
    held = np.bincount(fixed_topics, minlength=K).astype(float)
    before = np.zeros((2, 2 * GROUP), dtype=np.int16)
    before[1, [3, 70]] = 2, 5  # tokens of document 1 that stay
    n = 12_000
    drawn = np.zeros(K)
    for _ in range(n):
        own = before.copy()
        own[1, 99] += 1
        sizes = held.copy()
        sizes[99] += 1.0
        z = np.append(fixed_topics, 99).astype(np.int32)
        words = rng.integers(2**63, size=4).astype(np.uint64)
        sweep_words(documents, starts, 1, 0, V, own.reshape(-1), sizes, V * beta, padded, beta, words, 0, z)
        k = z[900]
        own[1, k] -= 1
        np.testing.assert_array_equal(own, before)
        sizes[k] -= 1.0
        np.testing.assert_array_equal(sizes, held)
        drawn[k] += 1
    chance = (before[1, :K] + alpha) * (row + beta) / (held + V * beta)
    chance /= chance.sum()
    score = (drawn - n * chance) / np.sqrt(n * chance * (1.0 - chance))
    assert abs(score).max() < 4.5


@pytest.mark.parametrize("n_parts", [1, 3])
def test_blocks_of_a_sweep_hold_every_token_once(n_parts: int) -> None:
    rng = np.random.default_rng(2)
    corpus = corpus_of(rng.poisson(0.4, size=(40, 25)))
    order = WordOrder(corpus, 5, n_parts)
    met = np.zeros(len(corpus.words), dtype=int)
    for turn in range(n_parts):
        seen: list[set[int]] = []
        for p in range(n_parts):
            c = (p + turn) % n_parts
            a, b = order.starts[p, order.cuts[c]], order.starts[p, order.cuts[c + 1]]
            met[order.order[a:b]] += 1
            seen.append(set(corpus.words[order.order[a:b]].tolist()))
        assert sum(map(len, seen)) == len(set().union(*seen))  # no word in two blocks of a round
    np.testing.assert_array_equal(met, 1)


def test_parts_move_as_far_as_one_part_does() -> None:
    """Counts of words are those of the moment in every block: four parts lose nothing that one part gains."""
    counts = subjects(np.random.default_rng(0), 12, 40)
    corpus = corpus_of(counts)
    levels = []
    for n_parts in (1, 4):
        order = WordOrder(corpus, 12, n_parts)
        found = []
        for seed in range(8):
            rng = np.random.default_rng(seed)
            topics, own = order.load(rng.integers(0, 12, size=len(corpus.words), dtype=np.int32))
            for _ in range(5):
                order.sweep(topics, own, np.full(12, 0.1), 0.01, rng.integers(2**63, size=4).astype(np.uint64))
            z = np.empty_like(topics)
            order.store(topics, z)
            by_word = np.zeros((corpus.n_words, 12), dtype=np.int32)
            np.add.at(by_word, (corpus.words, z), 1)
            found.append(log_joint(corpus, z, by_word, np.full(12, 0.1), 0.01))
        levels.append(np.array(found))
    error = np.sqrt(sum(level.var(ddof=1) / len(level) for level in levels))
    assert abs(levels[0].mean() - levels[1].mean()) < 4.0 * error


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
