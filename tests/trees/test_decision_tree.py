"""Decision trees as estimators: scikit-learn's behaviour, our additions, bad inputs, files."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import config_context
from sklearn import tree as theirs
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.exceptions import NotFittedError

import learnable as ln
from learnable.core.errors import DataError, ModelFileError, ParameterError

IRIS = load_iris(return_X_y=True)
CANCER = load_breast_cancer(return_X_y=True)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"criterion": "entropy", "max_depth": 3},
        {"criterion": "log_loss", "min_samples_leaf": 0.05},
        {"max_leaf_nodes": 5},
        {"min_impurity_decrease": 0.01},
        {"class_weight": {0: 1, 1: 5, 2: 0.5}, "max_depth": 3},
        {"class_weight": "balanced", "min_samples_split": 0.3},
        {"min_weight_fraction_leaf": 0.1},
        {"ccp_alpha": 0.02},
    ],
)
def test_classifiers_predict_like_scikit_learn(settings):
    rng = np.random.default_rng(3)  # few ties: they may be broken otherwise
    X = rng.normal(size=(150, 4)).astype(np.float32)
    y = np.digitize(X[:, 0] + X[:, 1] * X[:, 2], [-0.5, 0.7])
    w = np.random.default_rng(0).integers(1, 4, len(y)).astype(float)
    if settings.get("class_weight") == "balanced":  # scikit-learn counts rows here, not weights
        w = None
    ours = ln.DecisionTreeClassifier(random_state=0, **settings).fit(X, y, w)
    other = theirs.DecisionTreeClassifier(random_state=0, **settings).fit(X, y, w)
    assert abs(ours.get_n_leaves() - other.get_n_leaves()) <= 2
    assert (ours.predict(X) == other.predict(X)).mean() > 0.93  # one leaf or two differ, by ties
    cost = [(t.impurity * t.weighted_n_node_samples)[t.children_left < 0].sum() for t in (ours.tree_, other.tree_)]
    np.testing.assert_allclose(*cost, atol=1e-9)
    assert ours.max_features_ == other.max_features_ and ours.n_classes_ == other.n_classes_


@pytest.mark.parametrize(
    "settings",
    [
        {"max_depth": 4},
        {"max_leaf_nodes": 10},
        {"criterion": "absolute_error", "max_depth": 3},
        {"criterion": "poisson", "max_depth": 3},
        {"monotonic_cst": [0, 0, 1, 1, 0, 0, -1, 0, 0, 0], "max_depth": 4},
    ],
)
def test_regressors_predict_like_scikit_learn(settings):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(442, 10)).astype(np.float32)
    y = np.abs(X[:, 2] + X[:, 3] * X[:, 4] - X[:, 6] + rng.normal(size=442))
    settings = settings | {"random_state": 0, "min_samples_leaf": 6}  # in tiny nodes there are ties
    ours = ln.DecisionTreeRegressor(**settings).fit(X, y)
    other = theirs.DecisionTreeRegressor(**settings).fit(X, y)
    np.testing.assert_allclose(ours.predict(X), other.predict(X), rtol=1e-9)
    np.testing.assert_allclose(ours.feature_importances_, other.feature_importances_, atol=1e-6)
    np.testing.assert_array_equal(ours.apply(X), other.apply(X))
    np.testing.assert_array_equal(ours.decision_path(X).toarray(), other.decision_path(X).toarray())


def test_balanced_classes_have_the_same_total_weight():
    rng = np.random.default_rng(0)
    X, y, w = rng.normal(size=(60, 2)), rng.random(60) < 0.2, rng.random(60)
    tree = ln.DecisionTreeClassifier(class_weight="balanced", max_depth=1).fit(X, y, w).tree_
    np.testing.assert_allclose(tree.value[0], 0.5)


def test_several_targets():
    X = IRIS[0]
    Y = np.column_stack([IRIS[1], IRIS[1] == 1])
    model = ln.DecisionTreeClassifier(max_depth=3).fit(X, Y)
    first, second = model.predict_proba(X)
    assert first.shape == (150, 3) and second.shape == (150, 2) and model.n_classes_ == [3, 2]
    np.testing.assert_allclose(first.sum(axis=1), 1.0)
    assert (model.predict(X) == Y).mean() > 0.97
    T = np.column_stack([X[:, 0], X[:, 1]])
    numbers = ln.DecisionTreeRegressor(max_depth=5).fit(X[:, 2:], T)
    assert numbers.predict(X[:, 2:]).shape == (150, 2)
    other = theirs.DecisionTreeRegressor(max_depth=2, random_state=0).fit(X[:, 2:].astype(np.float32), T)
    again = ln.DecisionTreeRegressor(max_depth=2).fit(X[:, 2:].astype(np.float32), T)
    np.testing.assert_allclose(again.predict(X[:, 2:]), other.predict(X[:, 2:]), rtol=1e-9)


def test_categories_need_one_question_where_thresholds_need_many():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(0, 12, 500), rng.normal(size=500)]).astype(float)
    y = np.isin(X[:, 0], [0, 3, 7, 8])
    model = ln.DecisionTreeClassifier(categorical_features=[0]).fit(X, y)
    assert model.get_n_leaves() == 2 and model.score(X, y) == 1.0
    assert ln.DecisionTreeClassifier().fit(X, y).get_n_leaves() > 4
    new = np.array([[50.0, 0.0], [np.nan, 0.0]])  # never seen, and missing: to the larger side
    larger = model.classes_[np.argmax(np.bincount(y))]
    assert (model.predict(new) == larger).all()


def test_names_of_columns_may_mark_categories():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"colour": [0, 1, 2, 0, 1, 2], "size": [1.0, 2, 3, 4, 5, 6]})
    model = ln.DecisionTreeRegressor(categorical_features=["colour"]).fit(frame, [1, 0, 1, 1, 0, 1])
    assert model.tree_.category_set(0) is not None
    with pytest.raises(ParameterError, match="categorical_features must hold numbers or names"):
        ln.DecisionTreeRegressor(categorical_features=["weight"]).fit(frame, [1, 0, 1, 1, 0, 1])


@pytest.mark.parametrize("choice", ["cv", "cv-1se"])
def test_the_pruning_may_be_chosen_by_cross_validation(choice):
    X, y = CANCER
    full = ln.DecisionTreeClassifier().fit(X, y)
    pruned = ln.DecisionTreeClassifier(ccp_alpha=choice, cv=4).fit(X, y)
    assert 1 < pruned.get_n_leaves() < full.get_n_leaves()
    assert pruned.alpha_choice_.errors.shape[1] == 4 and pruned.ccp_alpha_ == pruned.alpha_choice_.alpha
    fixed = ln.DecisionTreeClassifier(ccp_alpha=pruned.ccp_alpha_).fit(X, y)
    assert fixed.get_n_leaves() == pruned.get_n_leaves()


def test_growing_by_gini_and_pruning_by_errors():
    X, y = CANCER
    path = ln.DecisionTreeClassifier(prune_criterion="misclassification").cost_complexity_pruning_path(X, y)
    assert path.impurities[0] == 0.0 and (np.diff(path.ccp_alphas) >= 0).all()
    np.testing.assert_allclose(path.impurities[-1], min(y.mean(), 1 - y.mean()))
    other = theirs.DecisionTreeClassifier(random_state=0).cost_complexity_pruning_path(X.astype(np.float32), y)
    ours = ln.DecisionTreeClassifier().cost_complexity_pruning_path(X.astype(np.float32), y)
    np.testing.assert_allclose(ours.impurities[-1], other.impurities[-1])
    np.testing.assert_allclose(ours.ccp_alphas[-3:], other.ccp_alphas[-3:], rtol=1e-6)


@pytest.mark.threaded
@pytest.mark.parametrize("settings", [{}, {"max_features": "sqrt"}, {"splitter": "random"}, {"max_bins": 20}])
def test_the_same_bits_for_any_number_of_threads(settings):
    X, y = CANCER
    one, two = (ln.DecisionTreeClassifier(random_state=3, n_jobs=k, **settings).fit(X, y) for k in (1, 2))
    np.testing.assert_array_equal(one.tree_.threshold, two.tree_.threshold)
    np.testing.assert_array_equal(one.predict_proba(X), two.predict_proba(X))


def test_sparse_rows_are_not_densified_and_give_the_same_tree():
    rng = np.random.default_rng(0)
    X = sp.random_array((200, 1000), density=0.02, rng=rng, format="csr")
    y = (X[:, [5]].toarray().ravel() > 0) | (X[:, [7]].toarray().ravel() > 0.2)
    y[:3] = ~y[:3]
    sparse = ln.DecisionTreeClassifier(max_depth=4).fit(X, y)
    dense = ln.DecisionTreeClassifier(max_depth=4).fit(X.toarray(), y)
    np.testing.assert_array_equal(sparse.tree_.threshold, dense.tree_.threshold)
    np.testing.assert_array_equal(sparse.predict(X), dense.predict(X.toarray()))


def test_extreme_scales():
    x = np.array([-1e300, -1e-300, 0.0, 1e-300, 1e300])[:, None]
    model = ln.DecisionTreeRegressor().fit(x, np.arange(5) * 1e149)
    np.testing.assert_allclose(model.predict(x), np.arange(5) * 1e149)
    with pytest.raises(DataError, match="squares overflow"):
        ln.DecisionTreeRegressor().fit(x, np.arange(5) * 1e200)
    large = ln.DecisionTreeRegressor(criterion="absolute_error").fit(x, np.arange(5) * 1e299)
    np.testing.assert_allclose(large.predict(x), np.arange(5) * 1e299)
    tiny = ln.DecisionTreeRegressor().fit(x, np.arange(5) * 1e-299)
    np.testing.assert_allclose(tiny.predict(x), np.arange(5) * 1e-299)
    assert tiny.get_n_leaves() == 5


def test_neighbouring_floats_are_separated():
    x = np.array([1.0, np.nextafter(1.0, 2.0)])[:, None]
    assert ln.DecisionTreeClassifier().fit(x, [0, 1]).score(x, [0, 1]) == 1.0


def test_one_row_and_rows_without_weight():
    assert ln.DecisionTreeRegressor().fit([[1.0]], [2.0]).predict([[5.0]]) == [2.0]
    X, y = np.arange(6.0)[:, None], np.array([0.0, 0, 0, 9, 9, 9])
    some = ln.DecisionTreeRegressor().fit(X, y, sample_weight=[1, 1, 1, 0, 0, 0])
    assert some.get_n_leaves() == 1 and some.tree_.n_node_samples[0] == 3


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"max_depth": 0}, "max_depth must be an integer >= 1"),
        ({"min_samples_leaf": 0}, "min_samples_leaf must be"),
        ({"max_features": 10}, "max_features must be <= 4, the number of columns; got 10"),
        ({"monotonic_cst": [1, 0]}, "monotonic_cst has shape 2 but the input data X has 4 features"),
        ({"monotonic_cst": [1, 0, 0, 0]}, "not supported with multiclass"),
        ({"ccp_alpha": "best"}, "ccp_alpha must be"),
        ({"class_weight": {0: -1}}, "class_weight must hold weights >= 0"),
        ({"criterion": "mse"}, "criterion must be one of"),
        ({"max_bins": 256}, "max_bins must be"),
    ],
)
def test_bad_parameters_are_named(settings, message):
    with pytest.raises(ParameterError, match=f"DecisionTreeClassifier: {message}|{message}"):
        ln.DecisionTreeClassifier(**settings).fit(*IRIS)


def test_bad_data_are_named():
    with pytest.raises(DataError, match=r"DecisionTreeRegressor: Some value\(s\) of y are negative"):
        ln.DecisionTreeRegressor(criterion="poisson").fit([[0.0], [1.0]], [1.0, -1.0])
    with pytest.raises(DataError, match="infinity"):
        ln.DecisionTreeRegressor().fit([[np.inf], [1.0]], [1.0, 2.0])
    with pytest.raises(DataError, match="inconsistent"):
        ln.DecisionTreeClassifier().fit([[0.0], [1.0]], ["a"])


def test_one_class_is_a_tree_of_one_leaf():
    model = ln.DecisionTreeClassifier().fit([[0.0], [1.0]], ["a", "a"])
    assert model.predict([[7.0]]).tolist() == ["a"] and model.predict_proba([[7.0]]).tolist() == [[1.0]]
    assert model.get_n_leaves() == 1 and ln.verify(model, [[0.0], [1.0]], ["a", "a"])


def test_what_needs_a_fit_says_so():
    for model in (ln.DecisionTreeClassifier(), ln.DecisionTreeRegressor()):
        for method in ("predict", "apply", "decision_path"):
            with pytest.raises(NotFittedError):
                getattr(model, method)([[0.0]])


def test_a_saved_tree_predicts_the_same(tmp_path):
    X, y = CANCER
    X = X.copy()
    X[::7, 3] = np.nan
    labels = np.array(["benign", "malignant"])[y]
    for model in (
        ln.DecisionTreeClassifier(ccp_alpha="cv-1se", random_state=0).fit(X, labels),
        ln.DecisionTreeRegressor(max_leaf_nodes=7).fit(X, y),
    ):
        ln.save(model, tmp_path / "tree.safetensors")
        again = ln.load(tmp_path / "tree.safetensors")
        np.testing.assert_array_equal(model.predict(X), again.predict(X))
        np.testing.assert_array_equal(model.tree_.impurity, again.tree_.impurity)


def test_a_hostile_tree_is_refused_on_saving_and_loading():
    model = ln.DecisionTreeClassifier(max_depth=2).fit(*IRIS)
    model.trees_.left[0] = 0  # a loop
    with pytest.raises(ModelFileError, match="child does not come after its parent"):
        model._check_loaded()
    model = ln.DecisionTreeClassifier(max_depth=2).fit(*IRIS)
    model.n_features_in_ = 2  # a column outside the table
    with pytest.raises(ModelFileError, match="column is not in the table"):
        model._check_loaded()


def test_a_clone_has_the_parameters_and_no_tree():
    model = clone(ln.DecisionTreeClassifier(max_depth=2, max_bins=9).fit(*IRIS))
    assert model.max_bins == 9 and not hasattr(model, "tree_")


@pytest.mark.parametrize("Tree", [ln.DecisionTreeClassifier, ln.DecisionTreeRegressor])
def test_check_input_is_taken_and_the_input_checked_all_the_same(Tree):
    X, y = [[0.0], [1.0], [2.0]], [0, 0, 1]
    tree = Tree(random_state=0).fit(X, y, check_input=False)
    np.testing.assert_array_equal(tree.predict(X, check_input=False), y)
    np.testing.assert_array_equal(tree.apply(X, check_input=False), tree.apply(X))
    np.testing.assert_array_equal(tree.decision_path(X, check_input=False).toarray(), tree.decision_path(X).toarray())
    with pytest.raises(DataError, match="features"):
        tree.predict([[0.0, 1.0]], check_input=False)
    with pytest.raises(DataError, match="infinity"):
        tree.fit([[0.0], [np.inf]], [0, 1], check_input=False)
    with config_context(enable_metadata_routing=True), pytest.raises(TypeError, match="check_input"):
        tree.set_fit_request(check_input=True)


def test_scikit_learns_ensembles_take_these_trees():
    from sklearn.ensemble import AdaBoostClassifier, BaggingClassifier

    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    y = (X[:, 0] > 0).astype(int)
    for Ensemble in (BaggingClassifier, AdaBoostClassifier):
        model = Ensemble(ln.DecisionTreeClassifier(max_depth=3), n_estimators=5, random_state=0).fit(X, y)
        assert model.score(X, y) > 0.95
    tree = ln.DecisionTreeClassifier(random_state=0).fit(X, y)
    np.testing.assert_array_equal(tree.predict_proba(X, check_input=False), tree.predict_proba(X))
