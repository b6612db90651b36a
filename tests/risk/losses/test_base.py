"""Laws that every loss of a scalar score obeys: calculus, convexity, duality, constants, extreme scores."""

import subprocess
import sys
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from learnable.risk.losses import (
    AbsoluteLoss,
    DevianceLoss,
    EpsilonInsensitiveLoss,
    ExponentialLoss,
    GammaLoss,
    HingeLoss,
    HuberLoss,
    LogisticLoss,
    PerceptronLoss,
    PoissonLoss,
    QuantileLoss,
    SquaredEpsilonInsensitiveLoss,
    SquaredHingeLoss,
    SquaredLoss,
)

SIGNS = (-1.0, 1.0)
REALS = (-1.25, 0.0, 2.5)
COUNTS = (0.0, 1.0, 7.0)
POSITIVE = (0.5, 1.0, 7.0)
DEVIANCES = (PoissonLoss, GammaLoss)
ON_REALS = (
    SquaredLoss(),
    AbsoluteLoss(),
    HuberLoss(0.75),
    EpsilonInsensitiveLoss(0.25),
    SquaredEpsilonInsensitiveLoss(0.25),
    QuantileLoss(0.75),
)
ON_SIGNS = (LogisticLoss(), HingeLoss(), SquaredHingeLoss(), ExponentialLoss(), PerceptronLoss())
CASES = [
    *((loss, y) for loss in ON_REALS for y in REALS),
    *((loss, y) for loss in ON_SIGNS for y in SIGNS),
    *((PoissonLoss(), y) for y in COUNTS),
    *((GammaLoss(), y) for y in POSITIVE),
    *((DevianceLoss(power), y) for power in (1.0, 1.4) for y in COUNTS),
    *((DevianceLoss(2.0), y) for y in POSITIVE),
]
WITH_CURVATURE = [(loss, y) for loss, y in CASES if hasattr(loss, "curvature")]
EXTREME = np.array([0.0, 5e-324, 1e-300, 1e-9, 1.0, 700.0, 710.0, 1e5, 1e16, 1e154, 1e300])
EXTREME = np.concatenate([-EXTREME, EXTREME])
GRID = np.linspace(-4.0, 4.0, 201)


def name(case):
    return f"{type(case).__name__}" if not isinstance(case, float) else f"{case:g}"


def kinks(loss, y):
    """Scores at which the value or the gradient has a kink."""
    match loss:
        case AbsoluteLoss() | QuantileLoss():
            return np.array([y])
        case HuberLoss():
            return np.array([y - loss.delta, y + loss.delta])
        case EpsilonInsensitiveLoss() | SquaredEpsilonInsensitiveLoss():
            return np.array([y - loss.epsilon, y + loss.epsilon])
        case HingeLoss() | SquaredHingeLoss():
            return np.array([y])
        case PerceptronLoss():
            return np.array([0.0])
    return np.array([])


def away_from_kinks(loss, y, z, distance):
    return z[np.all(np.abs(z[:, None] - kinks(loss, y)) > distance, axis=1)]


def dual_domain(loss, y):
    """The interval of u on which the conjugate is finite."""
    match loss:
        case AbsoluteLoss() | EpsilonInsensitiveLoss():
            return -1.0, 1.0
        case HuberLoss():
            return -loss.delta, loss.delta
        case LogisticLoss() | HingeLoss() | PerceptronLoss():
            return min(-y, 0.0), max(-y, 0.0)
        case SquaredHingeLoss() | ExponentialLoss():
            return (-np.inf, 0.0) if y > 0 else (0.0, np.inf)
        case PoissonLoss() | DevianceLoss(power=1.0):
            return -y, np.inf
        case QuantileLoss():
            return -loss.level, 1.0 - loss.level
        case GammaLoss() | DevianceLoss(power=2.0):
            return -np.inf, 1.0
        case DevianceLoss():
            return (-np.inf if y > 0 else 0.0), np.inf
    return -np.inf, np.inf


def interior_duals(loss, y):
    low, high = dual_domain(loss, y)
    low, high = max(low, -6.0), min(high, 6.0)
    return low + (high - low) * np.array([0.03, 0.2, 0.5, 0.77, 0.95])


