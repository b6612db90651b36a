"""Names from tables may hold anything: nothing of it may reach the terminal as a command, or break a line."""

import io
import time

import pytest
from rich.console import Console

from learnable.cli.display import Lines, LiveRace, Silent, display_for, duration, facts, leaderboard, one_line, score
from learnable.evaluation.comparison.record import new_row

EVIL = "[red]\x1b]0;title\x07\n\x1b[2J"


def record_of(*rows):
    return {"leaderboard": list(rows), "protocol": {"metric": {"label": "R²"}, "level": 0.95}}


def shown(renderable, **options):
    out = Console(file=io.StringIO(), width=120, markup=False, highlight=False, **options)
    out.print(renderable)
    return out.file.getvalue()


def profile(name, kind, role="feature", missing=0):
    return {"name": name, "kind": kind, "role": role, "missing": missing, "example": "7" if kind == "number" else None}


DATA = {
    "source": "t.csv",
    "rows": 1200,
    "columns": 5,
    "task": "regression",
    "target": "y",
    "task_reason": "numbers",
    "profile": [
        profile("a", "number", missing=7),
        profile("id", "identifier", "dropped"),
        profile("same", "constant", "dropped"),
        profile(EVIL, "category"),
        profile("y", "identifier", "target"),
    ],
    "warnings": [{"kind": "leak", "column": EVIL, "text": f"{EVIL} predicts y"}],
}


def test_the_facts_name_everything_a_reader_must_know():
    text = "\n".join(facts(DATA, ["one row left out"]))
    for expected in ("1,200 rows, 5 columns", "task: regression of 'y'", "a 7", "constant columns: same"):
        assert expected in text
    assert "taken for numbers: a (7)" in text and "to change that: --drop COLUMN" in text
    assert "identifiers: id\n" in text and "suspected leaks: [red]" in text and "note: one row left out" in text
    assert "\x1b" not in text and "\x07" not in text and len(text.splitlines()) == 12


def test_nothing_in_a_name_is_obeyed():
    row = new_row(EVIL, "Model", {})
    row.update(status="failed", reason=EVIL)
    text = shown(leaderboard(record_of(row)))
    assert "[red]" in text and "\x1b" not in text and "\x07" not in text


def test_lines_are_printed_for_every_model():
    out = Console(file=io.StringIO(), width=120, markup=False)
    display = Lines(out)
    row = new_row("Ridge", "Ridge", {})
    row.update(status="ok", mean=0.5, low=0.4, high=0.6, fit_seconds=0.01)
    protocol = {"scheme": "5-fold", "train_rows": 80, "holdout_rows": 20}
    with display:
        for event in (
            {"kind": "data", "data": DATA, "notes": []},
            {"kind": "stage", "text": "encoding"},
            {"kind": "plan", "models": ["Ridge"], "protocol": protocol},
            {"kind": "start", "name": "Ridge", "seconds": 12.0},
            {"kind": "fold", "name": "Ridge", "score": 0.5},
            {"kind": "finish", "row": row},
        ):
            display.on_event(event)
    text = out.file.getvalue()
    assert (
        "Ridge (at most 12 s)" in text and "0.5000 [0.4000, 0.6000], fit 10 ms" in text and "20 rows set aside" in text
    )


def test_the_live_display_names_the_model_and_the_time_left():
    out = Console(file=io.StringIO(), width=120, markup=False, force_terminal=True)
    display = LiveRace(out, 60.0, time.monotonic())
    with display:
        display.on_event({"kind": "plan", "models": ["Ridge", EVIL]})
        display.on_event({"kind": "start", "name": "Ridge", "seconds": 20.0})
        display.on_event({"kind": "fold", "name": "Ridge", "score": 0.25})
        text = shown(display)
    assert "fitting Ridge" in text and "left" in text and "for this model" in text and "0.250" in text
    assert "\x1b]0" not in text and "\x07" not in text


def test_each_place_has_its_display():
    plain, terminal = Console(file=io.StringIO()), Console(file=io.StringIO(), force_terminal=True)
    assert type(display_for(plain, None, 0.0)) is Lines and type(display_for(terminal, None, 0.0)) is LiveRace
    assert type(display_for(terminal, None, 0.0, quiet=True)) is Silent


@pytest.mark.parametrize(
    ("seconds", "text"), [(None, "–"), (0.00012, "0.12 ms"), (0.5, "0.5 s"), (42.0, "42 s"), (600.0, "10 min")]
)
def test_durations(seconds, text):
    assert duration(seconds) == text


def test_scores_and_lines():
    assert score(None) == "–" and score(-0.25) == "-0.2500" and score(1e-9) == "1e-09"
    assert one_line("x" * 1000, 10) == "x" * 9 + "…"
