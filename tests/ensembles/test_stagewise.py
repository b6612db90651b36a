"""Forward stagewise additive modelling: coordinate descent on any loss, AdaBoost among them."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from sklearn.base import is_classifier, is_regressor
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.tree import DecisionTreeClassifier as SklearnTree

import learnable as ln
from learnable import AdaBoostClassifier, DecisionTreeRegressor, ForwardStagewiseAdditive, Ridge
from learnable.core.errors import DataError, ModelFileError, ParameterError
from learnable.ensembles.loss_names import LOSSES, classifies, named_loss
from learnable.risk.losses import HuberLoss, LogisticLoss, SoftmaxLoss

NUMBERS = [name for name in LOSSES if not classifies(name)]
LABELS = [name for name in LOSSES if classifies(name)]


def table(seed, labels, n=60):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3))
    score = X[:, 0] * X[:, 1] + X[:, 2] + 0.3 * rng.standard_normal(n)
    return X, (score > 0).astype(int) if labels else np.exp(0.5 * score)


# Laws


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([*LOSSES]), st.sampled_from([1.0, 0.5]), st.booleans())
def test_the_training_loss_never_rises_and_is_verified(seed, loss, rate, weighted):
    X, y = table(seed, classifies(loss))
    weight = np.random.default_rng(seed).random(len(y)) + 0.1 if weighted else None
    model = ForwardStagewiseAdditive(loss, n_estimators=6, learning_rate=rate).fit(X, y, weight)
    assert (np.diff(model.train_loss_) < 0).all() and len(model.steps_) >= 1
    assert model.certificate_.holds and ln.verify(model, X, y, weight)


@pytest.mark.parametrize("loss", LOSSES)
def test_no_step_along_the_last_learner_is_better(loss):
    """Oracle: a general-purpose minimiser along the same direction."""
    X, y = table(3, classifies(loss))
    model = ForwardStagewiseAdditive(loss, n_estimators=3, learning_rate=0.5).fit(X, y)
    V, t = named_loss(loss), np.where(y == 1, 1.0, -1.0) if classifies(loss) else y
    before, after = list(model.staged_raw_score(X))[-2:]
    h = (after - before) / (0.5 * model.steps_[-1])
    best = minimize_scalar(
        lambda beta: V.value(t, before + beta * h).mean(), bounds=(0, 5 * model.steps_[-1]), options={"xatol": 1e-12},
        method="bounded",
    )  # fmt: skip
    ours = V.value(t, before + model.steps_[-1] * h).mean()
    assert ours <= best.fun + 1e-12 * max(1.0, abs(best.fun))


@pytest.mark.parametrize("weighted", [False, True])
def test_the_exponential_loss_with_stumps_is_adaboost(weighted):
    X, y = load_breast_cancer(return_X_y=True)
    weight = np.random.default_rng(0).random(len(y)) + 0.5 if weighted else None
    ada = AdaBoostClassifier(n_estimators=40, vote="half").fit(X, y, weight)
    model = ForwardStagewiseAdditive("exponential", n_estimators=40, start="zero").fit(X, y, weight)
    np.testing.assert_allclose(model.steps_, ada.estimator_weights_, rtol=1e-9)
    np.testing.assert_array_equal(model.stumps_.feature, ada.stumps_.feature)
    np.testing.assert_allclose(model.train_loss_[1:], ada.exponential_loss_, rtol=1e-9)
    np.testing.assert_allclose(model.predict_proba(X), ada.predict_proba(X), atol=1e-9)


def test_the_squared_loss_fits_residuals():
    X, y = load_diabetes(return_X_y=True)
    model = ForwardStagewiseAdditive(learner=DecisionTreeRegressor(max_depth=2), n_estimators=5).fit(X, y)
    f = np.full(len(y), y.mean())
    for beta in model.steps_:
        tree = DecisionTreeRegressor(max_depth=2).fit(X, y - f)
        f += tree.predict(X)
        assert beta == pytest.approx(1.0, abs=1e-9)
    np.testing.assert_allclose(model.predict(X), f, rtol=1e-9)


def test_a_linear_learner_needs_one_round():
    """The squared loss's best direction among linear functions is the least-squares fit: coordinate descent is done."""
    X, y = load_diabetes(return_X_y=True)
    model = ForwardStagewiseAdditive(learner=ln.LinearRegression(), n_estimators=50).fit(X, y)
    assert len(model.steps_) == 1
    np.testing.assert_allclose(model.predict(X), ln.LinearRegression().fit(X, y).predict(X), rtol=1e-8)


@pytest.mark.parametrize(
    ("loss", "wanted"),
    [
        ("squared_error", np.mean),
        ("absolute_error", np.median),
        ("poisson", lambda y: np.log(np.mean(y))),
        ("gamma", lambda y: np.log(np.mean(y))),
    ],
)
def test_the_first_score_is_the_best_constant(loss, wanted):
    X, y = table(0, False, 61)
    assert ForwardStagewiseAdditive(loss, n_estimators=1).fit(X, y).start_[0] == pytest.approx(wanted(y), abs=1e-7)


