"""Mixtures as emissions: one component, one state, the M-step, files, bad settings."""

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import multivariate_normal
from sklearn.mixture import GaussianMixture
from tests.sequences.models import given, holes

from learnable import GMMHMM, GaussianHMM
from learnable.core.errors import DataError, ParameterError
from learnable.sequences.gaussian_mixture import _full

SHAPES = ("diag", "spherical", "full", "tied")
pytestmark = pytest.mark.filterwarnings("ignore:.*stopped after")


def drawn(shape, K=2, G=3, d=2, seed=0):
    rng = np.random.default_rng(seed)
    model = GMMHMM(K, G, covariance_type=shape)
    B = rng.normal(size=(K, G, d, d))
    full = B @ B.transpose(0, 1, 3, 2) + 0.3 * np.eye(d)
    compact = {"full": full, "tied": full[:, 0], "diag": full[..., range(d), range(d)], "spherical": full[..., 0, 0]}
    model.startprob_, model.transmat_ = np.full(K, 1 / K), 0.6 * np.eye(K) + 0.4 / K
    model.weights_, model.means_, model.covars_ = (
        rng.dirichlet(np.ones(G), K),
        4 * rng.normal(size=(K, G, d)),
        compact[shape],
    )
    return model


@pytest.mark.parametrize("shape", SHAPES)
def test_frames_are_sums_over_components(shape):
    model = drawn(shape)
    X = holes(model.sample(20, random_state=0)[0])
    found = model._emission().log_frames(X, model._fitted().emission)
    full = _full(model.covars_, shape, (2, 3, 2)).reshape(2, 3, 2, 2)
    for x, row in zip(X, found, strict=True):
        there = ~np.isnan(x)
        for k in range(2):
            logs = [
                multivariate_normal(model.means_[k, g, there], full[k, g][np.ix_(there, there)]).logpdf(x[there])
                if there.any()
                else 0.0
                for g in range(3)
            ]
            assert row[k] == pytest.approx(logsumexp(np.log(model.weights_[k]) + logs), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("shape", ["diag", "spherical", "full"])
def test_one_component_is_the_gaussian_model(shape):
    plain = given(shape)
    X = holes(plain.sample(80, random_state=0)[0])
    plain.set_params(n_iter=10, tol=0.0, init_params="")
    mixed = GMMHMM(3, 1, covariance_type=shape, covars_prior=1e-2, covars_weight=1, n_iter=10, tol=0.0, init_params="")
    mixed.startprob_, mixed.transmat_, mixed.weights_ = plain.startprob_, plain.transmat_, np.ones((3, 1))
    mixed.means_, mixed.covars_ = plain.means_[:, None], plain.covars_[:, None]
    plain.fit(X, [30, 50])
    mixed.fit(X, [30, 50])
    np.testing.assert_allclose(mixed.bound_history_, plain.bound_history_, rtol=1e-12)
    np.testing.assert_allclose(mixed.means_[:, 0], plain.means_, rtol=1e-9)
    np.testing.assert_allclose(mixed.covars_[:, 0], plain.covars_, rtol=1e-9)


@pytest.mark.parametrize("shape", SHAPES)
def test_one_state_is_a_gaussian_mixture(shape):
    # scikit-learn's mixture, without its floor of the covariances, from the same start.
    X = drawn(shape, K=1).sample(200, random_state=1)[0]
    weights, means = np.array([0.3, 0.3, 0.4]), X[:3]
    ours = GMMHMM(1, 3, covariance_type=shape, covars_prior=0.0, n_iter=6, tol=0.0, init_params="")
    ours.startprob_, ours.transmat_, ours.weights_, ours.means_ = [1.0], [[1.0]], weights[None], means[None]
    ours.covars_ = {"diag": np.ones((1, 3, 2)), "spherical": np.ones((1, 3)), "tied": np.eye(2)[None]}.get(
        shape, np.tile(np.eye(2), (1, 3, 1, 1))
    )
    precisions = {"diag": np.ones((3, 2)), "spherical": np.ones(3), "tied": np.eye(2)}.get(
        shape, np.tile(np.eye(2), (3, 1, 1))
    )
    theirs = GaussianMixture(
        3, covariance_type=shape, weights_init=weights, means_init=means, precisions_init=precisions,
        reg_covar=0.0, max_iter=ours.fit(X).n_iter_, tol=0.0,
    ).fit(X)  # fmt: skip
    np.testing.assert_allclose(ours.weights_[0], theirs.weights_, rtol=1e-8)
    np.testing.assert_allclose(ours.means_[0], theirs.means_, rtol=1e-8)
    np.testing.assert_allclose(ours.covars_[0], theirs.covariances_, rtol=1e-7)


def test_a_state_of_two_far_components_is_found():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(0, 1, 100), rng.choice([-9, 9], 100) + rng.normal(0, 1, 100)])[:, None]
    model = GMMHMM(2, 2, n_iter=300, n_init=6, random_state=0).fit(X)
    assert np.flatnonzero(np.diff(model.predict(X))).tolist() == [99]
    wild = model.predict(X)[-1]
    np.testing.assert_allclose(np.sort(model.means_[wild, :, 0]), [-9, 9], atol=0.5)
    narrow = GaussianHMM(2, n_iter=300, n_init=6, random_state=0).fit(X)
    assert model.bic(X) < narrow.bic(X)
    assert model.n_parameters() == 1 + 2 + 2 * (1 + 2 + 2)


def test_bad_settings_are_refused():
    X = np.random.default_rng(0).normal(size=(30, 2))
    with pytest.raises(ParameterError, match="GMMHMM: weights_prior"):
        GMMHMM(2, 2, weights_prior=[1.0, 1.0, 1.0]).fit(X)
    with pytest.raises(ParameterError, match="GMMHMM: the priors do not fit"):
        GMMHMM(2, 2, means_prior=np.zeros((3, 2))).fit(X)
    with pytest.raises(DataError, match="GMMHMM: squares"):
        GMMHMM(2, 2).fit(X * 1e200)
    with pytest.raises(DataError, match="GMMHMM: a covariance collapsed"):
        GMMHMM(1, 2, covars_prior=0.0, n_iter=50).fit(np.full((30, 2), 5.0))
    model = drawn("diag")
    model.weights_ = np.full((2, 2), 0.5)
    with pytest.raises(ParameterError, match="weights_ must have shape"):
        model.score(X)
    model = drawn("diag")
    model.covars_ = -model.covars_
    with pytest.raises(ParameterError, match="covars_ must be symmetric and positive"):
        model.score(X)
