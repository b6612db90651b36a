"""ConformalClassifier: coverage by simulation, sets by their definition, and what it refuses."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import KFold
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier
from tests.evaluation.wrapped import classes
from tests.oracles import conformal as oracle

from learnable import LogisticRegression, load, save, verify
from learnable.core import DataError, ModelFileError, ParameterError
from learnable.evaluation import CalibratedClassifier, ConformalClassifier
from learnable.evaluation.conformal.models import label_scores
from learnable.meta import TableModel

METHODS = ("split", "cv+")
SCORES = ("lac", "aps")


def draw(rng, n, k=4):
    y = rng.integers(k, size=n)
    return rng.normal(size=(n, 2)) + 1.5 * np.array([[0, 0], [1, 0], [0, 1], [1, 1]])[y], y


def simulate(make, repeats, n, n_new=60, level=0.8):
    """Return the mean coverage over `repeats` fits and its standard error."""
    shares = []
    for seed in range(repeats):
        X, y = draw(np.random.default_rng(seed), n + n_new)
        chosen = make(seed).fit(X[:n], y[:n]).predict_set(X[n:], level)
        shares.append(np.mean(chosen[np.arange(n_new), y[n:]]))
    return np.mean(shares), np.std(shares) / np.sqrt(repeats)


# GaussianNB: fitted in a fraction of a millisecond, and of continuous probabilities.
@pytest.mark.parametrize(("score", "randomized"), [("lac", False), ("aps", True)])
def test_split_covers_exactly_as_often_as_it_says(score, randomized):
    def make(seed):
        return ConformalClassifier(
            GaussianNB(), conformity_score=score, randomized=randomized, allow_empty=True, share=0.4, random_state=seed
        )

    mean, error = simulate(make, 250, 60)
    assert abs(mean - oracle.rank(0.8, 24) / 25) < 4 * error
    # Beta(20, 5) seen through 60 new rows: variance 0.00615 + (0.16 - 0.00615)/60 = 0.0087, so 0.0059 for 250 repeats.
    assert 0.0045 < error < 0.0075


@pytest.mark.sampled(4)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("score", SCORES)
def test_coverage_is_at_least_the_level(method, score):
    mean, error = simulate(
        lambda seed: ConformalClassifier(
            GaussianNB(), method=method, conformity_score=score, share=0.4, random_state=seed
        ),
        100,
        60,
    )
    assert mean > 0.8 - 4 * error
    # From above there is no theorem: an empty set is given the likeliest label, and the folds of CV+ vote. One label
    # alone is right about as often as the best rule is (0.6 here), so what is added stays below 0.8 + 0.2 * 0.6.
    assert mean < 0.8 + 0.2 * 0.6 + 4 * error


@pytest.mark.long
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("score", "randomized"), [("lac", False), ("aps", False), ("aps", True)])
@pytest.mark.parametrize(
    "inner",
    [LogisticRegression(), DecisionTreeClassifier(max_depth=4, random_state=0), KNeighborsClassifier(7)],
    ids=["logistic", "tree", "knn"],
)
def test_coverage_of_many_models(method, score, randomized, inner):
    def make(seed):
        return ConformalClassifier(
            inner,
            method=method,
            conformity_score=score,
            randomized=randomized,
            allow_empty=True,
            share=0.4,
            random_state=seed,
        )

    mean, error = simulate(make, 300, 60)
    assert mean > 0.8 - 4 * error
    # Without ties the coverage is known exactly; a tree's leaf gives several labels probability zero, which tie.
    if method == "split" and randomized and isinstance(inner, LogisticRegression):
        assert abs(mean - oracle.rank(0.8, 24) / 25) < 4 * error


@settings(max_examples=100, deadline=None)
@given(
    hnp.arrays(np.float64, (3, 5), elements=st.integers(0, 4).map(float)),
    st.floats(0.0, 1.0),
)
def test_label_scores_are_their_definition(counts, u):
    p = (counts + 1e-3) / (counts + 1e-3).sum(axis=1, keepdims=True)
    scores = label_scores(p, "aps", np.full(3, u))
    for i in range(3):
        for k in range(5):
            assert scores[i, k] == pytest.approx(oracle.aps_score(p[i], k, u), abs=1e-12)
    np.testing.assert_array_equal(label_scores(p, "lac", np.full(3, u)), 1.0 - p)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("level", [0.5, 0.9])
def test_sets_are_their_definition(method, score, level):
    X, y = classes(80)
    model = ConformalClassifier(method=method, conformity_score=score, allow_empty=True, random_state=0).fit(X, y)
    new = X[:5] + 0.4
    expected = np.zeros((5, 3), dtype=bool)
    for i in range(5):
        for k in range(3):
            below = n = 0
            for fold in range(model.folds_.max() + 1):
                inner = LogisticRegression().fit(X[model.folds_ != fold], y[model.folds_ != fold])

                def strangeness(x, code, inner=inner):
                    p = inner.predict_proba(x[None, :])[0]
                    return 1 - p[code] if score == "lac" else oracle.aps_score(p, code, 0.0)

                for row in np.flatnonzero(model.folds_ == fold):
                    own = strangeness(X[row], list(model.classes_).index(y[row]))
                    below += own < strangeness(new[i], k)
                    n += 1
            expected[i, k] = below < oracle.rank(level, n)
    np.testing.assert_array_equal(model.predict_set(new, level), expected)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("score", SCORES)
def test_sets_grow_with_the_level_and_are_never_empty_unless_allowed(method, score):
    X, y = classes(200)
    X[:, 0] *= 3  # easy rows: at a low level many sets of lac would be empty
    model = ConformalClassifier(method=method, conformity_score=score, random_state=0).fit(X, y)
    before = np.zeros((200, 3), dtype=bool)
    for level in (0.3, 0.6, 0.9):
        chosen = model.predict_set(X, level)
        assert chosen.any(axis=1).all()
        assert (chosen >= before).all()
        before = chosen
    likeliest = model.predict_set(X, 0.3)[np.arange(200), model.predict_proba(X).argmax(axis=1)]
    assert likeliest.mean() > 0.9
    empty = ~model.set_params(allow_empty=True).predict_set(X, 0.3).any(axis=1)
    if score == "lac":
        assert empty.any()
    elif method == "split":  # the likeliest label has score zero; under cv+ the folds may disagree which one that is
        assert not empty.any()


def test_chance_is_drawn_anew_unless_it_has_a_seed():
    X, y = classes(200)
    seeded = ConformalClassifier(randomized=True, random_state=0).fit(X, y)
    np.testing.assert_array_equal(seeded.predict_set(X), seeded.predict_set(X))
    free = ConformalClassifier(randomized=True).fit(X, y)
    assert any((free.predict_set(X) != free.predict_set(X)).any() for _ in range(5))
    assert len(np.unique(seeded.uniform_)) == 50
    plain = ConformalClassifier(random_state=0).fit(X, y)
    assert not plain.uniform_.any()
    np.testing.assert_array_equal(plain.folds_, seeded.folds_)


def test_too_few_rows_for_the_level_give_all_labels_and_say_so():
    X, y = classes(60)
    model = ConformalClassifier(random_state=0).fit(X, y)  # 15 rows calibrate
    with pytest.warns(UserWarning, match="level 0.95 needs at least 19 calibration rows, but there are 15"):
        assert model.predict_set(X, 0.95).all()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.predict_set(X, 0.9)


def test_a_fold_without_a_class():
    X, y = classes(150)
    order = np.argsort(y, kind="stable")
    model = ConformalClassifier(GaussianNB(), method="cv+", cv=KFold(3)).fit(X[order], y[order])
    assert model.predict_set(X).shape == (150, 3)
    assert model.predict_proba(X).shape == (150, 3)
    assert np.mean(model.predict_set(X)[np.arange(150), np.searchsorted(model.classes_, y)]) > 0.8


def test_a_fitted_classifier_may_know_more_classes_than_the_rows_that_calibrate_it():
    X, y = classes(300)
    inner = LogisticRegression().fit(X[:150], y[:150])
    two = np.flatnonzero(y[150:] != "cat") + 150
    for model in (ConformalClassifier(inner, cv="prefit"), ConformalClassifier(FrozenEstimator(inner))):
        model.fit(X[two], y[two])
        assert model.classes_.tolist() == ["ant", "bee", "cat"]
        assert model.predict_set(X).shape == (300, 3)
        assert "provided that the model was not fitted" in model.guarantee_
    assert verify(ConformalClassifier(inner, cv="prefit").fit(X[two], y[two]), X[two], y[two])


@pytest.mark.parametrize("container", [sp.csr_array, np.ndarray.tolist, pd.DataFrame, pl.DataFrame])
def test_containers_give_the_same(container):
    X, y = classes(90)
    expected = ConformalClassifier(method="cv+", random_state=0).fit(X, y).predict_set(X)
    model = ConformalClassifier(method="cv+", random_state=0).fit(container(X), y.tolist())
    assert np.mean(model.predict_set(container(X)) == expected) > 0.99  # sums of sparse rows round differently


def test_messy_tables_and_uncalibrated_classifiers():
    X, y = classes(120)
    frame = pd.DataFrame(X, columns=["a", "b"]).assign(word=np.where(y == "ant", "x", "y"), label=y)
    model = ConformalClassifier(TableModel(LogisticRegression()), method="cv+", random_state=0).fit(frame, "label")
    chosen = model.predict_set(frame.drop(columns="label"))
    assert np.mean(chosen[np.arange(120), np.searchsorted(model.classes_, y)]) > 0.85
    assert verify(model, frame, "label")
    assert ConformalClassifier(CalibratedClassifier(LinearSVC())).fit(X, y).predict_set(X).any(axis=1).all()


@pytest.mark.parametrize(
    "model",
    [
        ConformalClassifier(LogisticRegression(C=0.1), random_state=0),
        ConformalClassifier(method="cv+", conformity_score="lac", random_state=0),
        ConformalClassifier(CalibratedClassifier(cv=3), randomized=True, random_state=0),
    ],
    ids=repr,
)
def test_saved_and_loaded(tmp_path, model):
    X, y = classes(90)
    save(model.fit(X, y), tmp_path / "m")
    again = load(tmp_path / "m")
    np.testing.assert_array_equal(again.predict_set(X, 0.8), model.predict_set(X, 0.8))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert verify(again, X, y)


@pytest.mark.parametrize(
    ("member", "value"),
    [
        ("classes_", np.array(["ant", "bee"])),
        ("classes_", None),
        ("uniform_", np.zeros(3)),
        ("scores_", np.full(60, np.inf)),
        ("folds_", np.arange(60)),
        ("estimators_", []),
    ],
)
def test_a_state_that_no_fit_gives_is_refused(tmp_path, member, value):
    X, y = classes(60)
    model = ConformalClassifier(method="cv+", random_state=0).fit(X, y)
    setattr(model, member, value)
    with pytest.raises(ModelFileError):
        save(model, tmp_path / "m")


@pytest.mark.parametrize(
    ("parameters", "error", "words"),
    [
        ({"estimator": LinearSVC()}, ParameterError, "estimator must be None, or a classifier with predict_proba"),
        ({"method": "jackknife+"}, ParameterError, "method must be one of 'split', 'cv"),
        ({"conformity_score": "raps"}, ParameterError, "conformity_score must be one of 'lac', 'aps'"),
        ({"level": 0.0}, ParameterError, "level must be a number > 0 and < 1"),
        ({"cv": "prefit", "method": "cv+"}, ParameterError, "a fitted model has no folds"),
        ({"method": "cv+", "cv": 61}, DataError, "61 folds need at least as many rows; got n_samples = 60"),
    ],
)
def test_refusals(parameters, error, words):
    X, y = classes(60)
    with pytest.raises(error, match=f"ConformalClassifier: {words}"):
        ConformalClassifier(**parameters).fit(X, y)


def test_refusals_of_labels():
    X, y = classes(60)
    with pytest.raises(DataError, match="needs at least two classes"):
        ConformalClassifier().fit(X, np.zeros(60))
    with pytest.raises(DataError, match="knows the class 'ant', which y does not have"):
        ConformalClassifier(GaussianNB().fit(X, y), cv="prefit").fit(X, np.where(y == "ant", "asp", y))


@pytest.mark.parametrize("score", SCORES)
def test_coverage_on_letters(reference_data, score):
    table = pd.read_csv(reference_data / "letter_recognition.csv.gz").sample(9000, random_state=0)
    target = next(name for name in table.columns if table[name].nunique() == 26 and table[name].dtype.kind not in "iuf")
    X, y = table.drop(columns=target).to_numpy(dtype=float), table[target].to_numpy()
    model = ConformalClassifier(GaussianNB(), conformity_score=score, level=0.9, random_state=0).fit(X[:5000], y[:5000])
    chosen = model.predict_set(X[5000:])
    covered = np.mean(chosen[np.arange(4000), np.searchsorted(model.classes_, y[5000:])])
    assert abs(covered - 0.9) < 4 * np.sqrt(0.09 * (1 / 4000 + 1 / 1250))
    assert chosen.sum(axis=1).mean() < 13  # half of the alphabet would be no news
