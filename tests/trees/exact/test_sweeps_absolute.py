"""Laws of the absolute error: constraints hold, and cuts that gain nothing do not peel off single rows."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import learnable as ln


def _table(seed, n, levels, weighted):
    """Return rows with ties, targets (two-valued, coarse or fine), weights and signs of constraints."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)).round(1)
    y = X @ rng.normal(size=3) + rng.normal(size=n)
    if levels is not None:
        y = np.floor(levels * (y - y.min()) / (np.ptp(y) + 1e-9)) * 0.7 + 0.1
    weight = rng.choice([0.1, 0.2, 0.7, 1.3], size=n) if weighted else None
    signs = rng.integers(-1, 2, size=3)
    signs[int(rng.integers(3))] = int(rng.choice([-1, 1]))
    return X, y, weight, signs, rng


@pytest.mark.sampled(6)
@pytest.mark.parametrize("kind", ["DecisionTreeRegressor", "RandomForestRegressor", "ExtraTreesRegressor"])
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(4, 70),
    levels=st.sampled_from([None, 2, 4]),
    weighted=st.booleans(),
    most_leaves=st.sampled_from([None, 8]),
)
@settings(max_examples=20, deadline=None)
def test_predictions_never_break_a_constraint(kind, seed, n, levels, weighted, most_leaves):
    X, y, weight, signs, rng = _table(seed, n, levels, weighted)
    model = getattr(ln, kind)(
        criterion="absolute_error", monotonic_cst=signs, max_leaf_nodes=most_leaves, random_state=seed
    )
    if kind != "DecisionTreeRegressor":
        model.set_params(n_estimators=4)
    model.fit(X, y, weight)
    rows = rng.normal(size=(60, 3))
    for j in np.flatnonzero(signs):
        moved = rows.copy()
        moved[:, j] += rng.uniform(0, 2, size=60)
        assert ((model.predict(moved) - model.predict(rows)) * signs[j] >= -1e-12).all()
    assert ln.verify(model, X, y, sample_weight=weight)


@given(seed=st.integers(0, 10**6), n=st.integers(20, 300), low=st.floats(-2, 2), gap=st.floats(0.1, 3))
@settings(max_examples=20, deadline=None)
def test_two_valued_targets_need_no_more_leaves_than_twice_those_of_the_squared_error(seed, n, low, gap):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    labels = (X[:, 0] + rng.normal(size=n) > 0.5).astype(float)
    y = low + gap * labels  # not on a grid: sums round, ties are ties nevertheless
    absolute = ln.DecisionTreeRegressor(criterion="absolute_error").fit(X, y)
    squared = ln.DecisionTreeRegressor().fit(X, y)
    assert absolute.get_n_leaves() <= 2 * squared.get_n_leaves() + 4
    assert absolute.get_depth() <= 2 * squared.get_depth() + 4
    np.testing.assert_array_equal(absolute.predict(X), y)
    whole = ln.DecisionTreeRegressor(criterion="absolute_error").fit(X, labels)
    assert whole.get_n_leaves() == absolute.get_n_leaves() and whole.get_depth() == absolute.get_depth()


@pytest.mark.threaded
def test_trees_do_not_depend_on_the_number_of_threads():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30_000, 9)).round(1)  # enough for several threads
    y = (X[:, 0] + rng.normal(size=len(X)) > 1.0).astype(float)
    one, two = (
        ln.DecisionTreeRegressor(criterion="absolute_error", max_depth=4, n_jobs=jobs).fit(X, y) for jobs in (1, 2)
    )
    np.testing.assert_array_equal(one.tree_.feature, two.tree_.feature)
    np.testing.assert_array_equal(one.tree_.threshold, two.tree_.threshold)
