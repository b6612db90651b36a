"""Gaussian process classification: agreement with scikit-learn, laws, calibration, limits."""

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessClassifier as Peer
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

import learnable as ln
from learnable import GaussianProcessClassifier
from learnable.core.errors import DataError, ModelFileError, ParameterError
from learnable.risk.kernels import Gaussian

RNG = np.random.default_rng(0)
X, Q = RNG.normal(size=(60, 2)), RNG.normal(size=(25, 2))
TWO = np.where(np.sin(2 * X[:, 0]) + 0.5 * RNG.normal(size=60) > 0, "yes", "no")
THREE = np.digitize(X[:, 0] + 0.3 * RNG.normal(size=60), [-0.5, 0.5])
GIVEN = ConstantKernel(1.0) * RBF([1.0, 1.0])


def test_two_classes_as_scikit_learn():
    mine, theirs = GaussianProcessClassifier(GIVEN).fit(X, TWO), Peer(GIVEN).fit(X, TWO)
    assert mine.certificate_.kind == "stationarity" and mine.certificate_.holds
    assert mine.log_marginal_likelihood_value_ >= theirs.log_marginal_likelihood_value_ - 1e-6
    # scikit-learn averages the sigmoid by five probits, good to three digits.
    np.testing.assert_allclose(mine.predict_proba(Q), theirs.predict_proba(Q), atol=2e-3)
    np.testing.assert_array_equal(mine.predict(Q), theirs.predict(Q))


@pytest.mark.threaded
def test_the_process_behind_two_classes_is_scikit_learns():
    mine, theirs = (kind(GIVEN, optimizer=None).fit(X, TWO) for kind in (GaussianProcessClassifier, Peer))
    for a, b in zip(mine.latent_mean_and_variance(Q), theirs.latent_mean_and_variance(Q), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5)
    with pytest.raises(ValueError, match="only supported for binary"):
        GaussianProcessClassifier(GIVEN, optimizer=None).fit(X, THREE).latent_mean_and_variance(Q)


def test_three_classes_as_scikit_learn():
    mine = GaussianProcessClassifier(GIVEN, optimizer=None).fit(X, THREE)
    theirs = Peer(GIVEN, optimizer=None).fit(X, THREE)
    np.testing.assert_allclose(mine.predict_proba(Q), theirs.predict_proba(Q), atol=2e-3)
    learned = GaussianProcessClassifier(GIVEN).fit(X, THREE)
    assert learned.certificate_.holds and len(learned.kernel_) == 3
    np.testing.assert_allclose(learned.predict_proba(Q).sum(axis=1), 1.0)
    assert learned.kernel_.theta.shape == (9,) and learned.kernel_.bounds.shape == (9, 2)


@pytest.mark.threaded
def test_the_likelihood_of_three_classes_is_the_mean_of_three_processes():
    mine = GaussianProcessClassifier(GIVEN, optimizer=None).fit(X, THREE)
    theirs = Peer(GIVEN, optimizer=None).fit(X, THREE)
    for theta in (np.array([0.5, -0.2, 0.3]), np.linspace(-0.5, 0.5, 9)):
        assert mine.log_marginal_likelihood(theta) == pytest.approx(theirs.log_marginal_likelihood(theta), abs=1e-6)
    with pytest.raises(ValueError, match="Shape of theta must be either 3 or 9"):
        mine.log_marginal_likelihood(np.zeros(4))
    with pytest.raises(NotImplementedError, match="multi-class"):
        mine.log_marginal_likelihood(np.zeros(3), eval_gradient=True)


def test_likelihood_and_gradient_at_other_hyperparameters():
    model = GaussianProcessClassifier(GIVEN, optimizer=None).fit(X, TWO)
    theirs = Peer(GIVEN, optimizer=None).fit(X, TWO)
    theta = np.array([0.5, -0.2, 0.3])
    value, gradient = model.log_marginal_likelihood(theta, eval_gradient=True)
    expected = theirs.log_marginal_likelihood(theta, eval_gradient=True)
    assert value == pytest.approx(expected[0], abs=1e-6)
    np.testing.assert_allclose(gradient, expected[1], atol=1e-4)
    assert model.log_marginal_likelihood() == model.log_marginal_likelihood_value_


