"""Several classes: pairs as in scikit-learn, the joint softmax, both with their limits."""

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessClassifier as Peer
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from tests.kernel.traced import matrices, once

import learnable as ln
from learnable import GaussianProcessClassifier
from learnable.core.errors import DataError, ModelFileError, ParameterError
from learnable.kernel.gp.classifier import row_slices
from learnable.risk.kernels import Gaussian, Matern, White

RNG = np.random.default_rng(0)
X, Q = RNG.normal(size=(60, 2)), RNG.normal(size=(200, 2))
THREE = np.array(["a", "b", "c"])[np.digitize(X[:, 0] + 0.3 * RNG.normal(size=60), [-0.5, 0.5])]
GIVEN = ConstantKernel(1.0) * RBF([1.0, 1.0])
OURS = 1.0 * Gaussian([1.0, 1.0])


def test_pairs_as_scikit_learn():
    mine, theirs = (
        model(GIVEN, multi_class="one_vs_one", optimizer=None).fit(X, THREE)
        for model in (GaussianProcessClassifier, Peer)
    )
    np.testing.assert_array_equal(mine.predict(Q), theirs.predict(Q))
    assert mine.log_marginal_likelihood_value_ == pytest.approx(theirs.log_marginal_likelihood_value_, abs=1e-6)
    learned = GaussianProcessClassifier(GIVEN, multi_class="one_vs_one").fit(X, THREE)
    peer = Peer(GIVEN, multi_class="one_vs_one").fit(X, THREE)
    assert learned.certificate_.holds and len(learned.kernel_) == 3
    assert learned.log_marginal_likelihood_value_ >= peer.log_marginal_likelihood_value_ - 1e-6
    assert np.mean(learned.predict(Q) == peer.predict(Q)) > 0.97
    for ask in (learned.predict_proba, learned.latent):
        with pytest.raises(ParameterError, match="one_vs_one"):
            ask(Q)


@pytest.mark.threaded
@pytest.mark.parametrize("way", ["one_vs_one", "softmax"])
def test_two_classes_are_one_process_whatever_the_way(way):
    two = THREE == "b"
    plain, other = (GaussianProcessClassifier(OURS, multi_class=m).fit(X, two) for m in ("one_vs_rest", way))
    np.testing.assert_array_equal(plain.predict_proba(Q), other.predict_proba(Q))


def test_the_softmax_learns_one_kernel_for_all_classes():
    model = GaussianProcessClassifier(OURS, multi_class="softmax").fit(X, THREE)
    assert model.certificate_.kind == "stationarity" and model.certificate_.holds
    value, gradient = model.log_marginal_likelihood(model.kernel_.theta, eval_gradient=True)
    assert value == pytest.approx(model.log_marginal_likelihood_value_, abs=1e-8)
    assert np.abs(gradient).max() <= 1e-6 * len(X)
    for e in 0.1 * np.eye(3):
        assert model.log_marginal_likelihood(model.kernel_.theta + e) < value
    proba = model.predict_proba(Q)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    rest = GaussianProcessClassifier(OURS).fit(X, THREE).predict_proba(Q)
    assert np.abs(proba - rest).mean() < 0.1
    mean, variance = model.latent([[100.0, 100.0]])
    np.testing.assert_allclose(mean, 0.0, atol=1e-9)
    np.testing.assert_allclose(variance, model.kernel_.diagonal(X[:1])[0])
    np.testing.assert_allclose(model.predict_proba([[100.0, 100.0]]), 1 / 3, atol=3e-3)


def test_renaming_classes_renames_the_probabilities():
    order = [2, 0, 1]
    y = np.searchsorted(["a", "b", "c"], THREE)
    one, other = (
        GaussianProcessClassifier(OURS, multi_class="softmax", optimizer=None).fit(X, labels)
        for labels in (y, np.array(order)[y])
    )
    np.testing.assert_allclose(one.latent(Q)[0], other.latent(Q)[0][:, order], atol=1e-9)
    np.testing.assert_allclose(one.predict_proba(Q), other.predict_proba(Q)[:, order], atol=5e-3)


