"""Quantiles of rows in several places."""

import numpy as np
import pytest
from tests import worlds

from learnable.ensembles.gradient.quantiles import quantiles_by_leaf


@pytest.mark.parametrize("weights", ["none", "tenths", "any"])
@pytest.mark.parametrize("level", [0.1, 0.5, 0.9])
def test_parts_find_the_quantiles_of_the_whole(weights, level):
    rng = np.random.default_rng(0)
    for digits in (0, 1, 12):
        n = int(rng.integers(5, 300))
        leaf = rng.integers(0, 5, n).astype(np.int32)
        x = np.round(rng.normal(size=n), digits)
        w = {"none": None, "tenths": rng.integers(1, 4, n) / 10.0, "any": rng.random(n) + 0.1}[weights]
        whole = quantiles_by_leaf(leaf, 5, x, w, level)
        cuts = [0, *sorted(rng.integers(0, n + 1, 2).tolist()), n]

        def work(world, cuts=cuts, leaf=leaf, x=x, w=w):
            own = slice(cuts[world.rank], cuts[world.rank + 1])
            return quantiles_by_leaf(leaf[own], 5, x[own], None if w is None else w[own], level, world)

        for found in worlds.run(3, work):
            np.testing.assert_array_equal(found, whole)
