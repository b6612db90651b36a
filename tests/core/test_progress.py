import io
import math
import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.callback import ProgressBar
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tests.core.toys import Halving, simple_door

import learnable as ln
from learnable.core import Certificate, estimator, progress
from learnable.core.registry import REGISTRY, resolve
from learnable.core.threads import Background

X, Y = np.arange(12.0)[:, None], np.arange(12.0)


@pytest.fixture(scope="module", autouse=True)
def _no_thread_is_left():
    """The watcher sleeps soon after the last fit, so that tests which count threads do not find it."""
    before = progress._IDLE
    progress._IDLE = 1
    yield
    for thread in threading.enumerate():
        if thread.name == "learnable progress":
            thread.join(10)
            assert not thread.is_alive()
    progress._IDLE = before


class Terminal(io.StringIO):
    def isatty(self):
        return super().isatty() or True  # a closed stream raises


class Slow(Halving):
    """A fit that takes a moment, in steps."""

    _door = simple_door
    moments = 12

    def __init__(self, start=0.0, max_iter=50, tol=1e-6, max_seconds=None, trouble=None):
        super().__init__(start, max_iter, tol, max_seconds, trouble)

    def _fit(self, table, run):
        self.constant_ = float(table.y.mean())
        for k in range(self.moments):
            time.sleep(0.01)
            if self.trouble == "error" and k > self.moments // 2:
                raise ValueError("out of luck")
            run.progress(k + 1, 0.5**k)
        return Certificate("ascent", 0.0, self.tol, n_iter=self.moments)


def show_on(monkeypatch, stream):
    for module in (estimator, progress):  # not sys.stderr, which pytest sets anew between fixture and test
        monkeypatch.setattr(module, "stderr", lambda: stream)


@pytest.fixture
def terminal(monkeypatch):
    """Return what a person sees; half a tenth of a second counts as two."""
    screen = Terminal()
    show_on(monkeypatch, screen)
    monkeypatch.setattr(progress, "PATIENCE", 0.03)
    monkeypatch.setattr(progress, "_TICK", 0.005)
    monkeypatch.setattr(progress, "_watcher", progress._Watcher())
    monkeypatch.setattr(progress, "_IDLE", 20)
    monkeypatch.delenv("LEARNABLE_PROGRESS", raising=False)
    with ln.config_context(progress=True):
        yield screen


def test_a_long_fit_shows_model_step_number_and_time(terminal):
    Slow().fit(X, Y)
    lines = terminal.getvalue().split("\r")
    assert all(line.startswith("Slow ") and " s" in line for line in lines[1:])
    assert any("residual" in line and "left" in line and "━" in line for line in lines)
    assert lines[-1].startswith("Slow") and "step 12" in lines[-1]
    assert terminal.getvalue().endswith("\n") and terminal.getvalue().count("\n") == 1


def test_a_short_fit_shows_nothing(terminal):
    Halving().fit(X, Y)
    assert terminal.getvalue() == ""


def test_an_error_wipes_the_line(terminal):
    with pytest.raises(ValueError, match="out of luck"):
        Slow(trouble="error").fit(X, Y)
    assert "Slow" in terminal.getvalue() and terminal.getvalue().endswith("\r")
    assert terminal.getvalue().split("\r")[-2].strip() == ""
    Slow().fit(X, Y)
    assert terminal.getvalue().endswith("\n")  # the next fit is shown again


def test_the_line_stays_within_the_terminal(terminal, monkeypatch):
    monkeypatch.setenv("COLUMNS", "30")
    Slow().fit(X, Y)
    drawn = terminal.getvalue().rsplit("\r", 1)[0]
    assert max(len(line) for line in drawn.split("\r")) <= 29


def off_by_setting(monkeypatch):
    ln.set_config(progress=False)


def off_by_environment(monkeypatch):
    from learnable.core import config

    monkeypatch.setenv("LEARNABLE_PROGRESS", "0")
    config._progress.set(None)


def no_terminal(monkeypatch):
    monkeypatch.setattr(Terminal, "isatty", lambda self: False)


def worker_process(monkeypatch):
    class Process:
        name = "LokyProcess-1"

    monkeypatch.setattr(progress.multiprocessing, "current_process", Process)


@pytest.mark.parametrize("change", [off_by_setting, off_by_environment, no_terminal, worker_process])
def test_nothing_is_shown_where_nobody_looks(terminal, monkeypatch, change):
    change(monkeypatch)
    Slow().fit(X, Y)
    assert terminal.getvalue() == ""


def test_no_stderr_or_a_closed_one_is_no_trouble(monkeypatch):
    for stream in (None, Terminal()):
        if stream is not None:
            stream.close()
        show_on(monkeypatch, stream)
        assert not progress.is_visible()


