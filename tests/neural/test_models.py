"""The models: scikit-learn's contract, laws, references, resuming, files, failures."""

import threading
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier as TheirClassifier
from sklearn.neural_network import MLPRegressor as TheirRegressor

import learnable as ln
from learnable import (
    LogisticRegression,
    LSTMClassifier,
    LSTMRegressor,
    MLPClassifier,
    MLPRegressor,
    ResNetRegressor,
    RNNClassifier,
    RNNRegressor,
)
from learnable.core.errors import DataError, ModelFileError, ParameterError, VerificationError
from learnable.neural import LeakyReLU, windows
from learnable.solvers import Adagrad, Momentum, OneCycle, Plateau, RMSprop, Truncate

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def table(n=200, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    return X, X[:, 0] * X[:, 1] + 0.1 * rng.normal(size=n)


@pytest.mark.parametrize(
    ("ours", "theirs", "classes"),
    [(MLPClassifier, TheirClassifier, True), (MLPRegressor, TheirRegressor, False)],
)
def test_parameters_and_defaults_are_scikit_learns(ours, theirs, classes):
    known, wanted = ours().get_params(), theirs().get_params()
    assert wanted == {name: known[name] for name in wanted}
    X, y = table(60)
    fitted = theirs(max_iter=2, early_stopping=True).fit(X, y > 0 if classes else y)
    model = ours(max_iter=2, early_stopping=True).fit(X, y > 0 if classes else y)
    public = {name for name in vars(fitted) if name.endswith("_") and not name.startswith("_")}
    assert {name for name in public if not hasattr(model, name)} == set()


@pytest.mark.parametrize("activation", ["tanh", "relu", "logistic", "identity"])
def test_l_bfgs_reaches_scikit_learns_objective_from_the_same_start(activation):
    X, y = table(80)
    settings = {"hidden_layer_sizes": (6,), "activation": activation, "solver": "lbfgs", "alpha": 0.5, "tol": 1e-6}
    ours = MLPRegressor(max_iter=3000, random_state=0, **settings).fit(X, y)
    theirs = TheirRegressor(max_iter=1, random_state=0, **settings)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs.fit(X, y)
    theirs.set_params(warm_start=True, max_iter=3000)
    start = MLPRegressor(max_iter=1, random_state=0, **settings).fit(X, y)
    theirs.coefs_ = [np.array(W, dtype=float) for W in start.coefs_]
    theirs.intercepts_ = [np.array(b, dtype=float) for b in start.intercepts_]
    theirs.fit(X, y)
    assert ours.loss_ <= theirs.loss_ * 1.05
    residual = ours.predict(X) - y
    penalty = 0.5 * 0.5 * sum(float((W**2).sum()) for W in ours.coefs_) / len(y)
    assert ours.loss_ == pytest.approx(0.5 * np.mean(residual**2) + penalty, rel=1e-9)


def test_a_linear_network_is_least_squares():
    X, y = table()
    model = MLPRegressor(hidden_layer_sizes=(), solver="lbfgs", alpha=0.0, tol=1e-9, max_iter=1000).fit(X, y)
    exact = ln.LinearRegression().fit(X, y)
    np.testing.assert_allclose(model.coefs_[0][:, 0], exact.coef_, atol=1e-6)
    np.testing.assert_allclose(model.predict(X), exact.predict(X), atol=1e-6)


def test_a_one_layer_logistic_network_is_logistic_regression():
    X, y = table()
    model = MLPClassifier((), solver="lbfgs", alpha=2.0, tol=1e-9, max_iter=1000).fit(X, y > 0)
    exact = LogisticRegression(C=0.5).fit(X, y > 0)
    np.testing.assert_allclose(model.coefs_[0][:, 0], exact.coef_[0], atol=1e-5)
    np.testing.assert_allclose(model.predict_proba(X), exact.predict_proba(X), atol=1e-5)


def test_xor():
    X, y = np.array([[0.0, 0], [0, 1], [1, 0], [1, 1]]), np.array([0, 1, 1, 0])
    for settings in ({"solver": "lbfgs"}, {"learning_rate_init": 0.05, "max_iter": 500, "tol": 0.0}):
        model = MLPClassifier((8,), activation="tanh", random_state=1, **settings).fit(X, y)
        np.testing.assert_array_equal(model.predict(X), y)


def test_equal_weights_stay_equal():
    X, y = table()
    model = MLPRegressor(hidden_layer_sizes=(5,), activation="tanh", init="zeros", max_iter=20, random_state=0).fit(
        X, y
    )
    W, V = model.coefs_
    assert np.all(W[:, :1] == W)
    assert np.all(V[:1] == V)
    free = MLPRegressor(hidden_layer_sizes=(5,), activation="tanh", max_iter=20, random_state=0).fit(X, y)
    assert np.ptp(free.coefs_[0], axis=1).min() > 0


def test_one_batch_of_all_rows_does_not_depend_on_the_order():
    X, y = table(50)
    fits = [
        MLPRegressor(batch_size=50, max_iter=30, random_state=0, shuffle=shuffle, dtype="float64").fit(X, y)
        for shuffle in (True, False)
    ]
    np.testing.assert_allclose(fits[0].theta_, fits[1].theta_, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(
    "settings",
    [
        {"solver": RMSprop()},
        {"solver": Adagrad(), "learning_rate_init": 0.05},
        {"solver": Momentum(0.8), "learning_rate_init": 0.02},
        {"solver": "sgd", "learning_rate": "adaptive", "learning_rate_init": 0.05},
        {"solver": "sgd", "learning_rate": "invscaling", "learning_rate_init": 0.5},
        {"learning_rate": "cosine", "learning_rate_init": 0.01},
        {"learning_rate": "one_cycle", "learning_rate_init": 0.02},
        {"learning_rate": OneCycle(0.02, 400)},
        {"learning_rate": Plateau(0.01, patience=3)},
        {"clip": 1.0, "learning_rate_init": 0.01},
        {"clip": Truncate(0.1), "learning_rate_init": 0.01},
        {"weight_decay": 0.1, "learning_rate_init": 0.01},
        {"dropout": 0.1, "learning_rate_init": 0.01},
        {"normalization": "batch", "learning_rate_init": 0.01},
        {"normalization": "layer", "learning_rate_init": 0.01},
        {"activation": LeakyReLU(0.2), "learning_rate_init": 0.01},
        {"activation": "gelu", "init": "he", "learning_rate_init": 0.01},
        {"init": "orthogonal", "learning_rate_init": 0.01},
        {"init": "lsuv", "learning_rate_init": 0.01},
        {"init": "uniform", "learning_rate_init": 0.01},
        {"early_stopping": "loss", "learning_rate_init": 0.01},
        {"early_stopping": True, "learning_rate_init": 0.01},
        {"loss": "huber", "learning_rate_init": 0.01},
        {"ensemble_size": 2, "learning_rate_init": 0.01},
    ],
    ids=str,
)
def test_every_setting_learns(settings):
    X, y = table(400)
    model = MLPRegressor(hidden_layer_sizes=(32,), max_iter=100, random_state=0, **settings).fit(X, y)
    assert model.score(X, y) > 0.5, model.loss_curve_[-1]


def test_early_stopping_keeps_the_best_weights_and_takes_given_rows():
    X, y = table(300)
    X_val, y_val = table(100, seed=1)
    model = MLPRegressor(early_stopping=True, random_state=0, learning_rate_init=0.01)
    model.fit(X, y, X_val=X_val, y_val=y_val)
    assert model.best_validation_score_ == pytest.approx(model.score(X_val, y_val), abs=1e-6)
    assert model.best_validation_score_ == max(model.validation_scores_)
    labels = MLPClassifier(early_stopping="loss", random_state=0, learning_rate_init=0.01)
    labels.fit(X, y > 0, X_val=X_val, y_val=y_val > 0)
    p = labels.predict_proba(X_val)[np.arange(100), (y_val > 0).astype(int)]
    assert min(labels.validation_scores_) == pytest.approx(-np.log(p).mean(), rel=1e-4)


@pytest.mark.parametrize("dropout", [0.0, 0.2])
def test_a_fit_that_is_stopped_saved_and_resumed_makes_the_same_steps(tmp_path, dropout):
    X, y = table()
    settings = {"random_state": 0, "dropout": dropout, "normalization": "batch", "hidden_layer_sizes": (8,)}
    whole = MLPRegressor(max_iter=10, **settings).fit(X, y)
    first = MLPRegressor(max_iter=4, warm_start=True, **settings).fit(X, y)
    ln.save(first, tmp_path / "m.safetensors")
    rest = ln.load(tmp_path / "m.safetensors").set_params(max_iter=6).fit(X, y)
    np.testing.assert_array_equal(rest.theta_, whole.theta_)
    np.testing.assert_array_equal(rest.buffers_, whole.buffers_)
    np.testing.assert_array_equal(rest.loss_curve_, whole.loss_curve_)
    assert rest.n_updates_ == whole.n_updates_


def test_partial_fit_keeps_the_optimisers_memory():
    X, y = table()
    whole = MLPRegressor(max_iter=5, random_state=0).fit(X, y)
    pieces = MLPRegressor(random_state=0)
    for _ in range(5):
        pieces.partial_fit(X, y)
    np.testing.assert_array_equal(pieces.theta_, whole.theta_)
    labels = MLPClassifier(random_state=0)
    with pytest.raises(DataError, match="classes must be passed"):
        labels.partial_fit(X, y > 0)
    labels.partial_fit(X[:10], np.zeros(10, dtype=int), classes=[0, 1, 2]).partial_fit(X, (y > 0) * 2)
    assert labels.predict_proba(X).shape == (200, 3)
    with pytest.raises(DataError, match="not in the classes"):
        labels.partial_fit(X, np.full(200, 7))
    with pytest.raises(AttributeError, match="partial_fit"):
        MLPRegressor(solver="lbfgs").partial_fit(X, y)


@pytest.mark.parametrize("model", [MLPRegressor(), ResNetRegressor(units=16), LSTMRegressor(4)], ids=repr)
def test_same_seed_same_bits_for_any_number_of_jobs(model):
    X, y = table()
    fits = [clone(model).set_params(random_state=3, n_jobs=jobs, max_iter=5).fit(X, y) for jobs in (1, 2)]
    np.testing.assert_array_equal(fits[0].theta_, fits[1].theta_)
    np.testing.assert_array_equal(fits[0].predict(X), fits[1].predict(X))


def test_predictions_from_several_threads_agree():
    X, y = table(500)
    model = MLPRegressor(max_iter=5, random_state=0, normalization="batch").fit(X, y)
    expected = model.predict(X)
    found = [None] * 4

    def ask(k):
        found[k] = model.predict(X)

    threads = [threading.Thread(target=ask, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for answer in found:
        np.testing.assert_array_equal(answer, expected)


def test_weights_of_rows_and_classes():
    X, y = table(100)
    w = np.random.default_rng(0).integers(0, 4, 100).astype(float)
    exact = {"solver": "lbfgs", "hidden_layer_sizes": (3,), "activation": "tanh", "alpha": 1.0, "tol": 1e-8}
    weighted = MLPRegressor(max_iter=3000, random_state=0, **exact).fit(X, y, w)
    repeated = MLPRegressor(max_iter=3000, random_state=0, **exact).fit(
        X.repeat(w.astype(int), 0), y.repeat(w.astype(int))
    )
    np.testing.assert_allclose(weighted.predict(X), repeated.predict(X), atol=1e-3)
    labels = (y > 1.0).astype(int)
    plain = MLPClassifier(random_state=0, **exact).fit(X, labels)
    balanced = MLPClassifier(random_state=0, class_weight="balanced", **exact).fit(X, labels)
    by_hand = MLPClassifier(random_state=0, **exact).fit(X, labels, 50.0 / np.bincount(labels)[labels])
    assert balanced.predict_proba(X)[:, 1].mean() > plain.predict_proba(X)[:, 1].mean() + 0.05
    np.testing.assert_allclose(balanced.predict_proba(X), by_hand.predict_proba(X), atol=1e-4)


def test_several_targets_and_labels():
    X, y = table(300)
    Y = np.column_stack([y, X[:, 0]])
    model = MLPRegressor(max_iter=300, random_state=0).fit(X, Y)
    assert model.predict(X).shape == (300, 2)
    assert model.score(X, Y) > 0.8
    labels = MLPClassifier(max_iter=300, random_state=0).fit(X, Y > 0)
    assert labels.predict(X).shape == (300, 2)
    assert labels.score(X, (Y > 0).astype(int)) > 0.8
    with pytest.raises(DataError, match="indicator matrix"):
        MLPClassifier().fit(X, np.column_stack([X[:, 0] > 0, np.digitize(y, [-1, 1])]).astype(int))


def test_intervals_cover_as_often_as_they_say():
    rng = np.random.default_rng(0)
    shares = []
    for seed in range(20):
        X = rng.normal(size=(600, 2))
        y = X[:, 0] ** 2 + (0.5 + np.abs(X[:, 1])) * rng.normal(size=600)
        model = MLPRegressor(calibration_fraction=0.5, max_iter=15, random_state=seed, learning_rate_init=0.01)
        low, high = model.fit(X[:300], y[:300]).predict_interval(X[300:], level=0.8)
        shares.append(np.mean((low <= y[300:]) & (y[300:] <= high)))
    # Coverage of split conformal intervals with m = 150 is Beta distributed around 0.8, with standard deviation 0.033.
    assert abs(np.mean(shares) - 0.8) < 4 * np.sqrt(0.033**2 + 0.16 / 300) / np.sqrt(20) + 1 / 151
    with pytest.raises(ParameterError, match="calibration_fraction"):
        MLPRegressor(max_iter=2).fit(X, y).predict_interval(X)


def test_ensembles_have_distributions_and_dropout_has_a_spread():
    X, y = table(200)
    ensemble = MLPRegressor(ensemble_size=4, max_iter=50, random_state=0, learning_rate_init=0.01).fit(X, y)
    far = 6.0 * np.ones((1, 4))
    near = np.zeros((1, 4))
    assert ensemble.predict_dist(far).std[0] > ensemble.predict_dist(near).std[0]
    np.testing.assert_allclose(ensemble.predict_dist(X).mean, ensemble.predict(X), rtol=1e-6)
    dropped = MLPRegressor(dropout=0.2, max_iter=20, random_state=0).fit(X, y)
    spread = dropped.predict_spread(X[:5], n_draws=20, random_state=1)
    assert spread.shape == (5,)
    assert (spread > 0).all()
    np.testing.assert_array_equal(spread, dropped.predict_spread(X[:5], n_draws=20, random_state=1))
    with pytest.raises(ParameterError, match="varies"):
        MLPRegressor(max_iter=2).fit(X, y).predict_spread(X)
    with pytest.raises(ParameterError, match="ensemble_size"):
        MLPRegressor(max_iter=2).fit(X, y).predict_dist(X)


@pytest.mark.parametrize("solver", ["adam", "sgd"])
def test_an_absurd_rate_ends_in_clear_words_with_the_last_good_weights(solver):
    X, y = table()
    model = MLPRegressor(solver=solver, learning_rate_init=1e9, random_state=0, max_iter=20)
    with pytest.warns(ConvergenceWarning, match=r"infinite or NaN|steps are too long"):
        model.fit(1e3 * X, 1e6 * y)
    assert np.isfinite(model.theta_).all()
    assert np.isfinite(model.predict(X)).all()


def test_the_layer_that_overflows_is_named():
    X, y = table()
    with pytest.warns(ConvergenceWarning, match=r"the output of layer \d, .*in batch \d+ of epoch \d"):
        MLPRegressor(solver="sgd", learning_rate_init=1e9, random_state=0).fit(X, y)


@pytest.mark.parametrize("model", [MLPClassifier, MLPRegressor])
def test_a_loss_that_grows_but_stays_finite_is_told(model):
    """Adam's steps have the size of the rate: weights of 1e9, whose loss is a number still."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))
    y = (X[:, 0] > 0).astype(int)
    with pytest.warns(ConvergenceWarning, match=r"was 0\.\d+ before the first step: steps are too long") as told:
        model(learning_rate_init=1e9, max_iter=3, random_state=0).fit(X, y)
    assert len(told) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "MLP.*Maximum iterations")
        fitted = model(learning_rate_init=0.01, max_iter=30, random_state=0, warm_start=True).fit(X, y)
        fitted.fit(X, y)


def test_parameters_that_overflow_are_named():
    X = np.random.default_rng(0).normal(size=(12, 9, 2))
    with pytest.warns(ConvergenceWarning, match=r"the parameters Wx of layer 0, LSTM\(.* in epoch \d+; the last good"):
        LSTMRegressor(8, learning_rate_init=1e9, max_iter=5, random_state=0).fit(X, X.sum((1, 2)))


@pytest.mark.parametrize("n", [1, 2])
def test_one_row_and_constant_columns(n):
    for model in (
        MLPRegressor(max_iter=5),
        MLPRegressor(preset="table", max_iter=2),
        ResNetRegressor(units=4, max_iter=3),
    ):
        model.fit(np.zeros((n, 2)), np.ones(n))
        assert np.isfinite(model.predict([[0.0, 0.0]])).all()
    with pytest.raises(DataError, match="two classes"):
        MLPClassifier().fit([[0.0], [1.0]], [1, 1])
    with pytest.raises(DataError, match="too small"):
        MLPRegressor(early_stopping=True).fit(np.zeros((3, 1)), np.zeros(3))


def test_lbfgs_refuses_what_changes_from_call_to_call():
    X, y = table()
    with pytest.raises(ParameterError, match="lbfgs"):
        MLPRegressor(solver="lbfgs", dropout=0.1).fit(X, y)
    with pytest.raises(ParameterError, match="lbfgs"):
        MLPRegressor(solver="lbfgs", normalization="batch").fit(X, y)


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "model",
    [
        MLPClassifier((10,), activation="tanh", solver="lbfgs", max_iter=3000, alpha=1.0, class_weight="balanced"),
        MLPClassifier((10,), polish=True, max_iter=1000, alpha=1.0, activation="gelu"),
        MLPClassifier((5,), polish=True, max_iter=1000, alpha=0.0, normalization="batch", activation="silu", tol=0.01),
        MLPRegressor(polish=True, max_iter=2000, alpha=0.1, activation="silu", calibration_fraction=0.2),
        MLPRegressor(polish=True, max_iter=2000, alpha=1.0, preset="table", hidden_layer_sizes=(8,), ensemble_size=2),
        ResNetRegressor(1, 6, polish=True, max_iter=2000, alpha=0.0, activation="tanh", tol=0.02),
    ],
    ids=str,
)
def test_full_batch_fits_are_verified_and_forged_ones_are_not(model):
    X, y = table(80)
    target = np.digitize(y, [-0.3, 0.3]) if "Classifier" in type(model).__name__ else y
    model = clone(model).set_params(random_state=0).fit(X, target)
    assert model.certificate_.kind == "stationarity"
    assert model.certificate_.holds
    assert ln.verify(model, X, target)
    assert not ln.verify(model, X[::-1], target)
    forged = clone(model)
    vars(forged).update(vars(model))
    forged.theta_ = model.theta_.copy()
    forged.theta_[0, np.argmax(np.abs(model.theta_[0]))] *= 1.001
    assert not ln.verify(forged, X, target)


def test_sequences_of_different_lengths_and_of_every_kind():
    rng = np.random.default_rng(0)
    lengths = rng.integers(2, 8, 60)
    lists = [rng.normal(size=(n, 2)) for n in lengths]
    padded = np.full((60, 7, 2), np.nan)
    for k, x in enumerate(lists):
        padded[k, : len(x)] = x
    y = np.array([x[0, 0] for x in lists])
    for cls in (LSTMRegressor, RNNRegressor):
        first = cls(4, max_iter=5, random_state=0).fit(lists, y)
        second = cls(4, max_iter=5, random_state=0).fit(padded, y, lengths=lengths)
        np.testing.assert_array_equal(first.theta_, second.theta_)
        np.testing.assert_array_equal(first.predict(lists), second.predict(padded, lengths=lengths))
        np.testing.assert_allclose(first.predict(lists[:1]), first.predict(lists)[:1], atol=1e-6)
    steps = [np.cumsum(x[:, 0]) for x in lists]
    every = RNNRegressor(8, predicts="every_step", max_iter=60, random_state=0, learning_rate_init=0.02).fit(
        lists, steps
    )
    found = every.predict(lists)
    assert [len(f) for f in found] == lengths.tolist()
    errors = np.concatenate(found) - np.concatenate(steps)
    assert np.mean(errors**2) < 0.3 * np.var(np.concatenate(steps))
    words = [np.where(x[:, 0] > 0, "up", "down") for x in lists]
    tags = LSTMClassifier(4, predicts="every_step", max_iter=80, random_state=0, learning_rate_init=0.03).fit(
        lists, words
    )
    right = np.concatenate(tags.predict(lists)) == np.concatenate(words)
    assert right.mean() > 0.9
    assert tags.predict_proba(lists)[0].shape == (lengths[0], 2)
    with pytest.raises(DataError, match="NaN or infinity: sequence 3"):
        LSTMRegressor().fit([x if k != 3 else x * np.nan for k, x in enumerate(lists)], y)
    with pytest.raises(DataError, match="lengths must be"):
        LSTMRegressor().fit(padded, y, lengths=np.zeros(60, dtype=int))
    with pytest.raises(DataError, match="features"):
        first.predict(np.zeros((2, 3, 5)))


def test_forecasts_continue_a_wave():
    wave = np.sin(0.3 * np.arange(200.0))
    X, y = windows(wave[:150], length=20)
    model = LSTMRegressor(8, max_iter=100, learning_rate_init=0.02, random_state=0, tol=0.0).fit(X, y)
    np.testing.assert_allclose(model.forecast(wave[100:150], 10), wave[150:160], atol=0.1)
    with pytest.raises(ParameterError, match="windows"):
        LSTMRegressor(2, max_iter=1).fit(X, np.c_[y, y]).forecast(wave, 2)


@pytest.mark.parametrize("name", ["LSTMRegressor", "RNNClassifier", "ResNetClassifier", "MLPRegressor"])
def test_files_hold_the_whole_model(tmp_path, name):
    X, y = table(60)
    model = getattr(ln, name)(max_iter=2, random_state=0).fit(X, y > 0 if "Classifier" in name else y)
    ln.save(model, tmp_path / "m.safetensors")
    again = ln.load(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    with pytest.raises(VerificationError, match="proves nothing"):
        ln.verify(again, X, y)
    for array in ("theta_", "optimiser_v_", "optimiser_r_"):
        setattr(model, array, getattr(model, array)[:, :-1])
    with pytest.raises(ModelFileError, match="theta_"):
        ln.save(model, tmp_path / "n.safetensors")


@pytest.mark.parametrize(
    "model", [LSTMClassifier(5, max_iter=3), RNNClassifier(5, max_iter=3), RNNClassifier(5, max_iter=3, cell="gru")]
)
def test_a_sequences_answer_does_not_depend_on_the_sequences_beside_it(model):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(37, 6, 2))
    model = clone(model).set_params(random_state=0).fit(X, X[:, -1, 0] > 0)
    alone = np.concatenate([model.predict_proba(X[k : k + 1]) for k in range(len(X))])
    np.testing.assert_allclose(alone, model.predict_proba(X), rtol=1e-13)
