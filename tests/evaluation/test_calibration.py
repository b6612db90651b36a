"""CalibratedClassifier against scikit-learn's CalibratedClassifierCV, its laws, and what it refuses."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from joblib import parallel_config
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import log_loss
from sklearn.model_selection import KFold, ShuffleSplit, StratifiedKFold
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC
from tests.evaluation.wrapped import Overconfident, classes
from threadpoolctl import threadpool_limits

from learnable import LogisticRegression, load, save, verify
from learnable.core import DataError, ModelFileError, ParameterError
from learnable.evaluation import CalibratedClassifier
from learnable.meta import TableModel

METHODS = ("sigmoid", "isotonic", "temperature")


@pytest.mark.sampled(6)
@pytest.mark.parametrize("ensemble", [True, False])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("k", [2, 4])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("inner", [GaussianNB(), LogisticRegression(C=0.01)], ids=["proba", "decision"])
def test_probabilities_are_scikit_learns(inner, method, k, weighted, ensemble):
    X, y = classes(200, k)
    weight = np.random.default_rng(1).uniform(0.1, 2.0, size=200) if weighted else None
    ours = CalibratedClassifier(inner, method=method, ensemble=ensemble).fit(X, y, weight)
    with threadpool_limits(1):  # their threads wait for each other on rows as few as these
        theirs = CalibratedClassifierCV(inner, method=method, ensemble=ensemble).fit(X, y, weight)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), rtol=0, atol=1e-6)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    np.testing.assert_array_equal(ours.classes_, theirs.classes_)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("cv", [3, StratifiedKFold(3, shuffle=True, random_state=0), ShuffleSplit(2, random_state=0)])
def test_folds_are_scikit_learns(cv, method):
    X, y = classes(200, 3)
    ours = CalibratedClassifier(LinearSVC(), method=method, cv=cv).fit(X, y)
    with threadpool_limits(1):
        theirs = CalibratedClassifierCV(LinearSVC(), method=method, cv=cv).fit(X, y)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), rtol=0, atol=1e-6)


@pytest.mark.parametrize("method", METHODS)
def test_a_fitted_classifier_is_calibrated_on_all_rows(method):
    X, y = classes(300)
    inner = GaussianNB().fit(X[:100], y[:100])
    theirs = CalibratedClassifierCV(FrozenEstimator(inner), method=method).fit(X[100:], y[100:]).predict_proba(X)
    for ours in (
        CalibratedClassifier(inner, method=method, cv="prefit"),
        CalibratedClassifier(FrozenEstimator(inner), method=method),
    ):
        p = ours.fit(X[100:], y[100:]).predict_proba(X)
        np.testing.assert_allclose(p, theirs, rtol=0, atol=1e-6)
        assert len(ours.estimators_) == 1 and len(ours.calibration_rows_[0]) == 200


@pytest.mark.parametrize("k", [2, 4])
@pytest.mark.parametrize("method", METHODS)
def test_calibration_mends_an_overconfident_classifier(method, k):
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.full(k, 1.5), size=4000)
    y = np.array([rng.choice(k, p=row) for row in p])
    bad = Overconfident().fit(p[:2000], y[:2000])
    good = CalibratedClassifier(bad, method=method, cv="prefit").fit(p[:2000], y[:2000])
    before, after = (log_loss(y[2000:], model.predict_proba(p[2000:])) for model in (bad, good))
    best = log_loss(y[2000:], p[2000:])  # what the true probabilities score
    assert after - best < 0.5 * (before - best)
    if method == "temperature":
        np.testing.assert_array_equal(good.predict(p), bad.predict(p))
        # The true temperature is 3. The Fisher information of β = 1/3 is the sum of the variances of the logits 3 log p
        # under p; T = 1/β has the standard error 9 se(β).
        logits = 3.0 * np.log(p[:2000])
        information = ((p[:2000] * logits**2).sum(axis=1) - (p[:2000] * logits).sum(axis=1) ** 2).sum()
        error = 9.0 / np.sqrt(information)
        assert error < 0.2
        assert 1 / good.calibrators_[0][0].beta == pytest.approx(3.0, abs=4 * error)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("k", [2, 3])
def test_probabilities_are_probabilities(method, k):
    X, y = classes(120, k)
    p = CalibratedClassifier(method=method).fit(X, y).predict_proba(np.vstack([X, 1e3 * X, -1e3 * X]))
    assert (p >= 0).all()
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-12)


@pytest.mark.parametrize("method", METHODS)
def test_a_fold_without_a_class_gives_it_no_probability(method):
    X, y = classes(150, 3)
    order = np.argsort(y, kind="stable")
    X, y = X[order], y[order]
    rest = np.arange(150) % 2 == 0
    no_cat = np.flatnonzero((y != "cat") & rest)
    splits = [(no_cat, np.flatnonzero(~rest))]
    model = CalibratedClassifier(method=method, cv=splits).fit(X, y)
    p = model.predict_proba(X)
    assert (p[:, 2] == 0).all()
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-12)
    # Among the two classes that it knows, the classifier is not turned upside down.
    known = y != "cat"
    assert np.mean(model.predict(X[known]) == y[known]) > 0.7


def test_rows_without_weight_do_not_exist():
    X, y = classes(150)
    weight = np.ones(150)
    weight[::3] = 0.0
    kept = weight > 0
    for method in METHODS:
        with_zeros = CalibratedClassifier(method=method).fit(X, y, weight).predict_proba(X)
        without = CalibratedClassifier(method=method).fit(X[kept], y[kept]).predict_proba(X)
        np.testing.assert_allclose(with_zeros, without, atol=1e-12)
    # A splitter numbers the rows as they are given.
    splits = list(KFold(3, shuffle=True, random_state=0).split(X))
    model = CalibratedClassifier(cv=splits).fit(X, y, weight)
    assert sum(len(rows) for rows in model.calibration_rows_) == kept.sum()


@pytest.mark.parametrize("container", [np.asarray, sp.csr_array, list, pd.DataFrame, lambda X: pl.DataFrame(X)])
def test_containers_give_the_same(container):
    X, y = classes(100)
    expected = CalibratedClassifier(cv=3).fit(X, y).predict_proba(X)
    given = X.tolist() if container is list else container(X)
    model = CalibratedClassifier(cv=3).fit(given, y.tolist())
    np.testing.assert_allclose(model.predict_proba(given), expected, atol=1e-9)
    assert model.n_features_in_ == 2


def test_pipelines_and_tables_of_text():
    X, y = classes(120)
    weight = np.random.default_rng(0).uniform(0.5, 2.0, size=120)
    pipeline = make_pipeline(StandardScaler(), LogisticRegression())
    assert CalibratedClassifier(pipeline).fit(X, y, weight).score(X, y) > 0.6
    frame = pd.DataFrame(X, columns=["a", "b"]).assign(word=np.where(y == "ant", "x", "y"), label=y)
    model = CalibratedClassifier(TableModel(LogisticRegression())).fit(frame, "label")
    assert model.score(frame.drop(columns="label"), y) > 0.8
    assert model.feature_names_in_.tolist() == ["a", "b", "word"]


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("method", METHODS)
def test_saved_and_loaded(tmp_path, method, k):
    X, y = classes(100, k)
    model = CalibratedClassifier(LogisticRegression(), method=method, cv=3).fit(X, y)
    save(model, tmp_path / "m")
    again = load(tmp_path / "m")
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert verify(again, X, y)


def test_what_a_file_cannot_hold(tmp_path):
    X, y = classes(100)
    with pytest.raises(ModelFileError, match="estimator is a GaussianNB"):
        save(CalibratedClassifier(GaussianNB()).fit(X, y), tmp_path / "m")
    for member, value in (
        ("calibrators_", []),
        ("calibrators_", [[]] * 5),
        ("classes_", np.array(["ant"])),
        ("calibration_rows_", [np.zeros(2)] * 5),
        ("estimators_", None),
    ):
        model = CalibratedClassifier().fit(X, y)
        setattr(model, member, value)
        with pytest.raises(ModelFileError, match=r"save: (every|a classifier|classes_|calibration_rows_|estimators_)"):
            save(model, tmp_path / "m")


@pytest.mark.threaded
def test_parallel_folds_are_the_same():
    X, y = classes(100)
    with parallel_config(backend="threading"):
        one, two = (CalibratedClassifier(n_jobs=n).fit(X, y).predict_proba(X) for n in (None, 2))
    np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize(
    ("parameters", "error", "words"),
    [
        ({"method": "beta"}, ParameterError, "method must be one of 'sigmoid', 'isotonic', 'temperature'"),
        ({"cv": 1}, ParameterError, "cv must be an integer >= 2"),
        ({"cv": True}, ParameterError, "cv must be an integer >= 2"),
        ({"cv": "loo"}, ParameterError, "cv must be an integer >= 2"),
        ({"estimator": GaussianNB}, ParameterError, "estimator must be None, or a classifier with"),
        (
            {"estimator": SVC(decision_function_shape="ovo")},
            DataError,
            "one column per class; got shape .* for 4 classes",
        ),
        ({"cv": 60}, DataError, "60 folds need at least 60 rows of every class; class '.*' has .* Use fewer"),
        ({"cv": ShuffleSplit(2), "ensemble": False}, DataError, "ensemble=False needs folds that hold every row once"),
        ({"cv": [([0, 1], [500])]}, ParameterError, "cv names row 500 of 200"),
        ({"cv": [([0, 1], [])]}, ParameterError, "leaves a fold without rows"),
        ({"cv": [(0, 1, 2)]}, ParameterError, "does not work here"),
        ({"cv": "prefit"}, NotFittedError, "not fitted yet"),
    ],
)
def test_refusals(parameters, error, words):
    X, y = classes(200, 4)
    with pytest.raises(error, match=words):
        CalibratedClassifier(**parameters).fit(X, y)


def test_refusals_of_data():
    X, y = classes(60)
    with pytest.raises(DataError, match=r"KNeighborsClassifier\.fit takes no sample_weight"):
        CalibratedClassifier(KNeighborsClassifier()).fit(X, y, np.ones(60))
    two, order = y != "cat", np.argsort(y)
    with pytest.raises(DataError, match="knows the class 'cat', which y does not have"):
        CalibratedClassifier(GaussianNB().fit(X, y), cv="prefit").fit(X[two], y[two])
    with pytest.raises(DataError, match="X has 60 rows, y has 59"):
        CalibratedClassifier().fit(X, y[1:])
    with pytest.raises(DataError, match="ensemble=False needs every class"):
        CalibratedClassifier(cv=KFold(3), ensemble=False).fit(X[order], y[order])
    fitted = CalibratedClassifier().fit(X, y)
    before = dict(vars(fitted))
    with pytest.raises(DataError, match="contains NaN"):
        fitted.fit(np.full_like(X, np.nan), y)
    assert vars(fitted) == before


@pytest.mark.parametrize("method", ["isotonic", "temperature"])
def test_naive_bayes_on_digits_is_mended(reference_data, method):
    # Naive Bayes multiplies hundreds of dependent pixels: it is sure of everything, and often wrong.
    digits = np.load(reference_data / "mnist_t10k.npz")
    X, y = digits["X"][:4000, ::2, ::2].reshape(4000, -1).astype(float), digits["y"][:4000]
    inner = GaussianNB(var_smoothing=1e-2)
    before = log_loss(y[3000:], inner.fit(X[:3000], y[:3000]).predict_proba(X[3000:]))
    after = log_loss(
        y[3000:], CalibratedClassifier(inner, method=method).fit(X[:3000], y[:3000]).predict_proba(X[3000:])
    )
    assert after < 0.5 * before
