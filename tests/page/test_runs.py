"""Runs: live events, stop keeps what is done, a failure has its reason, a killed process loses nothing finished."""

import asyncio
import json
import os
import shlex
import signal
import subprocess
import sys

import pytest
from tests.evaluation.comparison.tables import numbers
from tests.page.pages import DeskHere, csv_of, enter, is_over, upload, wait_for

from learnable.page import runs
from learnable.page.app import Page
from learnable.page.runs import Run
from learnable.page.store import Limits, Store


def events_of(client, run, after=-1):
    text = client.get(f"/api/runs/{run}/events", params={"after": after}).text
    return [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: ")]


def test_a_race_that_is_stopped_keeps_its_best_model(raced):
    assert raced.stopped["status"] == "stopping" and raced.run["status"] == "stopped"
    assert set(raced.run["files"]) == {"model.safetensors", "report.html", "record.json"}
    record = raced.client.get(f"/runs/{raced.id}/files/record.json").json()
    assert record["status"] == "interrupted" and record["winner"]["holdout"]["score"] > 0.3
    assert {row["name"]: row["status"] for row in record["leaderboard"]}["Ridge (alpha=1)"] == "ok"
    unfinished = [row for row in record["leaderboard"] if row["status"] != "ok"]
    assert unfinished and all(row["status"] in ("interrupted", "skipped", "timeout") for row in unfinished)


def test_the_events_of_a_race_fill_a_leaderboard(raced):
    events = events_of(raced.client, raced.id)
    kinds = [event.get("kind") for event in events]
    for kind in ("stage", "data", "plan", "start", "fold", "finish", "ranked", "end"):
        assert kind in kinds
    assert kinds.index("plan") < kinds.index("start") < kinds.index("finish") < kinds.index("ranked")
    folds = [event for event in events if event.get("kind") == "fold" and event["name"] == "Ridge (alpha=1)"]
    assert len(folds) == 5
    assert events[-1]["status"] == "stopped"  # the event "over"


def test_who_comes_back_hears_only_what_is_new(raced):
    every = events_of(raced.client, raced.id)
    assert events_of(raced.client, raced.id, after=4) == every[5:]
    assert len(events_of(raced.client, raced.id, after=10**6)) == 1


def test_temporary_files_go_with_the_run(raced):
    folder = raced.page.runs.get(raced.id).folder
    assert not os.path.exists(raced.page.runs.get(raced.id).temporary)
    names = {path.name for path in folder.iterdir()} - {"predictions.csv"}  # another test may have asked for them
    assert names == {
        "run.json", "events.jsonl", "end.json", "record.json", "report.html", "model.safetensors", "aside.npz"
    }  # fmt: skip


def test_a_later_server_finds_the_run_again(raced):
    page = Page(Store(raced.page.store.folder), DeskHere())
    client = enter(page)
    assert client.get(f"/api/runs/{raced.id}").json() == raced.client.get(f"/api/runs/{raced.id}").json()
    assert events_of(client, raced.id)[:-1] == events_of(raced.client, raced.id)[:-1]
    client.__exit__(None, None, None)


def test_one_run_at_a_time_and_a_killed_worker_is_told_and_frees_the_place(client, page):
    table = upload(client, b"x,y\n" + b"".join(b"%d,%d\n" % (k, k % 7) for k in range(60)))
    asked = {"kind": "compare", "table": table, "settings": {"target": "y", "seconds": 100.0}}
    first = client.post("/api/runs", json=asked).json()["id"]
    busy = client.post("/api/runs", json=asked)
    assert busy.status_code == 409 and "still running" in busy.json()["error"]
    os.kill(page.runs.get(first).process.pid, signal.SIGKILL if os.name == "posix" else signal.SIGTERM)
    over = wait_for(client, first, is_over)
    assert over["status"] == "failed" and "What was finished stays" in over["reason"]
    assert not os.path.exists(page.runs.get(first).temporary)
    assert page.runs.working() is None


@pytest.mark.long
def test_a_table_that_cannot_be_compared_fails_with_the_reason(client):
    table = upload(client, b"x,y\n1,2\n")
    asked = {"kind": "compare", "table": table, "settings": {"target": "y", "seconds": 30.0, "models": ["Ridge"]}}
    run = client.post("/api/runs", json=asked).json()["id"]
    over = wait_for(client, run, is_over)
    assert over["status"] == "failed" and "row" in over["reason"]
    assert over["files"] == {}


def test_a_full_disk_costs_the_file_of_events_and_not_the_events(tmp_path, monkeypatch):
    async def work():
        run = Run(tmp_path / "nowhere" / "abc", {"kind": "compare"})  # its folder is not there: nothing can be written
        await run.tell({"kind": "finish", "row": {"name": "Ridge"}})
        await run.end("failed", "the disk is full")
        return [event async for _, event in run.follow()]

    told = asyncio.run(work())
    assert [event["kind"] for event in told] == ["finish", "end"]


def test_listeners_are_let_go_when_the_server_ends(tmp_path, monkeypatch):
    monkeypatch.setattr(runs, "_LOOK", 0.01)

    async def work():
        run = Run(tmp_path, {"kind": "compare"})
        heard = []

        async def listen():
            async for _, event in run.follow():
                heard.append(event)

        listener = asyncio.create_task(listen())
        await run.tell({"kind": "stage", "text": "one"})
        await asyncio.sleep(0.05)
        run.closing = True
        await asyncio.wait_for(listener, 5.0)
        return heard

    assert [event["kind"] for event in asyncio.run(work()) if event] == ["stage"]


def test_an_unfinished_run_of_an_earlier_server_keeps_what_it_told(tmp_path):
    store = Store(tmp_path / "session")
    folder = store.folder / "runs" / ("0" * 12)
    folder.mkdir()
    (folder / "run.json").write_text(
        '{"kind": "compare", "settings": {}, "name": "t", "created": ""}', encoding="utf-8"
    )
    lines = '{"kind": "finish", "row": {"name": "Ridge"}}\n{"kind": "fin'  # the last line was being written
    (folder / "events.jsonl").write_text(lines, encoding="utf-8")
    run = Page(store, DeskHere()).runs.get("0" * 12)
    assert run.status == "failed" and [event["kind"] for event in run.events] == ["finish"]


def test_a_run_that_takes_too_long_is_ended_with_the_reason(tmp_path, monkeypatch):
    monkeypatch.setattr(runs, "_GRACE", 0.0)
    monkeypatch.setattr(runs, "_LAST", 0.0)
    page = Page(Store(tmp_path / "session", Limits(run=0.05)), DeskHere())
    client = enter(page)
    table = upload(client, b"x,y\n1,2\n")
    run = client.post("/api/runs", json={"kind": "compare", "table": table, "settings": {"target": "y"}}).json()["id"]
    over = wait_for(client, run, is_over)
    assert over["status"] == "failed" and "took longer than 0.05 s" in over["reason"]
    client.__exit__(None, None, None)


SLOW = """
import sys, time
time.sleep(0.6)
print('{"kind": "finish", "row": {"name": "Ridge"}}', flush=True)
assert sys.stdin.readline() == "stop\\n"
print('{"kind": "finish", "row": {"name": "Lasso"}}', flush=True)
print('{"kind": "end", "status": "stopped", "reason": null}', flush=True)
"""


def test_a_comparison_on_a_busy_machine_is_asked_to_keep_what_is_finished(tmp_path, monkeypatch):
    """It starts later than its limit, counted from its first word, and is not over in time: nothing is thrown away."""
    monkeypatch.setattr(runs, "_GRACE", 0.0)

    async def work():
        run = Run(tmp_path, {"kind": "compare", "seconds": 1.0})
        pipe = asyncio.subprocess.PIPE
        run.process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", SLOW, stdin=pipe, stdout=pipe, start_new_session=True
        )
        await runs.Runs(Store(tmp_path / "session"))._watch(run)
        return run

    run = asyncio.run(work())
    assert (run.status, run.reason) == ("stopped", None)
    assert [event["row"]["name"] for event in run.events if event["kind"] == "finish"] == ["Ridge", "Lasso"]


