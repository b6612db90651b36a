"""Standardised targets: predictions do not depend on the units of the target, and the fit is verified."""

import numpy as np
import pytest

import learnable as ln
from learnable.meta import ScaledTargetRegressor


@pytest.mark.parametrize(
    "inner", [ln.LinearSVR(), ln.SVR(tol=1e-8), ln.KernelRidge(kernel="rbf")], ids=lambda m: type(m).__name__
)
@pytest.mark.parametrize("units", [1e-6, 1.0, 1e6])
def test_the_units_of_the_target_do_not_matter(inner, units):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    y = 50.0 + X @ [1.0, -2.0, 0.5] + 0.1 * rng.normal(size=80)
    reference = ScaledTargetRegressor(inner).fit(X, y).predict(X)
    scaled = ScaledTargetRegressor(inner).fit(X, units * y).predict(X)
    assert np.allclose(scaled / units, reference, rtol=1e-5)
    assert ScaledTargetRegressor(inner).fit(X, units * y).score(X, units * y) > 0.9


def test_coefficients_are_in_the_units_of_the_target():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 2))
    y = 1e4 * (X @ [1.0, -2.0]) + 3e5
    model = ScaledTargetRegressor(ln.LinearRegression()).fit(X, y)
    assert np.allclose(model.coef_, [1e4, -2e4])
    assert model.intercept_ == pytest.approx(3e5)


@pytest.mark.parametrize("damage", ["center_", "scale_", "model_"])
def test_it_is_verified_and_damage_is_found(damage, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 2))
    y = 1e4 * (X @ [1.0, -2.0]) + rng.normal(size=50)
    model = ScaledTargetRegressor(ln.Ridge()).fit(X, y)
    ln.save(model, tmp_path / "m.safetensors")
    loaded = ln.load(tmp_path / "m.safetensors")
    assert ln.verify(loaded, X, y) and np.array_equal(loaded.predict(X), model.predict(X))
    if damage == "model_":
        loaded.model_.coef_ = loaded.model_.coef_ + 1e-3
    else:
        setattr(loaded, damage, getattr(loaded, damage) * 1.001)
    assert not ln.verify(loaded, X, y)
