"""The routes: what the page shows is what the library says, and errors are one line with the reason."""

import io
import json

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
from tests.evaluation.comparison.tables import numbers
from tests.page.pages import csv_of, upload

import learnable as ln

HOSTILE = "<script>alert(1)</script>"


def test_a_lack_of_memory_is_told_in_words(client, monkeypatch):
    from learnable.page import answers

    def greedy(**values):
        raise MemoryError

    monkeypatch.setitem(answers.QUESTIONS, "profile", greedy)
    answered = client.get(f"/api/tables/{upload(client, b'a,b')}")
    assert answered.status_code == 422 and answered.json()["error"].startswith("Out of memory")


def test_the_beginning_tells_forms_and_limits(client):
    state = client.get("/api/state").json()
    assert state["tables"] == [] and set(state["forms"]) == {
        "compare",
        "cluster",
        "hmm",
        "embed",
        "topics",
        "structure",
    }
    assert state["upload"] == 2 * 2**30


def test_a_table_has_its_profile_and_its_rows(client):
    table = upload(client, csv_of(numbers()))
    found = client.get(f"/api/tables/{table}").json()
    assert (found["rows"], found["columns"], found["names"]) == (240, 3, ["x", "kind", "y"])
    assert found["profile"][0]["figure"].startswith("<svg") and "path" not in found
    rows = client.get(f"/api/tables/{table}/rows", params={"start": 238, "count": 50}).json()
    assert rows["total"] == 240 and len(rows["rows"]) == 2
    assert client.get(f"/api/tables/{table}/rows", params={"start": "-1"}).status_code == 400


def test_a_target_is_judged_before_the_race(client):
    table = upload(client, csv_of(numbers()))
    found = client.post(f"/api/tables/{table}/target", json={"target": "y"}).json()
    assert found["task"] == "regression" and "Ridge" in [model["name"] for model in found["models"]]
    assert [metric["name"] for metric in found["metrics"]] == ["r2", "rmse", "mae"]
    checked = client.post(f"/api/tables/{table}/check", json={"target": "y"}).json()
    assert (checked["rows"], checked["features"], checked["task"]) == (240, 2, "regression")
    missing = client.post(f"/api/tables/{table}/target", json={"target": "Y"})
    assert missing.status_code == 422 and "did you mean 'y'" in missing.json()["error"]


def test_hostile_names_and_cells_stay_text(client):
    content = f'"{HOSTILE}","=cmd|x","a""b"\n"{HOSTILE}",1,2\n"\u202etxt",3,4\n'.encode()
    table = upload(client, content, f"{HOSTILE}.csv")
    found = client.get(f"/api/tables/{table}")
    assert found.headers["content-type"] == "application/json"
    assert found.json()["names"][0] == HOSTILE
    assert "<script" not in "".join(column["figure"] or "" for column in found.json()["profile"])
    assert client.get(f"/api/tables/{table}/rows").json()["rows"][0][0] == HOSTILE


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b"a,a\n1,2\n", b"\x00" * 500, b"PAR1 not really"])
def test_a_damaged_table_is_told_in_one_line(client, content):
    name = "t.parquet" if content.startswith(b"PAR1") else "t.csv"
    table = upload(client, content, name)
    answered = client.get(f"/api/tables/{table}")
    assert answered.status_code == 200 or (answered.status_code == 422 and "\n" not in answered.json()["error"])


def test_very_many_columns_come_page_by_page(client):
    names = [f"c{k}" for k in range(1200)]
    table = upload(client, (",".join(names) + "\n" + "\n".join(",".join(["1"] * 1200) for _ in range(3))).encode())
    found = client.get(f"/api/tables/{table}").json()
    assert found["columns"] == 1200 and len(found["names"]) == 1200 and len(found["profile"]) == 30
    assert len(client.get(f"/api/tables/{table}/rows").json()["columns"]) == 60
    assert client.get(f"/api/tables/{table}", params={"start": 1190}).json()["profile"][-1]["name"] == "c1199"


@pytest.mark.parametrize("body", [b"[]", b"{", b"null", b'"x"', b"[" * 100_000])
def test_a_body_that_is_no_object_is_refused(client, body):
    assert client.post("/api/runs", content=body).status_code == 400


def test_a_body_that_is_too_large_is_refused(client):
    assert client.post("/api/runs", content=b" " * (2**20 + 1)).status_code == 413


