"""Linear discriminants: scikit-learn's numbers for every solver, the definition, Pima, and laws."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.covariance import OAS
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis as Reference
from tests.oracles.generative import discriminant, normal_posterior

from learnable import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis, load, save, verify
from learnable.core.errors import DataError, ParameterError


def make(n=300, d=4, K=3, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, K, n)
    mixing = np.eye(d) + 0.3 * rng.normal(size=(d, d))
    return rng.normal(size=(n, d)) @ mixing + rng.normal(size=(K, d))[y] * 1.5, y


SETTINGS = [
    {},
    {"store_covariance": True, "n_components": 1},
    {"solver": "lsqr"},
    {"solver": "eigen"},
    {"solver": "lsqr", "shrinkage": 0.3},
    {"solver": "lsqr", "shrinkage": "auto"},
    {"solver": "eigen", "shrinkage": "auto"},
    {"solver": "eigen", "covariance_estimator": OAS()},
]


@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.parametrize("with_priors", [False, True])
@pytest.mark.parametrize("parameters", SETTINGS, ids=str)
def test_it_is_scikit_learns(parameters, with_priors, K):
    X, y = make(K=K)
    priors = [0.3, 0.7] if K == 2 else [0.2, 0.3, 0.5]
    parameters = parameters | ({"priors": priors} if with_priors else {})
    ours, theirs = LinearDiscriminantAnalysis(**parameters).fit(X, y), Reference(**parameters).fit(X, y)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), rtol=1e-7, atol=1e-13)
    np.testing.assert_allclose(ours.means_, theirs.means_, rtol=1e-12)
    if K == 2 or parameters.get("solver", "svd") == "svd":
        np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), rtol=1e-8, atol=1e-9)
    if parameters.get("solver") != "lsqr":
        np.testing.assert_allclose(abs(ours.transform(X)), abs(theirs.transform(X)), rtol=1e-8, atol=1e-9)
        np.testing.assert_allclose(
            ours.explained_variance_ratio_, theirs.explained_variance_ratio_, rtol=1e-9, atol=1e-12
        )
        assert ours.get_feature_names_out().tolist() == theirs.get_feature_names_out().tolist()
    if hasattr(theirs, "covariance_"):
        np.testing.assert_allclose(ours.covariance_, theirs.covariance_, rtol=1e-10, atol=1e-13)
    assert verify(ours, X, y)


def test_it_is_bayes_rule_with_pooled_normal_densities():
    X, y = make()
    means, pooled, _, shares = discriminant(X, y)
    expected = normal_posterior(X, means, [pooled] * 3, shares)
    for solver in ("svd", "lsqr", "eigen"):
        np.testing.assert_allclose(
            LinearDiscriminantAnalysis(solver).fit(X, y).predict_proba(X), expected, rtol=1e-8, atol=1e-14
        )


def test_pima(reference_data):
    """The Pima split of Ripley (1996): 67 of 332 test women misjudged."""
    pd = pytest.importorskip("pandas")
    train, test = (pd.read_csv(reference_data / f"pima_ripley_{part}.csv") for part in ("train", "test"))
    for solver in ("svd", "lsqr", "eigen"):
        model = LinearDiscriminantAnalysis(solver).fit(train.iloc[:, :-1], train.iloc[:, -1])
        assert (model.predict(test.iloc[:, :-1]) != test.iloc[:, -1]).sum() == 67


def test_letters_and_crabs(reference_data):
    """Test errors that scikit-learn 1.9.1 gives: letters .31175 (Statlog's split .302), spam .121607."""
    pd = pytest.importorskip("pandas")
    letters = pd.read_csv(reference_data / "letter_recognition.csv.gz")
    X, y = letters.iloc[:, :-1].to_numpy(float), letters.iloc[:, -1].to_numpy()
    assert 1 - LinearDiscriminantAnalysis().fit(X[:16_000], y[:16_000]).score(X[16_000:], y[16_000:]) == pytest.approx(
        0.31175
    )


@settings(max_examples=15)
@given(st.integers(0, 10_000))
def test_an_affine_change_of_columns_changes_nothing(seed):
    X, y = make(120, seed=seed)
    rng = np.random.default_rng(seed)
    A, b = rng.normal(size=(4, 4)) + 3 * np.eye(4), rng.normal(size=4) * 100
    one, other = LinearDiscriminantAnalysis().fit(X, y), LinearDiscriminantAnalysis().fit(X @ A + b, y)
    np.testing.assert_allclose(one.predict_proba(X), other.predict_proba(X @ A + b), rtol=1e-5, atol=1e-9)


def test_quadratic_discriminants_with_pooled_covariance_are_linear_ones():
    """With the same covariance in every class, QDA's probabilities are LDA's and its boundaries are planes."""
    X, y = make(K=2)
    centred = np.concatenate([X[y == k] - X[y == k].mean(axis=0) for k in (0, 1)])
    twin = np.concatenate([centred + 1.0, centred - 1.0])
    labels = np.repeat([0, 1], len(centred))
    linear, quadratic = (
        LinearDiscriminantAnalysis().fit(twin, labels),
        QuadraticDiscriminantAnalysis().fit(twin, labels),
    )
    np.testing.assert_allclose(quadratic.predict_proba(X), linear.predict_proba(X), rtol=1e-8, atol=1e-12)
    flat = quadratic.boundary(0, 1)
    assert flat.kind == "hyperplane" and not flat.matrix.any()
    np.testing.assert_allclose(flat.vector, linear.boundary(0, 1).vector, rtol=1e-8)


def test_the_boundary_is_where_probabilities_are_equal():
    X, y = make(d=2)
    model = LinearDiscriminantAnalysis().fit(X, y)
    for a, b in ((0, 1), (2, 0)):
        plane = model.boundary(a, b)
        log = model.predict_log_proba(X)
        np.testing.assert_allclose(plane.evaluate(X), log[:, b] - log[:, a], rtol=1e-7, atol=1e-9)
        assert plane.kind == "line" and not plane.matrix.any()


def test_directions_without_variance_are_left_out():
    X, y = make(d=3)
    wide = np.column_stack([X, X @ [1.0, -1.0, 2.0], np.full(len(X), 7.0)])
    model = LinearDiscriminantAnalysis().fit(wide, y)
    np.testing.assert_allclose(
        model.predict_proba(wide), LinearDiscriminantAnalysis().fit(X, y).predict_proba(X), rtol=1e-7, atol=1e-12
    )
    assert verify(model, wide, y)
    with pytest.raises(DataError, match="singular"):
        LinearDiscriminantAnalysis("eigen").fit(wide, y)
    assert LinearDiscriminantAnalysis("lsqr", shrinkage=0.1).fit(wide, y).certificate_.holds


def test_more_columns_than_rows():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 50)), np.arange(30) % 3
    model = LinearDiscriminantAnalysis("lsqr", shrinkage="auto").fit(X, y)
    reference = Reference("lsqr", shrinkage="auto").fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X), reference.predict_proba(X), rtol=1e-7)
    plain, theirs = LinearDiscriminantAnalysis().fit(X, y), Reference().fit(X, y)
    np.testing.assert_allclose(plain.predict_proba(X), theirs.predict_proba(X), rtol=1e-7, atol=1e-12)


