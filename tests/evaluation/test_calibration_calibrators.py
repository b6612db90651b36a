"""Sigmoid, isotonic and temperature maps against brute force, scikit-learn's own maps, and their laws."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit, softmax
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.isotonic import IsotonicRegression
from tests.evaluation.wrapped import ScoreIsFirstColumn
from tests.oracles import conformal as oracle
from threadpoolctl import threadpool_limits

from learnable.core import ModelFileError
from learnable.evaluation.calibration import Isotonic, Sigmoid, Temperature, fit_isotonic, fit_sigmoid, fit_temperature


def draw(n=300, seed=0, scale=1.0, offset=0.0):
    rng = np.random.default_rng(seed)
    s = rng.normal(size=n)
    return s * scale + offset, rng.random(n) < expit(2 * s - 0.5), rng.uniform(0.1, 3.0, size=n)


def peers_map(method, scores, positive, weight):
    """The calibrator that scikit-learn fits, through its public door."""
    model = FrozenEstimator(ScoreIsFirstColumn().fit(scores[:, None], positive))
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore", UserWarning)  # that the frozen model itself takes no weights
        fitted = CalibratedClassifierCV(model, method=method).fit(scores[:, None], positive, weight)
    return fitted.calibrated_classifiers_[0].calibrators[0]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("scale", "offset"), [(1.0, 0.0), (1e-4, 5.0), (1e5, -2e5)])
def test_sigmoid_is_scikit_learns(scale, offset, weighted):
    scores, positive, weight = draw(scale=scale, offset=offset)
    weight = weight if weighted else None
    ours, gradient = fit_sigmoid(scores, positive, weight)
    theirs = peers_map("sigmoid", scores, positive, weight)
    assert gradient < 1e-12
    np.testing.assert_allclose(ours(scores), theirs.predict(scores), rtol=0, atol=1e-6)
    if scale == 1.0:  # elsewhere their search stops before its parameters have six digits
        np.testing.assert_allclose([ours.a, ours.b], [theirs.a_, theirs.b_], rtol=1e-6)


def test_sigmoid_is_the_optimum_of_platts_likelihood():
    scores, positive, weight = draw(60)
    ours, _ = fit_sigmoid(scores, positive, weight)
    np.testing.assert_allclose([ours.a, ours.b], oracle.platt(scores, positive, weight), rtol=1e-6)


def test_sigmoid_stays_finite_where_the_scores_separate_the_classes():
    scores = np.arange(-10.0, 10.0)
    sigmoid, gradient = fit_sigmoid(scores, scores >= 0)
    targets = np.where(scores >= 0, 11 / 12, 1 / 12)  # Platt's, for ten rows of each class
    assert gradient < 1e-12
    assert np.isfinite([sigmoid.a, sigmoid.b]).all()
    p = sigmoid(scores)
    assert p.sum() == pytest.approx(targets.sum(), abs=1e-9)
    assert p @ scores == pytest.approx(targets @ scores, abs=1e-8)


@pytest.mark.parametrize(
    ("scores", "positive"),
    [
        (np.full(6, 3.0), np.array([True, False, False, False, True, True])),
        (np.array([1.0, 2.0, 3.0]), np.zeros(3, dtype=bool)),
        (np.array([2.0]), np.array([True])),
        (np.array([0.0, 1e300, -1e300, 2.0]), np.array([True, False, False, True])),
    ],
    ids=["constant", "one class", "one row", "huge"],
)
def test_sigmoid_of_degenerate_scores(scores, positive):
    sigmoid, gradient = fit_sigmoid(scores, positive)
    assert gradient < 1e-8
    plus, minus = positive.sum(), (~positive).sum()
    targets = np.where(positive, (plus + 1) / (plus + 2), 1 / (minus + 2))
    assert np.mean(sigmoid(scores)) == pytest.approx(np.mean(targets), abs=1e-8)


@pytest.mark.parametrize("fit", [fit_sigmoid, fit_isotonic])
def test_a_weight_is_a_repetition(fit):
    scores, positive, _ = draw(50)
    times = np.random.default_rng(1).integers(1, 4, size=50)
    weighted, _ = fit(scores, positive, times.astype(float))
    repeated, _ = fit(np.repeat(scores, times), np.repeat(positive, times))
    np.testing.assert_allclose(weighted(scores), repeated(scores), atol=1e-10)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(-4, 4), st.booleans(), st.integers(1, 5)), min_size=1, max_size=14))
def test_isotonic_is_the_minimax_formula(rows):
    scores, positive, weight = (np.array(column) for column in zip(*rows, strict=True))
    scores, weight = scores.astype(float), weight.astype(float)
    ours, _ = fit_isotonic(scores, positive, weight)
    points, values = oracle.isotonic(scores, positive.astype(float), weight)
    np.testing.assert_allclose(ours(points), values, atol=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
def test_isotonic_is_scikit_learns_everywhere(weighted):
    scores, positive, weight = draw(500)
    scores = np.round(scores, 2)  # with ties
    weight = weight if weighted else None
    ours, _ = fit_isotonic(scores, positive, weight)
    theirs = IsotonicRegression(out_of_bounds="clip").fit(scores, positive, weight)
    grid = np.linspace(scores.min() - 1, scores.max() + 1, 2000)
    np.testing.assert_allclose(ours(grid), theirs.predict(grid), rtol=0, atol=1e-12)
    assert (np.diff(ours(grid)) >= 0).all()
    assert ours(grid).min() >= 0 and ours(grid).max() <= 1


def draw_logits(n=300, k=4, seed=0, heat=3.0):
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, k)) * 2
    codes = np.array([rng.choice(k, p=p) for p in softmax(z, axis=1)])
    return heat * z, codes, rng.uniform(0.1, 3.0, size=n)


@pytest.mark.parametrize("weighted", [False, True])
def test_temperature_minimises_the_log_loss(weighted):
    logits, codes, weight = draw_logits()
    w = weight if weighted else np.ones(len(codes))
    found, slope = fit_temperature(logits, codes, weight if weighted else None)
    assert slope < 1e-12

    def loss(beta):
        return -w @ np.log(softmax(beta * logits, axis=1)[np.arange(len(codes)), codes])

    assert loss(found.beta) < min(loss(found.beta * 1.001), loss(found.beta / 1.001))


def test_temperature_undoes_the_heat():
    logits, codes, _ = draw_logits(20_000, heat=5.0)
    p = softmax(logits / 5.0, axis=1)
    information = ((p * logits**2).sum(axis=1) - (p * logits).sum(axis=1) ** 2).sum()  # Fisher's, of β = 1/5
    error = 1.0 / np.sqrt(information)
    assert error < 0.02 / 5
    assert fit_temperature(logits, codes)[0].beta == pytest.approx(1 / 5, abs=4 * error)


def test_temperature_keeps_the_order_of_the_classes():
    logits, codes, _ = draw_logits()
    p = fit_temperature(logits, codes)[0](logits)
    np.testing.assert_array_equal(np.argsort(p, axis=1), np.argsort(logits, axis=1))


def test_temperature_ends_where_nothing_better_is_finite():
    logits = np.array([[2.0, 0.0], [0.0, 2.0]])
    assert fit_temperature(logits, np.array([0, 1]))[0].beta == np.exp(10.0)  # always right: ever colder
    assert fit_temperature(logits, np.array([1, 0]))[0].beta == np.exp(-10.0)  # always wrong: ever hotter
    assert fit_temperature(np.zeros((2, 2)), np.array([1, 0]))[0].beta == np.exp(-10.0)


@pytest.mark.parametrize(
    "part",
    [
        Sigmoid(np.inf, 0.0),
        Sigmoid(0.0, np.nan),
        Temperature(0.0),
        Temperature(np.nan),
        Isotonic(np.array([1.0, 2.0]), np.array([0.5, 0.4])),
        Isotonic(np.array([2.0, 1.0]), np.array([0.4, 0.5])),
        Isotonic(np.array([1.0]), np.array([0.4, 0.5])),
        Isotonic(np.array([1.0]), np.array([1.5])),
        Isotonic(np.array([np.nan]), np.array([0.5])),
        Isotonic(np.array([]), np.array([])),
    ],
    ids=repr,
)
def test_a_map_that_no_fit_gives_is_refused_at_load(part):
    with pytest.raises(ModelFileError, match=r"load: an? "):
        part._check_loaded()
