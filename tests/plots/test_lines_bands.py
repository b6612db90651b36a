"""A function with its bands: everything given is drawn, and nothing leaves the range."""

import re

import numpy as np
import pytest
from tests.plots.svg import parse

from learnable.core.errors import DataError
from learnable.plots import function_bands

X = np.linspace(0.0, 1.0, 5)


def test_everything_is_drawn():
    figure = function_bands(
        X, X, {"half": (X - 1, X + 1), "most": (X - 2, X + 2)}, points=([0.1, 0.9], [0.0, 1.0]),
        draws=[X + 0.1, X - 0.1, X], truth=X**2, title="All <of> it",
    )  # fmt: skip
    parse(figure)
    assert figure.count("<circle") == 2 and figure.count('opacity="0.17"') == 2
    assert figure.count('stroke-width="0.7"') == 3 and "4 3" in figure
    assert "All &lt;of&gt; it" in figure


def test_what_is_outside_is_cut():
    figure = function_bands(X, 100.0 * X, points=([0.5], [50.0]), y_range=(0.0, 10.0))
    parse(figure)
    assert "<circle" not in figure
    heights = [float(y) for y in re.findall(r"[ML][\d.]+ ([\d.]+)", figure.split("<g><path")[-1])]
    assert min(heights) >= 25.9 and max(heights) <= 250.0


def test_refusals():
    with pytest.raises(DataError, match="at least two points"):
        function_bands([1.0], [1.0])
    with pytest.raises(DataError, match="one length"):
        function_bands(X, X, {"band": (X[:2], X)})
