"""Names from tables may hold anything: nothing of it may reach the terminal as a command, or break a line."""

import io
import time

import pytest
from rich.console import Console

from learnable.cli.display import (
    Lines,
    LiveRace,
    Silent,
    display_for,
    duration,
    facts,
    headline,
    leaderboard,
    legend,
    one_line,
    score,
    unfinished,
    wide_leaderboard,
)
from learnable.evaluation.comparison.clock import NOT_STARTED
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
    for table in (leaderboard, wide_leaderboard):
        text = shown(table(record_of(row)))
        assert "[red]" in text and "\x1b" not in text and "\x07" not in text
    assert "\x1b" not in unfinished(record_of(row))[0]


def test_lines_are_printed_for_every_model():
    out = Console(file=io.StringIO(), width=120, markup=False)
    display = Lines(out)
    row = new_row("Ridge", "Ridge", {})
    row.update(status="ok", mean=0.5, low=0.4, high=0.6, fit_seconds=0.01)
    late = new_row("Lasso", "Lasso", {})
    late.update(status="timeout", reason=NOT_STARTED)
    protocol = {"scheme": "5-fold", "train_rows": 80, "holdout_rows": 20}
    with display:
        for event in (
            {"kind": "data", "data": DATA, "notes": []},
            {"kind": "stage", "text": "encoding"},
            {"kind": "plan", "models": ["Ridge"], "protocol": protocol},
            {"kind": "start", "name": "Ridge", "seconds": 12.0},
            {"kind": "fold", "name": "Ridge", "score": 0.5},
            {"kind": "finish", "row": row},
            {"kind": "finish", "row": late},
        ):
            display.on_event(event)
    text = out.file.getvalue()
    assert (
        "Ridge (at most 12 s)" in text and "0.5000 [0.4000, 0.6000], fit 10 ms" in text and "20 rows set aside" in text
    )
    assert "Lasso: timeout: no time was left to start it" in text


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


def finished_row(name, model, mean=0.8123, half=0.0123, rank=1, **changes):
    row = new_row(name, model, {})
    row.update(status="ok", rank=rank, mean=mean, low=mean - half, high=mean + half, fit_seconds=0.0123, train_mean=0.9)
    row.update(predict_seconds=0.01, verdict="best" if rank == 1 else "worse")
    row.update(changes)
    return row


def test_the_leaderboard_has_one_line_a_model_within_80_columns():
    long = "RandomForestRegressor (min_samples_leaf=5, max_features=third)"
    late = new_row("KernelRidge (alpha=0.1, kernel=rbf)", "KernelRidge", {})
    late.update(status="timeout", reason="stopped at its limit of 0.0789 s", mean=0.9999)  # of the folds it finished
    unstarted = new_row("LinearSVR", "LinearSVR", {})
    unstarted.update(status="timeout", reason=NOT_STARTED)
    cut = {"done": 3, "of": 100, "unit": "rounds"}
    record = record_of(
        finished_row("HistGradientBoostingRegressor", "HistGradientBoostingRegressor", high=1.0),
        finished_row(long, "RandomForestRegressor", rank=2, cut=cut),
        finished_row(
            "a name of the user's own that goes on and on and on, for ever and ever", "Mine", 1e9, 1e8, rank=3
        ),
        late,
        unstarted,
    )
    record["protocol"] |= {"repeats": 1, "margin": 0.01}
    lines = shown(leaderboard(record, 80)).splitlines()
    assert len(lines) == 2 + 5 and max(len(line.rstrip()) for line in lines) <= 80
    assert "HistGradientBoosting " in lines[2] and "[0.8000, 1.0000]" in lines[2]
    assert "RandomForest leaf=5" in lines[3] and "worse, cut" in lines[3] and "12.3 ms" in lines[3]
    assert "± 0.0123" in lines[3] and "timeout" in lines[5] and "0.9999" not in lines[5]
    assert unfinished(record) == [
        "KernelRidge alpha=0.1 kernel=rbf: timeout: its share of time was up",
        "LinearSVR: timeout: no time was left to start it",
    ]
    behind = [new_row(name, name, {}) for name in ("LDA", "QDA")]
    for number, row in enumerate(behind):
        row.update(status="skipped", reason=f"left behind: accuracy 0.{number} on 4,000 rows")
    [told] = unfinished(record_of(*behind))
    assert told.startswith("LDA, QDA: skipped: left behind on fewer rows for want of time; --details")
    assert any(line.startswith("cut: ") for line in legend(record, details=False))
    assert long.split()[0] in shown(wide_leaderboard(record)).replace("\n", "") or "RandomForest" in shown(
        wide_leaderboard(record)
    )


@pytest.mark.parametrize(
    ("verdict", "difference", "low", "high", "told"),
    [
        ("better", 0.25, 0.1, 0.4, "the model is better by 0.2500 [0.1000, 0.4000]"),
        ("worse", -0.25, -0.4, -0.1, "the model is worse by 0.2500 [0.1000, 0.4000]"),
        (
            "undecided",
            0.1,
            -0.1,
            0.3,
            "which is better cannot be told: the gain of the model is 0.1000 [-0.1000, 0.3000]",
        ),
    ],
)
def test_the_headline_says_better_or_worse_and_never_better_by_less_than_nothing(verdict, difference, low, high, told):
    against = {"name": "baseline: the mean", "score": 0.5, "difference": difference, "low": low, "high": high}
    winner = {
        "name": "Ridge", "holdout": {"score": 0.5 + difference, "low": None, "high": None}, "optimism_note": "",
        "against": against | {"verdict": verdict},
    }  # fmt: skip
    record = {"protocol": {"metric": {"label": "R²"}, "holdout_rows": 20}, "winner": winner}
    assert headline(record)[1] == f"baseline: the mean on the same rows: 0.5000; {told}"
