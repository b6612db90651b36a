"""Targets: what the sweeps are given, shifts and scales, errors."""

import numpy as np
import pytest

import learnable as ln
from learnable.core.errors import DataError, ParameterError
from learnable.trees import DecisionTreeRegressor
from learnable.trees.criteria import ABSOLUTE_ERROR, CLASSES, PAIRS, SUMS, TWO, Target


def test_each_target_has_its_sweep():
    y = [0.5, 1.5, 2.5]
    assert Target.classes([0, 1, 1], 2).family == TWO
    assert Target.classes([0, 1, 1], 2, weight=[1, 2, 255]).family == TWO
    assert Target.classes([0, 1, 1], 2, weight=[1, 2, 0.5]).family == PAIRS
    assert Target.classes([0, 1, 2], 3).family == CLASSES
    assert Target.classes([0, 1, 1], 2, criterion="entropy").family == CLASSES
    assert Target.classes([0, 1, 1], 2, criterion="misclassification").family == SUMS
    assert Target.classes([[0, 1], [1, 0], [1, 1]], [2, 2]).family == SUMS
    assert Target.numbers(y).family == PAIRS
    assert Target.numbers(np.c_[y, y]).family == SUMS
    assert Target.numbers(y, criterion="poisson").family == SUMS
    assert Target.numbers(y, criterion="absolute_error").family == ABSOLUTE_ERROR
    assert Target.gradients(y, y).family == PAIRS


@pytest.mark.parametrize("size", [1e-300, 1.0, 1e149])
@pytest.mark.parametrize("criterion", ["squared_error", "absolute_error", "poisson"])
def test_shift_and_scale_give_the_targets_back(size, criterion):
    y = np.array([1.0, 2.0, 7.0]) * size
    target = Target.numbers(y, criterion=criterion)
    np.testing.assert_allclose(target.y[:, 0] * target.scale + target.shift[0], y, rtol=1e-14)
    assert np.abs(target.y).max() <= 1.0


def test_targets_whose_squares_overflow_are_refused():
    with pytest.raises(DataError, match="its squares overflow"):
        Target.numbers([0.0, 1e200])
    assert Target.numbers([0.0, 1e300], criterion="absolute_error").scale > 1e299


def test_payloads_hold_class_and_weight():
    target = Target.classes([0, 5, 1], 6, weight=[1, 3, 200])
    assert (target.payload() >> 8).tolist() == [0, 5, 1]
    assert (target.payload() & 255).tolist() == [1, 3, 200]


def test_repeated_rows_have_larger_weights():
    target = Target.gradients([1.0, 2.0], [1.0, 1.0]).repeated(np.array([2, 0]))
    np.testing.assert_array_equal(target.pairs(), [[2.0, 2.0], [0.0, 0.0]])


def test_unknown_criteria_are_refused():
    with pytest.raises(ParameterError, match="criterion must be one of gini"):
        Target.classes([0, 1], 2, criterion="squared_error")
    with pytest.raises(ParameterError, match="criterion must be one of squared_error"):
        Target.numbers([0, 1], criterion="gini")


def test_one_far_target_leaves_the_digits_of_the_others():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(80, 3))
    y = X @ [1.0, -2.0, 0.5]
    far = np.r_[1e15, y[1:]]
    model = DecisionTreeRegressor(max_depth=6, random_state=0).fit(X, far)
    assert ln.verify(model, X, far)
    np.testing.assert_allclose(DecisionTreeRegressor().fit(X, far).predict(X)[1:], y[1:], rtol=1e-6)
