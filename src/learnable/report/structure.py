"""From the record of a search for populations to one HTML file: bars of proportions, F_ST, the choice of K."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from ..core.errors import DataError
from ..plots.lines import labelled_lines
from ..plots.markup import Markup, clean, tag
from ..plots.shares import COLOURS, share_bars
from .clusters import page_of

FORMAT: Final = "learnable-structure"


def render_structure(record: dict[str, Any]) -> str:
    """Return the report on population structure as one HTML page.

    Parameters
    ----------
    record : dict
        `format`, `source`, `model`, `rows`, `columns`, `notes`, `certificate`, `strips` (a dict for each K, in order:
        K, shares of the individuals), `groups` (or None), `best` (K), `fst`, `sizes`, `by_group` (rows of name, number,
        mean shares) and `choice` (criterion, candidates, values, errors, caption).

    Returns
    -------
    str
        The page: offline, without scripts.

    Examples
    --------
    >>> from learnable.report import render_structure
    >>> strips = [{"K": 2, "shares": [[0.2, 0.8], [1.0, 0.0]]}]
    >>> record = {"format": "learnable-structure", "model": "PopulationStructure", "strips": strips, "best": 2}
    >>> "<h1>" in render_structure(record)
    True
    """
    if not isinstance(record, dict) or record.get("format") != FORMAT:
        raise DataError(f"render_structure: the record must be of format {FORMAT!r}. Pass the record of a search.")
    best = int(record["best"])
    shown = "Each column is an individual, each colour a population; colours mean the same in all strips."
    tables = [("Proportions", shown, _bars(record))]
    if record.get("by_group"):
        heads = ["group", "individuals", *(_population(k) for k in range(best))]
        lines = [
            [clean(str(line["name"]), 60), f"{line['n']:,}", *(f"{share:.3f}" for share in line["shares"])]
            for line in record["by_group"]
        ]
        text = f"Mean proportions of the sampled groups, K = {best}."
        tables.append(("Groups", text, _shaded(heads, lines, np.zeros((len(lines), best + 1)))))
    if record.get("fst") is not None and best > 1:
        fst = np.asarray(record["fst"], dtype=np.float64)
        heads = ["", *(_population(k) for k in range(best))]
        lines = [[_population(j), *("–" if j == k else f"{fst[j, k]:.3f}" for k in range(best))] for j in range(best)]
        tables.append(("Distances", "F_ST between populations (Hudson): 0 for equals, 1 where no allele is shared.",
                       _shaded(heads, lines, fst)))  # fmt: skip
    title = "1 population" if best == 1 else f"{best} populations"
    return page_of(record, "populations", title, tables, _figures(record))


def _population(k: int) -> Markup:
    """Return the name of a population beside the colour that it has in the bars."""
    style = f"display:inline-block;width:.7em;height:.7em;margin-right:.4em;background:{COLOURS[k % len(COLOURS)]}"
    return tag("span", tag("span", style=style), f"population {k + 1}")


def _shaded(heads: Sequence[Any], lines: Sequence[Sequence[Any]], values: Any) -> Markup:
    """Return a table whose cells are as dark as their numbers are large; the first of each row names it."""
    most = float(values.max()) or 1.0
    head = tag("tr", *(tag("th", name, scope="col") for name in heads))
    body = []
    for j, cells in enumerate(lines):
        drawn = [tag("th", cells[0], scope="row", style="white-space:nowrap")]
        for k, cell in enumerate(cells[1:]):
            share = round(40 * float(values[j, k]) / most)
            shade = f"background:color-mix(in srgb, var(--ln-accent, #00695c) {share}%, transparent);padding-left:.5em"
            drawn.append(tag("td", cell, style=shade if share else None))
        body.append(tag("tr", *drawn))
    return tag("table", tag("thead", head), tag("tbody", *body))


def _bars(record: dict[str, Any]) -> Markup:
    strips = record["strips"]
    return share_bars(
        [strip["shares"] for strip in strips],
        names=[f"K = {strip['K']}" for strip in strips],
        groups=record.get("groups"),
        title="Proportions of the individuals",
    )


def _figures(record: dict[str, Any]) -> list[tuple[str, Markup]]:
    found = []
    choice = record.get("choice")
    if choice and len(choice["candidates"]) > 1:
        candidates = choice["candidates"]
        values = np.asarray(choice["values"], dtype=np.float64)
        errors = np.asarray(choice["errors"], dtype=np.float64)
        lines = {
            "mean": (candidates, values),
            "± 1 s.e.": (
                [c for c in candidates for _ in range(3)],
                [v for a, e in zip(values, errors, strict=True) for v in (a - e, a + e, np.nan)],
            ),
        }
        # Half a step of room, and enough of it that the axis names whole numbers alone.
        room = max(0.5, 1.3 - 0.5 * (max(candidates) - min(candidates)))
        drawn = labelled_lines(
            lines,
            x_range=(min(candidates) - room, max(candidates) + room),
            title="How many populations",
            x_label="K",
            y_label=str(choice["criterion"]),
        )
        found.append((str(choice["caption"]), drawn))
    return found
