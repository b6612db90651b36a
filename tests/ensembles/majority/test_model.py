"""Boosting by majority: the theorem level by level, the oracle, its calls, and what a user may do with it."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer
from sklearn.exceptions import ConvergenceWarning

import learnable as ln
from learnable import BoostByMajority, DecisionTreeClassifier
from learnable.core.errors import DataError, ModelFileError, ParameterError
from learnable.ensembles.majority.model import n_levels
from learnable.ensembles.majority.three_votes import boosted_error


def diagonal(seed=0, n=400):
    """Rows on which a stump is right three times out of four."""
    X = np.random.default_rng(seed).uniform(-1, 1, (n, 2))
    return X, np.where(X.sum(axis=1) > 0, "yes", "no")


def diagonal_oracle(seed):
    rng = np.random.default_rng(seed)

    def oracle(m):
        X = rng.uniform(-1, 1, (m, 2))
        return X, (X.sum(axis=1) > 0).astype(int)

    return oracle


# Laws


@pytest.mark.filterwarnings("ignore:BoostByMajority")
@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.floats(0.02, 0.3), st.booleans())
def test_every_vote_errs_at_most_on_3_alpha_squared_minus_2_alpha_cubed(seed, epsilon, weighted):
    X, y = diagonal(seed, 200)
    weight = np.random.default_rng(seed).random(200) + 0.1 if weighted else None
    model = BoostByMajority(epsilon=epsilon, gamma=0.15, sample_size=300, max_calls=200_000, random_state=seed)
    model.fit(X, y, weight)
    alpha, error = model.vote_errors_[:, :3].max(axis=1, initial=0), model.vote_errors_[:, 3]
    inside = alpha < 0.5
    assert (error[inside] <= boosted_error(alpha[inside]) + 1e-12).all()
    assert model.error_ == pytest.approx(1 - model.score(X, y, weight), abs=1e-12)
    assert ln.verify(model, X, y, weight)


def test_the_map_of_the_lecture():
    """Errata of the notes (lecture 11): 0.4 → 0.352 → 0.28448 → 0.19675."""
    errors = [0.4]
    for _ in range(3):
        errors.append(boosted_error(errors[-1]))
    np.testing.assert_allclose(errors, [0.4, 0.352, 0.28448, 0.19675], atol=5e-6)
    assert [n_levels(e, 0.1) for e in errors] == [0, 1, 2, 3]


def test_the_error_falls_with_the_target():
    X, y = load_breast_cancer(return_X_y=True)
    models = [BoostByMajority(epsilon=e, gamma=0.1, random_state=0).fit(X, y) for e in (0.3, 0.06, 0.02)]
    assert all(model.error_ <= model.epsilon for model in models)
    assert len(models[0].votes_) == 0 < len(models[1].votes_) < len(models[2].votes_)
    assert models[0].n_calls_ < models[1].n_calls_ < models[2].n_calls_


# The oracle


def test_fresh_examples_are_learned_to_the_error_asked_for():
    """PAC: the error under the distribution itself is at most ε in nearly all of the runs."""
    failures = 0
    for seed in range(8):
        model = BoostByMajority(epsilon=0.15, delta=0.2, gamma=0.15, sample_size=500, max_calls=10**8, random_state=1)
        model.fit_oracle(diagonal_oracle(seed), [0, 1])
        X, y = diagonal_oracle(1000 + seed)(50_000)
        error = 1 - model.score(X, y)
        assert abs(error - model.error_) < 0.05 + 0.01
        failures += error > 0.15
    assert failures <= 1
    assert model.certificate_.kind == "none"
    with pytest.raises(Exception, match="proves nothing"):
        ln.verify(model, X, y)


def test_calls_are_those_that_the_oracle_counts():
    asked, inner = [], diagonal_oracle(3)

    def oracle(m):
        asked.append(m)
        return inner(m)

    model = BoostByMajority(epsilon=0.2, gamma=0.15, max_calls=10**8, random_state=0).fit_oracle(oracle, [0, 1])
    assert model.n_calls_ == sum(asked) > 1000


def test_a_good_first_hypothesis_is_returned_alone():
    model = BoostByMajority(epsilon=0.3, gamma=0.1, random_state=0).fit(*diagonal())
    assert len(model.votes_) == 0 and len(model.estimators_) == 1 and model.n_calls_ == 1000


def test_an_oracle_that_misbehaves_is_named():
    model = BoostByMajority()
    for bad, said in [
        (lambda m: (np.zeros((m + 1, 2)), np.zeros(m + 1)), "must return 1000 rows"),
        (lambda m: (np.full((m, 2), np.nan), np.zeros(m)), "NaN or infinity"),
        (lambda m: (np.zeros((m, 2)), np.full(m, 7)), "not one of classes"),
    ]:
        with pytest.raises(DataError, match=said):
            model.fit_oracle(bad, [0, 1])
    with pytest.raises(DataError, match="two labels"):
        model.fit_oracle(diagonal_oracle(0), [0, 1, 2])
    assert not hasattr(model, "classes_")


def test_spent_calls_leave_the_best_so_far_and_say_so():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((200, 3)), rng.integers(0, 2, 200)
    with pytest.warns(ConvergenceWarning, match="max_calls"):
        model = BoostByMajority(epsilon=0.01, gamma=0.02, max_calls=20_000, random_state=0).fit(X, y)
    assert model.n_calls_ < 60_000 and model.error_ < 0.5 and ln.verify(model, X, y)
    oracle = BoostByMajority(epsilon=0.01, gamma=0.1, max_calls=5_000, random_state=0)
    with pytest.warns(ConvergenceWarning, match="max_calls"):
        oracle.fit_oracle(diagonal_oracle(1), [0, 1])
    assert np.isnan(oracle.error_) and oracle.predict(X[:, :2]).shape == (200,)


# What a user may do


def test_any_classifier_may_be_the_weak_learner():
    X, y = diagonal()
    model = BoostByMajority(DecisionTreeClassifier(max_depth=1), epsilon=0.05, gamma=0.15, random_state=0).fit(X, y)
    assert model.error_ <= 0.05 and len(model.votes_) >= 1 and ln.verify(model, X, y)


def test_sparse_rows_and_files_give_the_same_model(tmp_path):
    X, y = diagonal()
    dense = BoostByMajority(epsilon=0.05, gamma=0.15, random_state=0).fit(X, y)
    thin = BoostByMajority(epsilon=0.05, gamma=0.15, random_state=0).fit(sp.csr_array(X), y)
    assert (dense.predict(X) == thin.predict(X)).all()
    path = tmp_path / "model.safetensors"
    ln.save(dense, path)
    loaded = ln.load(path)
    assert (loaded.predict(X) == dense.predict(X)).all() and ln.verify(loaded, X, y)


def test_forgeries_are_found():
    X, y = diagonal()

    def fitted():
        return BoostByMajority(epsilon=0.05, gamma=0.15, random_state=0).fit(X, y)

    assert ln.verify(fitted(), X, y)
    swapped = fitted()
    swapped.classes_ = swapped.classes_[::-1]
    rewired = fitted()
    rewired.votes_ = rewired.votes_[:, ::-1].copy()
    better = fitted()
    better.error_ = 0.0
    better.vote_errors_ = better.vote_errors_ * 0.999
    moved = fitted()
    moved.stumps_.threshold[:] += 0.01
    assert not any(ln.verify(model, X, y) for model in (swapped, rewired, better, moved))
    assert not ln.verify(fitted(), X, np.roll(y, 1))


def test_damaged_files_are_refused():
    model = BoostByMajority(epsilon=0.05, gamma=0.15, random_state=0).fit(*diagonal())
    for name, value in [
        ("votes_", model.votes_ + 100),
        ("votes_", model.votes_.astype(float)),
        ("root_", len(model.estimators_) + len(model.votes_)),
        ("classes_", np.arange(3)),
        ("models_", []),
    ]:
        broken = BoostByMajority(epsilon=0.05, gamma=0.15, random_state=0).fit(*diagonal())
        setattr(broken, name, value)
        with pytest.raises(ModelFileError, match="BoostByMajority"):
            broken._check_loaded()


def test_what_it_does_not_do():
    da = pytest.importorskip("dask.array")
    with pytest.raises(DataError, match="Only binary"):
        BoostByMajority().fit([[0.0], [1.0], [2.0]], [0, 1, 2])
    with pytest.raises(ParameterError, match="epsilon must be"):
        BoostByMajority(epsilon=0.5).fit(*diagonal())
    X, y = diagonal()
    lazy = da.from_array(X, chunks=100), da.from_array((y == "yes").astype(int), chunks=100)
    with pytest.raises(DataError, match="fit_oracle"):
        BoostByMajority().fit(*lazy)
