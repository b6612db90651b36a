"""One door to every solver: the same optimum by every method, honest certificates, whole traces, clear refusals."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.solvers.functions import definite_matrix, rosenbrock, soft_plus_sum

from learnable.core.errors import DataError, ParameterError
from learnable.risk import L2Penalty
from learnable.solvers import Adam, Constant, Evaluation, ExponentialDecay, lbfgs, minimize, newton, nonlinear_cg
from learnable.solvers.lab.minimize import METHODS

SMOOTH = [name for name in METHODS if name not in ("sgd", "subgradient")]
OPTIONS = {
    "momentum": {"step": 0.02},
    "nesterov": {"step": 0.02},
    "adagrad": {"step": 1.0},
    "rmsprop": {"step": ExponentialDecay(0.05, 0.01)},
    "adam": {"step": 0.05},
    "proximal": {"penalty": L2Penalty(0.0)},
}


@pytest.mark.parametrize("method", SMOOTH)
def test_every_method_finds_the_same_minimum(method):
    problem = soft_plus_sum(alpha=2.0)
    best = newton(problem, np.zeros(5), tol=1e-14)
    options = {"tol": 1e-6} | OPTIONS.get(method, {})
    found = minimize(
        problem._value, np.full(5, 0.5), problem._gradient, problem._hessian, method=method, max_iter=20_000, **options
    )
    assert found.certificate.holds == found.converged
    assert found.certificate.kind == "stationarity"
    np.testing.assert_allclose(found.x, best.x, atol=1e-4)


@pytest.mark.parametrize("method", SMOOTH)
def test_the_certificate_can_be_re_derived_from_the_point(method):
    problem = soft_plus_sum(alpha=2.0)
    options = OPTIONS.get(method, {}) | {"tol": 1e-5}
    found = minimize(
        problem._value, np.ones(5), problem._gradient, problem._hessian, method=method, max_iter=60, **options
    )
    g, f = problem._gradient(found.x), problem._value(found.x)
    value = np.max(np.abs(g) * np.maximum(np.abs(found.x), 1)) / max(abs(f), 1)
    assert found.value == f
    assert found.certificate.value == pytest.approx(value, rel=1e-6, abs=1e-9)
    assert found.certificate.tolerance == 1e-5
    assert found.certificate.holds == (found.certificate.value <= 1e-5)


@pytest.mark.parametrize("method", SMOOTH)
def test_the_trace_tells_the_whole_way(method):
    problem = rosenbrock()
    seen = []
    found = minimize(
        problem._value, [-1.2, 1.0], problem._gradient, problem._hessian, method=method, max_iter=12, tol=0.0,
        callback=seen.append, **{k: v for k, v in OPTIONS.get(method, {}).items() if k == "penalty"},
    )  # fmt: skip
    trace = found.trace
    assert len(trace) == found.n_iter + 1 == len(trace.path) == len(seen)
    assert np.array_equal(trace.path[0], [-1.2, 1.0])
    assert [moment.iteration for moment in seen] == list(range(len(trace)))
    for x, value, moment in zip(trace.path, trace.value, seen, strict=True):
        assert problem._value(x) == value == moment.value
        assert np.array_equal(x, moment.x)
    assert (np.diff(trace.evaluations) > 0).all()
    assert trace.step[0] == 0.0
    assert trace.note == ""
    assert any(np.array_equal(found.x, x) for x in trace.path)
    assert found.value <= trace.value.min() * (1 + 1e-12)


def test_newton_takes_one_step_on_a_quadratic():
    A, b = definite_matrix(0, [1.0, 10.0, 100.0]), np.ones(3)
    found = minimize(
        lambda x: 0.5 * x @ A @ x - b @ x, np.full(3, 9.0), lambda x: A @ x - b, lambda x: A, method="newton"
    )
    assert found.n_iter == 1
    np.testing.assert_allclose(found.x, np.linalg.solve(A, b), rtol=1e-10)


def test_the_notes_numbers():
    """w² + e^w: w* = −.3517337, value .8271840; Newton from 0: −.33333, −.35169, −.35173."""
    found = minimize(
        lambda w: w[0] ** 2 + np.exp(w[0]), 0.0, lambda w: 2 * w + np.exp(w), lambda w: [2 + np.exp(w)],
        method="newton", tol=1e-14,
    )  # fmt: skip
    assert found.trace.path.ravel()[:4].tolist() == pytest.approx([0, -1 / 3, -0.35169, -0.35173], abs=6e-6)
    assert found.x[0] == pytest.approx(-0.3517337, abs=5e-8)
    assert found.value == pytest.approx(0.8271840, abs=5e-8)


@pytest.mark.parametrize("method, engine", [("newton", newton), ("cg", nonlinear_cg), ("lbfgs", lbfgs)])
def test_second_order_methods_are_the_engines_of_the_models(method, engine):
    class Problem:
        def __init__(self):
            self.inner = soft_plus_sum()

        def evaluate(self, x):
            return self.inner.evaluate(x)

        def hessian(self, x):
            return self.inner.hessian(x)

    through = minimize(Problem(), np.ones(5), method=method, tol=1e-9, max_iter=100)
    alone = engine(Problem(), np.ones(5), tol=1e-9, max_iter=100)
    assert np.array_equal(through.x, alone.x)
    assert through.n_iter == alone.n_iter == len(through.trace) - 1
    assert np.array_equal(through.trace.path[-1], alone.x)


def test_an_object_brings_its_own_measure_and_kind():
    class Bowl:
        kind = "gap"

        def evaluate(self, x):
            return Evaluation(1.0 + float(x @ x), 2 * x, float(x @ x))

    found = minimize(Bowl(), [3.0, 4.0], method="gd", step=0.25, tol=1e-3)
    assert found.certificate.kind == "gap"
    assert found.certificate.bound == found.certificate.value == found.x @ found.x <= 1e-3


def test_an_object_with_methods_is_a_function_too():
    class Bowl:
        def value(self, x):
            return x @ x

        def gradient(self, x):
            return 2 * x

        def hessian(self, x):
            return 2 * np.eye(len(x))

    assert minimize(Bowl(), [3.0, 4.0], method="newton").n_iter == 1


@pytest.mark.parametrize("method", ["gd", "newton", "cg", "lbfgs", "nesterov"])
def test_without_derivatives_differences_are_used_and_the_trace_says_so(method):
    problem = soft_plus_sum(alpha=2.0)
    best = newton(problem, np.zeros(5), tol=1e-14)
    step = {"step": 0.02} if method == "nesterov" else {}
    found = minimize(problem._value, np.zeros(5), method=method, tol=1e-6, max_iter=3000, **step)
    assert "differences" in found.trace.note
    assert "differences" in repr(found.trace)
    assert found.converged
    np.testing.assert_allclose(found.x, best.x, atol=1e-4)
    assert found.trace.evaluations[-1] >= 2 * 5 * len(found.trace)


def test_the_certificate_of_differences_counts_their_rounding():
    found = minimize(lambda x: 1e6 + x @ x, np.zeros(2), method="gd")
    assert not found.gradient.any()
    assert found.measure > 0


@pytest.mark.parametrize("method", SMOOTH)
def test_an_optimal_start_needs_no_step(method):
    penalty = {"penalty": L2Penalty(0.0)} if method == "proximal" else {}
    found = minimize(lambda x: x @ x, np.zeros(3), lambda x: 2 * x, lambda x: 2 * np.eye(3), method=method, **penalty)
    assert found.n_iter == 0
    assert found.converged
    assert len(found.trace) == 1
    assert np.array_equal(found.trace.mean, np.zeros(3))


@pytest.mark.parametrize("method", [*SMOOTH, "subgradient"])
def test_a_callback_and_the_clock_stop_it(method):
    penalty = {"penalty": L2Penalty(0.0)} if method == "proximal" else {}
    problem = rosenbrock()
    arguments = (problem._value, [-1.2, 1.0], problem._gradient, problem._hessian)
    step = {"step": 1e-4} if method == "subgradient" else {}
    stopped = minimize(*arguments, method=method, tol=0.0, callback=lambda m: m.iteration == 3, **penalty, **step)
    assert stopped.n_iter == 3
    assert minimize(*arguments, method=method, tol=0.0, callback=lambda m: True, **penalty, **step).n_iter == 0
    late = minimize(*arguments, method=method, tol=0.0, max_seconds=1e-9, **penalty, **step)
    assert late.n_iter <= 1
    assert np.isfinite(late.value)


def test_a_saddle_is_stationary_and_the_certificate_says_no_more():
    found = minimize(
        lambda x: x[0] ** 2 - x[1] ** 2, [1.0, 0.0], lambda x: np.array([2 * x[0], -2 * x[1]]), method="gd"
    )
    assert found.converged
    assert found.certificate.kind == "stationarity"
    assert found.certificate.bound is None


def test_long_vectors_keep_no_path_unless_asked():
    f, g = lambda x: x @ x, lambda x: 2 * x
    assert minimize(f, np.ones(101), g, max_iter=2, step=0.1).trace.path is None
    assert minimize(f, np.ones(101), g, max_iter=2, step=0.1, keep_path=True).trace.path.shape == (3, 101)
    assert minimize(f, np.ones(2), g, max_iter=2, step=0.1, keep_path=False).trace.path is None


def test_the_start_is_not_changed_and_hostile_callbacks_cannot_change_the_run():
    x0 = np.ones(3)

    def vandal(moment):
        moment.x[:] = 1e9
        moment.gradient[:] = 0

    found = minimize(lambda x: x @ x, x0, lambda x: 2 * x, step=0.25, callback=vandal, max_iter=60)
    assert np.array_equal(x0, np.ones(3))
    assert found.converged


@settings(max_examples=40, deadline=None)
@given(st.floats(-8, 8), st.floats(-8, 8), st.sampled_from(["gd", "newton", "cg", "lbfgs"]))
def test_scales_from_tiny_to_huge_break_nothing(log_f, log_x, method):
    c, s = 10.0**log_f, 10.0**log_x
    A = definite_matrix(3, [1.0, 2.0, 5.0])
    found = minimize(
        lambda x: c * 0.5 * (x / s - 1) @ A @ (x / s - 1), np.zeros(3), lambda x: c / s * (A @ (x / s - 1)),
        lambda x: c / s**2 * A, method=method, max_iter=200,
    )  # fmt: skip
    assert np.isfinite(found.x).all()
    assert found.value <= c * 0.5 * A.sum() * (1 + 1e-12)
    assert found.certificate.holds == found.converged


def test_a_function_without_bounds_ends_with_its_best_and_no_claim():
    found = minimize(lambda x: -np.exp(x[0]), [0.0], lambda x: -np.exp(x), method="gd", max_iter=100)
    assert np.isfinite(found.value)
    assert not found.converged


@pytest.mark.parametrize(
    "arguments, options, error, message",
    [
        ((3.0, [1.0]), {}, ParameterError, "fun must be a function"),
        ((lambda x: x @ x, [1.0], 3.0), {}, ParameterError, "gradient must be a function"),
        ((lambda x: x @ x, []), {}, DataError, "x must be a vector"),
        ((lambda x: x @ x, [np.nan]), {}, DataError, "finite"),
        ((lambda x: x @ x, "origin"), {}, DataError, "vector of numbers"),
        ((lambda x: np.log(x[0]), [-1.0]), {}, DataError, "not finite at x0"),
        ((lambda x: x, [1.0, 2.0]), {}, DataError, "one number"),
        ((lambda x: x @ x, [1.0, 2.0], lambda x: x[:1]), {}, DataError, "shape"),
        ((lambda x: x @ x, [1.0], lambda x: 2 * x, lambda x: np.eye(2)), {"method": "newton"}, DataError, "Hessian"),
        ((lambda x: x @ x, [1.0]), {"method": "simplex"}, ParameterError, "method must be one of"),
        ((lambda x: x @ x, [1.0]), {"method": Adam}, ParameterError, "method must be one of"),
        ((lambda x: x @ x, [1.0]), {"step": -1.0}, ParameterError, "step must be"),
        ((lambda x: x @ x, [1.0]), {"method": "lbfgs", "step": Constant(1.0)}, ParameterError, "own line search"),
        ((lambda x: x @ x, [1.0]), {"method": "sgd"}, ParameterError, "n_rows"),
        ((lambda x: x @ x, [1.0]), {"method": "cg", "batch_size": 3}, ParameterError, "mini-batches"),
        ((lambda x: x @ x, [1.0]), {"tol": -1.0}, ParameterError, "tol must be"),
        ((lambda x: x @ x, [1.0]), {"max_iter": 0}, ParameterError, "max_iter must be"),
        ((lambda x: x @ x, [1.0]), {"callback": 3}, ParameterError, "callback must be"),
        ((lambda x: x @ x, [1.0]), {"random_state": "a"}, ParameterError, "random_state must be"),
    ],
)
def test_mistakes_get_an_error_that_names_them(arguments, options, error, message):
    with np.errstate(all="ignore"), pytest.raises(error, match=message) as caught:
        minimize(*arguments, **options)
    assert str(caught.value).startswith("minimize: ")


@pytest.mark.parametrize("method", ["gd", "newton", "cg", "lbfgs"])
def test_line_searches_stay_in_the_domain(method):
    with np.errstate(invalid="ignore", divide="ignore"):
        found = minimize(
            lambda x: float((x - 0.1 * np.log(x)).sum()), [5.0, 50.0], lambda x: 1 - 0.1 / x,
            lambda x: np.diag(0.1 / x**2), method=method,
        )  # fmt: skip
    assert found.converged
    np.testing.assert_allclose(found.x, 0.1, rtol=1e-5)


@pytest.mark.parametrize("method", [*SMOOTH, "subgradient"])
@pytest.mark.parametrize("fun, gradient", [
    (lambda x: float(x.sum()), lambda x: np.ones(2)),
    (lambda x: -float(x @ x), lambda x: -2 * x),
    (lambda x: float(x @ x), lambda x: np.where(np.abs(x) < 0.2, np.nan, 2 * x)),
    (lambda x: float(np.abs(x).sum()), np.sign),
])  # fmt: skip
def test_functions_that_cannot_be_minimised_never_get_a_certificate_that_lies(method, fun, gradient):
    penalty = {"penalty": L2Penalty(0.0)} if method == "proximal" else {}
    with np.errstate(over="ignore", invalid="ignore"):
        found = minimize(fun, [1.0, 0.3], gradient, method=method, max_iter=200, **penalty)
        honest = np.isfinite(found.value) and np.isfinite(found.gradient).all() and not gradient(found.x).any()
    assert found.certificate.holds == found.converged
    assert not found.converged or honest
