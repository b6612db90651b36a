"""AdaBoost.R2 against its formulas and scikit-learn."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_diabetes
from sklearn.ensemble import AdaBoostRegressor as SklearnAdaBoost
from sklearn.tree import DecisionTreeRegressor

import learnable as ln
from learnable.core.errors import ModelFileError, ParameterError
from learnable.ensembles import AdaBoostRegressor
from learnable.ensembles.adaboost.regressor import relative_losses, round_weight, weighted_median
from learnable.linear import Ridge

LOSSES = ("linear", "square", "exponential")


def curve(seed=0, n=400):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-3, 3, (n, 3))
    return X, np.sin(2 * X[:, 0]) + 0.3 * X[:, 1] + 0.1 * rng.standard_normal(n)


@pytest.mark.parametrize("loss", LOSSES)
def test_it_is_as_good_as_scikit_learns(loss):
    X, y = load_diabetes(return_X_y=True)
    test = np.arange(len(y)) % 3 == 0
    scores = []
    for cls in (AdaBoostRegressor, SklearnAdaBoost):
        fits = [cls(n_estimators=30, loss=loss, random_state=seed).fit(X[~test], y[~test]) for seed in range(3)]
        scores.append(np.mean([model.score(X[test], y[test]) for model in fits]))
    assert scores[0] > scores[1] - 0.03


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("rate", [1.0, 0.4])
def test_errors_and_weights_follow_from_the_learners(loss, rate):
    X, y = curve()
    model = AdaBoostRegressor(Ridge(), n_estimators=6, loss=loss, learning_rate=rate, random_state=0).fit(X, y)
    D = np.full(len(y), 1 / len(y))
    for learner, error, weight in zip(
        model.estimators_, model.estimator_errors_, model.estimator_weights_, strict=True
    ):
        L = np.abs(learner.predict(X) - y)
        L /= L.max()
        L = {"linear": L, "square": L**2, "exponential": 1 - np.exp(-L)}[loss]
        assert error == pytest.approx(D @ L, rel=1e-10)
        beta = error / (1 - error)
        assert weight == pytest.approx(rate * np.log(1 / beta), rel=1e-10)
        D = D * beta ** ((1 - L) * rate)
        D /= D.sum()


def test_boosting_beats_one_tree():
    X, y = curve(1, 2000)
    model = AdaBoostRegressor(n_estimators=40, random_state=0).fit(X[::2], y[::2])
    tree = DecisionTreeRegressor(max_depth=3).fit(X[::2], y[::2])
    assert model.score(X[1::2], y[1::2]) > tree.score(X[1::2], y[1::2]) + 0.1


def test_stages_end_at_the_prediction():
    X, y = curve()
    model = AdaBoostRegressor(n_estimators=7, random_state=0).fit(X, y)
    stages = list(model.staged_predict(X))
    np.testing.assert_array_equal(stages[-1], model.predict(X))
    assert len(stages) == len(model.estimators_) == len(list(model.staged_score(X, y)))
    assert model.feature_importances_.sum() == pytest.approx(1.0)


@given(st.integers(0, 10**6), st.integers(1, 9))
def test_the_weighted_median(seed, T):
    rng = np.random.default_rng(seed)
    predictions, weights = rng.integers(5, size=(4, T)).astype(float), rng.random(T) + 0.01
    for row, found in zip(predictions, weighted_median(predictions, weights), strict=True):
        assert weights[row <= found].sum() >= weights.sum() / 2 - 1e-12
        assert weights[row < found].sum() < weights.sum() / 2 + 1e-12


def test_a_regressor_without_error_decides():
    X = np.arange(8.0)[:, None]
    model = AdaBoostRegressor(n_estimators=50, random_state=1).fit(X, np.repeat([0.0, 1.0], 4))
    np.testing.assert_array_equal(model.predict(X), np.repeat([0.0, 1.0], 4))
    assert round_weight(0.0, 1.0, [2.0, 3.0]) == 6.0
    assert round_weight(0.7, 1.0, []) == 1.0


def test_constant_targets():
    model = AdaBoostRegressor(n_estimators=5, random_state=0).fit([[0.0], [1.0], [2.0]], [4.0, 4.0, 4.0])
    np.testing.assert_array_equal(model.predict([[7.0]]), [4.0])
    np.testing.assert_array_equal(relative_losses(np.ones(2), np.ones(2), "linear"), [0.0, 0.0])


@pytest.mark.threaded
def test_the_same_bits_for_any_number_of_threads_and_seeds_matter():
    X, y = curve(2, 3000)
    one, two = (AdaBoostRegressor(n_estimators=5, random_state=3, n_jobs=j).fit(X, y) for j in (1, 2))
    np.testing.assert_array_equal(one.predict(X), two.predict(X))
    other = AdaBoostRegressor(n_estimators=5, random_state=4).fit(X, y)
    assert (other.predict(X) != one.predict(X)).any()
    rounded = np.where(np.abs(X) < 1, 0.0, np.round(X, 1))
    dense = AdaBoostRegressor(n_estimators=5, random_state=3).fit(rounded, y)
    stored = AdaBoostRegressor(n_estimators=5, random_state=3).fit(sp.csr_array(rounded), y)
    np.testing.assert_allclose(stored.predict(sp.csr_array(rounded)), dense.predict(rounded), rtol=1e-10)


@pytest.mark.parametrize("estimator", [None, Ridge()])
def test_a_round_trip(tmp_path, estimator):
    X, y = curve()
    model = AdaBoostRegressor(estimator, n_estimators=4, random_state=0).fit(X, y)
    ln.save(model, tmp_path / "m.safetensors")
    loaded = ln.load(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    assert ln.verify(loaded, X, y)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("estimator_weights_", np.ones(2)),
        ("estimator_weights_", np.array([1.0, np.inf, 1.0])),
        ("estimator_weights_", np.array([-1.0, 2.0, 1.0])),
        ("trees_", None),
        ("models_", []),
        ("n_features_in_", 0),
    ],
)
def test_unsound_files_are_refused(tmp_path, name, value):
    X, y = curve()
    model = AdaBoostRegressor(n_estimators=3, random_state=0).fit(X, y)
    setattr(model, name, value)
    with pytest.raises(ModelFileError):
        ln.save(model, tmp_path / "m.safetensors")


def test_bad_parameters():
    with pytest.raises(ParameterError, match="AdaBoostRegressor: loss must be one of 'linear'"):
        AdaBoostRegressor(loss="cubic").fit([[0.0], [1.0]], [0.0, 1.0])


def test_a_time_limit_returns_what_there_is():
    X, y = curve(0, 3000)
    model = AdaBoostRegressor(n_estimators=10**6, max_seconds=0.1, random_state=0).fit(X, y)
    assert 1 <= len(model.estimator_weights_) < 10**5
