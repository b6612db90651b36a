"""Write `docs/departures.md`: what our classes do otherwise than those of scikit-learn and hmmlearn of the same name.

    make departures

It also fills the table of classes in `docs/start/from_scikit_learn.md`. Both are made of three things that the code
already says: signatures, which are compared; sentences of docstrings that name the other library; and the tests of
theirs that our classes are not meant to pass.
"""

from __future__ import annotations

import importlib
import inspect
import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from tests.conformance.lists import KINDS, expected

import learnable

PAGE = Path(__file__).parents[2] / "docs" / "departures.md"
#: The newcomer's page, of which only the table between the two marks is made here.
NEWCOMER = Path(__file__).parents[2] / "docs" / "start" / "from_scikit_learn.md"
BEGIN, END = (f"<!-- made by `make departures`: {word} -->\n" for word in ("begin", "end"))
#: Where the public classes of the other packages are.
THEIRS = (
    *("sklearn.cluster", "sklearn.decomposition", "sklearn.discriminant_analysis", "sklearn.ensemble"),
    *(
        "sklearn.gaussian_process",
        "sklearn.kernel_approximation",
        "sklearn.kernel_ridge",
        "sklearn.linear_model",
        "sklearn.manifold",
    ),
    *("sklearn.mixture", "sklearn.multiclass", "sklearn.naive_bayes", "sklearn.neighbors", "sklearn.preprocessing"),
    *("sklearn.svm", "sklearn.tree", "hmmlearn.hmm"),
)
#: Sentences that name the other library to say that nothing differs.
AGREEMENT = r"[Aa]s in scikit-learn[.,;]|of scikit-learn;|under scikit-learn's names"
HEAD = """# Departures

What a class here does otherwise than the one of the same name in scikit-learn or hmmlearn. `make departures` makes this
page of signatures, docstrings and the lists in `tests/conformance`; a test compares it with them.

Everywhere: a fit carries a certificate, `tol` is what that certificate says, errors are subclasses of `ValueError` with
words of our own, and a row of weight zero is left out.
"""


@cache
def pairs() -> dict[str, tuple[Any, Any]]:
    """Return {name: (ours, theirs)} of all public classes that both have."""
    found = {}
    for place in THEIRS:
        module = importlib.import_module(place)
        for name in learnable.__all__:
            other, ours = getattr(module, name, None), getattr(learnable, name)
            if inspect.isclass(other) and inspect.isclass(ours):
                found[name] = (ours, other)
    return dict(sorted(found.items()))


def parameters(ours: Any, theirs: Any) -> list[str]:
    """Return what differs between two constructors, a line for each difference."""
    own, other = (
        {p.name: p.default for p in inspect.signature(cls).parameters.values() if p.kind not in (2, 4)}
        for cls in (ours, theirs)
    )
    lines = [
        f"default of `{name}`: `{own[name]!r}`, there `{other[name]!r}`"
        for name in own
        if name in other and not _same(own[name], other[name])
    ]
    for words, names in (("only here", own.keys() - other.keys()), ("only there", other.keys() - own.keys())):
        if names:
            lines.append(f"{words}: {', '.join(f'`{name}`' for name in sorted(names))}")
    return lines


def _same(a: Any, b: Any) -> bool:
    return type(a) is type(b) and repr(a) == repr(b)


def sentences(cls: Any) -> list[str]:
    """Return the sentences of a class's docstring that name the other library."""
    text = (inspect.getdoc(cls) or "").partition("\nExamples\n")[0]
    found = []
    for block in re.split(r"\n\s*\n|\n(?=\S+(?:, \S+)*(?: : .*)?\n    )", text):
        joined = " ".join(
            line.strip()
            for line in block.splitlines()
            if not re.fullmatch(r"\S+(?:, \S+)*(?: : .*)?|-+", line.rstrip())
        )
        for sentence in re.split(r"(?<=[.;]) (?=[A-Z`])", joined):
            if re.search(r"scikit-learn|hmmlearn", sentence) and not re.search(AGREEMENT, sentence):
                found.append(sentence.strip())
    return found


def page() -> str:
    """Return the text of the page."""
    parts = [HEAD, "## Classes\n"]
    for name, (ours, theirs) in pairs().items():
        lines = [*sentences(ours), *parameters(ours, theirs)]
        if lines:
            parts.append("\n".join([f"### {name}\n", *(f"- {line}" for line in lines)]) + "\n")
    parts.append("## Tests of theirs that ours are not meant to pass\n")
    for kind, meaning in KINDS.items():
        rows = [
            f"| `{file}` | `{name}` | {reason.partition(':')[2].strip()} |".replace("\\n", " ")
            for file, reasons in sorted(expected().items())
            for name, reason in sorted(reasons.items())
            if reason.startswith(f"{kind}:")
        ]
        if rows:
            parts.append(
                "\n".join([f"### {kind}: {meaning}\n", "| file | test | reason |", "|---|---|---|", *rows]) + "\n"
            )
    return "\n".join(parts)


def table() -> str:
    """Return one line per class that both have: other defaults, parameters and methods that only ours has."""
    lines = ["| class | other defaults (there) | parameters only here | methods only here |", "|---|---|---|---|"]
    for name, (ours, theirs) in pairs().items():
        own, other = (
            {p.name: p.default for p in inspect.signature(cls).parameters.values() if p.kind not in (2, 4)}
            for cls in (ours, theirs)
        )
        changed = [
            f"`{key}={_plain(own[key])!r}` ({_plain(other[key])!r})"
            for key in own
            if key in other and _plain(own[key]) != _plain(other[key])
        ]
        added = [f"`{key}`" for key in sorted(own.keys() - other.keys())]
        methods = [f"`{key}`" for key in sorted(_methods(ours) - _methods(theirs))]
        cells = [f"[`{name}`](../models/{name}.md)", *(", ".join(words) for words in (changed, added, methods))]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def newcomer(text: str) -> str:
    """Return the newcomer's page with the table of today between its marks."""
    before, rest = text.split(BEGIN)
    return f"{before}{BEGIN}{table()}{END}{rest.split(END)[1]}"


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _methods(cls: Any) -> set[str]:
    names = (name for name in dir(cls) if not name.startswith(("_", "set_", "get_")))
    return {name for name in names if inspect.isfunction(getattr(cls, name, None))}


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    NEWCOMER.write_text(newcomer(NEWCOMER.read_text(encoding="utf-8")), encoding="utf-8")
