"""Every layer: back-propagation is the numeric gradient, and torch's; laws of normalisation, dropout and shortcuts."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from learnable.core.errors import ParameterError
from learnable.neural import (
    GELU,
    GRU,
    LSTM,
    BatchNorm,
    Bias,
    Chain,
    Dense,
    Dropout,
    Embedding,
    Identity,
    LastStep,
    LayerNorm,
    LeakyReLU,
    Logistic,
    LogisticHead,
    Network,
    Recurrent,
    ReLU,
    Residual,
    SiLU,
    Tanh,
    Threshold,
)
from learnable.neural.layers.base import Keys
from learnable.risk import HuberLoss, MulticlassHingeLoss, PoissonLoss, SoftmaxLoss, SquaredLoss
from learnable.solvers import check_gradient, conditioning_report, minimize

SMOOTH = [Identity(), Logistic(), Tanh(), LeakyReLU(0.1), ReLU(), GELU(), SiLU()]
STACKS = {
    "bias": [Bias(), Dense(3, bias=False), Tanh(), Dense(2)],
    "batch norm": [Dense(5, bias=False), BatchNorm(), Tanh(), Dense(2)],
    "layer norm": [LayerNorm(), Dense(5), Tanh(), Dense(2)],
    "residual": [Dense(6), Residual((LayerNorm(), Dense(5), Tanh(), Dense(6))), Dense(2)],
    "residual that ends in a unit": [Dense(6), Residual((Dense(6), Tanh())), Dense(2)],
    "chain": [Chain((Dense(3), Tanh())), Dense(2)],
}


def rows(seed=0, n=9, d=4, k=2):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)), rng.normal(size=(n, k))


def general_point(net, seed=1):
    return net.start(seed) + 0.1 * np.random.default_rng(seed).normal(size=net.n_parameters)


def assert_gradient(f, theta, kinked=False):
    """Compare with differences; functions with kinks with short ones, which stay on one side."""
    if not kinked:
        assert check_gradient(f.value, f.gradient, theta)
        return
    h = 1e-6
    steps = h * np.eye(len(theta))
    numeric = np.array([(f.value(theta + step) - f.value(theta - step)) / (2 * h) for step in steps])
    np.testing.assert_allclose(f.gradient(theta), numeric, atol=1e-8)


@pytest.mark.parametrize("unit", SMOOTH, ids=repr)
def test_units_have_the_numeric_gradient(unit):
    X, y = rows()
    net = Network([Dense(5), unit, Dense(2)], 4, dtype="float64")
    f = net.objective(X, y, SquaredLoss(), alpha=0.3)
    assert_gradient(f, general_point(net), kinked=isinstance(unit, (ReLU, LeakyReLU)))


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("name", STACKS)
def test_stacks_have_the_numeric_gradient(name, training):
    X, y = rows()
    net = Network(STACKS[name], 4, dtype="float64")
    f = net.objective(X, y, SquaredLoss(), training=training)
    assert check_gradient(f.value, f.gradient, general_point(net)), name


@pytest.mark.parametrize("layer", [Recurrent(3), Recurrent(3, activation="relu"), LSTM(3), GRU(3)], ids=repr)
@pytest.mark.parametrize("last", [True, False])
def test_recurrent_layers_have_the_numeric_gradient_also_with_ragged_sequences(layer, last):
    rng = np.random.default_rng(0)
    X, lengths = rng.normal(size=(5, 4, 2)), np.array([5, 1, 3, 5])
    end = [LastStep(), Dense(2)] if last else [LSTM(2), LastStep(), Dense(2)]
    net = Network([layer, *end], 2, dtype="float64")
    f = net.objective(X, rng.normal(size=(4, 2)), SquaredLoss(), lengths=lengths)
    assert_gradient(f, general_point(net), kinked=getattr(layer, "activation", "") == "relu")


@pytest.mark.parametrize(
    ("loss", "kind"),
    [
        (SoftmaxLoss(), "codes"),
        (MulticlassHingeLoss(), "codes"),
        (LogisticHead(), "shares"),
        (HuberLoss(1.0), "numbers"),
        (PoissonLoss(), "counts"),
    ],
    ids=lambda v: v if isinstance(v, str) else repr(v),
)
def test_heads_have_the_numeric_gradient(loss, kind):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(8, 4))
    y = {
        "codes": rng.integers(0, 3, 8),
        "shares": rng.random((8, 3)),
        "numbers": rng.normal(size=(8, 3)),
        "counts": rng.poisson(2.0, (8, 3)).astype(float),
    }[kind]
    net = Network([Dense(4), Tanh(), Dense(3)], 4, dtype="float64")
    f = net.objective(X, y, loss, weight=rng.random(8) + 0.5)
    assert_gradient(f, general_point(net), kinked=isinstance(loss, (HuberLoss, MulticlassHingeLoss)))


def test_embedding_has_the_numeric_gradient_and_passes_other_columns_on():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=8), rng.integers(0, 3, 8), rng.normal(size=8)])
    net = Network([Embedding((1,), (3,), (2,)), Dense(3), Tanh(), Dense(1)], 3, dtype="float64")
    f = net.objective(X, rng.normal(size=(8, 1)), SquaredLoss())
    theta = general_point(net)
    assert check_gradient(f.value, f.gradient, theta)
    first = net.activations(theta, X)[0]
    np.testing.assert_array_equal(first[:, :2], X[:, [0, 2]])


def test_the_gradient_of_the_input_is_exact():
    X, _ = rows(n=3)
    net = Network([Dense(5), Tanh(), Dense(1)], 4, dtype="float64")
    theta = general_point(net)
    tape = net.open(theta, 3, input_gradient=True)
    tape.forward(X)
    tape.backward(np.ones((3, 1)))

    def total(x):
        return float(net.predict(theta, x.reshape(3, 4)).sum())

    assert check_gradient(total, lambda x: tape.dx.ravel(), X.ravel())


def test_threshold_has_the_stated_surrogate():
    x = np.array([[-2.0, -0.5, 0.5, 2.0]])
    np.testing.assert_array_equal(Threshold().slope(x), [[0.0, 1.0, 1.0, 0.0]])
    tape = Network([Threshold()], 4, dtype="float64").open(np.empty(0), 1)
    np.testing.assert_array_equal(tape.forward(x), [[0.0, 0.0, 1.0, 1.0]])


@pytest.mark.parametrize(("unit", "steepest"), [(Logistic(), 0.25), (Tanh(), 1.0), (GELU(), 1.129), (SiLU(), 1.0998)])
def test_the_steepest_slope_is_what_the_unit_says(unit, steepest):
    slopes = unit.slope(np.linspace(-6.0, 6.0, 100_001)[:, None])
    assert abs(slopes).max() == pytest.approx(steepest, abs=5e-4)
    assert unit.steepest == pytest.approx(steepest, abs=5e-4)


@given(st.integers(2, 30), st.integers(1, 6), st.integers(0, 10**6))
@settings(max_examples=20, deadline=None)
def test_batch_norm_with_gain_of_the_spread_and_shift_of_the_mean_is_the_identity(n, d, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * rng.uniform(0.1, 10.0, d) + rng.normal(size=d)
    net = Network([BatchNorm()], d, dtype="float64")
    theta = np.concatenate([np.sqrt(X.var(axis=0) + 1e-5), X.mean(axis=0)])
    np.testing.assert_allclose(net.open(theta, n, training=True).forward(X), X, atol=1e-10 * np.abs(X).max())


def test_inference_uses_the_running_moments_that_training_has_left():
    rng = np.random.default_rng(0)
    X = 3.0 + 2.0 * rng.normal(size=(500, 2))
    net = Network([BatchNorm()], 2, dtype="float64")
    theta = np.array([1.0, 1.0, 0.0, 0.0])
    buffers = net.start_buffers()
    tape = net.open(theta, 500, training=True, buffers=buffers)
    for _ in range(200):
        tape.forward(X)
    out = net.predict(theta, X, buffers=buffers)
    np.testing.assert_allclose(out.mean(axis=0), 0.0, atol=1e-6)
    np.testing.assert_allclose(out.var(axis=0, ddof=1), 1.0, atol=1e-4)


def test_the_expected_output_of_dropout_is_its_inference_output():
    X = np.arange(1.0, 201.0)[None, :]
    net = Network([Dropout(0.3)], 200, dtype="float64")
    tape = net.open(np.empty(0), 1, training=True, keys=Keys(5))
    draws = np.stack([tape.forward(X).copy() for _ in range(4000)])
    kept = (draws != 0).mean()
    assert abs(kept - 0.7) < 0.003  # 8·10⁵ independent draws: five standard errors
    np.testing.assert_array_equal(net.predict(np.empty(0), X), X)
    z = (draws.mean(axis=0) - X) / (X * np.sqrt(0.3 / 0.7 / 4000))
    assert np.abs(z).max() < 5.0


def test_backwards_dropout_uses_the_mask_of_the_forward_pass():
    X = np.ones((3, 50))
    net = Network([Dropout(0.5)], 50, dtype="float64")
    tape = net.open(np.empty(0), 3, training=True, input_gradient=True)
    out = tape.forward(X).copy()
    tape.backward(X)
    np.testing.assert_array_equal(tape.dx, out)


def test_a_residual_block_at_zero_is_the_identity():
    X, _ = rows()
    net = Network([Residual((Dense(7), Tanh(), Dense(4)))], 4, dtype="float64")
    np.testing.assert_array_equal(net.predict(np.zeros(net.n_parameters), X), X)
    with pytest.raises(ParameterError, match="same number"):
        Network([Residual((Dense(3),))], 4)


@pytest.mark.parametrize("layer", [Recurrent(3), LSTM(3), GRU(3)], ids=repr)
def test_truncated_is_full_when_the_window_is_long_enough_and_else_forgets_the_past(layer):
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(8, 3, 2)), rng.normal(size=(3, 1))

    def gradient(truncation, x=X, lengths=None):
        net = Network([dataclasses.replace(layer, truncation=truncation), LastStep(), Dense(1)], 2, dtype="float64")
        return net.objective(x, y, SquaredLoss(), lengths=lengths).gradient(general_point(net))

    np.testing.assert_array_equal(gradient(8), gradient(None))
    np.testing.assert_array_equal(gradient(100), gradient(None))
    assert np.abs(gradient(2) - gradient(None)).max() > 1e-6


@pytest.mark.parametrize("layer", [Recurrent(3), LSTM(3), GRU(3)], ids=repr)
@pytest.mark.parametrize("truncation", [None, 3])
def test_padding_changes_nothing(layer, truncation):
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(6, 1, 2)), rng.normal(size=(1, 1))
    layer = dataclasses.replace(layer, truncation=truncation)
    net = Network([layer, LastStep(), Dense(1)], 2, dtype="float64")
    theta = general_point(net)
    short = net.objective(X[:4], y, SquaredLoss())
    padded = net.objective(X, y, SquaredLoss(), lengths=np.array([4]))
    assert padded.value(theta) == pytest.approx(short.value(theta), rel=1e-14)
    np.testing.assert_allclose(padded.gradient(theta), short.gradient(theta), rtol=1e-12, atol=1e-15)


def test_lstm_forgets_and_remembers_by_construction():
    net = Network([LSTM(1)], 1, dtype="float64")
    theta = np.zeros(net.n_parameters)
    views = net.views(theta, 0)
    views["Wx"][0] = [40.0, 0.0, 10.0, 0.0]  # the input gate opens for x = 1 only; the candidate has the sign of x
    views["b"][:] = [-20.0, 20.0, 0.0, 20.0]  # the forget gate stays open: the cell remembers
    x = np.zeros((50, 1, 1))
    x[3] = 1.0
    h = net.activations(theta, x)[0][:, 0, 0]
    assert np.abs(h[:3]).max() < 1e-6
    np.testing.assert_allclose(h[3:], np.tanh(1.0), rtol=1e-6)
    views["b"][1] = -20.0  # closed: it forgets at once
    h = net.activations(theta, x)[0][:, 0, 0]
    assert h[3] > 0.7
    assert np.abs(h[4:]).max() < 1e-6


def test_exploding_and_vanishing_factors_of_a_recurrent_unit():
    """dh_T/dh_1 of a linear-in-range unit is the product of w·σ′: 1.1¹⁰⁰ ≈ 13,780.6 and 0.9¹⁰⁰ ≈ 2.656e-5."""
    for w, expected in ((1.1, 1.1**100), (0.9, 0.9**100)):
        net = Network([Recurrent(1, activation="relu"), LastStep()], 1, dtype="float64")
        theta = np.zeros(net.n_parameters)
        net.views(theta, 0)["Wx"][:] = 1.0
        net.views(theta, 0)["Wh"][:] = w
        tape = net.open(theta, (101, 1), input_gradient=True)
        tape.forward(np.ones((101, 1, 1)))
        tape.backward(np.ones((1, 1)))
        assert tape.dx[0, 0, 0] == pytest.approx(expected, rel=1e-10)
    np.testing.assert_allclose([1.1**100, 0.9**100], [13780.6, 2.656e-5], rtol=1e-3)


def test_a_network_works_with_all_of_solvers():
    X, y = rows(n=30)
    net = Network([Dense(4), Tanh(), Dense(2)], 4, dtype="float64")
    f, start = net.objective(X, y, SquaredLoss(), alpha=0.1), net.start(0)
    found = minimize(f, start, method="lbfgs", max_iter=2000, tol=1e-7)
    assert found.converged
    report = conditioning_report(f, start, step=1e-3)
    assert report.linear > 0
    batch = minimize(f, start, method="adam", step=0.01, batch_size=10, max_iter=3, random_state=0)
    assert batch.value < f.value(start)


def test_float32_agrees_with_float64():
    X, y = rows(n=20)
    layers = [Dense(8), SiLU(), Residual((BatchNorm(), Dense(8), GELU(), Dense(8))), Dense(2)]
    exact, single = (Network(layers, 4, dtype=dtype) for dtype in ("float64", "float32"))
    theta = exact.start(0)
    f, g = (net.objective(X, y.astype(net.dtype), SquaredLoss(), training=True) for net in (exact, single))
    np.testing.assert_allclose(g.gradient(theta), f.gradient(theta), atol=2e-5)


def test_layers_refuse_what_they_cannot_do():
    with pytest.raises(ParameterError, match="Dropout: rate"):
        Dropout(1.0)
    with pytest.raises(ParameterError, match="truncation"):
        LSTM(2, truncation=0)
    net = Network([LSTM(2)], 2)
    with pytest.raises(ParameterError, match="sequences"):
        net.open(net.start(0), 3)
    with pytest.raises(ParameterError, match="dtype"):
        Network([Dense(1)], 2, dtype="int8")
