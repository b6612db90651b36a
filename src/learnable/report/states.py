"""From the record of a hidden Markov model to one HTML file: the states over time, and how they follow each other."""

from __future__ import annotations

from typing import Any, Final

from ..core.errors import DataError
from ..plots.clusters import cluster_scatter
from ..plots.lines import labelled_lines
from ..plots.markup import Markup, clean
from .clusters import page_of, table_of

FORMAT: Final = "learnable-states"


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
    if not isinstance(record, dict) or record.get("format") != FORMAT:
        raise DataError(f"render_states: the record must be of format {FORMAT!r}. Pass the record of hidden states.")
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
    return page_of(record, "hidden states", f"{len(states)} hidden states", tables, _figures(record, names))


def _states(states: list[Any], columns: list[str]) -> Markup:
    lines = []
    for state in states:
        cells = [str(state["name"]), f"{100 * state['share']:.1f} %", f"{state['stay']:.3g} rows"]
        spread = zip(state["mean"], state["spread"], strict=True)
        lines.append(cells + [f"{mean:.4g} ± {sd:.2g}" for mean, sd in spread])
    return table_of(["state", "share of rows", "mean stay", *columns], lines)


def _figures(record: dict[str, Any], names: list[str]) -> list[tuple[str, Markup]]:
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
