"""Pictures of programs: the saddle stands where valley and ridge meet, and what cannot be drawn is refused in words."""

import re

import numpy as np
import pytest
from tests.plots.svg import parse

from learnable.core.errors import DataError
from learnable.plots import program_plot, saddle_plot


def lagrangian(x, strength):
    """x² + λ(1 − x): the saddle is x = 1, λ = 2."""
    return x**2 + strength[:, None] * (1.0 - x)


def test_the_saddle_is_found():
    x, strength = np.linspace(-1.0, 3.0, 41), np.linspace(0.0, 4.0, 41)
    figure = saddle_plot(x, strength, lagrangian(x, strength))
    parse(figure)
    assert "saddle at x = 1, λ = 2" in figure
    assert "least in x" in figure and "greatest in λ" in figure


def test_the_valley_is_smooth_between_the_columns_of_the_grid():
    x, strength = np.linspace(-1.0, 3.0, 12), np.linspace(0.0, 4.0, 30)
    figure = saddle_plot(x, strength, lagrangian(x, strength))
    valley = re.search(r'd="(M[^"]*)"[^>]*><title>least in x', figure)[1]
    points = np.array(re.findall(r"-?[\d.]+", valley), dtype=float).reshape(-1, 2)
    slopes = np.diff(points[:, 0]) / np.diff(points[:, 1])
    np.testing.assert_allclose(slopes, slopes[0], rtol=0.1)  # x = λ/2 is a line


def test_a_program_of_two_variables():
    t = np.linspace(-2.0, 2.0, 41)
    f, g = (t - 2.0) ** 2 + t[:, None] ** 2, t**2 + t[:, None] ** 2 - 1.0
    figure = program_plot(
        t, t, f, g, {"path": [[2.0, 0.0], [1.0, 0.0]]}, optimum=(1.0, 0.0), gradients=((0.5, 0.0), (0.5, 0.0))
    )
    parse(figure)
    for words in ("feasible set", "path", "optimum at (1, 0)", "−∇f", "λ∇g"):
        assert words in figure


def test_what_cannot_be_drawn():
    t = np.linspace(0.0, 1.0, 5)
    with pytest.raises(DataError, match="must have shape"):
        saddle_plot(t, t, np.zeros((4, 5)))
    with pytest.raises(DataError, match="increasing"):
        saddle_plot(t[::-1], t, np.zeros((5, 5)))
    with pytest.raises(DataError, match="path 'a' must have shape"):
        program_plot(t, t, np.zeros((5, 5)), np.zeros((5, 5)) - 1.0, {"a": [1.0, 2.0]})
