"""One page per model: what it minimises, an example, a picture, what is proven, cost and limits, parameters, methods.

Everything is read from the class: docstring, declared parameters and fitted attributes, registry, theorem, module.
The page is Markdown with marks `<!-- part: N -->`, which the hook replaces by HTML after Markdown is done, so that
formulas in docstrings are not taken for markup.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

from learnable.core.registry import REGISTRY, estimator_names, resolve
from learnable.evaluation.guarantees.theorems import THEOREMS

from . import docstrings as ds

ROOT = Path(__file__).parents[2]
#: Packages in the order of the index, with their titles and guides.
FAMILIES = {
    "linear": ("Linear models", "linear"),
    "trees": ("Trees", "trees"),
    "ensembles": ("Ensembles of trees and boosting", "ensembles"),
    "neighbors": ("Nearest neighbours", "neighbors"),
    "generative": ("Naive Bayes and discriminants", "generative"),
    "kernel": ("Kernel machines and Gaussian processes", "kernels"),
    "neural": ("Networks", "networks"),
    "mixtures": ("Clusters and mixtures", "mixtures"),
    "manifold": ("Components and manifolds", "manifold"),
    "sequences": ("Sequences", "sequences"),
    "topics": ("Topics and populations", "topics"),
    "evaluation": ("Intervals and calibration", "evaluation"),
    "meta": ("Around other models", "evaluation"),
    "data": ("Tables", "data"),
}
#: Guides that say more about some models than their family's.
GUIDES = {
    "boosting": ("GradientBoosting", "HistGradientBoosting"),
    "inference": ("GLM",),
    "variables": (
        *("BestSubset", "ForwardStep", "BackwardStep", "ForwardStagewise", "Lars", "LassoLars", "Orthogonal"),
        *("Nonconvex", "StepwiseGLM", "RFE", "SequentialFeature"),
    ),
    "regularised_risks": ("RegularizedRisk",),
    "data": ("TableModel", "TableEncoder"),
}
#: What a certificate's kind claims, for the reader of one page.
KINDS = {
    "closed-form": "the equations that define the answer hold, up to the number it gives",
    "gap": "no other setting of the coefficients is better by more than the number it gives",
    "stationarity": "the optimality conditions hold, up to the number it gives",
    "ascent": "one more step would improve the objective by no more than the number it gives; a better answer far away "
    "is possible",
    "greedy": "every split is the best of its candidates",
    "chain": "the chains agree with each other and hold enough independent draws",
    "none": "nothing",
}
TARGETS = {"counts": "counts", "positive": "numbers above zero", "several": "several numbers per row"}
#: What models outside the registry's tasks give, by scikit-learn's word for their kind.
ROLES = {
    "clusterer": "clusters",
    "density_estimator": "a density",
    "outlier_detector": "unusual rows",
    "classifier": "classes",
    "regressor": "numbers",
}
COST = re.compile(r"\bO\(|(?<!term )[Mm]emory|megabytes|[Tt]ime:|\bbytes\b|GB\b|[Rr]ead once|larger than memory")
CLOSED = re.compile(r"(<a\b.*?</a>|<pre\b.*?</pre>|<h[1-6]\b.*?</h[1-6]>)", re.DOTALL)
#: Models whose docstring leaves time and memory to another one.
LIKE = {
    "DecisionTreeRegressor": "DecisionTreeClassifier",
    "OrthogonalMatchingPursuitCV": "OrthogonalMatchingPursuit",
    "SpectralClustering": "SpectralEmbedding",
    "RNNClassifier": "LSTMClassifier",
    "RNNRegressor": "LSTMRegressor",
    "RidgeClassifierCV": "RidgeCV",
}


class Page(NamedTuple):
    """A page before Markdown is done."""

    markdown: str
    parts: list[str]


def family_of(name: str) -> str:
    """Return the package of a model."""
    return REGISTRY[name].path.split(".")[1]


def names_by_family() -> dict[str, list[str]]:
    """Return the names of all models, by package."""
    found: dict[str, list[str]] = {family: [] for family in FAMILIES}
    for name in estimator_names():
        found[family_of(name)].append(name)
    return found


def guide_of(name: str) -> str:
    """Return the guide that tells most about a model."""
    starts = [(start, guide) for guide, prefixes in GUIDES.items() for start in prefixes if name.startswith(start)]
    return max(starts)[1] if starts else FAMILIES[family_of(name)][1]


def links_from(folder: str) -> dict[str, str]:
    """Return the address of every model's page, seen from a page in `folder` ("models/" or elsewhere)."""
    prefix = "" if folder == "models" else "../models/"
    return {name: f"{prefix}{name}.html" for name in estimator_names()}


