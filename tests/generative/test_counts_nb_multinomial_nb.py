"""Multinomial naive Bayes: scikit-learn's numbers, the Dirichlet posterior, and text of ten fields of science."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.naive_bayes import MultinomialNB as Reference

from learnable import MultinomialNB, verify
from learnable.core.errors import DataError
from learnable.probability import DirichletMultinomial


def make(n=200, d=12, K=3, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, K, n)
    p = rng.dirichlet(np.ones(d), K)
    return np.stack([rng.multinomial(30, p[k]) for k in y]).astype(float), y


@pytest.mark.parametrize("container", [np.asarray, sp.csr_array, sp.csc_matrix])
@pytest.mark.parametrize(
    "parameters",
    [{}, {"alpha": 0.3}, {"alpha": np.linspace(0.1, 2, 12)}, {"fit_prior": False}, {"class_prior": [0.2, 0.3, 0.5]}],
)
def test_it_is_scikit_learns(container, parameters):
    X, y = make()
    w = np.random.default_rng(1).uniform(0.2, 3, len(y))
    ours = MultinomialNB(**parameters).fit(container(X), y, w)
    theirs = Reference(**parameters).fit(container(X), y, w)
    for name in ("class_count_", "class_log_prior_", "feature_count_", "feature_log_prob_"):
        np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), rtol=1e-12, err_msg=name)
    np.testing.assert_allclose(
        ours.predict_proba(container(X)), theirs.predict_proba(container(X)), rtol=1e-9, atol=1e-300
    )


def test_partial_fits_equal_one_fit_to_the_bit_for_counts():
    X, y = make()
    parts = MultinomialNB()
    for rows in np.array_split(np.arange(len(y)), 4):
        parts.partial_fit(sp.csr_array(X[rows]), y[rows], classes=[0, 1, 2])
    whole = MultinomialNB().fit(X, y)
    assert np.array_equal(parts.feature_log_prob_, whole.feature_log_prob_)
    assert parts.certificate_.fingerprint == whole.certificate_.fingerprint and verify(parts, X, y)


def test_smoothing_is_a_prior():
    X, y = make()
    model = MultinomialNB(alpha=0.4).fit(X, y)
    prior = DirichletMultinomial(np.full(12, 0.4))
    for k in range(3):
        posterior = prior.update(X[y == k])
        np.testing.assert_allclose(model.posterior().alpha[k], posterior.alpha, rtol=1e-12)
        np.testing.assert_allclose(np.exp(model.feature_log_prob_[k]), posterior.marginal().mean, rtol=1e-12)


def test_integrated_probabilities_are_those_of_the_predictive_distribution():
    X, y = make(40)
    model = MultinomialNB(integrate=True).fit(X, y)
    new = make(5, seed=9)[0]
    joint = (
        np.stack([model.posterior()[k].predictive(n=30).logpmf(new) for k in range(3)], axis=1) + model.class_log_prior_
    )
    expected = np.exp(joint - np.logaddexp.reduce(joint, axis=1, keepdims=True))
    np.testing.assert_allclose(model.predict_proba(new), expected, rtol=1e-8)
    np.testing.assert_allclose(model.predict_proba(sp.csr_array(new)), expected, rtol=1e-8)
    single = np.eye(12)  # one draw: the predictive is the posterior mean, so nothing changes
    np.testing.assert_allclose(model.predict_proba(single), MultinomialNB().fit(X, y).predict_proba(single), rtol=1e-10)


def test_without_smoothing_a_word_never_seen_excludes_a_class():
    X, y = [[2, 0, 1], [1, 1, 0], [0, 3, 1]], ["a", "b", "b"]
    model = MultinomialNB(alpha=0).fit(X, y)
    assert (
        model.predict_proba([[1, 0, 1]]).round(6).tolist() == [[0.9, 0.1]]
        or model.predict_proba([[1, 1, 0]])[0, 0] == 0
    )
    assert model.predict_proba([[0, 1, 0]])[0].tolist() == [0.0, 1.0]
    assert np.array_equal(model.predict_proba([[0, 1, 0]]), model.predict_proba(sp.csr_array([[0, 1, 0]])))
    only = MultinomialNB(alpha=0).fit([[1, 0], [0, 1]], ["a", "b"])
    with pytest.raises(DataError, match="probability zero under every class"):
        only.predict([[1, 1]])


def test_counts_of_a_billion():
    X, y = make()
    big = MultinomialNB(alpha=0).fit(X * 1e9, y)
    np.testing.assert_allclose(big.feature_log_prob_, MultinomialNB(alpha=0).fit(X, y).feature_log_prob_, rtol=1e-12)
    assert verify(big, X * 1e9, y)


def test_negative_and_missing_counts_are_refused():
    with pytest.raises(DataError, match="Negative values in data"):
        MultinomialNB().fit([[1.0, -1.0], [0.0, 1.0]], [0, 1])
    model = MultinomialNB().fit([[1.0, 0.0], [0.0, 1.0]], [0, 1])
    with pytest.raises(DataError, match="Negative values in data"):
        model.predict(sp.csr_array([[0.0, -2.0]]))
    with pytest.raises(DataError, match="NaN"):
        MultinomialNB().fit([[1.0, np.nan], [0.0, 1.0]], [0, 1])


@pytest.mark.threaded
def test_the_same_bits_for_every_number_of_threads():
    rng = np.random.default_rng(0)
    X = sp.random_array((4000, 50), density=0.3, rng=rng, format="csr")  # fractions: the order of a sum shows
    y = rng.integers(0, 4, 4000)
    one, two = (MultinomialNB(n_jobs=n).fit(X, y) for n in (1, 2))
    assert np.array_equal(one.feature_count_, two.feature_count_)
    assert np.array_equal(one.predict_proba(X), two.predict_proba(X))


def test_fields_of_science_from_titles(reference_data):
    """On every fifth of 8,355 titles (OCTIS's M10) the error is scikit-learn's, word for word."""
    pd = pytest.importorskip("pandas")
    from sklearn.feature_extraction.text import CountVectorizer

    table = pd.read_csv(reference_data / "text_m10.csv.gz")
    text = table.columns[
        [table[c].astype(str).str.len().mean() for c in table.columns]
        == max(table[c].astype(str).str.len().mean() for c in table.columns)
    ][0]
    X, y = CountVectorizer().fit_transform(table[text].astype(str)), table["label"].to_numpy()
    test = np.arange(len(y)) % 5 == 0
    ours = MultinomialNB().fit(X[~test], y[~test]).score(X[test], y[test])
    theirs = Reference().fit(X[~test], y[~test]).score(X[test], y[test])
    assert ours == theirs > 0.7
