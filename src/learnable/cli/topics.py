"""`learnable topics`: a table with a column of text in; topics, their words and documents, a page in one file."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from . import options
from .structure import read_range
from .tables import given_file, load_table

#: Shown by --help.
EXAMPLES = (
    "learnable topics papers.csv --text abstract -k 20 --report topics.html  topics, words, documents, as a page",
    "learnable topics papers.csv --text abstract -k 5,10,20,40               how many? by held-out likelihood",
)
_MOST_SHOWN = 400  # documents of the picture
_PER_TOPIC = 3  # documents shown for each topic


def topics(
    data: options.Data,
    text: Annotated[str, typer.Option("--text", metavar="COLUMN", help="The column that holds the documents.")],
    number: Annotated[
        str, typer.Option("--topics", "-k", metavar="K", help="A number of topics, or several: 5,10,20 or 4..8.")
    ] = "10",
    sweeps: Annotated[int, typer.Option("--sweeps", metavar="N", help="Sweeps of each of two chains.")] = 400,
    stop_words: Annotated[
        str, typer.Option("--stop-words", metavar="FILE", help="english, none, or a file with one word per line.")
    ] = "english",
    least: Annotated[int, typer.Option("--min-texts", metavar="N", help="Fewest documents with a word.")] = 2,
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="FILE", help="A .csv file with the topics' shares.")
    ] = None,
    report: Annotated[str | None, typer.Option("--report", metavar="FILE", help="Where the HTML page goes.")] = None,
    model: Annotated[
        str | None, typer.Option("--save", metavar="FILE", help="Where the model is saved (.safetensors).")
    ] = None,
    seed: options.Seed = 0,
    delimiter: options.Delimiter = None,
    encoding: options.Encoding = None,
    debug: options.Debug = False,
) -> None:
    """Find topics in a column of text by Gibbs sampling, with learned Dirichlet parameters.

    Of several numbers of topics the best predicts held-out documents best. The model saved knows the vocabulary: it
    takes texts.
    """
    if sweeps < 20:
        raise options.WrongUsageError(f"--sweeps must be at least 20; got {sweeps}")
    candidates = read_range(number)
    replaced = [said for said in (given_file(name, data) for name in (output, report, model)) if said]
    table = load_table(data, delimiter=delimiter, encoding=encoding)
    if text not in table.column_names:
        raise options.WrongUsageError(f"--text: there is no column {text!r}; there are {', '.join(table.column_names)}")
    texts = ["" if value is None else str(value) for value in table[text].to_pylist()]
    found, choice = _find(texts, candidates, sweeps, _stop_words(stop_words), least, seed)
    record = _record(found, texts, choice, data)
    for line in _lines(record):
        print(line)
    if output is not None:
        _write(found.transform(texts), output)
        print(f"shares of the topics: {output}")
    if report is not None:
        from ..core.model_file import writing
        from ..report import render_topics

        with writing(report) as file:
            file.write(render_topics(record).encode("utf-8"))
        print(f"report: {report}")
    if model is not None:
        from ..core.model_file import save

        save(found, model)
        print(f"model: {model}")
    for said in replaced:
        print(f"note: {said}")


def _stop_words(given: str) -> Any:
    from pathlib import Path

    if given in ("english", "none"):
        return "english" if given == "english" else None
    path = Path(given)
    if not path.is_file():
        raise options.WrongUsageError(f"--stop-words must be english, none or a file; there is no file {given}")
    return path.read_text(encoding="utf-8").split()


def _find(
    texts: list[str], candidates: list[int], sweeps: int, stop_words: Any, least: int, seed: int
) -> tuple[Any, Any]:
    """Return the fitted model of the best number of topics, and the choice."""
    import warnings

    from ..topics import LatentDirichletAllocation, TextCounts, select_topics

    counting: dict[str, Any] = {"stop_words": stop_words, "min_df": least}
    settings: dict[str, Any] = {"doc_topic_prior": "symmetric", "topic_word_prior": "symmetric"}
    choice = None
    K = candidates[0]
    if len(candidates) > 1:
        counts = TextCounts(**counting).fit_transform(texts)
        brief: dict[str, Any] = {"n_chains": 1, "n_draws": sweeps // 5, "n_warmup": sweeps // 5}
        choice = select_topics(counts, candidates, random_state=seed, **settings, **brief)
        K = choice.best
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the certificate is printed
        found = LatentDirichletAllocation(
            K, text=counting, n_draws=sweeps // 2, n_warmup=sweeps - sweeps // 2, random_state=seed, **settings
        ).fit(texts)
    return found, choice


def _record(model: Any, texts: list[str], choice: Any, source: str) -> dict[str, Any]:
    """Return what is printed and what the page shows: topics by size."""
    import numpy as np

    from ..evaluation.comparison.record import timestamp
    from ..topics import TextCounts, coherence

    counts = TextCounts(**model.text).with_vocabulary(model.vocabulary_).transform(texts)
    shares = model.transform(texts)
    sizes = model.topic_sizes()
    order = np.argsort(-sizes, kind="stable")
    phi = model.components_ / model.components_.sum(axis=1, keepdims=True)
    root = np.sqrt(phi)
    likeness = root @ root.T  # Bhattacharyya's coefficient
    np.fill_diagonal(likeness, -1.0)
    place = {int(k): n + 1 for n, k in enumerate(order)}
    frequent = model.top_words(10)
    telling = model.top_words(10, relevance=0.4)
    numbers = model.top_words(10, names=list(range(len(model.vocabulary_))))
    levels = coherence(numbers, counts)
    listed = []
    documents = []
    words_in = np.asarray(counts.sum(axis=1)).ravel()
    for k in order.tolist():
        like = int(likeness[k].argmax())
        listed.append(
            {
                "name": f"topic {place[k]}",
                "share": float(sizes[k]),
                "words": frequent[k],
                "telling": telling[k],
                "coherence": float(levels[k]),
                "like": f"topic {place[like]} ({likeness[k, like]:.2f})" if len(order) > 1 else "",
            }
        )
        weight = np.where(words_in >= 5, shares[:, k], 0.0)
        seen: set[str] = set()  # the same text often comes twice
        for d in np.argsort(-weight, kind="stable").tolist():
            if len(seen) == _PER_TOPIC:
                break
            if texts[d] not in seen:
                seen.add(texts[d])
                documents.append({"topic": f"topic {place[k]}", "share": float(shares[d, k]), "text": texts[d]})
    some = np.linspace(0, len(texts) - 1, min(len(texts), _MOST_SHOWN)).astype(int)
    sample = shares[some][:, order]
    sample = sample[np.lexsort((-sample.max(axis=1), sample.argmax(axis=1)))]
    picked = None
    if choice is not None:
        picked = {
            "criterion": "held-out log-likelihood per token",
            "candidates": choice.candidates,
            "values": choice.scores.tolist(),
            "errors": choice.errors.tolist(),
            "caption": "How well held-out documents are predicted, from left to right: higher is better.",
        }
    alpha = float(np.mean(model.doc_topic_prior_))
    empty = int((words_in == 0).sum())
    return {
        "format": "learnable-topics",
        "source": source,
        "created": timestamp(),
        "model": f"LatentDirichletAllocation: {len(order)} topics of {len(texts):,} documents",
        "rows": len(texts),
        "columns": list(model.vocabulary_),
        "certificate": f"certificate: {model.certificate_!r}",
        "topics": listed,
        "documents": documents,
        "sample": sample.tolist(),
        "trace": model.trace_[:, :, 0].tolist(),
        "choice": picked,
        "notes": [
            f"{len(model.vocabulary_):,} words, {int(words_in.sum()):,} tokens"
            + (f"; {empty} documents have none" if empty else ""),
            f"learned: α = {alpha:.4g} per topic, η = {model.topic_word_prior_:.4g} per word",
            f"two chains of {model.n_iter_} sweeps; topics are those of the chain with the greater log joint",
            *_doubts(model),
        ],
        "command": "learnable " + " ".join(options.arguments),
    }


def _doubts(model: Any) -> list[str]:
    """Return what to make of a certificate that does not hold, and what to do about it."""
    if model.certificate_.holds:
        return []
    return [
        "the chains disagree, or have fewer than 400 independent draws: the words describe the texts, but topics and "
        f"shares may differ from seed to seed; try --sweeps {5 * model.n_iter_}, fewer topics, or another --seed"
    ]


def _lines(record: dict[str, Any]) -> list[str]:
    lines = [record["model"], *(f"note: {note}" for note in record["notes"]), record["certificate"]]
    choice = record["choice"]
    if choice is not None:
        for K, score, error in zip(choice["candidates"], choice["values"], choice["errors"], strict=True):
            lines.append(f"{K} topics: {choice['criterion']} {score:.4f} ± {error:.4f}")
    for topic in record["topics"]:
        lines.append(f"{topic['name']} ({100 * topic['share']:.1f} %): {', '.join(topic['words'])}")
    return lines


def _write(shares: Any, path: str) -> None:
    from ..core.model_file import writing

    head = ",".join(f"topic_{k + 1}" for k in range(shares.shape[1]))
    body = "".join(",".join(f"{share:.6f}" for share in row) + "\n" for row in shares.tolist())
    with writing(path) as file:
        file.write(f"{head}\n{body}".encode())