def test_far_from_the_rows_nothing_is_known():
    model = GaussianProcessClassifier(4.0 * Gaussian(1.0), optimizer=None).fit(X, TWO)
    np.testing.assert_allclose(model.predict_proba([[100.0, 100.0]]), 0.5, atol=1e-9)
    mean, variance = model.latent([[100.0, 100.0]])
    assert mean[0] == pytest.approx(0.0) and variance[0] == pytest.approx(4.0)
    np.testing.assert_allclose(model.function_(Q), model.latent(Q)[0], atol=1e-10)


def test_swapping_the_labels_swaps_the_probabilities():
    model = GaussianProcessClassifier(optimizer=None)
    one = model.fit(X, TWO == "yes").predict_proba(Q)
    other = model.fit(X, TWO == "no").predict_proba(Q)
    np.testing.assert_allclose(one, other[:, ::-1], atol=1e-9)


@pytest.mark.threaded
def test_probabilities_of_the_true_process_are_calibrated():
    told, came = [], []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        x = rng.uniform(0, 6, (60, 1))
        kernel = 4.0 * Gaussian(1.0)
        f = np.linalg.cholesky(kernel(x) + 1e-8 * np.eye(60)) @ rng.normal(size=60)
        y = rng.uniform(size=60) < 1.0 / (1.0 + np.exp(-f))
        if 0 < y[:40].sum() < 40:
            model = GaussianProcessClassifier(kernel, optimizer=None).fit(x[:40], y[:40])
            told.append(model.predict_proba(x[40:])[:, 1])
            came.append(y[40:])
    told, came = np.concatenate(told), np.concatenate(came)
    for low, high in ((0.0, 0.25), (0.25, 0.5), (0.5, 0.75), (0.75, 1.0)):
        inside = (told >= low) & (told < high)
        assert abs(told[inside].mean() - came[inside].mean()) < 0.08


def test_warm_starts_begin_where_the_last_fit_ended():
    model = GaussianProcessClassifier(GIVEN, warm_start=True).fit(X, TWO)
    first, theta = model.n_iter_, model.kernel_.theta
    model.fit(X, TWO)
    assert model.n_iter_ < first
    np.testing.assert_allclose(model.kernel_.theta, theta, atol=1e-2)


@pytest.mark.threaded
def test_any_number_of_threads_gives_the_same_bits():
    many = np.random.default_rng(5).normal(size=(9000, 2))
    found = [GaussianProcessClassifier(optimizer=None, n_jobs=jobs).fit(X, TWO).predict_proba(many) for jobs in (1, 2)]
    np.testing.assert_array_equal(*found)


def test_errors_teach():
    with pytest.raises(DataError, match="class"):
        GaussianProcessClassifier().fit(X, np.zeros(60))
    with pytest.raises(ParameterError, match="multi_class must be"):
        GaussianProcessClassifier(multi_class="one_vs_two").fit(X, TWO)
    with pytest.raises(DataError, match="squares overflow"):
        GaussianProcessClassifier().fit(1e200 * X, TWO)
    with pytest.raises(DataError, match="not positive semidefinite"):
        GaussianProcessClassifier(lambda A, B: -100.0 * A @ B.T, optimizer=None).fit(X, TWO)


def test_a_file_keeps_everything(tmp_path):
    model = GaussianProcessClassifier(Gaussian(1.0)).fit(X, THREE)
    ln.save(model, tmp_path / "gp.safetensors")
    again = ln.load(tmp_path / "gp.safetensors")
    np.testing.assert_array_equal(again.predict_proba(Q), model.predict_proba(Q))
    model.f_ = model.f_[:1]
    with pytest.raises(ModelFileError, match="f_"):
        ln.save(model, tmp_path / "bad.safetensors")
