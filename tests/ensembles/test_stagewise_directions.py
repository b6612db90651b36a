"""What weak learners answer to a gradient."""

import numpy as np

from learnable import DecisionTreeClassifier
from learnable.ensembles.stagewise import direction_of


def test_the_stump_has_the_largest_inner_product_with_minus_the_gradient():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((40, 3)), np.where(rng.random(40) < 0.5, 1.0, -1.0)
    towards = rng.standard_normal((40, 1))  # also against the labels
    found = direction_of(None, X, y, None, 1, 0, 1, True)(towards)
    best = 0.0
    for j in range(3):
        for r in X[:, j]:
            h = np.where(X[:, j] <= r, 1.0, -1.0)
            best = max(best, abs(h @ towards[:, 0]), abs(towards.sum()))
    assert abs(found.outputs[:, 0] @ towards[:, 0] - best) < 1e-9


def test_nothing_descends_where_the_gradient_is_zero():
    X = np.arange(4.0)[:, None]
    for learner, signs in ((None, True), (None, False), (DecisionTreeClassifier(), False)):
        assert direction_of(learner, X, np.ones(4), None, 1, 0, 1, signs)(np.zeros((4, 1))) is None
