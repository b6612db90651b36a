"""Boosting on histograms: XGBoost's formulas, learned branches, constraints, early stopping, threads."""

import time

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn.ensemble as other
from scipy.special import expit
from sklearn.datasets import make_classification, make_friedman1
from tests.oracles import gradient_boosting as oracle
from threadpoolctl import threadpool_limits

from learnable import HistGradientBoostingClassifier, HistGradientBoostingRegressor, load, save, verify
from learnable.core.errors import DataError, ModelFileError, ParameterError
from learnable.risk.losses import LogisticLoss, SquaredHingeLoss

X, Y = make_friedman1(600, n_features=6, noise=1.0, random_state=0)
XC, YC = make_classification(600, 6, n_informative=4, n_classes=3, random_state=0)


def same_trees(a, b):
    names = ("start", "feature", "threshold", "left", "right", "missing_left", "value")
    return all(np.array_equal(getattr(a.trees_, name), getattr(b.trees_, name)) for name in names)


# XGBoost's formulas


@pytest.mark.sampled(6)
@pytest.mark.parametrize("reg_lambda, gamma", [(0.0, 0.0), (1.0, 0.05), (3.0, 0.4)])
@pytest.mark.parametrize("seed", range(50))
def test_trees_are_those_of_brute_force(reg_lambda, gamma, seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(40, 3)).round(2)
    y = (x[:, 0] * x[:, 1] + 0.3 * rng.normal(size=40) > 0).astype(int)
    model = HistGradientBoostingClassifier(
        max_iter=4, learning_rate=0.5, max_depth=3, max_leaf_nodes=None, min_samples_leaf=2, reg_lambda=reg_lambda,
        gamma=gamma, min_hessian=0.0,
    ).fit(x, y)  # fmt: skip
    F = np.full(40, np.log(y.mean() / (1 - y.mean())))
    assert model.trees_.n_trees == 4
    for round_ in range(4):
        p = expit(F)
        F = F + 0.5 * oracle.follow(
            model.trees_.tree(round_), x, p - y, p * (1 - p), reg_lambda, gamma, depth=3, min_samples_leaf=2
        )
    np.testing.assert_allclose(model.decision_function(x), F, rtol=0, atol=1e-9)


def test_published_formula_on_four_rows():
    """Leaves −G/(H + λ) by hand: logistic loss at F = 0 has g = ±½ and h = ¼, so two equal labels give ±1/(½ + λ)."""
    x, y = np.arange(4.0)[:, None], np.array([0, 0, 1, 1])
    model = HistGradientBoostingClassifier(
        max_iter=1, learning_rate=1.0, min_samples_leaf=1, l2_regularization=1.5, min_hessian=0.0
    ).fit(x, y)
    np.testing.assert_allclose(model.decision_function(x), [-0.5, -0.5, 0.5, 0.5])


# As good as scikit-learn


@pytest.mark.parametrize("loss", ["squared_error", "absolute_error", "poisson", "gamma"])
def test_regression_is_as_good_as_scikit_learns(loss):
    y = np.abs(Y) + 0.1
    ours = HistGradientBoostingRegressor(loss=loss, max_iter=50).fit(X[:400], y[:400]).predict(X[400:])
    with threadpool_limits(1):
        theirs = other.HistGradientBoostingRegressor(loss=loss, max_iter=50).fit(X[:400], y[:400]).predict(X[400:])
    assert np.mean((ours - y[400:]) ** 2) < 1.1 * np.mean((theirs - y[400:]) ** 2)


def test_classes_are_as_good_as_scikit_learns():
    ours = HistGradientBoostingClassifier(max_iter=50).fit(XC[:400], YC[:400])
    with threadpool_limits(1):
        theirs = other.HistGradientBoostingClassifier(max_iter=50).fit(XC[:400], YC[:400])
        assert ours.score(XC[400:], YC[400:]) > theirs.score(XC[400:], YC[400:]) - 0.03
    np.testing.assert_allclose(ours.predict_proba(XC).sum(axis=1), 1.0)
    assert ours.decision_function(XC).shape == (600, 3)


# Laws


