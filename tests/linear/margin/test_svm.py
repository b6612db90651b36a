"""LinearSVC: laws of the optimum, a quadratic program as the oracle, LIBLINEAR, and hostile data."""

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.svm
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from tests.linear.svm_tables import several_classes, two_classes, weights_of
from tests.oracles.svm import augmented, hinge_program, svc_objective

import learnable as ln
from learnable import LinearSVC, verify
from learnable.core.errors import DataError, ParameterError

POWER = {"hinge": 1, "squared_hinge": 2}


@pytest.mark.parametrize("C", [0.05, 1.0, 20.0])
@pytest.mark.parametrize("n, d", [(30, 3), (12, 20)])
def test_hinge_without_intercept_is_the_quadratic_program(C, n, d):
    X, y = two_classes(n, d)
    model = LinearSVC(loss="hinge", fit_intercept=False, C=C).fit(X, y)
    w = hinge_program(y[:, None] * X, np.ones(n), np.full(n, C))
    cost = np.full(n, C)
    ours = svc_objective(weights_of(model), X, y, cost, 0.0, 1)
    oracle = svc_objective(np.r_[0.0, w], X, y, cost, 0.0, 1)
    assert ours <= oracle * (1 + 1e-9)
    np.testing.assert_allclose(model.coef_[0], w, rtol=1e-3, atol=1e-4 * np.abs(w).max())


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("scaling", [1.0, 10.0])
def test_the_objective_is_not_above_liblinears(loss, C, scaling):
    X, y = two_classes(200, 5)
    ours = LinearSVC(loss=loss, C=C, intercept_scaling=scaling).fit(X, y)
    theirs = sklearn.svm.LinearSVC(
        loss=loss, C=C, intercept_scaling=scaling, tol=1e-10, max_iter=2_000_000, dual=loss == "hinge"
    ).fit(X, y)
    cost = np.full(200, C)
    values = [svc_objective(weights_of(m), X, y, cost, scaling, POWER[loss]) for m in (ours, theirs)]
    assert values[0] <= values[1] * (1 + 1e-9)
    assert np.array_equal(ours.predict(X), theirs.predict(X))
    assert ours.coef_.shape == theirs.coef_.shape and ours.intercept_.shape == theirs.intercept_.shape
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=2e-3)


@pytest.mark.parametrize("loss, solver", [
    ("hinge", "interior-point"), ("hinge", "dual"), ("squared_hinge", "newton"), ("squared_hinge", "dual"),
])  # fmt: skip
@pytest.mark.parametrize("sparse", [False, True])
def test_every_solver_ends_at_the_optimum(loss, solver, sparse):
    X, y = two_classes(150, 6)
    table = sp.csr_array(X) if sparse else X
    model = LinearSVC(loss=loss, solver=solver, C=0.3, max_iter=20_000).fit(table, y)
    best = LinearSVC(loss=loss, C=0.3).fit(X, y)
    assert model.certificate_.holds
    assert verify(model, table, y)
    cost = np.full(150, 0.3)
    value, least = (svc_objective(weights_of(m), X, y, cost, 1.0, POWER[loss]) for m in (model, best))
    assert value <= least * (1 + 1.5e-6)


def test_kkt_conditions_of_the_hinge():
    X, y = two_classes(150, 4)
    s = np.random.default_rng(1).uniform(0.5, 2.0, 150)
    model = LinearSVC(loss="hinge", C=0.7).fit(X, y, sample_weight=s)
    alpha, margin = y * model.dual_coef_[0], y * model.decision_function(X)
    assert (alpha >= 0).all() and (alpha <= 0.7 * s * (1 + 1e-12)).all()
    np.testing.assert_allclose(augmented(X, 1.0).T @ (y * alpha), weights_of(model), atol=1e-8)
    assert (alpha[margin > 1 + 1e-6] == 0).all()
    np.testing.assert_allclose(alpha[margin < 1 - 1e-6], (0.7 * s)[margin < 1 - 1e-6], rtol=1e-12)
    (report,) = model.kkt_report(X, y, s)
    assert report.inside + report.on_margin + report.outside == 150
    assert report.on_margin >= 1 and report.stationarity < 1e-8 and report.complementarity < 1e-8


def test_stationarity_of_the_squared_hinge():
    X, y = two_classes(150, 4)
    model = LinearSVC(tol=1e-12).fit(X, y)
    w, Z = weights_of(model), augmented(X, 1.0)
    gradient = w - Z.T @ (2.0 * y * np.maximum(1 - y * (Z @ w), 0))
    assert np.abs(gradient).max() < 1e-6 * np.abs(w).max()


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_one_class_against_the_rest_is_that_many_problems(loss):
    X, y = several_classes(90, 4)
    model = LinearSVC(loss=loss).fit(X, np.array(["a", "b", "c"])[y])
    for k in range(3):
        alone = LinearSVC(loss=loss).fit(X, y == k)
        np.testing.assert_allclose(model.coef_[k], alone.coef_[0], rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(model.intercept_[k], alone.intercept_[0], rtol=1e-9, atol=1e-12)
    assert verify(model, X, np.array(["a", "b", "c"])[y])


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_weights_are_repetitions_and_zero_is_absence(loss):
    X, y = two_classes(80, 3)
    s = np.random.default_rng(0).integers(0, 3, 80)
    s[:2] = 1
    weighted, repeated = LinearSVC(loss=loss).fit(X, y, s), LinearSVC(loss=loss).fit(X.repeat(s, 0), y.repeat(s))
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-7, atol=1e-9)
    assert verify(weighted, X, y, s)
    if loss == "hinge":
        assert weighted.dual_coef_.shape == (1, 80) and (weighted.dual_coef_[0, s == 0] == 0).all()


