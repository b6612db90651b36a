"""`python -m benchmarks [row or family ...] [--quick] [--repeats N] [--json FILE] [--markdown FILE] [--save]`.

`python -m benchmarks scaling` measures how costs grow (`scaling.py`).
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from pathlib import Path

from . import FAMILIES, ROWS
from .harness import environment, measure
from .report import to_markdown

RESULTS = Path(__file__).parent / "results"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="benchmarks", description="Measure learnable against its peers.")
    known = f"all without any: {', '.join(FAMILIES)}; or {', '.join(ROWS)}"
    parser.add_argument("rows", nargs="*", metavar="row", help=known)
    parser.add_argument("--quick", action="store_true", help="about fifty times smaller, without targets")
    parser.add_argument("--repeats", type=int, default=5, metavar="N", help="timed calls of each (default 5)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything that was measured")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the tables")
    parser.add_argument("--save", action="store_true", help="write benchmarks/results/<family>.json and .md")
    options = parser.parse_args(arguments)
    unknown = set(options.rows) - set(ROWS) - set(FAMILIES)
    if unknown:
        parser.error(f"there is no row {', '.join(sorted(unknown))}; {known}")
    names = [row.name for given in options.rows for row in FAMILIES.get(given, [ROWS[given]] if given in ROWS else [])]
    names = list(dict.fromkeys(names)) or list(ROWS)
    whole = {family: rows for family, rows in FAMILIES.items() if {row.name for row in rows} <= set(names)}
    if options.repeats < 1:
        parser.error("--repeats must be at least 1")
    if options.save and (options.quick or {row.name for rows in whole.values() for row in rows} != set(names)):
        parser.error("--save is for whole families in full: leave out --quick, and name families instead of rows")

    warnings.simplefilter("ignore")  # who stops early is found out by the objective
    results = []
    for name in names:
        print(f"{name}: {ROWS[name].job}", flush=True)
        results.append(measure(ROWS[name], quick=options.quick, repeats=options.repeats))
    where = environment()
    print("\n" + to_markdown(results, where))

    def write(target: Path, chosen: list, as_json: bool) -> None:
        record = {"environment": where, "rows": [result.to_dict() for result in chosen]}
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(json.dumps(record, indent=1) + "\n" if as_json else to_markdown(chosen, where))

    if options.json:
        write(options.json, results, as_json=True)
    if options.markdown:
        write(options.markdown, results, as_json=False)
    if options.save:
        for family, rows in whole.items():
            members = {row.name for row in rows}
            chosen = [result for result in results if result.row in members]
            write(RESULTS / f"{family}.json", chosen, as_json=True)
            write(RESULTS / f"{family}.md", chosen, as_json=False)
    return 0 if all(result.passed for result in results) else 1


if __name__ == "__main__":
    if sys.argv[1:2] == ["scaling"]:
        from .scaling import main as scaling

        raise SystemExit(scaling(sys.argv[2:]))
    raise SystemExit(main())