@pytest.mark.threaded
@pytest.mark.parametrize(
    "settings",
    [{}, {"subsample": 0.5}, {"subsample": 0.4, "sampling": "gradient"}, {"growth": "depth", "max_depth": 4},
     {"max_features": 0.5, "max_features_tree": 0.7, "max_features_level": 0.8}],
)  # fmt: skip
def test_one_two_and_three_threads_give_one_model(settings, monkeypatch):
    monkeypatch.setattr("learnable.core.threads.thread_budget", lambda: 3)
    rng = np.random.default_rng(0)
    x = rng.normal(size=(5000, 9))
    y = x[:, 0] * x[:, 1] + rng.normal(size=5000)
    models = [
        HistGradientBoostingRegressor(max_iter=2, random_state=0, n_jobs=n, **settings).fit(x, y) for n in (1, 2, 3)
    ]
    assert same_trees(models[0], models[1]) and same_trees(models[0], models[2])
    assert models[0].training_loss_.tolist() == models[2].training_loss_.tolist()


def test_missing_values_take_the_branch_that_was_learned():
    rng = np.random.default_rng(0)
    x = rng.uniform(size=(800, 2))
    gap = rng.random(800) < 0.3
    y = np.where(gap, 5.0, x[:, 0])
    x[gap, 0] = np.nan
    model = HistGradientBoostingRegressor(max_iter=60).fit(x, y)
    found = model.predict(np.column_stack([np.full(50, np.nan), rng.uniform(size=50)]))
    np.testing.assert_allclose(found, 5.0, atol=0.05)
    tree = model.trees_.tree(0)
    assert tree.feature[0] == 0
    child = tree.left[0] if tree.missing_left[0] else tree.right[0]
    assert tree.n_rows[child] >= gap.sum()


def test_a_split_of_categories_is_the_best_of_all_sets():
    rng = np.random.default_rng(3)
    codes = rng.integers(0, 6, 300).astype(float)
    y = np.array([3.0, -1.0, 2.0, 2.5, -2.0, 0.0])[codes.astype(int)] + rng.normal(size=300)
    model = HistGradientBoostingRegressor(
        max_iter=1,
        learning_rate=1.0,
        max_leaf_nodes=2,
        min_samples_leaf=1,
        categorical_features=[0],
        category_smoothing=0.0,
    ).fit(codes[:, None], y)
    least = min(
        sum(((part - part.mean()) ** 2).sum() for part in (y[inside], y[~inside]))
        for mask in range(1, 32)
        for inside in [np.isin(codes, np.flatnonzero([(mask >> i) & 1 for i in range(6)]))]
    )
    assert 2 * 300 * model.training_loss_[1] == pytest.approx(least)


def test_many_levels_and_strings_and_unseen_levels():
    rng = np.random.default_rng(0)
    level = rng.integers(0, 600, 4000)
    effect = rng.normal(size=600)
    frame = pd.DataFrame({"city": pd.Categorical([f"c{i}" for i in level]), "x": rng.normal(size=4000)})
    y = effect[level] + 0.1 * rng.normal(size=4000)
    model = HistGradientBoostingRegressor(max_iter=100, min_samples_leaf=2).fit(frame, y)
    assert model.is_categorical_.tolist() == [True, False]
    assert model.score(frame, y) > 0.6
    new = pd.DataFrame({"city": pd.Categorical(["nowhere", "c3"]), "x": [0.0, 0.0]})
    missing = pd.DataFrame({"city": pd.Categorical([None, "c3"]), "x": [0.0, 0.0]})
    assert np.array_equal(model.predict(new), model.predict(missing))
    by_number = HistGradientBoostingRegressor(max_iter=5, categorical_features=[0])
    a = by_number.fit(np.column_stack([level, frame["x"]]), y).predict(np.array([[3.0, 0.0]]))
    b = by_number.fit(np.column_stack([level * 10.0, frame["x"]]), y).predict(np.array([[30.0, 0.0]]))
    assert np.array_equal(a, b)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("kind", ["number", "two", "three"])