def test_a_terminal_without_the_characters_still_shows_the_words(terminal, monkeypatch):
    written = io.BytesIO()
    narrow = io.TextIOWrapper(written, encoding="ascii")
    show_on(monkeypatch, narrow)
    progress._write("\rRidge ━━──")
    assert written.getvalue() == b"\rRidge ????"


def test_other_threads_show_nothing(terminal):
    thread = threading.Thread(target=Slow().fit, args=(X, Y))
    thread.start()
    thread.join()
    assert terminal.getvalue() == ""


class Committee(Slow):
    """A model made of others."""

    def _fit(self, table, run):
        self.members_ = [Slow().fit(table.X, table.y) for _ in range(2)]
        return super()._fit(table, run)


def test_a_model_of_models_shows_itself_alone(terminal):
    Committee().fit(X, Y)
    assert "Committee" in terminal.getvalue() and "Slow" not in terminal.getvalue()


def test_a_silent_outer_fit_does_not_let_its_members_speak(terminal, monkeypatch):
    monkeypatch.setattr(Committee, "verbose", 1, raising=False)
    monkeypatch.setattr(Committee, "__module__", "learnable.ensembles.test")
    # The frame of the outer fit stands in learnable.core.estimator, and its `self` is not the member.
    Committee().fit(X, Y)
    assert terminal.getvalue() == ""


@pytest.mark.parametrize(
    "run",
    [
        lambda: cross_val_score(Slow(), X, Y, cv=2),
        lambda: GridSearchCV(Slow(), {"start": [0.0, 1.0]}, cv=2).fit(X, Y),
        lambda: ln.evaluation.evaluate(Slow(), X, Y, n_splits=2),
    ],
    ids=["cross_val_score", "GridSearchCV", "evaluate"],
)
def test_cross_validation_shows_nothing(terminal, run):
    run()
    assert terminal.getvalue() == ""


def test_a_pipeline_and_a_users_own_function_are_one_fit(terminal):
    make_pipeline(StandardScaler(), Slow()).fit(X, Y)
    assert "Slow" in terminal.getvalue()


@pytest.mark.parametrize(
    ("module", "is_shown"),
    [
        ("learnable.cli.fit", True),
        ("learnable.meta.table_model", True),
        ("notebook", True),
        ("learnable.evaluation.comparison.race", False),
        ("sklearn.model_selection._validation", False),
        ("joblib.parallel", False),
        ("distributed.worker", False),
        ("multiprocessing.pool", False),
    ],
)
def test_who_called_decides(terminal, module, is_shown):
    code = compile("def call(model, X, y):\n    return model.fit(X, y)\n", module, "exec")
    space = {"__name__": module}
    exec(code, space)
    space["call"](Slow(), X, Y)
    assert ("Slow" in terminal.getvalue()) == is_shown


def test_models_that_report_by_themselves_are_left_alone(terminal):
    model = Slow()
    model.verbose = 1
    assert progress.open_line(model, None) is None
    assert progress.open_line(Slow().set_callbacks(ProgressBar()), None) is None


def test_a_line_does_not_change_the_model(terminal):
    rows = np.random.default_rng(0).standard_normal((3000, 6))
    target = rows[:, 0] ** 2 + rows[:, 1]
    model = ln.HistGradientBoostingRegressor(max_iter=40, random_state=0)
    shown = clone(model).fit(rows, target)
    with ln.config_context(progress=False):
        hidden = clone(model).fit(rows, target)
    np.testing.assert_array_equal(shown.predict(rows), hidden.predict(rows))


def test_in_a_notebook_the_thread_of_the_fit_draws(terminal, monkeypatch):
    by = []
    monkeypatch.setattr(progress, "is_notebook", lambda stream: True)
    monkeypatch.setattr(progress, "_write", lambda text: by.append((threading.current_thread(), text)))
    Slow().fit(X, Y)
    assert by and all(thread is threading.main_thread() for thread, _ in by)


class Helped(Slow):
    """A fit that works on a helper thread, as most do that listen to Ctrl-C."""

    def _fit(self, table, run):
        return Background(lambda: Slow._fit(self, table, run)).result()


def test_a_fit_on_a_helper_thread_is_shown_too(terminal, monkeypatch):
    Helped().fit(X, Y)
    assert "Helped" in terminal.getvalue()
    drawn = []
    monkeypatch.setattr(progress, "is_notebook", lambda stream: True)
    monkeypatch.setattr(progress, "_write", drawn.append)
    Helped().fit(X, Y)
    assert len(drawn) > 2


