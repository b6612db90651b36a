import numpy as np
import pytest
from sklearn.datasets import load_diabetes

from learnable import ExtraTreesRegressor, RandomForestRegressor
from learnable.core import ModelFileError, ParameterError
from learnable.ensembles.forest.grow import LeafTargets, rows_by_leaf


def weights_by_hand(forest, X, x):
    """Return w_i(x) by the definition: rows in x's leaves, by their number of draws."""
    w = np.zeros(len(X))
    mine, theirs = forest.apply(x[None])[0], forest.apply(X)
    for t, rows in enumerate(forest.estimators_samples_):
        counts = np.bincount(rows, minlength=len(X)) * (theirs[:, t] == mine[t])
        w += counts / counts.sum() / forest.trees_.n_trees
    return w


def test_quantiles_are_those_of_the_weights_and_their_mean_is_the_prediction():
    X, y = load_diabetes(return_X_y=True)
    forest = RandomForestRegressor(15, min_samples_leaf=4, max_features="third", random_state=0).fit(X[:300], y[:300])
    levels = np.array([0.0, 0.1, 0.5, 0.83, 1.0])
    found = forest.predict_quantiles(X[300:320], levels)
    for i in range(20):
        w = weights_by_hand(forest, X[:300], X[300 + i])
        np.testing.assert_allclose(w.sum(), 1.0)
        np.testing.assert_allclose(w @ y[:300], forest.predict(X[300 + i : 301 + i])[0], rtol=1e-12)
        order = np.argsort(y[:300])
        cdf, used = np.cumsum(w[order]), y[:300][order]
        held = used[w[order] > 0]
        by_hand = [used[np.argmax(cdf >= q - 1e-9)] if q > 0 else held[0] for q in levels]
        np.testing.assert_array_equal(found[i], by_hand)


def test_levels_come_back_in_the_order_they_were_asked_for():
    X, y = load_diabetes(return_X_y=True)
    forest = RandomForestRegressor(10, min_samples_leaf=5, random_state=0).fit(X, y)
    up, down = forest.predict_quantiles(X[:9], [0.1, 0.5, 0.9]), forest.predict_quantiles(X[:9], [0.9, 0.5, 0.1])
    assert np.array_equal(up, down[:, ::-1])
    assert (np.diff(up, axis=1) >= 0).all()
    lower, upper = forest.predict_interval(X[:9], level=0.8)
    assert np.array_equal(np.c_[lower, upper], up[:, [0, 2]])
    for wrong in (1.5, -0.1):
        with pytest.raises(ParameterError, match="levels"):
            forest.predict_quantiles(X, [wrong])
    with pytest.raises(ParameterError, match="level must be between"):
        forest.predict_interval(X, level=1.0)


@pytest.mark.parametrize("forest", [RandomForestRegressor, ExtraTreesRegressor])
def test_intervals_cover_new_rows_where_the_noise_grows(forest):
    """Noise of deviation 0.1 + 0.4x: intervals of level 0.9 must cover both halves, which one width could not."""
    rng = np.random.default_rng(0)

    def draw(n):
        x = rng.uniform(0, 2, (n, 1))
        return x, np.sin(3 * x[:, 0]) + (0.1 + 0.4 * x[:, 0]) * rng.standard_normal(n)

    model = forest(100, min_samples_leaf=20, random_state=0).fit(*draw(2000))
    X, y = draw(2000)
    lower, upper = model.predict_interval(X, level=0.9)
    inside = (lower <= y) & (y <= upper)
    for half in (X[:, 0] < 1, X[:, 0] >= 1):
        assert 0.87 < inside[half].mean() < 0.97
    assert (upper - lower)[X[:, 0] > 1.5].mean() > 2 * (upper - lower)[X[:, 0] < 0.5].mean()


def test_weights_of_rows_are_weights_of_targets():
    X = np.zeros((4, 1))
    y, weight = np.array([1.0, 2.0, 3.0, 4.0]), np.array([1.0, 1.0, 1.0, 7.0])
    forest = ExtraTreesRegressor(3, random_state=0).fit(X, y, weight)
    assert forest.predict_quantiles(X[:1], [0.2, 0.29, 0.31]).tolist() == [[2.0, 3.0, 4.0]]


def test_rows_by_leaf():
    leaf = np.array([4, 2, -1, 4, 2], dtype=np.int32)
    assert rows_by_leaf(leaf, np.array([0, 0, 1, 3, 4]), 5).tolist() == [1, 4, 0, 0, 3]


@pytest.mark.parametrize("damage", ["rows", "sizes", "y", "weight", "nan"])
def test_damaged_targets_are_refused(damage):
    X, y = load_diabetes(return_X_y=True)
    forest = RandomForestRegressor(3, random_state=0).fit(X, y)
    held = forest.leaves_
    held.check(forest.trees_, True, 1)
    rows, sizes, targets, weight = held.rows.copy(), held.sizes.copy(), held.y.copy(), None
    if damage == "rows":
        rows[5] = 442
    elif damage == "sizes":
        sizes[0] += 1
    elif damage == "y":
        targets = targets[:, :0]
    elif damage == "weight":
        weight = np.zeros(442)
    else:
        targets[3] = np.nan
    with pytest.raises(ModelFileError, match="do not fit"):
        LeafTargets(rows, sizes, targets, weight).check(forest.trees_, True, 1)