def test_rare_levels_that_are_alike_share_a_bin(kind):
    """1,000 levels with 15 rows each: unseen rows are predicted nearly as well as by each level's own mean."""
    rng = np.random.default_rng(1)
    level = rng.integers(0, 1000, 20_000)
    effect = rng.normal(size=1000)[level]
    if kind == "number":
        y = effect + rng.normal(size=20_000)
        model = HistGradientBoostingRegressor(categorical_features=[0], learning_rate=0.3)
    else:
        y = (effect + rng.normal(size=20_000) > 0).astype(int) + (effect > 1.0) * (kind == "three")
        model = HistGradientBoostingClassifier(categorical_features=[0], learning_rate=0.3, early_stopping=False)
    fit, unseen = np.arange(15_000), np.arange(15_000, 20_000)
    model.set_params(max_iter=30).fit(level[fit, None], y[fit])
    assert verify(model, level[fit, None], y[fit])
    count = np.bincount(level[fit], minlength=1000)
    targets = [y] if kind == "number" else [y == c for c in np.unique(y)]
    means = [(np.bincount(level[fit], t[fit], 1000) + t[fit].mean()) / (count + 1.0) for t in targets]
    own = np.stack([mean[level[unseen]] for mean in means], axis=1)
    if kind == "number":
        noise = np.mean((own[:, 0] - y[unseen]) ** 2)
        assert np.mean((model.predict(level[unseen, None]) - y[unseen]) ** 2) < 1.05 * noise
    else:
        right = np.mean(own.argmax(axis=1) == y[unseen])
        assert model.score(level[unseen, None], y[unseen]) > right - 0.01


def test_one_hot_columns_of_a_sparse_table_give_the_trees_of_the_dense_one():
    """In the sparse table all indicators of a byte are searched at once, in the dense one each by itself."""
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 40, (12_000, 3))
    x = np.zeros((12_000, 120))
    for j in range(3):
        x[np.arange(12_000), 40 * j + codes[:, j]] = rng.choice([1.0, -1.0, 2.0])
    y = rng.normal(size=(3, 40))[np.arange(3)[:, None], codes.T].sum(axis=0) + rng.normal(size=12_000)
    dense = HistGradientBoostingRegressor(max_iter=10, early_stopping=False).fit(x, y)
    sparse = HistGradientBoostingRegressor(max_iter=10, early_stopping=False).fit(sp.csr_array(x), y)
    assert np.array_equal(dense.trees_.feature, sparse.trees_.feature)
    np.testing.assert_allclose(sparse.predict(sp.csr_array(x)), dense.predict(x), rtol=1e-12)


def test_sparse_is_dense():
    x = np.where(X > 0.8, X, 0.0)
    dense = HistGradientBoostingRegressor(max_iter=10).fit(x, Y)
    sparse = HistGradientBoostingRegressor(max_iter=10).fit(sp.csr_array(x), Y)
    np.testing.assert_allclose(sparse.predict(sp.csr_array(x)), dense.predict(x), rtol=1e-9)


def test_constraints_hold():
    model = HistGradientBoostingRegressor(max_iter=40, monotonic_cst=[0, 0, 0, 1, -1, 0]).fit(X, Y)
    for column, sign in ((3, 1), (4, -1)):
        grid = np.tile(X[:1], (100, 1))
        grid[:, column] = np.linspace(0, 1, 100)
        assert (sign * np.diff(model.predict(grid)) >= -1e-12).all()
    apart = HistGradientBoostingRegressor(max_iter=20, interaction_cst="no_interactions").fit(X, Y)
    for t in range(apart.trees_.n_trees):
        used = apart.trees_.tree(t).feature
        assert len(np.unique(used[used >= 0])) <= 1
    pairs = HistGradientBoostingRegressor(max_iter=20, interaction_cst=[[0, 1]]).fit(X, Y)
    for t in range(pairs.trees_.n_trees):
        used = set(pairs.trees_.tree(t).feature) - {-1}
        assert used <= {0, 1} or used <= {2, 3, 4, 5}


