"""Ridge regression of labels: scikit-learn's coefficients and choices, checked again from the definition."""

import numpy as np
import pytest
import sklearn.linear_model as peers

import learnable as ln
from learnable import Ridge, RidgeClassifier, RidgeClassifierCV
from learnable.core.errors import DataError, ParameterError


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))
    return X, np.array(["no", "so", "yes"])[np.digitize(X[:, 0] + rng.normal(size=60), [-0.7, 0.7])]


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("class_weight", [None, "balanced"])
def test_coefficients_are_scikit_learns(rows, classes, class_weight):
    X, y = rows
    y = y if classes == 3 else np.where(y == "no", "no", "yes")
    ours = RidgeClassifier(alpha=2.0, class_weight=class_weight).fit(X, y)
    theirs = peers.RidgeClassifier(alpha=2.0, class_weight=class_weight).fit(X, y)
    # Of two classes scikit-learn documents (1, d) and stores (d,).
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-9)
    np.testing.assert_allclose(ours.intercept_, np.atleast_1d(theirs.intercept_), rtol=1e-9)
    assert ours.predict(X).tolist() == theirs.predict(X).tolist()
    assert ln.verify(ours, X, y)


def test_two_classes_are_a_ridge_regression_of_signs(rows):
    X, y = rows
    model = RidgeClassifier().fit(X, y == "yes")
    assert np.array_equal(model.coef_, Ridge().fit(X, np.where(y == "yes", 1.0, -1.0)).coef_)


@pytest.mark.parametrize("setting", [{}, {"cv": 3}, {"scoring": "accuracy"}, {"cv": 3, "scoring": "f1_macro"}])
def test_the_choice_is_scikit_learns(rows, setting):
    X, y = rows
    alphas = [0.01, 1.0, 30.0, 1000.0]
    ours = RidgeClassifierCV(alphas, **setting).fit(X, y)
    theirs = peers.RidgeClassifierCV(alphas, **setting).fit(X, y)
    assert ours.alpha_ == theirs.alpha_
    assert ours.best_score_ == pytest.approx(theirs.best_score_)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-7)
    assert ln.verify(ours, X, y)


def test_a_forged_score_is_refused(rows):
    model = RidgeClassifierCV().fit(*rows)
    model.criterion_path_ = model.criterion_path_ * 1.01
    model.best_score_ = model.best_score_ * 1.01
    assert not ln.verify(model, *rows)


@pytest.mark.parametrize("cls", [RidgeClassifier, RidgeClassifierCV])
def test_one_class_is_predicted_everywhere(cls):
    X = np.random.default_rng(0).normal(size=(10, 3))
    y = np.full(10, "only")
    model = cls().fit(X, y)
    assert model.predict(X).tolist() == y.tolist()
    assert model.intercept_.tolist() == [-1.0]
    assert ln.verify(model, X, y)


@pytest.mark.parametrize("class_weight", [None, "balanced"])
@pytest.mark.parametrize("name", ["RidgeClassifier", "RidgeClassifierCV"])
def test_rows_with_several_labels_are_scikit_learns(rows, name, class_weight, tmp_path):
    X, _ = rows
    noise = np.random.default_rng(1).normal(size=(60, 3))
    Y = (X[:, :3] + 0.5 * noise > 0.2).astype(int)
    ours = getattr(ln, name)(class_weight=class_weight).fit(X, Y)
    theirs = getattr(peers, name)(class_weight=class_weight).fit(X, Y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-8)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    assert ours.score(X, Y) == theirs.score(X, Y)
    assert ours.classes_.tolist() == theirs.classes_.tolist() == [0, 1, 2]
    ln.save(ours, tmp_path / "model.safetensors")
    loaded = ln.load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(loaded.predict(X), ours.predict(X))
    assert ln.verify(loaded, X, Y)
    assert not ln.verify(loaded, X, 1 - Y)
    assert ln.verify(getattr(ln, name)().fit(X, Y[:, :2]), X, Y[:, :2])  # two labels have two scores
    with pytest.raises(DataError, match="one column per label"):
        getattr(ln, name)().fit(X, Y + 1)


@pytest.mark.parametrize("setting", [{"cv": 3}, {"scoring": "f1_macro"}])
def test_the_choice_with_several_labels_is_scikit_learns(rows, setting):
    X, _ = rows
    Y = (X[:, :3] + 0.5 * np.random.default_rng(1).normal(size=(60, 3)) > 0.2).astype(int)
    ours = RidgeClassifierCV(alphas=[0.1, 10.0, 100.0], **setting).fit(X, Y)
    theirs = peers.RidgeClassifierCV(alphas=[0.1, 10.0, 100.0], **setting).fit(X, Y)
    assert ours.alpha_ == theirs.alpha_
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-8)


def test_a_dict_of_class_weights_is_refused_for_several_labels(rows):
    X, _ = rows
    with pytest.raises(ParameterError, match="class_weight must be None or 'balanced'"):
        RidgeClassifier(class_weight={0: 1.0, 1: 2.0}).fit(X, (X[:, :3] > 0).astype(int))