def takes(name: str, found: Mapping[str, Any]) -> dict[str, bool | None]:
    """Return what a model takes and gives, as its tags, methods and a trial with a file tell."""
    cls = resolve(REGISTRY[name].path)
    tags = None if needs_model(cls) else cls().__sklearn_tags__()
    fit = inspect.signature(cls.fit).parameters
    taken = found.get("files")
    return {
        "missing values": None if tags is None else bool(tags.input_tags.allow_nan),
        "sparse": None if tags is None else bool(tags.input_tags.sparse),
        "weights": "sample_weight" in fit,
        "files": None if taken is None else taken is True,
        "probabilities": hasattr(cls, "predict_proba"),
        "intervals": hasattr(cls, "predict_interval"),
    }


def tasks_of(name: str) -> str:
    """Return what a model gives, in words."""
    traits = REGISTRY[name].traits
    if traits is not None and traits.targets in TARGETS:
        return TARGETS[traits.targets]
    if traits is not None:
        words = {"regression": "numbers", "binary": "two classes", "multiclass": "many classes"}
        both = {"binary", "multiclass"} <= set(traits.tasks)
        return "classes" if both else ", ".join(words[task] for task in traits.tasks)
    if name.endswith("HMM"):
        return "hidden states"
    cls = resolve(REGISTRY[name].path)
    role = None if needs_model(cls) else cls().__sklearn_tags__().estimator_type
    if role in ROLES:
        return ROLES[role]
    if needs_model(cls):
        return "as the model inside"
    return "neighbours" if name == "NearestNeighbors" else "new columns"


def needs_model(cls: Any) -> bool:
    """Tell whether a class is built around another model."""
    arguments = inspect.signature(cls).parameters.values()
    return any(p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in arguments)


def summary_of(name: str) -> str:
    """Return the first sentence of a model's docstring."""
    lead = ds.sections(inspect.getdoc(resolve(REGISTRY[name].path)) or "")[""]
    return ds._joined(lead.partition("\n\n")[0])


def departures() -> dict[str, list[str]]:
    """Return what `docs/departures.md` lists of each class."""
    text = (ROOT / "docs" / "departures.md").read_text(encoding="utf-8")
    text = text.partition("## Classes")[2].partition("\n## ")[0]
    pieces = re.split(r"^### (\w+)\n", text, flags=re.MULTILINE)[1:]
    return {
        name: [line[2:] for line in body.splitlines() if line.startswith("- ")]
        for name, body in zip(pieces[::2], pieces[1::2], strict=True)
    }


def page(name: str, found: Mapping[str, Any], others: list[str]) -> Page:
    """Return the page of a model.

    Parameters
    ----------
    name : str
        In the registry.
    found : mapping
        What `pictures` says of it.
    others : list of str
        What differs from the class of the same name elsewhere.
    """
    entry = REGISTRY[name]
    cls = resolve(entry.path)
    family = family_of(name)
    links = {key: value for key, value in links_from("models").items() if key != name}
    doc = ds.sections(inspect.getdoc(cls) or "")
    parts: list[str] = []

    def part(html: str) -> str:
        parts.append(html)
        return f"<!-- part: {len(parts) - 1} -->"

    summary, _, rest = doc[""].partition("\n\n")
    title, guide = FAMILIES[family][0], guide_of(name)
    lines = [
        f"# {name}",
        part(f'<p class="lead">{ds.inline(ds._joined(summary), links)}</p>'),
        f"[All models](index.md) › [{title}](index.md#{family}) · [Guide](../guide/{guide}.md) · "
        f"`from learnable import {name}`",
        part(_glance(name, cls, found)),
    ]
    if "svg" in found:
        lines.append(part(framed(found["svg"], found["words"])))
    elif found.get("gallery"):
        lines.append(f"<!-- figure: {found['gallery']} -->")
    if rest:
        lines += ["## What it does", part(ds.prose(rest, links))]
    if "Examples" in doc:
        lines += ["## Example", f"```pycon\n{doc['Examples'].strip()}\n```"]
    lines += ["## What is proven", *_proven(name, cls, found, part)]
    lines += ["## Cost and limits", part(_limits(name, doc[""], found, links))]
    mathematics = _module_text(cls)
    if mathematics:
        lines += ["## The mathematics", mathematics]
    for section in ("Parameters", "Attributes"):
        if section in doc:
            heading = "Fitted attributes" if section == "Attributes" else section
            lines += [f"## {heading}", part(ds.listed(doc[section], links))]
    lines.append("## Methods")
    for method in ds.methods(cls):
        # Many models share a method's text: the search would list it once for each of them.
        body = f"<div data-search-exclude>{ds.described(getattr(cls, method), method, links)}</div>"
        lines += [f"### {method} {{ #{method} data-search-exclude }}", part(body)]
    everyday = ", ".join(f"<code>{method}</code>" for method in ds.EVERYDAY if hasattr(cls, method))
    lines.append(part(f"<p>And what scikit-learn gives every estimator: {everyday}.</p>"))
    for section in ("Notes", "References", "See Also"):
        if section in doc:
            lines += [f"## {section}", part(ds.prose(doc[section], links))]
    if others:
        lines += ["## Beside scikit-learn's or hmmlearn's", *(f"- {line}" for line in others)]
    text = "\n\n".join(lines).replace("\n\n- ", "\n- ").replace("hmmlearn's\n- ", "hmmlearn's\n\n- ")
    return Page(text + "\n", parts)


