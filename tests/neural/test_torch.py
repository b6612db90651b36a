"""torch as an oracle: the same networks have the same outputs and gradients, in float32 to 1e-5."""

import numpy as np
import pytest

from learnable.neural import (
    GELU,
    GRU,
    LSTM,
    BatchNorm,
    Dense,
    Dropout,
    LastStep,
    LayerNorm,
    LeakyReLU,
    Logistic,
    Network,
    Recurrent,
    ReLU,
    Residual,
    SiLU,
    Tanh,
)
from learnable.neural.optimisers import Optimiser
from learnable.solvers import Adagrad, Adam, GradientDescent, Momentum, Nesterov, RMSprop
from learnable.solvers.lab.first_order import State

torch = pytest.importorskip("torch")


def tensors(*arrays):
    return [torch.tensor(np.ascontiguousarray(a), requires_grad=True) for a in arrays]


def gradients_of(net, theta, x, dz, training=True):
    tape = net.open(theta, x.shape[:-1], training=training, input_gradient=True)
    z = tape.forward(x).copy()
    return z, tape.backward(dz).copy(), tape.dx.copy()


@pytest.mark.parametrize(
    ("unit", "theirs"),
    [
        (ReLU(), torch.relu),
        (Tanh(), torch.tanh),
        (Logistic(), torch.sigmoid),
        (GELU(), torch.nn.functional.gelu),
        (SiLU(), torch.nn.functional.silu),
        (LeakyReLU(0.1), lambda x: torch.nn.functional.leaky_relu(x, 0.1)),
    ],
    ids=lambda v: repr(v)[:12],
)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_dense_layers_and_units(unit, theirs, dtype):
    rng = np.random.default_rng(0)
    net = Network([Dense(7), unit, Dense(3)], 5, dtype=dtype)
    theta, x, dz = net.start(0), rng.normal(size=(11, 5)).astype(dtype), rng.normal(size=(11, 3)).astype(dtype)
    z, g, dx = gradients_of(net, theta, x, dz)
    first, last = net.views(theta, 0), net.views(theta, 2)
    X, W, b, V, c = tensors(x, first["W"], first["b"], last["W"], last["b"])
    out = theirs(X @ W + b) @ V + c
    out.backward(torch.tensor(dz))
    tolerance = 1e-5 if dtype == "float32" else 1e-12
    np.testing.assert_allclose(z, out.detach().numpy(), atol=tolerance)
    np.testing.assert_allclose(dx, X.grad.numpy(), atol=tolerance)
    for array, theirs_of in ((net.views(g, 0)["W"], W), (net.views(g, 2)["W"], V), (net.views(g, 2)["b"], c)):
        np.testing.assert_allclose(array, theirs_of.grad.numpy(), atol=tolerance)


@pytest.mark.parametrize(("layer", "theirs"), [(BatchNorm(), "BatchNorm1d"), (LayerNorm(), "LayerNorm")])
def test_normalisations(layer, theirs):
    rng = np.random.default_rng(1)
    x, dz = rng.normal(size=(2, 9, 4))
    net = Network([layer], 4, dtype="float64")
    theta = rng.normal(size=8)
    z, g, dx = gradients_of(net, theta, x, dz)
    module = getattr(torch.nn, theirs)(4).double()
    with torch.no_grad():
        module.weight.copy_(torch.tensor(theta[:4]))
        module.bias.copy_(torch.tensor(theta[4:]))
    (X,) = tensors(x)
    out = module(X)
    out.backward(torch.tensor(dz))
    np.testing.assert_allclose(z, out.detach().numpy(), atol=1e-12)
    np.testing.assert_allclose(dx, X.grad.numpy(), atol=1e-12)
    np.testing.assert_allclose(g, np.concatenate([module.weight.grad, module.bias.grad]), atol=1e-12)
    if theirs == "BatchNorm1d":
        tape = net.open(theta, 9, training=True)
        tape.forward(x)
        np.testing.assert_allclose(tape.buffers[:4], module.running_mean, atol=1e-12)
        np.testing.assert_allclose(tape.buffers[4:], module.running_var, atol=1e-12)


