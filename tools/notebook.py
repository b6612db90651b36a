"""Run the notebook tour, write its outputs into the page, and write the same as a notebook.

    python -m tools.notebook            # docs/start/notebook_tour.md and tour.ipynb
    python -m tools.notebook --check    # exit with 1 if they are not what a run gives

A cell is a block of Python on the page; the block `text` below it is what it prints. A cell whose last line is a figure
shows it: `<!-- cell figure: N -->` stands in its place, and a hook of the documentation puts in the figure of the
notebook.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

FOLDER = Path(__file__).parents[1] / "docs" / "start"
PAGE, NOTEBOOK = FOLDER / "notebook_tour.md", FOLDER / "tour.ipynb"
CELL = re.compile(
    r"^```python\n(?P<code>.*?)^```\n(?:\n```text\n(?P<text>.*?)^```\n)?(?:\n<!-- cell figure: \d+ -->\n)?",
    re.MULTILINE | re.DOTALL,
)


class Output(NamedTuple):
    """What a cell gives: printed text, and a figure as SVG or None."""

    text: str
    figure: str | None


def run(page: str) -> list[Output]:
    """Run the cells of a page in one namespace, in a folder of their own."""
    namespace: dict[str, Any] = {"__name__": "tour"}
    before = Path.cwd()
    found = []
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            for match in CELL.finditer(page):
                found.append(run_cell(match["code"], namespace))
        finally:
            os.chdir(before)
    return found


def run_cell(code: str, namespace: dict[str, Any]) -> Output:
    """Run one cell; its last expression is shown as a notebook shows it."""
    tree = ast.parse(code)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed = io.StringIO()
    value = None
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, "cell", "exec"), namespace)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), "cell", "eval"), namespace)
        is_figure = isinstance(value, str) and value.startswith("<svg")
        if value is not None and not is_figure:
            print(value)
    return Output(printed.getvalue(), str(value) if is_figure else None)


def with_outputs(page: str, outputs: list[Output]) -> str:
    """Return the page with what its cells give."""
    numbers = iter(range(len(outputs)))

    def to_cell(match: re.Match[str]) -> str:
        number = next(numbers)
        text, figure = outputs[number]
        shown = f"```python\n{match['code']}```\n"
        if text:
            shown += f"\n```text\n{text.rstrip()}\n```\n"
        if figure:
            shown += f"\n<!-- cell figure: {number} -->\n"
        return shown

    return CELL.sub(to_cell, page)


def as_notebook(page: str, outputs: list[Output]) -> str:
    """Return the page as a notebook, version 4.5 of the format."""
    cells: list[dict[str, Any]] = []
    end = 0

    def add_words(text: str) -> None:
        # Links to other pages of the documentation lead nowhere from a notebook that was downloaded.
        plain = re.sub(r"\[([^\]]+)\]\((?!https?:)[^)]+\)", r"\1", text).strip()
        if plain:
            cells.append(
                {"cell_type": "markdown", "id": f"cell-{len(cells)}", "metadata": {}, "source": plain.splitlines(True)}
            )

    for number, (match, (text, figure)) in enumerate(zip(CELL.finditer(page), outputs, strict=True)):
        add_words(page[end : match.start()])
        end = match.end()
        results: list[dict[str, Any]] = []
        if text:
            results.append({"output_type": "stream", "name": "stdout", "text": text.splitlines(True)})
        if figure:
            data = {"image/svg+xml": figure.splitlines(True), "text/plain": ["<figure>"]}
            results.append({"output_type": "display_data", "data": data, "metadata": {}})
        cells.append(
            {
                "cell_type": "code",
                "id": f"cell-{len(cells)}",
                "execution_count": number + 1,
                "metadata": {},
                "outputs": results,
                "source": match["code"].rstrip().splitlines(True),
            }
        )
    add_words(page[end:])
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    whole = {
        "cells": cells,
        "metadata": {"kernelspec": kernel, "language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(whole, ensure_ascii=False, indent=1) + "\n"


def figures(notebook: str) -> dict[int, str]:
    """Return the figures of a notebook by the number of their cell."""
    cells = [cell for cell in json.loads(notebook)["cells"] if cell["cell_type"] == "code"]
    return {
        number: "".join(output["data"]["image/svg+xml"])
        for number, cell in enumerate(cells)
        for output in cell["outputs"]
        if "image/svg+xml" in output.get("data", {})
    }


def main(check: bool) -> int:
    """Run the page; write it and the notebook, or compare."""
    page = PAGE.read_text(encoding="utf-8")
    outputs = run(page)
    new = with_outputs(page, outputs)
    notebook = as_notebook(new, outputs)
    if check:
        same = new == page and NOTEBOOK.read_text(encoding="utf-8") == notebook
        print("up to date" if same else "run `python -m tools.notebook`")
        return 0 if same else 1
    PAGE.write_text(new, encoding="utf-8")
    NOTEBOOK.write_text(notebook, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv))
