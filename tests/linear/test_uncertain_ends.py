"""Fits that end early: Ctrl-C, time limits and callbacks leave either the old model or an honest new one."""

import json
import os
import select
import signal
import subprocess
import sys
import textwrap
import time
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.callback import ProgressBar
from sklearn.exceptions import ConvergenceWarning
from tests.oracles.logistic import Likelihood
from tests.oracles.ridge import objective

from learnable import LinearRegression, LogisticRegression, Ridge, RidgeCV, verify

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 40)) @ RNG.normal(size=(40, 40))
TARGET = X @ RNG.normal(size=40) + RNG.normal(size=300)
CODES = (TARGET > 0).astype(int)
THREE = np.digitize(TARGET, np.quantile(TARGET, [0.3, 0.6]))

ITERATIVE = {
    "ridge": (Ridge(alpha=0.1, solver="sparse_cg", tol=1e-14), TARGET),
    "ridge, two targets": (Ridge(alpha=0.1, solver="sparse_cg", tol=1e-14), np.column_stack([TARGET, TARGET**2])),
    "ridge, no penalty": (Ridge(alpha=0.0, solver="sparse_cg", tol=1e-14), TARGET),
    "logistic": (LogisticRegression(tol=1e-13), CODES),
    "logistic, lbfgs": (LogisticRegression(solver="lbfgs", tol=1e-10, max_iter=2000), CODES),
    "logistic, newton-cg": (LogisticRegression(solver="newton-cg", tol=1e-13), CODES),
    "softmax": (LogisticRegression(tol=1e-13), THREE),
}
iterative = pytest.mark.parametrize("name", ITERATIVE)


def fresh(name, **parameters):
    model, y = ITERATIVE[name]
    return type(model)(**(model.get_params() | parameters)), y


class Watcher:
    """A callback that counts iterations, may ask to stop, and may raise."""

    def __init__(self, stop_at=None, raise_at=None, error=KeyboardInterrupt):
        self.stop_at, self.raise_at, self.error = stop_at, raise_at, error
        self.names, self.values, self.torn_down = [], [], False

    def setup(self, estimator, context):
        pass

    def on_fit_task_begin(self, estimator, context):
        pass

    def on_fit_task_end(self, estimator, context, *, metadata):
        if metadata is None or "value" not in metadata:
            return False
        self.names.append(context.task_name)
        self.values.append(metadata["value"])
        if len(self.values) == self.raise_at:
            raise self.error
        return self.stop_at is not None and len(self.values) >= self.stop_at

    def teardown(self, estimator, context):
        self.torn_down = True


def iterations_of(model):
    return int(np.max(model.n_iter_))


# ---- Ctrl-C ----


@iterative
@pytest.mark.parametrize("fitted_before", [False, True])
@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_an_interrupted_fit_leaves_the_estimator_as_it_was(name, fitted_before, error):
    model, y = fresh(name)
    if fitted_before:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(X[:200], y[:200])
    watcher = Watcher(raise_at=2, error=error)
    model.set_callbacks(watcher)
    before = dict(vars(model))
    with pytest.raises(error):
        model.fit(X, y)
    assert vars(model).keys() == before.keys()
    assert all(vars(model)[key] is value for key, value in before.items())
    assert watcher.torn_down


LONG_FITS = {
    "logistic, sweeps over the rows": """
        X = rng.normal(size=(40_000, 60))
        model, y = LogisticRegression(solver="lbfgs", tol=0.0, max_iter=10**6), X[:, 0] + rng.normal(size=40_000) > 0
    """,
    "ridge, conjugate gradients": """
        X = sp.random_array((30_000, 3_000), density=0.01, rng=rng, format="csr")
        model, y = Ridge(alpha=1e-9, solver="sparse_cg", tol=0.0, max_iter=10**6), rng.normal(size=30_000)
    """,
    "least squares, a factorisation": """
        X = rng.normal(size=(1_500, 1_500))
        model, y = LinearRegression(), rng.normal(size=1_500)
    """,
    "ridge cv, a decomposition": """
        X = rng.normal(size=(1_800, 1_800))
        model, y = RidgeCV(), rng.normal(size=1_800)
    """,
    "softmax, the search for a separating rule": """
        X = rng.normal(size=(20_000, 3))
        model = LogisticRegression(C=np.inf)
        y = (4 * X @ rng.normal(size=(3, 3)) + rng.gumbel(size=(20_000, 3))).argmax(axis=1)
    """,
}
BEFORE = """
    import json, sys
    import numpy as np, scipy.sparse as sp
    from learnable import LinearRegression, LogisticRegression, Ridge, RidgeCV
    for line in sys.stdin:
        rng = np.random.default_rng(0)
        exec(json.loads(line))
"""
AFTER = """
    type(model)().fit(X[:50, :3], np.arange(50) % 2)  # compiles what this model needs
    print("begun", flush=True)
    try:
        while True:
            model.fit(X, y)
    except KeyboardInterrupt:
        print("answered", flush=True)
"""


