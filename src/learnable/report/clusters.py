"""From the record of a clustering to one HTML file: what was found, how many clusters, and what they look like.

As everywhere in this package, text reaches the page escaped, and the page has no script and makes no request.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ..core.errors import DataError
from ..plots.clusters import cluster_scatter
from ..plots.lines import labelled_lines
from ..plots.markup import Markup, clean, join, tag
from .render import environment

FORMAT: Final = "learnable-clusters"
_MOST_COLUMNS: Final = 12


def render_clusters(record: dict[str, Any]) -> str:
    """Return the report of a clustering as one HTML page.

    Parameters
    ----------
    record : dict
        `format`, `source`, `model`, `rows`, `columns`, `notes`, `certificate`, `choice` (criterion and its value for
        each K), `clusters` (size, share, mean and spread of the columns), `picture` (some rows in the plane of the two
        leading principal components, their clusters, centres and covariances), `history` of the objective.

    Returns
    -------
    str
        The page: offline, without scripts.

    Examples
    --------
    >>> from learnable.report import render_clusters
    >>> record = {"format": "learnable-clusters", "model": "KMeans", "columns": ["x"], "clusters": []}
    >>> "<h1>" in render_clusters(record)
    True
    """
    if not isinstance(record, dict) or record.get("format") != FORMAT:
        raise DataError(f"render_clusters: the record must be of format {FORMAT!r}. Pass the record of a clustering.")
    clusters = record.get("clusters") or []
    columns = [clean(str(name), 60) for name in record.get("columns") or []]
    hidden = max(0, len(columns) - _MOST_COLUMNS)
    more = f"; {hidden} further columns are not shown" if hidden else ""
    table = _table(clusters, columns)
    tables = [("The clusters", f"Mean ± standard deviation of each column{more}.", table)]
    return page_of(record, "clusters", f"{len(clusters)} clusters", tables, _figures(record))


def page_of(
    record: dict[str, Any],
    kind: str,
    title: str,
    tables: list[tuple[str, str, Markup]],
    figures: list[tuple[str, Markup]],
) -> str:
    """Return the page of groups of rows, whatever they are called: what was fitted, tables, figures, notes."""
    return environment().get_template("groups.html").render(
        kind=kind,
        title=title,
        source=clean(str(record.get("source", "")), 120),
        model=str(record["model"]),
        rows=f"{record.get('rows', 0):,}",
        n_columns=len(record.get("columns") or []),
        created=str(record.get("created", "")),
        notes=[clean(str(note), 400) for note in record.get("notes") or []],
        certificate=clean(str(record.get("certificate", "")), 300),
        figures=figures,
        tables=tables,
        command=clean(str(record.get("command") or ""), 400),
    )  # fmt: skip


def _figures(record: dict[str, Any]) -> list[tuple[str, Markup]]:
    found = []
    picture, choice, history = (record.get(key) or {} for key in ("picture", "choice", "history"))
    if picture:
        shown = cluster_scatter(
            picture["x"],
            picture["y"],
            picture["labels"],
            centres=picture.get("centres"),
            covariances=picture.get("covariances"),
            title="The rows by cluster",
            x_label=str(picture["x_label"]),
            y_label=str(picture["y_label"]),
        )
        found.append((str(picture.get("caption", "")), shown))
    if choice:
        lines = {str(choice["criterion"]): (choice["candidates"], choice["values"])}
        shown = labelled_lines(lines, title="How many clusters", x_label="clusters", y_label=str(choice["criterion"]))
        found.append((str(choice.get("caption", "")), shown))
    if history:
        values = np.asarray(history["values"], dtype=np.float64)
        lines = {str(history["name"]): (np.arange(len(values)), values)}
        shown = labelled_lines(lines, title="The search", x_label="iteration", y_label=str(history["name"]))
        found.append((str(history.get("caption", "")), shown))
    return found


def _table(clusters: list[Any], columns: list[str]) -> Markup:
    """Return sizes and means of the clusters."""
    lines = []
    for cluster in clusters:
        cells = [str(cluster["name"]), f"{cluster['rows']:,}", f"{100 * cluster['share']:.1f} %"]
        spread = zip(cluster["mean"], cluster["spread"], strict=True)
        lines.append(cells + [f"{mean:.4g} ± {sd:.2g}" for mean, sd in list(spread)[:_MOST_COLUMNS]])
    return table_of(["cluster", "rows", "share", *columns[:_MOST_COLUMNS]], lines)


def table_of(heads: list[str], lines: list[list[str]]) -> Markup:
    """Return cells as a table with a row of headings."""
    head = tag("tr", *(tag("th", name, scope="col") for name in heads))
    body = [tag("tr", *(tag("td", cell) for cell in cells)) for cells in lines]
    return tag("table", tag("thead", head), tag("tbody", join(body)))
