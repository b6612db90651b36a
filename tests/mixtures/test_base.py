"""What every mixture does with its joint density."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from learnable import GaussianMixture, MixtureModel, VariationalGaussianMixture
from learnable.mixtures.base import precisions_of

X = np.random.default_rng(0).normal(size=(60, 2)) + np.repeat([[0.0], [6.0]], 30, axis=0)


@pytest.mark.parametrize(
    "cls", [GaussianMixture, VariationalGaussianMixture, lambda K, **s: MixtureModel("Normal", K, **s)]
)
def test_assignments_and_densities_agree(cls):
    model = cls(2, random_state=0)
    assert model.fit_predict(X).tolist() == model.predict(X).tolist()
    proba = model.predict_proba(X)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    assert proba.argmax(axis=1).tolist() == model.predict(X).tolist()
    assert model.score(X) == pytest.approx(model.score_samples(X).mean())


@pytest.mark.parametrize("model", [MixtureModel(), MixtureModel(solver="lbfgs"), VariationalGaussianMixture()])
def test_time_that_is_up_leaves_the_best_so_far(model):
    model.set_params(n_components=2, max_seconds=1e-9, tol=0.0, random_state=0)
    with pytest.warns(ConvergenceWarning, match="above the tolerance"):
        model.fit(X)
    assert not model.converged_ and np.isfinite(model.score(X))


def test_criteria_count_parameters():
    model = GaussianMixture(2, random_state=0).fit(X)
    likelihood = model.score_samples(X).sum()
    assert model.aic(X) == pytest.approx(2 * 11 - 2 * likelihood)
    assert model.bic(X) == pytest.approx(11 * np.log(60) - 2 * likelihood)
    assert not hasattr(VariationalGaussianMixture(), "bic")  # its bound already weighs the parameters


@pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical"])
def test_precisions(kind):
    cov = np.array([[2.0, 0.5], [0.5, 1.0]])
    covariances = {
        "full": np.stack([cov, 2 * cov]),
        "tied": cov,
        "diag": np.diag(cov)[None],
        "spherical": np.array([3.0]),
    }
    precisions, upper = precisions_of("Test", kind, covariances[kind])
    if kind in ("full", "tied"):
        np.testing.assert_allclose(
            precisions @ covariances[kind], np.broadcast_to(np.eye(2), precisions.shape), atol=1e-12
        )
        np.testing.assert_allclose(upper, np.triu(upper))
    else:
        np.testing.assert_allclose(upper**2 * covariances[kind], 1.0)
