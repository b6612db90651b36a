"""Run the tests of what changed: `python -m tests.changed [--since REVISION] [--list]`.

Changed files are those that differ from a revision (default: `origin/main`, or `main`, or the last commit) and those
that git does not know yet. A test file is run when it changed, when it imports a changed module by its name, when it
is named after the module (`tests/trees/test_id3*.py` after `trees/id3.py`), or when it lies in the folder of the
module's package and imports a public name that the module defines. A module that has no such test is stood for by the
modules that import it. Tests of the whole package (its contract, its documentation) are left to `make test`.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src"
STATEMENT = re.compile(
    r"^[ \t]*(?:from[ \t]+(\.*)([\w.]*)[ \t]+import[ \t]+(\([^)]*\)|[^\n]+)|import[ \t]+([^\n]+))", re.MULTILINE
)


def changed_files(since: str | None) -> list[Path]:
    """Return the files that differ from a revision, and new ones."""
    base = since or next(filter(_is_revision, ("origin/main", "main", "HEAD")))
    start = _git("merge-base", base, "HEAD").strip() or base
    names = _git("diff", "--name-only", start) + _git("ls-files", "--others", "--exclude-standard")
    return [ROOT / name for name in dict.fromkeys(names.splitlines()) if (ROOT / name).is_file()]


def files_to_run(changed: list[Path]) -> list[Path]:
    """Return the test files to run for changed files."""
    imports = imports_below(SOURCE, "*.py")
    tests = imports_below(ROOT / "tests", "test_*.py")
    wanted = {path for path in changed if path in tests}
    waiting = [path for path in changed if path in imports]
    seen = set(waiting)
    while waiting:
        source = waiting.pop()
        module = module_name(source)
        named = {path for path, modules in tests.items() if module in modules} | tests_beside(source, tests)
        wanted |= named
        if not named:
            users = {path for path, modules in imports.items() if module in modules} - seen
            waiting += users
            seen |= users
    return sorted(wanted)


def tests_beside(source: Path, tests: dict[Path, set[str]]) -> set[Path]:
    """Return the tests that are named after a source file, and those of its package that import its public names."""
    module = module_name(source)
    parts = source.relative_to(SOURCE / "learnable").parts
    folder = ROOT / "tests" / parts[0]
    public = {name for name, home in public_names().items() if home == module}
    return {path for path, modules in tests.items() if path.is_relative_to(folder) and modules & public} | set(
        (ROOT / "tests").joinpath(*parts[:-1]).glob(f"test_{source.stem}*.py")
    )


@cache
def public_names() -> dict[str, str]:
    """Return the module that defines each name of the stubs of packages, by the dotted name."""
    homes: dict[str, str] = {}
    for stub in SOURCE.rglob("__init__.pyi"):
        package = module_name(stub)
        for dots, module, names in import_statements(stub):
            if dots == 1 and module:
                homes |= {f"{package}.{name}": f"{package}.{module}.{name}" for name in names}
    for name, home in homes.items():
        while home in homes:
            home = homes[home]
        homes[name] = home
    return {name: home.rpartition(".")[0] for name, home in homes.items()}


@cache
def imports_below(folder: Path, pattern: str) -> dict[Path, set[str]]:
    """Return what the files of a folder import, by file."""
    return {path: imported_modules(path) for path in folder.rglob(pattern)}


def imported_modules(path: Path) -> set[str]:
    """Return the modules of ours that a file imports, and those that its imported names could be."""
    found: set[str] = set()
    package = module_name(path).split(".") if path.is_relative_to(SOURCE) else []
    if package and path.stem != "__init__":
        package.pop()
    for level, module, names in import_statements(path):
        above = package[: len(package) + 1 - level] if level else []
        origin = ".".join([*above, *filter(None, [module])])
        found |= {origin, *(f"{origin}.{name}" for name in names)} if origin else set(names)
    return {name for name in found if name.startswith("learnable")}


def import_statements(path: Path) -> Iterator[tuple[int, str, list[str]]]:
    """Yield the import statements of a file: the number of dots, the module (none: "") and the names.

    By their words: to parse all files into trees takes thirty times as long.
    """
    for dots, module, listed, plain in STATEMENT.findall(path.read_text(encoding="utf-8")):
        items = re.sub(r"#[^\n]*|[()\\\\]", "", listed or plain).split(",")
        yield len(dots), module, [item.split()[0] for item in items if item.strip()]


def module_name(path: Path) -> str:
    """Return the dotted name of a source file."""
    parts = list(path.relative_to(SOURCE).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="tests.changed", description=__doc__.partition("\n")[0])
    parser.add_argument("--since", metavar="REVISION", help="compare with this revision")
    parser.add_argument("--list", action="store_true", help="only list the test files")
    options = parser.parse_args(arguments)
    files = [str(path.relative_to(ROOT)) for path in files_to_run(changed_files(options.since))]
    print("\n".join(files) or "no test file belongs to what changed")
    if options.list or not files:
        return 0
    command = [sys.executable, "-m", "pytest", "-n", "2", "--dist", "worksteal", "-m", "not long", "-q", "-x", *files]
    return subprocess.run(command, cwd=ROOT, check=False).returncode


def _is_revision(name: str) -> bool:
    done = subprocess.run(["git", "rev-parse", "--verify", "-q", name], cwd=ROOT, capture_output=True, check=False)
    return done.returncode == 0


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout


if __name__ == "__main__":
    sys.exit(main())
