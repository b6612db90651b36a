"""First-order updates: hand-computed steps, an independent implementation, and their theorems."""

import numpy as np
import pytest
from tests.solvers.functions import definite_matrix

from learnable.core.errors import ParameterError
from learnable.solvers import (
    Adagrad,
    Adam,
    GradientDescent,
    Momentum,
    Nesterov,
    RMSprop,
    Truncate,
    minimize,
)

A = np.diag([1.0, 25.0])
START = np.array([1.0, -2.0])


def square(x):
    return 0.5 * x @ A @ x


def slope(x):
    return A @ x


def path_of(update, rate, steps, **options):
    return minimize(square, START, slope, method=update, step=rate, max_iter=steps, tol=0.0, **options).trace.path


def by_hand(name, rate, steps):
    """The notes' formulas, in scalar loops."""
    w, v, r = START.tolist(), [0.0, 0.0], [0.0, 0.0]
    path = [list(w)]
    for t in range(1, steps + 1):
        at = [w[j] + 0.8 * v[j] for j in range(2)] if name == "nesterov" else w
        g = [A[j, j] * at[j] for j in range(2)]
        for j in range(2):
            if name in ("momentum", "nesterov"):
                v[j] = 0.8 * v[j] - rate * g[j]
                w[j] += v[j]
            elif name == "adagrad":
                r[j] += g[j] ** 2
                w[j] -= rate / (1e-10 + r[j] ** 0.5) * g[j]
            elif name == "rmsprop":
                r[j] = 0.7 * r[j] + 0.3 * g[j] ** 2
                w[j] -= rate / (1e-8 + r[j] ** 0.5) * g[j]
            elif name == "adam":
                v[j] = 0.8 * v[j] + 0.2 * g[j]
                r[j] = 0.95 * r[j] + 0.05 * g[j] ** 2
                w[j] -= rate / (1e-8 + (r[j] / (1 - 0.95**t)) ** 0.5) * v[j] / (1 - 0.8**t)
            else:
                w[j] -= rate * g[j]
        path.append(list(w))
    return np.array(path)


UPDATES = {
    "gd": GradientDescent(),
    "momentum": Momentum(0.8),
    "nesterov": Nesterov(0.8),
    "adagrad": Adagrad(),
    "rmsprop": RMSprop(rho=0.7),
    "adam": Adam(rho1=0.8, rho2=0.95),
}


@pytest.mark.parametrize("name", UPDATES)
def test_steps_are_those_computed_by_hand(name):
    np.testing.assert_allclose(path_of(UPDATES[name], 0.03, 25), by_hand(name, 0.03, 25), rtol=1e-12)


def test_first_steps_on_paper():
    """f = x² from 1, η = ¼: g = 2. Momentum ½: 1, ½, 0. Adagrad: 1 − ¼, then 1 − ¼ − ¼·1.5/√(4 + 2.25)."""
    f, g = lambda x: x @ x, lambda x: 2 * x
    heavy = minimize(f, [1.0], g, method=Momentum(0.5), step=0.25, max_iter=2).trace.path.ravel()
    assert heavy.tolist() == [1.0, 0.5, 0.0]
    ada = minimize(f, [1.0], g, method="adagrad", step=0.25, max_iter=2).trace.path.ravel()
    np.testing.assert_allclose(ada, [1.0, 0.75, 0.75 - 0.25 * 1.5 / 2.5], rtol=1e-9)
    adam = minimize(f, [1.0], g, method="adam", step=0.25, max_iter=1).trace.path.ravel()
    np.testing.assert_allclose(adam, [1.0, 0.75], rtol=1e-7)  # the first step has length η, whatever the slope


@pytest.mark.parametrize("name", UPDATES)
def test_torch_takes_the_same_steps(name):
    torch = pytest.importorskip("torch")
    w = torch.tensor(START, dtype=torch.float64, requires_grad=True)
    optimizers = {
        "gd": lambda: torch.optim.SGD([w], lr=0.03),
        "momentum": lambda: torch.optim.SGD([w], lr=0.03, momentum=0.8),
        "nesterov": lambda: torch.optim.SGD([w], lr=0.03, momentum=0.8, nesterov=True),
        "adagrad": lambda: torch.optim.Adagrad([w], lr=0.03, eps=1e-10),
        "rmsprop": lambda: torch.optim.RMSprop([w], lr=0.03, alpha=0.7, eps=1e-8),
        "adam": lambda: torch.optim.Adam([w], lr=0.03, betas=(0.8, 0.95), eps=1e-8),
    }
    optimizer = optimizers[name]()
    for _ in range(25):
        optimizer.zero_grad()
        (0.5 * w @ torch.tensor(A) @ w).backward()
        optimizer.step()
    path = path_of(UPDATES[name], 0.03, 25)
    # torch's parameters under Nesterov's method are the points w + αv at which the gradient is taken.
    ours = path[-1] + 0.8 * (path[-1] - path[-2]) if name == "nesterov" else path[-1]
    np.testing.assert_allclose(ours, w.detach().numpy(), rtol=1e-9)


def test_momentum_zero_is_gradient_descent():
    plain = path_of("gd", 0.03, 20)
    assert np.array_equal(path_of(Momentum(0.0), 0.03, 20), plain)
    assert np.array_equal(path_of(Nesterov(0.0), 0.03, 20), plain)


