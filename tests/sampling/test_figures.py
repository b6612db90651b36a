"""Pictures of chains: each kind is an SVG that shows what it should."""

import numpy as np
import pytest

from learnable.core.errors import DataError, ParameterError
from learnable.sampling import Chains
from learnable.sampling.figures import KINDS


def chains():
    rng = np.random.default_rng(0)
    diverging = np.zeros((3, 300))
    diverging[0, :7] = 1
    stats = {"energy": rng.normal(size=(3, 300)), "diverging": diverging}
    return Chains.from_arrays({"mu": rng.normal(size=(3, 300)), "w": rng.normal(size=(3, 300, 2))}, stats)


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_is_an_svg_with_its_label(kind):
    figure = chains().plot(kind, None if kind == "energy" else "w[1]")
    assert figure.startswith("<svg") and ("w[1]" in figure or kind == "energy") and "NaN" not in figure


def test_divergences_are_marked_and_ranks_have_a_panel_per_chain():
    assert "7 diverged" in chains().plot("pair", "mu", "w[0]")
    assert all(f"chain {c}" in chains().plot("rank") for c in range(3))


def test_what_cannot_be_drawn_is_named():
    with pytest.raises(ParameterError, match="kind must be one of"):
        chains().plot("violin")
    with pytest.raises(DataError, match="no number 'nu'"):
        chains().plot("trace", "nu")
    with pytest.raises(DataError, match="has no energy"):
        Chains.from_arrays({"mu": np.random.default_rng(0).normal(size=(2, 50))}).plot("energy")
