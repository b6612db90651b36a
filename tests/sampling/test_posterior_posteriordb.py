"""Posteriors of posteriordb: the densities at its points, and means within four Monte Carlo errors of its reference."""

import csv
import json

import numpy as np
import pytest
from scipy.special import gammaln

import learnable as ln
from learnable.core.jit import kernel
from learnable.probability import Normal, StudentT
from learnable.sampling import Interval, Ordered, Positive, Real, Simplex, compiled, mcse_mean, nuts, posterior


@pytest.fixture(scope="module")
def folder(reference_data):
    return reference_data / "mcmc" / "posteriordb_small"


def read(folder, name):
    record = json.loads((folder / f"{name}.json").read_text())
    return {key: np.array(v, dtype=float) if isinstance(v, list) else v for key, v in record.items()}


def agree(folder, name, found):
    """Compare means with the reference, by both Monte Carlo errors."""
    with open(folder / "reference_means.csv") as file:
        rows = {row["parameter"]: row for row in csv.DictReader(file) if row["posterior"].startswith(name)}
    assert set(found) <= set(rows)
    for parameter, draws in found.items():
        row = rows[parameter]
        error = np.hypot(float(row["mcse_mean"]), mcse_mean(draws))
        assert abs(draws.mean() - float(row["mean"])) < 4 * error, parameter
        assert abs(draws.std() / float(row["sd"]) - 1) < 0.15, parameter


def check_points(folder, name, log_density):
    for case in json.loads((folder / "density_check.json").read_text())[name]:
        assert log_density(case["point"]) == pytest.approx(case["log_density"], rel=1e-5)


def with_differences(value):
    """Return a density for `compiled` that takes its gradient from differences, inside the compiled code."""
    inner = kernel(value)

    def density(x, gradient, y):
        for i in range(x.size):
            h = 6e-6 * max(1.0, abs(x[i]))
            old = x[i]
            x[i] = old + h
            above = inner(x, y)
            x[i] = old - h
            gradient[i] = (above - inner(x, y)) / (2.0 * h)
            x[i] = old
        return inner(x, y)

    return density, lambda x, y: inner(np.array(x, dtype=float), y)


def test_kidscore_momiq(folder):
    data = read(folder, "kidiq")
    X, y = data["mom_iq"][:, None], data["kid_score"]
    found = posterior(ln.LinearRegression(), X, y, prior={"sigma": StudentT(1.0, 0.0, 2.5)}, random_state=0).chains
    names = {"beta[1]": found["intercept"], "beta[2]": found["coef"][:, :, 0], "sigma": found["sigma"]}
    agree(folder, "kidiq", names)


def test_log_earnings(folder):
    data = read(folder, "earnings")
    X, y = data["height"][:, None], np.log(data["earn"])
    found = posterior(ln.LinearRegression(), X, y, prior={"sigma": None}, random_state=0).chains
    names = {"beta[1]": found["intercept"], "beta[2]": found["coef"][:, :, 0], "sigma": found["sigma"]}
    agree(folder, "earnings", names)


def test_autoregression_of_order_five(folder):
    data = read(folder, "arK")
    y, K = data["y"], int(data["K"])
    X = np.column_stack([y[K - k : len(y) - k] for k in range(1, K + 1)])
    prior = {"coef": Normal(0, 10), "intercept": Normal(0, 10), "sigma": StudentT(1.0, 0.0, 2.5)}
    found = posterior(ln.LinearRegression(), X, y[K:], prior=prior, random_state=0).chains
    names = {"alpha": found["intercept"], "sigma": found["sigma"]}
    agree(folder, "arK", names | {f"beta[{k + 1}]": found["coef"][:, :, k] for k in range(K)})