def test_gradient_descent_contracts_by_one_minus_eta_lambda():
    path = path_of("gd", 0.03, 10)
    np.testing.assert_allclose(path[10], (1 - 0.03 * np.diag(A)) ** 10 * START, rtol=1e-12)


def test_gradient_descent_diverges_beyond_two_over_l_and_returns_its_best():
    found = minimize(square, START, slope, step=2.1 / 25, max_iter=5000)
    assert found.trace.value[-1] > 1e3 * found.trace.value[0]
    assert found.value <= found.trace.value.min()
    assert not found.converged
    assert not found.certificate.holds


def test_nesterov_obeys_its_bound_and_gradient_descent_does_not():
    """f(w_T) − f* ≤ 2L‖w₀ − w*‖²/(T + 1)² (Nesterov), against a tridiagonal function that is as hard as it gets."""
    p, T = 200, 60
    H = (np.diag(np.full(p, 2.0)) - np.eye(p, k=1) - np.eye(p, k=-1)) / 4
    e = np.eye(p)[0] / 4
    optimum = np.linalg.solve(H, e)
    best = 0.5 * optimum @ H @ optimum - e @ optimum
    runs = {
        name: minimize(
            lambda x: 0.5 * x @ H @ x - e @ x, np.zeros(p), lambda x: H @ x - e, method=name, step=1.0, max_iter=T,
            tol=0.0,
        ).trace.value - best
        for name in ("gd", "nesterov")
    }  # fmt: skip
    t = np.arange(1, T + 1)
    bound = 2 * optimum @ optimum / (t + 1) ** 2
    assert (runs["nesterov"][1:] <= bound).all()
    assert (runs["gd"][1:] <= optimum @ optimum / (2 * t)).all()
    assert runs["nesterov"][-1] < 0.5 * runs["gd"][-1]


@pytest.mark.parametrize("kappa", [10.0, 1000.0])
def test_the_number_of_steps_grows_with_the_condition_number_or_its_root(kappa):
    H = definite_matrix(0, np.linspace(1, kappa, 6))
    b = np.ones(6)

    def steps(method):
        found = minimize(
            lambda x: 0.5 * x @ H @ x - b @ x, np.zeros(6), lambda x: H @ x - b, method=method, step=1 / kappa,
            max_iter=100_000, tol=1e-6,
        )  # fmt: skip
        assert found.converged
        return found.n_iter

    alpha = (np.sqrt(kappa) - 1) / (np.sqrt(kappa) + 1)
    assert steps("gd") > 5 * kappa
    assert steps(Nesterov(alpha)) < 25 * np.sqrt(kappa)


def test_average_iterate_obeys_rho_b_r_over_root_t():
    """Absolute loss of a linear function: ρ = 1, ‖x‖ ≤ R, ‖w*‖ ≤ B, η = B/(ρR√T): f(w̄) − f* ≤ ρBR/√T."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 5))
    w_star = rng.normal(size=5)
    y = X @ w_star  # f* = 0
    R, B = np.linalg.norm(X, axis=1).max(), np.linalg.norm(w_star)
    f = lambda w: np.abs(X @ w - y).mean()  # noqa: E731
    g = lambda w: X.T @ np.sign(X @ w - y) / len(X)  # noqa: E731
    for T in (10, 100, 1000):
        found = minimize(f, np.zeros(5), g, step=B / (R * np.sqrt(T)), max_iter=T, average=True)
        assert found.value <= B * R / np.sqrt(T)
        np.testing.assert_allclose(found.x, found.trace.path[:-1].mean(axis=0), rtol=1e-10)


def test_stochastic_average_obeys_the_bound_in_expectation():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(100, 4))
    w_star = rng.normal(size=4)
    y = X @ w_star
    R, B = np.linalg.norm(X, axis=1).max(), np.linalg.norm(w_star)
    f = lambda w, rows: np.abs(X[rows] @ w - y[rows]).mean()  # noqa: E731
    g = lambda w, rows: X[rows].T @ np.sign(X[rows] @ w - y[rows]) / len(X[rows])  # noqa: E731
    T = 5 * 100
    losses = [
        minimize(f, np.zeros(4), g, method="sgd", n_rows=100, batch_size=1, step=B / (R * np.sqrt(T)), max_iter=5,
                 average=True, random_state=seed, tol=0.0).value for seed in range(10)
    ]  # fmt: skip
    assert np.mean(losses) <= B * R / np.sqrt(T)


def test_momentum_escapes_a_saddle_sooner_than_gradient_descent():
    saddle, g = lambda x: 0.5 * (x[0] ** 2 - x[1] ** 2), lambda x: np.array([x[0], -x[1]])

    def steps(method):
        found = minimize(
            saddle,
            [1.0, 1e-6],
            g,
            method=method,
            step=0.05,
            max_iter=2000,
            callback=lambda moment: abs(moment.x[1]) > 1,
        )
        return found.n_iter

    assert steps("momentum") < 0.5 * steps("gd")
    assert steps("adam") < steps("gd")


def test_clipping_acts_before_the_update():
    path = path_of(GradientDescent(), 0.1, 1, clip=Truncate(3.0))
    np.testing.assert_allclose(path[1], START - 0.1 * np.array([1.0, -3.0]))


@pytest.mark.parametrize(
    "build", [lambda: Momentum(1.0), lambda: Adam(rho1=-0.1), lambda: RMSprop(delta=0), lambda: Nesterov(2)]
)
def test_settings_out_of_range_are_refused(build):
    with pytest.raises(ParameterError, match="must be"):
        build()
