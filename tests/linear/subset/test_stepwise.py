"""Steps forward and backward: refits, the known failures on the cement data, F-tests, proofs."""

import copy

import numpy as np
import pytest
from scipy import stats
from sklearn.datasets import load_diabetes
from sklearn.model_selection import KFold
from tests.linear.subset.tables import hald, noisy
from tests.oracles.subsets import backward, best_of_each_size, centred, forward, rss

import learnable as ln
from learnable.core.errors import ParameterError
from learnable.linear import BackwardStepwise, ForwardStepwise

BOTH = (ForwardStepwise, BackwardStepwise)


@pytest.mark.parametrize("seed", range(5))
def test_every_step_is_that_of_refits(seed):
    X, y = noisy(9, n=30, seed=seed, spread=2.0)
    assert ForwardStepwise().fit(X, y).order_.tolist() == forward(X, y)
    assert BackwardStepwise().fit(X, y).order_.tolist() == backward(X, y)[::-1]


def test_the_known_failures_on_the_cement_data():
    """Forward takes x4 first and then has {x4, x1}, RSS 74.7621, where {x1, x2} has 57.9045; backward ends with x2."""
    X, y = hald()
    ahead = ForwardStepwise(size=2).fit(X, y)
    assert ahead.order_[:2].tolist() == [3, 0]
    assert ahead.objective_path_[2] == pytest.approx(74.76211216, rel=1e-9)
    assert ahead.certificate_.bound == pytest.approx(74.76211216 / 57.90448318 - 1.0, rel=1e-7)
    back = BackwardStepwise(size=1).fit(X, y)
    assert np.flatnonzero(back.support_).tolist() == [1]
    assert back.certificate_.bound == pytest.approx(906.33634352 / 883.86691690 - 1.0, rel=1e-7)
    assert ln.verify(ahead, X, y)
    assert ln.verify(back, X, y)


def test_forward_misses_the_best_five_columns_of_the_diabetes_data():
    X, y = load_diabetes(return_X_y=True, scaled=False)
    model = ForwardStepwise(size=5).fit(X, y)
    assert model.objective_path_[5] == pytest.approx(1310870.855, abs=1e-2)
    assert model.certificate_.bound == pytest.approx(1310870.855 / 1287881.155 - 1.0, rel=1e-5)


@pytest.mark.parametrize("cls", BOTH)
@pytest.mark.parametrize("criterion", ["aic", "bic"])
def test_the_criterion_is_least_on_the_path(cls, criterion):
    X, y = noisy(10, seed=3, spread=3.0)
    model = cls(criterion=criterion).fit(X, y)
    A, b = centred(X, y)
    price = 2.0 if criterion == "aic" else np.log(len(y))
    costs = [len(y) * np.log(rss(A, b, model.order_[:k])) + price * k for k in range(11)]
    assert int(model.support_.sum()) == int(np.argmin(costs))
    assert ln.verify(model, X, y)


@pytest.mark.parametrize("level", [0.01, 0.2])
def test_f_tests_end_the_path(level):
    X, y = noisy(8, seed=4, spread=3.0)
    A, b = centred(X, y)

    def p_value(small, large):
        freedom = len(y) - len(large) - 1
        return stats.f.sf((rss(A, b, small) / rss(A, b, large) - 1.0) * freedom, 1, freedom)

    ahead = ForwardStepwise(criterion="f", p_value=level).fit(X, y)
    k = int(ahead.support_.sum())
    assert all(p_value(ahead.order_[:i], ahead.order_[: i + 1]) <= level for i in range(k))
    assert k == 8 or p_value(ahead.order_[:k], ahead.order_[: k + 1]) > level
    back = BackwardStepwise(criterion="f", p_value=level).fit(X, y)
    k = int(back.support_.sum())
    assert k == 0 or p_value(back.order_[: k - 1], back.order_[:k]) <= level
    assert all(p_value(back.order_[:i], back.order_[: i + 1]) > level for i in range(k, 8))
    assert ln.verify(ahead, X, y)
    assert ln.verify(back, X, y)


@pytest.mark.parametrize("cls", BOTH)
def test_required_columns_stay(cls):
    X, y = noisy(7, seed=5)
    model = cls(size=3, required=[6, 4]).fit(X, y)
    assert model.support_[[4, 6]].all()
    assert model.order_[:2].tolist() == [4, 6]
    assert ln.verify(model, X, y)
    with pytest.raises(ParameterError, match="required columns, 2"):
        cls(size=1, required=[6, 4]).fit(X, y)


@pytest.mark.parametrize("cls", BOTH)
def test_dependent_columns_and_wide_tables(cls):
    X, y = noisy(4, seed=6)
    wide = np.column_stack([X, X[:, 0], np.ones(len(y))])
    model = cls().fit(wide, y)
    assert ln.verify(model, wide, y)
    expected = best_of_each_size(wide, y)
    assert model.objective_path_[-1] == pytest.approx(expected[6][0], rel=1e-8)
    few = cls(size=2).fit(*noisy(12, n=6, seed=7))
    assert few.support_.sum() == 2


@pytest.mark.parametrize("cls", BOTH)
def test_another_order_is_refused(cls):
    X, y = noisy(7, seed=8, spread=2.0)
    model = cls(size=5).fit(X, y)
    assert ln.verify(model, X, y)
    forged = copy.deepcopy(model)
    forged.order_[[1, 2]] = forged.order_[[2, 1]]
    A, b = centred(X, y)
    forged.objective_path_ = np.array([rss(A, b, forged.order_[:k]) for k in range(8)])
    assert not ln.verify(forged, X, y)


def test_weights_are_repetitions():
    X, y = noisy(6, n=25, seed=9, spread=2.0)
    times = np.random.default_rng(0).integers(1, 4, size=25)
    for cls in BOTH:
        weighted = cls().fit(X, y, times.astype(float))
        repeated = cls().fit(np.repeat(X, times, axis=0), np.repeat(y, times))
        np.testing.assert_array_equal(weighted.order_, repeated.order_)
        np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-9)


@pytest.mark.parametrize("kind", [ForwardStepwise, BackwardStepwise])
def test_folds_choose_the_size(kind):
    rng = np.random.default_rng(9)
    X = rng.normal(size=(50, 5))
    y = X @ [2.0, 0, 0, -1.0, 0] + rng.normal(size=50)
    model = kind(criterion="cv", cv=4).fit(X, y)
    assert model.cv_errors_.shape == (6, 4)
    assert model.support_.sum() == np.argmin(model.cv_errors_.mean(axis=1))
    for number, (train, test) in enumerate(KFold(4).split(X)):
        first = kind(size=1).fit(X[train], y[train])
        assert model.cv_errors_[1, number] == pytest.approx(np.mean((y[test] - first.predict(X[test])) ** 2))
    assert ln.verify(model, X, y)
    model.cv_errors_ = model.cv_errors_ * 1.01
    assert not ln.verify(model, X, y)
