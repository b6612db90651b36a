"""A law of the Poisson criterion: no leaf predicts zero, unless all targets are zero."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import learnable as ln


@pytest.mark.sampled(6)
@pytest.mark.parametrize("kind", ["DecisionTreeRegressor", "RandomForestRegressor", "ExtraTreesRegressor"])
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(5, 120),
    zeros=st.floats(0.1, 0.9),
    size=st.sampled_from([1e-8, 0.037, 1.0, 1e9]),
    weighted=st.booleans(),
)
@settings(max_examples=20, deadline=None)
def test_amounts_are_never_predicted_as_zero(kind, seed, n, zeros, size, weighted):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)).round(1)
    y = size * rng.gamma(1.0, size=n) * (rng.uniform(size=n) > zeros)
    y[0] = size
    weight = rng.uniform(0.1, 2.0, size=n) if weighted else None
    model = getattr(ln, kind)(criterion="poisson", random_state=seed)
    if kind != "DecisionTreeRegressor":
        model.set_params(n_estimators=5, bootstrap=False)  # a bag may hold zeros alone
    model.fit(X, y, weight)
    assert (model.predict(X) > 0).all()
    assert ln.verify(model, X, y, sample_weight=weight)