@pytest.mark.threaded
def test_probabilities_of_the_true_processes_are_calibrated():
    told, came = [], []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        x = rng.uniform(0, 6, (70, 1))
        kernel = 4.0 * Gaussian(1.0)
        f = np.linalg.cholesky(kernel(x) + 1e-8 * np.eye(70)) @ rng.normal(size=(70, 3))
        y = np.argmax(f + rng.gumbel(size=f.shape), axis=1)  # a draw from the softmax
        if len(np.unique(y[:45])) == 3:
            model = GaussianProcessClassifier(kernel, multi_class="softmax", optimizer=None).fit(x[:45], y[:45])
            told.append(model.predict_proba(x[45:]))
            came.append(y[45:, None] == np.arange(3))
    told, came = np.concatenate(told).ravel(), np.concatenate(came).ravel()
    for low, high in ((0.0, 0.25), (0.25, 0.5), (0.5, 0.75), (0.75, 1.0)):
        inside = (told >= low) & (told < high)
        assert abs(told[inside].mean() - came[inside].mean()) < 0.08


@pytest.mark.threaded
@pytest.mark.parametrize("way", ["one_vs_one", "softmax"])
def test_files_threads_and_warm_starts(tmp_path, way):
    model = GaussianProcessClassifier(OURS, multi_class=way, warm_start=True).fit(X, THREE)
    ln.save(model, tmp_path / "gp.safetensors")
    again = ln.load(tmp_path / "gp.safetensors")
    many = np.random.default_rng(5).normal(size=(3000, 2))
    np.testing.assert_array_equal(again.predict(many), model.set_params(n_jobs=1).predict(many))
    first = model.n_iter_
    assert model.fit(X, THREE).n_iter_ < first
    if way == "softmax":
        model.M_ = -model.M_
    else:
        model.estimators_ = model.estimators_[:2]
    with pytest.raises(ModelFileError):
        ln.save(model, tmp_path / "bad.safetensors")


@pytest.mark.parametrize("way", ["one_vs_rest", "one_vs_one", "softmax"])
def test_a_kernel_that_is_none_is_refused(way):
    with pytest.raises(DataError, match="not positive semidefinite"):
        GaussianProcessClassifier(lambda A, B: -100.0 * A @ B.T, optimizer=None, multi_class=way).fit(X, THREE)


def test_a_callable_optimizer_is_that_of_scikit_learn():
    def optimizer(function, theta, bounds):
        value, gradient = function(theta)
        assert gradient.shape == theta.shape and function(theta, eval_gradient=False) == pytest.approx(value)
        return theta + 0.25, value

    model = GaussianProcessClassifier(OURS + White(0.1), optimizer=optimizer, multi_class="softmax", tol=1.0)
    np.testing.assert_allclose(model.fit(X, THREE).kernel_.theta, (OURS + White(0.1)).theta + 0.25)


def test_slices_cover_all_rows_once():
    covered = np.concatenate([np.arange(5000)[rows] for rows in row_slices(5000, 700)])
    np.testing.assert_array_equal(covered, np.arange(5000))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("kernel", "C", "stated"),
    [(OURS, 2, 8), (1.0 * Matern(1.0, 2.5), 2, 12), (1.0 * Matern(1.0, 2.5), 3, 19), (OURS, 5, 25)],
)
def test_memory_is_what_the_docstring_states(kernel, C, stated):
    many = RNG.normal(size=(400 if C > 2 else 660, 2))
    labels = (many[:, 0].argsort().argsort() * C) // len(many)
    model = GaussianProcessClassifier(kernel, optimizer=once, multi_class="softmax")
    assert 0.5 * stated < matrices(model, many, labels) <= stated
