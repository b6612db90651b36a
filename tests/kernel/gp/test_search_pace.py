"""Time limits of Gaussian processes, on a clock that only matrices move: what they cost is known, whatever the
machine."""

import warnings

import numpy as np
import pytest

import learnable as ln
from learnable.core import estimator as run_module
from learnable.kernel.gp import laplace as gp_laplace
from learnable.kernel.gp import likelihood as gp_likelihood
from learnable.kernel.gp import search as gp_pace
from learnable.risk.kernels import Gaussian, White

RNG = np.random.default_rng(0)
X = RNG.normal(size=(700, 3))
Z = np.sin(2 * X[:, 0]) + X[:, 1] ** 2 - 1 + 0.2 * RNG.normal(size=700)
KERNEL = 1.0 * Gaussian(np.ones(3)) + White(0.1)
MODELS = {
    "regressor": (ln.GaussianProcessRegressor(KERNEL), Z),
    "two classes": (ln.GaussianProcessClassifier(KERNEL), Z > 0),
    "three classes": (ln.GaussianProcessClassifier(KERNEL), np.digitize(Z, [-0.5, 0.5])),
    "pairs": (ln.GaussianProcessClassifier(KERNEL, multi_class="one_vs_one"), np.digitize(Z, [-0.5, 0.5])),
    "softmax": (ln.GaussianProcessClassifier(KERNEL, multi_class="softmax"), np.digitize(Z, [-0.5, 0.5])),
}


class Clock:
    """A clock that a factorisation of n rows moves by (n/700)³ of a unit, and an inverse by twice that."""

    def __init__(self, monkeypatch, unit):
        self.now, self.unit = 0.0, unit
        monkeypatch.setattr(gp_pace.time, "perf_counter", lambda: self.now)
        monkeypatch.setattr(run_module.time, "perf_counter", lambda: self.now)
        for module in (gp_laplace, gp_likelihood):
            for name, cost in (("dpotrf", 1.0), ("dpotri", 2.0)):
                monkeypatch.setattr(module, name, self.timed(getattr(module, name), cost))
        for name, cost in (("lower_factor", 1.0), ("inverse_from_factor", 2.0)):
            monkeypatch.setattr(gp_likelihood, name, self.timed(getattr(gp_likelihood, name), cost))

    def timed(self, function, cost):
        def call(matrix, *args, **kwargs):
            self.now += cost * self.unit * (len(matrix) / 700) ** 3
            return function(matrix, *args, **kwargs)

        return call


@pytest.mark.sampled(6)
@pytest.mark.parametrize("limit", [0.5, 2.0, 8.0])
@pytest.mark.parametrize("name", MODELS)
def test_fits_end_in_time(monkeypatch, name, limit):
    model, y = MODELS[name]
    # The least that a model can be made of: a factor of every process; of the softmax one, its inverse and their sum.
    least = {"regressor": 5, "two classes": 1, "three classes": 3, "pairs": 3, "softmax": 4}[name]
    clock = Clock(monkeypatch, unit=0.5 / least)
    model = type(model)(**model.get_params(deep=False)).set_params(max_seconds=limit)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y)
    assert clock.now <= 1.5 * limit + 0.5
    assert np.isfinite(np.asarray(model.predict(X[:5]), dtype=float)).all()


def test_without_a_limit_nothing_depends_on_the_clock(monkeypatch):
    _, y = MODELS["two classes"]
    plain = ln.GaussianProcessClassifier(KERNEL).fit(X[:150], y[:150])
    Clock(monkeypatch, unit=1e6)
    again = ln.GaussianProcessClassifier(KERNEL).fit(X[:150], y[:150])
    np.testing.assert_array_equal(plain.f_, again.f_)
    assert again.certificate_.holds
