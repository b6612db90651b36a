"""Shapley values of a row: those of an enumeration of all orders, and the laws that define them."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from learnable.core.errors import DataError, ParameterError
from learnable.evaluation.estimates.attribution import attribute_row


def exact(predict, x, others, groups):
    """Every order of the columns, every other row: the definition."""
    blocks = list(groups.values())
    found = np.zeros(len(blocks))
    orders = list(permutations(range(len(blocks))))
    for z in others:
        for order in orders:
            row = x.copy()
            for block in blocks:
                row[block] = z[block]
            before = predict(row[None])[0]
            for j in order:
                row[blocks[j]] = x[blocks[j]]
                after = predict(row[None])[0]
                found[j] += after - before
                before = after
    return found / (len(orders) * len(others))


def curved(X):
    return np.sin(X[:, 0] * X[:, 1]) + np.maximum(X[:, 2], X[:, 3]) ** 2 + X[:, 0]


def test_many_orders_come_near_the_enumeration():
    rng = np.random.default_rng(0)
    x, others = rng.normal(size=4), rng.normal(size=(6, 4))
    groups = {"a": [0], "b": [1, 2], "c": [3]}
    expected = exact(curved, x, others, groups)
    found = attribute_row(curved, x, others, groups, n_orders=1200, random_state=1)
    assert np.all(np.abs(found.shares - expected) < 4 * found.errors + 1e-12)
    assert found.errors.max() < 0.1 * np.abs(expected).max() + 0.05


@given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.integers(1, 5))
@settings(max_examples=30, deadline=None)
def test_shares_add_up_to_the_prediction_whatever_the_model(seed, n_columns, n_orders):
    rng = np.random.default_rng(seed)
    w = rng.normal(size=(n_columns, 3))
    x, others = rng.normal(size=n_columns), rng.normal(size=(4, n_columns))
    found = attribute_row(
        lambda X: np.tanh(X @ w).prod(axis=1), x, others, {str(j): [j] for j in range(n_columns)}, n_orders=n_orders
    )
    assert found.base + found.shares.sum() == pytest.approx(found.prediction, abs=1e-12)


def test_a_sum_of_columns_needs_one_order_per_row():
    rng = np.random.default_rng(2)
    beta, x, others = rng.normal(size=5), rng.normal(size=5), rng.normal(size=(8, 5))
    found = attribute_row(lambda X: X @ beta, x, others, {str(j): [j] for j in range(5)}, n_orders=8)
    np.testing.assert_allclose(found.shares, beta * (x - others.mean(axis=0)), atol=1e-12)


def test_a_column_without_effect_has_no_share_and_twins_share_alike():
    rng = np.random.default_rng(3)
    x, others = rng.normal(size=3), rng.normal(size=(5, 3))
    x[1], others[:, 1] = x[0], others[:, 0]
    found = attribute_row(lambda X: (X[:, 0] + X[:, 1]) ** 2, x, others, {"a": [0], "b": [1], "none": [2]}, n_orders=40)
    assert found.shares[2] == 0.0
    assert found.shares[0] == pytest.approx(found.shares[1])  # every order is walked both ways


def test_the_same_seed_gives_the_same_shares_in_batches_of_any_size(monkeypatch):
    from learnable.evaluation.estimates import attribution

    rng = np.random.default_rng(4)
    x, others, groups = rng.normal(size=4), rng.normal(size=(3, 4)), {str(j): [j] for j in range(4)}
    one = attribute_row(curved, x, others, groups, n_orders=9, random_state=5)
    monkeypatch.setattr(attribution, "_MOST_NUMBERS", 1)
    other = attribute_row(curved, x, others, groups, n_orders=9, random_state=5)
    np.testing.assert_array_equal(one.shares, other.shares)
    assert [line["name"] for line in one.to_dict()["shares"]] == [
        one.names[j] for j in np.argsort(-np.abs(one.shares), kind="stable")
    ]


def test_wrong_rows_are_refused():
    with pytest.raises(DataError, match="no other rows"):
        attribute_row(curved, np.zeros(4), np.zeros((0, 4)), {"a": [0]})
    with pytest.raises(DataError, match="encode both alike"):
        attribute_row(curved, np.zeros(4), np.zeros((2, 3)), {"a": [0]})
    with pytest.raises(ParameterError, match="n_orders"):
        attribute_row(curved, np.zeros(4), np.zeros((2, 4)), {"a": [0]}, n_orders=0)
