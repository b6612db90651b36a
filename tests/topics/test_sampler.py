"""Topic samplers: their law is that of enumeration, they agree, they find the bars, they repeat themselves."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import gammaln

from learnable.core.errors import DataError, ParameterError
from learnable.sampling import mcse_mean, resume
from learnable.topics import TopicSampler, corpus_of, sample_topics
from learnable.topics.sampler import METHODS, log_joint

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

TINY = np.array([[2, 1, 0], [0, 1, 2]])
ALPHA, BETA = np.array([0.7, 0.3]), 0.4


def joint_by_hand(corpus, z, alpha, beta):
    """log p(w, z) token by token: the product of the urns' conditional probabilities."""
    K, V = len(alpha), corpus.n_words
    words, total = np.zeros((K, V)), 0.0
    for d in range(len(corpus.starts) - 1):
        own = np.zeros(K)
        for i in range(corpus.starts[d], corpus.starts[d + 1]):
            k, w = z[i], corpus.words[i]
            total += np.log((own[k] + alpha[k]) / (own.sum() + alpha.sum()))
            total += np.log((words[k, w] + beta) / (words[k].sum() + V * beta))
            own[k] += 1
            words[k, w] += 1
    return total


def counts_of(corpus, z, K):
    counts = np.zeros((corpus.n_words, K), dtype=np.int32)
    np.add.at(counts, (corpus.words, z), 1)
    return counts


def test_the_log_joint_is_the_product_of_the_urns():
    corpus = corpus_of(TINY)
    for z in itertools.islice(itertools.product(range(2), repeat=6), 0, 64, 5):
        z = np.array(z, dtype=np.int32)
        expected = joint_by_hand(corpus, z, ALPHA, BETA)
        assert log_joint(corpus, z, counts_of(corpus, z, 2), ALPHA, BETA) == pytest.approx(expected)


@pytest.mark.parametrize("method", METHODS)
def test_the_law_is_that_of_all_assignments(method):
    corpus = corpus_of(TINY)
    all_z = np.array(list(itertools.product(range(2), repeat=6)), dtype=np.int32)
    logs = np.array([joint_by_hand(corpus, z, ALPHA, BETA) for z in all_z])
    p = np.exp(logs - logs.max())
    p /= p.sum()
    sampler = TopicSampler(corpus, 2, alpha=ALPHA, beta=BETA, method=method, n_warmup=0)
    rng = np.random.default_rng(0)
    state = sampler.init(None, rng)
    n = 12_000
    places = np.empty(n, dtype=np.int64)
    for t in range(n):
        state, _ = sampler.step(state, rng)
        places[t] = int("".join(map(str, state.z)), 2)
    for cell in np.argsort(p)[-12:]:  # the likeliest assignments
        hit = (places == cell).astype(float)[None]
        assert abs(hit.mean() - p[cell]) < 4.5 * mcse_mean(hit), cell
    values = logs[places][None]
    assert abs(values.mean() - p @ logs) < 4 * mcse_mean(values)


def bars(n=150, seed=0):
    """Griffiths and Steyvers: 5 × 5 images, ten bars, 100 pixels each."""
    rng = np.random.default_rng(seed)
    topics = np.zeros((10, 5, 5))
    for k in range(5):
        topics[k, k] = 0.2
        topics[5 + k, :, k] = 0.2
    topics = topics.reshape(10, 25)
    theta = rng.dirichlet(np.ones(10), size=n)
    return np.array([rng.multinomial(100, t @ topics) for t in theta]), topics


def test_the_bars_are_found_by_all_three():
    counts, topics = bars()
    levels = []
    for method in METHODS:
        chains = sample_topics(
            counts, 10, alpha=1.0, beta=1.0, method=method, n_draws=60, n_warmup=300, n_chains=2, random_state=1
        )
        levels.append(chains["log_joint"].mean())
        corpus = corpus_of(counts)
        z = chains.states["state.z"][0]
        found = counts_of(corpus, z, 10).T + 1.0
        found /= found.sum(axis=1, keepdims=True)
        distance = np.abs(found[:, None] - topics[None]).sum(axis=2)
        assert (distance.min(axis=0) < 0.7).all()  # each bar has a topic; others are 1.5 away
    assert max(levels) - min(levels) < 0.004 * abs(np.mean(levels))


@pytest.mark.parametrize("method", METHODS)
def test_the_same_bits_for_any_number_of_threads_and_after_a_resume(method):
    counts, _ = bars(30)

    def run(n, **more):
        return sample_topics(counts, 4, method=method, n_draws=n, n_warmup=5, n_chains=2, random_state=3, **more)

    whole = run(12, n_jobs=1)
    np.testing.assert_array_equal(run(12, n_jobs=2).draws, whole.draws)
    longer = resume(run(5), 7)
    np.testing.assert_array_equal(longer.draws, whole.draws)
    np.testing.assert_array_equal(longer.states["state.z"], whole.states["state.z"])


def test_one_topic_has_its_closed_form():
    counts, _ = bars(10)
    chains = sample_topics(counts, 1, alpha=2.0, beta=0.5, n_draws=4, n_warmup=0, random_state=0)
    total = counts.sum(axis=0)
    exact = gammaln(25 * 0.5) - gammaln(total.sum() + 25 * 0.5) + (gammaln(total + 0.5) - gammaln(0.5)).sum()
    np.testing.assert_allclose(chains["log_joint"], exact)


def test_empty_documents_unused_words_and_bad_counts():
    counts = np.array([[3, 0, 1, 0], [0, 0, 0, 0], [0, 0, 2, 0]])
    chains = sample_topics(sp.csr_array(counts), 6, n_draws=8, n_warmup=2, random_state=0)  # more topics than words
    assert np.isfinite(chains.draws).all()
    np.testing.assert_array_equal(corpus_of(sp.csr_array(counts)).words, corpus_of(counts).words)
    for bad, message in [
        ([[0.5, 1.0]], "whole numbers"),
        ([[-1, 1]], "whole numbers"),
        ([[0, 0]], "not a single token"),
        ([[np.nan, 1.0]], "whole numbers"),
    ]:
        with pytest.raises(DataError, match=message):
            corpus_of(np.array(bad))
    for bad, message in [
        ({"n_topics": 0}, "n_topics must be"),
        ({"alpha": -1.0}, "alpha must be positive"),
        ({"alpha": [1.0, 2.0, 3.0]}, "alpha must be positive"),
        ({"alpha": "flat"}, "alpha must be positive"),
        ({"beta": "flat"}, "beta must be positive"),
        ({"beta": 0.0}, "beta must be positive"),
        ({"method": "warp"}, "method must be one of"),
        ({"n_warmup": -1}, "n_warmup must be"),
        ({"n_chains": 0}, "n_chains must be"),
    ]:
        with pytest.raises(ParameterError, match=message):
            sample_topics(counts, **{"n_topics": 2, **bad})