def test_ensembles_of_other_models_count_their_members(terminal):
    ln.BaggingRegressor(Slow(), n_estimators=3, random_state=0).fit(X, Y)
    seen = terminal.getvalue()
    assert "BaggingRegressor" in seen and "model 3 of 3" in seen and "Slow" not in seen
    with pytest.raises(ValueError, match="out of luck"):
        ln.BaggingRegressor(Slow(trouble="error"), n_estimators=3, random_state=0).fit(X, Y)
    assert terminal.getvalue().endswith("\r")


def line_of(total=None, goal=None, max_seconds=None):
    class Model(BaseEstimator):
        tol = goal
        n_estimators = total

    line = progress.Line(Model(), max_seconds, None)
    line.total = total
    return line


def test_time_left_by_a_known_number_of_steps():
    line = line_of(total=100.0)
    line.step(1, 0.9)
    line.begun = (2.0, 1)
    assert line.seconds_left(2.5) is None  # one step has no pace
    line.step(25, 0.7)
    assert line.seconds_left(10.0) == 25.0  # 24 steps in eight seconds
    assert "step 25 of 100, residual 0.7, 10.0 s, about 25.0 s left" in line.text(10.0)


def test_a_narrow_terminal_loses_whole_parts_and_no_half_words():
    line = line_of(total=100.0)
    line.step(1, 0.9)
    line.begun = (2.0, 1)
    line.step(25, 0.7)
    name = type(line.estimator).__name__
    whole = line.text(10.0)
    shown = [line.text(10.0, room) for room in range(len(whole), len(name) + 34, -1)]
    ends = ("10.0 s, about 25.0 s left", "residual 0.7, about 25.0 s left", "step 25 of 100, about 25.0 s left")
    assert shown[0] == whole and all(text.endswith(ends) for text in shown) and len(set(shown)) == 4


def test_time_left_by_the_rate_at_which_the_number_falls():
    line = line_of(goal=1e-6)
    line.step(1, 1.0)
    assert line.seconds_left(0.0) is None  # one number has no rate
    line.step(9, 1e-2)
    assert line.seconds_left(4.0) == pytest.approx(8.0)  # two orders in four seconds, four to go
    line.step(10, math.nan)
    assert line.seconds_left(4.0) is None and "nan" not in line.text(4.0)
    line.step(11, 1e-7)
    assert line.seconds_left(5.0) is None  # it is there


def test_time_left_is_at_most_what_max_seconds_leaves():
    line = line_of(total=100.0, max_seconds=15.0)
    line.begun = (0.0, 0)
    line.step(25, 0.7)
    assert line.seconds_left(10.0) == 5.0
    assert line.seconds_left(20.0) == 0.0


def test_long_times_are_said_in_minutes_and_hours():
    assert [progress._duration(s) for s in (3.25, 61.0, 3599.6, 7300.0)] == [
        "3.2 s",
        "1 min 1 s",
        "1 h 0 min",
        "2 h 1 min",
    ]


def test_the_names_in_the_table_are_classes_of_models():
    bases = {base.__name__ for entry in REGISTRY.values() if entry.estimator for base in resolve(entry.path).__mro__}
    assert set(progress.STEPS) <= bases
    assert progress.steps_of(ln.HistGradientBoostingClassifier).total == "max_iter"
    assert progress.steps_of(ln.GradientBoostingClassifier).total == "n_estimators"
    assert progress.steps_of(ln.Lasso) == progress.Steps()
    for entry in REGISTRY.values():
        if entry.estimator:
            steps = progress.steps_of(resolve(entry.path))
            known = resolve(entry.path)._get_param_names()
            assert steps.total is None or steps.total in known, entry.path


def test_a_real_terminal(tmp_path):
    pty = pytest.importorskip("pty", reason="there are pseudo-terminals on Unix only")
    script = tmp_path / "fit.py"
    script.write_text(
        "import time\n"
        "import learnable as ln\n"
        "from learnable.core import progress\n"
        "progress.PATIENCE, progress._TICK = 0.05, 0.01\n"
        "line = progress.open_line(ln.Ridge(), None)\n"
        "for step in range(12):\n"
        "    line.step(step + 1, 1.0)\n"
        "    time.sleep(0.02)\n"
        "line.close(finished=True)\n"
    )
    parent, child = pty.openpty()
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "LEARNABLE_PROGRESS": "1", "COLUMNS": "120"}
    subprocess.run([sys.executable, str(script)], stderr=child, stdout=subprocess.PIPE, env=environment, check=True)
    os.close(child)
    seen = os.read(parent, 10_000).decode()
    os.close(parent)
    assert "\rRidge" in seen and "step 12" in seen
