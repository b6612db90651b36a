"""From the record of a log of decisions to one HTML file: what each policy would have earned."""

from __future__ import annotations

from typing import Any, Final

from ..core.errors import DataError
from ..plots.intervals import dot_intervals
from ..plots.markup import Markup, clean
from .clusters import page_of, table_of

FORMAT: Final = "learnable-bandit"


def render_bandit(record: dict[str, Any]) -> str:
    """Return the report of a log of decisions as one HTML page.

    Parameters
    ----------
    record : dict
        `format`, `source`, `model`, `rows`, `columns`, `notes`, `logged` (mean reward), `arms` (name, rows, mean,
        spread) and `policies` (policy, value, lower, upper, rows, remark).

    Returns
    -------
    str
        The page: offline, without scripts.

    Examples
    --------
    >>> from learnable.report import render_bandit
    >>> record = {"format": "learnable-bandit", "model": "clicks", "arms": [], "policies": [], "logged": 0.5}
    >>> "<h1>" in render_bandit(record)
    True
    """
    if not isinstance(record, dict) or record.get("format") != FORMAT:
        raise DataError(f"render_bandit: the record must be of format {FORMAT!r}. Pass the record of a log.")
    policies = record.get("policies") or []
    arms = record.get("arms") or []
    tables = [
        (
            "What policies would have earned",
            f"Per decision, with intervals; the log itself earned {record['logged']:.4g}. Effective rows: how many "
            "rows of the policy itself would tell as much.",
            table_of(["policy", "value", "interval", "effective rows", "remark"], [_cells(line) for line in policies]),
        ),
        (
            "The arms in the log",
            "As they were played: what an arm earned there depends on when it was played.",
            table_of(
                ["arm", "rows", "mean ± standard deviation"],
                [
                    [clean(str(arm["name"]), 60), f"{arm['rows']:,}", f"{arm['mean']:.4g} ± {arm['spread']:.2g}"]
                    for arm in arms
                ],
            ),
        ),
    ]
    return page_of(record, "decisions", f"{len(policies)} policies", tables, _figures(policies))


def _cells(line: dict[str, Any]) -> list[str]:
    name = clean(str(line["policy"]), 60)
    if line["value"] is None:
        return [name, "–", "–", "–", clean(str(line["remark"]), 200)]
    interval = f"[{line['lower']:.4g}, {line['upper']:.4g}]"
    return [name, f"{line['value']:.4g}", interval, f"{line['rows']:.0f}", clean(str(line["remark"]), 200)]


def _figures(policies: list[Any]) -> list[tuple[str, Markup]]:
    known = [line for line in policies if line["value"] is not None]
    if not known:
        return []
    shown = dot_intervals(
        [clean(str(line["policy"]), 40) for line in known],
        [line["value"] for line in known],
        [line["lower"] for line in known],
        [line["upper"] for line in known],
        title="What policies would have earned",
        x_label="reward per decision",
    )
    return [("Estimates with intervals: policies whose intervals overlap are not told apart by this log.", shown)]
