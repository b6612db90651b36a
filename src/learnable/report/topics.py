"""From the record of a topic model to one HTML file: topics, their words and documents, likeness, the choice of K."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ..core.errors import DataError
from ..plots.lines import labelled_lines
from ..plots.markup import Markup, clean, tag
from ..plots.shares import share_bars
from .clusters import page_of

FORMAT: Final = "learnable-topics"


def render_topics(record: dict[str, Any]) -> str:
    """Return the report on topics as one HTML page.

    Parameters
    ----------
    record : dict
        `format`, `source`, `model`, `rows`, `columns`, `notes`, `certificate`, `topics` (name, share, words, telling
        words, coherence, like: the most similar topic and how similar), `documents` (topic, share, text), `sample`
        (shares of some documents), `trace` (log joint by chain) and `choice` (criterion, candidates, values, errors).

    Returns
    -------
    str
        The page: offline, without scripts.

    Examples
    --------
    >>> from learnable.report import render_topics
    >>> record = {"format": "learnable-topics", "model": "LatentDirichletAllocation", "topics": []}
    >>> "<h1>" in render_topics(record)
    True
    """
    if not isinstance(record, dict) or record.get("format") != FORMAT:
        raise DataError(f"render_topics: the record must be of format {FORMAT!r}. Pass the record of a topic model.")
    topics = record.get("topics") or []
    lines = [
        [
            clean(str(topic["name"]), 20),
            f"{100 * topic['share']:.1f} %",
            clean(", ".join(topic["words"]), 300),
            clean(", ".join(topic["telling"]), 300),
            f"{topic['coherence']:z.2f}".replace("-", "−"),
            clean(str(topic["like"]), 40),
        ]
        for topic in topics
    ]
    heads = ["topic", "share", "most frequent words", "most telling words", "coherence", "most like"]
    text = (
        "Share of all tokens; telling words are frequent here and rare elsewhere (relevance 0.4); coherence is NPMI of "
        "the ten most frequent words, from −1 to 1."
    )
    tables = [("The topics", text, _table(heads, lines, broad=(2, 3)))]
    documents = record.get("documents") or []
    if documents:
        lines = [
            [clean(str(line["topic"]), 20), f"{100 * line['share']:.0f} %", clean(str(line["text"]), 240)]
            for line in documents
        ]
        text = "Those with the largest share of each topic."
        tables.append(("Documents", text, _table(["topic", "share", "document"], lines, broad=(2,))))
    return page_of(record, "topics", f"{len(topics)} topics", tables, _figures(record))


def _table(heads: list[str], lines: list[list[str]], broad: tuple[int, ...]) -> Markup:
    """Return a table whose words stay whole: on a narrow screen it is scrolled sideways."""
    head = tag("tr", *(tag("th", name, scope="col") for name in heads))
    body = []
    for cells in lines:
        styles = [
            "min-width:14em;overflow-wrap:normal" if j in broad else "white-space:nowrap" for j in range(len(cells))
        ]
        body.append(tag("tr", *(tag("td", cell, style=style) for cell, style in zip(cells, styles, strict=True))))
    return tag("table", tag("thead", head), tag("tbody", *body))


def _figures(record: dict[str, Any]) -> list[tuple[str, Markup]]:
    found = []
    choice = record.get("choice")
    if choice and len(choice["candidates"]) > 1:
        values = np.asarray(choice["values"], dtype=np.float64)
        errors = np.asarray(choice["errors"], dtype=np.float64)
        lines = {
            "mean": (choice["candidates"], values),
            "± 1 s.e.": (
                [c for c in choice["candidates"] for _ in range(3)],
                [v for a, e in zip(values, errors, strict=True) for v in (a - e, a + e, np.nan)],
            ),
        }
        drawn = labelled_lines(lines, title="How many topics", x_label="topics", y_label=str(choice["criterion"]))
        found.append((str(choice.get("caption", "")), drawn))
    if record.get("sample") is not None and len(record["sample"]):
        drawn = share_bars([record["sample"]], names=["topics"], title="Topics of some documents")
        found.append(("Each column is a document, each colour a topic; sorted by their largest topic.", drawn))
    trace = record.get("trace")
    if trace:
        lines = {f"chain {c + 1}": (np.arange(len(values)), values) for c, values in enumerate(trace)}
        drawn = labelled_lines(lines, title="The chains", x_label="draw", y_label="log joint")
        found.append(("Chains that stay apart have found different topics; the best one is shown here.", drawn))
    return found
