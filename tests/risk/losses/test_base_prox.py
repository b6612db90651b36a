"""Proximal operators of losses: the optimality condition holds, for one step and for a step per row."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from learnable.core.errors import ParameterError
from learnable.risk import losses

REAL = [
    losses.SquaredLoss(),
    losses.AbsoluteLoss(),
    losses.HuberLoss(0.7),
    losses.EpsilonInsensitiveLoss(0.3),
    losses.SquaredEpsilonInsensitiveLoss(0.3),
    losses.QuantileLoss(0.8),
    losses.DevianceLoss(0.0, "identity"),
]
COUNTS = [losses.PoissonLoss(), losses.DevianceLoss(1.0), losses.DevianceLoss(1.5)]
POSITIVE = [losses.GammaLoss(), losses.DevianceLoss(2.0)]
SIGNS = [
    losses.LogisticLoss(),
    losses.HingeLoss(),
    losses.SquaredHingeLoss(),
    losses.ExponentialLoss(),
    losses.PerceptronLoss(),
]


def targets(loss, rng, n):
    if loss in SIGNS:
        return np.where(rng.random(n) < 0.5, -1.0, 1.0)
    if loss in COUNTS:
        return rng.poisson(1.5, n).astype(float)
    return rng.gamma(2.0, 1.0, n) if loss in POSITIVE else rng.normal(size=n)


@pytest.mark.parametrize("loss", [*REAL, *COUNTS, *POSITIVE, *SIGNS], ids=str)
@given(seed=st.integers(0, 10**6), size=st.sampled_from([0.1, 3.0, 30.0]))
@settings(max_examples=10, deadline=None, derandomize=True)
def test_the_step_leads_along_a_subgradient(loss, seed, size):
    """u = (z − v)/step is a subgradient at v: V(v) + V*(u) = uv, the equality of Fenchel and Young."""
    rng = np.random.default_rng(seed)
    y, z, step = targets(loss, rng, 8), size * rng.normal(size=8), rng.gamma(1.0, 1.0, 8) + 0.05
    v = loss.prox(y, z, step)
    u = (z - v) / step
    slack = 1e-12 * (np.abs(z) + np.abs(v)) / step
    u = np.where(np.isfinite(loss.conjugate(y, u)), u, u - np.sign(u) * slack)  # rounding at the end of the domain
    u = np.where(np.isfinite(loss.conjugate(y, u)), u, np.where(np.abs(u) <= slack, 0.0, u))
    gap = loss.value(y, v) + loss.conjugate(y, u) - u * v
    scale = 1.0 + np.abs(loss.value(y, v)) + np.abs(u * v)
    assert (np.abs(gap) <= 1e-8 * scale).all()
    np.testing.assert_allclose(loss.prox(y, z, 0.7), loss.prox(y, z, np.full(8, 0.7)))


@pytest.mark.parametrize("loss", [losses.SoftmaxLoss(), losses.MulticlassHingeLoss()], ids=str)
@pytest.mark.parametrize("size", [0.1, 3.0, 100.0])
def test_rows_of_scores(loss, size):
    rng = np.random.default_rng(0)
    y, z, step = rng.integers(0, 4, 20), size * rng.normal(size=(20, 4)), rng.gamma(1.0, 1.0, 20) + 0.05
    v = loss.prox(y, z, step)
    p = (z - v) / step[:, None]
    p[np.arange(20), y] += 1.0  # in the simplex
    assert p.min() >= -1e-9 and np.abs(p.sum(axis=1) - 1.0).max() <= 1e-9
    p = np.maximum(p, 0.0) / np.maximum(p, 0.0).sum(axis=1, keepdims=True)
    u = p.copy()
    u[np.arange(20), y] = 0.0
    u[np.arange(20), y] = -u.sum(axis=1)
    gap = loss.value(y, v) + loss.conjugate(y, u) - (u * v).sum(axis=1)
    assert np.abs(gap).max() <= 1e-7 * (1.0 + size)


def test_a_deviance_that_is_not_convex_has_none():
    with pytest.raises(ParameterError, match="not convex"):
        losses.DevianceLoss(3.0).prox(np.ones(1), np.zeros(1), 1.0)
