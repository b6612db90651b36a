"""Blends: greedy weights never lose to the best member, and a blend is saved and verified with its members."""

import numpy as np
import pytest

import learnable as ln
from learnable.core.errors import ParameterError
from learnable.meta import BlendClassifier, BlendRegressor, greedy_weights


@pytest.mark.parametrize("seed", range(5))
def test_the_blend_is_never_worse_than_its_best_member(seed):
    rng = np.random.default_rng(seed)
    y = rng.normal(size=200)
    predictions = [y + rng.normal(scale=scale, size=200) for scale in (0.5, 0.7, 3.0)]

    def loss(p):
        return float(np.mean((p - y) ** 2))

    weights = greedy_weights(predictions, loss)
    assert weights.sum() == pytest.approx(1.0)
    assert loss(sum(w * p for w, p in zip(weights, predictions, strict=True))) <= min(map(loss, predictions)) + 1e-15
    assert weights[2] < weights[0]


def test_weights_of_no_use_are_equal():
    assert greedy_weights([np.zeros(2), np.ones(2)], lambda p: np.nan).tolist() == [0.5, 0.5]


@pytest.mark.parametrize("share", [0.06, 0.15, 0.3])
def test_a_model_that_deserves_a_small_share_gets_it(share):
    """Of two unbiased models with errors of variances 1 and (1 − share)/share the best share is that of the second."""
    rng = np.random.default_rng(0)
    y = rng.normal(size=40_000)
    good = y + rng.normal(size=y.size)
    bad = y + np.sqrt((1 - share) / share) * rng.normal(size=y.size)

    def loss(prediction):
        return float(np.mean((prediction - y) ** 2))

    weights = greedy_weights([good, bad], loss)
    assert weights[1] == pytest.approx(share, abs=0.02)
    assert loss(weights[0] * good + weights[1] * bad) < loss(good)


def test_predictions_are_the_weighted_mean_and_survive_a_file(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    y = X[:, 0] ** 2 + X[:, 1]
    members = [ln.Ridge(), ln.RandomForestRegressor(n_estimators=5, random_state=0)]
    model = BlendRegressor(members, weights=[1.0, 3.0]).fit(X, y)
    expected = 0.25 * members[0].fit(X, y).predict(X) + 0.75 * members[1].fit(X, y).predict(X)
    assert np.allclose(model.predict(X), expected, rtol=1e-12)
    ln.save(model, tmp_path / "blend.safetensors")
    loaded = ln.load(tmp_path / "blend.safetensors")
    assert np.array_equal(loaded.predict(X), model.predict(X))
    assert ln.verify(loaded, X, y)


@pytest.mark.parametrize("damage", ["weights", "member", "rows"])
def test_verify_covers_the_members_and_the_weights(damage):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = X @ [1.0, 2.0, 3.0] + rng.normal(size=60)
    model = BlendRegressor([ln.Ridge(), ln.Lasso(alpha=0.1)], weights=[1.0, 1.0]).fit(X, y)
    assert ln.verify(model, X, y)
    if damage == "weights":
        model.weights_ = np.array([0.6, 0.4])
    elif damage == "member":
        model.members_[1].coef_ = model.members_[1].coef_ + 0.01
    else:
        y = y + 1.0
    assert not ln.verify(model, X, y)


def test_members_without_probabilities_are_refused():
    X = np.arange(12.0).reshape(-1, 1)
    with pytest.raises(ParameterError, match="LinearSVC gives no probabilities"):
        BlendClassifier([ln.LinearSVC()]).fit(X, X[:, 0] > 5)
    with pytest.raises(ParameterError, match="one number for each of 1"):
        BlendClassifier([ln.GaussianNB()], weights=[1, 2]).fit(X, X[:, 0] > 5)
