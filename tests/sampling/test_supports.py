"""Supports: maps against the book's, Jacobians against differences, round trips, and draws of known densities."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.oracles import supports as oracle

from learnable.core.errors import DataError, ParameterError
from learnable.sampling import (
    AtLeast,
    AtMost,
    CovarianceCholesky,
    Interval,
    Ordered,
    Parameters,
    Positive,
    Real,
    Simplex,
    mcse_mean,
    nuts,
)
from learnable.sampling._target_kernels import constrain_one
from learnable.sampling.targets import Target, check_gradient

CASES = {
    "real": (Real(3), lambda u: u, lambda x: x),
    "positive": (Positive(2), oracle.positive, lambda x: x),
    "at least": (AtLeast(-1.5, 2), lambda u: oracle.at_least(u, -1.5), lambda x: x),
    "at most": (AtMost(2.0, 2), lambda u: oracle.at_most(u, 2.0), lambda x: x),
    "interval": (Interval(-1, 3, 2), lambda u: oracle.interval(u, -1, 3), lambda x: x),
    "simplex": (Simplex(4), oracle.simplex, lambda x: x[:-1]),
    "ordered": (Ordered(4), oracle.ordered, lambda x: x),
    "cholesky": (CovarianceCholesky(3), lambda u: oracle.cholesky(u, 3), lambda x: x[np.tril_indices(3)]),
}


@pytest.mark.parametrize("name", CASES)
@given(seed=st.integers(0, 10_000))
def test_the_map_its_jacobian_and_its_inverse(name, seed):
    support, transform, free_of = CASES[name]
    parameters = Parameters({"x": support})
    u = 1.5 * np.random.default_rng(seed).normal(size=support.n_free)
    x = np.empty(parameters.n_natural)
    log_jacobian = constrain_one(u, parameters.blocks, parameters.bounds, x)
    np.testing.assert_allclose(x.reshape(support.shape), transform(u), rtol=1e-10, atol=1e-12)
    assert log_jacobian == pytest.approx(oracle.log_jacobian(transform, u, free_of), abs=1e-5)
    assert support.fault(x.reshape(support.shape)) is None
    np.testing.assert_allclose(parameters.free("test", {"x": x.reshape(support.shape)}), u, atol=1e-6)


@pytest.mark.parametrize("name", CASES)
def test_gradients_pass_through_the_map(name):
    support = CASES[name][0]
    parameters = Parameters({"a": Real(), "x": support})
    target = Target(
        "test",
        lambda p: (float(np.sin(p["a"]) + (p["x"] ** 2).sum() * 0.3), {"a": np.cos(p["a"]), "x": 0.6 * p["x"]}),
        parameters,
        parameters.n_free,
        needs_gradient=True,
    )
    rng = np.random.default_rng(0)
    check_gradient(target, rng.normal(size=parameters.n_free), rng)


def test_a_dirichlet_has_its_moments():
    alpha = np.array([1.0, 2.0, 3.5])
    density = lambda p: (float((alpha - 1) @ np.log(p["p"])), {"p": (alpha - 1) / p["p"]})  # noqa: E731
    chains = nuts(density, {"p": Simplex(3)}, n_draws=1500, random_state=0)
    assert (np.abs(chains["p"].mean(axis=(0, 1)) - alpha / alpha.sum()) < 4 * mcse_mean(chains["p"])).all()
    np.testing.assert_allclose(chains["p"].sum(axis=2), 1.0)


def test_order_statistics_of_three_normals():
    """E x₍₃₎ = 3/(2√π); the density of ordered draws is that of three normals, six times."""
    chains = nuts(
        lambda p: (-0.5 * float(p["x"] @ p["x"]), {"x": -p["x"]}),
        {"x": Ordered(3)},
        n_draws=1500,
        random_state=1,
    )
    x = chains["x"]
    assert (np.diff(x, axis=2) > 0).all()
    largest = 1.5 / np.sqrt(np.pi)
    assert (np.abs(x.mean(axis=(0, 1)) - [-largest, 0.0, largest]) < 4 * mcse_mean(x)).all()


def test_names_shapes_and_faults():
    parameters = Parameters({"mu": Real(), "w": 3, "L": CovarianceCholesky(2)})
    assert parameters.n_free == 7 and parameters.n_natural == 8
    assert parameters.free_labels() == ["mu", "w[0]", "w[1]", "w[2]", "L[0]", "L[1]", "L[2]"]
    good = {"mu": 0.0, "w": np.zeros(3), "L": np.eye(2)}
    for name, value, message in [
        ("w", np.zeros(2), r"x0\['w'\] must have shape \(3,\); got \(2,\)"),
        ("L", np.ones((2, 2)), r"x0\['L'\] must be lower triangular with a positive diagonal"),
        ("mu", np.nan, r"x0\['mu'\] must be finite"),
    ]:
        with pytest.raises(DataError, match=message):
            parameters.free("nuts", {**good, name: value})
    with pytest.raises(DataError, match="x0 must give a value for each of"):
        parameters.free("nuts", {"mu": 0.0})
    for support, value, message in [
        (Simplex(3), [0.5, 0.5, 0.5], "must be positive and add up to 1"),
        (Ordered(3), [1.0, 0.0, 2.0], "must increase"),
        (Interval(0, 1), 1.0, "must lie between 0 and 1"),
        (AtMost(0.0), 1.0, "must be below 0"),
    ]:
        with pytest.raises(DataError, match=message):
            Parameters({"x": support}).free("nuts", {"x": value})
    for make in (lambda: Interval(1, 0), lambda: Simplex(1), lambda: Ordered(0), lambda: Real(-1).shape):
        with pytest.raises(ParameterError):
            make()
    with pytest.raises(ParameterError, match="mapping of names to supports"):
        Parameters({})
