"""Build the scenes of the laboratory as pages of their own, and put their pictures into the pages that ask for them.

A page asks with `<!-- scenes -->` for all of them, with `<!-- scene: name -->` for one. Pictures link to scenes.
"""

import re
from html import escape
from typing import Any

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File
from mkdocs.utils import get_relative_url

from learnable.lab import SCENES

ASKED = re.compile(r"<!-- scene(?:s|: (\w+)) -->")


def on_files(files: Any, config: Any, **_: Any) -> Any:
    """Add the page of each scene to the site."""
    for name, scene in SCENES.items():
        files.append(File.generated(config, f"lab/{name}.html", content=scene.page()))
    return files


def on_page_content(html: str, page: Any, **_: Any) -> str:
    """Replace every request of the page by cards that open scenes."""

    def to_cards(match: re.Match[str]) -> str:
        if match[1] is not None and match[1] not in SCENES:
            raise PluginError(f"{page.file.src_path}: there is no scene {match[1]!r}")
        names = list(SCENES) if match[1] is None else [match[1]]
        return '<div class="scenes">' + "".join(_card(SCENES[name], page.url) for name in names) + "</div>"

    return ASKED.sub(to_cards, html)


def _card(scene: Any, place: str) -> str:
    """Return a picture of the scene, its title and its text, as one link."""
    address = get_relative_url(f"lab/{scene.name}.html", place)
    picture = scene.steps()[scene.cover].picture
    hidden = picture.replace('role="img"', 'aria-hidden="true"', 1)  # the title says it
    return (
        f'<a class="scene" href="{escape(address)}">{hidden}'
        f"<strong>{escape(scene.title)}</strong><span>{_with_code(scene.about())}</span></a>"
    )


def _with_code(text: str) -> str:
    """Return text as markup, what stands in backticks as code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))
