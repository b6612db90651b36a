"""`learnable lab`: the list, a page of a built-in table and of one's own, JSON, wrong usage."""

import json

import pytest


def test_without_a_name_the_scenes_are_listed(learnable):
    code, out, _ = learnable("lab")
    assert code == 0 and "kmeans" in out and "values" in out
    code, out, _ = learnable("lab", "--json")
    assert code == 0 and len(json.loads(out)) == 14


def test_a_scene_becomes_a_page(learnable, folder):
    code, out, _ = learnable("lab", "kmeans")
    assert code == 0 and "steps" in out and "page: kmeans.html" in out
    assert (folder / "kmeans.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    code, out, _ = learnable("lab", "kmeans")
    assert "page: kmeans-2.html" in out


def test_a_table_of_ones_own(learnable, folder):
    (folder / "rows.csv").write_text("<i>a,b\n" + "".join(f"{i},{i * i % 7}\n" for i in range(20)), encoding="utf-8")
    code, out, _ = learnable("lab", "em", "--table", "rows.csv", "-o", "own.html")
    assert code == 0 and "page: own.html" in out
    page = (folder / "own.html").read_text(encoding="utf-8")
    assert "&lt;i&gt;a" in page and "<i>a" not in page


def test_the_steps_as_json(learnable):
    code, out, _ = learnable("lab", "kmeans", "--json")
    assert code == 0 and json.loads(out)["steps"][0]["certificates"]["model"]["kind"] == "ascent"


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["kmean"], 2, "did you mean kmeans?"),
        (["xyz"], 2, "there are descent, lasso"),
        (["--table", "numbers.csv"], 2, "need the name of a scene"),
        (["em", "--table", "missing.csv"], 1, "missing.csv"),
        (["values", "--table", "numbers.csv"], 1, "values: the table must be a grid"),
    ],
)
def test_what_goes_wrong_is_one_line(learnable, arguments, code, said):
    got, out, err = learnable("lab", *arguments)
    assert (got, out) == (code, "") and said in err and err.count("\n") == 1