def test_class_weights_multiply():
    X, y = two_classes(80, 3)
    by_class = LinearSVC(class_weight={1: 3.0, -1: 0.5}).fit(X, y)
    by_row = LinearSVC().fit(X, y, np.where(y == 1, 3.0, 0.5))
    np.testing.assert_allclose(by_class.coef_, by_row.coef_, rtol=1e-10)
    balanced = LinearSVC(class_weight="balanced", tol=1e-12).fit(X, y)
    theirs = sklearn.svm.LinearSVC(class_weight="balanced", tol=1e-12, dual=False, max_iter=10_000).fit(X, y)
    np.testing.assert_allclose(balanced.coef_, theirs.coef_, rtol=1e-5)
    assert verify(by_class, X, y) and verify(balanced, X, y)


@pytest.mark.parametrize("C", [0.02, 1.0])
@pytest.mark.parametrize("intercept", [True, False])
def test_l1_penalty(C, intercept):
    X, y = two_classes(150, 8)
    X[:, 5] = X[:, 0]
    model = LinearSVC(penalty="l1", C=C, fit_intercept=intercept).fit(X, y)
    theirs = sklearn.svm.LinearSVC(
        penalty="l1", C=C, dual=False, tol=1e-9, max_iter=1_000_000, fit_intercept=intercept
    ).fit(X, y)

    def objective(m):
        w = np.r_[np.ravel(m.coef_), np.ravel(m.intercept_)]
        return np.abs(w).sum() + C * (np.maximum(1 - y * m.decision_function(X), 0) ** 2).sum()

    assert objective(model) <= objective(theirs) * (1 + 1e-6)
    assert model.certificate_.holds and verify(model, X, y)
    slope = X.T @ (2 * C * y * np.maximum(1 - y * model.decision_function(X), 0))
    assert (np.abs(slope) <= 1 + 5e-2).all()
    assert C > 0.1 or (model.coef_ == 0).sum() >= 1


def test_l1_with_a_small_C_is_exactly_zero():
    X, y = two_classes(150, 4)
    smallest = 0.999 / np.abs(augmented(X, 1.0).T @ (2.0 * y)).max()
    zero, some = (LinearSVC(penalty="l1", C=C, tol=1e-9).fit(X, y) for C in (smallest, 1.01 * smallest / 0.999))
    assert not zero.coef_.any() and not zero.intercept_.any()
    assert some.coef_.any() or some.intercept_.any()


def test_the_subgradient_method_obeys_its_rate():
    X, y = two_classes(200, 4)
    gaps = []
    for passes in (10, 1000):
        with pytest.warns(UserWarning, match="stopped after"):
            model = LinearSVC(loss="hinge", solver="subgradient", C=0.1, max_iter=passes).fit(X, y)
        gaps.append(model.certificate_.value)
        best = LinearSVC(loss="hinge", C=0.1).fit(X, y)
        excess = [svc_objective(weights_of(m), X, y, np.full(200, 0.1), 1.0, 1) for m in (model, best)]
        assert excess[0] / excess[1] - 1 <= model.certificate_.value * (1 + 1e-9)
    assert gaps[1] < gaps[0] / 20


def test_warm_start_needs_fewer_iterations():
    X, y = two_classes(400, 5)
    model = LinearSVC(warm_start=True, C=3.0).fit(X, y)
    cold = model.n_iter_
    assert model.fit(X, y).n_iter_ < cold
    dual = LinearSVC(loss="hinge", solver="dual", warm_start=True, C=0.1).fit(X, y)
    cold = dual.n_iter_
    assert dual.fit(X, y).n_iter_ < cold


@pytest.mark.threaded
def test_the_same_bits_for_every_number_of_threads():
    X, y = two_classes(3000, 400, noise=5.0)
    for loss in ("hinge", "squared_hinge"):
        one, two = (LinearSVC(loss=loss, n_jobs=jobs, C=1e-3).fit(X, y) for jobs in (1, 2))
        assert np.array_equal(one.coef_, two.coef_) and np.array_equal(one.intercept_, two.intercept_)


