"""Where boosting starts, as scikit-learn shows it, and what is printed while rounds go on."""

import copy
import re

import numpy as np
import pytest
from sklearn import ensemble as peer
from sklearn.dummy import DummyClassifier, DummyRegressor

import learnable as ln

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 3))
Z = X[:, 0] + 0.3 * RNG.normal(size=120)
WEIGHT = RNG.uniform(0.5, 2.0, 120)


@pytest.mark.parametrize("loss", ["squared_error", "absolute_error", "huber", "quantile"])
def test_a_regressor_starts_from_the_constant_model_of_scikit_learn(loss):
    ours = ln.GradientBoostingRegressor(loss=loss, n_estimators=3, alpha=0.7).fit(X, Z).init_
    theirs = peer.GradientBoostingRegressor(loss=loss, n_estimators=3, alpha=0.7).fit(X, Z).init_
    assert isinstance(ours, DummyRegressor)
    assert ours.get_params() == theirs.get_params()
    if loss != "quantile":  # between two rows, the quantile has several conventions
        np.testing.assert_allclose(ours.predict(X), theirs.predict(X))


@pytest.mark.parametrize("loss", ["log_loss", "exponential"])
@pytest.mark.parametrize("cuts", [[0.2], [-0.5, 0.5]])
def test_a_classifier_starts_from_the_class_shares(loss, cuts):
    if loss == "exponential" and len(cuts) > 1:
        pytest.skip("scikit-learn's exponential loss is for two classes")
    y = np.array(["a", "b", "c"])[np.digitize(Z, cuts)]
    ours = ln.GradientBoostingClassifier(loss=loss, n_estimators=3).fit(X, y, WEIGHT).init_
    theirs = peer.GradientBoostingClassifier(loss=loss, n_estimators=3).fit(X, y, WEIGHT).init_
    assert isinstance(ours, DummyClassifier)
    assert ours.get_params() == theirs.get_params()
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X))


def test_a_start_that_was_given_is_the_fitted_model_and_zero_is_zero(tmp_path):
    given = ln.GradientBoostingRegressor(init=ln.Ridge(), n_estimators=3).fit(X, Z)
    np.testing.assert_allclose(given.init_.predict(X), ln.Ridge().fit(X, Z).predict(X))
    assert ln.GradientBoostingRegressor(init="zero", n_estimators=3).fit(X, Z).init_ == "zero"
    assert not hasattr(ln.GradientBoostingRegressor(), "init_")
    for model in (given, ln.GradientBoostingRegressor(n_estimators=3).fit(X, Z)):
        ln.save(model, tmp_path / "m.safetensors")
        for again in (ln.load(tmp_path / "m.safetensors"), copy.deepcopy(model)):
            np.testing.assert_array_equal(again.init_.predict(X), model.init_.predict(X))
            assert ln.verify(again, X, Z)


@pytest.mark.parametrize("verbose", [0, 1, 2])
def test_a_histogram_model_prints_its_rounds(capsys, verbose):
    ln.HistGradientBoostingRegressor(max_iter=4, verbose=verbose).fit(X, Z)
    lines = capsys.readouterr().out.splitlines()
    rounds = [line for line in lines if re.match(r"\[\d/4\] 1 tree, \d+ leaves, max depth = \d+, train loss: ", line)]
    assert len(rounds) == (4 if verbose == 2 else 0)
    assert len(lines) - len(rounds) == (verbose > 0)


def test_lines_of_several_trees_and_of_early_stopping(capsys):
    y = np.digitize(Z, [-0.5, 0.5])
    model = ln.HistGradientBoostingClassifier(max_iter=5, verbose=2, early_stopping=True, n_iter_no_change=2)
    quiet = ln.HistGradientBoostingClassifier(max_iter=5, early_stopping=True, n_iter_no_change=2, random_state=0)
    model.set_params(random_state=0).fit(X, y)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("[1/5] 3 trees, ")
    assert "score of the rows that decide: " in lines[0]
    np.testing.assert_array_equal(model.predict_proba(X), quiet.fit(X, y).predict_proba(X))
