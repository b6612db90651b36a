"""One against the rest: scikit-learn's predictions, its own laws, files and certificates."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn import multiclass as peer
from sklearn.datasets import load_iris
from sklearn.linear_model import LinearRegression as SklearnLinear
from sklearn.linear_model import LogisticRegression as SklearnLogistic
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

import learnable as ln
from learnable import LogisticRegression, MultinomialNB, OneVsOneClassifier, OneVsRestClassifier, verify
from learnable.core.errors import DataError, ModelFileError, ParameterError, VerificationError


def draw(n=150, d=4, n_classes=4, seed=0, words=True):
    rng = np.random.default_rng(seed)
    codes = np.r_[np.arange(n_classes), rng.integers(0, n_classes, n - n_classes)]
    X = rng.normal(size=(n_classes, d))[codes] * 1.5 + rng.normal(size=(n, d))
    labels = np.array([f"class {k}" for k in range(n_classes)])[codes] if words else codes
    return X, labels, rng.uniform(0.2, 2.0, n)


@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize(
    "inner", [GaussianNB(), SklearnLogistic(), KNeighborsClassifier(3)], ids=lambda m: type(m).__name__
)
def test_predictions_scores_and_probabilities_are_scikit_learns(inner, n_classes):
    X, y, _ = draw(n_classes=n_classes)
    ours, theirs = OneVsRestClassifier(inner).fit(X, y), peer.OneVsRestClassifier(inner).fit(X, y)
    np.testing.assert_array_equal(ours.classes_, theirs.classes_)
    assert len(ours.estimators_) == len(theirs.estimators_)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), rtol=1e-12, atol=1e-15)
    assert hasattr(ours, "decision_function") == hasattr(theirs, "decision_function")
    if hasattr(ours, "decision_function"):
        np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), rtol=1e-12)
        np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    assert (ours.predict(X) == theirs.predict(X)).mean() > 0.95  # equal scores may be broken differently


@pytest.mark.parametrize("n_classes", [2, 4])
def test_probabilities_sum_to_one_and_the_largest_is_predicted(n_classes):
    X, y, weight = draw(n_classes=n_classes)
    model = OneVsRestClassifier(LogisticRegression()).fit(X, y, weight)
    p = model.predict_proba(X)
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-12)
    np.testing.assert_array_equal(model.classes_[p.argmax(axis=1)], model.predict(X))


def test_rows_that_no_model_claims_get_equal_probabilities():
    X, y, _ = draw(words=False)
    model = OneVsRestClassifier(DecisionTreeClassifier(max_depth=1, random_state=0)).fit(X, y)
    for tree in model.estimators_:
        tree.tree_.value[:, 0] = [1.0, 0.0]
    np.testing.assert_array_equal(model.predict_proba(X), 0.25)


def test_a_model_without_confidence_predicts_too():
    X, y, _ = draw(n_classes=3)
    model = OneVsRestClassifier(SklearnLinear()).fit(X, y)
    assert (model.predict(X) == y).mean() > 0.6
    assert not hasattr(model, "predict_proba") and not hasattr(model, "decision_function")


def test_whole_weights_are_repeated_rows_and_zero_weights_are_no_rows():
    X, y, _ = draw()
    times = np.random.default_rng(0).integers(0, 3, len(y))
    times[y == "class 3"] = 0
    weighted = OneVsRestClassifier(LogisticRegression(tol=1e-12)).fit(X, y, times)
    repeated = OneVsRestClassifier(LogisticRegression(tol=1e-12)).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    assert weighted.classes_.tolist() == ["class 0", "class 1", "class 2"]
    np.testing.assert_allclose(weighted.decision_function(X), repeated.decision_function(X), rtol=1e-4, atol=1e-5)
    with pytest.raises(DataError, match=r"OneVsRestClassifier: KNeighborsClassifier.fit takes no sample_weight"):
        OneVsRestClassifier(KNeighborsClassifier()).fit(X, y, times)


def test_sparse_tables_frames_names_and_paths(tmp_path):
    X, y, weight = draw()
    expected = OneVsRestClassifier(LogisticRegression()).fit(X, y, weight).predict(X)
    frame = pd.DataFrame(X, columns=list("abcd"))
    sparse = OneVsRestClassifier(LogisticRegression()).fit(sp.csr_array(X), y, weight)
    np.testing.assert_array_equal(sparse.predict(sp.csr_array(X)), expected)
    named = OneVsRestClassifier(LogisticRegression()).fit(frame.assign(label=y, s=weight), "label", "s")
    np.testing.assert_array_equal(named.predict(frame), expected)
    assert named.feature_names_in_.tolist() == list("abcd")
    frame.assign(label=y, s=weight).to_csv(tmp_path / "rows.csv", index=False)
    path = str(tmp_path / "rows.csv")
    from_file = OneVsRestClassifier(LogisticRegression()).fit(path, "label", "s")
    np.testing.assert_array_equal(from_file.predict(path), expected)
    assert ln.verify(from_file, path, "label", "s")


def test_the_certificate_is_that_of_the_worst_model():
    X, y, weight = draw()
    model = OneVsRestClassifier(LogisticRegression()).fit(X, y, weight)
    assert model.certificate_.holds and model.certificate_.kind == "gap"
    assert model.certificate_.value == max(inner.certificate_.value for inner in model.estimators_)
    assert model.certificate_.n_iter == sum(inner.certificate_.n_iter for inner in model.estimators_)
    assert OneVsRestClassifier(GaussianNB()).fit(X, y).certificate_.kind == "none"


@pytest.mark.parametrize("n_classes", [2, 4])
def test_honest_fits_are_verified_and_forgeries_are_not(n_classes):
    X, y, weight = draw(n_classes=n_classes)
    model = OneVsRestClassifier(LogisticRegression()).fit(X, y, weight)
    assert ln.verify(model, X, y, weight), str(ln.verify(model, X, y, weight))
    order = np.random.default_rng(0).permutation(len(y))
    assert ln.verify(model, X[order], y[order], weight[order])
    swapped = np.where(y == "class 0", "class 1", np.where(y == "class 1", "class 0", y))
    assert not ln.verify(model, X, swapped, weight)
    assert not ln.verify(model, X + (np.arange(len(y)) == 3)[:, None], y, weight)
    with pytest.raises(VerificationError, match="the data lack a class"):
        ln.verify(model, X, np.where(y == "class 1", "class 9", y), weight)
    model.estimators_[-1].coef_ = model.estimators_[-1].coef_ * 1.001
    assert not ln.verify(model, X, y, weight)


def test_a_round_trip_through_a_file(tmp_path):
    X, y, weight = draw()
    model = OneVsRestClassifier(LogisticRegression()).fit(X, y, weight)
    ln.save(model, tmp_path / "m.safetensors")
    loaded = ln.load(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    assert ln.verify(loaded, X, y, weight)
    loaded.estimators_.pop()
    with pytest.raises(ModelFileError, match="estimators_ must hold 4 models"):
        ln.save(loaded, tmp_path / "m.safetensors")
    with pytest.raises(ModelFileError):
        ln.save(OneVsRestClassifier(GaussianNB()).fit(X, y), tmp_path / "m.safetensors")


@pytest.mark.threaded
@pytest.mark.long
def test_processes_change_nothing():
    X, y, weight = draw()
    one, two = (OneVsRestClassifier(LogisticRegression(), n_jobs=jobs).fit(X, y, weight) for jobs in (None, 2))
    np.testing.assert_array_equal(one.decision_function(X), two.decision_function(X))


def test_what_is_no_classifier_or_no_data_is_refused():
    X, y, _ = draw()
    with pytest.raises(ParameterError, match="OneVsRestClassifier: estimator must be an estimator"):
        OneVsRestClassifier("logistic").fit(X, y)
    with pytest.raises(DataError, match="OneVsRestClassifier: y should be a 1d array"):
        OneVsRestClassifier(LogisticRegression()).fit(X, np.arange(3 * len(y)).reshape(-1, 3))
    with pytest.raises(DataError, match="inconsistent numbers of samples"):
        OneVsRestClassifier(LogisticRegression()).fit(X, y[:-1])
    fitted = OneVsRestClassifier(LogisticRegression()).fit(X, y)
    before = fitted.predict(X)
    with pytest.raises(DataError):
        fitted.fit(np.full_like(X, np.nan), y)
    np.testing.assert_array_equal(fitted.predict(X), before)


def test_error_on_iris_is_that_of_its_binary_models():
    X, y = load_iris(return_X_y=True)
    model = OneVsRestClassifier(LogisticRegression(C=1e4)).fit(X, y)
    scores = np.column_stack([LogisticRegression(C=1e4).fit(X, y == k).decision_function(X) for k in range(3)])
    np.testing.assert_array_equal(model.predict(X), scores.argmax(axis=1))
    assert model.score(X, y) > 0.95


def indicator(n_labels=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(80, 3))
    return X, (X @ rng.normal(size=(3, n_labels)) + 0.3 * rng.normal(size=(80, n_labels)) > 0).astype(int)


@pytest.mark.parametrize("n_labels", [2, 4])
@pytest.mark.parametrize("sparse", [False, True])
def test_rows_with_several_labels_are_a_model_for_each_label(n_labels, sparse):
    X, Y = indicator(n_labels)
    model = OneVsRestClassifier(LogisticRegression()).fit(X, sp.csr_array(Y) if sparse else Y)
    assert model.multilabel_ and len(model.estimators_) == n_labels
    found = model.predict(X)
    assert sp.issparse(found) is sparse
    found = found.toarray() if sparse else found
    alone = [LogisticRegression().fit(X, column) for column in Y.T]
    np.testing.assert_array_equal(found, np.column_stack([one.predict(X) for one in alone]))
    np.testing.assert_array_equal(model.predict_proba(X)[:, 0], alone[0].predict_proba(X)[:, 1])
    np.testing.assert_array_equal(model.decision_function(X)[:, 1], alone[1].decision_function(X))
    assert verify(model, X, Y)
    assert not verify(model, X, Y[:, ::-1])


def test_a_label_that_all_or_no_rows_have_is_predicted_for_all():
    X, Y = indicator(2)
    Y = np.column_stack([Y[:, 0], np.ones(80, dtype=int), np.zeros(80, dtype=int)])
    with pytest.warns(UserWarning, match="Label not 2 is present in all"):
        model = OneVsRestClassifier(LogisticRegression()).fit(X, Y)
    np.testing.assert_array_equal(model.predict(X)[:, 1:], Y[:, 1:])
    assert model.certificate_.kind == "none"
    one = OneVsRestClassifier(LogisticRegression()).fit(X, ["a"] * 80)
    assert set(one.predict(X)) == {"a"}
    np.testing.assert_array_equal(one.predict_proba(X)[:, 0], 1.0)


@pytest.mark.parametrize("reduction", [OneVsRestClassifier, OneVsOneClassifier])
@pytest.mark.parametrize("cut", [20, 50, 100])
def test_rows_in_pieces_give_what_all_at_once_give(reduction, cut):
    rng = np.random.default_rng(cut)
    X, y = rng.poisson(2.0, size=(120, 4)), np.array(list("abcd"))[np.sort(rng.integers(4, size=120))]
    pieces = reduction(MultinomialNB())
    pieces.partial_fit(X[:cut], y[:cut], classes=list("abcd"))
    pieces.partial_fit(X[cut:], y[cut:])
    whole = reduction(MultinomialNB()).fit(X, y)
    np.testing.assert_array_equal(pieces.predict(X), whole.predict(X))
    before = pieces.predict(X)
    with pytest.raises(ValueError, match="Mini-batch contains"):
        pieces.partial_fit(X[:2], ["a", "z"])
    np.testing.assert_array_equal(pieces.predict(X), before)
    with pytest.raises(ValueError, match="classes must be passed"):
        reduction(MultinomialNB()).partial_fit(X, y)
    assert not hasattr(reduction(LogisticRegression()), "partial_fit")