def test_the_summary_is_what_the_record_says(raced):
    found = raced.ask("summary").json()
    assert found["winner"] == "Ridge (alpha=1)" and found["task"] == "regression" and found["target"] == "y"
    assert "Ridge" in found["verdict"][0] and "<" not in "".join(found["verdict"])
    assert "residual" in found["claim"] and found["columns"][0] == "x"
    assert found["figures"] and all(figure["svg"].startswith("<svg") for figure in found["figures"])


def test_a_prediction_of_the_form_is_the_models_own(raced):
    form = raced.ask("form").json()
    assert [field["name"] for field in form["fields"]] == ["x", "kind"] and form["target"] == "y"
    assert sorted(form["fields"][1]["choices"]) == ["a", "b", "c"]
    values = {"x": "0.5", "kind": "a"}
    found = raced.ask("predict", values=values).json()
    model = ln.load(raced.page.runs.get(raced.id).folder / "model.safetensors")
    row = pa.table({"x": [0.5], "kind": ["a"]})
    lower, upper = model.predict_interval(row)
    assert found["prediction"] == pytest.approx(float(model.predict(row)[0]))
    assert (found["lower"], found["upper"]) == (pytest.approx(float(lower[0])), pytest.approx(float(upper[0])))
    wrong = raced.ask("predict", values={"x": "many"})
    assert wrong.status_code == 422 and wrong.json()["error"] == "x: 'many' is not a number."
    assert raced.ask("predict", values={}).status_code == 200  # empty fields are missing values


def test_the_shares_of_a_row_add_up_to_its_prediction(raced):
    for asked in ({"row": 5}, {"values": {"x": "1.5", "kind": "b"}}):
        found = raced.ask("explain", **asked).json()
        total = sum(share["value"] for share in found["shares"])
        assert found["base"] + total == pytest.approx(found["prediction"])
        assert {share["name"] for share in found["shares"]} == {"x", "kind"}
    assert raced.ask("explain", row=121).json()["error"] == "The table has rows 1 to 120; got 121."


def test_the_effect_of_a_column_is_drawn(raced):
    found = raced.ask("effect", column="x").json()
    slopes = np.diff(found["values"]) / np.diff(found["points"])
    assert found["sign"] == "rises" and np.ptp(slopes) < 1e-6 and found["svg"].startswith("<svg")
    assert raced.ask("effect", column="kind").json()["kind"] == "level"
    assert raced.ask("effect", column="y").status_code == 422


def test_errors_come_page_by_page_the_largest_first(raced):
    found = raced.ask("errors", count=5).json()
    sizes = [abs(row["error"]) for row in found["rows"]]
    assert found["total"] == 24 and sizes == sorted(sizes, reverse=True)
    table = numbers(n=120)
    for row in found["rows"]:
        assert row["actual"] == pytest.approx(table["y"][row["row"] - 1].as_py())
    assert len(raced.ask("errors", start=20).json()["rows"]) == 4
    assert raced.ask("errors", by="magic").status_code == 422


def test_slices_are_cut_by_any_column(raced):
    refused = raced.ask("slices", column="kind")  # 24 rows are too few for three parts of ten
    assert refused.status_code == 422 or refused.json()["parts"]
    found = raced.ask("slices", column="y").json()
    assert found.get("parts") or "cannot be cut" in found["error"]
    assert raced.ask("slices", column="nothing").status_code == 422


def test_what_is_no_question_is_refused(raced):
    for question in ("profile", "predict_file", "answer", "__class__"):
        assert raced.ask(question, path="/etc/passwd", run="/").status_code == 404


def test_a_question_cannot_name_a_path(raced):
    """Values that are not of a question are dropped; the server says which folder and which table."""
    found = raced.ask("form", path="/etc/passwd", run="/").json()
    assert found["target"] == "y"


def test_the_rows_of_a_file_are_predicted(raced):
    rows = csv_of(numbers(n=30, seed=3).drop_columns(["y"]))
    found = raced.client.post(f"/api/runs/{raced.id}/predict-file", params={"name": "new.csv"}, content=rows)
    assert found.json()["rows"] == 30
    saved = raced.client.get(f"/runs/{raced.id}/files/predictions.csv")
    table = pyarrow.csv.read_csv(io.BytesIO(saved.content))
    assert table.column_names == ["x", "kind", "prediction", "lower", "upper"]
    model = ln.load(raced.page.runs.get(raced.id).folder / "model.safetensors")
    np.testing.assert_allclose(table["prediction"].to_numpy(), model.predict(table.select(["x", "kind"])))
    wrong = raced.client.post(f"/api/runs/{raced.id}/predict-file", params={"name": "new.csv"}, content=b"z\n1\n")
    assert wrong.status_code == 422 and "lacks" in wrong.json()["error"]
    refused = raced.client.post(f"/api/runs/{raced.id}/predict-file", params={"name": "m.pkl"}, content=b"x")
    assert refused.status_code == 415


