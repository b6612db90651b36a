"""Ours against the peers: `python -m benchmarks [row ...]`."""

from . import linear, tool

#: The rows of every family; the saved results of a family are `results/<family>.json` and `.md`.
FAMILIES = {"linear": linear.ROWS, "tool": tool.ROWS}
ROWS = {row.name: row for rows in FAMILIES.values() for row in rows}
