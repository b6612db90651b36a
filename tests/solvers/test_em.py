"""The EM driver: the objective never falls, restarts do not disturb each other, blocks and threads change nothing."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from learnable.core.errors import AscentError, ParameterError
from learnable.data import Blocks, Part
from learnable.solvers import em

TOSSES = 10


class Coins:
    """K coins of unknown bias, each round tossed ten times with one of them: a mixture of binomials."""

    def __init__(self, alpha=1.0):
        self.alpha = alpha

    def expectation(self, block, p):
        heads = block.X
        log_joint = heads * np.log(p) + (TOSSES - heads) * np.log1p(-p) - np.log(len(p))
        top = log_joint.max(axis=1, keepdims=True)
        log_total = top + np.log(np.exp(log_joint - top).sum(axis=1, keepdims=True))
        r = np.exp(log_joint - log_total)
        return (r.sum(axis=0), r.T @ heads[:, 0]), float(log_total.sum())

    def maximisation(self, statistics, p):
        rounds, heads = statistics
        return (heads + self.alpha - 1) / (TOSSES * rounds + 2 * (self.alpha - 1))

    def log_prior(self, p):
        return float((self.alpha - 1) * (np.log(p) + np.log1p(-p)).sum())


def rounds(n=400, seed=0):
    rng = np.random.default_rng(seed)
    return rng.binomial(TOSSES, np.where(rng.random(n) < 0.5, 0.25, 0.7)).astype(float).reshape(-1, 1)


def blocks(X, rows=None):
    return Blocks([Part(X)], rows)


def objective(X, p, alpha=1.0):
    return sum(Coins().expectation(type("B", (), {"X": X[i : i + 1]}), p)[1] for i in range(len(X))) + Coins(
        alpha
    ).log_prior(p)


@given(st.integers(0, 2**31), st.sampled_from([1.0, 1.5, 4.0]), st.booleans())
def test_the_objective_never_falls_and_the_record_is_exact(seed, alpha, accelerate):
    rng = np.random.default_rng(seed)
    X, start = rounds(60, seed), rng.uniform(0.1, 0.9, 2)
    helpers = {"pack": logit, "unpack": expit} if accelerate else {}
    found = em(Coins(alpha), blocks(X), [start], tol=1e-9, max_iter=300, **helpers)
    assert (np.diff(found.history) >= -1e-9).all()
    assert found.bound == pytest.approx(objective(X, found.parameters, alpha), rel=1e-12)
    statistics, _ = Coins(alpha).expectation(blocks(X)[0], found.parameters)
    ahead = Coins(alpha).maximisation(statistics, found.parameters)
    assert found.rise == pytest.approx(objective(X, ahead, alpha) - found.bound, abs=1e-9)


def logit(p):
    return np.log(p) - np.log1p(-p)


def expit(x):
    return 1 / (1 + np.exp(-x)) if np.isfinite(x).all() and abs(x).max() < 30 else None


def test_acceleration_reaches_the_same_optimum_in_fewer_steps():
    X = rounds(500)
    start = np.array([0.45, 0.5])
    plain = em(Coins(), blocks(X), [start], tol=1e-10, max_iter=2000)
    quick = em(Coins(), blocks(X), [start], tol=1e-10, max_iter=2000, pack=logit, unpack=expit)
    assert quick.bound == pytest.approx(plain.bound, abs=1e-6)
    assert quick.n_iter < plain.n_iter


def test_restarts_side_by_side_are_the_restarts_alone():
    X, starts = rounds(), [np.array([0.5, 0.5]), np.array([0.2, 0.9]), np.array([0.45, 0.55])]
    together = em(Coins(), blocks(X), starts, tol=1e-8, max_iter=50)
    alone = [em(Coins(), blocks(X), [start], tol=1e-8, max_iter=50) for start in starts]
    assert together.bounds.tolist() == [each.bound for each in alone]
    best = alone[together.start]
    assert together.bound == max(each.bound for each in alone)
    assert together.parameters.tolist() == best.parameters.tolist() and together.n_iter == best.n_iter
    assert together.start != 0  # the symmetric start is a saddle that EM cannot leave


@pytest.mark.threaded
def test_threads_do_not_matter_and_blocks_only_by_rounding():
    X, start = rounds(1000), np.array([0.3, 0.6])
    first = em(Coins(), blocks(X, 64), [start], n_jobs=1)
    again = em(Coins(), blocks(X, 64), [start], n_jobs=2)
    whole = em(Coins(), blocks(X), [start])
    assert first.history.tolist() == again.history.tolist()
    np.testing.assert_allclose(whole.parameters, first.parameters, rtol=1e-12)


def test_max_iter_counts_the_steps_to_the_parameters():
    X, start = rounds(), np.array([0.45, 0.5])
    found = em(Coins(), blocks(X), [start], tol=0.0, max_iter=3)
    assert found.n_iter == 3 and len(found.history) == 4 and not found.converged
    p = start
    for _ in range(3):
        p = Coins().maximisation(Coins().expectation(blocks(X)[0], p)[0], p)
    np.testing.assert_allclose(found.parameters, p, rtol=1e-12)


def test_progress_sees_the_objective_and_may_stop():
    seen = []

    def progress(iteration, value):
        seen.append(value)
        return iteration == 4

    found = em(Coins(), blocks(rounds()), [np.array([0.45, 0.5])], tol=0.0, progress=progress)
    assert len(seen) == 4 and seen == sorted(seen)
    assert found.n_iter == 2 and found.bound == seen[2] and found.rise == seen[3] - seen[2]
    at_once = em(Coins(), blocks(rounds()), [np.array([0.45, 0.5])], progress=lambda i, v: True)
    assert at_once.n_iter == 0 and at_once.rise == np.inf


def test_a_wrong_step_is_named():
    class Wrong(Coins):
        def maximisation(self, statistics, p):
            return np.array([0.01, 0.02]) if len(statistics) else p

    with pytest.raises(AscentError, match="step 1 lowered the objective"):
        em(Wrong(), blocks(rounds()), [np.array([0.3, 0.7])])


def test_an_objective_that_is_no_number_is_refused():
    class Broken(Coins):
        def log_prior(self, p):
            return np.nan

    with pytest.raises(AscentError, match="not a number"):
        em(Broken(), blocks(rounds()), [np.array([0.3, 0.7])])


def test_no_start_is_refused():
    with pytest.raises(ParameterError, match="at least one"):
        em(Coins(), blocks(rounds()), [])