def test_the_report_in_a_frame_runs_no_script(raced):
    answered = raced.client.get(f"/runs/{raced.id}/report")
    policy = answered.headers["content-security-policy"]
    assert "sandbox allow-same-origin" in policy and "script-src" not in policy and "default-src 'none'" in policy
    assert "small &lt;b&gt;.csv" in answered.text and "small <b>" not in answered.text
    assert str(raced.page.store.folder) not in answered.text


def test_files_are_saved_and_not_shown(raced):
    for name in ("model.safetensors", "report.html", "record.json"):
        answered = raced.client.get(f"/runs/{raced.id}/files/{name}")
        assert answered.headers["content-disposition"] == f'attachment; filename="small__b_-{name}"'
        assert "sandbox" in answered.headers["content-security-policy"]
    for name in ("run.json", "aside.npz", "events.jsonl", "..%2f..%2frun.json", "%2e%2e%2frun.json"):
        assert raced.client.get(f"/runs/{raced.id}/files/{name}").status_code == 404


def test_the_commands_shown_are_of_this_run(raced):
    run = raced.run
    assert run["command"].startswith("learnable compare 'small <b>.csv' --target y --seconds 300 --model Ridge")
    assert json.dumps(run).count(str(raced.page.store.folder)) == 0


@pytest.fixture
def lab(monkeypatch):
    """A laboratory of one scene, in place of the library's own."""
    import sys
    from types import ModuleType, SimpleNamespace

    def page(table=None):
        return f"<!doctype html><p>{'built in' if table is None else table.num_rows}</p>"

    found = ModuleType("learnable.lab")
    found.SCENES = {"kmeans": SimpleNamespace(title="k-means", text="Centres move.", takes="two numbers", page=page)}
    monkeypatch.setitem(sys.modules, "learnable.lab", found)


def test_scenes_are_listed(client, lab):
    found = client.get("/api/lab").json()
    assert found == [{"name": "kmeans", "title": "k-means", "text": "Centres move.", "takes": "two numbers"}]
    assert client.get("/api/state").json()["lab"] is True


def test_a_scene_has_an_origin_of_its_own(client, lab):
    table = upload(client, b"a,b\n1,2\n3,4\n")
    for asked, said in (({"name": "kmeans"}, "built in"), ({"name": "kmeans", "table": table}, "<p>2</p>")):
        answered = client.get(f"/lab/{client.post('/api/lab', json=asked).json()['id']}")
        policy = answered.headers["content-security-policy"]
        assert said in answered.text
        assert "sandbox allow-scripts" in policy and "allow-same-origin" not in policy and "connect-src" not in policy


def test_what_is_no_scene_is_refused(client, lab):
    assert client.post("/api/lab", json={"name": "nothing"}).status_code == 422
    assert client.post("/api/lab", json={"name": "kmeans", "table": "/etc/passwd"}).status_code == 404
    assert client.get("/lab/kmeans").status_code == 404


def test_old_scenes_make_room(client, page, lab):
    first = client.post("/api/lab", json={"name": "kmeans"}).json()["id"]
    for _ in range(12):
        client.post("/api/lab", json={"name": "kmeans"})
    assert len(page.scenes_made) == 12 and client.get(f"/lab/{first}").status_code == 404


def test_the_margin_is_fitted_again_where_a_point_was_dropped(client):
    def scene(**more):
        made = client.post("/api/lab", json={"name": "svm", **more})
        assert made.status_code == 201
        return client.get(f"/lab/{made.json()['id']}").text

    there = scene(moves=[[3, 0.5, 1.0]])
    assert "data-live" in there
    assert there != scene(moves=[[3, 0.5, 1.5]])
    assert there == scene(moves=[[3, 0.5, 1.0]])


@pytest.mark.parametrize("moves", [[[1, 2]], [["<b>", 0, 0]], [[1, 2, None]], [[True, 1, 1]], ["abc"], [[10**9, 1, 1]]])
def test_moves_that_are_none_are_refused(client, moves):
    assert client.post("/api/lab", json={"name": "svm", "moves": moves}).status_code in (400, 422)
