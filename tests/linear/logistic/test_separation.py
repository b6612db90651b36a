"""Maximum likelihood exists exactly where no linear rule separates the classes; elsewhere there is a clear error."""

import os
import subprocess
import sys
from pathlib import Path

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from sklearn.exceptions import ConvergenceWarning
from tests.data.on_disk import streamed

from learnable import LogisticRegression, verify
from learnable.core import DataError, SeparableDataError

pytestmark = pytest.mark.filterwarnings("error::sklearn.exceptions.ConvergenceWarning")


def overlapping(n=200, d=3, n_classes=2, seed=0, noise=2.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    codes = (X @ rng.normal(size=(d, n_classes)) + noise * rng.gumbel(size=(n, n_classes))).argmax(axis=1)
    codes[:n_classes] = np.arange(n_classes)
    return X, codes


def separates(X, codes, intercept=True):
    """Decide by a linear program of its own: maximise the sum of margins of a rule that never errs."""
    rows = np.column_stack([np.ones(len(X)), X]) if intercept else np.asarray(X)
    n_classes = int(codes.max()) + 1
    blocks = []
    for row, own in zip(rows, codes, strict=True):
        for rival in set(range(n_classes)) - {int(own)}:
            block = np.zeros((n_classes, rows.shape[1]))
            block[own], block[rival] = row, -row
            blocks.append(block.ravel())
    margins = np.array(blocks)
    result = linprog(
        -margins.sum(axis=0), A_ub=-margins, b_ub=np.zeros(len(margins)), bounds=(-1, 1), method="highs-ds"
    )
    return -result.fun > 1e-7


COMPLETE = {
    "one column": (np.array([[0.0], [1.0], [2.0], [3.0]]), [0, 0, 1, 1]),
    "two columns": (np.array([[0, 0], [1, 0], [0, 1], [3, 3], [4, 3], [3, 4.0]]), [0, 0, 0, 1, 1, 1]),
    "a hair's breadth": (np.array([[0.0], [1.0], [1.0 + 1e-6], [2.0]]), [0, 0, 1, 1]),
    "three classes": (np.array([[0.0], [0.1], [1.0], [1.1], [2.0], [2.1]]), [0, 0, 1, 1, 2, 2]),
}
QUASI = {
    "a tie at the border": (np.array([[0.0], [1.0], [2.0], [2.0], [3.0], [4.0]]), [0, 0, 0, 1, 1, 1]),
    "a group of one class": (
        np.column_stack([np.tile([0.0, 1, 2, 3, 4, 5], 4), np.arange(24) >= 20]),
        [*([0, 1, 0, 1, 0, 1, 1, 0] * 2), 1, 0, 1, 1, *[1, 1, 1, 1]],
    ),
    "one row of its own column": (
        np.column_stack([np.tile([0.0, 1, 2, 3, 4, 5], 4), np.arange(24) == 7]),
        [0, 1, 1, 0, 1, 0] * 4,
    ),
}


@pytest.mark.parametrize("name", [*COMPLETE, *QUASI])
def test_separable_data_have_no_maximum_likelihood(name):
    X, y = (COMPLETE | QUASI)[name]
    assert separates(X, np.array(y))
    for table in (X, sp.csr_array(X), X.astype(np.float32)):
        with pytest.raises(SeparableDataError, match=r"LogisticRegression: a linear rule separates .* finite C"):
            LogisticRegression(C=np.inf).fit(table, y)


@pytest.mark.parametrize("name", [*COMPLETE, *QUASI])
@pytest.mark.parametrize("C", [1e-3, 1.0, 1e4, 1e6])
def test_separable_data_with_a_penalty_are_certified(name, C):
    X, y = (COMPLETE | QUASI)[name]
    model = LogisticRegression(C=C).fit(X, y)
    assert model.certificate_.kind == "gap" and model.certificate_.holds
    assert np.isfinite(model.coef_).all() and verify(model, X, y)


def test_data_separable_only_through_the_intercept():
    X, y = np.array([[1.0], [2.0], [3.0], [4.0]]), [0, 0, 1, 1]
    assert separates(X, np.array(y)) and not separates(X, np.array(y), intercept=False)
    with pytest.raises(SeparableDataError):
        LogisticRegression(C=np.inf).fit(X, y)
    model = LogisticRegression(C=np.inf, fit_intercept=False).fit(X, y)
    assert model.certificate_.holds and verify(model, X, y)


def test_data_separable_only_without_an_intercept_in_the_way():
    X, y = np.array([[-1.0], [-2.0], [3.0], [4.0]]), [0, 0, 1, 1]
    with pytest.raises(SeparableDataError):
        LogisticRegression(C=np.inf, fit_intercept=False).fit(X, y)


@pytest.mark.parametrize("n", [60, 600])
def test_one_separable_class_among_several(n):
    X, codes = overlapping(n)
    codes[: n // 4] = 2
    X[: n // 4] += 50.0
    with pytest.raises(SeparableDataError):
        LogisticRegression(C=np.inf).fit(X, codes)
    rest = codes < 2
    assert LogisticRegression(C=np.inf).fit(X[rest], codes[rest]).certificate_.holds


@pytest.mark.parametrize("n", [30, 3000])
@pytest.mark.parametrize("tol", [1e-4, 1e-8])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_rare_group_of_one_class_is_found_whatever_the_tolerance(n, tol, dtype):
    """A column that marks three rows of one class: the likelihood grows for ever along it, if only a little."""
    X, codes = overlapping(n)
    mark = np.zeros(n)
    mark[[3, 11, 17]] = 1.0
    codes[mark == 1] = 1
    with pytest.raises(SeparableDataError):
        LogisticRegression(C=np.inf, tol=tol).fit(np.column_stack([X, mark]).astype(dtype), codes)


def test_quasi_separation_in_a_large_table_is_found(monkeypatch):
    """However many entries the table has, the answer is not "a maximum" where there is none."""
    from learnable.linear.logistic import separation

    monkeypatch.setattr(separation, "_LARGEST_PROGRAM", 10, raising=False)
    X, y = QUASI["a group of one class"]
    with pytest.raises(SeparableDataError):
        LogisticRegression(C=np.inf).fit(X, y)


@pytest.mark.parametrize("max_iter", [1, 2, 5])
def test_a_fit_cut_short_does_not_pass_for_a_maximum(max_iter):
    X, y = QUASI["a group of one class"]
    model = LogisticRegression(C=np.inf, max_iter=max_iter)
    with pytest.raises((SeparableDataError, ConvergenceWarning)):
        model.fit(X, y)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("noise", [0.5, 2.0])
def test_overlapping_data_have_a_maximum(n_classes, noise):
    X, codes = overlapping(300, 3, n_classes, noise=noise)
    model = LogisticRegression(C=np.inf).fit(X, codes)
    assert model.certificate_.kind == "stationarity" and model.certificate_.holds
    assert verify(model, X, codes)


def test_one_overlapping_pair_is_enough():
    X = np.r_[np.linspace(-30, -1, 40), np.linspace(1, 30, 40), 1.5, -1.5][:, None]
    y = np.r_[np.zeros(40), np.ones(40), 0, 1]
    assert not separates(X, y.astype(int))
    model = LogisticRegression(C=np.inf).fit(X, y)
    assert model.certificate_.holds and np.isfinite(model.coef_).all()


def test_large_but_finite_margins_are_a_maximum():
    """Scores beyond any fixed threshold are not yet separation."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=400) * 10
    codes = (x + 0.3 * rng.logistic(size=400) > 0).astype(int)
    x[:2], codes[:2] = [0.5, -0.5], [0, 1]
    model = LogisticRegression(C=np.inf).fit(x[:, None], codes)
    assert np.abs(model.decision_function(x[:, None])).max() > 30 and model.certificate_.holds


def test_directions_that_the_data_do_not_span_are_no_separation():
    X, codes = overlapping(100)
    X = np.column_stack([X, X[:, 0], np.full(100, 3.0), np.zeros(100)])
    model = LogisticRegression(C=np.inf).fit(X, codes)
    assert model.certificate_.holds and np.isfinite(model.coef_).all()
    plain = LogisticRegression(C=np.inf).fit(X[:, :3], codes)
    np.testing.assert_allclose(model.predict_proba(X), plain.predict_proba(X[:, :3]), atol=1e-6)


def test_rows_of_zero_weight_neither_separate_nor_overlap():
    X, codes = overlapping(60)
    X = np.r_[X, X]
    weight = np.r_[np.ones(60), np.zeros(60)]
    model = LogisticRegression(C=np.inf).fit(X, np.r_[codes, 1 - codes], weight)
    np.testing.assert_allclose(model.coef_, LogisticRegression(C=np.inf).fit(X[:60], codes).coef_, rtol=1e-9)
    line, y = COMPLETE["one column"]
    with pytest.raises(SeparableDataError):
        LogisticRegression(C=np.inf).fit(np.r_[line, line], [*y, 1, 1, 0, 0], [1] * 4 + [0] * 4)


def test_the_error_is_a_data_error_and_leaves_the_model_as_it_was():
    X, y = COMPLETE["two columns"]
    model = LogisticRegression().fit(X, y)
    before = dict(vars(model), C=np.inf)
    with pytest.raises(DataError):
        model.set_params(C=np.inf).fit(X, y)
    assert vars(model) == before


@settings(deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 10_000),
    n=st.integers(5, 12),
    d=st.integers(1, 2),
    n_classes=st.sampled_from([2, 3]),
    intercept=st.booleans(),
    grid=st.sampled_from([2, 3, 6]),
)
def test_the_verdict_is_that_of_a_linear_program(seed, n, d, n_classes, intercept, grid):
    rng = np.random.default_rng(seed)
    X, codes = rng.integers(-grid, grid + 1, size=(n, d)).astype(float), rng.integers(0, n_classes, n)
    assume(len(set(codes.tolist())) == n_classes)
    model = LogisticRegression(C=np.inf, fit_intercept=intercept, max_iter=500)
    if separates(X, codes, intercept):
        with pytest.raises(SeparableDataError):
            model.fit(X, codes)
    else:
        assert model.fit(X, codes).certificate_.holds


def generated_table(seed):
    """Return rows, codes, intercept and tolerance: grids with ties or normal rows, little or much noise, collinear."""
    rng = np.random.default_rng(seed)
    n, d, n_classes = int(rng.integers(5, 60)), int(rng.integers(1, 4)), int(rng.integers(2, 5))
    grid = int(rng.choice([1, 2, 3, 6]))
    X = rng.integers(-grid, grid + 1, size=(n, d)).astype(float) if rng.random() < 0.5 else rng.normal(size=(n, d))
    noise = rng.choice([0.1, 1.0, 4.0])
    codes = (X @ rng.normal(size=(d, n_classes)) + noise * rng.gumbel(size=(n, n_classes))).argmax(axis=1)
    if rng.random() < 0.3:
        X = np.column_stack([X, X[:, 0]])
    codes[:n_classes] = np.arange(n_classes)
    return X, codes, bool(rng.random() < 0.7), float(rng.choice([1e-4, 1e-8, 1e-12, 1e-14]))


def called_separable(model, *data):
    """Tell whether the fit is refused; one that is not must be at a maximum."""
    try:
        model.fit(*data)
    except SeparableDataError:
        return True
    assert model.certificate_.holds or model.tol < 1e-13
    return False


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_verdict_needs_no_linear_program(monkeypatch):
    """As for rows beyond memory, or too many: Newton steps alone decide every one of these tables rightly."""
    from learnable.linear.logistic import separation

    monkeypatch.setattr(separation, "_some_direction_separates", lambda problem: pytest.fail("undecided"))
    verdicts = []
    for seed in range(150):
        X, codes, intercept, tol = generated_table(seed)
        model = LogisticRegression(C=np.inf, fit_intercept=intercept, max_iter=500, tol=tol)
        verdicts.append(called_separable(model, X, codes))
        assert verdicts[-1] == separates(X, codes, intercept), seed
    assert 0.1 < np.mean(verdicts) < 0.5


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("where", ["files", pytest.param("dask", marks=pytest.mark.long)])
def test_rows_beyond_memory_get_the_verdict_of_memory(where, tmp_path):
    for seed in range(12):
        X, codes, intercept, tol = generated_table(seed)
        table = pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])]).assign(target=codes)
        folder = tmp_path / str(seed)
        folder.mkdir()
        source = streamed(table, folder, 2) if where == "files" else dd.from_pandas(table, npartitions=3)
        model = LogisticRegression(C=np.inf, fit_intercept=intercept, max_iter=500, tol=tol)
        assert called_separable(model, source, "target") == separates(X, codes, intercept), seed


MACHINE = """
import warnings
import numpy as np
warnings.simplefilter("ignore")
from tests.linear.logistic.test_separation import called_separable, generated_table, separates
from learnable import LogisticRegression
from learnable.linear.logistic import separation
separation._LARGEST_PROGRAM = 0
for seed in range(1000, 1040):
    X, codes, intercept, tol = generated_table(seed)
    model = LogisticRegression(C=np.inf, fit_intercept=intercept, max_iter=500, tol=tol)
    assert called_separable(model, X, codes) == separates(X, codes, intercept), seed
"""


def processor_has(flag):
    info = Path("/proc/cpuinfo")
    return info.exists() and f" {flag}" in info.read_text()


@pytest.mark.parametrize(
    "core, needs, threads",
    [
        ("Haswell", "avx2", "1"),
        pytest.param("Zen", "avx2", "2", marks=pytest.mark.long),
        pytest.param("SkylakeX", "avx512f", "1", marks=pytest.mark.long),
    ],
)
def test_the_verdict_does_not_depend_on_the_machine(core, needs, threads):
    """Other BLAS kernels round otherwise; at a maximum the gradient is nothing but rounding."""
    if not processor_has(needs):
        pytest.skip(f"this processor cannot run the {core} kernels")
    settings_of_blas = {"OPENBLAS_CORETYPE": core, "OPENBLAS_NUM_THREADS": threads}
    root = Path(__file__).parents[3]
    done = subprocess.run(
        [sys.executable, "-c", MACHINE], env=os.environ | settings_of_blas, cwd=root, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