def mixture_value(x, y):
    """x = (μ₁, μ₂, σ₁, σ₂, θ)."""
    theta = x[4]
    total = -0.125 * (x[0] ** 2 + x[1] ** 2 + x[2] ** 2 + x[3] ** 2) - 4.0 * (np.log(2.0) + 0.9189385332046727)
    total += 4.0 * np.log(theta) + 4.0 * np.log1p(-theta) + np.log(630.0)
    for i in range(y.size):
        a = (y[i] - x[0]) / x[2]
        b = (y[i] - x[1]) / x[3]
        first = np.log(theta) - np.log(x[2]) - 0.5 * a * a
        second = np.log1p(-theta) - np.log(x[3]) - 0.5 * b * b
        top = max(first, second)
        total += top + np.log(np.exp(first - top) + np.exp(second - top)) - 0.9189385332046727
    return total


@pytest.mark.long
def test_a_mixture_of_two_normals(folder):
    y = read(folder, "low_dim_gauss_mix")["y"]
    density, value = with_differences(mixture_value)
    order = ["mu[1]", "mu[2]", "sigma[1]", "sigma[2]", "theta"]
    check_points(folder, "low_dim_gauss_mix-low_dim_gauss_mix", lambda p: value([p[name] for name in order], y))
    parameters = {"mu": Ordered(2), "sigma": Positive(2), "theta": Interval(0, 1)}
    chains = nuts(compiled(density, y), parameters, n_draws=400, n_warmup=300, random_state=0)
    agree(folder, "low_dim_gauss_mix", {name: chains.draws[:, :, k] for k, name in enumerate(order)})


def garch_value(x, y):
    """x = (μ, α₀, α₁, s) with β₁ = s(1 − α₁): the constant density on the triangle becomes 1 − α₁."""
    total = np.log1p(-x[2])
    variance = 0.25  # σ₁ = 0.5 is given
    beta = x[3] * (1.0 - x[2])
    for t in range(y.size):
        if t > 0:
            variance = x[1] + x[2] * (y[t - 1] - x[0]) ** 2 + beta * variance
        total -= 0.5 * np.log(variance) + 0.5 * (y[t] - x[0]) ** 2 / variance + 0.9189385332046727
    return total


def test_garch(folder):
    data = read(folder, "garch")
    assert data["sigma1"] == 0.5
    density, value = with_differences(garch_value)

    def at(p):
        a1 = p["alpha1"]
        return value([p["mu"], p["alpha0"], a1, p["beta1"] / (1 - a1)], data["y"]) - np.log1p(-a1)

    check_points(folder, "garch-garch11", at)
    parameters = {"mu": Real(), "alpha0": Positive(), "alpha1": Interval(0, 1), "s": Interval(0, 1)}
    chains = nuts(compiled(density, data["y"]), parameters, n_draws=1000, random_state=0, target_accept=0.9)
    names = {name: chains[name] for name in ("mu", "alpha0", "alpha1")}
    agree(folder, "garch", names | {"beta1": chains["s"] * (1 - chains["alpha1"])})


def hmm_value(x, y):
    """x = (row of state 1, row of state 2, μ₁, μ₂); a sum over all paths, each with weight 1 in its first state."""
    if x[4] <= 0.0:
        return -np.inf
    c = 0.9189385332046727
    a = -0.5 * (y[0] - x[4]) ** 2 - c
    b = -0.5 * (y[0] - x[5]) ** 2 - c
    for t in range(1, y.size):
        top = max(a, b)
        p, q = np.exp(a - top), np.exp(b - top)
        a = top + np.log(p * x[0] + q * x[2]) - 0.5 * (y[t] - x[4]) ** 2 - c
        b = top + np.log(p * x[1] + q * x[3]) - 0.5 * (y[t] - x[5]) ** 2 - c
    top = max(a, b)
    prior = -0.5 * (x[4] - 3.0) ** 2 - 0.5 * (x[5] - 10.0) ** 2 - 2.0 * c
    return prior + top + np.log(np.exp(a - top) + np.exp(b - top))


