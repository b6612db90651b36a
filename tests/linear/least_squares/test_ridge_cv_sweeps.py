"""Leave-one-out and GCV as sums over blocks: equal to n refits and to the hat matrix, whatever the blocks."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.oracles.ridge import generalised_cross_validation, leave_one_out_predictions
from tests.solvers.tables import blocks_of, random_table

from learnable import RidgeCV
from learnable.linear.least_squares.ridge_cv import swept_criterion
from learnable.solvers.systems.moments import centred_moments

ALPHAS = np.array([0.1, 1.0, 30.0])


def swept(X, y, weight=None, alphas=ALPHAS, *, criterion="loo", intercept=True, rows=16, n_jobs=None):
    blocks = blocks_of(X, y, weight, rows=rows)
    moments = centred_moments(blocks, intercept=intercept)
    return swept_criterion(blocks, moments, alphas, criterion=criterion, intercept=intercept, n_jobs=n_jobs)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("shape", [(60, 4), (12, 20)])
def test_leave_one_out_is_the_mean_over_n_refits(weighted, intercept, shape):
    X, y, weight = random_table(0, *shape, weighted=weighted, mean=1.0)
    w = np.ones(len(X)) if weight is None else weight
    expected = []
    for alpha in ALPHAS:
        errors = y - leave_one_out_predictions(X, y, alpha, weight, intercept)
        expected.append(w @ errors[:, 0] ** 2 / len(w))
    assert np.allclose(swept(X, y, weight, intercept=intercept), expected, rtol=1e-8)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("shape", [(60, 4), (12, 20)])
def test_generalised_cross_validation_is_that_of_the_hat_matrix(weighted, intercept, shape):
    X, y, weight = random_table(1, *shape, weighted=weighted, mean=1.0)
    expected = [generalised_cross_validation(X, y, alpha, weight, intercept)[0] for alpha in ALPHAS]
    assert np.allclose(swept(X, y, weight, criterion="gcv", intercept=intercept), expected, rtol=1e-8)


@pytest.mark.threaded
@pytest.mark.parametrize("criterion", ["loo", "gcv"])
@settings(deadline=None, max_examples=25)
@given(n=st.integers(8, 200), rows=st.integers(1, 220), seed=st.integers(0, 99), intercept=st.booleans())
def test_the_sweeps_give_the_path_of_memory_whatever_the_blocks(criterion, n, rows, seed, intercept):
    X, y, weight = random_table(seed, n, 5, weighted=seed % 2 == 0, mean=0.5)
    memory = RidgeCV(ALPHAS, criterion=criterion, fit_intercept=intercept).fit(X, y[:, 0], weight)
    found = swept(X, y, weight, criterion=criterion, intercept=intercept, rows=rows)
    assert np.allclose(-found, memory.criterion_path_, rtol=1e-10)


def test_a_row_that_determines_its_own_fit_has_an_infinite_error():
    X = np.vstack([np.eye(3)[0] * 1e9, np.random.default_rng(0).normal(size=(30, 3)) * np.array([0.0, 1.0, 1.0])])
    y = np.arange(31.0)[:, None]
    assert np.isinf(swept(X, y, alphas=np.array([1e-6]))).all()
    assert np.isinf(RidgeCV([1e-6]).fit(X, y[:, 0]).criterion_path_).all()


@pytest.mark.threaded
def test_the_number_of_threads_changes_no_bit():
    X, y, weight = random_table(3, 500, 6, weighted=True)
    one, two = (swept(X, y, weight, n_jobs=n_jobs) for n_jobs in (1, 2))
    assert one.tobytes() == two.tobytes()


def test_a_large_mean_costs_nothing():
    X, y, weight = random_table(4, 300, 4, weighted=True)
    here, there = swept(X, y, weight), swept(X + 2.0**20, y, weight)
    assert np.allclose(here, there, rtol=1e-9)


@pytest.mark.parametrize("criterion", ["loo", "gcv"])
@pytest.mark.parametrize("spread", [1e6, 1e150])
def test_columns_in_other_units_have_the_path_of_memory(criterion, spread):
    X, y, _ = random_table(5, 600, 4, mean=1.0)
    X *= np.array([1 / spread, 1.0, spread, 1.0])
    alphas = np.array([0.1, 1.0, 10.0])
    memory = RidgeCV(alphas, criterion=criterion).fit(X, y[:, 0])
    assert np.allclose(-swept(X, y, alphas=alphas, criterion=criterion, rows=256), memory.criterion_path_, rtol=1e-9)


def test_fewer_rows_than_columns_and_a_small_penalty():
    X, y, _ = random_table(1, 12, 20, mean=1.0)
    expected = generalised_cross_validation(X, y, 1e-3)
    assert np.allclose(swept(X, y, alphas=np.array([1e-3]), criterion="gcv"), expected, rtol=1e-9)
