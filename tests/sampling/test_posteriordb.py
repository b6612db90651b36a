"""Posteriors of posteriordb: the densities at its points, and means within four Monte Carlo errors of its reference."""

import csv
import json

import numpy as np
import pytest

import learnable as ln
from learnable.core.jit import kernel
from learnable.probability import Normal, StudentT
from learnable.sampling import Interval, Ordered, Positive, Real, Simplex, mcse_mean, nuts, posterior


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


@kernel
def mixture_value(y, mu, sigma, theta):
    total = 0.0
    for i in range(y.size):
        a = (y[i] - mu[0]) / sigma[0]
        b = (y[i] - mu[1]) / sigma[1]
        first = np.log(theta) - np.log(sigma[0]) - 0.5 * a * a
        second = np.log1p(-theta) - np.log(sigma[1]) - 0.5 * b * b
        top = max(first, second)
        total += top + np.log(np.exp(first - top) + np.exp(second - top)) - 0.9189385332046727
    return total


def test_a_mixture_of_two_normals(folder):
    y = read(folder, "low_dim_gauss_mix")["y"]
    half_log = 0.9189385332046727

    def log_density(p):
        mu, sigma, theta = np.asarray(p["mu"]), np.asarray(p["sigma"]), float(p["theta"])
        prior = -0.125 * float(mu @ mu + sigma @ sigma) - 4 * (np.log(2) + half_log)
        prior += 4 * np.log(theta) + 4 * np.log1p(-theta) + np.log(630.0)
        return mixture_value(y, mu, sigma, theta) + prior

    def at(point):
        return log_density(
            {
                "mu": np.array([point["mu[1]"], point["mu[2]"]]),
                "sigma": np.array([point["sigma[1]"], point["sigma[2]"]]),
                "theta": point["theta"],
            }
        )

    check_points(folder, "low_dim_gauss_mix-low_dim_gauss_mix", at)
    parameters = {"mu": Ordered(2), "sigma": Positive(2), "theta": Interval(0, 1)}
    chains = nuts(log_density, parameters, n_draws=700, random_state=0)
    names = {f"mu[{k + 1}]": chains["mu"][:, :, k] for k in range(2)}
    names |= {f"sigma[{k + 1}]": chains["sigma"][:, :, k] for k in range(2)}
    agree(folder, "low_dim_gauss_mix", names | {"theta": chains["theta"]})


@kernel
def garch_value(y, first, mu, a0, a1, b1):
    total = 0.0
    variance = first * first
    for t in range(y.size):
        if t > 0:
            variance = a0 + a1 * (y[t - 1] - mu) ** 2 + b1 * variance
        total -= 0.5 * np.log(variance) + 0.5 * (y[t] - mu) ** 2 / variance + 0.9189385332046727
    return total


def test_garch(folder):
    data = read(folder, "garch")
    y, first = data["y"], float(data["sigma1"])
    check_points(
        folder, "garch-garch11", lambda p: garch_value(y, first, p["mu"], p["alpha0"], p["alpha1"], p["beta1"])
    )

    def log_density(p):
        """β₁ = s(1 − α₁) with s in (0, 1): the constant density on the triangle becomes 1 − α₁."""
        a1 = float(p["alpha1"])
        beta = float(p["s"]) * (1 - a1)
        return garch_value(y, first, float(p["mu"]), float(p["alpha0"]), a1, beta) + np.log1p(-a1)

    parameters = {"mu": Real(), "alpha0": Positive(), "alpha1": Interval(0, 1), "s": Interval(0, 1)}
    chains = nuts(log_density, parameters, n_draws=1000, random_state=0, target_accept=0.9)
    names = {name: chains[name] for name in ("mu", "alpha0", "alpha1")}
    agree(folder, "garch", names | {"beta1": chains["s"] * (1 - chains["alpha1"])})


@kernel
def hmm_value(y, rows, mu):
    """The likelihood summed over all paths, each starting with weight 1 in each state."""
    a = -0.5 * (y[0] - mu[0]) ** 2 - 0.9189385332046727
    b = -0.5 * (y[0] - mu[1]) ** 2 - 0.9189385332046727
    for t in range(1, y.size):
        top = max(a, b)
        p, q = np.exp(a - top), np.exp(b - top)
        a = top + np.log(p * rows[0, 0] + q * rows[1, 0]) - 0.5 * (y[t] - mu[0]) ** 2 - 0.9189385332046727
        b = top + np.log(p * rows[0, 1] + q * rows[1, 1]) - 0.5 * (y[t] - mu[1]) ** 2 - 0.9189385332046727
    top = max(a, b)
    return top + np.log(np.exp(a - top) + np.exp(b - top))


def test_a_hidden_markov_model(folder):
    y = read(folder, "hmm_example")["y"]

    def log_density(p):
        mu = np.asarray(p["mu"], dtype=float)
        if mu[0] <= 0:
            return -np.inf
        prior = -0.5 * (mu[0] - 3) ** 2 - 0.5 * (mu[1] - 10) ** 2 - 2 * 0.9189385332046727
        return hmm_value(y, np.array([p["theta1"], p["theta2"]]), mu) + prior

    def at(point):
        rows = {k: np.array([point[f"{k}[1]"], point[f"{k}[2]"]]) for k in ("theta1", "theta2", "mu")}
        return log_density(rows)

    check_points(folder, "hmm_example-hmm_example", at)
    parameters = {"theta1": Simplex(2), "theta2": Simplex(2), "mu": Ordered(2)}
    start = {"theta1": [0.5, 0.5], "theta2": [0.5, 0.5], "mu": [2.0, 8.0]}
    chains = nuts(log_density, parameters, x0=start, n_draws=1000, random_state=0)
    names = {f"{n}[{k + 1}]": chains[n][:, :, k] for n in ("theta1", "theta2", "mu") for k in range(2)}
    agree(folder, "hmm_example", names)
