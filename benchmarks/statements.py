"""How many statements the package has, by part; docstrings and imports are statements, too.

    python -m benchmarks.statements [--since REVISION] [--kinds]

Counted by `ast`, so that neither comments nor the length of lines matter. With `--since`, the counts of a revision of
git stand beside those of the working tree; with `--kinds`, the statements are counted by their kind instead.
"""

from __future__ import annotations

import argparse
import ast
import io
import subprocess
import tarfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).parents[1]
PACKAGE = "src/learnable"


def sources_now() -> Iterator[tuple[str, str]]:
    """Yield the path and the text of every module of the working tree."""
    for path in sorted((ROOT / PACKAGE).rglob("*.py")):
        yield path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")


def sources_of(revision: str) -> Iterator[tuple[str, str]]:
    """Yield the path and the text of every module of a revision."""
    command = ["git", "archive", "--format=tar", revision, PACKAGE]
    packed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        for member in archive.getmembers():
            file = archive.extractfile(member)
            if file is not None and member.name.endswith(".py"):
                yield member.name, file.read().decode()


def kind_of(statement: ast.stmt) -> str:
    """Return what a statement is, in a word."""
    if isinstance(statement, ast.Expr):
        return "Docstring" if isinstance(statement.value, ast.Constant) else "Expression"
    return type(statement).__name__


def count(sources: Iterator[tuple[str, str]], by_kind: bool) -> Counter[str]:
    """Return the number of statements by part of the package, or by kind."""
    found: Counter[str] = Counter()
    depth = len(PurePosixPath(PACKAGE).parts)
    for path, text in sources:
        statements = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.stmt)]
        found.update(map(kind_of, statements) if by_kind else {PurePosixPath(path).parts[depth]: len(statements)})
    return found


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--since", metavar="REVISION")
    parser.add_argument("--kinds", action="store_true")
    options = parser.parse_args()
    now = count(sources_now(), options.kinds)
    before = now if options.since is None else count(sources_of(options.since), options.kinds)
    rows = [(name, before[name], now[name]) for name, _ in (before | now).most_common()]
    for name, old, new in [*rows, ("all", before.total(), now.total())]:
        change = "" if options.since is None else f"{old:10,d} {new - old:+8,d} {(new - old) / max(old, 1):+8.1%}"
        print(f"{name:20s}{new:10,d}{change}")


if __name__ == "__main__":
    main()
