"""The record of a comparison as people see it: a plain table in a terminal, an HTML table in a notebook.

It is the dict that it was, so that JSON, the report and every reader take it as before.
"""

from __future__ import annotations

from html import escape
from typing import Any, cast

from .record import ComparisonRecord

_STYLE = "text-align:left;padding:2px 10px 2px 0"


class ShownRecord(dict[str, Any]):
    """A comparison record that shows its leaderboard.

    Examples
    --------
    >>> from learnable.evaluation.comparison.shown import ShownRecord
    >>> row = {"rank": 1, "name": "Ridge", "status": "ok", "mean": 0.5, "low": 0.4, "high": 0.6, "verdict": None}
    >>> ShownRecord(leaderboard=[row], data={"target": "y", "rows": 60}, protocol={"metric": {"label": "R²"}})
    Comparison: 1 model for 'y', 60 rows
       model  R² (CV)  interval          to the first  note
    1  Ridge  0.5000   [0.4000, 0.6000]  –
    """

    def __repr__(self) -> str:
        heads, rows = self._table()
        widths = [max(len(line[i]) for line in [heads, *rows]) for i in range(len(heads))]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
            for line in [heads, *rows]
        ]
        return "\n".join([self._title(), *lines, *self._closing()])

    def _repr_html_(self) -> str:
        heads, rows = self._table()
        head = "".join(f'<th style="{_STYLE}">{escape(cell)}</th>' for cell in heads)
        body = "".join(
            "<tr>" + "".join(f'<td style="{_STYLE}">{escape(cell)}</td>' for cell in row) + "</tr>" for row in rows
        )
        below = "".join(f"<p>{escape(line)}</p>" for line in self._closing())
        table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        return f"<div><p><b>{escape(self._title())}</b></p>{table}{below}</div>"

    def _title(self) -> str:
        data = self.get("data") or {}
        board = self.get("leaderboard") or []
        models = sum(not row.get("baseline") for row in board)
        counted = "1 model" if models == 1 else f"{models} models"
        return f"Comparison: {counted} for {data.get('target')!r}, {data.get('rows')} rows"

    def _table(self) -> tuple[list[str], list[list[str]]]:
        """Return the heads and the rows of the leaderboard, as text."""
        metric = ((self.get("protocol") or {}).get("metric") or {}).get("label", "score")
        heads = ["", "model", f"{metric} (CV)", "interval", "to the first", "note"]
        return heads, [_cells(row) for row in self.get("leaderboard") or []]

    def _closing(self) -> list[str]:
        """Return what follows the table: the score of the winner on rows set aside, and where it is saved."""
        lines = []
        if self.get("status") == "interrupted":
            lines.append("Interrupted: only what was finished is here.")
        winner = self.get("winner") or {}
        holdout = winner.get("holdout") or {}
        if _is_number(holdout.get("score")):
            lines.append(f"Hold-out: {winner.get('name')} {_number(holdout['score'])}{_interval(holdout)}")
        if winner.get("model_file"):
            lines.append(f"Saved: {winner['model_file']}")
        return lines


def shown(record: ComparisonRecord) -> ComparisonRecord:
    """Return the record as a dict that shows its leaderboard."""
    return cast(ComparisonRecord, ShownRecord(record))


def _cells(row: dict[str, Any]) -> list[str]:
    ranked = row.get("rank") is not None
    notes = [] if row.get("status") == "ok" else [f"{row.get('status')}: {row.get('reason') or 'not started'}"]
    if row.get("cut"):
        notes.append(f"cut: {row['cut']}")
    return [
        str(row["rank"]) if ranked else "",
        str(row.get("name")),
        _number(row.get("mean")),
        _interval(row).strip(),
        (row.get("verdict") or "–") if ranked else "",
        " ".join("; ".join(notes).split())[:100],
    ]


def _interval(record: dict[str, Any]) -> str:
    low = record.get("low")
    high = record.get("high")
    return f" [{_number(low)}, {_number(high)}]" if _is_number(low) and _is_number(high) else ""


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _number(value: Any) -> str:
    if not _is_number(value):
        return ""
    return f"{value:.4f}" if abs(value) < 1000 else f"{value:.6g}"
