"""What hmmlearn's users read of a fit."""

import logging

import numpy as np
import pytest

from learnable import CategoricalHMM, GaussianHMM
from learnable.sequences.hmm import ConvergenceMonitor

X = np.concatenate([np.random.default_rng(0).normal(size=(60, 2)), np.random.default_rng(1).normal(5, 1, (60, 2))])


def test_the_monitor_has_the_objective_of_every_step():
    model = GaussianHMM(2, n_iter=100, tol=1e-3, random_state=0)
    assert model.monitor_.tol == 1e-3 and model.monitor_.n_iter == 100 and not model.monitor_.converged
    monitor = model.fit(X).monitor_
    assert monitor.converged and monitor.iter == len(model.bound_history_) + 1
    np.testing.assert_array_equal(list(monitor.history)[:-1], model.bound_history_)
    assert (np.diff(monitor.history) >= -1e-9).all()


def test_a_monitor_that_is_set_is_told():
    model = GaussianHMM(2, n_iter=100, random_state=0)
    model.monitor_ = ConvergenceMonitor(model.monitor_.tol, model.monitor_.n_iter)
    assert model.fit(X).monitor_.iter == len(model.bound_history_) + 1


def test_no_steps_leave_the_start():
    model = GaussianHMM(2, n_iter=0, init_params="", random_state=0)
    model.startprob_, model.transmat_ = np.full(2, 0.5), np.full((2, 2), 0.5)
    model.means_, model.covars_ = np.array([[0.0, 0.0], [5.0, 5.0]]), np.ones((2, 2))
    with pytest.warns(UserWarning, match="stopped"):
        model.fit(X)
    assert model.means_.tolist() == [[0.0, 0.0], [5.0, 5.0]] and model.n_iter_ == 0


@pytest.mark.parametrize("shape", [(2,), (2, 1), (2, 1, 1)])
def test_spherical_variances_in_hmmlearns_shapes(shape):
    model = GaussianHMM(2, "spherical")
    model.startprob_, model.transmat_ = np.full(2, 0.5), np.full((2, 2), 0.5)
    model.means_, model.covars_ = np.array([[0.0, 0.0], [5.0, 5.0]]), np.reshape([1.0, 2.0], shape)
    assert model.sample(20, random_state=0)[0].shape == (20, 2) and np.isfinite(model.score(X))


def test_numbers_of_features_and_symbols():
    assert GaussianHMM(2, random_state=0).fit(X).n_features == 2
    symbols = np.array([[0], [1], [2], [1], [0], [2]])
    assert CategoricalHMM(2).n_features is None
    assert CategoricalHMM(2, random_state=0).fit(symbols).n_features == 3
    assert CategoricalHMM(2, n_features=5, random_state=0).fit(symbols).n_features == 5


def test_what_is_set_and_drawn_anew_is_said(caplog):
    model = GaussianHMM(2, random_state=0)
    model.startprob_ = np.array([0.9, 0.1])
    with caplog.at_level(logging.WARNING):
        model.fit(X)
    assert "startprob_ is set, but will be overwritten" in caplog.text
