"""The same bits come out whatever the number of threads, the number of parts, and who else is fitting."""

import threading
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from learnable import LinearRegression, LogisticRegression, Ridge, RidgeCV
from learnable.core.threads import thread_budget
from learnable.data import Blocks, Part
from learnable.risk.classes import ClassRisk, class_sums
from learnable.solvers.smooth.shapes import solve
from learnable.solvers.systems.least_squares import least_squares, nonnegative_fit
from learnable.solvers.systems.moments import centred_moments
from learnable.solvers.systems.normal_equations import iterative_fit

pytestmark = [
    pytest.mark.threaded,  # BLAS with all its threads
    pytest.mark.filterwarnings("error::sklearn.exceptions.ConvergenceWarning"),
]

N, D = 40_000, 30
JOBS = (1, None) if thread_budget() == 2 else (1, 2, None)  # None is the whole budget


def draw(n=N, d=D, n_classes=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) + 0.5
    scores = X[:, :3] @ rng.normal(size=(3, n_classes)) + rng.gumbel(size=(n, n_classes))
    return X, X @ rng.normal(size=d) + rng.normal(size=n), scores.argmax(axis=1), rng.uniform(0.5, 2.0, n)


X, TARGET, TWO, WEIGHT = draw()
THREE = draw(n_classes=3)[2]
SPARSE = sp.random_array((N, D), density=0.1, rng=np.random.default_rng(1), format="csr")
TABLES = {"dense": X, "float32": X.astype(np.float32), "sparse": SPARSE, "fortran": np.asfortranarray(X)}
MODELS = {
    "least squares": (LinearRegression(), TARGET),
    "least squares, positive": (LinearRegression(positive=True), TARGET),
    "ridge": (Ridge(), TARGET),
    "ridge, two targets": (Ridge(), np.column_stack([TARGET, WEIGHT])),
    "ridge, conjugate gradients": (Ridge(solver="sparse_cg"), TARGET),
    "ridge cv": (RidgeCV(), TARGET),
    "logistic": (LogisticRegression(), TWO),
    "logistic, newton-cg": (LogisticRegression(solver="newton-cg"), TWO),
    "logistic, lbfgs": (LogisticRegression(solver="lbfgs"), TWO),
    "softmax": (LogisticRegression(), THREE),
}


def bits(model):
    """Return what a fit determines, the certificate's value and the checksum of the data among it."""
    certificate = model.certificate_
    return [np.asarray(model.coef_), np.asarray(model.intercept_), certificate.value, certificate.fingerprint]


@cache
def alone(name):
    """Return the bits of a model that is fitted to X once, with nothing else going on."""
    model, y = MODELS[name]
    return bits(clone(model).fit(X, y))


def assert_same_bits(a, b):
    for one, other in zip(a, b, strict=True):
        if isinstance(one, np.ndarray):
            np.testing.assert_array_equal(one, other, strict=True)
        else:
            assert one == other


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("table", ["dense", "float32", "sparse"])
def test_the_number_of_threads_changes_no_bit(name, table):
    model, y = MODELS[name]
    fits = [clone(model).set_params(n_jobs=n_jobs).fit(TABLES[table], y) for n_jobs in JOBS]
    for fit in fits[1:]:
        assert_same_bits(bits(fits[0]), bits(fit))


@pytest.mark.parametrize("name", ["least squares", "ridge", "ridge cv", "logistic", "softmax"])
def test_the_number_of_threads_changes_no_bit_of_weighted_fits(name):
    model, y = MODELS[name]
    fits = [clone(model).set_params(n_jobs=n_jobs).fit(X, y, WEIGHT) for n_jobs in (1, 2)]
    assert_same_bits(bits(fits[0]), bits(fits[1]))


@pytest.mark.parametrize("name", ["least squares", "ridge", "ridge cv", "logistic", "softmax"])
def test_the_memory_order_changes_no_bit(name):
    model, y = MODELS[name]
    wide = np.zeros((N, 2 * D))
    wide[:, ::2] = X
    assert_same_bits(alone(name), bits(clone(model).fit(TABLES["fortran"], y)))
    assert_same_bits(alone(name), bits(clone(model).fit(wide[:, ::2], y)))


@pytest.mark.sampled(6)
@pytest.mark.parametrize("shape", [(3000, 300), (300, 3000), (20_000, 200)], ids=str)
def test_the_number_of_threads_changes_no_bit_of_other_shapes(shape):
    rng = np.random.default_rng(2)
    rows = rng.normal(size=shape)
    y = rows[:, 0] + rng.normal(size=shape[0])
    for model, target in [(LinearRegression(), y), (Ridge(), y), (RidgeCV(), y), (LogisticRegression(C=0.1), y > 0)]:
        if shape == (300, 3000) and isinstance(model, LinearRegression):
            continue  # covered by Ridge: the factorisation of wide rows does not know n_jobs
        fits = [clone(model).set_params(n_jobs=n_jobs).fit(rows, target) for n_jobs in (1, 2)]
        assert_same_bits(bits(fits[0]), bits(fits[1]))


