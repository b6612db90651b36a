"""Rows by cluster: every cluster has its colour, ellipses are those of the covariance."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest

from learnable.core.errors import DataError
from learnable.plots import cluster_scatter

RNG = np.random.default_rng(0)


def test_every_cluster_has_a_colour_a_name_and_its_points():
    labels = RNG.integers(3, size=100)
    figure = cluster_scatter(RNG.normal(size=100), RNG.normal(size=100), labels, names=["a", "b", "<c>"])
    ElementTree.fromstring(figure)
    paths = re.findall(r'<path d="([^"]*h0)" stroke="(#\w+)"', figure)
    assert [d.count("h0") for d, _ in paths] == np.bincount(labels).tolist()
    assert len({colour for _, colour in paths}) == 3
    assert "&lt;c&gt;" in figure and "<c>" not in figure


def test_many_points_are_thinned_and_bad_ones_left_out():
    x = np.r_[np.nan, RNG.normal(size=9999)]
    figure = cluster_scatter(x, x, np.zeros(10_000))
    assert figure.count("h0") == 3000


def test_ellipses_lie_at_one_and_two_deviations():
    covariances = [np.diag([4.0, 1.0])]
    figure = cluster_scatter([-4.0, 4.0], [-2.0, 2.0], [0, 0], centres=[[0.0, 0.0]], covariances=covariances)
    widths = []
    for d in re.findall(r'<path d="(M[^"h]*)" fill="none" stroke="#', figure):
        xs = [float(pair.split()[0]) for pair in re.split("[ML]", d)[1:]]
        widths.append(max(xs) - min(xs))
    dots = re.search(r'd="M([\d.]+) [\d.]+h0M([\d.]+)', figure)
    span = abs(float(dots[2]) - float(dots[1]))  # eight units
    np.testing.assert_allclose(sorted(widths), [span * 4 / 8, span * 8 / 8], rtol=0.01)


def test_bad_centres():
    with pytest.raises(DataError, match="points of the plane"):
        cluster_scatter([0.0], [0.0], [0], centres=[[1.0, 2.0, 3.0]])
