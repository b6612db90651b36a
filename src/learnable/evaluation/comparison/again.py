"""The Python lines that run a comparison again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

#: Arguments of `compare` with their defaults, in the order in which they are written.
_DEFAULTS: Final[dict[str, Any]] = {
    "groups": None,
    "time": None,
    "seconds": None,
    "models": None,
    "folds": 5,
    "seed": 0,
    "task": None,
    "metric": None,
    "drop": [],
    "keep": [],
    "dayfirst": None,
    "kinds": {},
    "copies": "together",
    "memory": None,
    "tune": None,
    "cost": None,
    "model_file": None,
}


def python_lines(
    source: str | None, target: str, arguments: Mapping[str, Any], reading: Mapping[str, Any] | None = None
) -> str:
    """Return Python code that compares again; models that were given as objects are named in a comment.

    Parameters
    ----------
    source : str or None
        The path of the table; None if it was an object in memory.
    target : str
        The column to predict.
    arguments : mapping
        Arguments of `compare`; those at their defaults are left out, except the seed.
    reading : mapping or None
        How the tool reads the source, with `learnable.cli.tables.load_table`; None if `compare` reads it itself.

    Examples
    --------
    >>> from learnable.evaluation.comparison.again import python_lines
    >>> print(python_lines("houses.csv", "price", {"seconds": 60.0, "models": ["Ridge"], "seed": 0}))
    from learnable.evaluation import compare
    <BLANKLINE>
    record = compare('houses.csv', 'price', seconds=60.0, models=['Ridge'], seed=0)
    """
    lines = ["from learnable.evaluation import compare"]
    data = "table" if source is None or reading is not None else repr(source)
    if source is not None and reading is not None:
        options = "".join(f", {name}={value!r}" for name, value in reading.items() if value is not None)
        lines += ["from learnable.cli.tables import load_table", "", f"table = load_table({source!r}{options})"]
    elif source is None:
        lines += ["", "# table: the dataframe that was compared"]
    else:
        lines.append("")
    said = [data, repr(target)]
    for name, default in _DEFAULTS.items():
        value = arguments.get(name, default)
        if name == "models" and value is not None:
            strange = [one for one in value if not isinstance(one, str)]
            if strange:
                lines.append(f"# models: {len(strange)} estimator(s) that were given as objects; pass them again")
            value = [one for one in value if isinstance(one, str)] or None
        if name == "seed" or (value is not None and value != default):
            said.append(f"{name}={value!r}")
    return "\n".join([*lines, f"record = compare({', '.join(said)})"])