@pytest.mark.parametrize("name", MODELS)
def test_a_refit_gives_the_same_bits(name):
    model, y = MODELS[name]
    model = clone(model)
    first = bits(model.fit(X, y))
    assert_same_bits(first, bits(model.fit(X, y)))


def cut(table, y, weight, n_parts):
    """Return blocks of `n_parts` parts of very different length."""
    edges = np.unique(np.r_[0, (np.linspace(0, 1, n_parts + 1)[1:-1] ** 2 * N).astype(int), N])
    return Blocks(
        [Part(table[a:b], y[a:b], None if weight is None else weight[a:b]) for a, b in pairwise(edges.tolist())]
    )


@pytest.mark.sampled(4)
@pytest.mark.parametrize("table", ["dense", "float32", "sparse", "fortran"])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_number_of_parts_changes_no_bit_of_least_squares(table, weighted):
    weight = WEIGHT if weighted else None
    one, seven = (cut(TABLES[table], TARGET[:, None], weight, parts) for parts in (1, 7))
    assert len(one.parts) == 1 and len(seven.parts) == 7 and len(one) > 1
    for fit in (
        lambda blocks: least_squares(blocks, 0.0),
        lambda blocks: least_squares(blocks, 1.0, n_jobs=2),
        lambda blocks: iterative_fit(blocks, 1.0),
        lambda blocks: nonnegative_fit(blocks, 1.0),
        lambda blocks: centred_moments(blocks),
    ):
        for a, b in zip(fit(one), fit(seven), strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("table", ["dense", "float32", "sparse"])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("solver", ["auto", "lbfgs", "newton-cg"])
def test_the_number_of_parts_changes_no_bit_of_logistic_regression(table, n_classes, solver):
    codes = {2: TWO, 3: THREE}[n_classes].astype(np.int64)
    solutions = []
    for parts in (1, 7):
        blocks = cut(TABLES[table], codes, WEIGHT, parts)
        sums = class_sums(blocks, n_classes, intercept=True, n_jobs=parts)
        problem = ClassRisk.of(blocks, sums, 1.0, intercept=True, n_jobs=parts)
        solutions.append(solve(problem, None, solver, tol=1e-8, max_iter=100))
    np.testing.assert_array_equal(solutions[0].x, solutions[1].x)
    assert solutions[0].measure == solutions[1].measure


@pytest.mark.parametrize("name", ["least squares", "ridge", "ridge cv", "logistic", "softmax"])
def test_two_fits_at_once_give_the_bits_of_one(name):
    model, y = MODELS[name]
    expected, barrier = alone(name), threading.Barrier(2)

    def fit(_):
        twin = clone(model)
        barrier.wait()
        return bits(twin.fit(X, y))

    with ThreadPoolExecutor(2) as pool:
        for together in pool.map(fit, range(2)):
            assert_same_bits(expected, together)


def test_different_models_at_once_give_the_bits_of_each():
    names = ["least squares", "ridge cv", "logistic", "softmax"]
    expected = {name: alone(name) for name in names}
    with ThreadPoolExecutor(4) as pool:
        jobs = {name: pool.submit(clone(MODELS[name][0]).fit, X, MODELS[name][1]) for name in names}
        for name, job in jobs.items():
            assert_same_bits(expected[name], bits(job.result()))


@pytest.mark.parametrize("name", ["least squares", "ridge", "logistic", "softmax"])
@pytest.mark.parametrize("table", ["dense", "sparse"])
def test_predictions_of_many_threads_are_those_of_one(name, table):
    model, y = MODELS[name]
    rows = TABLES[table][:2000]
    model = clone(model).fit(rows, y[:2000])
    expected = model.predict(rows)
    with ThreadPoolExecutor(6) as pool:
        for found in pool.map(lambda _: model.predict(rows), range(24)):
            np.testing.assert_array_equal(found, expected)


def test_predictions_go_on_while_the_same_model_is_fitted_elsewhere():
    model = Ridge().fit(X, TARGET)
    expected = model.predict(X[:1000])
    with ThreadPoolExecutor(2) as pool:
        other = pool.submit(clone(model).fit, X, TARGET)
        for _ in range(20):
            np.testing.assert_array_equal(model.predict(X[:1000]), expected)
        other.result()
