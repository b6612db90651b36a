"""Fold the long cells of the coverage table: what a row is checked by opens at a click, one name per line."""

import re
from typing import Any

CELL = re.compile(r"<td>(.*?)</td>", re.DOTALL)
NAME = re.compile(r"<code>.*?</code>")
FOLDED = {3: "names", 5: "tests", 6: "examples", 7: "benchmarks"}  # by column


def on_page_content(html: str, page: Any, **_: Any) -> str:
    """Rewrite the rows of the page that has the table."""
    if page.file.src_path != "coverage.md":
        return html
    rows = re.sub(r"<tr>(.*?)</tr>", _fold_row, html, flags=re.DOTALL)
    return f'<div class="coverage">{rows}</div>'


def _fold_row(row: re.Match[str]) -> str:
    cells = CELL.findall(row[1])
    if not cells:  # the head
        return row[0]
    return "<tr>" + "".join(f"<td>{_fold(column, text)}</td>" for column, text in enumerate(cells)) + "</tr>"


def _fold(column: int, text: str) -> str:
    names = NAME.findall(text)
    if column not in FOLDED or not names:
        return text
    listed = "<br>".join(names)
    if column == 3 and len(names) <= 6:  # what a reader looks for
        return listed
    what = FOLDED[column] if len(names) > 1 else FOLDED[column].removesuffix("s")
    return f"<details><summary>{len(names)} {what}</summary>{listed}</details>"
