"""Kernels that are compiled in the background: who waits for what, and what is said meanwhile."""

import os
import subprocess
import sys
import threading

import pytest

from learnable.evaluation.comparison.ahead import CompileAhead, _groups
from learnable.evaluation.comparison.candidates import Candidate
from learnable.evaluation.comparison.clock import Clock
from learnable.evaluation.comparison.race import Outcome

MODELS = ["Ridge", "DecisionTreeRegressor", "RandomForestRegressor", "HistGradientBoostingRegressor"]


class SlowServer:
    """Runs the jobs in the caller's thread; one that compiles a model in `held` waits for its release."""

    def __init__(self, ready=(), held=(), dying=False):
        self.ready, self.dying, self.jobs = ready, dying, []
        self.release = {name: threading.Event() for name in held}

    def run(self, job, *, seconds=None, on_message=None):
        self.jobs.append(job)
        if job["function"].endswith(":tell_ready"):
            return Outcome("ok", None, [[(name, "regression") for name in self.ready]])
        for name in job["names"]:
            if name in self.release:
                assert self.release[name].wait(30)
            if self.dying:
                return Outcome("failed", "its process was killed")
            on_message(name)
        return Outcome("ok", None)


def entries(names=MODELS):
    return [Candidate(name, name, {}, "path") for name in names]


def order(ahead, emit=lambda event: None, seconds=None):
    return ahead.in_order(entries(), lambda one: one, emit, Clock(seconds))


def test_nothing_is_compiled_where_everything_is_ready():
    server = SlowServer(ready=MODELS)
    ahead = CompileAhead(server, MODELS, "regression")
    assert ahead.wait(30)
    assert [one.name for one in order(ahead)] == MODELS
    assert len(server.jobs) == 1


def test_what_is_ready_for_another_task_is_not_ready():
    server = SlowServer(ready=MODELS)
    assert CompileAhead(server, MODELS, "binary").wait(30)
    assert sorted(name for job in server.jobs[1:] for name in job["names"]) == sorted(MODELS)


def test_models_whose_kernels_are_there_do_not_wait_for_others():
    server = SlowServer(ready=["RandomForestRegressor"], held=["Ridge", "DecisionTreeRegressor", MODELS[3]])
    ahead = CompileAhead(server, MODELS, "regression")
    events = []
    with ahead._changed:
        assert ahead._changed.wait_for(lambda: ahead.is_ready("RandomForestRegressor"), 30)
    race = order(ahead, events.append)
    assert next(race).name == "RandomForestRegressor"
    waiting = [name for name in MODELS if name != "RandomForestRegressor"]
    assert events == [{"kind": "compiling", "models": waiting}]
    for event in server.release.values():
        event.set()
    assert sorted(one.name for one in race) == sorted(waiting)
    assert events[-1] == {"kind": "compiling", "models": []}


def test_waiting_is_told_and_ends_with_the_share_of_the_time():
    server = SlowServer(held=MODELS)
    ahead = CompileAhead(server, MODELS, "regression")
    events = []
    assert next(order(ahead, events.append, seconds=2.0)).name == "Ridge"
    text = [event["text"] for event in events if event["kind"] == "stage"]
    assert text == [f"compiling {', '.join(MODELS[:3])} and 1 more (once on this machine)"]
    for event in server.release.values():
        event.set()


def test_a_compiler_that_dies_holds_up_nobody():
    ahead = CompileAhead(SlowServer(dying=True), MODELS, "regression")
    assert ahead.wait(30)
    assert [one.name for one in order(ahead)] == MODELS


def test_models_that_share_kernels_are_compiled_together():
    assert _groups(MODELS) == [["Ridge"], MODELS[1:3], MODELS[3:]]


@pytest.mark.long
@pytest.mark.parametrize("models", [["Ridge", "KNeighborsRegressor"]])
def test_a_comparison_without_any_compiled_kernel_compiles_beside_the_race(tmp_path, models):
    script = f"""
import numpy as np, pyarrow as pa
from learnable.evaluation import compare
x = np.linspace(0.0, 1.0, 80)
events = []
record = compare(pa.table({{"x": x, "y": np.sin(9 * x)}}), "y", models={models}, on_event=events.append)
print([row["status"] for row in record["leaderboard"]])
names = [name for event in events if event["kind"] == "compiling" for name in event["models"]]
print(sorted({{name.partition(" ")[0] for name in names}}))
"""
    said = []
    for _ in range(2):
        environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
        done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        said.append(done.stdout.splitlines())
    assert said[0][0] == said[1][0] == str(["ok"] * len(said[0][0].split(",")))
    assert said[0][1] == str(sorted(models)) and said[1][1] == "[]"
