"""Covering and packing numbers against brute force and known formulas; Dudley's integral against the truth."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from learnable.core.errors import DataError, ParameterError
from learnable.theory import covering, rademacher


def distances(points, metric="l2"):
    gap = np.abs(points[:, None] - points[None])
    if metric == "sup":
        return gap.max(axis=2)
    return gap.mean(axis=2) if metric == "l1" else np.sqrt((gap**2).mean(axis=2))


def brute_cover(points, eps, metric):
    """The least number of balls around members."""
    d = distances(points, metric)
    for size in range(1, len(points) + 1):
        for chosen in itertools.combinations(range(len(points)), size):
            if (d[list(chosen)].min(axis=0) <= eps).all():
                return size
    raise AssertionError


def brute_pack(points, eps, metric):
    d = distances(points, metric)
    for size in range(len(points), 0, -1):
        for chosen in itertools.combinations(range(len(points)), size):
            part = d[np.ix_(chosen, chosen)]
            if (part[~np.eye(size, dtype=bool)] > eps).all():
                return size
    return 1


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), eps=st.floats(0.05, 1.5), metric=st.sampled_from(["sup", "l1", "l2"]))
def test_greedy_covers_lie_between_cover_and_packing(seed, eps, metric):
    points = np.random.default_rng(seed).normal(size=(8, 3))
    cover = covering.cover_sample(points, eps, metric)
    least, most = brute_cover(points, eps, metric), brute_pack(points, eps, metric)
    assert cover.low <= least <= cover.high <= most
    assert most <= brute_cover(points, eps / 2, metric)  # P(ε) ≤ N(ε/2)
    assert brute_pack(points, 2 * eps, metric) <= least
    nearest = distances(points, metric)[cover.centres.astype(int)].min(axis=0)
    assert (nearest <= eps).all()


@pytest.mark.parametrize("eps", [0.11, 0.25, 0.5, 0.9])
def test_line_and_cube_have_their_known_numbers(eps):
    cells = math.ceil(1.0 / eps)
    assert math.exp(covering.ball_covering(eps, 1.0, 1).high) == pytest.approx(cells)
    assert math.exp(covering.ball_covering(eps, 1.0, 3, norm="sup").low) == pytest.approx(cells**3)
    # Centres of the cells cover the line.
    centres = -1.0 + (2 * np.arange(cells) + 1) / cells
    line = np.linspace(-1.0, 1.0, 2001)
    assert np.abs(line[:, None] - centres).min(axis=1).max() <= eps + 1e-9
    # A grid a little wider than ε is packed.
    packed = round(math.exp(covering.ball_packing(eps, 1.0, 1).high))
    grid = np.linspace(-1.0, 1.0, packed)
    assert packed == 1 or grid[1] - grid[0] > eps


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("eps", [0.2, 0.5])
def test_covering_below_packing_below_finer_covering(d, eps):
    n, p, finer = (
        covering.ball_covering(eps, 1.0, d),
        covering.ball_packing(eps, 1.0, d),
        covering.ball_covering(eps / 2, 1.0, d),
    )
    assert n.low <= p.high + 1e-9
    assert p.low <= finer.high
    assert n.high <= d * math.log(3.0 / eps) + 1e-9


def test_bounds_of_a_disc_hold_for_greedy_covers():
    rng = np.random.default_rng(0)
    disc = rng.uniform(-1, 1, (6000, 2))
    disc = disc[(disc**2).sum(axis=1) <= 1.0]
    for eps in (0.3, 0.6):
        cover = covering.cover_sample(math.sqrt(2.0) * disc, eps)  # the empirical metric divides by √2
        bounds = covering.ball_packing(eps, 1.0, 2)
        assert cover.high <= math.exp(bounds.high)
        assert cover.high >= math.exp(covering.ball_covering(eps, 1.0, 2).low)


def test_ellipsoids_are_balls_when_their_axes_are_equal_and_bounds_hold_on_samples():
    ball = covering.ball_covering(0.3, 1.0, 4)
    same = covering.ellipsoid_covering(0.3, np.ones(4))
    assert same.low == pytest.approx(ball.low)
    assert same.high >= ball.low
    rng = np.random.default_rng(1)
    axes = np.array([1.0, 0.5, 0.1])
    direction = rng.normal(size=(20_000, 3))
    points = axes * direction / np.linalg.norm(direction, axis=1, keepdims=True) * rng.random((20_000, 1)) ** (1 / 3)
    for eps in (0.15, 0.3, 0.6):
        bounds = covering.ellipsoid_covering(eps, axes)
        cover = covering.cover_sample(math.sqrt(3.0) * points, eps)
        assert math.exp(bounds.low) <= 1.1 * cover.high  # the sample leaves gaps
        assert cover.low <= math.exp(bounds.high)
    assert covering.ellipsoid_covering(0.2, []) == (0.0, 0.0)


def test_dudley_is_above_the_average_of_a_finite_class_and_of_a_kernel_ball():
    rng = np.random.default_rng(2)
    values = rng.choice([-1.0, 1.0], size=(40, 200))
    truth = rademacher.simulate(rademacher.finite_maximiser(values), 200)
    assert covering.dudley_of_sample(values).bound >= truth.value
    X = rng.normal(size=(400, 3)) * [1.0, 0.3, 0.1]
    K = X @ X.T
    eigenvalues = np.linalg.eigvalsh(X.T @ X / 400)
    truth = rademacher.simulate(rademacher.kernel_ball_maximiser(K), 400)
    integral = covering.dudley_integral(
        lambda eps: covering.kernel_ball_covering(eps, 1.0, eigenvalues).high, math.sqrt(eigenvalues.max()), 400
    )
    assert truth.value <= integral.bound <= math.sqrt(eigenvalues.max())


def test_dudley_has_the_rate_of_a_parametric_class():
    bounds = [
        covering.dudley_integral(lambda eps: covering.ball_covering(eps, 1.0, 2).high, 1.0, n).bound
        for n in (10**4, 10**6)
    ]
    assert bounds[0] / bounds[1] == pytest.approx(10.0, rel=0.05)


def test_bad_arguments_are_refused():
    with pytest.raises(ParameterError):
        covering.ball_covering(-1.0, 1.0, 2)
    with pytest.raises(ParameterError):
        covering.cover_sample([[1.0]], 0.1, metric="l3")
    with pytest.raises(DataError):
        covering.cover_sample([1.0, 2.0], 0.1)
    with pytest.raises(DataError):
        covering.ellipsoid_covering(0.1, [-1.0])
