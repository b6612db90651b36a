"""Batches that are cut in two and vectors that two threads share: the same steps, whatever the number of threads."""

import numpy as np
import pytest

from learnable import LSTMClassifier, LSTMRegressor, MLPClassifier
from learnable.core.threads import TaskTeam
from learnable.neural import training
from learnable.neural.optimisers import SHARED_NUMBERS, Optimiser
from learnable.solvers import Adagrad, Adam, GradientDescent, Momentum, Nesterov, Rescale, RMSprop, Truncate

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def fits(n_jobs, **more):
    """Return networks whose batches are cut, fitted to few rows; the last batch of each is short."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(515, 40))
    codes = (X[:, 0] * X[:, 1] > 0).astype(int)
    weight = rng.random(515)
    S = rng.normal(size=(131, 100, 2))
    lengths = rng.integers(30, 101, 131)
    ragged = [row[:end] for row, end in zip(S, lengths, strict=True)]
    every = [(row[:, 0].cumsum() > 0).astype(int) for row in ragged]
    settings = {"max_iter": 2, "random_state": 0, "n_jobs": n_jobs, **more}
    return [
        MLPClassifier((300, 300), batch_size=256, **settings).fit(X, codes, sample_weight=weight),
        MLPClassifier((300, 300), batch_size=256, dropout=0.2, clip=0.5, **settings).fit(X, codes),
        LSTMRegressor(16, batch_size=64, **settings).fit(S, S.sum((1, 2)), sample_weight=weight[:131]),
        LSTMClassifier(16, batch_size=64, predicts="every_step", **settings).fit(ragged, every),
    ]


def test_the_same_bits_for_any_number_of_threads():
    for one, two in zip(fits(1), fits(2), strict=True):
        np.testing.assert_array_equal(one.theta_, two.theta_)


def test_a_batch_in_two_parts_is_the_batch(monkeypatch):
    """By plain descent: Adam's first steps have the sign of a gradient, also of one that is rounding."""
    settings = {"solver": "sgd", "shuffle": False}  # the keys of two parts come from the stream that shuffles
    in_parts = fits(2, **settings)
    monkeypatch.setattr(training, "_SHARDED_WORK", np.inf)
    whole = fits(2, **settings)
    for k in (0, 2, 3):  # the second drops other units
        np.testing.assert_allclose(in_parts[k].loss_curve_, whole[k].loss_curve_, rtol=1e-5)
        np.testing.assert_allclose(in_parts[k].theta_, whole[k].theta_, atol=1e-6)


@pytest.mark.parametrize("clip", [None, Truncate(0.5), Rescale(1.0)])
@pytest.mark.parametrize("update", [GradientDescent(), Momentum(), Nesterov(), Adagrad(), RMSprop(), Adam()])
def test_two_threads_make_the_steps_of_one(update, clip):
    rng = np.random.default_rng(0)
    start = rng.normal(size=SHARED_NUMBERS + 3).astype(np.float32)
    gradient = rng.normal(size=start.size).astype(np.float32)
    ends = []
    for threads in (None, 1, 2):
        theta = start.copy()
        optimiser = Optimiser(update, theta, start.size - 7, clip=clip, decoupled=0.01)
        with TaskTeam(threads or 1) as team:
            for _ in range(3):
                optimiser.step(gradient.copy(), 0.01, 0.1, team if threads else None)
        ends.append((theta, optimiser.v, optimiser.r))
    for found in ends[1:]:
        for part, wanted in zip(found, ends[0], strict=True):
            np.testing.assert_array_equal(part, wanted)
