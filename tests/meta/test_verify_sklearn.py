"""`verify` of scikit-learn workflows: every model inside is checked, and what is not checked is said."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.ensemble import StackingClassifier, VotingClassifier
from sklearn.linear_model import Ridge as OtherRidge
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from tests.meta.workflows import WORKFLOWS, diabetes, iris

import learnable as ln
from learnable.core import VerificationError


def fit(name):
    data, make = WORKFLOWS[name]
    X, y = data()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return make().fit(X, y), X, y


def models_inside(model):
    """Return the fitted models of this library in a workflow."""
    if hasattr(model, "certificate_"):
        return [model]
    if hasattr(model, "steps"):
        return models_inside(model.steps[-1][1])
    if hasattr(model, "best_estimator_"):
        return models_inside(model.best_estimator_)
    found = [inside for member in model.estimators_ for inside in models_inside(member)]
    return found + (models_inside(model.final_estimator_) if hasattr(model, "final_estimator_") else [])


def tamper(model):
    for member in ("coef_", "theta_", "targets_", "feature_log_prob_"):
        if hasattr(model, member):
            setattr(model, member, getattr(model, member) * 1.001)
            return
    model.trees_.value[:] *= 1.001


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", WORKFLOWS)
def test_a_workflow_is_verified_and_a_changed_model_is_not(name, tmp_path):
    model, X, y = fit(name)
    ln.save(model, tmp_path / "model.safetensors")
    model = ln.load(tmp_path / "model.safetensors")
    verdict = ln.verify(model, X, y)
    assert verdict, str(verdict)
    for number in range(len(models_inside(model))):
        changed = ln.load(tmp_path / "model.safetensors")
        tamper(models_inside(changed)[number])
        found = ln.verify(changed, X, y)
        assert not found, (number, str(found))
        assert found.reasons


@pytest.mark.parametrize("name", ["standard", "sparse one-hot", "target encoder", "components", "stacking", "grid"])
def test_other_rows_are_refused(name):
    model, X, y = fit(name)
    rows = np.r_[0:40, 50 : len(y)]
    fewer = X.iloc[rows] if hasattr(X, "iloc") else X[rows]
    assert not ln.verify(model, fewer, y[rows])


def test_a_changed_step_is_refused():
    model, X, y = fit("standard")
    model.steps[0][1].mean_ = model.steps[0][1].mean_ + 1e-3
    found = ln.verify(model, X, y)
    assert not found
    assert "not those of the fit" in str(found)
    model, X, y = fit("components")
    model.steps[0][1].components_ = model.steps[0][1].components_ * 1.001
    assert not ln.verify(model, X, y)


def test_a_step_that_cannot_transform_is_a_reason():
    model, X, y = fit("standard")
    model.steps[0][1].mean_ = np.zeros(3)
    found = ln.verify(model, X, y)
    assert not found
    assert "cannot transform" in str(found)


def test_what_is_not_checked_is_said():
    words = str(ln.verify(*fit("frame")))
    assert words.startswith("verified: ")
    assert "not checked: what the steps before the model do to rows other than these" in words
    assert "not checked: the scores of the search, and so its choice" in str(ln.verify(*fit("grid")))
    assert ln.verify(*fit("voting of numbers")).unchecked == ()


def test_members_have_verdicts_of_their_own():
    model, X, y = fit("stacking of numbers")
    found = ln.verify(model, X, y)
    assert [name for name, _ in found.members] == ["ridge", "near", "final_estimator"]
    assert all(verdict for _, verdict in found.members)
    tamper(model.final_estimator_)
    found = ln.verify(model, X, y)
    assert [bool(verdict) for _, verdict in found.members] == [True, True, False]
    assert "of 'final_estimator'" in str(found)


@pytest.mark.parametrize(
    ("seed", "checked"),
    [(None, False), (0, True)],
)
def test_a_final_model_of_random_features_is_not_claimed(seed, checked):
    X, y = iris()
    members = [("bayes", ln.GaussianNB()), ("wood", ln.RandomForestClassifier(5, random_state=seed))]
    folds = KFold(3, shuffle=True, random_state=0)
    model = StackingClassifier(members, final_estimator=ln.LogisticRegression(), cv=folds).fit(X, y)
    found = ln.verify(model, X, y)
    assert found
    assert [name for name, _ in found.members] == ["bayes", "wood", "final_estimator"][: 3 if checked else 2]
    assert ("draw random numbers without a seed" in str(found)) is not checked
    tamper(model.final_estimator_)
    assert bool(ln.verify(model, X, y)) is not checked


def test_a_final_model_on_a_large_table_is_not_refitted(monkeypatch):
    from learnable.meta import verify_sklearn

    monkeypatch.setattr(verify_sklearn, "_MOST_NUMBERS", 100)
    model, X, y = fit("stacking")
    found = ln.verify(model, X, y)
    assert found
    assert "6 fits on folds" in str(found)


def test_models_that_were_fitted_before():
    X, y = diabetes()
    labels = (y > np.median(y)).astype(int)
    members = [("bayes", ln.GaussianNB().fit(X, labels)), ("line", ln.LogisticRegression().fit(X, labels))]
    model = StackingClassifier(members, final_estimator=ln.LogisticRegression(), cv="prefit").fit(X, labels)
    found = ln.verify(model, X, labels)
    assert found, str(found)
    assert found.unchecked == ()
    tamper(model.final_estimator_)
    assert not ln.verify(model, X, labels)


def test_weights_of_rows_are_those_of_the_last_model():
    X, y = diabetes()
    weight = np.random.default_rng(0).random(len(y))
    model = Pipeline([("scale", StandardScaler()), ("model", ln.Ridge())])
    model.fit(X, y, model__sample_weight=weight)
    assert ln.verify(model, X, y, weight)
    assert not ln.verify(model, X, y)
    voters = VotingClassifier([("bayes", ln.GaussianNB()), ("line", ln.LogisticRegression())])
    labels = np.where(y > 150, "ill", "well")
    voters.fit(X, labels, sample_weight=weight)
    assert ln.verify(voters, X, labels, weight)
    assert not ln.verify(voters, X, labels)


def test_random_steps_without_a_seed_are_named():
    X, y = diabetes()
    model = Pipeline([("pca", PCA(2, svd_solver="randomized")), ("model", ln.Ridge())]).fit(X, y)
    found = ln.verify(model, X, y)
    assert not found
    assert "a step draws random numbers; fit with integer seeds" in str(found)


def test_other_labels_are_a_reason():
    model, X, y = fit("voting")
    found = ln.verify(model, X, np.where(y == "setosa", "other", y))
    assert not found
    assert "labels" in str(found)


@pytest.mark.parametrize(
    "model",
    [
        StandardScaler(),
        Pipeline([("scale", StandardScaler()), ("model", OtherRidge())]),
        Pipeline([("scale", StandardScaler()), ("model", ln.Ridge())]),
        GridSearchCV(ln.Ridge(), {"alpha": [1.0]}, refit=False),
    ],
)
def test_what_cannot_be_verified_is_an_error(model):
    X, y = diabetes()
    if not (isinstance(model, Pipeline) and isinstance(model.steps[1][1], ln.Ridge)):
        model = clone(model).fit(X, y)
    with pytest.raises(VerificationError, match=r"^verify: "):
        ln.verify(model, X, y)
