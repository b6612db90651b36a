"""The checker of boosting by majority has eyes of its own."""

import numpy as np

from learnable import BoostByMajority
from learnable.ensembles.verify_majority import boost_by_majority


def test_it_recomputes_what_the_fit_recorded():
    X = np.random.default_rng(0).uniform(-1, 1, (300, 2))
    y = X.sum(axis=1) > 0
    model = BoostByMajority(epsilon=0.05, gamma=0.15, random_state=0).fit(X, y)
    assert boost_by_majority(model, X, y, None).value <= 1e-12
    model.vote_errors_[0, 3] += 1e-6
    assert boost_by_majority(model, X, y, None).value >= 0.9e-6
    model.vote_errors_ = model.vote_errors_[1:]
    assert boost_by_majority(model, X, y, None).value == np.inf
