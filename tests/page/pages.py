"""A page without a browser: the application itself, a visitor who has the cookie, and one race that was stopped."""

import io
import time

import pyarrow.csv
from starlette.testclient import TestClient
from tests.evaluation.comparison.tables import numbers

from learnable.page.answers import answer
from learnable.page.app import Page
from learnable.page.store import RefusedError, Store

HOST = "http://127.0.0.1:8000"
OURS = {"X-Learnable": "page"}


class DeskHere:
    """Answers in this process: the same functions, no process to start."""

    busy = False

    async def ask(self, question, **values):
        found = answer({"question": question} | values)
        if "error" in found:
            raise RefusedError(found["error"], 422)
        return found["answer"]

    async def close(self):
        pass


def csv_of(table):
    sink = io.BytesIO()
    pyarrow.csv.write_csv(table, sink)
    return sink.getvalue()


def enter(page):
    """Return a visitor who came by the link."""
    client = TestClient(page.app, base_url=HOST, headers=OURS)
    client.__enter__()
    assert client.get(page.start_path).status_code == 200
    return client


def upload(client, content, name="table.csv"):
    answered = client.post("/api/tables", params={"name": name}, content=content)
    assert answered.status_code == 201, answered.text
    return answered.json()["id"]


def wait_for(client, run, done, seconds=120):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = client.get(f"/api/runs/{run}").json()
        if done(found):
            return found
        time.sleep(0.05)
    raise AssertionError(f"still {found['status']} after {seconds} s")


def is_over(run):
    return run["status"] in ("done", "stopped", "failed")


class Raced:
    """A race of two models that was stopped when the second began; what it left is what the other tests look at."""

    def __init__(self, folder):
        self.page = Page(Store(folder), DeskHere())
        self.client = enter(self.page)
        self.table = upload(self.client, csv_of(numbers(n=120)), "small <b>.csv")
        settings = {"target": "y", "models": ["Ridge", "GaussianProcessRegressor", "MLPRegressor"], "seconds": 300.0}
        started = self.client.post("/api/runs", json={"kind": "compare", "table": self.table, "settings": settings})
        assert started.status_code == 201, started.text
        self.id = started.json()["id"]
        wait_for(self.client, self.id, lambda found: is_over(found) or self.finished())
        self.stopped = self.client.post(f"/api/runs/{self.id}/stop").json()
        self.run = wait_for(self.client, self.id, is_over)

    def finished(self):
        events = self.page.runs.get(self.id).events
        return any(e["kind"] == "finish" and e["row"]["status"] == "ok" and not e["row"]["baseline"] for e in events)

    def ask(self, question, **values):
        return self.client.post(f"/api/runs/{self.id}/ask/{question}", json=values)
