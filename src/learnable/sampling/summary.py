"""A table of what chains say about each number: as text, as HTML, as a dataframe."""

from __future__ import annotations

import html
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.errors import DataError
from . import diagnostics

if TYPE_CHECKING:
    from .chains import Chains
    from .diagnostics import Array

#: Rows that the text shows; the dataframe has all.
_MOST_ROWS = 40


@dataclass(frozen=True)
class Summary:
    """Estimates with their Monte Carlo errors, one row per number.

    Attributes
    ----------
    labels : list of str
        Names of the rows.
    columns : dict of str to array
        mean, sd, mcse, the quantiles, ess_bulk, ess_tail, rhat.
    notes : list of str
        The certificate and what is wrong, in sentences.
    """

    labels: list[str]
    columns: dict[str, Any]
    notes: list[str]

    def __getitem__(self, column: str) -> Any:
        """Return one column."""
        return self.columns[column]

    def row(self, label: str) -> dict[str, float]:
        """Return the numbers of one row by column."""
        if label not in self.labels:
            raise DataError(f"Summary: there is no row {label!r}; there are {', '.join(self.labels[:10])} …")
        j = self.labels.index(label)
        return {name: float(values[j]) for name, values in self.columns.items()}

    def to_frame(self) -> Any:
        """Return a pandas dataframe with the labels as its index."""
        import pandas as pd

        return pd.DataFrame(self.columns, index=pd.Index(self.labels, name="parameter"))

    def _cells(self) -> list[list[str]]:
        shown = range(min(len(self.labels), _MOST_ROWS))
        rows = [["", *self.columns]]
        for j in shown:
            rows.append([self.labels[j], *(_shown(name, values[j]) for name, values in self.columns.items())])
        return rows

    def _more(self) -> str:
        hidden = len(self.labels) - _MOST_ROWS
        return f"… and {hidden} more rows; to_frame() has all" if hidden > 0 else ""

    def __str__(self) -> str:
        cells = self._cells()
        widths = [max(len(row[k]) for row in cells) for k in range(len(cells[0]))]
        lines = ["  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in cells]
        return "\n".join([*lines, *filter(None, [self._more()]), *self.notes])

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        head, *rows = self._cells()
        top = "".join(f"<th>{html.escape(cell)}</th>" for cell in head)
        body = ""
        for row in rows:
            numbers = "".join(f"<td>{html.escape(cell)}</td>" for cell in row[1:])
            body += f"<tr><th>{html.escape(row[0])}</th>{numbers}</tr>"
        notes = "".join(f"<p>{html.escape(note)}</p>" for note in [self._more(), *self.notes] if note)
        return f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>{notes}"


def summarise(chains: Chains, level: float) -> Summary:
    """Return the table of all numbers."""
    if not 0 < level < 1:
        raise DataError(f"Chains.summary: level must lie between 0 and 1; got {level!r}.")
    draws = chains.draws
    tails = ((1 - level) / 2, 0.5, (1 + level) / 2)
    worst, bulk, tail = chains._convergence

    def describe(x: Array) -> Array:
        flat = x.reshape(len(x), -1)
        quantiles = np.quantile(flat, tails, axis=1)
        return np.vstack([flat.mean(axis=1), flat.std(axis=1, ddof=1), quantiles])

    mean, sd, *quantiles = diagnostics.per_parameter("Chains.summary", draws, describe)
    columns = {"mean": mean, "sd": sd, "mcse": diagnostics.mcse_mean(draws)}
    for p, values in zip(tails, quantiles, strict=True):
        columns[f"{100 * p:.3g}%"] = values
    columns |= {"ess_bulk": bulk, "ess_tail": tail, "rhat": worst}
    return Summary(chains.labels, columns, [repr(chains.certificate_), *chains.warnings()])


def _shown(column: str, value: float) -> str:
    if not np.isfinite(value):
        return "–"
    if column.startswith("ess"):
        return f"{value:.0f}"
    return f"{value:.3f}" if column == "rhat" else f"{value:.3g}"
