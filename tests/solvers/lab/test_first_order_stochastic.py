"""Mini-batches: exactly ⌊n/b⌋ an epoch, no row twice, and b = n is the whole function bit for bit."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from learnable.core.errors import ParameterError
from learnable.solvers import Adam, Batches, InverseDecay, Momentum, minimize


@given(st.integers(1, 60), st.integers(1, 60), st.booleans())
def test_an_epoch_has_floor_n_over_b_disjoint_batches(n, b, shuffle):
    b = min(b, n)
    batches = Batches(n, b, shuffle)
    rows = [np.arange(n)[chosen] for chosen in batches.epoch(np.random.default_rng(0))]
    assert len(rows) == batches.per_epoch == n // b
    assert all(len(chosen) == b for chosen in rows)
    together = np.concatenate(rows)
    assert len(set(together.tolist())) == b * (n // b)
    assert all((np.diff(chosen) > 0).all() for chosen in rows)


def test_every_epoch_has_another_order_and_every_row_its_turn():
    generator, batches = np.random.default_rng(1), Batches(10, 3)
    epochs = [np.concatenate(list(batches.epoch(generator))) for _ in range(60)]
    assert len({tuple(sorted(epoch)) for epoch in epochs}) > 5
    counts = np.bincount(np.concatenate(epochs), minlength=10)
    assert counts.min() > 35  # 54 expected


@pytest.mark.parametrize("n, b", [(0, 1), (5, 0), (5, 6), (5, 2.5), (True, 1)])
def test_impossible_batches_are_refused(n, b):
    with pytest.raises(ParameterError, match="Batches"):
        Batches(n, b)


def regression(n=64, d=4, noise=0.5, seed=0):
    """Return the mean square loss of a linear model as fun(w, rows), its gradient, and the optimum."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = X @ rng.normal(size=d) + noise * rng.normal(size=n)

    def value(w, rows):
        r = X[rows] @ w - y[rows]
        return 0.5 * float(r @ r) / len(r)

    def slope(w, rows):
        r = X[rows] @ w - y[rows]
        return X[rows].T @ r / len(r)

    return value, slope, np.linalg.lstsq(X, y, rcond=None)[0], X


@pytest.mark.parametrize("update", ["gd", Momentum(0.8), Adam()])
def test_one_batch_of_all_rows_is_batch_gradient_descent_bit_for_bit(update):
    value, slope, _, X = regression()
    options = {"n_rows": len(X), "step": 0.05, "max_iter": 40, "random_state": 3}
    whole = minimize(value, np.zeros(4), slope, method=update, **options)
    one_batch = minimize(
        value, np.zeros(4), slope, method="sgd" if update == "gd" else update, batch_size=len(X), **options
    )
    assert np.array_equal(whole.trace.path, one_batch.trace.path)
    assert np.array_equal(whole.trace.value, one_batch.trace.value)
    by_hand = np.zeros(4)
    if update == "gd":
        for _ in range(40):
            by_hand = by_hand - 0.05 * slope(by_hand, slice(None))
        assert np.array_equal(whole.trace.path[-1], by_hand)


def test_a_batch_gradient_is_unbiased():
    _, slope, _, _ = regression(n=12)
    w, batches, generator = np.ones(4), Batches(12, 3), np.random.default_rng(0)
    epoch = [slope(w, rows) for rows in batches.epoch(generator)]
    np.testing.assert_allclose(np.mean(epoch, axis=0), slope(w, slice(None)), rtol=1e-12)


@pytest.mark.threaded
def test_the_same_seed_gives_the_same_bits_and_another_seed_does_not():
    value, slope, _, _ = regression()
    run = [
        minimize(value, np.zeros(4), slope, method="sgd", n_rows=64, batch_size=8, max_iter=3, random_state=seed).x
        for seed in (0, 0, 1, np.random.default_rng(0), np.random.RandomState(0))
    ]
    assert np.array_equal(run[0], run[1])
    assert np.array_equal(run[0], run[3])
    assert not np.array_equal(run[0], run[2])


@pytest.mark.long
def test_decaying_steps_converge_at_the_rate_one_over_t():
    """On a μ-strongly convex function with η = 1/(μ(t + t₀)) the mean squared error falls like 1/t."""
    value, slope, optimum, X = regression(n=100, noise=2.0)
    mu = np.linalg.eigvalsh(X.T @ X / len(X))[0]
    smooth = max(np.sum(X**2, axis=1))
    first = 1 / (2 * smooth)
    rule = InverseDecay(first, decay=first * mu / 2)  # tends to 2/(μt)
    errors = []
    for epochs in (4, 16, 64):
        runs = [
            minimize(value, np.zeros(4), slope, method="sgd", n_rows=100, batch_size=1, step=rule, max_iter=epochs,
                     random_state=seed, tol=0.0).trace.path[-1] for seed in range(8)
        ]  # fmt: skip
        errors.append(np.mean([np.sum((w - optimum) ** 2) for w in runs]))
    # Four times as many steps: about a quarter of the error (sampling rows without replacement may only help).
    assert errors[1] < 0.5 * errors[0]
    assert errors[2] < 0.5 * errors[1]
    # A constant step stays at its noise level instead.
    constant = [
        minimize(value, optimum, slope, method="sgd", n_rows=100, batch_size=1, step=first, max_iter=64,
                 random_state=seed, tol=0.0).trace.path[-1] for seed in range(8)
    ]  # fmt: skip
    assert np.mean([np.sum((w - optimum) ** 2) for w in constant]) > 3 * errors[2]


def test_evaluations_count_a_batch_as_its_share():
    value, slope, _, _ = regression(n=60)
    found = minimize(value, np.zeros(4), slope, method="sgd", n_rows=60, batch_size=16, max_iter=5, random_state=0)
    np.testing.assert_allclose(np.diff(found.trace.evaluations), 1 + 3 * 16 / 60)
