"""The page of every model and the pages of the reference, made from the classes; see `tools/model_pages`."""

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, InclusionLevel

ROOT = Path(__file__).parents[2]
PARTS: dict[str, list[str]] = {}
FOUND: dict[str, Any] = {}
#: Factors of the search, by folder or page: first what explains, last what only lists.
BOOST = {"start": 4.0, "guide": 3.0, "models": 3.0, "reference": 0.5, "coverage.md": 0.1, "departures.md": 0.1}
MARK = re.compile(r"<!-- part: (\d+) -->")


def on_files(files: Any, config: Any, **_: Any) -> Any:
    """Add a page for each model, and one that lists them."""
    pages = _maker("pages")
    if not FOUND:
        FOUND.update(_pictures())
    others = pages.departures()
    for name, found in FOUND.items():
        made = pages.page(name, found, others.get(name, []))
        _add(files, config, f"models/{name}.md", made.markdown)
        PARTS[f"models/{name}.md"] = made.parts
    _add(files, config, "models/index.md", pages.index(FOUND), InclusionLevel.INCLUDED)
    shown = pages.in_pictures(FOUND)
    _add(files, config, "models/pictures.md", shown.markdown, InclusionLevel.INCLUDED)
    PARTS["models/pictures.md"] = shown.parts
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Write out what a page of the reference asks for by `::: module`; tell the search what readers look for first."""
    place = page.file.src_uri.partition("/")[0]
    page.meta.setdefault("search", {}).setdefault("boost", BOOST.get(place, 1.0))
    if "\n::: " not in markdown:
        return markdown
    made = _maker("reference").expand(markdown)
    PARTS[page.file.src_uri] = made.parts
    return made.markdown


def on_page_content(html: str, page: Any, **_: Any) -> str:
    """Put in the parts that are HTML already; in guides, link the first mention of a model to its page."""
    parts = PARTS.get(page.file.src_uri)
    if parts is not None:
        return MARK.sub(lambda match: parts[int(match[1])], html)
    return _maker("pages").linked(html) if page.file.src_uri.startswith("guide/") else html


def _add(files: Any, config: Any, uri: str, text: str, level: Any = InclusionLevel.NOT_IN_NAV) -> None:
    existing = files.get_file_from_path(uri)
    if existing is not None:
        files.remove(existing)
    files.append(File.generated(config, uri, content=text, inclusion=level))


def _maker(module: str) -> Any:
    """Import a module of `tools.model_pages`; the root of the repository is not where mkdocs looks."""
    import importlib

    for place in (str(ROOT), str(ROOT / "src")):
        if place not in sys.path:
            sys.path.append(place)
    return importlib.import_module(f"tools.model_pages.{module}")


def _pictures() -> Any:
    """Draw the pictures in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "pictures.json"
        command = [sys.executable, "-m", "tools.model_pages.pictures", str(target)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise PluginError(f"tools/model_pages/pictures.py failed:\n{done.stderr}")
        return json.loads(target.read_text(encoding="utf-8"))
