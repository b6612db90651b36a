import numpy as np
import pytest
from tests.plots.svg import inside, parse, texts

from learnable.core.errors import DataError
from learnable.plots import biplot, scree


def test_choices_that_agree_share_a_line_and_all_is_in_sight():
    variances = [4.0, 2.0, 1.0, 0.5]
    ends = np.outer(variances, [0.8, 1.3])
    root = parse(scree(variances, intervals=ends, choices={"parallel": 2, "threshold": 2, "mle": 3}))
    assert inside(root)
    assert "2: parallel, threshold" in texts(root)
    assert "3: mle" in texts(root)
    assert scree(variances, intervals=ends).count("stroke-dasharray") == 0
    assert scree(variances, choices={"a": 1, "b": 3}).count("stroke-dasharray") == 2


def test_arrows_have_the_directions_of_the_columns():
    root = parse(biplot([[1.0, 0.0], [0.0, 2.0], [-1.0, -1.0]], [[0.5, 0.0], [0.0, 0.25]], names=["height", "weight"]))
    assert inside(root)
    assert {"height", "weight", "first component"} <= set(texts(root))


def test_wrong_shapes_are_refused_in_words():
    for call, match in (
        (lambda: scree([]), "nothing to draw"),
        (lambda: scree([1.0], intervals=[[0.0, 1.0, 2.0]]), "shape"),
        (lambda: biplot(np.ones((3, 3)), np.ones((2, 2))), "scores"),
        (lambda: biplot(np.ones((3, 2)), np.ones((2, 2)), names=["a"]), "2 columns and 1 names"),
    ):
        with pytest.raises(DataError, match=match):
            call()
