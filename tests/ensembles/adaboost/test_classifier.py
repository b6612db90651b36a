"""AdaBoost: its theorems, the book's algorithm, scikit-learn, and what a user may do with it."""

import threading
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits, load_iris
from sklearn.ensemble import AdaBoostClassifier as SklearnAdaBoost
from sklearn.linear_model import LogisticRegression as SklearnLogistic
from sklearn.tree import DecisionTreeClassifier
from tests.oracles import boosting as oracle

import learnable as ln
from learnable.core.errors import DataError, ModelFileError, ParameterError
from learnable.ensembles import AdaBoostClassifier, margin_optimum, training_bound
from learnable.linear import LogisticRegression

VARIANTS = ("discrete", "real", "float", "totally-corrective")


def noisy(seed=0, n=300, d=4, K=2, noise=0.5):
    """Rows whose class no few stumps can tell."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    score = X[:, 0] * X[:, 1] + X[:, 0] + noise * rng.standard_normal(n)
    return X, np.digitize(score, np.quantile(score, np.arange(1, K) / K))


def staged_errors(model, X, y, weight=None):
    return np.array([1 - score for score in model.staged_score(X, y, weight)])


# Laws


@settings(max_examples=30)
@given(st.integers(0, 10**6), st.integers(2, 4), st.booleans())
def test_the_training_error_stays_under_its_bound_in_every_round(seed, K, weighted):
    X, y = noisy(seed, 80, 3, K)
    weight = np.random.default_rng(seed).random(80) + 0.1 if weighted else None
    model = AdaBoostClassifier(n_estimators=15).fit(X, y, weight)
    errors = staged_errors(model, X, y, weight)
    assert (errors <= model.training_bound_ + 1e-12).all()
    np.testing.assert_allclose(model.training_bound_, training_bound(model.estimator_errors_, K), rtol=1e-8)
    if K == 2:
        gamma = 0.5 - model.estimator_errors_
        assert (model.training_bound_ <= np.exp(-2 * np.cumsum(gamma**2)) * (1 + 1e-9)).all()
        np.testing.assert_allclose(model.training_bound_, model.exponential_loss_, rtol=1e-10)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("rate", [1.0, 0.3])
def test_every_variant_lowers_the_loss_which_bounds_the_error(variant, rate):
    X, y = noisy(1)
    model = AdaBoostClassifier(n_estimators=20, variant=variant, learning_rate=rate).fit(X, y)
    if variant != "float":  # which may remove a learner, to have the best ensemble of its size
        assert (np.diff(model.exponential_loss_) < 1e-12).all()
    f = model.raw_score(X)
    assert np.mean(np.exp(-np.where(y == 1, 1, -1) * f)) == pytest.approx(model.exponential_loss_[-1], rel=1e-9)
    assert 1 - model.score(X, y) <= model.training_bound_[-1]


@settings(max_examples=15)
@given(st.integers(0, 10**6))
def test_it_is_the_algorithm_of_the_book(seed):
    X, y = noisy(seed, 40, 2)
    errors, votes, traces = oracle.textbook(X, y, 6)
    model = AdaBoostClassifier(n_estimators=6, vote="half").fit(X, y)
    np.testing.assert_allclose(model.estimator_errors_, errors, atol=1e-10)
    np.testing.assert_allclose(model.estimator_weights_, votes, atol=1e-8)
    for f, expected in zip(model.staged_raw_score(X), traces, strict=True):
        np.testing.assert_allclose(f, expected, atol=1e-8)


def test_it_is_forward_stagewise_modelling_with_the_exponential_loss():
    X, y = noisy(3, 25, 2)
    model = AdaBoostClassifier(n_estimators=4).fit(X, y)
    np.testing.assert_allclose(model.exponential_loss_, oracle.stagewise(X, y, 4), rtol=1e-7)


@pytest.mark.parametrize("seed", range(6))
def test_totally_corrective_votes_are_never_above_discrete_ones(seed):
    X, y = noisy(seed, 150, 3)
    discrete = AdaBoostClassifier(n_estimators=12).fit(X, y)
    corrective = AdaBoostClassifier(n_estimators=12, variant="totally-corrective").fit(X, y)
    rounds = min(len(corrective.exponential_loss_), 12)
    loss = discrete.exponential_loss_[:rounds]
    assert (corrective.exponential_loss_[:rounds] <= loss * (1 + 1e-9)).all()


def test_totally_corrective_leaves_no_learner_an_edge():
    X, y = noisy(2)
    model = AdaBoostClassifier(n_estimators=10, variant="totally-corrective").fit(X, y)
    D = np.exp(-np.where(y == 1, 1, -1) * model.raw_score(X))
    errors = [D[stump.predict(X) != y].sum() / D.sum() for stump in model.estimators_]
    np.testing.assert_allclose(errors, 0.5, atol=1e-6)


def test_floatboost_removes_learners_and_ends_with_a_smaller_loss_for_their_number():
    X, y = load_breast_cancer(return_X_y=True)
    discrete = AdaBoostClassifier(n_estimators=40).fit(X, y)
    model = AdaBoostClassifier(n_estimators=40, variant="float").fit(X, y)
    removed = model.rounds_["removed"]
    assert (removed >= 0).any() and len(model.estimator_weights_) == (removed < 0).sum() == 40
    assert model.exponential_loss_[-1] < discrete.exponential_loss_[-1]


def test_the_smallest_margin_approaches_the_optimum_of_the_linear_program():
    X, y = np.array([[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]]), np.array([0, 1, 1, 0, 0, 1])
    sign = np.where(y == 1, 1.0, -1.0)
    U = np.column_stack([sign * (2 * oracle.says(stump, X) - 1) for stump in oracle.all_stumps(X)])
    best = margin_optimum(U).margin
    assert best == pytest.approx(1 / 3)
    found = [AdaBoostClassifier(n_estimators=T, learning_rate=0.05).fit(X, y).margins(X, y).min() for T in (50, 5000)]
    assert found[0] < found[1] <= best + 1e-12
    assert found[1] > 0.95 * best


def test_margins_grow_after_the_training_error_is_zero(reference_data):
    letters = np.genfromtxt(reference_data / "letter_recognition.csv.gz", delimiter=",", skip_header=1, dtype=str)
    header = np.genfromtxt(reference_data / "letter_recognition.csv.gz", delimiter=",", max_rows=1, dtype=str)
    y = letters[:2000, list(header).index("letter")]
    X = np.delete(letters, list(header).index("letter"), axis=1)[:2000].astype(float)
    model = AdaBoostClassifier(DecisionTreeClassifier(max_depth=10), n_estimators=40, random_state=0).fit(X, y)
    errors = staged_errors(model, X, y)
    zero = int(np.argmax(errors == 0))
    assert 0 < zero < 25
    early, late = (
        np.quantile(_margins_of_first(model, X, y, T), 0.05) for T in (zero + 1, len(model.estimator_weights_))
    )
    assert late > early + 0.03
    assert late > 0


def _margins_of_first(model, X, y, T):
    votes = np.zeros((len(y), len(model.classes_)))
    for weight, tree in zip(model.estimator_weights_[:T], model.estimators_[:T], strict=True):
        votes[np.arange(len(y)), np.searchsorted(model.classes_, tree.predict(X))] += weight
    own = votes[np.arange(len(y)), np.searchsorted(model.classes_, y)]
    votes[np.arange(len(y)), np.searchsorted(model.classes_, y)] = -1
    return (own - votes.max(axis=1)) / model.estimator_weights_[:T].sum()


# Published numbers


def test_the_three_rounds_of_freund_and_schapire():
    """Schapire and Freund, Boosting: Foundations and Algorithms, 2012, figure 1.1: errors and votes of ten points."""
    X = np.array([[1, 5], [2, 2], [5, 8], [6, 10], [8, 7], [3, 1], [4, 6], [7, 4], [9, 9], [10, 3]], dtype=float)
    y = np.repeat([1, 0], 5)
    model = AdaBoostClassifier(n_estimators=3, vote="half").fit(X, y)
    np.testing.assert_array_equal(model.estimator_errors_.round(2), [0.30, 0.21, 0.14])
    np.testing.assert_array_equal(model.estimator_weights_.round(2), [0.42, 0.65, 0.92])
    np.testing.assert_array_equal(model.predict(X), y)


# scikit-learn


@pytest.mark.parametrize("load", [load_breast_cancer, load_iris, load_digits])
@pytest.mark.parametrize("rate", [1.0, 0.5])
def test_with_its_trees_it_is_scikit_learns(load, rate):
    X, y = load(return_X_y=True)
    tree = DecisionTreeClassifier(max_depth=1, random_state=0)
    ours = AdaBoostClassifier(tree, n_estimators=15, learning_rate=rate).fit(X, y)
    theirs = SklearnAdaBoost(tree, n_estimators=15, learning_rate=rate, random_state=0).fit(X, y)
    np.testing.assert_allclose(ours.estimator_weights_, theirs.estimator_weights_, rtol=1e-9)
    np.testing.assert_allclose(ours.estimator_errors_, theirs.estimator_errors_, rtol=1e-9)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-9)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    own = [learner.feature_importances_ for learner in ours.estimators_]
    np.testing.assert_allclose(ours.feature_importances_, np.average(own, axis=0, weights=ours.estimator_weights_))
    for a, b in zip(ours.staged_decision_function(X), theirs.staged_decision_function(X), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-9)


@pytest.mark.parametrize("load", [load_breast_cancer, load_iris])
def test_stumps_are_as_good_as_scikit_learns(load):
    X, y = load(return_X_y=True)
    test = np.arange(len(y)) % 3 == 0
    ours = AdaBoostClassifier(n_estimators=50).fit(X[~test], y[~test]).score(X[test], y[test])
    theirs = SklearnAdaBoost(n_estimators=50, random_state=0).fit(X[~test], y[~test]).score(X[test], y[test])
    assert ours >= theirs - 0.015


# What a user does


@pytest.mark.parametrize("variant", VARIANTS)
def test_probabilities_margins_and_scores_belong_together(variant):
    X, y = noisy(5)
    labels = np.where(y == 1, "yes", "no")
    model = AdaBoostClassifier(n_estimators=12, variant=variant).fit(X, labels)
    f, p = model.raw_score(X), model.predict_proba(X)
    np.testing.assert_allclose(p[:, 1], 1 / (1 + np.exp(-2 * f)), rtol=1e-10)
    np.testing.assert_allclose(model.predict_log_proba(X), np.log(p))
    half = clone(model).set_params(vote="half").fit(X, labels)
    np.testing.assert_allclose(half.estimator_weights_, model.estimator_weights_ / 2)
    np.testing.assert_array_equal(half.predict_proba(X), p)
    np.testing.assert_allclose(model.margins(X, labels), np.where(y == 1, 1, -1) * f / half.estimator_weights_.sum())
    assert (np.abs(model.margins(X, labels)) <= 1 + 1e-12).all()
    np.testing.assert_array_equal(list(model.staged_predict(X))[-1], model.predict(X))
    np.testing.assert_allclose(list(model.staged_predict_proba(X))[-1], p)


@pytest.mark.parametrize("variant", ["discrete", "float"])
def test_many_classes(variant):
    X, y = load_iris(return_X_y=True)
    model = AdaBoostClassifier(n_estimators=30, variant=variant).fit(X, y)
    assert model.score(X, y) > 0.95
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    assert model.decision_function(X).shape == (150, 3)
    shares = np.stack([model.classes_[None, :] == stump.predict(X)[:, None] for stump in model.estimators_])
    votes = np.tensordot(model.estimator_weights_ / model.estimator_weights_.sum(), shares, 1)
    others = np.where(np.arange(3) == y[:, None], -1, votes).max(axis=1)
    np.testing.assert_allclose(model.margins(X, y), votes[np.arange(150), y] - others, atol=1e-12)


def test_real_trees_of_many_classes():
    X, y = load_digits(return_X_y=True)
    test = np.arange(len(y)) % 2 == 0
    tree = DecisionTreeClassifier(max_depth=3)
    model = AdaBoostClassifier(tree, n_estimators=25, variant="real", random_state=0).fit(X[~test], y[~test])
    alone = tree.fit(X[~test], y[~test]).score(X[test], y[test])
    assert model.score(X[test], y[test]) > alone + 0.2


@pytest.mark.parametrize("variant", ["real", "totally-corrective"])
def test_variants_for_two_classes_say_so(variant):
    X, y = load_iris(return_X_y=True)
    with pytest.raises(DataError, match=r"is for two classes; got 3.*OneVsRestClassifier"):
        AdaBoostClassifier(variant=variant).fit(X, y)
    rest = ln.OneVsRestClassifier(AdaBoostClassifier(n_estimators=5, variant=variant)).fit(X, y)
    assert rest.score(X, y) > 0.9


def test_early_stopping_returns_the_best_round_on_the_rows_held_out():
    X, y = noisy(7, 2000, 6, noise=1.5)
    model = AdaBoostClassifier(n_estimators=300, n_iter_no_change=10, validation_fraction=0.2, random_state=0).fit(X, y)
    out = model.validation_rows_
    assert len(out) == pytest.approx(400, abs=2)
    errors = staged_errors(model, X[out], y[out])
    np.testing.assert_allclose(errors, model.validation_errors_, atol=1e-12)
    assert errors.argmin() == len(errors) - 1 < 299
    again = AdaBoostClassifier(n_estimators=len(errors)).fit(np.delete(X, out, axis=0), np.delete(y, out))
    np.testing.assert_array_equal(again.estimator_weights_, model.estimator_weights_)


@pytest.mark.parametrize("variant", VARIANTS)
def test_early_stopping_of_every_variant(variant):
    X, y = noisy(7, 600, 4, noise=1.5)
    model = AdaBoostClassifier(n_estimators=40, n_iter_no_change=5, variant=variant, random_state=1).fit(X, y)
    error = 1 - model.score(X[model.validation_rows_], y[model.validation_rows_])
    assert error == pytest.approx(model.validation_errors_.min())
    assert ln.verify(model, X, y)


def test_a_time_limit_returns_what_there_is():
    X, y = noisy(0, 2000, 10, noise=2.0)
    model = AdaBoostClassifier(n_estimators=10**6, max_seconds=0.05).fit(X, y)
    assert 1 <= len(model.estimator_weights_) < 10**5
    assert ln.verify(model, X, y)


@pytest.mark.threaded
@pytest.mark.parametrize("variant", VARIANTS)
def test_the_same_bits_for_any_number_of_threads_and_sparse_rows(variant):
    X, y = noisy(4, 60_000, 8)
    X = np.where(np.abs(X) < 0.5, 0.0, np.round(X, 2))
    one, two = (AdaBoostClassifier(n_estimators=4, variant=variant, n_jobs=j).fit(X, y) for j in (1, 2))
    np.testing.assert_array_equal(one.estimator_weights_, two.estimator_weights_)
    np.testing.assert_array_equal(one.predict_proba(X), two.predict_proba(X))
    stored = AdaBoostClassifier(n_estimators=4, variant=variant).fit(sp.csr_array(X), y)
    np.testing.assert_allclose(stored.estimator_weights_, one.estimator_weights_, rtol=1e-9)
    np.testing.assert_allclose(stored.predict_proba(sp.csr_array(X)), one.predict_proba(X), rtol=1e-9)


def test_a_stump_without_error_ends_the_rounds():
    model = AdaBoostClassifier().fit([[0.0], [1.0]], ["a", "b"])
    assert len(model.estimators_) == 1
    assert model.estimator_errors_[0] == 0.0
    np.testing.assert_array_equal(model.predict([[0.1], [0.9]]), ["a", "b"])
    assert (model.predict_proba([[0.1], [0.9]]).max(axis=1) > 0.7).all()


def test_rows_that_no_stump_can_tell_are_an_error_that_says_so():
    X, y = [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], [0, 1, 1, 0]
    with pytest.raises(DataError, match=r"no stump is better than guessing.* 0\.5\."):
        AdaBoostClassifier().fit(X, y)
    assert AdaBoostClassifier(DecisionTreeClassifier(max_depth=2)).fit(X, y).score(X, y) == 1.0


def test_constant_columns_give_the_majority():
    model = AdaBoostClassifier().fit(np.ones((5, 2)), [0, 0, 0, 1, 1])
    np.testing.assert_array_equal(model.predict(np.ones((2, 2))), [0, 0])
    np.testing.assert_array_equal(model.feature_importances_, [0.0, 0.0])
    np.testing.assert_allclose(model.predict_proba([[1.0, 1.0]]), [[0.6, 0.4]])


@pytest.mark.parametrize("scale", [1e300, 1e-300])
def test_columns_of_any_scale(scale):
    X, y = noisy(6)
    small, large = AdaBoostClassifier(n_estimators=5).fit(X, y), AdaBoostClassifier(n_estimators=5).fit(X * scale, y)
    np.testing.assert_allclose(small.estimator_weights_, large.estimator_weights_, rtol=1e-9)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"n_estimators": 0}, "n_estimators must be an integer >= 1"),
        ({"learning_rate": 0.0}, "learning_rate must be"),
        ({"variant": "SAMME.R"}, "variant must be one of 'discrete'"),
        ({"vote": "third"}, "vote must be one of"),
        ({"validation_fraction": 1.0}, "validation_fraction must be"),
        ({"estimator": 3}, "estimator must be an estimator"),
    ],
)
def test_bad_parameters(bad, message):
    with pytest.raises(ParameterError, match=f"AdaBoostClassifier: {message}"):
        AdaBoostClassifier(**bad).fit([[0.0], [1.0]], [0, 1])


def test_what_cannot_be_done_is_said():
    X, y = noisy()
    with pytest.raises(DataError, match="leaves no row"):
        AdaBoostClassifier(n_iter_no_change=3).fit([[0.0], [1.0]], [0, 1])
    model = AdaBoostClassifier(SklearnLogistic(), n_estimators=2).fit(X, y)
    with pytest.raises(AttributeError, match="no feature_importances_"):
        model.feature_importances_  # noqa: B018
    with pytest.raises(DataError, match="but y has 2 labels"):
        model.margins(X, y[:2])
    with pytest.raises(DataError, match="has not seen"):
        model.margins(X, y + 5)


@pytest.mark.threaded
def test_predictions_from_several_threads():
    X, y = noisy()
    model = AdaBoostClassifier(n_estimators=5).fit(X, y)
    found = []
    threads = [threading.Thread(target=lambda: found.append(model.predict(X))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all((a == b).all() for a, b in pairwise(found))


# Files


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("estimator", [None, LogisticRegression()])
def test_a_round_trip(tmp_path, variant, estimator):
    X, y = noisy(8)
    labels = np.where(y == 1, "yes", "no")
    model = AdaBoostClassifier(estimator, n_estimators=4, variant=variant).fit(X, labels)
    ln.save(model, tmp_path / "m.safetensors")
    loaded = ln.load(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    assert ln.verify(loaded, X, labels)


def test_a_learner_of_another_library_cannot_be_saved(tmp_path):
    X, y = noisy()
    model = AdaBoostClassifier(DecisionTreeClassifier(max_depth=1), n_estimators=2).fit(X, y)
    with pytest.raises(ModelFileError, match="DecisionTreeClassifier"):
        ln.save(model, tmp_path / "m.safetensors")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("estimator_weights_", np.array([1.0, np.nan, 1.0])),
        ("estimator_weights_", np.array([1.0, -1.0, 1.0])),
        ("estimator_weights_", np.zeros(3)),
        ("estimator_weights_", np.ones(2)),
        ("estimator_weights_", [1.0, 1.0, 1.0]),
        ("classes_", np.array([0])),
        ("classes_", np.array([0, 1, 2])),
        ("n_features_in_", 1),
        ("stumps_", None),
        ("models_", []),
        ("n_rows_", 0),
    ],
)
def test_unsound_files_are_refused(tmp_path, name, value):
    X, y = noisy()
    model = AdaBoostClassifier(n_estimators=3).fit(X[:, 1:], y)
    assert model.stumps_.feature.max() > 0
    setattr(model, name, value)
    with pytest.raises(ModelFileError):
        ln.save(model, tmp_path / "m.safetensors")


@pytest.mark.parametrize("models", [[], [LogisticRegression()] * 2, [Ellipsis, Ellipsis]])
def test_unsound_models_are_refused(models):
    X, y = noisy()
    model = AdaBoostClassifier(LogisticRegression(), n_estimators=2).fit(X, y)
    model._check_loaded()
    model.models_ = models
    with pytest.raises(ModelFileError):
        model._check_loaded()


@pytest.mark.parametrize("estimator", [None, ln.DecisionTreeClassifier(max_depth=1)])
@pytest.mark.parametrize("variant", ["discrete", "real", "float", "totally-corrective"])
def test_one_class_is_always_named(estimator, variant, tmp_path):
    X, y = np.arange(12.0).reshape(6, 2), ["a"] * 6
    model = ln.AdaBoostClassifier(estimator, variant=variant).fit(X, y)
    ln.save(model, tmp_path / "one.safetensors")
    for one in (model, ln.load(tmp_path / "one.safetensors")):
        assert one.predict(X).tolist() == y and one.score(X, y) == 1.0
        np.testing.assert_array_equal(one.predict_proba(X), np.ones((6, 1)))
        assert [labels.tolist() for labels in one.staged_predict(X)] == [y]
        assert len(one) == 1 and one[0].predict(X).tolist() == y
        assert ln.verify(one, X, y)


@pytest.mark.parametrize("rate", [5.0, 23.0, 1e3, 1e6])
def test_a_learning_rate_that_overflows_ends_the_rounds(rate):
    X, y = load_iris(return_X_y=True)
    with pytest.warns(UserWarning, match="Sample weights have reached infinite values"):
        model = ln.AdaBoostClassifier(n_estimators=30, learning_rate=rate).fit(X, y)
    assert len(model) <= 5 and np.isfinite(model.estimator_weights_).all()
    assert model.score(X, y) >= 0.6 and ln.verify(model, X, y)
