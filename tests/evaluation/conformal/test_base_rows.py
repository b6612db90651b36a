"""Rows for models that wrap models: what is read, dropped, split and handed on."""

import numpy as np
import pandas as pd
import pytest
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import KFold
from tests.evaluation.wrapped import classes, regression

from learnable import Ridge
from learnable.core import DataError, DataTypeError, ParameterError
from learnable.data.rows import sample_door
from learnable.evaluation import ConformalRegressor
from learnable.evaluation.conformal.base import CV, adopt_features, fit_copies, is_prefit, splits_of

read_numbers, read_classes = sample_door("numeric"), sample_door("classes")


def test_rows_without_weight_are_gone():
    X, y = classes(30)
    weight = np.where(y == "cat", 0.0, 2.0)
    sample = read_classes(Ridge(), X, y, weight)
    assert sample.classes.tolist() == ["ant", "bee"]
    assert sample.n_rows == len(sample.weight) == sample.kept.sum() == (y != "cat").sum()
    np.testing.assert_array_equal(sample.X, X[y != "cat"])
    np.testing.assert_array_equal(sample.labels(np.arange(sample.n_rows)), y[y != "cat"])


def test_named_columns_of_a_frame():
    X, y = regression(10)
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(y=y, w=1.5)
    sample = read_numbers(Ridge(), frame, "y", "w")
    assert list(sample.X.columns) == ["a", "b", "c"]
    np.testing.assert_array_equal(sample.y, y)
    np.testing.assert_array_equal(sample.weights(np.array([2])), [1.5])


def test_a_path_is_read(tmp_path):
    X, y = regression(60)
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(y=y)
    frame.to_parquet(tmp_path / "rows.parquet")
    by_path = ConformalRegressor(random_state=0).fit(str(tmp_path / "rows.parquet"), "y")
    by_frame = ConformalRegressor(random_state=0).fit(frame, "y")
    np.testing.assert_allclose(by_path.scores_, by_frame.scores_, rtol=1e-12)


def test_the_fingerprint_knows_order_targets_weights_and_labels():
    X, y = classes(20)
    weight = np.linspace(1, 2, 20)
    prints = {
        read_classes(Ridge(), X, y).fingerprint,
        read_classes(Ridge(), X, y[::-1]).fingerprint,
        read_classes(Ridge(), X, y, weight).fingerprint,
        read_classes(Ridge(), X, np.where(y == "ant", "asp", y)).fingerprint,
    }
    assert len(prints) == 4
    assert read_classes(Ridge(), X.tolist(), y.tolist()).fingerprint in prints


@pytest.mark.parametrize(
    ("X", "y", "error", "words"),
    [
        (np.zeros((3, 2)), np.zeros(2), DataError, "X has 3 rows, y has 2"),
        (np.zeros((0, 2)), np.zeros(0), DataError, "0 sample"),
        (pd.DataFrame(), np.zeros(0), DataError, "0 sample"),
        (3.0, np.zeros(1), DataTypeError, "must be a table"),
        ([[1.0], [1.0, 2.0]], np.zeros(2), DataError, "ragged"),
        (pd.DataFrame([[1.0, 2.0]], columns=["a", "a"]), np.zeros(1), DataError, "Rename the columns"),
    ],
)
def test_refusals(X, y, error, words):
    with pytest.raises(error, match=words):
        read_numbers(Ridge(), X, y)


def test_splits_number_the_rows_as_they_were_given():
    X, y = regression(12)
    weight = np.ones(12)
    weight[[0, 5]] = 0.0
    sample = read_numbers(Ridge(), X, y, weight)
    [(train, test), *_] = splits_of("test", [(np.arange(6), np.arange(6, 12))], sample, classifier=False)
    np.testing.assert_array_equal(sample.y[train], y[[1, 2, 3, 4]])
    np.testing.assert_array_equal(sample.y[test], y[6:])
    by_splitter = splits_of("test", KFold(3), sample, classifier=False)
    np.testing.assert_array_equal(sample.y[by_splitter[0][1]], y[[1, 2, 3]])
    by_number = splits_of("test", 5, sample, classifier=False)
    assert [len(test) for _, test in by_number] == [2] * 5


def test_splits_that_do_not_work_are_blamed_on_cv():
    sample = read_numbers(Ridge(), *regression(12))
    for cv, words in ((13, "cv=13 does not work here"), ([([0], [12])], "cv names row 12 of 12")):
        with pytest.raises(ParameterError, match=f"owner: {words}"):
            splits_of("owner", cv, sample, classifier=False)


@pytest.mark.parametrize("value", [None, 2, np.int64(5), KFold(3), [([0], [1])], "prefit"])
def test_what_cv_may_be(value):
    assert CV.allows(value)


@pytest.mark.parametrize("value", [1, True, "loo", 2.5, Ridge])
def test_what_cv_may_not_be(value):
    assert not CV.allows(value)


def test_copies_share_nothing_with_the_model_given():
    X, y = regression(20)
    sample = read_numbers(Ridge(), X, y, np.linspace(1, 2, 20))
    inner = Ridge()
    one, two = fit_copies("test", inner, sample, [np.arange(20), np.arange(10)])
    assert not hasattr(inner, "coef_")
    np.testing.assert_allclose(one.coef_, Ridge().fit(X, y, np.linspace(1, 2, 20)).coef_)
    np.testing.assert_allclose(two.coef_, Ridge().fit(X[:10], y[:10], np.linspace(1, 2, 20)[:10]).coef_)


def test_prefit_and_features():
    assert is_prefit(FrozenEstimator(Ridge()), 5) and is_prefit(Ridge(), "prefit") and not is_prefit(Ridge(), 5)
    wrapper, inner = Ridge(), Ridge().fit(pd.DataFrame({"a": [0.0, 1.0], "b": [1.0, 1.5]}), [0.0, 1.0])
    adopt_features(wrapper, inner)
    assert wrapper.n_features_in_ == 2 and wrapper.feature_names_in_.tolist() == ["a", "b"]
