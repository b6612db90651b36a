"""The second-order look at a step: exact on quadratics, and right about when a step is too long."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.solvers.functions import definite_matrix, rosenbrock

from learnable.core.errors import ParameterError
from learnable.solvers import conditioning_report
from learnable.solvers.lab.objective import largest_eigenvalue


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 1000), st.floats(1e-3, 3.0))
def test_on_a_quadratic_the_prediction_is_exact_and_the_verdict_true(seed, step):
    H = definite_matrix(seed, [0.5, 2.0, 8.0])
    x = np.random.default_rng(seed).normal(size=3)
    report = conditioning_report(lambda z: 0.5 * z @ H @ z, x, lambda z: H @ z, lambda z: H, step=step)
    assert report.predicted == pytest.approx(report.actual, rel=1e-9, abs=1e-12)
    if abs(report.actual) > 1e-9:
        assert report.ill_conditioned == (report.actual > 0)
    assert report.condition_number == pytest.approx(16.0, rel=1e-9)
    g = H @ x
    assert report.linear == pytest.approx(step * g @ g)
    assert report.quadratic == pytest.approx(0.5 * step**2 * g @ H @ g)


def test_numbers_on_paper():
    """f = 50x² + ½y² at (1, 1): g = (100, 1), gᵀg = 10001, gᵀHg = 1000001; the best step is .0100009."""
    report = conditioning_report(
        lambda z: 50 * z[0] ** 2 + 0.5 * z[1] ** 2,
        [1.0, 1.0],
        lambda z: z * [100, 1],
        lambda z: np.diag([100.0, 1.0]),
        step=0.03,
    )
    assert report.linear == pytest.approx(300.03)
    assert report.quadratic == pytest.approx(450.00045)
    assert report.best_step == pytest.approx(10001 / 1000001)
    assert report.ill_conditioned
    assert "too long" in repr(report)


def test_differences_and_products_give_the_same_report():
    problem, x = rosenbrock(), [-1.2, 1.0]
    full = conditioning_report(problem._value, x, problem._gradient, problem._hessian, step=1e-3)
    bare = conditioning_report(problem._value, x, step=1e-3)
    product = conditioning_report(
        problem._value, x, problem._gradient, lambda z: lambda v: problem._hessian(z) @ v, step=1e-3
    )
    assert bare.quadratic == pytest.approx(full.quadratic, rel=1e-4)
    assert product.quadratic == pytest.approx(full.quadratic, rel=1e-12)
    assert product.eigenvalues is None
    assert np.isnan(product.condition_number)


def test_negative_curvature_has_no_best_step():
    report = conditioning_report(lambda z: -(z @ z), [1.0], lambda z: -2 * z, lambda z: [[-2.0]], step=0.1)
    assert report.best_step == np.inf
    assert report.condition_number == np.inf
    assert not report.ill_conditioned


def test_power_iteration_is_a_close_lower_bound():
    H = definite_matrix(1, np.linspace(1, 50, 30))
    found = largest_eigenvalue(lambda v: H @ v, 30)
    assert 0.9 * 50 < found <= 50 * (1 + 1e-12)
    assert largest_eigenvalue(lambda v: 0 * v, 3) == 0.0


@pytest.mark.parametrize("step", [0.0, -1.0, np.nan, "long"])
def test_the_step_is_positive(step):
    with pytest.raises(ParameterError, match="step must be"):
        conditioning_report(lambda z: z @ z, [1.0], step=step)
