"""Simulation-based calibration: right posteriors pass, wrong ones are found and described."""

import numpy as np
import pytest

import learnable as ln
from learnable.core.errors import DataError, ParameterError
from learnable.evaluation import calibrate
from learnable.evaluation.reliability import uniform_p_value
from learnable.probability import Beta, Normal
from learnable.sampling import nuts, posterior


def prior(rng):
    return {"mu": rng.normal()}


def simulate(p, rng):
    return p["mu"] + rng.normal(size=4)


def exact(y, rng, shift=0.0, scale=1.0):
    return {"mu": Normal(y.sum() / 5 + shift, scale * 5**-0.5)}


def test_the_exact_posterior_is_calibrated():
    check = calibrate(exact, prior, simulate, n_simulations=400, random_state=0)
    assert check.holds and check.shape("mu") == "uniform"
    assert check.plot().startswith("<svg") and "calibrated (400 simulations" in str(check)


@pytest.mark.parametrize(
    "wrong, shape",
    [
        ({"shift": 0.4}, "too large"),
        ({"shift": -0.4}, "too small"),
        ({"scale": 0.6}, "too narrow"),
        ({"scale": 2.0}, "too wide"),
    ],
)
def test_wrong_posteriors_are_found_and_described(wrong, shape):
    check = calibrate(lambda y, rng: exact(y, rng, **wrong), prior, simulate, n_simulations=400, random_state=1)
    assert not check.holds and shape in check.shape("mu") and "NOT calibrated" in str(check)


def test_a_conjugate_posterior_of_the_library():
    check = calibrate(
        lambda k, rng: {"p": Beta(2.0 + k.sum(), 3.0 + len(k) - k.sum())},
        lambda rng: {"p": rng.beta(2.0, 3.0)},
        lambda p, rng: rng.binomial(1, p["p"], size=12),
        n_simulations=300,
        random_state=2,
    )
    assert check.holds


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("n_simulations", [20, pytest.param(60, marks=pytest.mark.long)])
def test_nuts_and_posteriors_of_models_are_calibrated(n_simulations):
    def sampler(y, rng):
        log_density = lambda x: (-0.5 * float(x @ x) - 0.5 * float(((y - x) ** 2).sum()), -x + (y - x).sum())  # noqa: E731
        drawn = nuts(log_density, 1, n_draws=120, n_warmup=100, n_chains=2, random_state=rng, check=False)
        return {"mu": drawn.flat("x")[:, 0]}

    assert calibrate(sampler, prior, simulate, n_simulations=n_simulations, n_draws=40, random_state=3).holds
    X = np.random.default_rng(0).normal(size=(15, 2))

    def regression(y, rng):
        found = posterior(
            ln.LogisticRegression(fit_intercept=False), X, y, n_draws=60, n_warmup=60, n_chains=2, random_state=rng
        )
        return {"w": found.chains.flat("coef")}

    def both(p, rng):
        while True:  # a fit needs both classes; θ is drawn again with the data to keep the joint law
            y = (rng.random(15) < 1 / (1 + np.exp(-X @ p["w"]))).astype(int)
            if 0 < y.sum() < 15:
                return y
            p["w"][:] = rng.normal(size=2)

    check = calibrate(
        regression,
        lambda rng: {"w": rng.normal(size=2)},
        both,
        n_simulations=n_simulations,
        n_draws=40,
        random_state=4,
    )
    assert check.holds and set(check.ranks) == {"w[0]", "w[1]"}


def test_ranks_of_whole_numbers_are_uniform_by_random_ties():
    check = calibrate(
        lambda data, rng: {"k": rng.integers(0, 3, size=50)},
        lambda rng: {"k": rng.integers(0, 3)},
        lambda p, rng: None,
        n_simulations=400,
        n_draws=50,
        random_state=5,
    )
    assert check.holds


def test_the_test_has_its_level():
    rng = np.random.default_rng(6)
    p = [uniform_p_value(rng.integers(0, 100, size=200), 99) for _ in range(400)]
    assert abs(np.mean(np.array(p) < 0.1) - 0.1) < 4 * np.sqrt(0.09 / 400)


def test_faults_are_named():
    with pytest.raises(DataError, match="must return draws of 'mu'"):
        calibrate(lambda y, rng: {"nu": np.zeros(99)}, prior, simulate)
    with pytest.raises(DataError, match="draws of 'mu' must have shape"):
        calibrate(lambda y, rng: {"mu": np.zeros(9)}, prior, simulate)
    with pytest.raises(ParameterError, match="n_simulations must be"):
        calibrate(exact, prior, simulate, n_simulations=3)
