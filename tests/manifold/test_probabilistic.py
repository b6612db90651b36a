"""Probabilistic components and factor analysis: densities, gaps, likelihoods that never fall, references, checkers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import decomposition
from sklearn.datasets import load_iris, load_wine

from learnable import PCA, GenerativeClassifier, load, save, verify
from learnable.core.errors import DataError, ParameterError
from learnable.data.blocks import Block
from learnable.manifold import FactorAnalysis, ProbabilisticPCA
from learnable.manifold.factor_analysis import rotated
from learnable.manifold.factors import FactorProblem, Factors, Scatter

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 2)) @ RNG.normal(size=(2, 6)) * 2.0 + RNG.normal(size=(120, 6)) * 0.5 + 5.0
# Three factors in nine columns, each with its own noise.
COLUMNS = RNG.normal(size=(150, 3)) @ RNG.normal(size=(3, 9)) + RNG.normal(size=(150, 9)) * np.linspace(0.7, 1.5, 9)
GAPS = np.where(RNG.random(X.shape) < 0.15, np.nan, X)


def observed_density(model, rows):
    """Return the mean log-density of what rows show, each from the marginal normal distribution."""
    covariance = model.get_covariance()
    found = []
    for row in rows:
        o = ~np.isnan(row)
        away = row[o] - model.mean_[o]
        inside = covariance[np.ix_(o, o)]
        distance = away @ np.linalg.solve(inside, away) if o.any() else 0.0
        found.append(-0.5 * (distance + np.linalg.slogdet(inside)[1] + o.sum() * np.log(2.0 * np.pi)))
    return np.array(found)


def test_complete_rows_have_the_maximum_in_closed_form():
    model = ProbabilisticPCA(2).fit(X)
    theirs = decomposition.PCA(2).fit(X)  # with n − 1 in place of n
    scale = (len(X) - 1) / len(X)
    np.testing.assert_allclose(model.explained_variance_, theirs.explained_variance_ * scale, rtol=1e-10)
    np.testing.assert_allclose(model.noise_variance_, theirs.noise_variance_ * scale, rtol=1e-9)
    np.testing.assert_allclose(np.abs(model.components_), np.abs(theirs.components_), atol=1e-10)
    assert model.loglike_[-1] == pytest.approx(model.score(X), rel=1e-12)
    np.testing.assert_allclose(model.score_samples(X), observed_density(model, X), rtol=1e-9)
    np.testing.assert_allclose(model.get_precision() @ model.get_covariance(), np.eye(6), atol=1e-10)
    assert verify(model, X)
    for _ in range(20):  # no density of the family near it is better
        other = ProbabilisticPCA(2).fit(X)
        other.components_ = np.linalg.qr((other.components_ + 0.1 * RNG.normal(size=(2, 6))).T)[0].T
        other.noise_variance_ *= np.exp(0.1 * RNG.normal())
        other.explained_variance_ = other.explained_variance_ * np.exp(0.1 * RNG.normal(size=2))
        assert other.score(X) <= model.score(X)


@settings(max_examples=10)
@given(st.integers(0, 10**6), st.integers(1, 3), st.floats(0.0, 0.4))
def test_the_likelihood_of_what_was_observed_never_falls(seed, k, share):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(25, 5)) @ rng.normal(size=(5, 5))
    rows[rng.random(rows.shape) < share] = np.nan
    rows[0] = 0.0  # every column has a value
    for model in (ProbabilisticPCA(k, max_iter=40, tol=1e-4), FactorAnalysis(k, max_iter=40, tol=1e-4)):
        model.fit(rows)
        assert (np.diff(model.loglike_) >= -1e-9 * np.abs(model.loglike_[1:])).all()
        per_row = model.loglike_[-1] / (1 if isinstance(model, ProbabilisticPCA) else len(rows))
        assert per_row == pytest.approx(observed_density(model, rows).mean(), rel=1e-7, abs=1e-9)
        assert per_row == pytest.approx(model.score(rows), rel=1e-9, abs=1e-9)


def test_gaps_are_filled_with_their_conditional_means_and_the_checker_agrees():
    model = ProbabilisticPCA(2).fit(GAPS)
    covariance = model.get_covariance()
    filled = model.impute(GAPS)
    for row, shown in zip(GAPS[:30], filled, strict=False):
        o = ~np.isnan(row)
        expected = model.mean_[~o] + covariance[np.ix_(~o, o)] @ np.linalg.solve(
            covariance[np.ix_(o, o)], row[o] - model.mean_[o]
        )
        np.testing.assert_allclose(shown[~o], expected, rtol=1e-9)
    missing = np.isnan(GAPS)
    assert np.abs(filled - X)[missing].mean() < 0.5 * np.abs(X - np.nanmean(GAPS, axis=0))[missing].mean()
    assert model.certificate_.kind == "ascent"
    assert verify(model, GAPS)
    assert not verify(model, np.nan_to_num(GAPS))
    # One gap in one row changes little; all rows complete are the closed form.
    nearly = X.copy()
    nearly[3, 2] = np.nan
    close, full = ProbabilisticPCA(2).fit(nearly), ProbabilisticPCA(2).fit(X)
    np.testing.assert_allclose(close.explained_variance_, full.explained_variance_, rtol=0.05)


def test_pca_of_rows_with_gaps_is_that_of_the_density(tmp_path):
    pca, density = PCA(2).fit(GAPS), ProbabilisticPCA(2).fit(GAPS)
    scale = len(X) / (len(X) - 1.0)
    np.testing.assert_allclose(pca.explained_variance_, density.explained_variance_ * scale, rtol=1e-9)
    np.testing.assert_allclose(pca.components_, density.components_, atol=1e-9)
    assert pca.noise_variance_ == pytest.approx(density.noise_variance_ * scale)
    assert pca.explained_variance_ratio_.sum() < 1
    np.testing.assert_allclose(pca.transform(GAPS), (density.impute(GAPS) - pca.mean_) @ pca.components_.T, rtol=1e-6)
    np.testing.assert_allclose(pca.explained_variance_, PCA(2).fit(X).explained_variance_, rtol=0.15)
    assert verify(pca, GAPS)
    weight = RNG.integers(1, 3, len(X)).astype(float)
    twice = PCA(2).fit(np.repeat(GAPS, weight.astype(int), axis=0))
    weighted = PCA(2).fit(GAPS, sample_weight=weight)
    np.testing.assert_allclose(weighted.explained_variance_, twice.explained_variance_, rtol=1e-5)
    save(pca, tmp_path / "gaps.safetensors")
    assert load(tmp_path / "gaps.safetensors").transform(GAPS).tobytes() == pca.transform(GAPS).tobytes()


def test_rows_on_disk_with_gaps(tmp_path):
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "rows.parquet"
    parquet.write_table(pa.table({f"x{j}": GAPS[:, j] for j in range(6)}), path)
    np.testing.assert_allclose(PCA(2).fit(str(path)).components_, PCA(2).fit(GAPS).components_, atol=1e-9)


def test_draws_have_the_covariance_of_the_model():
    model = ProbabilisticPCA(2).fit(X)
    drawn = model.sample(20_000, random_state=0)
    # Entries of a covariance of n normal rows have a standard deviation of at most √(2/n) of the largest variance.
    limit = 5.0 * np.sqrt(2.0 / 20_000) * np.diag(model.get_covariance()).max()
    assert np.abs(np.cov(drawn.T) - model.get_covariance()).max() < limit
    np.testing.assert_allclose(model.inverse_transform(np.zeros((1, 2)))[0], model.mean_)


def test_it_is_a_density_for_the_bayes_classifier():
    rows, y = load_iris(return_X_y=True)
    model = GenerativeClassifier(ProbabilisticPCA(2)).fit(rows, y)
    assert model.score(rows, y) > 0.95


def test_the_two_kinds_of_block_say_the_same():
    d, k = 6, 2
    at = Factors(X.mean(axis=0) + 0.3, RNG.normal(size=(d, k)), np.exp(RNG.normal(size=d)))
    problem = FactorProblem(False, np.zeros(d))
    scatter = Scatter(float(len(X)), X.mean(axis=0), np.cov(X.T, bias=True))
    of_rows, likelihood = problem.expectation(Block(X, None, None, 0), at)
    of_scatter, same = problem.expectation(scatter, at)
    assert likelihood == pytest.approx(same, rel=1e-10)
    for a, b in zip(of_rows, of_scatter, strict=True):
        np.testing.assert_allclose(a, np.broadcast_to(b, a.shape), rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize(("table", "k"), [(COLUMNS, 3), (load_wine().data[:, :6], 2)], ids=["factors", "wine"])
def test_factor_analysis_reaches_scikit_learns_likelihood(table, k):
    ours = FactorAnalysis(k, tol=1e-10).fit(table)
    theirs = decomposition.FactorAnalysis(k, tol=1e-8, max_iter=5000, svd_method="lapack").fit(table)
    assert ours.score(table) >= theirs.score(table) - 1e-6
    np.testing.assert_allclose(ours.get_precision() @ ours.get_covariance(), np.eye(table.shape[1]), atol=1e-6)
    assert verify(ours, table)
    if table is COLUMNS:
        np.testing.assert_allclose(np.abs(ours.components_), np.abs(theirs.components_), atol=2e-3)
        np.testing.assert_allclose(ours.transform(COLUMNS[:5]), ours.transform(COLUMNS)[:5])


def test_factor_analysis_follows_a_change_of_units():
    units = np.geomspace(0.1, 10.0, 9)
    settings = {"n_components": 3, "tol": 1e-12}
    plain, scaled = FactorAnalysis(**settings).fit(COLUMNS), FactorAnalysis(**settings).fit(COLUMNS * units)
    np.testing.assert_allclose(scaled.noise_variance_, plain.noise_variance_ * units**2, rtol=1e-4)
    weight = RNG.integers(1, 4, len(COLUMNS)).astype(float)
    repeated = FactorAnalysis(**settings).fit(np.repeat(COLUMNS, weight.astype(int), axis=0))
    weighted = FactorAnalysis(**settings).fit(COLUMNS, sample_weight=weight)
    np.testing.assert_allclose(weighted.noise_variance_, repeated.noise_variance_, rtol=1e-4)


def test_rotations():
    # R's psych::principal with rotate="varimax", as in scikit-learn's tests.
    first = np.array([0.89421016, -0.45081822, 0.99500666, 0.96822861])
    second = np.array([-0.35854928, -0.89132754, -0.02031465, -0.06299656])
    factors = np.column_stack([first, second])
    expected = np.array([[0.962, 0.052], [-0.141, 0.989], [0.949, -0.300], [0.937, -0.251]])
    np.testing.assert_allclose(np.abs(rotated(factors, "varimax")), np.abs(expected), atol=1e-3)
    plain = FactorAnalysis(3).fit(COLUMNS)
    for rotation in ("varimax", "quartimax"):
        model = FactorAnalysis(3, rotation=rotation).fit(COLUMNS)
        np.testing.assert_allclose(model.get_covariance(), plain.get_covariance(), rtol=1e-9, atol=1e-9)
        assert verify(model, COLUMNS)


def test_factor_analysis_of_rows_with_gaps():
    gaps = np.where(np.random.default_rng(1).random(COLUMNS.shape) < 0.05, np.nan, COLUMNS)
    model = FactorAnalysis(3, tol=1e-6).fit(gaps)
    assert verify(model, gaps)
    np.testing.assert_allclose(model.get_covariance(), FactorAnalysis(3).fit(COLUMNS).get_covariance(), atol=0.5)
    assert np.isfinite(model.impute(gaps)).all()


@pytest.mark.parametrize(
    ("model", "table", "match"),
    [
        (ProbabilisticPCA(6), X, "less than n_features=6"),
        (ProbabilisticPCA(1), X[:1], "n_samples = 1"),
        (ProbabilisticPCA(1), np.ones((5, 3)), "all rows are equal"),
        (FactorAnalysis(7), X, "at most the 6 columns"),
        (FactorAnalysis(1, noise_variance_init=np.ones(2)), X, "noise_variance_init"),
        (FactorAnalysis(1), np.column_stack([X, np.full(len(X), np.nan)]), "no value at all"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_bad_input_is_refused_in_words(model, table, match):
    with pytest.raises((DataError, ParameterError), match=match):
        model.fit(table)


def test_constant_columns_rows_of_gaps_and_no_factors_end_well():
    constant = np.column_stack([X, np.full(len(X), 3.0)])
    assert np.isfinite(FactorAnalysis(2).fit(constant).score(constant))
    empty = GAPS.copy()
    empty[4] = np.nan
    model = ProbabilisticPCA(2).fit(empty)
    np.testing.assert_allclose(model.impute(empty)[4], model.mean_)
    assert verify(model, empty)
    alone = FactorAnalysis(0).fit(X)
    np.testing.assert_allclose(alone.get_covariance(), np.diag(X.var(axis=0)), rtol=1e-9)
