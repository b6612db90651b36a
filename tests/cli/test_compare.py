"""`learnable compare` as a user runs it: files, exit codes, Ctrl-C, the time limit, broken tables."""

import json
import os
import signal
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from tests.evaluation.comparison.tables import numbers

ROOT = Path(__file__).parents[2]
HANGING = "tests.evaluation.comparison.hostile_models:Hanging"


def environment():
    return os.environ | {"PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'src'}"}


def test_the_demo_from_end_to_end(folder, learnable):
    """With no table it takes its own; the file it writes predicts, with the command it prints, and verifies."""
    code, out, err = learnable("compare", "-m", "Ridge", "--details")
    assert code == 0 and err == ""
    for words in ("1,200 rows", "identifiers: sale_id", "constant columns: country", "suspected leaks: none"):
        assert words in out
    for words in ("baseline: the mean", "rows set aside: R²", "the one to quote", "seed 0; learnable", "solved to"):
        assert words in out
    assert "baseline: the mean on the same rows: " in out and "the model is better by 0." in out
    assert "proven" not in out
    assert (folder / "report.html").stat().st_size > 10_000 and not list(folder.glob(".*"))
    command = next(line for line in out.splitlines() if line.startswith("predict with:")).partition("learnable ")[2]
    code, out, _ = learnable(*command.split())
    assert code == 0 and out.splitlines()[0] == '"prediction","lower","upper"' and len(out.splitlines()) == 1201
    assert learnable("verify", "model.safetensors", "demo:houses")[0] == 0


@pytest.mark.parametrize("models", [("-m", "LogisticRegression"), pytest.param((), marks=pytest.mark.long)])
def test_json_is_all_that_is_printed(folder, learnable, models):
    code, out, err = learnable("compare", "classes.csv", "-t", "label", *models, "--json", "--no-report", "--no-save")
    record = json.loads(out)
    assert code == 0 and err == "" and record["format"] == "learnable-comparison"
    assert record["command"].startswith("learnable compare classes.csv -t label") and record["advice"] is not None
    assert record["winner"]["model_file"] is None
    assert sorted(path.name for path in folder.iterdir()) == ["classes.csv", "numbers.csv"]


def read_until(process, words):
    seen = ""
    for line in process.stdout:
        seen += line
        if words in line:
            return seen
    raise AssertionError(f"{words!r} was never said: {seen}{process.stderr.read()}")


def test_ctrl_c_keeps_what_is_done(folder, start, leftovers):
    process = start("compare", "numbers.csv", "-t", "y", "-m", "Ridge", "-m", HANGING, env=environment())
    seen = read_until(process, "Hanging")
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130 and err == ""
    assert "Interrupted: this is what was finished." in out and "Ridge (alpha=1)" in seen + out
    assert (folder / "report.html").exists() and not (folder / "model.safetensors").exists()
    assert leftovers() == [] and not list(folder.glob(".*"))


@pytest.mark.long
def test_the_limit_is_kept_and_the_rest_is_there(folder, start, leftovers):
    """Whoever is late is ended by a timer with exit code 1: a record shows that everything ended in time."""
    limit = 30
    process = start(
        *("compare", "numbers.csv", "-t", "y", "-m", HANGING, "-m", "Ridge", "--seconds", limit, "--json"),
        env=environment(),
    )
    out, err = process.communicate(timeout=120)
    record = json.loads(out)
    assert process.returncode == 0 and err == "" and record["protocol"]["seconds_limit"] == limit
    assert record["timing"]["total"] < limit
    states = {row["name"]: row["status"] for row in record["leaderboard"]}
    assert states["Hanging"] == "timeout" and states["Ridge (alpha=1)"] == "ok"
    assert record["winner"]["holdout"]["score"] > 0.5 and (folder / "model.safetensors").exists()
    assert leftovers() == []


@pytest.mark.long
def test_a_hopeless_limit_and_termination_leave_nothing_behind(folder, start, leftovers):
    hopeless = start("compare", "numbers.csv", "-t", "y", "--seconds", 0.5)
    asked_to_leave = start("compare", "numbers.csv", "-t", "y", "-m", HANGING, env=environment())
    read_until(asked_to_leave, "Hanging")
    asked_to_leave.send_signal(signal.SIGTERM)
    _, err = hopeless.communicate(timeout=60)
    assert hopeless.returncode == 1 and err.count("\n") == 1 and "--seconds" in err
    asked_to_leave.communicate(timeout=60)
    assert asked_to_leave.returncode == 128 + signal.SIGTERM
    assert leftovers() == [] and not list(folder.glob(".*"))
    assert sorted(path.name for path in folder.iterdir()) == ["classes.csv", "numbers.csv"]


