"""Categorical naive Bayes: PlayTennis, promoters, splice junctions, and counting by hand."""

import numpy as np
import pytest
from sklearn.naive_bayes import CategoricalNB as Reference
from sklearn.preprocessing import OrdinalEncoder
from tests.oracles.generative import categorical_posterior

from learnable import CategoricalNB, verify
from learnable.core.errors import DataError, ParameterError


def make(n=200, d=4, K=3, seed=0):
    rng = np.random.default_rng(seed)
    return rng.integers(0, 5, (n, d)).astype(float), rng.integers(0, K, n)


@pytest.mark.parametrize("parameters", [{}, {"alpha": 0.5}, {"min_categories": 7}, {"min_categories": [5, 6, 7, 8]}])
def test_it_is_scikit_learns(parameters):
    X, y = make()
    w = np.random.default_rng(1).uniform(0.2, 3, len(y))
    ours, theirs = CategoricalNB(**parameters).fit(X, y, w), Reference(**parameters).fit(X, y, w)
    assert ours.n_categories_.tolist() == theirs.n_categories_.tolist()
    for j in range(4):
        np.testing.assert_allclose(ours.category_count_[j], theirs.category_count_[j], rtol=1e-12)
        np.testing.assert_allclose(ours.feature_log_prob_[j], theirs.feature_log_prob_[j], rtol=1e-12)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), rtol=1e-9)
    assert verify(ours, X, y, w)


def test_play_tennis(reference_data):
    """T. Mitchell, Machine Learning, section 6.9.1: P(no | sunny, cool, high, strong) = .795, without smoothing."""
    pd = pytest.importorskip("pandas")
    table = pd.read_csv(reference_data / "play_tennis.csv")
    encoder = OrdinalEncoder()
    X = encoder.fit_transform(table.iloc[:, :-1])
    y = table["play"].to_numpy()
    model = CategoricalNB(alpha=0).fit(X, y)
    query = encoder.transform(pd.DataFrame([["Sunny", "Cool", "High", "Strong"]], columns=table.columns[:-1]))
    assert model.predict_proba(query)[0, 0] == pytest.approx(0.7954, abs=5e-5)
    rows = [tuple(row) for row in table.iloc[:, :-1].to_numpy()]
    for values in (["Sunny", "Cool", "High", "Strong"], ["Overcast", None, "High", "Weak"], [None, "Hot", None, None]):
        codes = [[np.nan if v is None else encoder.categories_[j].tolist().index(v) for j, v in enumerate(values)]]
        for alpha in (0, 1):
            found = CategoricalNB(alpha=alpha).fit(X, y).predict_proba(codes)[0]
            np.testing.assert_allclose(found, categorical_posterior(rows, y.tolist(), values, alpha), rtol=1e-12)


def letters(sequences, alphabet):
    return np.array([[alphabet.index(c) for c in s] for s in sequences], dtype=float)


def test_promoters_by_leave_one_out(reference_data):
    """9 of 106 promoter sequences (Towell, Shavlik and Noordewier, 1990) are misjudged with Laplace's smoothing."""
    pd = pytest.importorskip("pandas")
    table = pd.read_csv(reference_data / "dna" / "promoters.csv")
    X, y = letters(table["sequence"].str.upper(), "ACGT"), table["class"].to_numpy()
    errors = 0
    for i in range(len(y)):
        rest = np.arange(len(y)) != i
        errors += CategoricalNB(min_categories=4).fit(X[rest], y[rest]).predict(X[[i]])[0] != y[i]
    assert errors == 9


def test_splice_junctions(reference_data):
    """Every fifth of 3,190 splice junctions: an error of .048589 with eight letters and Laplace's smoothing."""
    pd = pytest.importorskip("pandas")
    table = pd.read_csv(reference_data / "dna" / "splice.csv")
    X, y = letters(table["sequence"], "ACGTDNRS"), table["class"].to_numpy()
    test = np.arange(len(y)) % 5 == 0
    model = CategoricalNB(min_categories=8).fit(X[~test], y[~test])
    assert 1 - model.score(X[test], y[test]) == pytest.approx(0.048589, abs=1e-6)
    ambiguous = X.copy()
    ambiguous[X > 3] = np.nan  # an unknown base is no base of its own
    better = CategoricalNB(min_categories=4).fit(ambiguous[~test], y[~test])
    assert 1 - better.score(ambiguous[test], y[test]) <= 0.05


def test_missing_values_are_integrated_out():
    X, y = make()
    narrow = CategoricalNB().fit(X[:, :2], y).predict_proba(X[:, :2])
    hidden = np.column_stack([X[:, :2], np.full((len(X), 2), np.nan)])
    np.testing.assert_allclose(CategoricalNB().fit(X, y).predict_proba(hidden), narrow, rtol=1e-11)
    holes = X.copy()
    holes[::3, 1] = np.nan
    model = CategoricalNB().fit(holes, y)
    assert model.category_count_[1].sum() == np.isfinite(holes[:, 1]).sum() and verify(model, holes, y)


def test_partial_fits_meet_new_categories():
    X, y = make()
    order = np.argsort(X[:, 0], kind="stable")
    X, y = X[order], y[order]
    parts = CategoricalNB().partial_fit(X[:60], y[:60], classes=[0, 1, 2]).partial_fit(X[60:], y[60:])
    whole = CategoricalNB().fit(X, y)
    assert all(np.array_equal(a, b) for a, b in zip(parts.feature_log_prob_, whole.feature_log_prob_, strict=True))
    assert parts.certificate_.fingerprint == whole.certificate_.fingerprint


def test_the_posterior_predictive_is_the_estimate_itself():
    X, y = make()
    model = CategoricalNB(alpha=0.3).fit(X, y)
    np.testing.assert_allclose(model.posterior(2).predictive().p, np.exp(model.feature_log_prob_[2]), rtol=1e-12)


def test_bad_categories_are_named():
    X, y = make()
    model = CategoricalNB().fit(X, y)
    with pytest.raises(DataError, match="column 1 holds category 9; the fit knew 0 to 4"):
        model.predict([[0, 9, 0, 0]])
    for wrong, words in (
        ([[0.5], [1.0]], "whole numbers"),
        ([[-1.0], [1.0]], "Negative"),
        ([[1e9], [1.0]], "category 1e"),
    ):
        with pytest.raises(DataError, match=words):
            CategoricalNB().fit(wrong, [0, 1])
    with pytest.raises(ParameterError, match="min_categories"):
        CategoricalNB(min_categories=[1.5, 2.0, 3.0, 4.0]).fit(X, y)
    with pytest.raises(ParameterError, match="min_categories"):
        CategoricalNB(min_categories=[5, 5]).fit(X, y)