@pytest.mark.parametrize("loss, y", CASES, ids=name)
def test_gradient_is_the_derivative_of_the_value(loss, y):
    h = 1e-5
    z = away_from_kinks(loss, y, GRID, 2 * h)
    slope = (loss.value(y, z + h) - loss.value(y, z - h)) / (2 * h)
    # Central differences: h²·V'''/6 and ε·V/h are both near 1e-9 here.
    np.testing.assert_allclose(loss.gradient(y, z), slope, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("loss, y", WITH_CURVATURE, ids=name)
def test_curvature_is_the_derivative_of_the_gradient(loss, y):
    h = 1e-5
    z = away_from_kinks(loss, y, GRID, 2 * h)
    slope = (loss.gradient(y, z + h) - loss.gradient(y, z - h)) / (2 * h)
    np.testing.assert_allclose(loss.curvature(y, z), slope, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("loss, y", WITH_CURVATURE, ids=name)
def test_curvature_at_a_kink_of_the_gradient_is_one_of_the_two_sides(loss, y):
    h = 1e-6
    for z in kinks(loss, y):
        assert loss.curvature(y, z) in (loss.curvature(y, z - h), loss.curvature(y, z + h))


@pytest.mark.parametrize("loss, y", CASES, ids=name)
def test_gradient_is_a_subgradient_everywhere_kinks_included(loss, y):
    a = np.concatenate([kinks(loss, y), GRID[::10]])[:, None]
    b = np.concatenate([kinks(loss, y), GRID])
    tangent = loss.value(y, a) + loss.gradient(y, a) * (b - a)
    assert np.all(loss.value(y, b) >= tangent - 1e-13 * (1 + np.abs(tangent)))


@given(data=st.data(), z=st.floats(-30, 30), u=st.floats(-4, 4))
@pytest.mark.parametrize("loss", [*ON_REALS, *ON_SIGNS, PoissonLoss(), GammaLoss()], ids=name)
def test_fenchel_young(loss, data, z, u):
    if loss in ON_SIGNS:
        y = data.draw(st.sampled_from(SIGNS))
    else:
        low = 0.0 if isinstance(loss, PoissonLoss) else 1e-3 if isinstance(loss, GammaLoss) else -20.0
        y = data.draw(st.floats(low, 20.0))
    y, z, u = np.float64(y), np.float64(z), np.float64(u)
    value = loss.value(y, z)
    assert value + loss.conjugate(y, u) >= u * z - 1e-13 * (1 + abs(u * z) + abs(value))
    g = loss.gradient(y, z)
    dual = loss.conjugate(y, g)
    scale = 1 + abs(g * z) + abs(value) + abs(dual) + abs(g * y)
    assert abs(value + dual - g * z) <= 1e-13 * scale


@pytest.mark.sampled(6)
@pytest.mark.parametrize("loss, y", CASES, ids=name)
def test_conjugate_is_the_supremum(loss, y):
    u = interior_duals(loss, y)
    z = np.concatenate([np.linspace(-50.0, 50.0, 100_001), kinks(loss, y)])
    supremum = np.max(u[:, None] * z - loss.value(y, z), axis=1)
    # The grid misses the maximiser by at most 5e-4, where the curvature is at most 13: at most 2e-6 too low.
    gap = loss.conjugate(y, u) - supremum
    assert np.all(gap >= -1e-12)
    assert np.all(gap <= 2e-6)


@pytest.mark.parametrize("loss, y", CASES, ids=name)
def test_conjugate_is_exact_at_the_ends_of_its_domain_and_infinite_beyond(loss, y):
    z = np.concatenate([np.linspace(-60.0, 60.0, 1201), kinks(loss, y)])
    for end, outwards in zip(dual_domain(loss, y), (-np.inf, np.inf), strict=True):
        if np.isinf(end):
            continue
        # At an end the supremum is attained, or approached exponentially fast.
        np.testing.assert_allclose(loss.conjugate(y, end), np.max(end * z - loss.value(y, z)), atol=1e-13)
        assert loss.conjugate(y, np.nextafter(end, outwards)) == np.inf
        slope_beyond = end + np.sign(outwards) * 0.5
        rise = [np.max(slope_beyond * r * z - loss.value(y, r * z)) for r in (1.0, 2.0)]
        assert rise[1] - rise[0] > 25.0  # the supremum grows with the range of z, so it is infinite


@pytest.mark.parametrize("loss, y", CASES, ids=name)
def test_lipschitz_constant_bounds_the_slope_and_is_attained(loss, y):
    z = np.concatenate([np.linspace(-60.0, 60.0, 1201), kinks(loss, y)])
    if np.isinf(loss.lipschitz):
        assert np.max(np.abs(loss.gradient(y, np.array([-1e7, 1e7])))) > 1e6
        return
    rise = np.abs(loss.value(y, z[:, None]) - loss.value(y, z))
    run = np.abs(z[:, None] - z)
    assert np.all(rise <= loss.lipschitz * run + 1e-13)
    assert np.max(rise / np.where(run > 0, run, 1.0)) >= (1 - 1e-6) * loss.lipschitz


@pytest.mark.parametrize("loss, y", CASES, ids=name)
def test_smoothness_bounds_the_change_of_the_gradient_and_is_attained(loss, y):
    z = np.concatenate([np.linspace(-3.0, 3.0, 601), kinks(loss, y)])
    if np.isinf(loss.smoothness):
        a = np.concatenate([kinks(loss, y), [-30.0, 30.0]])
        assert np.max(np.abs(loss.gradient(y, a + 1e-7) - loss.gradient(y, a - 1e-7)) / 2e-7) > 1e6
        return
    rise = np.abs(loss.gradient(y, z[:, None]) - loss.gradient(y, z))
    run = np.abs(z[:, None] - z)
    assert np.all(rise <= loss.smoothness * run + 1e-13)
    assert np.max(rise / np.where(run > 0, run, 1.0)) >= (1 - 1e-4) * loss.smoothness


@pytest.mark.parametrize("loss, y", [c for c in CASES if hasattr(c[0], "strong_convexity")], ids=name)
def test_strong_convexity_bounds_the_change_of_the_gradient_from_below(loss, y):
    assert loss.strong_convexity > 0
    rise = (loss.gradient(y, GRID[:, None]) - loss.gradient(y, GRID)) * (GRID[:, None] - GRID)
    assert np.all(rise >= loss.strong_convexity * np.square(GRID[:, None] - GRID) - 1e-13)


@pytest.mark.parametrize("loss, y", CASES, ids=name)
def test_extreme_scores_give_neither_nan_nor_warning(loss, y):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        results = [
            loss.value(y, EXTREME),
            loss.gradient(y, EXTREME),
            loss.conjugate(y, EXTREME),
            loss.predict(EXTREME),
        ]
        if hasattr(loss, "curvature"):
            results.append(loss.curvature(y, EXTREME))
        if hasattr(loss, "probability"):
            results.append(loss.probability(EXTREME))
    assert not np.isnan(results).any()
    low = 0.0 if not isinstance(loss, DEVIANCES) else -np.inf
    assert np.all(results[0] >= low)
    assert np.all(results[2] > -np.inf)


@pytest.mark.parametrize("loss", ON_REALS, ids=name)
def test_extreme_targets_give_neither_nan_nor_warning(loss):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        y = EXTREME[:, None]
        results = np.array([loss.value(y, EXTREME), loss.gradient(y, EXTREME), loss.conjugate(y, EXTREME)])
    assert not np.isnan(results).any()


@pytest.mark.parametrize("loss, y", CASES, ids=name)
def test_results_are_float64_and_broadcast(loss, y):
    targets, scores = np.full((3, 1), y), np.linspace(-1.0, 1.0, 4)
    methods = [
        loss.value,
        loss.gradient,
        loss.conjugate,
        *([loss.curvature] if hasattr(loss, "curvature") else []),
    ]
    for method in methods:
        result = method(targets, scores)
        assert result.shape == (3, 4)
        assert result.dtype == np.float64


def test_losses_are_immutable_values():
    assert HuberLoss(0.5) == HuberLoss(0.5) != HuberLoss(0.6)
    with pytest.raises(AttributeError):
        HuberLoss(0.5).delta = 1.0


def test_risk_and_probability_import_nothing_heavy():
    code = (
        "import sys, learnable.risk.penalties\n"
        "from learnable.probability import normal, student_t\n"
        "from learnable.risk.losses import base, margin, multiclass, regression\n"
        "heavy = {'sklearn', 'pandas', 'numba', 'torch', 'matplotlib', 'scipy.stats'} & set(sys.modules)\n"
        "sys.exit(f'loaded {heavy}' if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
