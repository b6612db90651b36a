"""Descent: derivatives of the surfaces, and a step is the beginning of a longer run."""

import numpy as np
import pytest

from learnable.lab import SCENES
from learnable.lab.scenes.descent import LogisticSurface, valley, valley_gradient, valley_hessian
from learnable.solvers import check_gradient, check_hessian, minimize

RNG = np.random.default_rng(0)
SURFACE = LogisticSurface(RNG.normal(size=(30, 2)), RNG.choice([-1.0, 1.0], 30))


@pytest.mark.parametrize(
    ("f", "gradient", "hessian"),
    [(valley, valley_gradient, valley_hessian), (SURFACE.value, SURFACE.gradient, SURFACE.hessian)],
    ids=["valley", "logistic"],
)
def test_derivatives(f, gradient, hessian):
    at = np.array([0.3, -0.7])
    assert check_gradient(f, gradient, at)
    assert check_hessian(gradient, hessian, at)


def test_a_step_is_the_beginning_of_a_longer_run():
    f, gradient, hessian, start, rate, slow, _ = SCENES["descent"].read()
    steps = SCENES["descent"].steps(n_steps=12)
    long = {
        "gd": minimize(f, start, gradient, method="gd", step=rate, max_iter=12, tol=1e-8),
        "momentum": minimize(f, start, gradient, method="momentum", step=slow, max_iter=12, tol=1e-8),
        "newton": minimize(f, start, gradient, hessian, method="newton", max_iter=12, tol=1e-8),
    }
    for number, step in enumerate(steps, start=1):
        for name, run in long.items():
            last = min(number, len(run.trace) - 1)
            assert step.numbers[f"f, {name}"] == run.trace.value[last]
    assert steps[-1].certificates["newton"].holds and not steps[-1].certificates["gd"].holds
