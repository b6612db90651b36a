"""The margin's scene: a point beyond the margin moves nothing, and a dragged table is fitted anew."""

import numpy as np
import pytest

from learnable import SVC
from learnable.core.errors import ParameterError
from learnable.lab import SCENES, move_point


def test_a_point_beyond_the_margin_does_not_move_the_boundary():
    X, y, _, (moved, _) = SCENES["svm"].read()
    near = SVC(kernel="linear", C=1.0, tol=1e-8).fit(X, y)
    assert near.kkt_report(X, y).case[moved] == "non-support"
    X[moved] += [3.0, -2.0]  # deeper into its own side
    far = SVC(kernel="linear", C=1.0, tol=1e-8).fit(X, y)
    np.testing.assert_allclose(far.coef_, near.coef_, atol=1e-6)


def test_the_width_of_the_margin_is_two_over_the_norm_of_w():
    X, y, names, _ = SCENES["svm"].read()
    dragged = {names[0]: X[:, 0], names[1]: X[:, 1] + 0.1, "side": y}
    (step,) = SCENES["svm"].steps(dragged, walk=False)
    model = SVC(kernel="linear", C=1.0, tol=1e-6).fit(X + np.array([0.0, 0.1]), y)
    assert np.isclose(step.numbers["width of the margin"], 2 / np.linalg.norm(model.coef_), rtol=1e-4)


def test_places_follow_the_pointer():
    steps = SCENES["svm"].steps()[:12]
    assert len({step.handle for step in steps}) == 12
    assert steps[3].picture.count('data-drag=""') == 2 and steps[3].picture.count("data-row=") == 28


def test_a_point_that_was_dragged_stays_where_it_was_dropped():
    X, y, _, _ = SCENES["svm"].read()
    table = move_point(move_point(None, 3, 0.5, 1.0), 20, -1.0, 0.25)
    again, labels, _, _ = SCENES["svm"].read(table)
    X[[3, 20]] = [[0.5, 1.0], [-1.0, 0.25]]
    assert np.array_equal(again, X) and labels.tolist() == y.tolist()


@pytest.mark.parametrize(("row", "x"), [(28, 0.0), (-1, 0.0), (3, np.nan)])
def test_a_point_that_is_not_there_is_refused(row, x):
    with pytest.raises(ParameterError, match="move_point: "):
        move_point(None, row, x, 0.0)
