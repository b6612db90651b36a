"""The two steps of variational mixtures: divergences by other means, and a posterior that is a maximum."""

import numpy as np
import pytest

from learnable.data.blocks import Part
from learnable.mixtures.normals import Density, normalise
from learnable.mixtures.variational import Hyperparameters, Posterior, VariationalMixture, wishart_divergence
from learnable.probability import Dirichlet, Gamma, Wishart

KINDS = ["full", "tied", "diag", "spherical"]
SCALES = {"full": np.eye(2), "tied": np.eye(2), "diag": np.ones(2), "spherical": np.asarray(1.5)}


def problem_of(kind, process, K=2):
    prior = Hyperparameters(process, 0.7, 0.5, np.array([0.1, 0.2]), 3.0, SCALES[kind])
    X = np.random.default_rng(0).normal(size=(40, 2)) + np.repeat([[0.0], [3.0]], 20, axis=0)
    problem, matrix = VariationalMixture(kind, K, 2, prior), kind in ("full", "tied")
    start = problem.maximisation(
        (np.array([20.0, 20.0]), np.zeros((2, 2)), np.stack([20 * (np.eye(2) if matrix else np.ones(2))] * 2)),
        Posterior(np.empty(0), np.array([[0.0, 0.0], [3.0, 3.0]]), np.empty(0)),
    )
    return problem, X, start


def test_divergences_are_those_of_the_distributions():
    V, V0 = np.array([[2.0, 0.3], [0.3, 1.0]]), np.array([[1.0, -0.2], [-0.2, 0.5]])
    ratio = np.linalg.inv(V0) @ V  # Ψ₀Ψ⁻¹
    found = wishart_divergence(np.array(7.5), 4.0, np.linalg.slogdet(ratio)[1], np.trace(ratio), 2)
    assert found == pytest.approx(Wishart(7.5, V).kl(Wishart(4.0, V0)), rel=1e-10)
    one = wishart_divergence(np.array(6.0), 3.0, np.log(0.4), 0.4, 1)
    assert one == pytest.approx(Gamma(3.0, 2.5).kl(Gamma(1.5, 1.0)), rel=1e-10)
    problem, _, posterior = problem_of("full", False)
    alpha = 0.7 + posterior.counts
    assert problem._weight_divergence(posterior) == pytest.approx(Dirichlet(alpha).kl(Dirichlet([0.7, 0.7])), rel=1e-10)
    np.testing.assert_allclose(problem.log_weights(posterior), Dirichlet(alpha).mean_statistic, rtol=1e-12)


@pytest.mark.parametrize("process", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_the_m_step_is_the_best_posterior(kind, process):
    problem, X, posterior = problem_of(kind, process)
    statistics, _ = problem.expectation(Part(X), posterior)
    best = problem.maximisation(statistics, posterior)

    def bound(q):  # with the responsibilities held: Σ N E[log ρ] by linearity in the sums of x and xxᵀ
        rho = problem.surrogate(q)
        r = normalise(Density(kind, problem.surrogate(posterior)).log_joint(np.ascontiguousarray(X.T)))[1]
        return float((r * Density(kind, rho).log_joint(np.ascontiguousarray(X.T))).sum()) + problem.log_prior(q)

    top, rng = bound(best), np.random.default_rng(0)
    for _ in range(6):
        near = best._replace(means=best.means + 0.02 * rng.normal(size=best.means.shape))
        assert bound(near) < top
        near = best._replace(covariances=best.covariances * np.exp(0.05 * rng.normal()))
        assert bound(near) < top
        near = best._replace(counts=best.counts * np.exp(0.05 * rng.normal(size=2)))
        assert bound(near) < top


def test_sticks_are_what_is_left():
    problem, _, posterior = problem_of("full", True)
    a, b = problem.sticks(posterior._replace(counts=np.array([5.0, 3.0])))
    assert a.tolist() == [6.0, 4.0] and b == pytest.approx([3.7, 0.7])