@pytest.mark.long
def test_a_hidden_markov_model(folder):
    y = read(folder, "hmm_example")["y"]
    density, value = with_differences(hmm_value)
    order = [f"{name}[{k}]" for name in ("theta1", "theta2", "mu") for k in (1, 2)]
    check_points(folder, "hmm_example-hmm_example", lambda p: value([p[name] for name in order], y))
    parameters = {"theta1": Simplex(2), "theta2": Simplex(2), "mu": Ordered(2)}
    start = {"theta1": [0.5, 0.5], "theta2": [0.5, 0.5], "mu": [2.0, 8.0]}
    chains = nuts(compiled(density, y), parameters, x0=start, n_draws=1000, random_state=0)
    agree(folder, "hmm_example", {name: chains.draws[:, :, k] for k, name in enumerate(order)})


def process_factor(rho, alpha, x):
    """Return L with LLᵀ = α² exp(−(x_i − x_j)²/(2ρ²)) + 1e-10 I."""
    n = x.size
    L = np.zeros((n, n))
    for j in range(n):
        for i in range(j, n):
            total = alpha**2 * np.exp(-0.5 * ((x[i] - x[j]) / rho) ** 2)
            if i == j:
                total += 1e-10
            for k in range(j):
                total -= L[i, k] * L[j, k]
            if i == j:
                L[j, j] = np.sqrt(max(total, 1e-300))
            else:
                L[i, j] = total / L[j, j]
    return L


compiled_factor = kernel(process_factor)


def process_value(v, data):
    """v = (ρ, α, z) with f = Lz; data: the places, then log k_i!, then the counts k_i."""
    n = data.size // 3
    x = data[:n]
    L = compiled_factor(v[0], v[1], x)
    # Γ(25, rate 4) for ρ, the N(0, 2) density for α, standard normal z.
    total = 25.0 * np.log(4.0) - 54.784729398112319 + 24.0 * np.log(v[0]) - 4.0 * v[0]
    total -= 0.125 * v[1] ** 2 + np.log(2.0) + 0.9189385332046727
    for i in range(n):
        f = 0.0
        for k in range(i + 1):
            f += L[i, k] * v[2 + k]
        total += data[2 * n + i] * f - np.exp(f) - data[n + i]
        total -= 0.5 * v[2 + i] ** 2 + 0.9189385332046727
    return total


def process_data(folder):
    record = read(folder, "gp_pois_regr")
    return np.concatenate([record["x"], gammaln(record["k"] + 1.0), record["k"]])


def test_the_density_of_poisson_regression_on_a_gaussian_process(folder):
    data = process_data(folder)
    x = data[: data.size // 3]
    value = kernel(process_value)

    def at(point):
        L = process_factor(point["rho"], point["alpha"], x)
        f = np.array([point[f"f[{i + 1}]"] for i in range(len(x))])
        v = np.array([point["rho"], point["alpha"], *np.linalg.solve(L, f)])
        # The check is the density of f, ours that of z = L⁻¹f.
        return value(v, data) - np.log(np.diag(L)).sum()

    check_points(folder, "gp_pois_regr-gp_pois_regr", at)


@pytest.mark.long
def test_poisson_regression_on_a_gaussian_process(folder):
    data = process_data(folder)
    x = data[: data.size // 3]
    density, _ = with_differences(process_value)
    parameters = {"rho": Positive(), "alpha": Positive(), "z": Real(len(x))}
    chains = nuts(compiled(density, data), parameters, n_draws=500, n_warmup=300, random_state=0)
    rho = chains["rho"]
    alpha = chains["alpha"]
    f = np.empty((*rho.shape, len(x)))
    for place in np.ndindex(rho.shape):
        f[place] = compiled_factor(rho[place], alpha[place], x) @ chains["z"][place]
    agree(folder, "gp_pois_regr", {"rho": rho, "alpha": alpha} | {f"f[{i + 1}]": f[..., i] for i in range(len(x))})
