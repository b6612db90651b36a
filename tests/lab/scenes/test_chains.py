"""Chains: the gradients of their densities, and draws that are those of the sampler's own steps."""

import numpy as np
import pytest

from learnable.lab import SCENES
from learnable.lab.scenes.chains import banana, posterior_of
from learnable.solvers import check_gradient


@pytest.mark.parametrize(
    "density", [banana, posterior_of(np.array([0.3, -1.0, 0.7, 2.0]))], ids=["banana", "posterior"]
)
def test_gradients(density):
    assert check_gradient(lambda x: density(x)[0], lambda x: density(x)[1], [0.4, 0.2])


@pytest.mark.parametrize("name", ["metropolis", "nuts"])
def test_draws_are_those_of_the_steps(name):
    scene = SCENES[name]
    steps = scene.steps(n_draws=40)
    names = {}
    exec(scene.setup, names)
    exec(steps[6].code, names)
    draws = np.array(names["draws"])
    assert draws.shape == (7, 2)
    assert steps[6].numbers["mean of the first"] == draws[:, 0].mean()
    assert [step.numbers["draws"] for step in steps] == [*range(1, 13), 30, 40]


def test_a_refused_proposal_is_a_draw_again():
    steps = SCENES["metropolis"].steps(n_draws=40)[:12]
    first = np.array([step.numbers["mean of the first"] * step.numbers["draws"] for step in steps])
    places = np.diff(np.r_[0.0, first])
    for before, after, step in zip(places, places[1:], steps[1:], strict=False):
        assert ("refuses" in step.text) == bool(np.isclose(before, after, atol=1e-12))