@pytest.fixture(scope="module")
def child():
    """A process that runs a program a line; another one, if a test had to end it."""
    started = []

    def running():
        if not started or started[-1].poll() is not None:
            command = [sys.executable, "-W", "ignore", "-c", textwrap.dedent(BEFORE)]
            pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
            started.append(subprocess.Popen(command, text=True, **pipes))
        return started[-1]

    yield running
    for process in started:
        process.kill()
        process.wait()


PATIENCE = 120  # seconds: on a busy machine an answer may take long; a fit that ignored the signal would go on for ever


def answer(child, program):
    """Run a program, interrupt it while it fits, and return what it says; None after a long silence."""
    child.stdin.write(json.dumps(program) + "\n")
    child.stdin.flush()
    assert child.stdout.readline().strip() == "begun", child.stderr.read()
    time.sleep(0.4)
    assert child.poll() is None
    child.send_signal(signal.SIGINT)
    return child.stdout.readline().strip() if select.select([child.stdout], [], [], PATIENCE)[0] else None


@pytest.mark.skipif(os.name != "posix", reason="signals to a child process are sent as on POSIX")
@pytest.mark.parametrize("name", LONG_FITS)
def test_ctrl_c_is_answered_while_a_long_fit_runs(name, child):
    """The child prints when it begins; a signal in the middle must end it; the child would fit again for ever."""
    process = child()
    said = answer(process, "".join(textwrap.dedent(part) for part in (LONG_FITS[name], AFTER)))
    if said is None:
        process.kill()
        process.wait()
        pytest.fail(f"the fit went on for {PATIENCE} seconds after the signal")
    assert said == "answered"


@pytest.mark.threaded
@pytest.mark.skipif(os.name != "posix", reason="signals to a child process are sent as on POSIX")
def test_a_process_whose_fit_was_interrupted_ends_as_any_other(child):
    process, long_fit = child(), LONG_FITS["logistic, sweeps over the rows"]
    assert answer(process, textwrap.dedent(long_fit) + textwrap.dedent(AFTER)) == "answered"
    out, err = process.communicate(timeout=PATIENCE)
    assert out == "" and process.returncode == 0, err


# ---- time limits ----


@iterative
def test_a_tiny_time_limit_returns_the_best_so_far_with_an_honest_certificate(name):
    model, y = fresh(name, max_seconds=1e-9)
    with pytest.warns(ConvergenceWarning, match="stopped after"):
        model.fit(X, y)
    certificate = model.certificate_
    assert not certificate.holds and certificate.value > certificate.tolerance
    assert np.isfinite(model.coef_).all() and np.isfinite(model.predict(X)).all()
    verdict = verify(model, X, y)
    assert not verdict
    # Short of its tolerance, but what it records is true.
    assert len(verdict.reasons) == 1 and "above the tolerance" in verdict.reasons[0], str(verdict)


def test_a_tiny_time_limit_leaves_a_bound_that_really_bounds():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        ridge = Ridge(alpha=0.1, solver="sparse_cg", tol=1e-14, max_seconds=1e-9).fit(X, TARGET)
        logistic = LogisticRegression(max_seconds=1e-9, tol=1e-13).fit(X[:, :5], CODES)
    exact = Ridge(alpha=0.1, solver="svd").fit(X, TARGET)
    found, least = (objective(X, TARGET, m.coef_, m.intercept_, 0.1) for m in (ridge, exact))
    assert float(found - least) <= ridge.certificate_.bound * float(least)
    likelihood = Likelihood(X[:, :5], CODES, 1.0)
    _, least = likelihood.optimum()
    found = likelihood.value(np.column_stack([logistic.intercept_, logistic.coef_]))
    assert float(found - least) <= logistic.certificate_.bound * float(least)


