import numpy as np
import pytest
from tests.plots.svg import elements, inside, parse, points, texts

from learnable.core.errors import DataError
from learnable.plots import learning_curve, line_with_band, reliability_diagram, roc_curves


def test_a_band_surrounds_its_line():
    x, y = np.arange(5.0), np.array([1.0, 3.0, 2.0, 4.0, 3.5])
    root = parse(line_with_band(x, y, y - 0.5, y + 0.5, title="Line"))
    band, line = (points(node.get("d")) for node in elements(root[-1], "path"))
    upper, lower = band[:5], band[5:][::-1]
    np.testing.assert_allclose(upper[:, 0], line[:, 0])
    np.testing.assert_allclose((upper[:, 1] + lower[:, 1]) / 2, line[:, 1], atol=0.02)
    assert (upper[:, 1] < line[:, 1]).all()
    assert inside(root)


def test_a_line_needs_no_band():
    assert len(elements(parse(line_with_band([1, 2], [3, 4]))[-1], "path")) == 1
    assert len(elements(parse(line_with_band([1, 2], [3, 4], [None, 3], [None, 5]))[-1], "path")) == 1


def test_a_learning_curve_names_its_lines():
    root = parse(learning_curve([10, 20, 40], [0.9, 0.8, 0.75], [0.5, 0.6, 0.7], [0.4, 0.5, 0.6], [0.6, 0.7, 0.8]))
    assert {"new rows", "training rows"} <= set(texts(root))
    assert inside(root)
    parse(learning_curve([10, 20], [None, None], [0.5, None]))
    parse(learning_curve([], [], []))


def test_a_roc_curve_runs_from_corner_to_corner():
    root = parse(roc_curves([("yes", [0.0, 0.1, 1.0], [0.0, 0.8, 1.0])]))
    diagonal, curve = (points(node.get("d")) for node in elements(root[-1], "path"))
    np.testing.assert_allclose(curve[[0, -1]], diagonal)
    assert curve[1, 1] < np.interp(curve[1, 0], diagonal[:, 0], diagonal[:, 1])


def test_many_roc_curves_are_faint_but_one():
    curves = [(f"<{k}>", [0, 1], [0, 1]) for k in range(20)]
    root = parse(roc_curves(curves, highlight=3))
    strong = [node for node in elements(root[-1], "path") if node.get("stroke-width") == "2"]
    assert len(strong) == 1
    assert "<3>" in "".join(strong[0].itertext())
    parse(roc_curves([]))


def test_a_reliability_diagram_has_a_dot_a_bin_by_its_rows():
    root = parse(reliability_diagram([0.1, None, 0.9], [0.2, None, 0.8], [10, 0, 1000]))
    radius = [float(dot.get("r")) for dot in elements(root, "circle")]
    assert len(radius) == 2
    assert radius[0] < radius[1]
    with pytest.raises(DataError, match="as many counts"):
        reliability_diagram([0.1], [0.2], [1, 2])
