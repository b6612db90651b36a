"""Scikit-learn workflows of our models, fitted, for the tests of files and of verification."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import loguniform
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.datasets import load_diabetes, load_iris
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.ensemble import StackingClassifier, StackingRegressor, VotingClassifier, VotingRegressor
from sklearn.feature_selection import SelectKBest, SelectPercentile, VarianceThreshold, f_classif, f_regression
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV, KFold, RandomizedSearchCV, StratifiedKFold
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    SplineTransformer,
    StandardScaler,
    TargetEncoder,
)

import learnable as ln


def iris() -> tuple[Any, Any]:
    X, y = load_iris(return_X_y=True, as_frame=True)
    return X, np.array(["setosa", "versicolor", "virginica"])[y]


def diabetes() -> tuple[Any, Any]:
    X, y = load_diabetes(return_X_y=True)
    return X[:150], y[:150]


def mixed() -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "size": np.where(rng.random(120) < 0.1, np.nan, rng.normal(100, 20, 120)),
            "rooms": rng.integers(1, 6, 120),
            "town": rng.choice(["Köln", "Bonn", "Ulm", "rare 1", "rare 2"], 120, p=[0.4, 0.3, 0.26, 0.02, 0.02]),
            "heating": np.where(rng.random(120) < 0.2, None, rng.choice(["gas", "oil"], 120)),
        }
    )
    return X, np.where(rng.random(120) < 0.3 + 0.1 * X["rooms"], "sold", "open")


def _columns(*categorical: Any, **options: Any) -> ColumnTransformer:
    numbers = Pipeline([("fill", SimpleImputer(add_indicator=True)), ("scale", StandardScaler())])
    return ColumnTransformer([("numbers", numbers, ["size", "rooms"]), *categorical], **options)


def _before_ridge(*steps: Any) -> Pipeline:
    return Pipeline([*((str(i), step) for i, step in enumerate(steps)), ("model", ln.Ridge())])


def _one_hot(**options: Any) -> Pipeline:
    encoder = OneHotEncoder(handle_unknown="ignore", **options)
    return Pipeline(
        [("columns", _columns(("words", encoder, ["town", "heating"]))), ("model", ln.LogisticRegression())]
    )


def _voters() -> list[tuple[str, Any]]:
    scaled = Pipeline([("scale", StandardScaler()), ("model", ln.LogisticRegression())])
    return [("scaled", scaled), ("bayes", ln.GaussianNB()), ("gone", "drop")]


_WORDS = make_column_selector("^[th]", dtype_exclude=np.number)

_FOLDS = StratifiedKFold(5, shuffle=True, random_state=0)

#: name -> (data, a function that returns the workflow)
WORKFLOWS: dict[str, tuple[Callable[[], tuple[Any, Any]], Callable[[], Any]]] = {
    "standard": (diabetes, lambda: _before_ridge(StandardScaler())),
    "standard without mean": (diabetes, lambda: _before_ridge(StandardScaler(with_mean=False))),
    "minmax": (diabetes, lambda: _before_ridge(MinMaxScaler(), "passthrough", Normalizer())),
    "maxabs": (diabetes, lambda: _before_ridge(MaxAbsScaler(), Binarizer())),
    "robust": (diabetes, lambda: _before_ridge(RobustScaler(), FunctionTransformer())),
    "polynomial": (diabetes, lambda: _before_ridge(PolynomialFeatures(2, include_bias=False), StandardScaler())),
    "interactions": (diabetes, lambda: _before_ridge(PolynomialFeatures((2, 3), interaction_only=True))),
    "splines": (diabetes, lambda: _before_ridge(SplineTransformer(n_knots=4))),
    "periodic splines": (diabetes, lambda: _before_ridge(SplineTransformer(extrapolation="periodic"))),
    "bins": (diabetes, lambda: _before_ridge(KBinsDiscretizer(4, quantile_method="averaged_inverted_cdf"))),
    "ordinal bins": (diabetes, lambda: _before_ridge(KBinsDiscretizer(4, encode="ordinal", strategy="uniform"))),
    "power": (diabetes, lambda: _before_ridge(PowerTransformer())),
    "quantiles": (diabetes, lambda: _before_ridge(QuantileTransformer(n_quantiles=50))),
    "selection": (diabetes, lambda: _before_ridge(VarianceThreshold(), SelectKBest(f_regression, k=4))),
    "components": (diabetes, lambda: _before_ridge(PCA(3, random_state=0))),
    "truncated": (diabetes, lambda: _before_ridge(TruncatedSVD(3, random_state=0))),
    "union": (
        diabetes,
        lambda: _before_ridge(FeatureUnion([("a", StandardScaler()), ("b", PolynomialFeatures(2))])),
    ),
    "our own transformer": (diabetes, lambda: _before_ridge(ln.linear.PolynomialFeatures(2))),
    "frame": (iris, lambda: Pipeline([("scale", StandardScaler()), ("model", ln.LogisticRegression())])),
    "pandas output": (
        iris,
        lambda: Pipeline(
            [("scale", StandardScaler()), ("best", SelectPercentile(f_classif)), ("model", ln.GaussianNB())]
        ).set_output(transform="pandas"),
    ),
    "sparse one-hot": (mixed, lambda: _one_hot()),
    "dense one-hot": (mixed, lambda: _one_hot(sparse_output=False, drop="if_binary")),
    "rare words": (mixed, lambda: _one_hot(min_frequency=10, drop="first")),
    "ordinal": (
        mixed,
        lambda: Pipeline(
            [
                (
                    "columns",
                    _columns(("words", OrdinalEncoder(encoded_missing_value=-1), _WORDS)),
                ),
                ("model", ln.DecisionTreeClassifier(max_depth=3)),
            ]
        ),
    ),
    "target encoder": (
        mixed,
        lambda: Pipeline(
            [
                (
                    "columns",
                    _columns(
                        ("words", TargetEncoder(cv=StratifiedKFold(5, shuffle=True, random_state=0)), ["town"]),
                        remainder="drop",
                    ),
                ),
                ("model", ln.LogisticRegression()),
            ]
        ),
    ),
    "remainder": (
        mixed,
        lambda: Pipeline(
            [
                (
                    "columns",
                    ColumnTransformer(
                        [("town", OneHotEncoder(dtype=np.float32), ["town"]), ("no", "drop", ["heating"])],
                        remainder=SimpleImputer(strategy="median"),
                        sparse_threshold=1.0,
                    ),
                ),
                ("model", ln.LogisticRegression()),
            ]
        ),
    ),
    "most frequent": (
        mixed,
        lambda: Pipeline(
            [
                ("fill", SimpleImputer(strategy="most_frequent")),
                ("columns", ColumnTransformer([("words", OneHotEncoder(), [2, 3])])),
                ("model", ln.BernoulliNB()),
            ]
        ),
    ),
    "grid": (
        iris,
        lambda: GridSearchCV(
            Pipeline([("scale", StandardScaler()), ("model", ln.LogisticRegression())]),
            [{"model__C": [0.1, 1.0]}, {"scale": ["passthrough", MinMaxScaler()]}],
            cv=StratifiedKFold(3),
        ),
    ),
    "grid of scores": (
        iris,
        lambda: GridSearchCV(
            ln.GaussianNB(),
            {"var_smoothing": np.array([1e-9, 1e-3])},
            scoring={"a": "accuracy", "b": "neg_log_loss"},
            refit="b",
            cv=3,
        ),
    ),
    "random": (
        diabetes,
        lambda: RandomizedSearchCV(
            ln.Ridge(), {"alpha": loguniform(1e-3, 1e3)}, n_iter=3, random_state=0, cv=KFold(3), scoring="r2"
        ),
    ),
    "voting": (iris, lambda: VotingClassifier(_voters(), weights=[2, 1, 1])),
    "soft voting": (iris, lambda: VotingClassifier(_voters(), voting="soft")),
    "voting of numbers": (
        diabetes,
        lambda: VotingRegressor([("ridge", ln.Ridge()), ("tree", ln.DecisionTreeRegressor(random_state=0))]),
    ),
    "stacking": (iris, lambda: StackingClassifier(_voters(), final_estimator=ln.LogisticRegression(), cv=3)),
    "stacking of numbers": (
        diabetes,
        lambda: StackingRegressor(
            [("ridge", ln.Ridge()), ("near", ln.KNeighborsRegressor())], final_estimator=ln.Ridge(), passthrough=True
        ),
    ),
}
