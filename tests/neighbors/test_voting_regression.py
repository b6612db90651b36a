"""The regressor against scikit-learn's, one and several targets."""

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsRegressor as Reference

from learnable import KNeighborsRegressor
from learnable.core.errors import ModelFileError


@pytest.mark.parametrize("weights", ["uniform", "distance", lambda distance: 1 / (1 + distance)])
@pytest.mark.parametrize("targets", [(), (1,), (3,)])
def test_it_is_scikit_learns(weights, targets):
    rng = np.random.default_rng(0)
    X, Q, y = rng.normal(size=(300, 5)), rng.normal(size=(80, 5)), rng.normal(size=(300, *targets))
    ours = KNeighborsRegressor(7, weights=weights).fit(X, y)
    theirs = Reference(7, weights=weights).fit(X, y)
    found, expected = ours.predict(Q), theirs.predict(Q)
    np.testing.assert_allclose(found, expected.reshape(found.shape), rtol=1e-10, atol=1e-13)
    assert ours.score(Q, y[:80]) == pytest.approx(theirs.score(Q, y[:80]), abs=1e-10)


def test_all_rows_give_the_mean_and_one_row_its_own_target():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(40, 2)), rng.normal(size=40)
    np.testing.assert_allclose(KNeighborsRegressor(40).fit(X, y).predict(X), np.full(40, y.mean()), rtol=1e-12)
    assert (KNeighborsRegressor(1).fit(X, y).predict(X) == y).all()


@pytest.mark.parametrize(
    "targets", [None, np.zeros(39), np.full(40, np.nan), np.zeros(40, dtype=int), np.zeros((40, 1, 1))]
)
def test_hostile_targets_are_refused(targets):
    model = KNeighborsRegressor().fit(np.eye(40), np.arange(40.0))
    model.targets_ = targets
    with pytest.raises(ModelFileError, match="targets_"):
        model._check_loaded()
