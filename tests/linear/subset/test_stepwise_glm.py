"""Stepwise logistic, Poisson and gamma regression: refits by another library, known tests, and steps checked again."""

import numpy as np
import pytest
from scipy.stats import chi2, f
from sklearn.linear_model import GammaRegressor as PeerGamma
from sklearn.linear_model import LogisticRegression as Peer
from sklearn.linear_model import PoissonRegressor as PeerPoisson
from sklearn.metrics import log_loss

import learnable as ln
from learnable import StepwiseGLM
from learnable.core.errors import DataError, ParameterError, SeparableDataError


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 5))
    X[:, 3] += 0.7 * X[:, 1]
    score = 1.2 * X[:, 1] - 0.8 * X[:, 4]
    labels = (rng.random(150) < 1 / (1 + np.exp(-score))).astype(float)
    counts = rng.poisson(np.exp(0.5 * score)).astype(float)
    return X, {"binomial": labels, "poisson": counts, "gamma": rng.gamma(2.0, np.exp(0.5 * score))}


def peer_deviance(X, y, family, columns):
    if family == "gamma":
        model = PeerGamma(alpha=0.0, solver="newton-cholesky", tol=1e-9).fit(X[:, columns], y) if columns else None
        mean = np.full(len(y), y.mean()) if model is None else model.predict(X[:, columns])
        return 2 * np.sum(np.log(mean / y) + y / mean - 1)
    if family == "poisson":
        model = PeerPoisson(alpha=0.0, solver="newton-cholesky", tol=1e-9).fit(X[:, columns], y) if columns else None
        mean = np.full(len(y), y.mean()) if model is None else model.predict(X[:, columns])
        ratio = np.where(y > 0, y * np.log(np.where(y > 0, y, 1.0) / mean), 0.0)
        return 2 * np.sum(ratio - y + mean)
    if not columns:
        return 2 * log_loss(y, np.full(len(y), y.mean()), normalize=False)
    model = Peer(C=np.inf, tol=1e-10, max_iter=1000).fit(X[:, columns], y)
    return 2 * log_loss(y, model.predict_proba(X[:, columns])[:, 1], normalize=False)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("family", ["binomial", "poisson", "gamma"])
@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_every_step_is_the_best_of_refits_by_another_library(rows, family, direction):
    X, targets = rows
    y = targets[family]
    model = StepwiseGLM(family, direction=direction).fit(X, y)
    order = model.order_.tolist()
    for size in range(6):
        assert model.deviance_path_[size] == pytest.approx(peer_deviance(X, y, family, order[:size]), rel=1e-6)
    for size in range(5):
        if direction == "forward":
            others = {j: peer_deviance(X, y, family, [*order[:size], j]) for j in range(5) if j not in order[:size]}
        else:
            others = {
                j: peer_deviance(X, y, family, [i for i in order[: size + 1] if i != j]) for j in order[: size + 1]
            }
        assert min(others, key=others.get) == order[size]
    assert ln.verify(model, X, y)


def test_the_criteria_are_those_of_the_deviance(rows):
    X, targets = rows
    y = targets["binomial"]
    path = StepwiseGLM("binomial").fit(X, y).deviance_path_
    for criterion, factor in (("aic", 2.0), ("bic", np.log(150))):
        model = StepwiseGLM("binomial", criterion=criterion).fit(X, y)
        assert model.support_.sum() == np.argmin(path + factor * np.arange(6))
    tested = StepwiseGLM("binomial", criterion="test", p_value=0.05).fit(X, y)
    level = chi2.isf(0.05, 1)
    assert (tested.statistics_[: tested.support_.sum()] > level).all()
    assert tested.statistics_[tested.support_.sum()] <= level
    np.testing.assert_allclose(tested.statistics_, -np.diff(path), atol=1e-6)


