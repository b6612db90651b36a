"""The penalised likelihood against its definition: value, derivatives, and a duality gap that never lies."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import log_softmax
from tests.oracles.logistic import Likelihood, entropy

from learnable.data import Blocks, Part
from learnable.risk import objective
from learnable.risk.classes import ClassRisk, class_sums, feasible_mix

FORMS = [(storage, K, intercept) for storage in ("dense", "sparse") for K in (2, 4) for intercept in (True, False)]
form = pytest.mark.parametrize(
    ("storage", "n_classes", "intercept"), FORMS, ids=[f"{s}-{k}-{'free' if b else 'zero'}" for s, k, b in FORMS]
)
penalty = pytest.mark.parametrize("C", [0.03, 2.0, np.inf], ids=lambda C: f"C={C}")


def all_scores(problem, x):
    """Return the scores of all rows, (n, K), or (n, 1) for two classes."""
    scores = np.concatenate(problem.over_scores(x, lambda scores, codes: [scores], lambda a, b: a + b))
    return scores[:, 1:] if problem.n_scores == 1 else scores


def draw(n_classes, seed=0, n=40, d=3, weighted=True):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * [1.0, 3.0, 0.2][:d] + [0.0, 2.0, -1.0][:d]
    X[rng.random(X.shape) < 0.3] = 0.0
    codes = np.r_[np.arange(n_classes), rng.integers(0, n_classes, n - n_classes)]
    return X, codes, rng.uniform(0.2, 2.0, n) if weighted else None


def make_problem(X, codes, weight, n_classes, C, storage="dense", intercept=True, **kwargs):
    blocks = Blocks([Part(sp.csr_array(X) if storage == "sparse" else X, codes, weight)], **kwargs)
    sums = class_sums(blocks, n_classes, intercept=intercept, n_jobs=1)
    return ClassRisk.of(blocks, sums, C, intercept=intercept, n_jobs=1)


def oracle_point(problem, theta):
    """Return the same point for rows that are not centred: b − wᵀcentre."""
    theta = theta.reshape(problem.shape).copy()
    theta[:, 0] -= theta[:, 1:] @ problem.sums.centre
    return theta.ravel() if problem.intercept else (theta * np.r_[0.0, np.ones(problem.width - 1)]).ravel()


def random_theta(problem, seed, size=1.0):
    theta = size * np.random.default_rng(seed).normal(size=problem.shape)
    if not problem.intercept:
        theta[:, 0] = 0.0
    return theta.ravel()


@form
@penalty
def test_value_is_that_of_the_definition(storage, n_classes, intercept, C):
    X, codes, weight = draw(n_classes)
    problem = make_problem(X, codes, weight, n_classes, C, storage, intercept)
    exact = Likelihood(X, codes, C, weight=weight, intercept=intercept)
    for seed, size in enumerate([0.0, 0.1, 1.0, 30.0]):
        theta = random_theta(problem, seed, size)
        expected = exact.value(oracle_point(problem, theta))
        assert problem.evaluate(theta).value == pytest.approx(float(expected), rel=1e-13)


@form
@penalty
def test_gradient_is_the_derivative_of_the_value(storage, n_classes, intercept, C):
    X, codes, weight = draw(n_classes)
    problem = make_problem(X, codes, weight, n_classes, C, storage, intercept)
    theta, step = random_theta(problem, 1), 1e-5
    gradient = problem.evaluate(theta).gradient
    numeric = np.zeros_like(theta)
    for j in range(len(theta)):
        e = step * np.eye(len(theta))[j]
        numeric[j] = (problem.evaluate(theta + e).value - problem.evaluate(theta - e).value) / (2 * step)
    if not intercept:
        numeric.reshape(problem.shape)[:, 0] = 0.0
    np.testing.assert_allclose(gradient, numeric, rtol=1e-7, atol=1e-7 * np.abs(gradient).max())


@form
@penalty
def test_hessian_is_the_derivative_of_the_gradient(storage, n_classes, intercept, C):
    X, codes, weight = draw(n_classes)
    problem = make_problem(X, codes, weight, n_classes, C, storage, intercept)
    theta, step = random_theta(problem, 2), 1e-5
    H = problem.hessian(theta)
    free = np.ones(problem.shape, dtype=bool)
    free[:, 0] = intercept
    free = np.flatnonzero(free)
    for j in free:
        e = step * np.eye(len(theta))[j]
        numeric = (problem.evaluate(theta + e).gradient - problem.evaluate(theta - e).gradient) / (2 * step)
        np.testing.assert_allclose(H[j, free], numeric[free], rtol=1e-7, atol=1e-7 * np.abs(H).max())
    np.testing.assert_allclose(H, H.T, rtol=1e-13, atol=1e-13 * np.abs(H).max())


@form
@penalty
def test_product_with_the_hessian_is_the_hessian_times_the_vector(storage, n_classes, intercept, C):
    X, codes, weight = draw(n_classes)
    problem = make_problem(X, codes, weight, n_classes, C, storage, intercept)
    theta = random_theta(problem, 3)
    H, product = problem.hessian(theta), problem.hessian_product(theta)
    for seed in range(4):
        v = np.random.default_rng(seed).normal(size=len(theta))
        np.testing.assert_allclose(product(v), H @ v, rtol=1e-12, atol=1e-12 * np.abs(H).max())


def test_a_hessian_product_remembers_its_own_point():
    X, codes, weight = draw(3)
    problem = make_problem(X, codes, weight, 3, 1.0)
    here, there = random_theta(problem, 1), random_theta(problem, 2)
    product, v = problem.hessian_product(here), np.ones(len(here))
    before = product(v)
    problem.evaluate(there)
    np.testing.assert_array_equal(product(v), before)


def test_the_hessian_is_that_of_its_point_and_not_of_the_last_evaluation():
    X, codes, weight = draw(2)
    problem = make_problem(X, codes, weight, 2, 1.0)
    here, there = random_theta(problem, 1), random_theta(problem, 2)
    expected = problem.hessian(here)
    problem.evaluate(there)
    np.testing.assert_array_equal(problem.hessian(here), expected)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_the_hessian_is_that_of_its_point_when_the_vector_was_changed_in_place(n_classes):
    X, codes, weight = draw(n_classes)
    problem = make_problem(X, codes, weight, n_classes, 1.0)
    theta = random_theta(problem, 1)
    problem.evaluate(theta)
    theta *= 2
    np.testing.assert_array_equal(problem.hessian(theta), problem.hessian(theta.copy()))


@form
def test_the_diagonal_bound_is_above_the_hessian(storage, n_classes, intercept):
    X, codes, weight = draw(n_classes)
    problem = make_problem(X, codes, weight, n_classes, 2.0, storage, intercept)
    bound = problem.curvature_bound()
    for seed in range(3):
        diagonal = np.diag(problem.hessian(random_theta(problem, seed)))
        assert (diagonal <= bound * (1 + 1e-12)).all()


@pytest.mark.threaded
def test_blocks_change_nothing_but_rounding():
    X, codes, weight = draw(3, n=50)
    for storage in ("dense", "sparse"):
        one = make_problem(X, codes, weight, 3, 1.0, storage)
        many = make_problem(X, codes, weight, 3, 1.0, storage, rows=7)
        theta = random_theta(one, 5)
        a, b = one.evaluate(theta), many.evaluate(theta)
        assert a.value == pytest.approx(b.value, rel=1e-14)
        np.testing.assert_allclose(a.gradient, b.gradient, rtol=1e-12, atol=1e-13)
        assert a.measure == pytest.approx(b.measure, rel=1e-10)
        np.testing.assert_allclose(one.hessian(theta), many.hessian(theta), rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(all_scores(one, theta), all_scores(many, theta), rtol=1e-13)


@form
def test_scores_are_those_of_the_model(storage, n_classes, intercept):
    X, codes, weight = draw(n_classes)
    problem = make_problem(X, codes, weight, n_classes, 1.0, storage, intercept)
    theta = random_theta(problem, 6)
    plain = oracle_point(problem, theta).reshape(problem.shape)
    np.testing.assert_allclose(all_scores(problem, theta), plain[:, 0] + X @ plain[:, 1:].T, rtol=1e-12, atol=1e-12)


def proven_excess(problem, theta, least):
    """Return what the measure proves about P(θ) − P*: measure · max(P*, 1e-8·P₀), and P itself."""
    at = problem.evaluate(theta)
    start = problem.cost * problem.sums.weight.sum() * np.log(problem.n_classes)
    return at.measure * max(float(least), 1e-8 * start), at.value


@pytest.mark.sampled(6)
@form
@pytest.mark.parametrize("C", [0.03, 2.0, 300.0], ids=lambda C: f"C={C}")
@pytest.mark.parametrize("distance", [1e-4, 1e-2, 0.05], ids=lambda distance: f"distance={distance}")
def test_the_gap_is_that_of_an_explicit_feasible_dual_point(storage, n_classes, intercept, C, distance):
    X, codes, weight = draw(n_classes)
    problem = make_problem(X, codes, weight, n_classes, C, storage, intercept)
    # The multiplier of a free intercept lets the rows be centred: the dual point is the same one.
    exact = Likelihood(X - problem.sums.centre, codes, C, weight=weight, intercept=intercept)
    best, _ = exact.optimum()
    theta = best.ravel() + random_theta(problem, 7, distance / np.sqrt(1 + C))
    p, share, v = exact.feasible_point(theta)
    mixed = (1 - share) * p + share * v
    primal = exact.value(theta)
    # The entropy of a mixture is at least the mixture of the entropies: that is the bound the certificate uses.
    entropies = ((1 - share) * entropy(p) + share * entropy(v)) @ exact.weight
    dual = C * entropies - exact.dual_norm(mixed)
    assert 0 < dual <= exact.dual_value(mixed) + 1e-12 * primal
    assert problem.evaluate(theta).measure == pytest.approx(float((primal - dual) / dual), rel=1e-6)


@form
@pytest.mark.parametrize("C", [1e-3, 1.0, 1e3], ids=lambda C: f"C={C}")
def test_weak_duality_from_far_away_to_the_optimum(storage, n_classes, intercept, C):
    X, codes, weight = draw(n_classes)
    problem = make_problem(X, codes, weight, n_classes, C, storage, intercept)
    exact = Likelihood(X - problem.sums.centre, codes, C, weight=weight, intercept=intercept)
    best, least = exact.optimum()
    far = random_theta(problem, 8, 5.0)
    for share in [1.0, 0.5, 0.1, 1e-2, 1e-3, 1e-4, 1e-6, 0.0]:
        theta = best.ravel() + share * (far - best.ravel())
        proven, value = proven_excess(problem, theta, least)
        assert proven >= float(exact.value(theta) - least) * (1 - 1e-9) - 1e-13 * value, f"at share {share}"
    assert proven <= 1e-9 * value


@settings(deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 2**32 - 1),
    n_classes=st.sampled_from([2, 3, 4]),
    intercept=st.booleans(),
    storage=st.sampled_from(["dense", "sparse"]),
    log_C=st.floats(-4, 4),
    log_size=st.floats(-3, 2),
    weighted=st.booleans(),
)
def test_weak_duality_at_every_point(seed, n_classes, intercept, storage, log_C, log_size, weighted):
    X, codes, weight = draw(n_classes, seed, n=12, d=2, weighted=weighted)
    C = 10.0**log_C
    problem = make_problem(X, codes, weight, n_classes, C, storage, intercept)
    exact = Likelihood(X - problem.sums.centre, codes, C, weight=weight, intercept=intercept)
    theta = random_theta(problem, seed, 10.0**log_size)
    _, least = exact.optimum()
    proven, value = proven_excess(problem, theta, least)
    assert proven >= float(exact.value(theta) - least) * (1 - 1e-9) - 1e-13 * value


@pytest.mark.parametrize("shift", [1e-12, 1e-9, 1e-6, 1e-3], ids=lambda s: f"{s:g}")
@pytest.mark.parametrize("n_classes", [2, 3])
def test_an_intercept_that_is_off_is_never_certified_as_optimal(n_classes, shift):
    X, codes, weight = draw(n_classes)
    problem = make_problem(X, codes, weight, n_classes, 1.0)
    exact = Likelihood(X - problem.sums.centre, codes, 1.0, weight=weight)
    best, least = exact.optimum()
    best[0, 0] += shift
    proven, value = proven_excess(problem, best.ravel(), least)
    assert proven >= float(exact.value(best) - least) * (1 - 1e-6) - 1e-16 * value


@pytest.mark.parametrize("n_classes", [2, 3])
def test_extreme_scores_neither_overflow_nor_lose_the_loss(n_classes):
    X, codes, _ = draw(n_classes, weighted=False)
    problem = make_problem(X, codes, None, n_classes, np.inf, intercept=False)
    theta = random_theta(problem, 9, 1e5)
    at = problem.evaluate(theta)
    z = all_scores(problem, theta)
    z = np.column_stack([np.zeros(len(z)), z]) if n_classes == 2 else z
    expected = -log_softmax(z, axis=1)[np.arange(len(codes)), codes].sum()
    assert at.value == pytest.approx(expected, rel=1e-13)
    assert np.isfinite(at.gradient).all() and np.isfinite(problem.hessian(theta)).all()


@form
def test_the_relative_gradient_does_not_see_the_scale_of_a_column(storage, n_classes, intercept):
    X, codes, weight = draw(n_classes)
    scale = np.array([1e-6, 1.0, 1e8])
    plain = make_problem(X, codes, weight, n_classes, np.inf, storage, intercept)
    scaled = make_problem(X * scale, codes, weight, n_classes, np.inf, storage, intercept)
    theta = random_theta(plain, 10)
    moved = (theta.reshape(plain.shape) / np.r_[1.0, scale]).ravel()
    measure = plain.evaluate(theta).measure
    assert 0 < measure <= 1
    assert scaled.evaluate(moved).measure == pytest.approx(measure, rel=1e-9)


def test_the_thinned_problem_is_the_problem_on_every_kth_row():
    X, codes, weight = draw(3, n=60)
    problem = make_problem(X, codes, weight, 3, 0.7)
    thinned = problem.thinned(4)
    rows = slice(None, None, 4)
    scaled = weight[rows] * (weight.sum() / weight[rows].sum())
    exact = Likelihood(X[rows] - problem.sums.centre, codes[rows], 0.7, weight=scaled)
    theta = random_theta(problem, 11)
    assert thinned.evaluate(theta).value == pytest.approx(float(exact.value(theta)), rel=1e-12)
    np.testing.assert_allclose(thinned.evaluate(theta).gradient, exact.gradient(theta).astype(float), rtol=1e-9)
    np.testing.assert_allclose(thinned.hessian(theta), exact.hessian(theta).astype(float), rtol=1e-9, atol=1e-12)


def test_a_thinned_problem_that_would_lose_a_class_is_refused():
    X, codes, _ = draw(2, n=40, weighted=False)
    codes = np.zeros(40, dtype=np.int64)
    codes[1] = 1
    assert make_problem(X, codes, None, 2, 1.0).thinned(4) is None


@given(seed=st.integers(0, 10**6), n_classes=st.integers(2, 4))
def test_mixed_probabilities_obey_the_constraint_of_the_intercept(seed, n_classes):
    rng = np.random.default_rng(seed)
    s = rng.uniform(0.1, 3.0, 12)
    own = np.eye(n_classes)[np.r_[np.arange(n_classes), rng.integers(0, n_classes, 12 - n_classes)]]
    u = rng.dirichlet(np.full(n_classes, rng.choice([0.1, 1.0, 10.0])), 12)
    mix, v = feasible_mix(s @ own, s @ (u - own))
    mixed = (1 - mix) * u + mix * v
    np.testing.assert_allclose(s @ (mixed - own), 0.0, atol=1e-7 * s.sum())
    assert 0.0 <= mix <= 1.0 and (mixed >= 0).all()
    assert feasible_mix(s @ own, np.zeros(n_classes))[0] == 0.0


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("weighted", [True, False])
def test_the_value_of_equal_scores_is_that_of_zero_weights(n_classes, weighted):
    X, codes, weight = draw(n_classes, weighted=weighted)
    problem = make_problem(X, codes, weight, n_classes, C=3.0)
    at_zero = problem.evaluate(np.zeros(problem.n_scores * problem.width)).value
    assert problem.null_value == pytest.approx(at_zero, rel=1e-14)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_small_tables_that_are_kept_about_their_centre_give_the_same_bits(monkeypatch, n_classes):
    X, codes, weight = draw(n_classes)

    def found():
        problem = make_problem(X, codes, weight, n_classes, C=3.0)
        x = random_theta(problem, 1).ravel()
        at = problem.evaluate(x)
        return [at.value, *at.gradient, *problem.hessian(x).ravel(), *problem.hessian_product(x)(x)]

    kept = found()
    monkeypatch.setattr(objective, "_MOST_KEPT", 0)
    assert kept == found()