def test_quantiles_cover_and_do_not_cross():
    rng = np.random.default_rng(0)
    x = rng.uniform(size=(6000, 2))
    y = x[:, 0] + (0.2 + x[:, 1]) * rng.normal(size=6000)
    levels = [0.1, 0.5, 0.9]
    model = HistGradientBoostingRegressor(
        loss="quantile", quantile=levels, max_iter=60, max_leaf_nodes=6, min_samples_leaf=80
    ).fit(x[:3000], y[:3000])
    q = model.predict(x[3000:])
    assert (np.diff(q, axis=1) > 0).all()
    np.testing.assert_allclose((y[3000:, None] <= q).mean(axis=0), levels, atol=0.035)
    narrow, wide = (q[:, 2] - q[:, 0])[x[3000:, 1] < 0.2], (q[:, 2] - q[:, 0])[x[3000:, 1] > 0.8]
    assert wide.mean() > 2 * narrow.mean()
    assert model.score(x[3000:], y[3000:]) > 0
    single = HistGradientBoostingRegressor(loss="quantile", quantile=0.9, max_iter=60, max_leaf_nodes=6).fit(
        x[:3000], y[:3000]
    )
    assert np.mean(y[3000:] <= single.predict(x[3000:])) == pytest.approx(0.9, abs=0.035)


def test_heavy_tails_and_wide_weights_keep_the_quality_of_float64():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(9000, 4))
    y = x[:, 0] + rng.standard_t(2, size=9000)
    w = 10.0 ** rng.uniform(-3, 3, 9000)
    for weight, target in ((None, y), (w, x[:, 0] * x[:, 1] + 0.1 * rng.normal(size=9000))):
        settings = {"max_iter": 30, "early_stopping": False, "random_state": 0}
        auto = HistGradientBoostingRegressor(**settings).fit(x, target, weight)
        exact = HistGradientBoostingRegressor(histogram="float64", **settings).fit(x, target, weight)
        assert auto.training_loss_[-1] <= 1.02 * exact.training_loss_[-1]


# Rounds


def test_early_stopping_keeps_the_best_round():
    rng = np.random.default_rng(0)
    y = X[:, 0] + rng.normal(size=600)
    model = HistGradientBoostingRegressor(max_iter=300, learning_rate=0.3)
    model.fit(X[:300], y[:300], X_val=X[300:], y_val=y[300:])
    assert model.do_early_stopping_ and model.n_iter_ < len(model.validation_score_) - 1 < 300
    assert model.n_iter_ == max(1, int(np.argmax(model.validation_score_)))
    staged = [np.mean((p - y[300:]) ** 2) / 2 for p in model.staged_predict(X[300:])]
    np.testing.assert_allclose(staged, -model.validation_score_[1 : model.n_iter_ + 1])
    assert staged[-1] == min(staged)
    scored = HistGradientBoostingClassifier(max_iter=50, early_stopping=True, scoring="accuracy", random_state=0)
    scored.fit(XC, YC)
    assert 0 < scored.validation_score_.max() <= 1


def test_a_warm_start_goes_on_as_if_it_had_not_stopped():
    straight = HistGradientBoostingClassifier(max_iter=8, subsample=0.6, random_state=3).fit(XC, YC)
    warm = HistGradientBoostingClassifier(max_iter=3, subsample=0.6, random_state=3, warm_start=True).fit(XC, YC)
    warm.set_params(max_iter=8).fit(XC, YC)
    assert np.array_equal(straight.trees_.feature, warm.trees_.feature)
    np.testing.assert_allclose(straight.training_loss_, warm.training_loss_, rtol=1e-12)
    with pytest.raises(ParameterError, match="max_iter=4 must be larger than or equal to n_iter_=8"):
        warm.set_params(max_iter=4).fit(XC, YC)


def test_staged_predictions_end_in_the_prediction():
    model = HistGradientBoostingClassifier(max_iter=5).fit(XC, YC)
    assert np.array_equal(list(model.staged_predict(XC))[-1], model.predict(XC))
    np.testing.assert_allclose(list(model.staged_predict_proba(XC))[-1], model.predict_proba(XC))
    np.testing.assert_allclose(list(model.staged_decision_function(XC))[-1], model.decision_function(XC))


def test_weights_of_classes_and_of_rows():
    y = YC > 0
    balanced = HistGradientBoostingClassifier(max_iter=10, class_weight="balanced").fit(XC, y)
    factor = np.where(y, 600 / (2 * y.sum()), 600 / (2 * (~y).sum()))
    by_rows = HistGradientBoostingClassifier(max_iter=10).fit(XC, y, factor)
    np.testing.assert_allclose(balanced.predict_proba(XC), by_rows.predict_proba(XC))
    assert balanced.baseline_[0] == pytest.approx(0.0)