def framed(figure: str, words: str = "") -> str:
    """Return a figure for a page: no wider than a little above its own size, with words below it."""
    width = re.search(r'viewBox="0 0 ([\d.]+)', figure)
    most = 480.0 if width is None else min(600.0, 1.25 * float(width[1]))
    below = f"<figcaption>{escape(words)}</figcaption>" if words else ""
    return f'<figure class="drawn model" data-search-exclude style="max-width: {most:.0f}px">{figure}{below}</figure>'


def _glance(name: str, cls: Any, found: Mapping[str, Any]) -> str:
    """Return the facts of a model as a row of small cards."""
    facts = takes(name, found)
    words = {True: "yes", False: "no", None: "as the model inside"}
    cards = []
    cards.append(("predicts" if REGISTRY[name].traits else "gives", tasks_of(name)))
    cards += [(key, words[value]) for key, value in facts.items() if key in ("missing values", "sparse", "weights")]
    if facts["files"] is not None:
        cards.append(("files larger than memory", words[facts["files"]]))
    cards += [(key, "yes") for key in ("probabilities", "intervals") if facts[key]]
    if found.get("kind"):
        cards.append(("certificate", f'<a href="../certificates.html#{found["kind"]}">{found["kind"]}</a>'))
    if "max_seconds" in inspect.signature(cls).parameters:
        cards.append(("time limit", "max_seconds"))
    shown = "".join(f"<div><dt>{key}</dt><dd>{value}</dd></div>" for key, value in cards)
    return f'<dl class="glance">{shown}</dl>'


def _proven(name: str, cls: Any, found: Mapping[str, Any], part: Any) -> list[str]:
    """Return the lines about certificate and theorem."""
    lines = []
    kind = found.get("kind")
    if kind:
        claim = KINDS.get(kind, "")
        lines.append(f"The certificate of a fit is [`{kind}`](../certificates.md#{kind}): {claim}.")
        if "svg" in found:
            lines.append(part(f"<p>That of the picture says: <em>{escape(found['certificate'])}</em>.</p>"))
    if REGISTRY[name].checker:
        lines.append("`learnable.verify(model, X, y)` derives it again from the model and the data.")
    else:
        lines.append("There is nothing to verify: it makes no claim that data could refute.")
    theory = THEOREMS.get(getattr(cls, "_theory", ""))
    if theory is not None and theory.kind != "none":
        assumed = "".join(f"<li>{escape(line)}</li>" for line in theory.assumes)
        lines += [
            f"The theorem behind it ({theory.kind}; see [What can my data prove?](../guide/theory.md)):",
            part(
                f'<div class="theorem"><p>If</p><ul>{assumed}</ul><p>then {escape(theory.guarantees)}.</p>'
                f'<p class="source">{escape(theory.reference)}</p></div>'
            ),
        ]
    elif theory is not None:
        lines.append(part(f"<p>{escape(theory.guarantees[0].upper() + theory.guarantees[1:])}.</p>"))
    return lines


def _limits(name: str, text: str, found: Mapping[str, Any], links: Mapping[str, str]) -> str:
    """Return sentences about time, memory and what is refused."""
    told = cost_sentences(text)
    for cls in resolve(REGISTRY[name].path).__mro__:  # the file of the class, then those of its bases
        if not told and cls.__module__.startswith("learnable."):
            told = cost_sentences(inspect.getdoc(cls) or "") or cost_sentences(
                sys.modules[cls.__module__].__doc__ or ""
            )
    rows = [ds.inline(sentence, links) for sentence in told]
    most = REGISTRY[name].most_rows
    if most:
        rows.append(f"<code>learnable compare</code> leaves it out beyond {most:,} rows, unless it is named.")
    taken = found.get("files")
    if taken is True:
        rows.append("It is fitted to files and Dask tables block by block, with the same result as in memory.")
    elif isinstance(taken, str):
        rows.append(f"A table that is streamed from disk is refused: <em>{escape(taken)}</em>")
    if name in LIKE:
        like = LIKE[name]
        said = cost_sentences(inspect.getdoc(resolve(REGISTRY[like].path)) or "")
        rows.insert(0, f'As <a href="{like}.html"><code>{like}</code></a>: {ds.inline(" ".join(said))}')
    elif not told and family_of(name) in ("meta", "evaluation", "ensembles"):
        rows.insert(0, "Time and memory are those of the model inside, times the number of its fits.")
    elif not told:
        rows.insert(0, "One number per row and column that is made; the rows themselves are not kept.")
    return "<ul>" + "".join(f"<li>{row}</li>" for row in rows) + "</ul>"


