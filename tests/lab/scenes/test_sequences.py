"""Decoding: the scene's log-probability is that of its path, by the formula written out."""

import numpy as np
import pytest
from scipy.stats import poisson

from learnable.lab import SCENES


def test_the_log_probability_is_that_of_the_path():
    series, model, _ = SCENES["hmm"].read()
    step = SCENES["hmm"].steps(n_steps=4)[1]
    n = int(step.title.split()[0])
    model.fit(series)
    _, path = model.decode(series[:n])
    total = np.log(model.startprob_[path[0]]) + np.log(model.transmat_[path[:-1], path[1:]]).sum()
    total += poisson.logpmf(series[:n, 0], model.lambdas_[path, 0]).sum()
    assert step.numbers["log p(x, z)"] == pytest.approx(total, rel=1e-9)
    assert step.numbers["changes of state"] == np.sum(path[1:] != path[:-1])


def test_numbers_that_are_no_counts_get_normal_states():
    series = np.r_[np.zeros(15), np.ones(15)] + 0.1 * np.random.default_rng(0).normal(size=30)
    steps = SCENES["hmm"].steps({"level": series}, n_steps=3)
    assert steps[-1].numbers["changes of state"] == 1
