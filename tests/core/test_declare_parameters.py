import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from learnable.core import ParameterError
from learnable.core.declare import (
    MAX_ITER,
    MAX_SECONDS,
    N_JOBS,
    RANDOM_STATE,
    TOLERANCE,
    ArrayLike,
    Boolean,
    Matches,
    Nothing,
    Number,
    Options,
    Rule,
    check_parameters,
    optional,
)

pytestmark = pytest.mark.sampled(1)  # every case is a promise of its own


finite = st.floats(-1e6, 1e6)


@given(x=finite, low=finite, high=finite, low_open=st.booleans(), high_open=st.booleans())
def test_a_number_lies_between_its_ends(x, low, high, low_open, high_open):
    rule = Number(low, high, low_open, high_open)
    above = low < x if low_open else low <= x
    below = x < high if high_open else x <= high
    assert rule.allows(x) == (above and below)
    assert rule.allows(np.float64(x)) == rule.allows(x)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, True, np.True_, "1", None, [1.0], 1j])
def test_what_is_no_number(value):
    assert not Number().allows(value)


def test_infinity_only_where_the_rule_says_so():
    assert Number(low=0.0, finite=False).allows(math.inf)
    assert not Number(low=0.0, finite=False).allows(-math.inf)
    assert not Number(finite=False).allows(math.nan)


@pytest.mark.parametrize("value", [3, np.int8(3), np.uint64(3)])
def test_integers_of_every_make(value):
    assert Number(integer=True).allows(value)
    assert Number().allows(value)


def test_a_float_is_no_integer():
    assert not Number(integer=True).allows(3.0)
    assert not Number(integer=True).allows(True)


@pytest.mark.parametrize(
    ("rule", "phrase"),
    [
        (Number(), "a number"),
        (Number(low=0.0), "a number >= 0"),
        (Number(low=0, low_open=True, high=1), "a number > 0 and <= 1"),
        (Number(high=2, high_open=True, integer=True), "an integer < 2"),
        (Boolean(), "True or False"),
        (Options("a", "b"), "one of 'a', 'b'"),
        (optional(Number(low=0)), "a number >= 0, or None"),
        (Boolean() | Options("auto"), "True or False, or one of 'auto'"),
        (ArrayLike(Number(low=0)), "an array of numbers, each a number >= 0"),
        (Matches(callable, "a function"), "a function"),
    ],
)
def test_a_rule_says_itself_in_words(rule, phrase):
    assert rule.phrase == phrase


@pytest.mark.parametrize(
    ("rule", "good", "bad"),
    [
        (Boolean(), [True, False, np.True_], [0, 1, None, "True"]),
        (Options("a", "b"), ["a", "b"], ["c", "", None, ["a"], 1]),
        (Nothing(), [None], [0, "", False]),
        (optional(Boolean()), [None, True], [1]),
        (
            ArrayLike(),
            [[1, 2], (0.5,), np.ones((2, 2))],
            [[], "12", b"12", 3, [math.nan], [[1], [2, 3]], {"a": 1}],
        ),
        (ArrayLike(Number(low=0)), [[0, 1]], [[0, -1]]),
        (Matches(callable, "a function"), [len], [3]),
        (MAX_ITER, [1, 10**6], [0, -1, 1.5, None]),
        (MAX_SECONDS, [None, 0.1, 3], [0, -1.0, math.inf]),
        (TOLERANCE, [0, 1e-8], [-1e-8, math.nan, None]),
        (N_JOBS, [None, -1, 4], [1.5, "all"]),
        (RANDOM_STATE, [None, 0, np.random.default_rng(0), np.random.RandomState(0)], [-1, 1.5, "seed"]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_a_rule_allows(rule, good, bad):
    assert all(rule.allows(value) for value in good)
    assert not any(rule.allows(value) for value in bad)


def test_a_rule_without_a_test_is_a_mistake_of_the_author():
    with pytest.raises(TypeError, match="must define allows"):
        Rule().allows(1)


def test_the_error_names_owner_parameter_rule_and_value():
    with pytest.raises(ParameterError, match=r"^Ridge: alpha must be a number >= 0; got -1\.0\.$") as caught:
        check_parameters("Ridge", {"alpha": -1.0, "tol": 1}, {"tol": TOLERANCE, "alpha": Number(low=0)})
    assert isinstance(caught.value, ValueError)


def test_infinity_is_told_that_it_is_the_trouble():
    with pytest.raises(ParameterError, match=r"^SVR: C must be a number > 0 and finite; got inf\.$"):
        check_parameters("SVR", {"C": math.inf}, {"C": Number(low=0, low_open=True)})


def test_a_long_value_is_shortened():
    with pytest.raises(ParameterError) as caught:
        check_parameters("Ridge", {"alpha": "x" * 1000}, {"alpha": Number()})
    assert len(str(caught.value)) < 150


def test_parameters_without_a_rule_are_free():
    check_parameters("Ridge", {"alpha": 1.0, "other": object()}, {"alpha": Number()})
