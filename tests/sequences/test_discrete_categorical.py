"""Symbols: estimates, priors, missing symbols."""

import numpy as np
import pytest

from learnable import CategoricalHMM
from learnable.core.errors import ParameterError


def test_one_state_is_the_table_of_shares():
    X = np.array([0, 2, 2, 1, 2, np.nan])[:, None]
    np.testing.assert_allclose(CategoricalHMM(1).fit(X).emissionprob_, [[0.2, 0.2, 0.6]])
    smoothed = CategoricalHMM(1, emissionprob_prior=2.0, n_features=4).fit(X).emissionprob_
    np.testing.assert_allclose(smoothed, np.array([[2, 2, 4, 1]]) / 9)


def test_a_hidden_state_that_shows_itself_is_counted():
    # With emissions that name the state, Baum–Welch is the counting of moves.
    model = CategoricalHMM(2, init_params="", n_iter=50)
    model.startprob_, model.transmat_, model.emissionprob_ = np.full(2, 0.5), np.full((2, 2), 0.5), np.eye(2)
    model.fit(np.array([0, 0, 1, 1, 1, 0, 1])[:, None])
    np.testing.assert_allclose(model.transmat_, [[1 / 3, 2 / 3], [1 / 3, 2 / 3]], atol=1e-12)
    np.testing.assert_allclose(model.startprob_, [1, 0], atol=1e-12)


def test_forecasts_are_probabilities_of_symbols():
    model = CategoricalHMM(2)
    model.startprob_, model.transmat_ = np.full(2, 0.5), np.array([[0.9, 0.1], [0.3, 0.7]])
    model.emissionprob_ = np.array([[0.5, 0.5, 0.0], [0.0, 0.1, 0.9]])
    far = model.forecast([[0]], steps=300)[0, -1]
    np.testing.assert_allclose(far, np.array([0.75, 0.25]) @ model.emissionprob_, atol=1e-9)


def test_a_table_of_the_wrong_size_is_refused():
    model = CategoricalHMM(2, n_features=3)
    model.startprob_, model.transmat_, model.emissionprob_ = np.full(2, 0.5), np.eye(2), np.eye(2)
    with pytest.raises(ParameterError, match="emissionprob_ must have"):
        model.score([[0]])