def recurrent_pair(kind, d, u, dtype):
    """Return our layer, torch's module, and a function that copies our parameters into it."""
    real = torch.float32 if dtype == "float32" else torch.float64
    if kind == "lstm":
        ours, module, order = LSTM(u), torch.nn.LSTM(d, u).to(real), [0, 1, 2, 3]
    elif kind == "gru":
        ours, module, order = GRU(u), torch.nn.GRU(d, u).to(real), [1, 0, 2]  # torch: reset, update, new
    else:
        ours, module, order = Recurrent(u, activation=kind), torch.nn.RNN(d, u, nonlinearity=kind).to(real), [0]

    def rearranged(W):
        parts = np.split(W, len(order), axis=-1)
        return np.concatenate([parts[k] for k in order], axis=-1)

    def copy(views):
        with torch.no_grad():
            module.weight_ih_l0.copy_(torch.tensor(rearranged(views["Wx"]).T.copy()))
            module.weight_hh_l0.copy_(torch.tensor(rearranged(views["Wh"]).T.copy()))
            module.bias_ih_l0.copy_(torch.tensor(rearranged(views["b"])))
            module.bias_hh_l0.zero_()
            if kind == "gru":
                module.bias_hh_l0[2 * u :] = torch.tensor(views["bn"])

    return ours, module, rearranged, copy


@pytest.mark.parametrize("kind", ["tanh", "relu", "lstm", "gru"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_recurrent_layers(kind, dtype):
    rng = np.random.default_rng(2)
    T, n, d, u = 12, 5, 3, 6
    ours, module, rearranged, copy = recurrent_pair(kind, d, u, dtype)
    net = Network([ours], d, dtype=dtype)
    theta = (net.start(0) + 0.2 * rng.normal(size=net.n_parameters)).astype(dtype)
    copy(net.views(theta, 0))
    x, dz = rng.normal(size=(T, n, d)).astype(dtype), rng.normal(size=(T, n, u)).astype(dtype)
    z, g, dx = gradients_of(net, theta, x, dz)
    (X,) = tensors(x)
    out, _ = module(X)
    out.backward(torch.tensor(dz))
    tolerance = 1e-5 if dtype == "float32" else 1e-11
    size = max(1.0, float(np.abs(g).max()))
    np.testing.assert_allclose(z, out.detach().numpy(), atol=tolerance)
    np.testing.assert_allclose(dx, X.grad.numpy(), atol=tolerance * size)
    views = net.views(g, 0)
    np.testing.assert_allclose(rearranged(views["Wx"]).T, module.weight_ih_l0.grad, atol=tolerance * size)
    np.testing.assert_allclose(rearranged(views["Wh"]).T, module.weight_hh_l0.grad, atol=tolerance * size)
    np.testing.assert_allclose(rearranged(views["b"]), module.bias_ih_l0.grad, atol=tolerance * size)


def test_ragged_sequences_are_packed_sequences():
    rng = np.random.default_rng(3)
    lengths = np.array([7, 2, 5])
    ours, module, _, copy = recurrent_pair("lstm", 2, 4, "float64")
    net = Network([ours, LastStep()], 2, dtype="float64")
    theta = net.start(1)
    copy(net.views(theta, 0))
    x = rng.normal(size=(7, 3, 2))
    packed = torch.nn.utils.rnn.pack_padded_sequence(torch.tensor(x), lengths, enforce_sorted=False)
    _, (h, _) = module(packed)
    np.testing.assert_allclose(net.predict(theta, x, lengths=lengths), h[0].detach().numpy(), atol=1e-12)


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("update", "make"),
    [
        (GradientDescent(), lambda p: torch.optim.SGD(p, lr=0.05)),
        (Nesterov(0.9), lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, nesterov=True)),
        (Adam(), lambda p: torch.optim.Adam(p, lr=0.05)),
        (Adagrad(1e-10), lambda p: torch.optim.Adagrad(p, lr=0.05)),
        (RMSprop(0.99), lambda p: torch.optim.RMSprop(p, lr=0.05)),
    ],
    ids=lambda v: repr(v)[:16],
)
def test_optimisers_make_torchs_steps(update, make):
    rng = np.random.default_rng(0)
    theta = rng.normal(size=20)
    (parameter,) = tensors(theta)
    optimiser, theirs = Optimiser(update, theta, 20), make([parameter])
    for _ in range(15):
        g = rng.normal(size=20)
        parameter.grad = torch.tensor(g)
        theirs.step()
        optimiser.step(g, 0.05)
        np.testing.assert_allclose(theta, parameter.detach().numpy(), atol=1e-9)


