"""Exact Shapley values: the definition, the sum, other libraries' numbers, every model of trees."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.oracles import shapley as oracle

from learnable import (
    AdaBoostClassifier,
    AdaBoostRegressor,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreesRegressor,
    LinearRegression,
    RandomForestClassifier,
    RandomForestRegressor,
)
from learnable.core.errors import DataError
from learnable.core.registry import REGISTRY, estimator_names, resolve
from learnable.ensembles import (
    BaggingRegressor,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    shap_interactions,
    shap_values,
)
from learnable.ensembles.explain.shap import expected_value, tree_interactions, tree_shap
from learnable.trees.layout import Trees


def table(seed, n=120, d=4, missing=0.1):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)).round(1)
    y = X[:, 0] * X[:, 1] + np.sin(2 * X[:, 2]) + 0.1 * rng.standard_normal(n)
    X[rng.random(X.shape) < missing] = np.nan
    return X, y


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([1, 2, 4, None]), st.booleans())
def test_the_values_are_those_of_the_definition(seed, depth, weighted):
    """Trees in which columns come back on a path, missing values and weights included."""
    X, y = table(seed)
    weight = np.random.default_rng(seed).random(len(y)) + 0.1 if weighted else None
    tree = DecisionTreeRegressor(max_depth=depth, random_state=seed).fit(X, y, weight).trees_
    phi, pairs = tree_shap(tree, X[:3]), tree_interactions(tree, X[:3])
    for i in range(3):
        np.testing.assert_allclose(phi[i], oracle.shapley(tree, X[i]), atol=1e-12)
        np.testing.assert_allclose(pairs[i], oracle.interactions(tree, X[i]), atol=1e-12)


def test_categories_are_followed():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(0, 40, 300), rng.standard_normal(300)]).astype(float)
    y = (X[:, 0] % 3) * X[:, 1]
    model = DecisionTreeRegressor(max_depth=5, categorical_features=[0]).fit(X, y)
    assert (model.trees_.category >= 0).any()
    X[0, 0] = np.nan
    phi = tree_shap(model.trees_, X[:4])
    for i in range(4):
        np.testing.assert_allclose(phi[i], oracle.shapley(model.trees_, X[i]), atol=1e-12)


@pytest.mark.parametrize(
    "model",
    [
        DecisionTreeClassifier(max_depth=4),
        RandomForestClassifier(n_estimators=10, random_state=0),
        RandomForestRegressor(n_estimators=10, random_state=0),
        ExtraTreesRegressor(n_estimators=10, random_state=0),
        AdaBoostClassifier(DecisionTreeClassifier(max_depth=2), n_estimators=5),
        GradientBoostingClassifier(n_estimators=5),
        HistGradientBoostingClassifier(max_iter=5),
        HistGradientBoostingRegressor(max_iter=5, loss="poisson"),
    ],
    ids=lambda model: type(model).__name__,
)
@pytest.mark.parametrize("K", [2, 3])
def test_values_and_base_sum_to_the_score_of_every_model_of_trees(model, K):
    X, y = table(1, 200, 6, missing=0.0)
    classes = hasattr(model, "predict_proba")
    target = np.digitize(y, np.quantile(y, np.arange(1, K) / K)) if classes else np.exp(0.3 * y)
    model.fit(X, target)
    found = shap_values(model, X)
    if isinstance(model, AdaBoostClassifier):
        wanted = model.raw_score(X)
    elif hasattr(model, "decision_function"):
        wanted = model.decision_function(X)
    elif classes:
        wanted = model.predict_proba(X)
    else:
        wanted = np.log(model.predict(X)) if getattr(model, "loss", "") == "poisson" else model.predict(X)
    np.testing.assert_allclose(found.values.sum(axis=1) + found.base, wanted, atol=1e-10)
    assert found.values.shape == (200, 6, *np.shape(wanted)[1:])
    pairs = shap_interactions(model, X[:7])
    np.testing.assert_allclose(pairs.sum(axis=2), found.values[:7], atol=1e-10)
    np.testing.assert_allclose(pairs, pairs.swapaxes(1, 2), atol=1e-12)


def test_a_column_that_no_tree_asks_about_has_nothing():
    X, y = table(2, missing=0.0)
    X = np.column_stack([X, np.ones(len(X))])
    model = RandomForestRegressor(n_estimators=5, random_state=0).fit(X, y)
    assert (shap_values(model, X).values[:, 4] == 0).all()
    constant = DecisionTreeRegressor().fit(X, np.ones(len(X)))
    assert (shap_values(constant, X).values == 0).all() and shap_values(constant, X).base == 1.0


def test_symmetric_columns_share_equally():
    X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], dtype=float)
    found = shap_values(DecisionTreeRegressor().fit(X, [0, 0, 0, 4]), X)
    np.testing.assert_allclose(found.values, [[-0.5, -0.5], [-1.5, 0.5], [0.5, -1.5], [1.5, 1.5]], atol=1e-12)


def test_deep_paths_stay_exact():
    """Sixty columns on one path, tiny shares: the products neither vanish nor cancel."""
    d = 60
    X = np.tril(np.ones((d + 1, d)), -1)
    y = np.arange(d + 1.0) ** 2
    model = DecisionTreeRegressor(random_state=0).fit(X, y)
    found = shap_values(model, X)
    np.testing.assert_allclose(found.values.sum(axis=1) + found.base, y, rtol=1e-10, atol=1e-8)


def test_numbers_of_lightgbm():
    """`predict(pred_contrib=True)` of LightGBM 4.7.0, for two trees of six leaves that it grew; the base comes last."""
    feature = [0, 0, -1, 1, -1, -1, 1, 1, -1, -1, -1, 2, 1, -1, 0, 2, -1, -1, -1, 1, -1, -1]
    threshold = [3.5, 1.5, 0, 7, 0, 0, 7, 2, 0, 0, 0, 6.5, 3.5, 0, 5.5, 1.5, 0, 0, 0, 3.5, 0, 0]
    left = [1, 2, -1, 4, -1, -1, 7, 8, -1, -1, -1, 1, 2, -1, 4, 5, -1, -1, -1, 9, -1, -1]
    right = [6, 3, -1, 5, -1, -1, 10, 9, -1, -1, -1, 8, 3, -1, 7, 6, -1, -1, -1, 10, -1, -1]
    count = [200, 116, 58, 58, 48, 10, 84, 69, 23, 46, 15, 200, 108, 50, 58, 49, 14, 35, 9, 92, 42, 50]
    value = np.zeros(22)
    value[[2, 4, 5, 8, 9, 10]] = (
        -3.8793103448275863,
        1.0625,
        16.3,
        -2.608695652173913,
        14.195652173913043,
        38.266666666666666,
    )
    value[[13, 16, 17, 18]] = 0.8705003689229488, 6.708426211561475, 2.5790222391486166, 11.336232079399956
    value[[20, 21]] = -5.916211551676194, -1.6250793553888798
    trees = Trees(
        start=np.array([0, 11, 22]),
        feature=np.array(feature, np.int32),
        threshold=np.array(threshold, np.float64),
        left=np.array(left, np.int32),
        right=np.array(right, np.int32),
        missing_left=np.zeros(22, np.uint8),
        category=np.full(22, -1),
        bits=np.zeros(0, np.uint32),
        impurity=np.zeros(22),
        n_rows=np.array(count),
        weight=np.array(count, np.float64),
        value=value[:, None],
    )
    trees.check(3)
    phi = tree_shap(trees, np.array([[0.0, 0.0, 0.0], [4.0, 9.0, 10.0], [1.0, 9.0, 1.0]]))[:, :, 0]
    theirs = [
        [-5.990982541376536, -6.546993072095432, 3.749165639802507],
        [13.133279169850457, 21.022998519937186, -3.2946903762746893],
        [-17.12943743026292, 9.26337746733689, 4.9151758318950955],
    ]
    np.testing.assert_allclose(phi, theirs, rtol=1e-12)
    assert expected_value(trees)[0] == pytest.approx(5.7799999977648255, rel=1e-12)


@pytest.mark.threaded
def test_any_number_of_threads_rows_and_containers_give_the_same_bits():
    X, y = table(3, 1500, missing=0.0)
    model = RandomForestRegressor(n_estimators=7, random_state=0).fit(X, y)
    whole = shap_values(model, X, n_jobs=1).values
    np.testing.assert_array_equal(whole, shap_values(model, X, n_jobs=2).values)
    np.testing.assert_array_equal(whole[:33], shap_values(model, X[:33]).values)
    np.testing.assert_array_equal(whole[:1], shap_values(model, X[:1]).values)
    np.testing.assert_array_equal(whole, shap_values(model, sp.csr_array(X)).values)


#: What the registry calls trees or ensembles, and whose score is no sum of trees that know their rows.
NO_SUMS = {"ID3Classifier", "AdaBoostRegressor", "BoostByMajority", "ForwardStagewiseAdditive"}


def tree_models():
    """Return the names of all registered models of trees whose score is a sum of trees."""
    families = ("learnable.trees.", "learnable.ensembles.")
    return [n for n in estimator_names() if REGISTRY[n].path.startswith(families) and n not in NO_SUMS]


@pytest.mark.parametrize("name", tree_models())
@pytest.mark.parametrize("K", [2, 3])
def test_every_tree_ensemble_of_the_registry_has_the_method(name, K):
    X, y = table(5, 150, 5, missing=0.0)
    model = resolve(REGISTRY[name].path)()
    small = {"n_estimators": 6, "max_iter": 6, "random_state": 0, "max_depth": 4}
    model.set_params(**{key: value for key, value in small.items() if key in model.get_params()})
    if name == "AdaBoostClassifier":
        model.set_params(estimator=DecisionTreeClassifier(max_depth=2))
    if name.startswith("Bagging"):
        model.set_params(max_features=3, max_samples=0.1, bootstrap_features=True)
    classes = hasattr(model, "predict_proba")
    model.fit(X, np.array(list("cab"))[np.digitize(y, np.quantile(y, np.arange(1, K) / K))] if classes else y)
    found = model.shap_values(X)
    if name == "AdaBoostClassifier":
        wanted = model.raw_score(X)
    elif hasattr(model, "decision_function"):
        wanted = model.decision_function(X)
    else:
        wanted = model.predict_proba(X) if classes else model.predict(X)
    np.testing.assert_allclose(found.values.sum(axis=1) + found.base, wanted, atol=1e-10)
    np.testing.assert_array_equal(found.values, shap_values(model, X).values)


def test_a_bag_of_other_models_is_refused():
    X, y = table(6, missing=0.0)
    model = BaggingRegressor(LinearRegression(), n_estimators=2).fit(X, y)
    with pytest.raises(DataError, match="sum of trees; got LinearRegression"):
        model.shap_values(X)


def test_models_that_are_no_sum_of_trees_are_refused():
    X, y = table(4, missing=0.0)
    for model in (LinearRegression(), AdaBoostRegressor(n_estimators=3), AdaBoostClassifier(n_estimators=3)):
        with pytest.raises(DataError, match="sum of trees"):
            shap_values(model.fit(X, y > 0 if "Classifier" in type(model).__name__ else y), X)