@pytest.mark.threaded
def test_weights_count_rows_and_threads_change_no_bit():
    X, y = make(5000, d=20)
    w = np.random.default_rng(1).integers(0, 3, 5000)
    weighted = LinearDiscriminantAnalysis().fit(X, y, w)
    repeated = LinearDiscriminantAnalysis().fit(np.repeat(X, w, axis=0), np.repeat(y, w))
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-9, atol=1e-12)
    assert np.array_equal(
        LinearDiscriminantAnalysis(n_jobs=1).fit(X, y).coef_, LinearDiscriminantAnalysis(n_jobs=2).fit(X, y).coef_
    )


def test_degenerate_data_and_bad_parameters_are_named():
    X, y = make(30)
    with pytest.raises(DataError, match="number of samples must be more than the number of classes"):
        LinearDiscriminantAnalysis().fit(X[:3], [0, 1, 2])
    with pytest.raises(DataError, match="no column varies within the classes"):
        LinearDiscriminantAnalysis().fit([[0.0], [0.0], [1.0], [1.0]], [0, 0, 1, 1])
    with pytest.raises(DataError, match="overflow"):
        LinearDiscriminantAnalysis().fit(X * 1e200, y)
    for bad in ({"shrinkage": "auto"}, {"covariance_estimator": OAS()}, {"n_components": 3}, {"priors": [0.5, 0.5]}):
        with pytest.raises(ParameterError):
            LinearDiscriminantAnalysis(**bad).fit(X, y)
    with pytest.raises(ParameterError, match="Only one of the two"):
        LinearDiscriminantAnalysis("lsqr", shrinkage=0.5, covariance_estimator=OAS()).fit(X, y)
    with pytest.raises(ParameterError, match="transform not implemented"):
        LinearDiscriminantAnalysis("lsqr").fit(X, y).transform(X)
    with pytest.raises(ParameterError, match="there is no class 7"):
        LinearDiscriminantAnalysis().fit(X, y).boundary(0, 7)
    with pytest.warns(UserWarning, match="priors do not sum to 1"):
        model = LinearDiscriminantAnalysis(priors=[1.0, 1.0, 2.0]).fit(X, y)
    assert model.priors_.tolist() == [0.25, 0.25, 0.5]


