"""The tuning constants of a family in one table: name, value, place, and what they trade.

    python -m tools.tuning solvers linear trees ensembles

A tuning constant is a module's name in capitals whose value is a number written out, or a product or power of such. Its
words are the comment on its line, or the comment above it and above names that follow it without words of their own.
`tests/test_plain_code.py` asks for words where a family has them throughout.
"""

from __future__ import annotations

import argparse
import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

SOURCE = Path(__file__).parents[1] / "src" / "learnable"


class Constant(NamedTuple):
    """One tuning constant."""

    name: str
    value: str
    place: str  #: file and line
    words: str  #: "" if nothing is said


def constants_of(family: str, source: Path = SOURCE) -> list[Constant]:
    """Return the tuning constants of a package, file by file."""
    found: list[Constant] = []
    for path in sorted((source / family).rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        lines = text.splitlines()
        place = path.relative_to(source).as_posix()
        for name, value, number in _numbers(ast.parse(text)):
            found.append(Constant(name, value, f"{place}:{number}", _words(lines, number - 1)))
    return found


def _numbers(tree: ast.Module) -> Iterator[tuple[str, str, int]]:
    """Yield name, value and line of the numbers in capitals."""
    for node in tree.body:
        if not isinstance(node, (ast.Assign, ast.AnnAssign)) or node.value is None:
            continue
        target = node.targets[0] if isinstance(node, ast.Assign) else node.target
        if isinstance(target, ast.Name) and target.id == target.id.upper() and _is_number(node.value):
            yield target.id, ast.unparse(node.value), node.lineno


def _is_number(value: ast.expr) -> bool:
    if isinstance(value, ast.UnaryOp):
        return _is_number(value.operand)
    if isinstance(value, ast.BinOp):
        return _is_number(value.left) and _is_number(value.right)
    return isinstance(value, ast.Constant) and type(value.value) in (int, float)


def _words(lines: list[str], at: int) -> str:
    """Return the comment of a line, or the one above it and above names without words of their own."""
    if "#" in lines[at]:
        return lines[at].split("#", 1)[1].lstrip(": ")
    while at > 0 and lines[at - 1].strip() and not lines[at - 1].startswith("#"):
        at -= 1
        if "#" in lines[at] or "=" not in lines[at]:
            return ""
    words: list[str] = []
    while at > 0 and lines[at - 1].startswith("#"):
        at -= 1
        words.insert(0, lines[at].lstrip("#: "))
    return " ".join(words)


def main() -> None:
    """Print a table per family."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("families", nargs="+", help="packages of src/learnable")
    for family in parser.parse_args().families:
        print(f"## {family}\n\n| constant | value | where | what it trades |\n|---|---|---|---|")
        for constant in constants_of(family):
            print(f"| `{constant.name}` | {constant.value} | `{constant.place}` | {constant.words} |")
        print()


if __name__ == "__main__":
    main()
