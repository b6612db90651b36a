"""Linear models by gradient descent and mini-batches: the same optimum, honest certificates, every container."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_iris
from sklearn.exceptions import ConvergenceWarning

from learnable import LinearRegression, LogisticRegression, Ridge, load, save, verify
from learnable.core.errors import DataError, LearnableError
from learnable.core.estimator import no_progress
from learnable.data import Files
from learnable.data.blocks import Blocks, Part
from learnable.linear.descent import LeastSquares, Likelihood, run_descent
from learnable.risk.classes import ClassRisk, class_sums
from learnable.solvers import Batches, InverseDecay, check_gradient, minimize


def table(seed=0, n=150, d=4, k=None):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * [1.0, 100.0, 0.01, 3.0][:d] + [5.0, -300.0, 0.0, 1.0][:d]
    B = rng.normal(size=(d, k or 1)) / [[1.0], [100.0], [0.01], [3.0]][:d]
    y = X @ B + rng.normal(size=(n, k or 1))
    return X, y if k else y[:, 0]


def classes(seed=0, n=150, n_classes=2):
    X, score = table(seed, n)
    edges = np.quantile(score, np.linspace(0, 1, n_classes + 1)[1:-1])
    flipped = np.random.default_rng(seed).random(n) < 0.1
    codes = np.digitize(score, edges)
    return X, np.where(flipped, (codes + 1) % n_classes, codes)


def descend_in_batches(problem, u0, batch_size, epochs):
    return run_descent(problem, u0, "sgd", 0.0, epochs, batch_size, 0, no_progress)


def quietly(model, *data, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(*data, **options)


CASES = {
    "LinearRegression": (LinearRegression, table()),
    "two targets": (LinearRegression, table(k=2)),
    "no intercept": (lambda **o: LinearRegression(fit_intercept=False, **o), table()),
    "Ridge": (Ridge, table()),
    "Ridge alpha each": (lambda **o: Ridge(alpha=[0.5, 20.0], **o), table(k=2)),
    "LogisticRegression": (LogisticRegression, classes()),
    "softmax": (LogisticRegression, classes(n_classes=3)),
    "no penalty": (lambda **o: LogisticRegression(C=np.inf, **o), classes()),
}


@pytest.mark.parametrize("case", CASES)
def test_gradient_descent_ends_at_the_optimum_with_a_certificate_that_verifies(case):
    build, data = CASES[case]
    exact = build().fit(*data)
    model = build(solver="gd", max_iter=20_000).fit(*data)
    assert model.certificate_.holds
    assert model.certificate_.n_iter > 1
    assert verify(model, *data)
    np.testing.assert_allclose(model.predict(data[0]), exact.predict(data[0]), rtol=1e-2, atol=1e-2)
    scale = np.abs(exact.coef_) * np.std(data[0], axis=0)
    change = np.abs(model.coef_ - exact.coef_) * np.std(data[0], axis=0)
    assert change.max() <= 1e-3 * scale.max()


@pytest.mark.parametrize("case", CASES)
def test_mini_batches_come_near_and_the_certificate_says_how_near(case):
    build, data = CASES[case]
    exact = build().fit(*data)
    with pytest.warns(ConvergenceWarning, match="above the tolerance"):
        model = build(solver="sgd", random_state=0, max_iter=60).fit(*data)
    assert not model.certificate_.holds
    assert model.certificate_.tolerance == exact.tol
    assert model.certificate_.n_iter == 60
    scale = np.abs(exact.coef_) * np.std(data[0], axis=0)
    change = np.abs(model.coef_ - exact.coef_) * np.std(data[0], axis=0)
    assert change.max() <= 0.25 * scale.max()
    verdict = verify(model, *data)
    assert not verdict and "above the tolerance" in str(verdict)
    loose = build(solver="sgd", random_state=0, max_iter=60, tol=1.01 * model.certificate_.value).fit(*data)
    assert loose.certificate_.holds
    assert verify(loose, *data)


def test_more_epochs_come_nearer():
    X, y = table()
    values = [quietly(Ridge(solver="sgd", random_state=0, max_iter=m), X, y).certificate_.value for m in (4, 40, 400)]
    assert values[1] < 0.3 * values[0]
    assert values[2] < 0.3 * values[1]


def test_one_batch_of_all_rows_agrees_with_gradient_descent_at_the_end():
    X, y = table()
    whole = Ridge(solver="sgd", batch_size=len(X), max_iter=5000, tol=1e-8).fit(X, y)
    np.testing.assert_allclose(whole.coef_, Ridge().fit(X, y).coef_, rtol=1e-3)


@pytest.mark.parametrize("solver", ["gd", "sgd"])
@pytest.mark.parametrize("model", [LinearRegression(), Ridge(), LogisticRegression()])
def test_sparse_weighted_and_float32_rows_give_the_same_model(solver, model):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 5)) * (rng.random((80, 5)) < 0.4)
    y = (X.sum(axis=1) + rng.normal(size=80) > 0).astype(int)
    weight = rng.integers(0, 3, size=80).astype(float)
    model = clone(model).set_params(solver=solver, max_iter=30, random_state=0)
    dense = quietly(model, X, y, sample_weight=weight)
    sparse = quietly(clone(model), sp.csr_array(X), y, sample_weight=weight)
    np.testing.assert_allclose(sparse.coef_, dense.coef_, rtol=1e-6, atol=1e-9)
    assert verify(sparse, X, y, weight).value == pytest.approx(dense.certificate_.value, rel=1e-3, abs=1e-10)
    rounded = quietly(clone(model), X.astype(np.float32), y, sample_weight=weight)
    np.testing.assert_allclose(rounded.coef_, dense.coef_, rtol=1e-2, atol=1e-3)


@pytest.mark.parametrize("model", [LinearRegression(), Ridge(), LogisticRegression()])
def test_whole_weights_are_repeated_rows_for_gradient_descent(model):
    X, y = classes(n=60)
    weight = np.random.default_rng(0).integers(1, 4, size=60)
    model = clone(model).set_params(solver="gd", max_iter=20_000)
    weighted = clone(model).fit(X, y, sample_weight=weight)
    repeated = clone(model).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-3)


@pytest.mark.threaded
@pytest.mark.parametrize("solver", ["gd", "sgd"])
@pytest.mark.parametrize("model", [LinearRegression(), Ridge(), LogisticRegression()])
def test_the_same_seed_gives_the_same_bits_whatever_the_threads(solver, model):
    X, y = classes(n=300)
    fits = [
        quietly(clone(model).set_params(solver=solver, random_state=seed, n_jobs=jobs, max_iter=10), X, y).coef_
        for seed, jobs in ((0, 1), (0, 2), (1, 1))
    ]
    assert np.array_equal(fits[0], fits[1])
    assert np.array_equal(fits[0], fits[2]) == (solver == "gd")


def test_files_can_be_descended_but_not_shuffled(tmp_path):
    import pandas as pd

    X, y = table()
    frame = pd.DataFrame(X, columns=list("abcd")).assign(y=y)
    frame.to_parquet(tmp_path / "rows.parquet")
    rows = Files(tmp_path / "rows.parquet", in_memory_bytes=0)
    from_file = Ridge(solver="gd").fit(rows, "y")
    np.testing.assert_allclose(from_file.coef_, Ridge(solver="gd").fit(X, y).coef_, rtol=1e-9)
    assert verify(from_file, rows, "y")
    for model in (LinearRegression(solver="sgd"), Ridge(solver="sgd")):
        with pytest.raises(DataError, match=f"^{type(model).__name__}: .* needs them in memory"):
            model.fit(rows, "y")
    assert hasattr(
        quietly(Ridge(solver="sgd", max_iter=1), str(tmp_path / "rows.parquet"), "y"), "coef_"
    )  # it is small


@pytest.mark.parametrize("model", [LinearRegression(), Ridge(), LogisticRegression()])
@pytest.mark.parametrize("solver", ["gd", "sgd"])
def test_a_round_trip_through_a_file(model, solver, tmp_path):
    X, y = classes()
    fitted = quietly(clone(model).set_params(solver=solver, random_state=0, max_iter=20), X, y)
    save(fitted, tmp_path / "model.safetensors")
    assert np.array_equal(load(tmp_path / "model.safetensors").predict(X), fitted.predict(X))


def test_gradients_of_the_scaled_problems_are_right():
    X, y = table(k=2)
    blocks = Blocks([Part(X, y, np.linspace(0.5, 2, len(X)))])
    problem = LeastSquares(blocks, 0.7, intercept=True, tol=1e-8, n_jobs=1)
    u = np.random.default_rng(0).normal(size=8)
    assert check_gradient(lambda z: problem.evaluate(z).value, lambda z: problem.evaluate(z).gradient, u)
    np.testing.assert_allclose(problem.gradient(u, slice(None)), problem.evaluate(u).gradient, rtol=1e-9, atol=1e-9)
    for n_classes in (2, 4):
        X, codes = classes(n_classes=n_classes)
        blocks = Blocks([Part(X, codes, np.linspace(0.5, 2, len(X)))])
        sums = class_sums(blocks, n_classes, intercept=True, n_jobs=1)
        scaled = Likelihood(ClassRisk.of(blocks, sums, 0.3, intercept=True, n_jobs=1))
        u = np.random.default_rng(1).normal(size=len(scaled.scale))
        np.testing.assert_allclose(scaled.gradient(u, slice(None)), scaled.evaluate(u).gradient, rtol=1e-9, atol=1e-9)
        rows = np.arange(len(X)).reshape(5, -1)
        mean = np.mean([scaled.gradient(u, part) for part in rows], axis=0)
        np.testing.assert_allclose(mean, scaled.evaluate(u).gradient, rtol=1e-9, atol=1e-9)


def scaled_problem(n_classes, sparse, intercept):
    X, y = table(k=2) if n_classes is None else classes(n_classes=n_classes)
    X = sp.csr_array(X * (np.random.default_rng(2).random(X.shape) < 0.5)) if sparse else X
    blocks = Blocks([Part(X, y, np.linspace(0.5, 2, X.shape[0]))])
    if n_classes is None:
        return LeastSquares(blocks, 0.7, intercept=intercept, tol=1e-8, n_jobs=1), 8
    sums = class_sums(blocks, n_classes, intercept=intercept, n_jobs=1)
    problem = Likelihood(ClassRisk.of(blocks, sums, 0.3, intercept=intercept, n_jobs=1))
    return problem, len(problem.scale)


@pytest.mark.parametrize("n_classes", [None, 2, 4])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
def test_an_epoch_is_one_gradient_step_a_batch(n_classes, sparse, intercept):
    problem, size = scaled_problem(n_classes, sparse, intercept)
    batches = Batches(problem.n_rows, 11).row_numbers(np.random.default_rng(0))
    assert batches.shape == (150 // 11, 11)
    rates = 1e-3 / (1.0 + np.arange(len(batches)))
    u = np.random.default_rng(1).normal(size=size)
    if not intercept and n_classes is not None:
        u.reshape(problem.problem.shape)[:, 0] = 0.0
    found, mean = problem.epoch(u, batches, rates)
    visited = []
    for rows, rate in zip(batches, rates, strict=True):
        visited.append(u)
        u = u - rate * problem.gradient(u, rows)
    np.testing.assert_allclose(found, u, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(mean, np.mean(visited, axis=0), rtol=1e-10, atol=1e-12)


def test_pieces_of_an_epoch_are_the_epoch(monkeypatch):
    problem, size = scaled_problem(None, False, True)
    batches = Batches(problem.n_rows, 11).row_numbers(np.random.default_rng(0))
    whole = problem.epoch(np.ones(size), batches, np.full(len(batches), 1e-3))
    monkeypatch.setattr("learnable.linear.descent._CHUNK_ENTRIES", 1)
    cut = problem.epoch(np.ones(size), batches, np.full(len(batches), 1e-3))
    assert np.array_equal(whole[0], cut[0]) and np.array_equal(whole[1], cut[1])


@pytest.mark.parametrize("n_classes", [None, 2, 4])
def test_one_batch_of_all_rows_is_gradient_descent_bit_for_bit(n_classes):
    """Ten epochs of one batch are five plain steps η, then five steps η/(1 + t)."""
    problem, size = scaled_problem(n_classes, False, True)
    L, _ = problem.smoothness()
    found = descend_in_batches(problem, np.zeros(size), problem.n_rows, 10)
    largest = problem.smoothness()[1]
    rate = 0.5 / (L + (largest - L) / problem.n_rows)
    plain = minimize(problem, np.zeros(size), method="gd", step=rate, max_iter=5, tol=0.0)
    last = minimize(problem, plain.x, method="gd", step=InverseDecay(rate, 1.0), max_iter=5, tol=0.0)
    mean = np.mean(last.trace.path[:-1], axis=0)
    values = [problem.evaluate(point).value for point in (plain.x, mean)]
    assert np.array_equal(found.x, (plain.x, mean)[int(np.argmin(values))])


@pytest.mark.parametrize("n_classes", [None, 2, 4])
def test_smoothness_bounds_the_curvature_of_every_row(n_classes):
    X, y = table() if n_classes is None else classes(n_classes=n_classes)
    blocks = Blocks([Part(X, y)])
    if n_classes is None:
        problem = LeastSquares(blocks, 0.7, intercept=True, tol=1e-8, n_jobs=1)
        size = 4
    else:
        sums = class_sums(blocks, n_classes, intercept=True, n_jobs=1)
        problem = Likelihood(ClassRisk.of(blocks, sums, 0.3, intercept=True, n_jobs=1))
        size = len(problem.scale)
    L, largest = problem.smoothness()
    rng = np.random.default_rng(0)
    for _ in range(30):
        u, v = rng.normal(size=size), rng.normal(size=size)
        for rows in (slice(None), rng.integers(0, len(X), size=1)):
            ratio = np.linalg.norm(problem.gradient(u, rows) - problem.gradient(v, rows)) / np.linalg.norm(u - v)
            assert ratio <= (1.1 * L if isinstance(rows, slice) else largest * (1 + 1e-9))


def test_cost_against_the_closed_form():
    """O(ndT) against O(nd²): the better conditioned the table is, the fewer steps T."""
    X, y = load_diabetes(return_X_y=True)
    easy = Ridge(alpha=100.0, solver="gd").fit(X, y).certificate_.n_iter
    hard = quietly(Ridge(alpha=1e-4, solver="gd"), X, y).certificate_.n_iter
    assert easy < X.shape[1] < hard


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 1000), st.floats(-6, 6), st.floats(-6, 6), st.sampled_from(["gd", "sgd"]))
def test_scales_duplicates_and_constants_break_nothing(seed, log_x, log_y, solver):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(20, 3)) * 10.0**log_x
    X = np.column_stack([X, X[:, 0], np.full(20, 7.0)])
    y = rng.normal(size=20) * 10.0**log_y
    for model in (LinearRegression(), Ridge()):
        fitted = quietly(model.set_params(solver=solver, max_iter=20, random_state=0), X, y)
        assert np.isfinite(fitted.coef_).all()
        assert fitted.coef_[4] == 0
        residual = y - fitted.predict(X)
        assert residual @ residual <= (y - y.mean()) @ (y - y.mean()) * (1 + 1e-9)  # never worse than the mean


def test_warm_starts_and_time_limits():
    X, y = load_iris(return_X_y=True)
    model = LogisticRegression(solver="gd", warm_start=True, max_iter=50)
    first = quietly(model, X, y).certificate_.value
    assert quietly(model, X, y).certificate_.value < first
    hurried = quietly(LogisticRegression(solver="gd", max_iter=10**6, max_seconds=1e-6), X, y)
    assert hurried.certificate_.n_iter <= 2
    assert quietly(Ridge(solver="sgd", max_iter=10**6, max_seconds=1e-6), X, y).certificate_.n_iter <= 2
    assert not no_progress(0, 0.0)


@pytest.mark.parametrize("solver", ["GD", "adam", 3, None])
def test_other_names_are_refused(solver):
    for model in (LinearRegression(solver=solver), Ridge(solver=solver), LogisticRegression(solver=solver)):
        with pytest.raises(LearnableError, match="solver must be one of"):
            model.fit(*classes())


@pytest.mark.parametrize("batch_size", [0, -1, 2.5, None])
def test_batches_have_a_whole_positive_size(batch_size):
    for model in (LinearRegression(solver="sgd", batch_size=batch_size), Ridge(solver="sgd", batch_size=batch_size)):
        with pytest.raises(LearnableError, match="batch_size must be"):
            model.fit(*table())


def test_a_batch_larger_than_the_table_is_the_table():
    X, y = table(n=20)
    fits = [quietly(Ridge(solver="sgd", batch_size=b, max_iter=5), X, y).coef_ for b in (20, 1000)]
    assert np.array_equal(*fits)


@pytest.mark.parametrize("solver", ["gd", "sgd"])
@pytest.mark.parametrize("model", [LinearRegression(), Ridge()])
def test_one_row_and_constant_columns_have_nothing_to_learn(solver, model):
    for X in (np.ones((1, 2)), np.ones((5, 2))):
        fitted = clone(model).set_params(solver=solver).fit(X, np.arange(len(X), dtype=float))
        assert not fitted.coef_.any()
        assert fitted.intercept_ == np.arange(len(X)).mean()
        assert fitted.certificate_.holds
