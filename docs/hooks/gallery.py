"""Run the examples that draw, and put their figures into the pages that ask for them.

A page asks with `<!-- figure: name -->`. Figures are SVG text in the page itself, so that they follow its colours.
"""

import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError

ROOT = Path(__file__).parents[2]
ASKED = re.compile(r"<!-- figure: (\w+) -->")
FIGURES: dict[str, str] = {}


def on_page_content(html: str, page: Any, **_: Any) -> str:
    """Replace every request of the page; the first one runs the examples."""
    if ASKED.search(html) and not FIGURES:
        FIGURES.update(draw())

    def to_figure(match: re.Match[str]) -> str:
        if match[1] not in FIGURES:
            raise PluginError(f"{page.file.src_path}: no example draws the figure {match[1]!r}")
        drawn = FIGURES[match[1]]
        width = float(re.search(r'viewBox="0 0 ([\d.]+)', drawn)[1])  # its own units are about pixels
        return f'<figure class="drawn" data-search-exclude style="max-width: {1.2 * width:.0f}px">{drawn}</figure>'

    return ASKED.sub(to_figure, html)


def draw() -> dict[str, str]:
    """Return the figures of all examples, by name; as many examples run at once as there are processors."""
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(os.cpu_count()) as pool:

        def run(example: Path) -> None:
            done = subprocess.run([sys.executable, str(example), folder], capture_output=True, text=True, check=False)
            if done.returncode != 0:
                raise PluginError(f"{example.name} failed:\n{done.stderr}")

        list(pool.map(run, sorted((ROOT / "examples").glob("plot_*.py"))))
        return {path.stem: path.read_text(encoding="utf-8") for path in Path(folder).glob("*.svg")}