def test_gamma_statistics_are_in_units_of_the_dispersion_of_all_columns(rows):
    """The F test of two nested gamma regressions, and Cp's rule for the deviance."""
    X, targets = rows
    y = targets["gamma"]
    full = PeerGamma(alpha=0.0, solver="newton-cholesky", tol=1e-9).fit(X, y)
    dispersion = np.sum((y / full.predict(X) - 1) ** 2) / (150 - 6)
    model = StepwiseGLM("gamma", criterion="test").fit(X, y)
    assert model.dispersion_ == pytest.approx(dispersion, rel=1e-6)
    np.testing.assert_allclose(model.statistics_, -np.diff(model.deviance_path_) / dispersion, rtol=1e-6, atol=1e-6)
    assert f.sf(model.statistics_, 1, 144)[: model.support_.sum()].max() <= 0.05
    bic = StepwiseGLM("gamma").fit(X, y)
    assert bic.support_.sum() == np.argmin(model.deviance_path_ / dispersion + np.log(150) * np.arange(6))
    assert set(np.flatnonzero(bic.support_)) >= {1, 4}
    for test in ("wald", "score"):
        other = StepwiseGLM("gamma", test=test, criterion="test").fit(X, y)
        np.testing.assert_allclose(other.statistics_[:2], model.statistics_[:2], rtol=0.6)
        assert ln.verify(other, X, y)
    other.dispersion_ *= 1.01
    assert not ln.verify(other, X, y)
    with pytest.raises(DataError, match="must be positive"):
        StepwiseGLM("gamma").fit(X, y - y.min())
    with pytest.raises(DataError, match="more rows than coefficients"):
        StepwiseGLM("gamma").fit(X[:6], y[:6])


@pytest.mark.parametrize("test", ["wald", "score"])
@pytest.mark.parametrize("criterion", ["test", "cv"])
def test_other_statistics_and_folds_are_verified(rows, test, criterion):
    X, targets = rows
    model = StepwiseGLM("binomial", test=test, criterion=criterion, cv=3).fit(X, targets["binomial"])
    assert set(np.flatnonzero(model.support_)) >= {1, 4}
    assert ln.verify(model, X, targets["binomial"])


def test_the_gap_to_the_best_subset_is_stated(rows):
    X, targets = rows
    y = targets["binomial"]
    rng = np.random.default_rng(5)
    # The first column is nearly the score, so forward takes it first and misses the pair.
    trap = np.column_stack([X[:, 1] - 0.7 * X[:, 4] + 0.6 * rng.normal(size=150), X])
    forward = StepwiseGLM("binomial", size=2).fit(trap, y)
    backward = StepwiseGLM("binomial", size=2, direction="backward").fit(trap, y)
    assert min(forward.certificate_.bound, backward.certificate_.bound) == 0.0
    assert ln.verify(forward, trap, y)


def test_forgeries_are_refused(rows):
    X, targets = rows
    y = targets["poisson"]
    for attribute in ("coef_", "deviance_path_", "statistics_"):
        model = StepwiseGLM().fit(X, y)
        setattr(model, attribute, getattr(model, attribute) * 1.001)
        assert not ln.verify(model, X, y)
    model = StepwiseGLM().fit(X, y)
    model.order_ = model.order_[::-1].copy()
    assert not ln.verify(model, X, y)


def test_required_columns_dependent_ones_and_the_empty_set(rows):
    X, targets = rows
    y = targets["binomial"]
    model = StepwiseGLM("binomial", required=[0], size=1).fit(X, y)
    assert np.flatnonzero(model.support_).tolist() == [0]
    empty = StepwiseGLM("binomial", size=0).fit(X, y)
    assert empty.predict(X[:2]) == pytest.approx(y.mean())
    assert empty.score(X, y) == pytest.approx(0.0, abs=1e-9)
    twice = StepwiseGLM("binomial").fit(np.column_stack([X, X[:, 1], np.ones(150)]), y)
    assert len(twice.order_) == 5


def test_what_cannot_be_fitted_is_told(rows):
    X, targets = rows
    with pytest.raises(DataError, match="between 0 and 1"):
        StepwiseGLM("binomial").fit(X, 2 * targets["binomial"])
    with pytest.raises(DataError, match="negative"):
        StepwiseGLM("poisson").fit(X, -targets["binomial"])
    with pytest.raises(ParameterError, match="size"):
        StepwiseGLM("binomial", size=6).fit(X, targets["binomial"])
    with pytest.raises(SeparableDataError, match="no maximum"):
        StepwiseGLM("binomial", size=1).fit(X, (X[:, 2] > 0).astype(float))
