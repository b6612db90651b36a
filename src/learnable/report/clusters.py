"""From the record of a clustering to one HTML file: what was found, how many clusters, and what they look like.

As everywhere in this package, text reaches the page escaped, and the page has no script and makes no request.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ..core.errors import DataError
from ..plots.distributions import dot_intervals
from ..plots.lines import labelled_lines
from ..plots.markup import Markup, clean, join, tag
from ..plots.plane import cluster_scatter
from .render import environment

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
    _require_format(record, "render_clusters", "learnable-clusters", "a clustering")
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


def _require_format(record: Any, owner: str, name: str, what: str) -> None:
    if not isinstance(record, dict) or record.get("format") != name:
        raise DataError(f"{owner}: the record must be of format {name!r}. Pass the record of {what}.")


# --------------------------------------------------------------------------------------------------------------------
# From the record of a hidden Markov model to one HTML file: the states over time, and how they follow each other.


def render_states(record: dict[str, Any]) -> str:
    """Return the report of hidden states as one HTML page.

    Parameters
    ----------
    record : dict
        `format`, `source`, `model`, `rows`, `columns`, `notes`, `certificate`, `choice` (criterion and its value for
        each number of states), `states` (name, share, mean and spread of the columns, mean stay), `transitions`,
        `series` (row numbers, values of the first column, states).

    Returns
    -------
    str
        The page: offline, without scripts.

    Examples
    --------
    >>> from learnable.report import render_states
    >>> record = {"format": "learnable-states", "model": "GaussianHMM", "states": [], "transitions": []}
    >>> "<h1>" in render_states(record)
    True
    """
    _require_format(record, "render_states", "learnable-states", "hidden states")
    states = record.get("states") or []
    names = [clean(str(state["name"]), 60) for state in states]
    columns = [clean(str(name), 60) for name in record.get("columns") or []]
    moves = [
        [name, *(f"{100 * chance:.1f} %" for chance in row)]
        for name, row in zip(names, record["transitions"], strict=True)
    ]
    look = "Mean ± standard deviation of each column in the state's rows."
    follow = "Chance of the next row's state, given this one's."
    tables = [
        ("The states", look, _states(states, columns)),
        ("From state to state", follow, table_of(["from", *names], moves)),
    ]
    return page_of(record, "hidden states", f"{len(states)} hidden states", tables, _states_figures(record, names))


def _states(states: list[Any], columns: list[str]) -> Markup:
    lines = []
    for state in states:
        cells = [str(state["name"]), f"{100 * state['share']:.1f} %", f"{state['stay']:.3g} rows"]
        spread = zip(state["mean"], state["spread"], strict=True)
        lines.append(cells + [f"{mean:.4g} ± {sd:.2g}" for mean, sd in spread])
    return table_of(["state", "share of rows", "mean stay", *columns], lines)


def _states_figures(record: dict[str, Any], names: list[str]) -> list[tuple[str, Markup]]:
    found = []
    series = record.get("series") or {}
    choice = record.get("choice") or {}
    if series:
        shown = cluster_scatter(
            series["x"],
            series["y"],
            series["labels"],
            names=names,
            title="The rows by state",
            x_label="row",
            y_label=clean(str(series["name"]), 60),
        )
        found.append(("The rows in the order of time, coloured by their most probable state.", shown))
    if choice:
        lines = {str(choice["criterion"]): (choice["candidates"], choice["values"])}
        shown = labelled_lines(lines, title="How many states", x_label="states", y_label=str(choice["criterion"]))
        found.append((f"The {choice['criterion']} of each number of states: the least is taken.", shown))
    return found


# --------------------------------------------------------------------------------------------------------------------
# From the record of a log of decisions to one HTML file: what each policy would have earned.


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
    _require_format(record, "render_bandit", "learnable-bandit", "a log")
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
    return page_of(record, "decisions", f"{len(policies)} policies", tables, _bandit_figures(policies))


def _cells(line: dict[str, Any]) -> list[str]:
    name = clean(str(line["policy"]), 60)
    if line["value"] is None:
        return [name, "–", "–", "–", clean(str(line["remark"]), 200)]
    interval = f"[{line['lower']:.4g}, {line['upper']:.4g}]"
    return [name, f"{line['value']:.4g}", interval, f"{line['rows']:.0f}", clean(str(line["remark"]), 200)]


def _bandit_figures(policies: list[Any]) -> list[tuple[str, Markup]]:
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