@pytest.mark.long
def test_the_command_and_the_python_shown_give_the_same_numbers(client, tmp_path):
    """Fits of one process or another may differ in the last digits; what is shown is the same."""
    content = csv_of(numbers(n=150, seed=5))
    table = upload(client, content, "same.csv")
    settings = {"target": "y", "models": ["Ridge", "Lasso"], "seed": 3, "folds": 4, "seconds": 200.0}
    run = client.post("/api/runs", json={"kind": "compare", "table": table, "settings": settings}).json()["id"]
    over = wait_for(client, run, is_over)
    assert over["status"] == "done", over["reason"]
    shown = client.get(f"/runs/{run}/files/record.json").json()
    (tmp_path / "same.csv").write_bytes(content)
    command = [sys.executable, "-m", *shlex.split(over["command"]), "--json"]
    again = json.loads(subprocess.run(command, cwd=tmp_path, capture_output=True, check=True, text=True).stdout)
    code = f"{over['python']}\nimport json; print(json.dumps(record))"
    printed = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, check=True, text=True)
    for other in (again, json.loads(printed.stdout)):
        assert [row["name"] for row in other["leaderboard"]] == [row["name"] for row in shown["leaderboard"]]
        for one, two in zip(shown["leaderboard"], other["leaderboard"], strict=True):
            assert one["scores"] == pytest.approx(two["scores"], rel=1e-9)
        assert other["winner"]["holdout"]["score"] == pytest.approx(shown["winner"]["holdout"]["score"], rel=1e-9)


@pytest.mark.long
def test_another_command_runs_as_on_the_command_line(client, page):
    table = upload(
        client, b"a,b\n" + b"".join(b"%d.5,%d.25\n" % (k % 2 * 50 + k % 5, k % 2 * 30) for k in range(80)), "two.csv"
    )
    settings = {"model": "kmeans", "clusters": 2}
    run = client.post("/api/runs", json={"kind": "cluster", "table": table, "settings": settings}).json()["id"]
    over = wait_for(client, run, is_over)
    assert over["status"] == "done", over["reason"]
    assert set(over["files"]) == {"report.html", "rows.csv", "model.safetensors"}
    assert over["command"].startswith("learnable cluster two.csv --model kmeans --clusters 2 -o rows.csv")
    told = [event["text"] for event in events_of(client, run) if event.get("kind") == "line"]
    assert any("2 clusters of 80 rows" in line for line in told)
    report = client.get(f"/runs/{run}/report")
    assert str(page.store.folder) not in report.text and "learnable cluster two.csv" in report.text
    wrong = {"kind": "topics", "table": table, "settings": {"text": "nothing"}}
    run = client.post("/api/runs", json=wrong).json()["id"]
    over = wait_for(client, run, is_over)
    assert over["status"] == "failed" and "there is no column 'nothing'" in over["reason"]