def write(name, text, encoding="utf-8"):
    Path(name).write_bytes(text if isinstance(text, bytes) else text.encode(encoding))


HOSTILE = {
    "empty.csv": ("", "empty"),
    "header.csv": ("x,y\n", "no rows"),
    "one_row.csv": ("x,y\n1,2\n", "at least 10"),
    "one_column.csv": ("y\n" + "".join(f"{i / 7}\n" for i in range(30)), "no column to learn from"),
    "all_missing.csv": ("x,y\n" + "".join(f",{i / 7}\n" for i in range(30)), "no column to learn from"),
    "twice.csv": ("x,x,y\n" + "".join(f"{i},{i * i},{i % 3}\n" for i in range(30)), "more than once"),
    "one_class.csv": ("x,y\n" + "".join(f"{i % 5},yes\n" for i in range(30)), "one class only"),
    "constant.csv": ("x,y\n" + "".join(f"{i % 5},1.5\n" for i in range(30)), "nothing to predict"),
    "binary.csv": (bytes(range(256)) * 50, "text"),
    "binary.parquet": (bytes(range(256)) * 50, "cannot be read"),
    "sheet.xlsx": (b"PK\x03\x04", ".xlsx"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_table_that_cannot_be_used_is_one_clear_line(learnable, name):
    content, message = HOSTILE[name]
    write(name, content)
    code, _, err = learnable("compare", name, "-t", "y", "--json", "--no-report", "--no-save")
    assert code == 1 and message in err and err.startswith("learnable: ") and err.count("\n") == 1


def test_a_folder_without_tables_is_one_clear_line(folder, learnable):
    (folder / "void").mkdir()
    code, _, err = learnable("compare", "void", "-t", "y")
    assert code == 1 and "void" in err and err.count("\n") == 1


def test_semicolons_latin_letters_and_missing_targets(learnable):
    rng = np.random.default_rng(0)
    size, town = rng.uniform(40, 150, 120), rng.choice(["Köln", "Münster", "Zürich"], 120)
    lines = [f"{s:.2f};{t};{3 * s + 50 * (t == 'Köln'):.2f}".replace(".", ",") for s, t in zip(size, town, strict=True)]
    lines[:7] = [line.rpartition(";")[0] + ";" for line in lines[:7]]
    write("häuser.csv", "größe;straße;preis\n" + "\n".join(lines) + "\n", "latin-1")
    code, out, _ = learnable(
        *("compare", "häuser.csv", "-t", "preis", "-m", "LinearRegression", "--json", "--no-report", "--no-save")
    )
    record = json.loads(out)
    assert code == 0 and record["data"]["rows"] == 113 and "7 rows without" in record["data"]["warnings"][0]["text"]
    assert record["winner"]["holdout"]["score"] > 0.999


def test_groups_time_and_many_columns(learnable):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 300))
    columns = {f"c{j}": X[:, j] for j in range(300)}
    table = pa.table(columns | {"who": np.arange(90) // 3, "y": X[:, 0] + 0.1 * rng.normal(size=90)})
    pq.write_table(table, "wide.parquet")
    options = ("-m", "Ridge", "--no-tune", "--json", "--no-report", "--no-save")
    code, out, _ = learnable("compare", "wide.parquet", "-t", "y", "--groups", "who", *options)
    assert code == 0 and json.loads(out)["protocol"]["scheme"].startswith("grouped")
    pyarrow.csv.write_csv(numbers().append_column("day", pa.array(np.arange(240))), "days.csv")
    code, out, _ = learnable("compare", "days.csv", "-t", "y", "--time", "day", *options)
    assert code == 0 and json.loads(out)["protocol"]["scheme"].startswith("forward")


def test_a_report_that_cannot_be_written_is_said_in_a_line(learnable):
    code, _, err = learnable(
        "compare", "numbers.csv", "-t", "y", "-m", "Ridge", "--no-save", "--report", "no/where.html"
    )
    assert code == 1 and err.count("\n") == 1 and "no/where.html" in err


def write_sales(form):
    """Write 120 days of sales in random order; the first 60 days have day and month up to twelve only by chance."""
    rng = np.random.default_rng(0)
    days = np.datetime64("2023-11-20") + np.arange(120)
    texts = [day.astype(object).strftime(form) for day in days]
    names = [day.astype(object).strftime("%A") for day in days]
    x = rng.normal(size=120)
    table = {"day": texts, "name": names, "cost": [f"${1000 + 100 * v:,.2f}" for v in x], "y": x + rng.normal(size=120)}
    pyarrow.csv.write_csv(pa.table(table).take(rng.permutation(120)), "sales.csv")


SALES = ("compare", "sales.csv", "-t", "y", "-m", "LinearRegression", "--no-report", "--no-save")


@pytest.mark.parametrize("form", ["%d/%m/%Y", "%d.%m.%Y", "%m/%d/%Y"])
def test_dates_order_the_rows_and_the_periods_are_printed(learnable, form):
    write_sales(form)
    code, out, err = learnable(*SALES, "--time", "day")
    assert code == 0 and err == ""
    assert "training 2023-11-20 to 2024-02-23, hold-out 2024-02-24 to 2024-03-18" in out
    assert "rows set aside (2024-02-24 to 2024-03-18): R²" in out
    assert "baselines in time: the last value and the value 7 days before, from the targets before each row" in out
    # Long names are cut to what the terminal's width leaves, which depends on how the fit times are written.
    assert out.count("baseline: the l") == 1 and out.count("baseline: the v") >= 1
    assert "'cost' is read as amounts in $" in out and "identifiers: none" in out


def test_what_is_no_order_of_time_is_refused_and_what_is_ambiguous_is_asked(folder, learnable):
    write_sales("%d/%m/%Y")
    code, _, err = learnable(*SALES, "--time", "name")
    assert code == 1 and "no order of rows" in err and "which is no date" in err
    rows = "\n".join(f"{1 + k % 12:02d}/{1 + k // 12:02d}/2024,{k % 7},{k + 0.5}" for k in range(60))
    (folder / "short.csv").write_text(f"day,x,y\n{rows}\n")
    ask = ("compare", "short.csv", "-t", "y", "--time", "day", "-m", "Ridge", "--no-report", "--no-save", "--json")
    code, _, err = learnable(*ask)
    assert code == 1 and "(--dayfirst)" in err and "(--no-dayfirst)" in err
    ends = [json.loads(learnable(*ask, option)[1])["protocol"]["time"] for option in ("--dayfirst", "--no-dayfirst")]
    assert ends[0]["holdout"][1] == "2024-05-12" and ends[1]["holdout"][1] == "2024-12-05"


def test_quiet_prints_the_score_and_the_files_and_nothing_is_replaced_unsaid(folder, learnable):
    (folder / "report.html").write_text("mine")
    asked = ("compare", "numbers.csv", "-t", "y", "-m", "Ridge", "--no-tune", "-q")
    code, out, err = learnable(*asked)
    lines = out.splitlines()
    assert code == 0 and err == "" and len(lines) == 4
    assert "rows set aside: R²" in lines[0] and lines[1] == "report: report-2.html"
    assert lines[2] == "model: model.safetensors" and lines[3].startswith("note: report.html is there already")
    assert (folder / "report.html").read_text() == "mine" and "<html" in (folder / "report-2.html").read_text()
    code, out, _ = learnable(*asked, "--force", "-o", "numbers.csv")
    assert code == 2
    code, out, _ = learnable(*asked, "--force", "-o", "model.safetensors")
    assert code == 0 and "report.html was there already and is replaced" in out
    assert (
        "model.safetensors was there already and is replaced" in out and "<html" in (folder / "report.html").read_text()
    )


def test_the_input_is_never_replaced(folder, learnable):
    before = (folder / "numbers.csv").read_bytes()
    for asked in (
        ("compare", "numbers.csv", "-t", "y", "-m", "Ridge", "-o", "numbers.csv"),
        ("compare", "numbers.csv", "-t", "y", "-m", "Ridge", "--report", "./numbers.csv", "--force"),
        ("fit", "numbers.csv", "-t", "y", "-m", "Ridge", "-o", "numbers.csv"),
        ("cluster", "numbers.csv", "-o", "numbers.csv"),
        ("hmm", "numbers.csv", "-c", "y", "--report", "numbers.csv"),
    ):
        code, _, err = learnable(*asked)
        assert code == 2 and "would be replaced; give another name" in err, asked
    assert (folder / "numbers.csv").read_bytes() == before