@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.parametrize("parameters", SETTINGS, ids=str)
def test_float32_rows_give_float32_coefficients_scores_and_projections(parameters, K):
    X, y = make(K=K)
    X = (X + 10.0).astype(np.float32)
    if parameters.get("n_components") == 1:
        X[:, 0] *= 1000
    model = LinearDiscriminantAnalysis(**parameters).fit(X, y)
    exact = LinearDiscriminantAnalysis(**parameters).fit(X.astype(np.float64), y)
    assert model.coef_.dtype == np.float32 and exact.coef_.dtype == np.float64
    np.testing.assert_allclose(model.coef_, exact.coef_, rtol=1e-6, atol=1e-6 * np.abs(exact.coef_).max())
    outputs = ["decision_function", "predict_proba", "predict_log_proba"]
    for name in outputs if model.solver == "lsqr" else [*outputs, "transform"]:
        found, expected = getattr(model, name)(X), getattr(exact, name)(X.astype(np.float64))
        assert found.dtype == np.float32 and expected.dtype == np.float64
        np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-3)
        assert getattr(model, name)(X.astype(np.float64)).dtype == np.float64
    np.testing.assert_array_equal(model.predict(X), exact.predict(X))
    assert model.certificate_.holds and verify(model, X, y)
    model.coef_ = model.coef_ * np.float32(1.001)
    assert not verify(model, X, y)


def test_coefficients_beyond_the_range_of_float32_stay_float64():
    X, y = make()
    X = (X * 1e-42).astype(np.float32)
    model = LinearDiscriminantAnalysis().fit(X, y)
    assert model.coef_.dtype == np.float64 and verify(model, X, y)


def test_a_saved_model_stays_single(tmp_path):
    X, y = make()
    X = X.astype(np.float32)
    model = LinearDiscriminantAnalysis().fit(X, y)
    save(model, tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.coef_.dtype == np.float32
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))


@pytest.mark.parametrize("solver", ["svd", "lsqr"])
def test_a_constant_column_has_coefficient_zero(solver):
    rng = np.random.default_rng(4)
    X = rng.normal(size=(90, 3))
    y = np.digitize(X[:, 0] + rng.normal(size=90), [-0.5, 0.5])
    X[:, 1] = 0.1
    model = LinearDiscriminantAnalysis(solver=solver).fit(X, y)
    assert (model.coef_[:, 1] == 0).all()
    assert model.certificate_.holds
    assert verify(model, X, y)
    alone = LinearDiscriminantAnalysis(solver=solver).fit(X[:, [0, 2]], y)
    np.testing.assert_allclose(model.coef_[:, [0, 2]], alone.coef_, rtol=1e-10)