# What a user may do


def test_classes_and_their_probabilities():
    X, y = load_iris(return_X_y=True)
    model = ForwardStagewiseAdditive("log_loss", n_estimators=20).fit(X, y)
    assert model.score(X, y) > 0.98 and len(model.models_) == 60
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)
    assert (model.classes_[model.predict_proba(X).argmax(axis=1)] == model.predict(X)).all()
    assert not hasattr(ForwardStagewiseAdditive("hinge"), "predict_proba")
    assert not hasattr(ForwardStagewiseAdditive(), "decision_function")
    two = ForwardStagewiseAdditive(SoftmaxLoss(), n_estimators=5).fit(X[:100], y[:100])
    assert two.decision_function(X[:5]).shape == (5, 2) and two.score(X[:100], y[:100]) == 1.0


def test_the_kind_of_estimator_is_the_losss():
    assert is_regressor(ForwardStagewiseAdditive("huber")) and not is_classifier(ForwardStagewiseAdditive("huber"))
    assert is_classifier(ForwardStagewiseAdditive(LogisticLoss()))


def test_learners_may_be_any_classifier_or_regressor():
    X, y = table(1, True, 200)
    for learner in (SklearnTree(max_depth=2, random_state=0), Ridge(), ln.LogisticRegression()):
        model = ForwardStagewiseAdditive("log_loss", learner, n_estimators=10).fit(X, y)
        assert len(model.steps_) >= 1 and model.train_loss_[-1] < model.train_loss_[0] and ln.verify(model, X, y)
    with pytest.raises(DataError, match="use a regressor"):
        ForwardStagewiseAdditive("log_loss", SklearnTree()).fit(*load_iris(return_X_y=True))


def test_custom_losses_steps_and_sparse_rows():
    class Quartic:
        def value(self, y, z):
            return (z - y) ** 4

        def gradient(self, y, z):
            return 4 * (z - y) ** 3

        def predict(self, z):
            return z

    X, y = table(2, False)
    custom = ForwardStagewiseAdditive(Quartic(), n_estimators=20).fit(X, y)
    assert custom.train_loss_[-1] < 0.2 * custom.train_loss_[0] and ln.verify(custom, X, y)
    fixed = ForwardStagewiseAdditive(step="fixed", learning_rate=0.1, n_estimators=5).fit(X, y)
    decay = ForwardStagewiseAdditive(step="sqrt-decay", learning_rate=0.1, n_estimators=5).fit(X, y)
    np.testing.assert_allclose(decay.steps_, 1 / np.sqrt(np.arange(1, 6)))
    assert ln.verify(fixed, X, y) and ln.verify(decay, X, y)
    X[np.abs(X) < 0.5] = 0
    dense = ForwardStagewiseAdditive(HuberLoss(delta=0.3), n_estimators=5).fit(X, y)
    thin = ForwardStagewiseAdditive(HuberLoss(delta=0.3), n_estimators=5).fit(sp.csr_array(X), y)
    np.testing.assert_allclose(dense.predict(X), thin.predict(sp.csr_array(X)), rtol=1e-9)


def test_it_stops_in_time():
    X, y = load_diabetes(return_X_y=True)
    model = ForwardStagewiseAdditive(n_estimators=10**6, learning_rate=1e-3, max_seconds=0.3).fit(X, y)
    assert 1 <= len(model.steps_) < 10**6


def test_files_and_forgeries(tmp_path):
    for loss in ("exponential", "huber"):
        X, y = table(4, classifies(loss))
        model = ForwardStagewiseAdditive(loss, n_estimators=5).fit(X, y)
        ln.save(model, tmp_path / "m.safetensors")
        loaded = ln.load(tmp_path / "m.safetensors")
        np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
        assert ln.verify(loaded, X, y) and not ln.verify(loaded, X[::-1], y)
        loaded.steps_ = loaded.steps_ * 1.001
        assert not ln.verify(loaded, X, y)
        model.start_ = model.start_ + 1e-3
        assert not ln.verify(model, X, y)
        model.steps_ = model.steps_[1:]
        with pytest.raises(ModelFileError):
            model._check_loaded()


def test_bad_targets_and_parameters_are_refused():
    X, y = table(0, False)
    with pytest.raises(DataError, match="counts"):
        ForwardStagewiseAdditive("poisson").fit(X, y - 10)
    with pytest.raises(DataError, match="> 0"):
        ForwardStagewiseAdditive("gamma").fit(X, 0 * y)
    with pytest.raises(DataError, match="Only binary"):
        ForwardStagewiseAdditive("exponential").fit(*load_iris(return_X_y=True))
    with pytest.raises(ParameterError, match="loss must be"):
        ForwardStagewiseAdditive("squared").fit(X, y)
    with pytest.raises(DataError, match="too large"):
        ForwardStagewiseAdditive().fit(X, 1e200 * y)


def test_constant_targets_need_no_round():
    model = ForwardStagewiseAdditive().fit([[0.0], [1.0]], [3.0, 3.0])
    assert len(model.steps_) == 0 and model.predict([[5.0]]).tolist() == [3.0]
