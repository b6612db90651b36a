"""Values and kernels on the command line: what they stand for, and that nothing is executed."""

import math

import numpy as np
import pytest

import learnable as ln
from learnable.cli.fit import parse_kernel, parse_value
from learnable.core.errors import ParameterError
from learnable.risk.kernels import Gaussian, Matern, White


def test_values():
    assert parse_value("3") == 3 and parse_value("TRUE") is True and parse_value("null") is None
    assert (
        parse_value("-inf") == "-inf" and parse_value("inf") == math.inf and parse_value("__import__('os')")[:2] == "__"
    )


@pytest.mark.parametrize(
    ("text", "value"),
    [("1", 1), ("-0.5", -0.5), ("1e3", 1000.0), ("True", True), ("none", None), ("[0.1, 1]", [0.1, 1]), ("svd", "svd")],
)
def test_values_are_read_as_people_write_them(text, value):
    assert parse_value(text) == value and type(parse_value(text)) is type(value)


def test_kernels_are_what_python_makes_of_them():
    X = np.arange(6.0).reshape(3, 2)
    for text, kernel in [
        ("Matern(nu=1.5) + White(0.1)", Matern(nu=1.5) + White(0.1)),
        ("2 * Gaussian([1.0, 3.0]) * Gaussian(2)", 2 * Gaussian([1.0, 3.0]) * Gaussian(2)),
        ("Gaussian() + 3", Gaussian() + 3),
    ]:
        np.testing.assert_array_equal(parse_kernel(text)(X), kernel(X))
    assert parse_kernel("rbf") == "rbf" and parse_kernel("none") is None


@pytest.mark.parametrize(
    "text, words",
    [
        ("__import__('os').system('true')", "must be a sum or product of Gaussian, Linear"),
        ("open('x')", "there is no kernel 'open'"),
        ("Gauss(1)", "there is no kernel 'Gauss'"),
        ("Gaussian(1", "must be a sum or product"),
        ("Gaussian(size=1)", "unexpected keyword"),
        ("Gaussian(-1)", "length_scale"),
        ("Gaussian(*[1])", "must be a sum or product"),
        ("(lambda: 1)()", "must be a sum or product"),
    ],
)
def test_anything_else_is_refused(text, words):
    with pytest.raises(ParameterError, match=words):
        parse_kernel(text)


def test_a_gaussian_process_is_fitted_with_the_kernel_that_was_written(learnable):
    code, out, _ = learnable(
        "fit",
        "numbers.csv",
        *("-t", "y", "-m", "GaussianProcessRegressor", "--intervals", "none"),
        *("--set", "kernel=Constant(1) * Gaussian(1) + White(0.1)", "--set", "normalize_y=true"),
    )
    assert code == 0 and "stationarity" in out
    assert "White" in repr(ln.load("model.safetensors").model_.kernel_)
