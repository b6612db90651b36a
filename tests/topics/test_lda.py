"""LatentDirichletAllocation: bounds never fall, held-out likelihood is exact in the mean, topics are found and kept."""

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.decomposition import LatentDirichletAllocation as Peer
from tests.mutations import unnoticed
from tests.oracles import lda as oracle

import learnable as ln
from learnable.core.errors import DataError, DataTypeError, ParameterError
from learnable.topics import LatentDirichletAllocation, TextCounts, coherence, select_topics
from learnable.topics.dirichlet import draw_asymmetric, draw_symmetric
from learnable.topics.variational import bound, documents_of, infer

from .test_sampler import bars

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

BRIEF = {"n_draws": 30, "n_warmup": 60, "random_state": 0}


@pytest.fixture(scope="module")
def corpus():
    return bars(80, seed=1)


def apart(n=40, seed=0):
    """Documents of one of two topics, three words each."""
    rng = np.random.default_rng(seed)
    X = np.zeros((n, 6), dtype=int)
    for d in range(n):
        X[d, 3 * (d % 2) : 3 * (d % 2) + 3] = rng.multinomial(20, [0.5, 0.3, 0.2])
    return X


@pytest.mark.parametrize("method", ["sparse", "gibbs", "collapsed", "variational", "ml"])
def test_two_topics_are_told_apart(method):
    X = apart()
    model = LatentDirichletAllocation(2, method=method, **BRIEF).fit(X)
    shares = model.transform(X)
    assert set(shares[::2].argmax(axis=1)) != set(shares[1::2].argmax(axis=1))
    assert (shares.max(axis=1) > 0.9).all()
    assert sorted(map(sorted, model.top_words(3))) == [[0, 1, 2], [3, 4, 5]]
    mean, low, high = model.transform_interval(X[:4])
    assert ((low <= mean) & (mean <= high)).all()
    assert (np.abs(mean - shares[:4]) < 0.1).all()
    np.testing.assert_allclose(model.topic_sizes(), 0.5, atol=0.05)


@settings(max_examples=15)
@given(st.integers(0, 10_000), st.integers(1, 4))
def test_the_bound_and_the_likelihood_never_fall(seed, K):
    rng = np.random.default_rng(seed)
    X = rng.poisson(1.0, size=(8, 7)).astype(float)
    X[0, 0] += 1
    for method in ("variational", "ml"):
        model = LatentDirichletAllocation(K, method=method, max_iter=40, random_state=0).fit(X)
        assert (np.diff(model.history_) >= -1e-9 * np.abs(model.history_[:-1])).all()
        assert model.certificate_.kind == "ascent"


def test_the_bound_is_scikit_learns(corpus):
    X, _ = corpus
    peer = Peer(5, max_iter=5, random_state=0).fit(X)
    documents = documents_of(X)
    weights = np.ascontiguousarray(peer.exp_dirichlet_component_.T)
    own = infer(documents, weights, np.full(5, 0.2), tol=1e-3, max_iter=100)  # as its transform
    np.testing.assert_allclose(own / own.sum(axis=1, keepdims=True), peer.transform(X), atol=2e-3)
    found = bound(documents, own, peer.components_, np.full(5, 0.2), 0.2)
    assert found == pytest.approx(peer.score(X), rel=1e-4)
    ours = LatentDirichletAllocation(5, learning_method="batch", max_iter=300, random_state=0).fit(X)
    best = Peer(5, max_iter=100, random_state=0).fit(X)
    assert ours.score(X) > 1.01 * best.score(X)  # both negative: at most 1 % worse than another local optimum


def test_left_to_right_is_the_sum_over_all_assignments():
    rng = np.random.default_rng(0)
    model = LatentDirichletAllocation(2, doc_topic_prior=0.7, **BRIEF).fit(apart())
    model.components_ = rng.gamma(2.0, size=(2, 6))
    phi = model.components_ / model.components_.sum(axis=1, keepdims=True)
    X = np.array([[2, 0, 1, 0, 1, 1]])
    exact = oracle.document_likelihood([0, 0, 2, 4, 5], phi, np.full(2, 0.7))
    draws = [np.exp(model.held_out(X, n_particles=5, random_state=s)[0]) for s in range(400)]
    assert abs(np.mean(draws) - exact) < 4 * np.std(draws) / 20  # unbiased for the probability
    many = model.held_out(X, n_particles=4000)[0]
    assert many == pytest.approx(np.log(exact), abs=0.02)