def cost_sentences(text: str) -> list[str]:
    """Return the sentences of a docstring that speak of time or memory."""
    lead = ds.sections(inspect.cleandoc(text))[""]
    blocks = re.split(r"\n\s*\n", lead)
    sentences = [part for block in blocks for part in re.split(r"(?<=\.) (?=[A-Z`])", ds._joined(block))]
    return [sentence for sentence in sentences if COST.search(sentence)]


def _module_text(cls: Any) -> str:
    """Return the docstring of the file that defines a class, without headings."""
    text = inspect.cleandoc(sys.modules[cls.__module__].__doc__ or "")
    text = re.sub(r"^#+ ", "", text, flags=re.MULTILINE)
    # Angle brackets in formulas are no markup.
    return re.sub(r"<(?=[^\s>]*>)", "&lt;", text)


def linked(html: str) -> str:
    """Link each model's name, written as code, where it is first mentioned outside of links, headings and blocks."""
    links = links_from("guide")

    def to_link(match: re.Match[str]) -> str:
        address = links.pop(match[1], None)
        return match[0] if address is None else f'<a href="{address}">{match[0]}</a>'

    pieces = CLOSED.split(html)  # every second one is a link, a heading or a block of code
    pieces[::2] = [re.sub(r"<code>(\w+)</code>", to_link, piece) for piece in pieces[::2]]
    return "".join(pieces)


def index(found: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the page that lists all models."""
    marks = {True: "●", False: "", None: "○"}
    keys = ("missing values", "sparse", "weights", "files", "probabilities", "intervals")
    lines = [
        "---",
        "hide:",
        "  - toc",
        "---",
        "",
        "# All models",
        "",
        f"{len(found)} classes, each with a page of its own: what it minimises, an example, a picture, what is proven, "
        "what it costs. "
        "[Which model?](../start/which_model.md) helps to choose; [models in pictures](pictures.md) shows them all.",
        "",
        "● yes, ○ as the model inside. *Missing*: takes missing values; *sparse*: SciPy's sparse arrays; "
        "*weights*: `sample_weight`; "
        "*files*: fitted to files larger than memory and to Dask tables; *prob.*: `predict_proba`; "
        "*interv.*: `predict_interval` "
        "(`with_intervals` gives it to every regressor). This table is made from the classes.",
        "",
    ]
    for family, names in names_by_family().items():
        title, guide = FAMILIES[family]
        lines += [
            f"## {title} {{ #{family} }}",
            "",
            f"[Guide](../guide/{guide}.md) · [Reference](../reference/{family}.md)",
            "",
        ]
        lines += [
            "| model | what | missing | sparse | weights | files | prob. | interv. |",
            "|---|---|:-:|:-:|:-:|:-:|:-:|:-:|",
        ]
        for name in names:
            facts = takes(name, found[name])
            what = summary_of(name).partition(": ")[0].rstrip(".").replace("|", "\\|")
            cells = [f"[`{name}`]({name}.md)", what, *(marks[facts[key]] for key in keys)]
            lines.append("| " + " | ".join(cells) + " |")
        lines.append("")
    return "\n".join(lines)


def in_pictures(found: Mapping[str, Mapping[str, Any]]) -> Page:
    """Return the page that shows every model's picture; each leads to its page."""
    head = (
        "Every picture is drawn by the model itself, fitted to a small table while these pages are built. "
        "A click leads to its page. [The same as a table](index.md)."
    )
    lines = ["---", "hide:", "  - toc", "---", "", "# Models in pictures", "", head, ""]
    parts: list[str] = []
    for family, names in names_by_family().items():
        shown = [name for name in names if "svg" in found[name]]
        if shown:
            cards = "".join(f'<a href="{name}.html">{found[name]["svg"]}<span>{name}</span></a>' for name in shown)
            lines += [f"## {FAMILIES[family][0]}", "", f"<!-- part: {len(parts)} -->", ""]
            parts.append(f'<div class="pictures" data-search-exclude>{cards}</div>')
    return Page("\n".join(lines), parts)