def test_a_loss_of_ones_own():
    y = YC > 0
    own = HistGradientBoostingClassifier(loss=LogisticLoss(), max_iter=5).fit(XC, y)
    built_in = HistGradientBoostingClassifier(max_iter=5).fit(XC, y)
    np.testing.assert_allclose(own.predict_proba(XC), built_in.predict_proba(XC), rtol=1e-8)
    hinge = HistGradientBoostingClassifier(loss=SquaredHingeLoss(), max_iter=20).fit(XC, y)
    assert not hasattr(hinge, "predict_proba") and hinge.score(XC, y) > 0.9


# Files and errors


def test_a_thousand_trees_load_quickly_and_predict_the_same(tmp_path):
    model = HistGradientBoostingRegressor(max_iter=1000, max_leaf_nodes=7, early_stopping=False, n_jobs=1).fit(X, Y)
    save(model, tmp_path / "m.safetensors")
    begun = time.process_time()
    loaded = load(tmp_path / "m.safetensors")
    print(f"loaded {loaded.trees_.n_trees} trees in {time.process_time() - begun:.3f} s")
    assert np.array_equal(loaded.predict(X), model.predict(X))


def test_a_damaged_model_is_refused(tmp_path):
    model = HistGradientBoostingClassifier(max_iter=3).fit(XC, YC)
    model.steps_ = model.steps_[:-1]
    with pytest.raises(ModelFileError, match="rounds and trees differ"):
        save(model, tmp_path / "m.safetensors")


@pytest.mark.parametrize("scale", [1e-300, 1e-200, 1e140])
def test_any_scale_of_targets(scale):
    y = Y * scale
    model = HistGradientBoostingRegressor(max_iter=20).fit(X, y)
    plain = HistGradientBoostingRegressor(max_iter=20).fit(X, Y)
    np.testing.assert_allclose(model.predict(X) / scale, plain.predict(X), rtol=1e-6)


@pytest.mark.parametrize(
    "settings, match",
    [
        ({"loss": "quantile"}, "loss='quantile' needs a level"),
        ({"monotonic_cst": [1, 0]}, r"monotonic_cst has shape .* but the input data X has 6 features"),
        ({"interaction_cst": [[0, 9]]}, r"Interaction constraints must consist of integer indices in .* = \[0, 5\]"),
        ({"categorical_features": [9]}, "categorical_features set as integer indices must be in"),
        ({"learning_rate": 0.0}, "learning_rate must be a number > 0"),
        ({"direction": "gradient", "gamma": 1.0}, "gamma is for direction='newton'"),
        ({"loss": "gamma"}, "requires strictly positive y"),
    ],
)
def test_errors_name_owner_rule_and_value(settings, match):
    with pytest.raises((ParameterError, DataError), match=f"HistGradientBoostingRegressor: .*{match}"):
        HistGradientBoostingRegressor(**settings).fit(X, Y - Y.mean())


def test_edge_cases():
    one = HistGradientBoostingRegressor().fit(np.ones((1, 2)), [3.0])
    assert one.predict(np.zeros((2, 2))).tolist() == [3.0, 3.0]
    constant = HistGradientBoostingRegressor(min_samples_leaf=1).fit(np.ones((9, 2)), np.arange(9.0))
    np.testing.assert_allclose(constant.predict(np.zeros((1, 2))), 4.0)
    with pytest.raises(DataError, match="y_val has labels that y does not have"):
        HistGradientBoostingClassifier().fit(XC, YC, X_val=XC, y_val=YC + 7)
    with pytest.raises(DataError, match="X_val is provided, but y_val was not provided"):
        HistGradientBoostingClassifier().fit(XC, YC, X_val=XC)


@pytest.mark.parametrize(("count", "shown"), [(2, "['f00', 'f01']."), (7, "'f04', '...'].")])
def test_unknown_names_in_monotonic_cst_are_listed_up_to_five(count, shown):
    frame = pd.DataFrame({"a": [0.0, 1.0]})
    model = HistGradientBoostingRegressor(monotonic_cst={f"f{i:02}": 1 for i in range(count)})
    with pytest.raises(ParameterError) as error:
        model.fit(frame, [0.0, 1.0])
    assert f"contains {count} unexpected feature names" in str(error.value)
    assert str(error.value).endswith(shown)
