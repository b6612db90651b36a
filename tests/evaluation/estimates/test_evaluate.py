"""One function for every way to estimate a score: it equals scikit-learn, covers, and is clear when it cannot."""

import math

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.cluster import KMeans
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.metrics import make_scorer, mean_squared_error
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import GroupKFold, KFold, LeaveOneOut, cross_val_predict, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from learnable import LinearRegression, LogisticRegression, Ridge
from learnable.core import DataError, ParameterError
from learnable.evaluation import binomial_interval, evaluate, hold_out, make_splits


def regression(n=80, d=4, seed=0, noise=1.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, X @ np.arange(1.0, d + 1) + noise * rng.normal(size=n)


def classification(n=90, seed=0):
    X, y = make_classification(n, 6, n_informative=4, n_classes=3, random_state=seed)
    return X, np.array(["red", "green", "blue"])[y]


# ---- folds ----


@pytest.mark.parametrize("scoring", [None, "r2", "neg_mean_squared_error", "neg_mean_absolute_error", "neg_max_error"])
def test_fold_scores_are_those_of_scikit_learn(scoring):
    X, y = regression()
    splits = make_splits(80, n_splits=4)
    for scheme in ("auto", "kfold"):
        found = evaluate(Ridge(), X, y, n_splits=4, scoring=scoring, scheme=scheme)
        np.testing.assert_allclose(found.scores, cross_val_score(Ridge(), X, y, cv=splits, scoring=scoring), rtol=1e-12)
    assert found.scheme == "4-fold" and (found.n_train, found.n_test) == (60, 20)
    assert found.mean == found.scores.mean() and found.interval.method == "corrected resampled t"
    assert all(certificate.holds for certificate in found.certificates)
    assert (found.fit_seconds > 0).all() and (found.score_seconds > 0).all()
    given = evaluate(Ridge(), X, y, scheme=splits, scoring=scoring)
    assert (given.scores == found.scores).all() and given.scheme == "given splits"


def test_train_scores_and_the_gap():
    X, y = regression()
    found = evaluate(Ridge(), X, y)
    expected = [Ridge().fit(X[train], y[train]).score(X[train], y[train]) for train, _ in make_splits(80)]
    np.testing.assert_allclose(found.train_scores, expected)
    assert found.gap == pytest.approx(np.mean(expected) - found.mean) and found.gap > 0
    assert np.isnan(evaluate(Ridge(), X, y, train_scores=False).train_scores).all()


def test_a_classifier_is_stratified_and_its_interval_holds_the_exact_one():
    X, y = classification()
    found = evaluate(LogisticRegression(), X, y)
    splits = make_splits(y, scheme="stratified")
    np.testing.assert_allclose(found.scores, cross_val_score(LogisticRegression(), X, y, cv=splits))
    assert found.scheme == "stratified 5-fold" and found.metric == "accuracy"
    wrong = round((1 - found.mean) * 90)
    exact = binomial_interval(wrong, 90)
    assert found.interval.low <= 1 - exact.high and found.interval.high >= 1 - exact.low
    perfect = evaluate(KNeighborsClassifier(1), np.repeat([[0.0], [9.0]], 20, axis=0), np.repeat([0, 1], 20))
    assert perfect.mean == 1.0 and perfect.interval.low < 0.95 and perfect.interval.high == 1.0


def test_groups_and_time_choose_their_schemes():
    X, y = regression()
    groups, times = np.arange(80) % 7, np.arange(80)[::-1]
    found = evaluate(Ridge(), X, y, groups=groups)
    assert found.scheme == "grouped 5-fold"
    splits = make_splits(80, scheme="grouped", groups=groups)
    np.testing.assert_allclose(found.scores, cross_val_score(Ridge(), X, y, cv=splits))
    found = evaluate(Ridge(), X, y, time=times, n_splits=3)
    assert found.scheme == "forward-in-time 3-fold"
    splits = make_splits(80, scheme="time", time=times, n_splits=3)
    np.testing.assert_allclose(found.scores, cross_val_score(Ridge(), X, y, cv=splits))
    sklearn_groups = evaluate(Ridge(), X, y, scheme=GroupKFold(4), groups=groups)
    assert len(sklearn_groups.scores) == 4


def test_repeats():
    X, y = regression()
    found = evaluate(Ridge(), X, y, repeats=3)
    assert len(found.scores) == 15 and found.scheme == "5-fold, 3 times"


@pytest.mark.long
def test_the_corrected_interval_of_folds_covers_the_mean_score():
    """Five folds of least squares: the interval holds the expected score of a fit to 4/5 of the rows."""
    rng = np.random.default_rng(0)
    risks, intervals = [], []
    X_new = rng.normal(size=(5000, 4))
    y_new = X_new @ np.arange(1.0, 5.0) + rng.normal(size=5000)
    for number in range(400):
        X, y = regression(60, seed=1000 + number)
        found = evaluate(LinearRegression(), X, y, scoring="neg_mean_squared_error", random_state=number)
        intervals.append(found.interval)
        fitted = LinearRegression().fit(X[:48], y[:48])
        risks.append(mean_squared_error(y_new, fitted.predict(X_new)))
    truth = -np.mean(risks)
    covered = np.mean([interval.low <= truth <= interval.high for interval in intervals])
    assert covered > 0.95 - 3 * math.sqrt(0.05 * 0.95 / 400)


# ---- one hold-out ----


def test_a_hold_out_is_one_fit_and_its_interval_is_over_rows():
    X, y = regression()
    found = evaluate(Ridge(), X, y, scheme="holdout", share=0.25)
    train, test = hold_out(80, share=0.25)
    assert found.mean == Ridge().fit(X[train], y[train]).score(X[test], y[test])
    assert found.scheme == "hold-out of 25%" and (found.n_train, found.n_test) == (60, 20)
    assert found.interval.method == "t over rows" and found.interval.low < found.mean < found.interval.high


def test_a_hold_out_of_classes_has_an_exact_interval():
    X, y = classification()
    found = evaluate(LogisticRegression(), X, y, scheme="holdout")
    wrong = round((1 - found.mean) * found.n_test)
    exact = binomial_interval(wrong, found.n_test)
    assert found.interval[:2] == (1 - exact.high, 1 - exact.low)
    bounded = evaluate(LogisticRegression(), X, y, scheme="holdout", scoring="neg_log_loss", bounds=(0.0, 40.0))
    assert bounded.interval.method == "empirical Bernstein"


@pytest.mark.parametrize("scoring", ["roc_auc_ovr", "f1_macro", "balanced_accuracy"])
def test_a_score_that_is_no_mean_over_rows_is_jackknifed(scoring):
    X, y = classification(300)
    found = evaluate(LogisticRegression(), X, y, scheme="holdout", share=0.5, scoring=scoring)
    assert found.interval.method == "jackknife over rows"
    assert found.interval.low < found.mean < found.interval.high < found.interval.low + 0.4


@pytest.mark.long
def test_jackknife_intervals_cover():
    """The AUC of a fixed score of two normal classes is Φ(δ/√2)."""

    class Fixed(ClassifierMixin, BaseEstimator):
        def fit(self, X, y):
            self.classes_ = np.unique(y)
            return self

        def decision_function(self, X):
            return X[:, 0]

        def predict(self, X):
            return self.classes_[(X[:, 0] > 0.5).astype(int)]

    truth, covered = 0.5 * (1 + math.erf(0.5)), 0
    rng = np.random.default_rng(0)
    for number in range(60):
        y = np.tile([0, 1], 75)
        X = (y + rng.normal(size=150))[:, None]
        found = evaluate(
            Fixed(),
            X,
            y,
            scheme="holdout",
            share=0.8,
            scoring="roc_auc",
            level=0.9,
            random_state=number,
            train_scores=False,
        )
        covered += found.interval.low <= truth <= found.interval.high
    assert abs(covered / 60 - 0.9) < 4 * math.sqrt(0.09 / 60)


def test_hold_outs_by_time_and_by_group():
    X, y = regression()
    found = evaluate(Ridge(), X, y, scheme="holdout", time=np.arange(80)[::-1])
    assert found.mean == Ridge().fit(X[16:], y[16:]).score(X[:16], y[:16])
    assert evaluate(Ridge(), X, y, scheme="holdout", groups=np.arange(80) // 20).n_test == 20


# ---- leave-one-out and out of bag ----


def test_leave_one_out_is_pooled_over_rows():
    X, y = regression()
    found = evaluate(Ridge(), X, y, scheme="loo", scoring="neg_mean_squared_error")
    expected = cross_val_score(Ridge(), X, y, cv=LeaveOneOut(), scoring="neg_mean_squared_error")
    assert found.mean == pytest.approx(expected.mean(), rel=1e-10)
    assert found.note == "closed form" and found.n_train == 79
    predictions = cross_val_predict(Ridge(), X, y, cv=LeaveOneOut())
    np.testing.assert_allclose(found.predictions, predictions, atol=1e-10)
    r2 = evaluate(Ridge(), X, y, scheme="loo")
    assert r2.mean == pytest.approx(1 - ((y - predictions) ** 2).sum() / ((y - y.mean()) ** 2).sum(), rel=1e-10)
    assert r2.train_scores[0] == Ridge().fit(X, y).score(X, y) and r2.certificates[0].holds


def test_leave_one_out_of_a_classifier():
    X, y = classification(45)
    found = evaluate(KNeighborsClassifier(3), X, y, scheme="loo")
    expected = cross_val_score(KNeighborsClassifier(3), X, y, cv=LeaveOneOut())
    assert found.mean == pytest.approx(expected.mean()) and found.note == "refits"
    assert found.interval.method == "exact binomial"


def test_out_of_bag_rows_of_a_forest():
    X, y = classification()
    forest = RandomForestClassifier(60, oob_score=True, random_state=0)
    found = evaluate(forest, X, y, scheme="oob")
    assert found.mean == pytest.approx(forest.fit(X, y).oob_score_)
    assert found.interval.method == "exact binomial" and found.scheme == "out of bag"
    X, y = regression()
    forest = RandomForestRegressor(60, oob_score=True, random_state=0)
    assert evaluate(forest, X, y, scheme="oob").mean == pytest.approx(forest.fit(X, y).oob_score_)
    with pytest.raises(ParameterError, match="no out-of-bag"):
        evaluate(Ridge(), X, y, scheme="oob")


class OwnScore(RegressorMixin, BaseEstimator):
    def fit(self, X, y):
        self.oob_score_ = 0.25
        return self

    def predict(self, X):
        return np.zeros(len(X))


def test_a_model_that_only_keeps_its_out_of_bag_score():
    found = evaluate(OwnScore(), *regression(), scheme="oob")
    assert found.mean == 0.25 and found.interval[:2] == (-math.inf, math.inf) and found.note


# ---- inputs ----


def test_containers_agree(tmp_path):
    X, y = regression()
    expected = evaluate(Ridge(), X, y).scores
    frame = pd.DataFrame(X, columns=list("abcd"), index=np.arange(80) * 2 + 5).assign(target=y)
    for table in (frame, pl.from_pandas(frame), pa.Table.from_pandas(frame, preserve_index=False)):
        np.testing.assert_allclose(evaluate(Ridge(), table, "target").scores, expected, rtol=1e-10)
    np.testing.assert_allclose(evaluate(Ridge(), X.tolist(), y.tolist()).scores, expected, rtol=1e-10)
    for build in (sp.csr_array, sp.coo_array, sp.csc_matrix):
        np.testing.assert_allclose(evaluate(Ridge(), build(X), y).scores, expected, rtol=1e-8)
    frame.to_csv(tmp_path / "rows.csv", index=False)
    pq.write_table(pa.Table.from_pandas(frame, preserve_index=False), tmp_path / "rows.parquet")
    for path in (tmp_path / "rows.csv", str(tmp_path / "rows.parquet")):
        np.testing.assert_allclose(evaluate(Ridge(), path, "target").scores, expected, rtol=1e-10)


def test_columns_by_name_are_no_features():
    X, y = regression()
    frame = pd.DataFrame(X, columns=list("abcd")).assign(target=y, city=np.arange(80) % 6, w=1.0 + np.arange(80))
    found = evaluate(Ridge(), frame, "target", groups="city", sample_weight="w")
    expected = evaluate(Ridge(), X, y, groups=frame["city"].to_numpy(), sample_weight=frame["w"])
    np.testing.assert_allclose(found.scores, expected.scores, rtol=1e-10)
    with pytest.raises(DataError, match="groups='town' is no column"):
        evaluate(Ridge(), frame, "target", groups="town")
    with pytest.raises(DataError, match="names a column, but X is no dataframe"):
        evaluate(Ridge(), X, y, groups="city")


@pytest.mark.parametrize("scheme", ["kfold", "holdout", "loo", ".632+"])
def test_weights_reach_fits_and_scores(scheme):
    """A row of weight two counts as the row twice; here through the score of a fit on all rows with such weights."""
    X, y = regression(40)
    weight = np.where(np.arange(40) % 2, 3.0, 0.5)
    found = evaluate(Ridge(), X, y, scheme=scheme, sample_weight=weight, n_resamples=10)
    plain = evaluate(Ridge(), X, y, scheme=scheme, n_resamples=10)
    assert found.mean != plain.mean
    if scheme == "kfold":
        scores = []
        for train, test in make_splits(40):
            model = Ridge().fit(X[train], y[train], weight[train])
            scores.append(model.score(X[test], y[test], weight[test]))
        np.testing.assert_allclose(found.scores, scores)
    pipeline = evaluate(make_pipeline(StandardScaler(), Ridge()), X, y, sample_weight=weight)
    assert np.isfinite(pipeline.mean)


def test_models_without_targets():
    X, _ = regression(60)
    found = evaluate(GaussianMixture(2, random_state=0), X)
    expected = [GaussianMixture(2, random_state=0).fit(X[train]).score(X[test]) for train, test in make_splits(60)]
    np.testing.assert_allclose(found.scores, expected)
    assert found.metric == "score"
    assert evaluate(KMeans(2, n_init=1, random_state=0), X, scheme="holdout").mean < 0


def test_any_callable_scores():
    X, y = regression()
    scorer = make_scorer(mean_squared_error, greater_is_better=False)
    found = evaluate(Ridge(), X, y, scoring=scorer)
    assert (found.scores == evaluate(Ridge(), X, y, scoring="neg_mean_squared_error").scores).all()
    found = evaluate(Ridge(), X, y, scoring=lambda model, X, y: float(model.coef_[0]), scheme="holdout")
    assert found.metric == "<lambda>" and found.interval[:2] == (-math.inf, math.inf)


def test_the_model_stays_as_it_is():
    model = Ridge()
    evaluate(model, *regression())
    assert not hasattr(model, "coef_")


def test_records_are_plain():
    import json

    X, y = regression()
    found = evaluate(Ridge(), X, y)
    record = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert record["mean"] == found.mean and record["low"] == found.interval.low and len(record["scores"]) == 5
    assert "r2" in repr(found) and "5-fold" in repr(found)
    json.dumps(evaluate(Ridge(), X, y, scheme="loo", train_scores=False).to_dict(), allow_nan=False)


# ---- hostile input ----


class FailsOnRow(RegressorMixin, BaseEstimator):
    def __init__(self, message="no luck"):
        self.message = message

    def fit(self, X, y):
        if 0.0 not in X[:, 0]:
            raise RuntimeError(self.message)
        return self

    def predict(self, X):
        return np.zeros(len(X))


def test_a_failure_names_its_fold():
    X = np.arange(20.0)[:, None]
    fold = next(number for number, (_, test) in enumerate(make_splits(20), start=1) if 0 in test)
    with pytest.raises(DataError, match=rf"evaluate: FailsOnRow failed in fold {fold} of 5, .*16 row\(s\): no luck\."):
        evaluate(FailsOnRow(), X, np.arange(20.0))
    with pytest.raises(DataError, match="RuntimeError"):
        evaluate(FailsOnRow(""), X, np.arange(20.0))


@pytest.mark.parametrize(
    ("X", "y", "options", "message"),
    [
        ([[1.0]], [1.0], {}, "1 row"),
        (np.ones((3, 1)), [1, 2, 3], {}, "3 row.*at most 3 folds"),
        (np.ones((3, 1)), [1, 2], {}, "inconsistent numbers"),
        (np.empty((0, 2)), [], {}, "no rows"),
        ([[1.0]], [1.0], {"scheme": "loo"}, "at least 2 rows"),
        ([[1.0]], [1.0], {"scheme": "holdout"}, "at least 2 rows"),
        (np.arange(6.0)[:, None], np.arange(6.0), {"n_splits": 6}, "fold 1 of 6.*nan"),
    ],
)
@pytest.mark.filterwarnings("ignore:R.*not well-defined")
def test_too_few_rows_are_explained(X, y, options, message):
    with pytest.raises(DataError, match=message):
        evaluate(Ridge(), X, y, **options)


def test_a_constant_target():
    X = np.arange(20.0)[:, None]
    found = evaluate(Ridge(), X, np.ones(20), scoring="neg_mean_squared_error")
    assert abs(found.mean) < 1e-20
    assert evaluate(Ridge(), X, np.ones(20), scheme="loo", scoring="neg_mean_squared_error").mean == pytest.approx(0.0)


def test_one_class():
    X = np.arange(20.0)[:, None]
    with pytest.raises(DataError, match=r"LogisticRegression failed in fold 1 of 5.*class"):
        evaluate(LogisticRegression(), X, ["a"] * 20)
    assert evaluate(KNeighborsClassifier(2), X, ["a"] * 20).mean == 1.0


def test_a_class_with_one_member():
    X = np.arange(20.0)[:, None]
    y = np.array(["rare"] + ["common"] * 19)
    with pytest.raises(DataError, match=r"failed in fold .* class"):
        evaluate(LogisticRegression(), X, y)
    found = evaluate(KNeighborsClassifier(1), X, y)
    assert found.mean == pytest.approx(0.95)


class GivesNaN(RegressorMixin, BaseEstimator):
    def fit(self, X, y):
        return self

    def predict(self, X):
        return np.zeros(len(X))

    def score(self, X, y, sample_weight=None):
        return np.nan


@pytest.mark.parametrize("score", [np.nan, np.inf, "good", None])
def test_scores_that_are_no_numbers_name_the_fold(score):
    with pytest.raises(DataError, match=r"fold 1 of 5.*score"):
        evaluate(Ridge(), *regression(), scoring=lambda model, X, y: score)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"scheme": "random"}, "scheme must be one of"),
        ({"scoring": "acuracy"}, "scoring='acuracy' does not work"),
        ({"scoring": 3}, "scoring must be a name"),
        ({"level": 95}, "level"),
        ({"n_splits": 1}, "evaluate: n_splits"),
        ({"scheme": "grouped"}, "evaluate: scheme 'grouped' needs groups"),
        ({"scheme": [(np.arange(5), np.array([99]))]}, "gives no splits of 80 rows"),
        ({"scheme": 5}, "gives no splits"),
        ({"scheme": []}, "without rows"),
        ({"scheme": "holdout", "share": 1.5}, "share"),
    ],
)
def test_wrong_parameters_are_named(options, message):
    with pytest.raises(ParameterError, match=message):
        evaluate(Ridge(), *regression(), **options)