def test_learned_parameters_are_those_that_drew_the_counts():
    rng = np.random.default_rng(0)
    alpha = np.array([0.2, 1.5, 0.6])
    counts = np.array([rng.multinomial(60, p) for p in rng.dirichlet(alpha, size=400)])
    found = np.ones(3)
    draws = []
    for _ in range(60):
        found = draw_asymmetric(counts, counts.sum(axis=1), found, rng)
        draws.append(found)
    np.testing.assert_allclose(np.mean(draws[10:], axis=0), alpha, rtol=0.2)
    same = np.array([rng.multinomial(60, p) for p in rng.dirichlet(np.full(3, 0.5), size=400)])
    a = 1.0
    draws = []
    for _ in range(60):
        a = draw_symmetric(same, same.sum(axis=1), 3, a, rng)
        draws.append(a)
    assert np.mean(draws[10:]) == pytest.approx(0.5, rel=0.1)


def test_learned_priors_prefer_few_topics_per_document():
    model = LatentDirichletAllocation(2, doc_topic_prior="asymmetric", topic_word_prior="symmetric", **BRIEF).fit(
        apart()
    )
    assert model.doc_topic_prior_.shape == (2,)
    assert (model.doc_topic_prior_ < 1.0).all()
    assert model.topic_word_prior_ > 0


def test_sampled_models_are_checked_number_by_number():
    X = apart(16)
    model = LatentDirichletAllocation(2, doc_topic_prior=1.0, n_draws=700, n_warmup=50, random_state=1).fit(X)
    assert ln.verify(model, X), str(ln.verify(model, X))
    # One of 1,400 draws, or all of them backwards: R-hat and the effective sample size are the same.
    within = {("trace_", "one entry"), ("trace_", "swapped"), ("trace_", "reversed"), ("trace_", "columns reversed")}
    # The perplexity of the fit is a report on it, which no other method reads.
    assert {pair for pair in unnoticed(model, X) if pair[0] != "bound_"} <= within


@pytest.mark.parametrize("method", ["sparse", "gibbs", "variational", "ml"])
def test_the_same_bits_for_any_number_of_threads_and_a_round_trip(method, corpus, tmp_path):
    X, _ = corpus
    X = sp.csr_array(np.tile(X, (6, 1)))  # 48,000 tokens: threads within a chain
    brief = {"n_draws": 4, "n_warmup": 2, "n_chains": 1, "random_state": 0, "max_iter": 5}
    one = LatentDirichletAllocation(4, method=method, n_jobs=1, **brief).fit(X)
    two = LatentDirichletAllocation(4, method=method, n_jobs=2, **brief).fit(X)
    np.testing.assert_array_equal(one.components_, two.components_)
    np.testing.assert_array_equal(one.transform(X[:50]), two.transform(X[:50]))
    ln.save(one, tmp_path / "m.safetensors")
    np.testing.assert_array_equal(ln.load(tmp_path / "m.safetensors").transform(X[:50]), one.transform(X[:50]))


def test_texts_come_in_and_the_vocabulary_stays_with_the_model(tmp_path):
    texts = ["cats purr and cats sleep", "a cat does purr", "stocks and bonds fell", "bonds rose, stocks fell"] * 6
    model = LatentDirichletAllocation(2, text={"min_df": 1, "max_df": 1.0}, **BRIEF).fit(texts)
    assert "purr" in model.vocabulary_
    ln.save(model, tmp_path / "m.safetensors")
    again = ln.load(tmp_path / "m.safetensors")
    shares = again.transform(["purr purr", "unheard words", "bonds fell"])
    assert shares[0].argmax() != shares[2].argmax()
    np.testing.assert_allclose(shares[1], 0.5)  # unseen words say nothing
    assert {"cats", "purr"} <= {word for words in model.top_words(4) for word in words}
    assert isinstance(model.top_words(2, relevance=0.5)[0][0], str)
    np.testing.assert_allclose(again.transform(pd.Series(texts)), model.transform(texts))
    with pytest.raises(DataError, match="fitted to counts"):
        LatentDirichletAllocation(2, **BRIEF).fit(apart()).transform(texts)


def test_text_counts_say_what_is_wrong():
    with pytest.raises(DataError, match="no word is left"):
        TextCounts().fit(["the and of", "is it"])
    with pytest.raises(DataTypeError, match="text 1 is a int"):
        TextCounts(min_df=1).fit(["cat", 3])
    with pytest.raises(DataTypeError, match="not one text"):
        TextCounts().fit("cat")
    assert TextCounts(min_df=1, max_df=1.0).fit_transform(["cat", None, "cat dog"]).toarray().tolist() == [
        [1, 0],
        [0, 0],
        [1, 1],
    ]


