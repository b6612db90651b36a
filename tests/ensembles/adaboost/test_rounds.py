"""The loop of rounds: who is held out, when it ends, who is removed."""

import numpy as np
import pytest

from learnable.core.errors import DataError
from learnable.core.estimator import Run
from learnable.ensembles.adaboost.rounds import FLOAT_ROUNDS, Plan, boost, hold_out
from learnable.ensembles.weak_learners import Learned, StumpLearner

RNG = np.random.default_rng(0)
X = RNG.standard_normal((120, 3))
Y = (X[:, 0] * X[:, 1] + 0.3 * RNG.standard_normal(120) > 0).astype(np.int64)
ONES = np.ones(120)


def rounds(variant="discrete", n=10, rate=1.0, weak=None, run=None):
    weak = weak or StumpLearner(X, Y, 2, variant == "real", 1)
    return boost(weak, Y, ONES, 2, Plan(variant, n, rate, 1e-8, None), run or Run(), None)


class Fixed:
    """Learners that err where they are told to."""

    name = "fixed"

    def __init__(self, *wrong):
        self.wrong = iter(wrong)

    def find(self, D):
        return Learned("learner", np.where(next(self.wrong), 1 - Y, Y), None, 1.0)


def mistakes(count):
    return np.arange(120) < count


def test_the_share_held_out_is_that_of_each_class():
    y = np.repeat([0, 1, 2], [50, 30, 1])
    out = hold_out(y, 3, 0.2, seed=1)
    np.testing.assert_array_equal(np.bincount(y[out], minlength=3), [10, 6, 0])
    np.testing.assert_array_equal(out, hold_out(y, 3, 0.2, seed=1))
    assert (out != hold_out(y, 3, 0.2, seed=2)).any()


def test_no_class_is_held_out_whole():
    assert len(hold_out(np.array([0, 0, 1, 1]), 2, 0.99, seed=0)) == 2
    with pytest.raises(DataError, match="leaves no row"):
        hold_out(np.array([0, 1]), 2, 0.99, seed=0)


def test_a_learner_without_error_ends_the_rounds_and_decides():
    done = rounds(weak=Fixed(mistakes(30), mistakes(0), mistakes(10)))
    assert len(done.learners) == 2
    assert done.votes[1] > done.votes[0]
    assert done.traces[1].loss < done.traces[0].loss / 10


def test_a_learner_that_guesses_ends_the_rounds():
    assert len(rounds(weak=Fixed(mistakes(30), mistakes(30))).learners) == 1
    with pytest.raises(DataError, match="no fixed is better than guessing"):
        rounds(weak=Fixed(mistakes(60)))


def test_a_raised_flag_ends_the_rounds_after_the_first():
    run = Run()
    run.flag.raise_()
    assert len(rounds(run=run).learners) == 1


def test_float_rounds_end_with_the_learners_asked_for():
    done = rounds("float", 12)
    assert (done.removed < 0).sum() <= 12
    assert len(done.learners) <= 12 * FLOAT_ROUNDS
    assert (done.removed[done.removed >= 0] > np.flatnonzero(done.removed >= 0)).all()


def test_every_removal_gives_the_best_ensemble_of_its_size_so_far():
    done = rounds("float", 40)
    assert (done.removed >= 0).any()
    smallest = {}
    for t, trace in enumerate(done.traces):
        size = sum(not 0 <= when <= t for when in done.removed[: t + 1])
        if (done.removed == t).any():
            assert trace.loss < smallest.get(size, np.inf)
        smallest[size] = min(trace.loss, smallest.get(size, np.inf))


def test_corrected_votes_end_when_no_learner_could_change_the_loss():
    done = rounds("totally-corrective", 120)
    assert len(done.learners) < 120 or done.gradient <= 1e-8
    assert done.gradient <= 1e-8
    assert (done.votes >= 0).all()


def test_real_votes_are_the_spread_of_the_scores():
    done = rounds("real", 3, rate=0.5)
    for stump in done.learners:
        assert np.abs(stump.value).max() == pytest.approx(1.0)
    first = StumpLearner(X, Y, 2, True, 1).find(ONES / 120)
    assert done.votes[0] == pytest.approx(0.5 * first.vote / 0.5)
