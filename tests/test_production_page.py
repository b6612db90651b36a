"""The service of docs/start/production.md answers as the model does; FastAPI itself is no dependency of the library."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import learnable as ln

PAGE = Path(__file__).parents[1] / "docs" / "start" / "production.md"


@pytest.fixture
def client(tmp_path, monkeypatch):
    pytest.importorskip("fastapi", reason="the service of the page needs FastAPI, which the tests do not install")
    pytest.importorskip("httpx", reason="FastAPI's test client needs httpx, which the tests do not install")
    from fastapi.testclient import TestClient

    monkeypatch.chdir(tmp_path)
    text = PAGE.read_text(encoding="utf-8")
    first = re.search(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)[1]
    service = re.search(r"^```py\n(.*?)^```", text, re.MULTILINE | re.DOTALL)[1]
    exec(compile(first, f"{PAGE}, the model", "exec"), {"__name__": "page"})
    namespace = {"__name__": "service"}
    exec(compile(service, f"{PAGE}, the service", "exec"), namespace)
    with TestClient(namespace["app"]) as found:
        yield found


def test_the_service_answers_as_the_model_does(client):
    houses = [
        {"size": 100, "town": "Köln", "sold": "2025-06-01"},
        {"town": "Ulm", "sold": "2025-06-02"},  # a gap
    ]
    answer = client.post("/price", json=houses)
    assert answer.status_code == 200
    rows = pd.DataFrame({"size": [100.0, None], "town": ["Köln", "Ulm"], "sold": ["2025-06-01", "2025-06-02"]})
    rows["sold"] = pd.to_datetime(rows["sold"])
    expected = ln.load("prices.safetensors").predict(rows)
    np.testing.assert_allclose([row["price"] for row in answer.json()], expected)
    assert all(row["low"] < row["price"] < row["high"] for row in answer.json())


def test_the_service_refuses_what_is_no_house(client):
    assert client.post("/price", json=[{"size": -3, "town": "Ulm", "sold": "2025-06-01"}]).status_code == 422
    assert client.post("/price", json=[{"size": 50, "town": "<script>", "sold": "2025-06-01"}]).status_code == 422