def test_sparse_rows_are_the_same_problem():
    rng = np.random.default_rng(0)
    X = sp.random_array((150, 1600), density=0.01, format="csr", rng=rng)
    y = (X @ rng.normal(size=1600) > 0).astype(int)
    for loss in ("hinge", "squared_hinge"):
        model, dense = LinearSVC(loss=loss).fit(X, y), LinearSVC(loss=loss).fit(X.toarray(), y)
        assert model.certificate_.holds and verify(model, X, y)
        np.testing.assert_allclose(model.coef_, dense.coef_, atol=3e-3 * np.abs(dense.coef_).max())


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(4, 40),
    d=st.integers(1, 6),
    scale=st.sampled_from([1e-8, 1e-4, 1.0, 1e4, 1e8]),
    loss=st.sampled_from(["hinge", "squared_hinge"]),
    C=st.sampled_from([1e-4, 1.0, 1e4]),
    spoil=st.sampled_from(["nothing", "duplicate", "constant", "zero rows", "separable"]),
)
@example(seed=229, n=4, d=5, scale=1e-8, loss="hinge", C=1e4, spoil="nothing")  # rows at the kink, at full cost
def test_any_table_is_certified(seed, n, d, scale, loss, C, spoil):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * scale ** rng.integers(0, 2, d)
    y = np.where(rng.normal(size=n) > 0, 1, -1)
    y[:2] = 1, -1
    weight = rng.integers(0, 4, n).astype(float)
    weight[:2] = 1.0
    if spoil == "duplicate":
        X[:, -1] = X[:, 0]
    elif spoil == "constant":
        X[:, 0] = 7.0
    elif spoil == "zero rows":
        X[n // 2 :] = 0.0
    elif spoil == "separable":
        X[:, 0] += 10 * scale * y
    model = LinearSVC(loss=loss, C=C).fit(X, y, weight)
    assert model.certificate_.holds, model.certificate_
    assert verify(model, X, y, weight), str(verify(model, X, y, weight))


@pytest.mark.parametrize("parameters, words", [
    ({"penalty": "l1", "loss": "hinge"}, "penalty must be 'l2'"),
    ({"solver": "subgradient"}, "solver must be"),
    ({"solver": "newton", "loss": "hinge"}, "smooth loss"),
    ({"solver": "newton", "multi_class": "crammer_singer"}, "solver"),
    ({"C": 0.0}, "C must be"),
    ({"class_weight": {1: -1.0}}, "class_weight must be positive"),
])  # fmt: skip
def test_refused_parameters(parameters, words):
    X, y = two_classes()
    with pytest.raises(ParameterError, match=f"LinearSVC: .*{words}"):
        LinearSVC(**parameters).fit(X, y)


def test_refused_data():
    X, y = two_classes()
    with pytest.raises(DataError, match="LinearSVC"):
        LinearSVC().fit(X, np.ones(len(X)))
    with pytest.raises(DataError, match="LinearSVC: X reaches 1e\\+200"):
        LinearSVC().fit(X * 1e200 / np.abs(X).max(), y)


@pytest.mark.threaded
def test_files_give_the_same_bits(tmp_path):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    X, y = two_classes(5000, 3)
    table = pa.table({**{f"x{j}": X[:, j] for j in range(3)}, "y": y})
    for number in range(2):
        pq.write_table(table.slice(number * 2500, 2500), tmp_path / f"rows-{number}.parquet")
    path = str(tmp_path / "rows-*.parquet")
    model = LinearSVC().fit(path, "y")
    np.testing.assert_allclose(model.coef_, LinearSVC().fit(X, y).coef_, rtol=1e-9)
    assert verify(model, path, "y")


def test_rows_beyond_memory():
    dask = pytest.importorskip("dask.array")
    X, y = two_classes(3000, 3)
    rows, targets = dask.from_array(X, chunks=(1000, 3)), dask.from_array(y, chunks=1000)
    model = LinearSVC().fit(rows, targets)
    np.testing.assert_allclose(model.coef_, LinearSVC().fit(X, y).coef_, rtol=1e-9)
    for refused in ({"loss": "hinge"}, {"penalty": "l1"}, {"multi_class": "crammer_singer"}):
        with pytest.raises(DataError, match=r"LinearSVC: .*memory"):
            LinearSVC(**refused).fit(rows, targets)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_a_file_gives_the_same_predictions(tmp_path, loss):
    X, y = several_classes()
    model = LinearSVC(loss=loss).fit(X, y)
    ln.save(model, tmp_path / "m.safetensors")
    loaded = ln.load(tmp_path / "m.safetensors")
    assert np.array_equal(loaded.decision_function(X), model.decision_function(X))
    assert verify(loaded, X, y)


def test_out_of_time_returns_the_best_so_far():
    X, y = two_classes(20_000, 30)
    with pytest.warns(UserWarning, match="stopped after"):
        model = LinearSVC(loss="hinge", solver="dual", C=100.0, max_iter=10**6, max_seconds=0.3).fit(X, y)
    assert np.isfinite(model.coef_).all() and model.certificate_.value > model.certificate_.tolerance


def test_float32_is_the_same_problem():
    X, y = two_classes()
    single = X.astype(np.float32)
    np.testing.assert_allclose(
        LinearSVC().fit(single, y).coef_, LinearSVC().fit(single.astype(float), y).coef_, rtol=1e-12
    )


def test_cloning_keeps_every_parameter():
    model = LinearSVC(C=3.0, loss="hinge", solver="dual", n_jobs=1)
    assert clone(model).get_params() == model.get_params()