def test_odd_corpora_have_right_answers():
    X = np.array([[3, 0, 1, 0], [0, 0, 0, 0], [0, 0, 2, 0]])
    for method in ("sparse", "gibbs", "collapsed", "variational", "ml"):
        model = LatentDirichletAllocation(6, method=method, **BRIEF).fit(X)  # more topics than words, an empty document
        assert np.isfinite(model.components_).all()
        np.testing.assert_allclose(model.transform(X)[1], 1 / 6)
        one = LatentDirichletAllocation(1, method=method, **BRIEF).fit(X)
        np.testing.assert_allclose(one.transform(X), 1.0)
        share = (X.sum(axis=0) + (0.0 if method == "ml" else 1.0)) / (6 + (0 if method == "ml" else 4))
        np.testing.assert_allclose(one.components_[0] / one.components_.sum(), share, rtol=1e-9)
    for bad, message in [
        (np.array([[0.5, 1.0]]), "fractions"),
        (np.array([[-1, 1]]), "Negative values"),
    ]:
        with pytest.raises(DataError, match=message):
            LatentDirichletAllocation(2).fit(bad)
    with pytest.raises(ParameterError, match="sampled models only"):
        LatentDirichletAllocation(2, method="ml", doc_topic_prior="symmetric").fit(X)
    with pytest.raises(ParameterError, match="one number or 2"):
        LatentDirichletAllocation(2, doc_topic_prior=[0.1, 0.2, 0.3]).fit(X)
    with pytest.raises(ParameterError, match="that X lacks"):
        LatentDirichletAllocation(2, seeds={0: [9]}, **BRIEF).fit(X)


def test_seeds_name_topics():
    X = apart()
    for first in (0, 1):
        model = LatentDirichletAllocation(2, seeds={first: [0, 1], 1 - first: [4]}, **BRIEF).fit(X)
        assert set(model.top_words(3)[first]) == {0, 1, 2}
    groups, means, errors = model.shares_by(X, ["a", "b"] * 20)
    assert groups == ["a", "b"]
    assert means[0].argmax() != means[1].argmax()
    assert (errors < 0.05).all()


def test_partial_fit_is_online_learning():
    X = apart(60)
    model = LatentDirichletAllocation(2, total_samples=60, batch_size=20, random_state=0)
    for _ in range(15):
        model.partial_fit(X)
    assert model.certificate_.kind == "none"
    assert sorted(map(sorted, model.top_words(3))) == [[0, 1, 2], [3, 4, 5]]
    assert model.n_batch_iter_ == 46


def test_coherence_is_that_of_the_pairs():
    rng = np.random.default_rng(0)
    X = rng.poisson(0.7, size=(30, 6))
    expected = np.mean([oracle.npmi(a, b, X) for a, b in [(2, 1), (4, 1), (4, 2)]])
    assert coherence([[1, 2, 4]], X)[0] == pytest.approx(expected)
    both = ((X[:, 1] > 0) & (X[:, 2] > 0)).sum()
    assert coherence([[1, 2]], sp.csr_array(X), "u_mass")[0] == pytest.approx(np.log((both + 1) / (X[:, 1] > 0).sum()))
    with pytest.raises(ParameterError, match="measure must be"):
        coherence([[0, 1]], X, "c_v")


def test_the_number_of_topics_is_that_of_the_documents():
    found = select_topics(apart(36), [1, 2], n_folds=2, n_particles=5, random_state=0, n_draws=10, n_warmup=20)
    assert found.best == 2
    assert (found.errors > 0).all()
    assert found.scores[1] - found.scores[0] > 3 * found.errors.max()
    assert "best: 2" in repr(found)


def test_time_is_limited():
    X, _ = bars(200)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = LatentDirichletAllocation(5, n_draws=10**6, n_warmup=0, max_seconds=0.2, random_state=0).fit(X)
    assert model.trace_.shape[1] < 10**6
    assert not model.certificate_.holds


def test_reuters_reaches_the_published_level(reference_data):
    """lda 3.0.2, K = 20, 1500 sweeps (α = 0.1, η = 0.01): complete log-likelihood −655.9k, −654.3k, −655.7k."""
    table = pd.read_csv(reference_data / "text_reuters" / "counts.csv.gz").to_numpy()
    X = sp.csr_array((table[:, 2], (table[:, 0], table[:, 1])))
    model = LatentDirichletAllocation(
        20, method="collapsed", doc_topic_prior=0.1, topic_word_prior=0.01, n_chains=1, n_draws=10, n_warmup=190,
        random_state=0,
    ).fit(X)  # fmt: skip
    assert model.trace_[0, -1, 0] > -670_000  # a seventh of the sweeps; the long test goes to the end


@pytest.mark.long
def test_reuters_long(reference_data):
    table = pd.read_csv(reference_data / "text_reuters" / "counts.csv.gz").to_numpy()
    X = sp.csr_array((table[:, 2], (table[:, 0], table[:, 1])))
    # At the same number of sweeps the sparse sampler, which draws Φ, is a little behind.
    for method, level in (("sparse", -658_000), ("collapsed", -656_500)):
        model = LatentDirichletAllocation(
            20, method=method, doc_topic_prior=0.1, topic_word_prior=0.01, n_chains=2, n_draws=50, n_warmup=1450,
            random_state=0,
        ).fit(X)  # fmt: skip
        assert model.trace_[:, :, 0].mean(axis=1).max() > level
