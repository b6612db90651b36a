"""The dispersion of Poisson, Gamma and Tweedie regression, and the distribution of a new observation."""

import numpy as np
import pytest
import scipy.sparse as sp

import learnable as ln
from learnable.core.errors import DataError, ParameterError

CASES = {
    "poisson": lambda: ln.PoissonRegressor(alpha=0.0),
    "gamma": lambda: ln.GammaRegressor(alpha=0.0),
    "normal": lambda: ln.TweedieRegressor(power=0, alpha=0.0),
}


def draw(kind, n=400, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    mean = np.exp(1.0 + X @ [0.3, -0.2, 0.1])
    targets = {
        "poisson": lambda: rng.poisson(mean).astype(float),
        "gamma": lambda: rng.gamma(4.0, mean / 4.0),
        "normal": lambda: X @ [1.0, 2.0, 0.0] + 0.5 * rng.normal(size=n),
    }
    return X, targets[kind]()


@pytest.mark.parametrize("kind", CASES)
def test_the_dispersion_is_that_of_statsmodels(kind):
    sm = pytest.importorskip("statsmodels.api")
    families = {
        "poisson": sm.families.Poisson(),
        "gamma": sm.families.Gamma(sm.families.links.Log()),
        "normal": sm.families.Gaussian(),
    }
    X, y = draw(kind)
    model = CASES[kind]().fit(X, y)
    theirs = sm.GLM(y, sm.add_constant(X), family=families[kind]).fit()
    assert model.dispersion_ == pytest.approx(theirs.pearson_chi2 / theirs.df_resid, rel=1e-6)


@pytest.mark.parametrize("kind", CASES)
def test_intervals_hold_the_share_of_new_rows_that_they_say(kind):
    X, y = draw(kind)
    model = CASES[kind]().fit(X, y)
    new_X, new_y = draw(kind, n=20000, seed=1)
    low, high = model.predict_interval(new_X, level=0.9)
    share = np.mean((low <= new_y) & (new_y <= high))
    # Whole numbers cannot have exactly 0.9: their intervals hold at least that.
    assert 0.87 < share < (0.97 if kind == "poisson" else 0.93)
    assert np.allclose(model.predict_dist(new_X).mean, model.predict(new_X))


def test_weights_of_zero_sparse_rows_and_blocks_on_disk_do_not_change_the_dispersion(tmp_path):
    X, y = draw("gamma", n=120)
    fit = ln.GammaRegressor(alpha=0.1).fit
    plain = fit(X, y).dispersion_
    assert fit(sp.csr_array(X), y).dispersion_ == pytest.approx(plain, rel=1e-6)
    more = np.vstack([X, 5.0 + X])
    weight = np.r_[np.ones(120), np.zeros(120)]
    assert fit(more, np.r_[y, y], sample_weight=weight).dispersion_ == pytest.approx(plain, rel=1e-6)
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=["a", "b", "c"]).assign(y=y)
    frame.to_parquet(tmp_path / "rows.parquet")
    assert fit(tmp_path / "rows.parquet", "y").dispersion_ == pytest.approx(plain, rel=1e-6)


def test_verify_covers_the_dispersion():
    X, y = draw("gamma", n=60)
    model = ln.GammaRegressor(alpha=0.1).fit(X, y)
    assert ln.verify(model, X, y)
    model.dispersion_ *= 1.001
    assert not ln.verify(model, X, y)


def test_what_is_not_known_is_not_said():
    X, y = draw("gamma", n=4)
    model = ln.GammaRegressor(alpha=0.1).fit(X, y)
    assert not hasattr(model, "dispersion_")
    with pytest.raises(DataError, match="no more rows than coefficients"):
        model.predict_dist(X)
    X, y = draw("gamma")
    with pytest.raises(ParameterError, match="no distribution in closed form"):
        ln.TweedieRegressor(power=1.5).fit(X, y).predict_interval(X)
    with pytest.raises(ParameterError, match="level"):
        ln.GammaRegressor().fit(X, y).predict_interval(X, level=1.0)


def test_intervals_that_must_hold_for_any_distribution_are_still_conformal():
    assert isinstance(ln.with_intervals(ln.PoissonRegressor()), ln.ConformalRegressor)
