"""Full-batch fits of sequence models: what they certify, and that the independent check finds every change."""

import numpy as np
import pytest

import learnable as ln
from learnable import LSTMClassifier, LSTMRegressor, RNNClassifier, RNNRegressor
from learnable.core.errors import ParameterError, VerificationError

RNG = np.random.default_rng(0)
ENDS = RNG.integers(2, 6, 30)
LISTS = [RNG.normal(size=(n, 2)) for n in ENDS]
SUMS = np.array([x[:, 0].sum() for x in LISTS])
EXACT = {"solver": "lbfgs", "alpha": 3.0, "max_iter": 500, "tol": 1e-3, "random_state": 0}

MODELS = {
    "lstm": (LSTMRegressor(3, **EXACT), LISTS, SUMS),
    "lstm of two layers": (LSTMRegressor(2, n_recurrent_layers=2, **EXACT), LISTS, SUMS),
    "gru": (RNNRegressor(3, cell="gru", loss="huber", **EXACT), LISTS, np.c_[SUMS, -SUMS]),
    "tanh": (RNNClassifier(3, class_weight="balanced", **EXACT), LISTS, np.digitize(SUMS, [-1, 1])),
    "numbers at every step": (
        RNNRegressor(3, predicts="every_step", cell="gru", **EXACT),
        LISTS,
        [x[:, 0].cumsum() for x in LISTS],
    ),
    "classes at every step": (
        LSTMClassifier(3, predicts="every_step", **EXACT),
        LISTS,
        [np.where(x[:, 0] > 0, "up", "down") for x in LISTS],
    ),
    "rows of a table": (LSTMClassifier(2, **EXACT), RNG.normal(size=(30, 4)), RNG.integers(0, 2, 30)),
}


@pytest.fixture(scope="module")
def fitted():
    made = {}

    def fit(name):
        if name not in made:
            model, X, y = MODELS[name]
            made[name] = model.fit(X, y, sample_weight=np.linspace(0.5, 1.5, 30))
        return made[name], *MODELS[name][1:]

    return fit


@pytest.mark.parametrize("name", MODELS)
def test_fits_on_all_sequences_are_stationary_and_verified(name, fitted):
    model, X, y = fitted(name)
    weight = np.linspace(0.5, 1.5, 30)
    assert model.certificate_.kind == "stationarity"
    assert model.certificate_.holds
    verdict = ln.verify(model, X, y, weight)
    assert verdict, str(verdict)
    assert not ln.verify(model, X, y)  # other weights, another objective


@pytest.mark.parametrize("name", MODELS)
def test_every_changed_array_is_found(name, fitted):
    model, X, y = fitted(name)
    weight = np.linspace(0.5, 1.5, 30)
    changes = {
        "theta_": model.theta_ + 0.01,
        "gradient_": model.gradient_ + 0.01,
        "loss_": model.loss_ * 1.01,
        "n_inputs_": model.n_inputs_ + 1,
        "buffers_": np.zeros((1, 1)),
        "center_": np.zeros(2),
    }
    if hasattr(model, "classes_"):
        changes["classes_"] = model.classes_[::-1].copy()
    for attribute, value in changes.items():
        before = getattr(model, attribute, None)
        setattr(model, attribute, value)
        try:
            assert not ln.verify(model, X, y, weight), attribute
        except VerificationError:
            pass  # refused in words
        finally:
            setattr(model, attribute, before)
    assert ln.verify(model, X, y, weight)


def test_lengths_are_those_of_a_list():
    padded = np.zeros((30, 5, 2))
    for row, x in zip(padded, LISTS, strict=True):
        row[: len(x)] = x
    model = LSTMRegressor(3, **EXACT).fit(padded, SUMS, lengths=ENDS)
    assert ln.verify(model, LISTS, SUMS)
    assert not ln.verify(model, padded, SUMS)  # all of five steps


def test_polish_certifies_a_stochastic_fit_and_without_it_nothing_is_proven():
    settings = {
        "alpha": 3.0,
        "max_iter": 400,
        "tol": 1e-3,
        "learning_rate_init": 0.01,
        "random_state": 0,
        "n_iter_no_change": 5,
    }
    rough = LSTMRegressor(3, **settings).fit(LISTS, SUMS)
    assert rough.certificate_.kind == "none"
    assert rough.certificate_.value > 0.0
    polished = LSTMRegressor(3, polish=True, **settings).fit(LISTS, SUMS)
    assert polished.certificate_.kind == "stationarity"
    assert polished.theta_.dtype == np.float64
    assert polished.loss_ <= rough.loss_
    assert ln.verify(polished, LISTS, SUMS)
    with pytest.raises(VerificationError, match="proves nothing"):
        ln.verify(rough, LISTS, SUMS)


def test_what_has_no_whole_gradient_is_refused():
    with pytest.raises(ParameterError, match="truncation=2 leaves a part of it out"):
        LSTMRegressor(2, truncation=2, polish=True).fit(LISTS, SUMS)
    with pytest.raises(ParameterError, match="dropout does"):
        RNNRegressor(2, dropout=0.5, solver="lbfgs").fit(LISTS, SUMS)