def test_a_splitter_of_scikit_learn():
    X, y = regression()
    found = evaluate(Ridge(), X, y, scheme=KFold(3))
    np.testing.assert_allclose(found.scores, cross_val_score(Ridge(), X, y, cv=KFold(3)))


# ---- published numbers ----


def test_prostate_hold_out_error(reference_data):
    """The test error of least squares on the prostate data (ESL, table 3.3)."""
    data = pd.read_csv(reference_data / "prostate.csv")
    train = data["train"].astype(str).str.upper().str.startswith("T").to_numpy()
    X, y = data.drop(columns=["lpsa", "train"]), data["lpsa"]
    split = [(np.flatnonzero(train), np.flatnonzero(~train))]
    found = evaluate(LinearRegression(), X, y, scheme=split, scoring="neg_mean_squared_error")
    assert found.mean == pytest.approx(-0.521274, abs=1e-6)


@pytest.mark.parametrize(
    ("table", "target", "rmse"), [("boston_housing", "medv", 4.4962211), ("diabetes_lars", "target", 52.687142)]
)
def test_every_fifth_row(reference_data, table, target, rmse):
    frame = pd.read_csv(reference_data / f"{table}.csv")
    rows = np.arange(len(frame))
    split = [(rows[rows % 5 != 0], rows[rows % 5 == 0])]
    for model in (LinearRegression(), make_pipeline(StandardScaler(), LinearRegression())):
        found = evaluate(model, frame, target, scheme=split, scoring="neg_root_mean_squared_error")
        assert found.mean == pytest.approx(-rmse, rel=1e-7)


def test_pima_diabetes(reference_data):
    train = pd.read_csv(reference_data / "pima_ripley_train.csv")
    test = pd.read_csv(reference_data / "pima_ripley_test.csv")
    both = pd.concat([train, test], ignore_index=True)
    split = [(np.arange(200), np.arange(200, 532))]
    for model, error in ((LogisticRegression(), 0.201807), (KNeighborsClassifier(1), 0.295181)):
        found = evaluate(make_pipeline(StandardScaler(), model), both, "type", scheme=split)
        assert 1 - found.mean == pytest.approx(error, abs=5e-7)