def test_decoupled_decay_is_adamws():
    rng = np.random.default_rng(0)
    theta = rng.normal(size=20)
    (parameter,) = tensors(theta)
    optimiser = Optimiser(Adam(), theta, 20, decoupled=0.1)
    theirs = torch.optim.AdamW([parameter], lr=0.01, weight_decay=0.1)
    for _ in range(10):
        g = rng.normal(size=20)
        parameter.grad = torch.tensor(g)
        theirs.step()
        optimiser.step(g, 0.01)
    # AdamW shrinks before its step and we after it: they differ by ηλ times a step.
    np.testing.assert_allclose(theta, parameter.detach().numpy(), atol=2e-4)


@pytest.mark.parametrize(
    "update", [GradientDescent(), Momentum(0.8), Adagrad(), RMSprop(), Adam(), Nesterov(0.7), Nesterov()], ids=repr
)
def test_kernels_make_the_steps_of_solvers(update):
    """The pure functions of `solvers.first_order` are the slow twins."""
    rng = np.random.default_rng(4)
    theta = rng.normal(size=9)
    optimiser = Optimiser(update, theta, 9)
    x, state = theta.copy(), State(0, np.zeros(9), np.zeros(9))
    for _ in range(6):
        at = update.look(x, state)
        np.testing.assert_allclose(theta, at, rtol=1e-10, atol=1e-12)  # θ is the point that the gradient is taken at
        g = np.sin(3.0 * at) + at
        x, state = update.move(x, state, g, 0.03)
        optimiser.step(g.copy(), 0.03)


def test_a_residual_network_trains_as_torchs_does():
    rng = np.random.default_rng(5)
    X, y = rng.normal(size=(64, 4)).astype(np.float32), rng.normal(size=(64, 1)).astype(np.float32)
    layers = [Dense(8), Residual((BatchNorm(), Dense(8), ReLU(), Dropout(0.0), Dense(8))), ReLU(), Dense(1)]
    net = Network(layers, 4)
    theta = net.start(0, "he")

    class Theirs(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b, self.c, self.d = (torch.nn.Linear(*s) for s in ((4, 8), (8, 8), (8, 8), (8, 1)))
            self.norm = torch.nn.BatchNorm1d(8)

        def forward(self, x):
            h = self.a(x)
            h = h + self.c(torch.relu(self.b(self.norm(h))))
            return self.d(torch.relu(h))

    module = Theirs()
    inner = net.views(theta, 1)
    pairs = {
        "a": net.views(theta, 0),
        "b": {"W": inner["1.W"], "b": inner["1.b"]},
        "c": {"W": inner["4.W"], "b": inner["4.b"]},
        "d": net.views(theta, 3),
    }
    with torch.no_grad():
        for name, views in pairs.items():
            getattr(module, name).weight.copy_(torch.tensor(views["W"].T.copy()))
            getattr(module, name).bias.copy_(torch.tensor(views["b"].copy()))
    theirs = torch.optim.Adam(module.parameters(), lr=1e-3)
    optimiser, tape = Optimiser(Adam(), theta, net.n_decayed), net.open(theta, 64, training=True)
    for _ in range(20):
        theirs.zero_grad()
        loss = 0.5 * ((module(torch.tensor(X)) - torch.tensor(y)) ** 2).mean()
        loss.backward()
        theirs.step()
        z = tape.forward(X)
        ours = 0.5 * np.mean((z - y) ** 2)
        optimiser.step(tape.backward((z - y) / 64), 1e-3)
        np.testing.assert_allclose(ours, loss.item(), rtol=1e-4)
