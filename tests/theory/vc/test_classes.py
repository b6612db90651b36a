"""Growth functions against brute force and Sauer's lemma; known dimensions; symmetrisation."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from learnable.core.errors import DataError, ParameterError
from learnable.theory import vc

RNG = np.random.default_rng(0)


def test_sauer_and_the_numbers_of_the_notes():
    assert vc.sauer(5, 3) == 26
    assert vc.vc_bound(1000, 11, 0.05) == pytest.approx(0.7622, abs=5e-5)
    assert vc.vc_bound(1000, 11, 0.05, classic=False) == pytest.approx(0.3869, abs=5e-5)
    assert vc.boosted_dimension(3, 3) == pytest.approx(113.46, abs=5e-3)
    for n, d in itertools.product(range(1, 30), range(1, 10)):
        assert vc.log_sauer(n, d) == pytest.approx(math.log(vc.sauer(n, d)))
        if n >= d:
            assert vc.sauer(n, d) <= (math.e * n / d) ** d


@pytest.mark.parametrize("n", [1, 2, 5, 8])
def test_growth_on_points_in_general_position_is_the_uniform_one(n):
    line = RNG.normal(size=n)
    assert vc.Thresholds().growth_on(line) == vc.Thresholds().growth(n) == n + 1
    assert vc.Intervals().growth_on(line) == vc.Intervals().growth(n) == n * (n + 1) // 2 + 1
    assert vc.Stumps(1).growth_on(line) == vc.Stumps(1).growth(n) == 2 * n
    plane = RNG.normal(size=(n, 2))
    assert vc.Halfspaces(2).growth_on(plane) == vc.Halfspaces(2).growth(n)
    assert vc.Halfspaces(2, through_origin=True).growth_on(plane) == vc.Halfspaces(2, through_origin=True).growth(n)
    assert vc.Trees(1, splits=2).growth_on(line) == vc.sauer(n - 1, 2) * 2


def brute_boxes(X):
    ends = [[*np.unique(column)] for column in X.T]
    found = {tuple([False] * len(X))}
    for lows in itertools.product(*ends):
        for highs in itertools.product(*ends):
            found.add(tuple(np.all(np.greater_equal(X, lows) & np.less_equal(X, highs), axis=1).tolist()))
    return found


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10**6), n=st.integers(1, 6), ties=st.booleans())
def test_boxes_are_those_of_brute_force(seed, n, ties):
    X = np.random.default_rng(seed).normal(size=(n, 2))
    if ties:
        X = X.round()
    found = {tuple(row) for row in vc.Rectangles(2).labelings(X).tolist()}
    assert found == brute_boxes(X)
    assert len(found) <= vc.sauer(n, 4)


def test_halfspaces_are_those_of_random_directions():
    X = np.array([[0, 0], [1, 0], [2, 0], [0, 1], [1, 1], [3, 2]], dtype=float)  # three on a line
    rng = np.random.default_rng(1)
    w = rng.normal(size=(60_000, 3)) * [1.0, 1.0, 2.0]
    seen = np.unique(w[:, :2] @ X.T + w[:, 2:] > 0, axis=0)
    assert vc.Halfspaces(2).growth_on(X) == len(seen)
    assert len(seen) < vc.Halfspaces(2).growth(6)


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10**6), n=st.integers(2, 6), splits=st.integers(0, 2))
def test_exact_growth_is_below_the_bounds(seed, n, splits):
    X = np.random.default_rng(seed).normal(size=(n, 2))
    tree = vc.Trees(2, splits=splits)
    on_points = tree.growth_on(X)
    assert on_points <= tree.growth(n)
    assert math.log(on_points) <= tree.log_growth(n) + 1e-9
    assert vc.Stumps(2).growth_on(X) <= vc.Stumps(2).growth(n)
    assert vc.Trees(2, splits=1).growth_on(X) == vc.Stumps(2).growth_on(X)


def test_known_dimensions_by_search():
    assert vc.find_dimension(vc.Intervals(), RNG.normal(size=7)).dimension == vc.Intervals().vc_dimension == 2
    assert vc.find_dimension(vc.Thresholds(), RNG.normal(size=7)).dimension == 1
    for d in (1, 2, 3):
        simplex = np.vstack([np.zeros(d), np.eye(d), RNG.normal(size=(2, d))])
        assert vc.find_dimension(vc.Halfspaces(d), simplex).dimension == vc.Halfspaces(d).vc_dimension == d + 1
        star = np.vstack([np.eye(d), -np.eye(d), 0.1 * RNG.normal(size=(1, d))])
        assert vc.find_dimension(vc.Rectangles(d), star).dimension == vc.Rectangles(d).vc_dimension == 2 * d
    assert vc.find_dimension(vc.Trees(1, splits=3), np.arange(7.0)).dimension == 4
    assert vc.find_dimension(vc.Stumps(3), RNG.normal(size=(6, 3))).dimension <= vc.Stumps(3).vc_dimension


def test_radon_no_four_points_of_the_plane_are_shattered_by_halfspaces():
    for _ in range(20):
        assert not vc.Halfspaces(2).shatters(RNG.normal(size=(4, 2)))


def test_sines_shatter_every_number_of_points():
    for labels in itertools.product([0, 1], repeat=8):
        points, omega = vc.SineWaves().witness(labels)
        assert ((np.sin(omega * points) >= 0) == np.array(labels, dtype=bool)).all()


def test_finite_classes_count_their_members():
    table = vc.FiniteClass([[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0], [1, 1, 0]])
    assert table.size == 4
    assert table.vc_dimension == 2
    assert table.shatters([0, 1]) and not table.shatters([0, 2])
    assert table.growth(3) == 4


def test_pseudo_dimension_of_lines_and_of_a_scaled_function():
    x = np.array([0.0, 1.0, 2.0])
    slopes = np.linspace(-2, 2, 5)
    lines = np.array([a * x + b for a in slopes for b in slopes])
    assert vc.pseudo_dimension(lines) == 2
    assert vc.pseudo_dimension([a * x**2 for a in slopes]) == 1
    assert vc.pseudo_dimension(vc.Intervals().labelings([1.0, 2.0, 3.0])) == 2


def test_erm_is_consistent_exactly_where_the_rate_falls():
    good = vc.erm_consistency(vc.Halfspaces(3))
    bad = vc.erm_consistency(vc.SineWaves())
    assert good.consistent and good.rates[-1][1] < 1e-2
    assert not bad.consistent and bad.rates[-1][1] == pytest.approx(math.log(2.0))


def test_symmetrisation_holds_and_its_numbers_are_probabilities():
    thresholds = vc.FiniteClass(np.tril(np.ones((11, 10), dtype=int), -1))
    found = vc.symmetrisation(thresholds, n=200, eps=0.1, trials=4000)
    assert found.holds
    assert 0.0 < found.deviation < found.ghost < found.signs


@pytest.mark.parametrize("d", [1, 3])
def test_uniform_deviations_stay_below_the_bounds(d):
    """Halfspaces against random labels: the largest R − R̂ over many of them, on the true distribution."""
    rng = np.random.default_rng(2)
    n, delta, trials = 150, 0.1, 200
    w = rng.normal(size=(300, d + 1))
    population = rng.normal(size=(20_000, d))
    outcome = population @ w[:, :d].T + w[:, d] > 0
    risks = 0.5 * np.ones(300)  # labels are fair coins
    misses = relative = 0
    for _ in range(trials):
        rows = rng.integers(0, len(population), n)
        y = rng.random(n) < 0.5
        errors = (outcome[rows] != y[:, None]).mean(axis=0)
        misses += (risks - errors).max() > vc.vc_bound(n, d + 1, delta, classic=False)
        bound = np.array([vc.relative_bound(e, n, vc.log_sauer(2 * n, d + 1), delta) for e in errors])
        relative += bool((risks > bound).any())
    assert misses <= trials * delta
    assert relative <= trials * delta


def test_bad_arguments_are_refused():
    with pytest.raises(ParameterError):
        vc.sauer(-1, 2)
    with pytest.raises(ParameterError):
        vc.Intervals(2)
    with pytest.raises(DataError):
        vc.Halfspaces(2).growth_on([[1.0], [2.0]])
    with pytest.raises(ParameterError):
        vc.vc_bound(10, 2, 1.5)
    with pytest.raises(ParameterError):
        vc.erm_consistency(3)
    with pytest.raises(DataError):
        vc.FiniteClass([[0, 2]])
