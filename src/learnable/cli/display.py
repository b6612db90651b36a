"""What the tool shows: facts about the table at once, the race as it runs, the leaderboard at the end.

On a terminal the race is a live table; elsewhere every event is a line. Names from the table may hold anything, so
everything shown passes `one_line` first and is never read as markup.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

_WIDTH = 120
_PLURALS = {
    "number": "numbers",
    "boolean": "truth values",
    "category": "categories",
    "date": "dates",
    "text": "free text",
    "identifier": "identifiers",
}


def console(*, stderr: bool = False) -> Console:
    """Return where to print; text that is not for a terminal is not wrapped at its width."""
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else _WIDTH
    return Console(file=stream, width=width, highlight=False, markup=False, emoji=False, soft_wrap=False)


def one_line(text: Any, most: int = 400) -> str:
    r"""Return text in one line of bounded length, without anything a terminal would obey.

    Examples
    --------
    >>> from learnable.cli.display import one_line
    >>> one_line("a\x1b[31m  b\n c")
    'a?[31m b c'
    """
    flat = "".join(c if c.isprintable() else "?" for c in " ".join(str(text).split()))
    return flat if len(flat) <= most else flat[: most - 1] + "…"


def table_of(
    heads: Sequence[str], rows: Sequence[Sequence[Any]], right: Sequence[int] = (), whole: Sequence[int] = ()
) -> Table:
    """Return a plain table; columns in `right` are aligned there, those in `whole` are never broken into lines."""
    from rich import box

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for position, head in enumerate(heads):
        unbroken = position in whole
        width = max((len(str(row[position])) for row in rows), default=0) if unbroken else None
        side: Any = "right" if position in right else "left"
        table.add_column(head, justify=side, overflow="fold", no_wrap=unbroken, min_width=width)
    for row in rows:
        table.add_row(*(cell if isinstance(cell, Text) else Text(one_line(cell)) for cell in row))
    return table


def facts(data: dict[str, Any], notes: Sequence[str]) -> list[str]:
    """Return what there is to know of a table before any model runs, one line each."""
    columns = data["profile"]
    used = [column for column in columns if column["role"] == "feature" or column.get("learned")]
    missing = [c for c in columns if c["missing"] and c["kind"] != "empty"]
    lines = [
        f"{data['source']}: {data['rows']:,} rows, {data['columns']:,} columns",
        f"task: {data['task']} of {data['target']!r} ({data['task_reason']})",
        f"features: {len(used)} ({_kinds(used)})",
        f"missing values: {_missing(missing)}",
    ]
    for kind, label in (("constant", "constant columns"), ("identifier", "identifiers")):
        kinds = ("constant", "empty") if kind == "constant" else (kind,)
        named = [c["name"] for c in columns if c["kind"] in kinds and c["role"] in ("dropped", "feature")]
        lines.append(f"{label}: {_names(named)}")
    leaks = [warning["column"] for warning in data["warnings"] if warning["kind"] == "leak"]
    lines.append(f"suspected leaks: {_names(leaks)}")
    told = ("constant", "identifier", "missing")
    lines += [f"{kind}: {names}" for kind, names in taken_for(used).items()]
    lines += [f"note: {note}" for note in notes]
    lines += [f"warning: {w['text']}" for w in data["warnings"] if w["kind"] not in told]
    return [one_line(line) for line in lines]


def taken_for(columns: Sequence[dict[str, Any]], most: int = 6) -> dict[str, str]:
    """Return the columns of each kind with an example of their values, and what to say of those taken for another."""
    found: dict[str, list[str]] = {}
    for column in columns:
        example = column.get("example")
        shown = "" if example is None else f" ({example})"
        found.setdefault(column["kind"], []).append(f"{column['name']}{shown}")
    lines = {}
    for kind, names in found.items():
        more = f", … ({len(names)})" if len(names) > most else ""
        lines[f"taken for {_PLURALS.get(kind, kind)}"] = ", ".join(names[:most]) + more
    if any(column.get("reading") for column in columns):
        lines["to change that"] = "--as COLUMN=KIND, --drop COLUMN"
    elif found:
        lines["to change that"] = "--drop COLUMN; --keep COLUMN takes an identifier in; --as COLUMN=KIND for text"
    return lines


def _kinds(columns: Sequence[dict[str, Any]]) -> str:
    counts: dict[str, int] = {}
    for column in columns:
        counts[column["kind"]] = counts.get(column["kind"], 0) + 1
    return ", ".join(f"{count} {kind}" for kind, count in counts.items())


def _missing(columns: Sequence[dict[str, Any]]) -> str:
    if not columns:
        return "none"
    largest = sorted(columns, key=lambda c: -c["missing"])[:4]
    shown = ", ".join(f"{c['name']} {c['missing']:,}" for c in largest)
    where = "1 column" if len(columns) == 1 else f"{len(columns)} columns"
    return f"in {where} ({shown}{', …' if len(columns) > 4 else ''})"


def _names(names: Sequence[str], most: int = 6) -> str:
    shown = ", ".join(map(str, names[:most])) + (f", … ({len(names)})" if len(names) > most else "")
    return shown or "none"


def score(value: float | None, digits: int = 4) -> str:
    """Return a score: four decimals, or four digits where those would say nothing.

    Examples
    --------
    >>> from learnable.cli.display import score
    >>> score(0.81234), score(0.0), score(2.5e-7), score(181234.5)
    ('0.8123', '0.0000', '2.5e-07', '1.812e+05')
    """
    if value is None:
        return "–"
    return f"{value:.4g}" if abs(value) >= 1e4 or 0 < abs(value) < 0.5 * 10.0**-digits else f"{value:.{digits}f}"


def duration(seconds: float | None) -> str:
    """Return a time in the unit that suits it."""
    if seconds is None:
        return "–"
    if seconds < 0.1:
        return f"{1000 * seconds:.3g} ms"
    return f"{seconds:.3g} s" if seconds < 100 else f"{seconds / 60:.3g} min"


_FEWEST_LETTERS = 6  # of a model's class that still tell it


def leaderboard(record: dict[str, Any], width: int = 80) -> Table:
    """Return the final table, a line for each model: rank, short name, score with its interval, verdict, fit time."""
    from rich import box

    from ..evaluation.comparison.candidates import short_names

    label = record["protocol"]["metric"]["label"]
    rows = record["leaderboard"]
    cells = [
        [
            "" if row["rank"] is None else str(row["rank"]),
            score(row["mean"] if row["status"] == "ok" else None),
            _plus_minus(row),
            _verdict(row),
            duration(row["fit_seconds"]),
        ]
        for row in rows
    ]
    heads = ["", label, f"{100 * record['protocol']['level']:g} %", "verdict", "fit"]
    taken = sum(max(len(head), *(len(line[k]) for line in cells), 0) + 3 for k, head in enumerate(heads))
    room = max(16, width - taken)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for position, head in enumerate([heads[0], "model", *heads[1:]]):
        side: Any = "right" if position in (0, 2, 5) else "left"
        table.add_column(head, justify=side, no_wrap=True, overflow="ellipsis")
    for name, line in zip(short_names(rows), cells, strict=True):
        table.add_row(*(Text(cell) for cell in (line[0], shortened(one_line(name, 1000), room), *line[1:])))
    return table


def shortened(name: str, most: int) -> str:
    """Return a name of at most so many letters: what is lost is the end of its first word, not the settings.

    The names of baselines are cut at their end.

    Examples
    --------
    >>> from learnable.cli.display import shortened
    >>> shortened("LogisticRegression C=0.01", 20), shortened("baseline: the last value", 22)
    ('LogisticRegr… C=0.01', 'baseline: the last va…')
    """
    first, _, rest = name.partition(" ")
    room = most - len(rest) - 2
    if len(name) <= most or not rest or room < _FEWEST_LETTERS or len(first) <= room or first.endswith(":"):
        return one_line(name, most)
    return f"{first[:room]}… {rest}"


def _plus_minus(row: dict[str, Any]) -> str:
    """Return an interval as ±, or by its ends where it does not lie evenly about the mean."""
    if row["status"] != "ok" or row["low"] is None or row["high"] is None:
        return ""
    below = row["mean"] - row["low"]
    above = row["high"] - row["mean"]
    if abs(above - below) > 0.02 * (above + below):
        return f"[{score(row['low'])}, {score(row['high'])}]"
    return f"± {score(above)}"


def _verdict(row: dict[str, Any]) -> str:
    if row["status"] != "ok":
        return str(row["status"])
    word = row.get("verdict") or "–"
    return f"{word}, cut" if row.get("cut") else word


def unfinished(record: dict[str, Any], most: int = 5) -> list[str]:
    """Return why models have no score, those with the same reason together."""
    from ..evaluation.comparison.candidates import short_names
    from ..evaluation.comparison.clock import NOT_STARTED

    rows = record["leaderboard"]
    found: dict[str, list[str]] = {}
    for name, row in zip(short_names(rows), rows, strict=True):
        if row["status"] != "ok":
            reason = row["reason"] or "not started"
            if reason.startswith("left behind"):
                reason = "left behind on fewer rows for want of time; --details tells why, -m NAME races one alone"
            if row["status"] == "timeout" and row["reason"] != NOT_STARTED:
                reason = "its share of time was up"  # which is a number of its own for each model
            found.setdefault(f"{row['status']}: {reason}", []).append(name)
    return [one_line(f"{_names(names, most)}: {reason}") for reason, names in found.items()]


def wide_leaderboard(record: dict[str, Any]) -> Table:
    """Return the final table with everything: full names, intervals, training scores, times, optimisation."""
    protocol = record["protocol"]
    label = protocol["metric"]["label"]
    level = f"{100 * protocol['level']:g} %"
    rows = []
    for row in record["leaderboard"]:
        if row["status"] == "ok":
            interval = "" if row["low"] is None else f"[{score(row['low'])}, {score(row['high'])}]"
            what = _cut(row["cut"]) if row.get("cut") else certified(row["certificate"])
        else:
            interval = ""
            what = f"{row['status']}: {row['reason'] or 'not started'}"
        rows.append(
            [
                "" if row["rank"] is None else str(row["rank"]),
                row["name"],
                score(row["mean"]),
                interval,
                "" if row["rank"] is None else row.get("verdict") or "–",
                score(row["train_mean"]),
                duration(row["fit_seconds"]),
                duration(row["predict_seconds"]),
                what,
            ]
        )
    heads = ["", "model", f"{label} (CV)", f"{level} interval", "to the first", "train", "fit", "predict"]
    return table_of([*heads, "optimisation"], rows, right=(2, 5, 6, 7))


def certified(certificate: dict[str, Any] | None) -> str:
    """Say in a few words how well a fit was solved; nothing about how good the model is."""
    from ..report.words import certificate_mark

    return certificate_mark(certificate)[1]


def legend(record: dict[str, Any], *, details: bool = True) -> list[str]:
    """Explain the words of the leaderboard that occur in it."""
    rows = [row for row in record["leaderboard"] if row["rank"] is not None]
    words = {row.get("verdict") for row in rows}
    margin = record["protocol"].get("margin")
    told = {
        "worse": "worse: the first is better beyond noise (corrected resampled t-test, level 0.05)",
        "equal": f"equal: within {score(margin)} of the first, at level 0.05",
        "undecided": "undecided: the folds cannot tell",
    }
    lines = [text for word, text in told.items() if word in words]
    if not details and any(row.get("cut") for row in rows):
        lines.append("cut: its share of time ended the fit; --details shows how far it came")
    if details and any(row["certificate"] and row["certificate"]["kind"] != "none" for row in rows):
        lines.append("optimisation: how far a fit is from its optimum; the scores say how good a model is")
    repeats = record["protocol"]["repeats"]
    if repeats > 1:
        lines.append(
            f"the folds were cut {repeats} times for models that the first could not tell apart; the others are "
            "placed by the folds that all share"
        )
    return lines


def headline(record: dict[str, Any]) -> list[str]:
    """Return what was found on the rows set aside: the winner, a baseline on the same rows, their difference."""
    protocol = record["protocol"]
    winner = record["winner"]
    if winner is None or winner["holdout"] is None:
        return []
    judged = winner["holdout"]
    against = winner.get("against")
    given = winner.get("as_given")
    digits = digits_to_tell([judged["score"], (against or {}).get("score"), (given or {}).get("score")])
    label = protocol["metric"]["label"]
    when = protocol.get("time")
    from_to = "" if not when else f" ({when['holdout'][0]} to {when['holdout'][1]})"
    lower = "; lower is better" if protocol["metric"].get("greater_is_better") is False else ""
    lines = [
        f"{winner['name']} on {protocol['holdout_rows']:,} rows set aside{from_to}: {label} "
        f"{score(judged['score'], digits)}{_ends(judged, digits)}{lower}"
    ]
    if against is not None and against["score"] is not None:
        lines.append(
            f"{against['name']} on the same rows: {score(against['score'], digits)}; {_difference(against, digits)}"
        )
    if given is not None:
        copies = record["data"]["copies"]["rows"]
        lines.append(
            f"With the {copies:,} copies on both sides of the split it would read {score(given['score'], digits)}"
            f"{_ends(given, digits)}"
        )
    bound = judged.get("proven") or {}
    if bound.get("bound") is not None:
        lines.append(bound["sentence"])
    return [*lines, winner["optimism_note"]]


def _difference(against: dict[str, Any], digits: int) -> str:
    """Say by how much the model is better or worse than a baseline, or that it cannot be told."""
    if against["verdict"] == "undecided":
        told = f"{score(against['difference'], digits)}{_ends(against, digits)}"
        return f"which is better cannot be told: the gain of the model is {told}"
    if against["verdict"] == "worse":
        turned = {"low": _turned(against["high"]), "high": _turned(against["low"])}
        return f"the model is worse by {score(-against['difference'], digits)}{_ends(turned, digits)}"
    return f"the model is better by {score(against['difference'], digits)}{_ends(against, digits)}"


def _turned(value: float | None) -> float | None:
    return None if value is None else -value


def _ends(found: dict[str, Any], digits: int) -> str:
    if found["low"] is None or found["high"] is None:
        return ""
    return f" [{score(found['low'], digits)}, {score(found['high'], digits)}]"


def digits_to_tell(values: Sequence[float | None], digits: int = 4, most: int = 8) -> int:
    """Return the decimals at which different scores look different.

    Examples
    --------
    >>> from learnable.cli.display import digits_to_tell
    >>> digits_to_tell([0.81, 0.5]), digits_to_tell([0.91234, 0.91232])
    (4, 5)
    """
    known = {value for value in values if value is not None}
    while digits < most and len({score(value, digits) for value in known}) < len(known):
        digits += 1
    return digits


def _cut(cut: dict[str, Any]) -> str:
    """Say how far a fit came before its time was up."""
    total = "" if cut["of"] is None else f" of {cut['of']}"
    return f"CUT after {cut['done']}{total} {cut['unit']}"


class Silent:
    """Shows nothing, for `--json`."""

    def __enter__(self) -> Silent:
        return self

    def __exit__(self, *error: object) -> None:
        return None

    def on_event(self, event: dict[str, Any]) -> None:
        """Ignore it."""


class Lines(Silent):
    """Shows each event as a line, where there is no terminal."""

    def __init__(self, out: Console) -> None:
        self.out = out
        self.started = ""

    def on_event(self, event: dict[str, Any]) -> None:
        """Print what a reader of a log wants to know."""
        kind = event["kind"]
        if kind == "data":
            for line in facts(event["data"], event["notes"]):
                self.out.print(line, soft_wrap=True)
        elif kind == "plan":
            protocol = event["protocol"]
            self.out.print(
                f"{len(event['models'])} models, {protocol['scheme']} on {protocol['train_rows']:,} rows; "
                f"{protocol['holdout_rows']:,} rows set aside{periods(protocol)}",
                soft_wrap=True,
            )
        elif kind == "start":
            limit = "" if event["seconds"] is None else f" (at most {duration(event['seconds'])})"
            self.started = event["name"]
            self.out.print(f"{one_line(self.started)}{limit} …", soft_wrap=True)
        elif kind == "finish":
            name = event["row"]["name"]
            before = "  " if name == self.started else f"{one_line(name)}: "  # whose line stands above, or not at all
            self.out.print(f"{before}{finished(event['row'])}", soft_wrap=True)
        elif kind == "stage" and not event["text"].startswith("encoded"):
            self.out.print(f"{event['text']} …", soft_wrap=True)
        self.out.file.flush()


def periods(protocol: dict[str, Any]) -> str:
    """Say which times are trained on and which are set aside, where the rows have a time."""
    when = protocol.get("time")
    if not when:
        return ""
    first, last = when["train"]
    begin, end = when["holdout"]
    return f"; training {first} to {last}, hold-out {begin} to {end}"


def finished(row: dict[str, Any]) -> str:
    """Say in a line how a model did."""
    if row["status"] != "ok":
        return one_line(f"{row['status']}: {row['reason']}")
    interval = "" if row["low"] is None else f" [{score(row['low'])}, {score(row['high'])}]"
    cut = f", {_cut(row['cut'])}" if row.get("cut") else ""
    return f"{score(row['mean'])}{interval}, fit {duration(row['fit_seconds'])}{cut}"


class LiveRace(Silent):
    """Shows the race as a table that updates itself, with the model that runs and the time that is left."""

    def __init__(self, out: Console, seconds: float | None, started: float) -> None:
        self.out = out
        self.end = None if seconds is None else started + seconds
        self.lines: dict[str, list[str]] = {}
        self.current = ""
        self.current_end = None
        self.stage = "reading"
        self.live = Live(self, console=out, refresh_per_second=8, transient=True)

    def __enter__(self) -> LiveRace:
        self.live.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.live.stop()

    def on_event(self, event: dict[str, Any]) -> None:
        """Update the table."""
        kind = event["kind"]
        if kind == "data":
            for line in facts(event["data"], event["notes"]):
                self.live.console.print(line)
            self.live.console.print()
        elif kind == "plan":
            self.lines = {name: ["waiting", ""] for name in event["models"]}
            told = periods(event.get("protocol") or {}).removeprefix("; ")
            if told:
                self.live.console.print(told)
        elif kind == "stage":
            self.stage = event["text"]
            self.current = ""
        elif kind == "compiling":
            for name, (state, seen) in self.lines.items():
                if state in ("waiting", "compiling"):
                    self.lines[name] = ["compiling" if name in event["models"] else "waiting", seen]
        elif kind == "start":
            self.stage = f"fitting {event['name']}"
            self.current = event["name"]
            self.current_end = None if event["seconds"] is None else time.monotonic() + event["seconds"]
            self.lines[event["name"]] = ["running", ""]
        elif kind == "fold":
            state, seen = self.lines[event["name"]]
            self.lines[event["name"]] = [state, f"{seen}{' ' if seen else ''}{score(event['score'], 3)}"]
        elif kind == "finish":
            row = event["row"]
            self.lines[row["name"]] = ["done" if row["status"] == "ok" else row["status"], finished(row)]
            self.current = ""

    def __rich__(self) -> Group:
        parts: list[Any] = [self._table()] if self.lines else []
        left = "" if self.end is None else f" · {duration(max(0.0, self.end - time.monotonic()))} left"
        if self.current and self.current_end is not None:
            left += f" ({duration(max(0.0, self.current_end - time.monotonic()))} for this model)"
        dots = "." * (1 + int(time.monotonic() * 2) % 3)
        return Group(*parts, Text(one_line(f"{self.stage} {dots:<3}{left}")))

    def _table(self) -> Table:
        """Return a line for each model, cut at the width of the terminal."""
        from rich import box

        from ..evaluation.comparison.candidates import short_name

        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
        for head in ("model", "state", "scores"):
            table.add_column(head, no_wrap=True, overflow="ellipsis")
        for name, line in self.lines.items():
            shown = one_line(short_name(name, name.partition(" (")[0]), 36)
            table.add_row(*(Text(one_line(cell)) for cell in (shown, *line)))
        return table


def display_for(out: Console, seconds: float | None, started: float, *, quiet: bool = False) -> Silent:
    """Return the display that suits where the output goes."""
    if quiet:
        return Silent()
    return LiveRace(out, seconds, started) if out.is_terminal else Lines(out)