@iterative
def test_an_ample_time_limit_changes_nothing(name):
    model, y = fresh(name)
    limited, _ = fresh(name, max_seconds=1e6)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        np.testing.assert_array_equal(model.fit(X, y).coef_, limited.fit(X, y).coef_)


def test_the_warning_of_a_time_limit_names_the_remedy():
    with pytest.warns(ConvergenceWarning, match="max_seconds"):
        LogisticRegression(max_seconds=1e-9, tol=1e-13).fit(X, CODES)
    with pytest.warns(ConvergenceWarning, match="max_seconds"):
        Ridge(alpha=0.1, solver="sparse_cg", tol=1e-14, max_seconds=1e-9).fit(X, TARGET)


def test_direct_fits_do_not_see_the_time_limit():
    for model in (Ridge(max_seconds=1e-9), LinearRegression(max_seconds=1e-9)):
        assert model.fit(X, TARGET).certificate_.holds


def test_a_time_limit_is_kept_from_the_thinned_start_on():
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(36_000, 32))
    codes = (rows[:, 0] + rng.normal(size=36_000) > 0).astype(int)
    with pytest.warns(ConvergenceWarning):
        model = LogisticRegression(tol=1e-14, max_seconds=1e-9).fit(rows, codes)
    assert iterations_of(model) <= 1 and not model.certificate_.holds


# ---- callbacks ----


@iterative
def test_a_callback_sees_every_iteration(name):
    watcher = Watcher()
    model, y = fresh(name)
    model.set_callbacks(watcher)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y)
    n = iterations_of(model)
    assert n > 2
    assert watcher.names == [f"iteration {i}" for i in range(1, n + 1)]
    assert watcher.torn_down and np.isfinite(watcher.values).all()


@iterative
@pytest.mark.parametrize("stop_at", [1, 3])
def test_a_callback_that_returns_true_stops_the_fit_at_once(name, stop_at):
    watcher = Watcher(stop_at=stop_at)
    model, y = fresh(name)
    model.set_callbacks(watcher)
    with pytest.warns(ConvergenceWarning, match=f"stopped after {stop_at} iteration"):
        model.fit(X, y)
    assert iterations_of(model) == len(watcher.values) == stop_at
    assert model.certificate_.n_iter == stop_at and not model.certificate_.holds
    verdict = verify(model, X, y)
    assert len(verdict.reasons) == 1 and "above the tolerance" in verdict.reasons[0], str(verdict)


@iterative
def test_callbacks_change_nothing_in_the_result(name):
    model, y = fresh(name)
    watched, _ = fresh(name)
    watched.set_callbacks(Watcher())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        np.testing.assert_array_equal(model.fit(X, y).coef_, watched.fit(X, y).coef_)


@pytest.mark.parametrize(
    ("model", "table", "y"),
    [
        (LogisticRegression(), X, CODES),
        (LogisticRegression(), X, THREE),
        (LogisticRegression(), X[:20], CODES[:20]),
        (LogisticRegression(solver="lbfgs", tol=1e-4, max_iter=500), sp.csr_array(X), CODES),
        (Ridge(solver="sparse_cg"), X, TARGET),
        (Ridge(solver="sparse_cg"), sp.csr_array(X), np.column_stack([TARGET, TARGET])),
        (Ridge(solver="sparse_cg", max_iter=500), X, TARGET),
        (Ridge(), X, TARGET),
        (RidgeCV(), X, TARGET),
        (LinearRegression(), X, TARGET),
    ],
    ids=lambda value: repr(value)[:40] if hasattr(value, "fit") else "",
)
def test_the_progress_bar_of_scikit_learn_works(model, table, y, capsys):
    pytest.importorskip("rich")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.set_callbacks(ProgressBar()).fit(table, y)
    assert type(model).__name__ in capsys.readouterr().out


def test_the_values_a_callback_sees_end_at_the_certificate():
    watcher = Watcher()
    model = LogisticRegression().set_callbacks(watcher).fit(X, CODES)
    # After the last iteration only the intercept is polished, which can only tighten the gap.
    assert model.certificate_.value <= watcher.values[-1] <= model.certificate_.tolerance
