"""From the steps of a scene to HTML: all of them are in the page, and a small script shows one at a time.

Without a script, and on paper, the steps stand one below the other. Text reaches the page through `plots.markup.tag`
alone, which escapes it.
"""

from __future__ import annotations

import base64
import hashlib
import math
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

from ..plots.markup import Markup, tag
from .formulas import mathml

if TYPE_CHECKING:
    from ..core.estimator import Certificate
    from .scene import Scene, Step


@cache
def asset(name: str) -> str:
    """Return the text of `player.css` or `player.js`."""
    return files("learnable.lab").joinpath(name).read_text(encoding="utf-8")


def article(scene: Scene, steps: Sequence[Step], about: str, live: bool = False) -> Markup:
    """Return the scene as one element."""
    more = {"data_live": ""} if live else {}
    return tag(
        "article",
        tag("header", tag("h1", scene.title), tag("p", about)),
        _controls(len(steps)),
        *(_section(number, step, len(steps)) for number, step in enumerate(steps, start=1)),
        _how(scene),
        class_="lab",
        data_scene=scene.name,
        **more,
    )


def whole_page(scene: Scene, steps: Sequence[Step], about: str, assets: str | None = None, live: bool = False) -> str:
    """Return the scene as a page; see `Scene.page`."""
    if assets is None:
        style = tag("style", Markup(asset("player.css")))
        script = tag("script", Markup(asset("player.js")), type="module")
        policy = _policy()
    else:
        place = assets.rstrip("/")
        style = Markup(f"{tag('link', rel='stylesheet', href=f'{place}/player.css').removesuffix('</link>')}")
        script = tag("script", type="module", src=f"{place}/player.js")
        policy = None
    head = [
        Markup('<meta charset="utf-8">'),
        Markup('<meta name="viewport" content="width=device-width, initial-scale=1">'),
        policy,
        tag("title", f"{scene.title} · learnable"),
        style,
    ]
    body = tag("body", tag("main", article(scene, steps, about, live)), script)
    return f"<!DOCTYPE html>\n{tag('html', tag('head', *head), body, lang='en')}\n"


def _policy() -> Markup:
    """Return the page's own ban on everything but its one script and its one style sheet."""
    allowed = {kind: _checksum(asset(name)) for kind, name in (("script", "player.js"), ("style", "player.css"))}
    content = "default-src 'none'; " + "; ".join(f"{kind}-src '{value}'" for kind, value in allowed.items())
    return Markup(f'<meta http-equiv="Content-Security-Policy" content="{content}">')


def _checksum(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _controls(n_steps: int) -> Markup:
    def button(name: str, words: str, *shapes: str) -> Markup:
        icons = (_icon(shape, number) for number, shape in enumerate(shapes))
        return tag("button", *icons, type="button", data_go=name, aria_label=words)

    slider = Markup(
        f'<input type="range" min="1" max="{n_steps}" value="1" step="1" aria-label="Step" '
        'aria-keyshortcuts="ArrowLeft ArrowRight Home End">'
    )
    return tag(
        "div",
        button("first", "First step", "M4 4h2v12h-2zM16 4v12l-9-6z"),
        button("back", "Step back", "M13 4v12l-9-6zM14 4h2v12h-2z"),
        button("play", "Play", "M5 3v14l12-7z", "M5 3h4v14h-4zM11 3h4v14h-4z"),
        button("on", "Step on", "M4 4h2v12h-2zM7 4v12l9-6z"),
        slider,
        tag("span", f"1 of {n_steps}", class_="lab-count", aria_hidden="true"),
        tag("span", class_="lab-said", role="status"),
        class_="lab-controls",
        role="group",
        aria_label="Player",
        hidden="",
    )


def _icon(shape: str, number: int) -> Markup:
    """Return a picture on a button; the second one of the button that plays is shown while it does."""
    hidden = {"hidden": ""} if number else {}
    return tag("svg", tag("path", d=shape), viewBox="0 0 20 20", aria_hidden="true", **hidden)


def _section(number: int, step: Step, n_steps: int) -> Markup:
    handle: dict[str, Any] = {}
    if step.handle is not None:
        handle = dict(zip(("data_moved", "data_x", "data_y"), step.handle, strict=True))
    formulas = [mathml(line) for line in step.formula.splitlines()]
    return tag(
        "section",
        tag("h2", step.title),
        tag("div", *(tag("figure", picture) for picture in step.pictures), class_="lab-pictures"),
        tag(
            "div",
            tag("div", tag("p", step.text), _numbers(step), class_="lab-words"),
            tag(
                "div",
                tag("div", *formulas, class_="lab-formula", tabindex="0", role="group", aria_label="Formula"),
                tag("pre", tag("code", step.code), tabindex="0", role="group", aria_label="Code of this step"),
                class_="lab-code",
            ),
            tag("div", *_proofs(step), class_="lab-proofs"),
            class_="lab-beside",
        ),
        class_="lab-step",
        aria_label=f"Step {number} of {n_steps}: {step.title}",
        **handle,
    )


def _numbers(step: Step) -> Markup | None:
    if not step.numbers:
        return None
    pairs = (tag("div", tag("dt", name), tag("dd", _number(value))) for name, value in step.numbers.items())
    return tag("dl", *pairs)


def _number(value: Any) -> str:
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.5g}".replace("-", "−")


def _proofs(step: Step) -> list[Markup]:
    several = len(step.certificates) > 1
    found = [_proof(name if several else "", certificate) for name, certificate in step.certificates.items()]
    if step.note:
        found.append(tag("p", step.note, class_="lab-note"))
    return [tag("h3", "What is proven"), *found]


#: What stands before a certificate.
_WORDS: Final = {"holds": "holds", "open": "not yet", "none": "nothing"}


def _state(certificate: Certificate) -> str:
    if certificate.kind == "none":
        return "none"
    return "holds" if certificate.holds else "open"


def _proof(name: str, certificate: Certificate) -> Markup:
    state = _state(certificate)
    if state == "none":
        said = "Nothing is proven about this fit."
    else:
        sentence = certificate.sentence if math.isfinite(certificate.value) else "it is too early to measure"
        said = f"{sentence[:1].upper()}{sentence[1:]}; tolerance {certificate.tolerance:.2g}."
    return tag(
        "p",
        tag("span", _WORDS[state], class_=f"lab-mark {state}"),
        " ",
        tag("code", name) if name else None,
        " " if name else None,
        tag("strong", certificate.kind),
        ". ",
        said,
    )


def _how(scene: Scene) -> Markup:
    return tag(
        "details",
        tag("summary", "Run it yourself"),
        tag("p", "These lines come before those of every step."),
        tag("pre", tag("code", scene.setup), tabindex="0", role="group", aria_label="Code before every step"),
        tag("p", f"Your own table: {scene.takes}"),
        tag("p", tag("code", f"learnable lab {scene.name} --table mine.csv")),
        class_="lab-how",
    )
