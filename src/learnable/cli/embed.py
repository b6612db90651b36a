"""`learnable embed`: a table in; two coordinates for every row, how far they can be trusted, a picture in one file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import options
from .cluster import Rows, read_rows
from .tables import given_file, load_table

if TYPE_CHECKING:
    import numpy as np

#: Shown by --help.
EXAMPLES = (
    "learnable embed iris.csv --colour species --report map.html  principal components, as a picture",
    "learnable embed iris.csv --model isomap -o places.csv        distances along the data; coordinates as a file",
)
_METHODS = ("pca", "mds", "isomap", "spectral", "tsne")
_COLOURS = ("#3b528b", "#b3541e", "#21918c", "#aa3377", "#5ec962", "#997700", "#66ccee", "#777777")
_MOST_SHOWN = 3000  # points of the picture, and rows that its quality is measured on
_SAYS = {
    "pca": "distances in the picture are at most those of the data",
    "mds": "distances in the picture are at most those of the data",
    "isomap": "distances in the picture stand for distances along the graph of neighbours",
    "spectral": "rows that are joined lie near each other; far distances in the picture mean nothing",
    "tsne": "neighbours in the picture are neighbours in the data; sizes of clusters and distances between them mean "
    "little",
}
_MOST_PERPLEXITY = 30.0  # of t-SNE; of a small table a third of the rows


def embed(
    data: options.Data,
    method: Annotated[
        str, typer.Option("--model", "-m", metavar="MODEL", help="pca, mds, isomap, spectral or tsne.")
    ] = "pca",
    neighbours: Annotated[
        int, typer.Option("--neighbours", "-k", metavar="K", help="Neighbours of a row (isomap and spectral).")
    ] = 10,
    colour: Annotated[
        str | None, typer.Option("--colour", metavar="NAME", help="A column that colours the picture; not embedded.")
    ] = None,
    column: Annotated[
        list[str] | None, typer.Option("--column", "-c", metavar="NAME", help="A column to use; may be repeated.")
    ] = None,
    drop: options.Drop = None,
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="FILE", help="A .csv file with two coordinates per row.")
    ] = None,
    report: Annotated[str | None, typer.Option("--report", metavar="FILE", help="Where the HTML page goes.")] = None,
    model: Annotated[
        str | None, typer.Option("--save", metavar="FILE", help="Where the model is saved (.safetensors).")
    ] = None,
    delimiter: options.Delimiter = None,
    encoding: options.Encoding = None,
    debug: options.Debug = False,
) -> None:
    """Show the rows of a table as points of a plane, by the columns that are numbers.

    Columns are divided by their standard deviations; empty cells are filled with the mean of their column. Beside the
    picture stand trustworthiness and continuity (from 0 to 1): how far neighbours in the picture are neighbours in the
    data, and the other way round.
    """
    if method not in _METHODS:
        raise options.WrongUsageError(f"--model must be pca, mds, isomap, spectral or tsne; got {method!r}")
    if neighbours < 2:
        raise options.WrongUsageError(f"--neighbours must be at least 2; got {neighbours}")
    replaced = [said for said in (given_file(name, data) for name in (output, report, model)) if said]
    table = load_table(data, delimiter=delimiter, encoding=encoding)
    if colour is not None and colour not in table.column_names:
        raise options.WrongUsageError(f"--colour: there is no column {colour!r}")
    rows = read_rows(table, column, [*(drop or []), *([colour] if colour else [])])
    fitted, places, lines = _embedded(rows, method, neighbours)
    for line in lines:
        print(line)
    if output is not None:
        _write(places, output)
        print(f"coordinates of the rows: {output}")
    if report is not None:
        values = None if colour is None else table[colour].to_pylist()
        _draw(places, rows.columns, lines, values, colour, data, report)
        print(f"report: {report}")
    if model is not None:
        from ..core.model_file import save

        save(fitted, model)
        print(f"model: {model}")
    for said in replaced:
        print(f"note: {said}")


def _embedded(rows: Rows, method: str, neighbours: int) -> tuple[Any, np.ndarray[Any, Any], list[str]]:
    """Return the fitted model, the coordinates, and what is to be said of them."""
    import numpy as np

    from ..core.errors import DataError
    from ..manifold import PCA, TSNE, ClassicalMDS, Isomap, SpectralEmbedding, continuity, trustworthiness

    Z = np.nan_to_num((rows.X - np.nanmean(rows.X, axis=0)) / rows.scale)
    n, d = Z.shape
    if n < 3:
        raise DataError(f"embed: the table has {n} rows; a picture needs at least three.")
    k = min(neighbours, n - 1)
    models = {
        "pca": PCA(min(2, n, d)),
        "mds": ClassicalMDS(2),
        "isomap": Isomap(n_neighbors=k),
        "spectral": SpectralEmbedding(2, n_neighbors=min(k + 1, n)),
        "tsne": TSNE(min(2, d), perplexity=max(1.0, min(_MOST_PERPLEXITY, (n - 1) / 3.0)), random_state=0),
    }
    model = models[method]
    places = np.asarray(model.fit_transform(Z))
    if places.shape[1] == 1:  # a table of one column
        places = np.column_stack([places, np.zeros(n)])
    lines = [f"{type(model).__name__}: {n:,} rows, {d} columns, two coordinates", *(f"note: {s}" for s in rows.notes)]
    empty = int(np.isnan(rows.X).sum())
    if empty:
        lines.append(f"note: {empty} empty cells were filled with the mean of their column")
    if method == "pca":
        lines.append(f"share of the variance: {float(model.explained_variance_ratio_.sum()):.1%}")
    if method == "isomap":
        lines.append(f"residual variance: {model.residual_variance_:.2%}; parts of the graph: {model.n_parts_}")
    if method == "tsne":
        lines.append(f"KL divergence: {model.kl_divergence_:.3f}; perplexity: {model.perplexity:g}")
    some = np.linspace(0, n - 1, min(n, _MOST_SHOWN)).astype(int)
    compared = min(10, (len(some) - 1) // 2)
    kept = [measure(Z[some], places[some], n_neighbors=compared) for measure in (trustworthiness, continuity)]
    lines.append(f"trustworthiness {kept[0]:.3f}, continuity {kept[1]:.3f}, of {compared} neighbours")
    lines.append(f"what it shows: {_SAYS[method]}")
    lines.append(f"certificate: {model.certificate_!r}")
    return model, places, lines


def _write(places: np.ndarray[Any, Any], path: str) -> None:
    from ..core.model_file import writing

    text = "first,second\n" + "".join(f"{a!r},{b!r}\n" for a, b in places.tolist())
    with writing(path) as file:
        file.write(text.encode("utf-8"))


def _draw(
    places: np.ndarray[Any, Any],
    columns: list[str],
    lines: list[str],
    values: list[Any] | None,
    name: str | None,
    source: str,
    path: str,
) -> None:
    """Write a page of one file: the picture, the colours, and what was said."""
    import numpy as np

    from ..core.model_file import writing
    from ..evaluation.comparison.record import timestamp
    from ..plots.axes import Frame, extent
    from ..plots.markup import join, tag
    from ..report.clusters import page_of

    groups, words = _groups(values, len(places))
    some = np.linspace(0, len(places) - 1, min(len(places), _MOST_SHOWN)).astype(int)
    frame = Frame.around(extent(places[some, 0]), extent(places[some, 1]), width=640.0, height=560.0)
    drawn = []
    for k in range(len(words)):
        spots = places[some][groups[some] == k]
        path_data = "".join(f"M{frame.x(a):.1f} {frame.y(b):.1f}h0" for a, b in spots)
        if path_data:
            style = {"stroke": _COLOURS[k % len(_COLOURS)], "stroke_width": 4, "stroke_linecap": "round"}
            drawn.append(tag("path", d=path_data, fill="none", opacity=0.7, **style))
    figure = frame.draw("Rows of the table", *drawn, x_label="first", y_label="second")
    caption = join(["Every point is a row."])
    if name is not None:
        marks = [
            join([tag("span", "●", style=f"color:{_COLOURS[k % len(_COLOURS)]}"), " ", word, "  "])
            for k, word in enumerate(words)
        ]
        caption = join([name, ":  ", *marks])
    model, *said = lines
    record = {
        "source": source,
        "created": timestamp(),
        "model": model,
        "certificate": said[-1],
        "rows": len(places),
        "columns": columns,
        "notes": said[:-1],
        "command": "learnable " + " ".join(options.arguments) if options.arguments else None,
    }
    page = page_of(record, "picture", "the rows as a picture", [], [(caption, figure)])
    with writing(path) as file:
        file.write(page.encode("utf-8"))


def _groups(values: list[Any] | None, n: int) -> tuple[np.ndarray[Any, Any], list[str]]:
    """Return the colour of every row and what each stands for: values, or ranges of numbers with many values."""
    from itertools import pairwise

    import numpy as np

    if values is None:
        return np.zeros(n, dtype=int), ["all rows"]
    known = [value for value in values if value is not None]
    numbers = bool(known) and all(isinstance(value, (int, float)) for value in known)
    if numbers and len(set(known)) > len(_COLOURS):
        filled = np.array([np.nan if value is None else float(value) for value in values])
        ends = np.nanquantile(filled, [0.0, 0.2, 0.4, 0.6, 0.8, 1.0])
        ranges = [f"{a:.4g} to {b:.4g}" for a, b in pairwise(ends.tolist())]
        return np.where(np.isnan(filled), 5, np.digitize(filled, ends[1:-1])), [*ranges, "empty"]
    words = sorted({str(value) for value in values})
    place = {word: min(k, len(_COLOURS) - 1) for k, word in enumerate(words)}
    if len(words) > len(_COLOURS):
        words = [*words[: len(_COLOURS) - 1], "others"]
    return np.array([place[str(value)] for value in values]), words
