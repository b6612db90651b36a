"""`learnable cluster`: a table in; clusters, how many there are, a report with pictures, a label for every row."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from . import options
from .tables import given_file, load_table

if TYPE_CHECKING:
    import numpy as np

#: Shown by --help.
EXAMPLES = (
    "learnable cluster iris.csv                                  a Gaussian mixture; BIC chooses the clusters",
    "learnable cluster iris.csv --model kmeans -k 3 -o rows.csv  three clusters by k-means, one label per row",
)
_METHODS = ("gaussian", "kmeans")
_MOST_LEVELS = 20  # different values of a column that is taken for a category
_AT_LEAST = 8  # clusters that are tried in any case
_BEYOND = 4  # numbers of clusters without improvement after which the search ends
_MOST_TRIED = 40  # clusters; beyond that a user has to ask for more
_SAMPLED = 2000  # rows that the silhouette is computed from, and that the picture shows


class Rows(NamedTuple):
    """The numbers of a table."""

    X: np.ndarray[Any, Any]  #: (n, d), NaN where a cell is empty
    columns: list[str]
    notes: list[str]
    scale: np.ndarray[Any, Any]  #: (d,) what each is divided by, so that every column of the table has variance one


def cluster(
    data: options.Data,
    method: Annotated[
        str, typer.Option("--model", "-m", metavar="MODEL", help="gaussian (a mixture) or kmeans.")
    ] = "gaussian",
    clusters: Annotated[
        int | None, typer.Option("--clusters", "-k", metavar="K", help="Number of clusters; chosen by default.")
    ] = None,
    most: Annotated[
        int | None,
        typer.Option("--most", metavar="K", help="The largest number tried; by default until the criterion turns."),
    ] = None,
    covariance: Annotated[
        str, typer.Option("--covariance", metavar="TYPE", help="full, tied, diag or spherical (gaussian only).")
    ] = "full",
    column: Annotated[
        list[str] | None, typer.Option("--column", "-c", metavar="NAME", help="A column to use; may be repeated.")
    ] = None,
    drop: options.Drop = None,
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="FILE", help="A .csv file with the cluster of every row.")
    ] = None,
    report: Annotated[str | None, typer.Option("--report", metavar="FILE", help="Where the HTML report goes.")] = None,
    model: Annotated[
        str | None, typer.Option("--save", metavar="FILE", help="Where the model is saved (.safetensors).")
    ] = None,
    seed: options.Seed = 0,
    delimiter: options.Delimiter = None,
    encoding: options.Encoding = None,
    debug: options.Debug = False,
) -> None:
    """Find clusters of similar rows in the columns that are numbers and, with k-means, in categories.

    Columns are divided by their standard deviations; a category is a 0/1 column for each of its values, which together
    have the variance of one column. A mixture takes the number of clusters with the least BIC and
    leaves empty cells open; k-means takes the number with the greatest mean silhouette and fills them with the mean.
    Clusters are numbered by size. The file written has `cluster`, and with a mixture `p(0)`, `p(1)`, …: the
    probabilities of the clusters.
    """
    if method not in _METHODS:
        raise options.WrongUsageError(f"--model must be gaussian or kmeans; got {method!r}")
    if covariance not in ("full", "tied", "diag", "spherical"):
        raise options.WrongUsageError(f"--covariance must be full, tied, diag or spherical; got {covariance!r}")
    if clusters is not None and clusters < 1:
        raise options.WrongUsageError(f"--clusters must be at least 1; got {clusters}")
    if most is not None and most < 2:
        raise options.WrongUsageError(f"--most must be at least 2; got {most}")
    replaced = [said for said in (given_file(name, data) for name in (output, report, model)) if said]
    table = load_table(data, delimiter=delimiter, encoding=encoding)
    rows = read_rows(table, column, drop or [], categories=method == "kmeans")
    found = find_clusters(rows, method, clusters, most, covariance, seed)
    for line in _lines(found, rows):
        print(line)
    if output is not None:
        _write(found, output)
        print(f"clusters of the rows: {output}")
    if report is not None:
        from ..core.model_file import writing
        from ..report import render_clusters

        page = render_clusters(_record(found, rows, data))
        with writing(report) as file:
            file.write(page.encode("utf-8"))
        print(f"report: {report}")
    if model is not None:
        from ..core.model_file import save

        save(found.model, model)
        print(f"model: {model}")
    for said in replaced:
        print(f"note: {said}")


class Clusters(NamedTuple):
    """What was found."""

    model: Any  #: fitted to Z
    Z: np.ndarray[Any, Any]  #: (n, d) columns in units of their standard deviations
    order: np.ndarray[Any, Any]  #: (K,) the model's number of each cluster, the largest first
    labels: np.ndarray[Any, Any]  #: (n,) in that order
    chances: np.ndarray[Any, Any] | None  #: (n, K) in that order; None for k-means
    choice: dict[str, Any]  #: criterion, candidates, values
    notes: list[str]


def read_rows(table: Any, columns: list[str] | None, drop: list[str], *, categories: bool = False) -> Rows:
    """Return the columns that vary: numbers and, if wanted, categories; those that were named must be such columns."""
    import numpy as np
    import pyarrow as pa

    from ..core.errors import DataError

    names = list(table.column_names) if columns is None else list(columns)
    unknown = [name for name in [*names, *drop] if name not in table.column_names]
    if unknown:
        shown = ", ".join(table.column_names[:10])
        raise DataError(f"cluster: there is no column {unknown[0]!r}; the table has {shown}.")
    kept: dict[str, np.ndarray[Any, Any]] = {}
    scale = []
    left_out = []
    for name in names:
        if name in drop:
            continue
        kind = table.schema.field(name).type
        if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
            parts = _indicators(name, table[name]) if categories else {}
            if not parts and columns is not None:
                remedy = (
                    f"between 2 and {_MOST_LEVELS} different values" if categories else "categories (--model kmeans)"
                )
                raise DataError(
                    f"cluster: column {name!r} is not a number but {kind}. Leave it out; k-means takes {remedy}."
                )
            if not parts:
                left_out.append(name)
            kept |= parts
            scale += [float(np.sqrt(sum(np.nanvar(part) for part in parts.values())))] * len(parts)
            continue
        values = table[name].cast(pa.float64()).to_numpy(zero_copy_only=False).astype(float)
        known = values[np.isfinite(values)]
        identifier = columns is None and pa.types.is_integer(kind) and len(np.unique(known)) == len(values) > 20
        if len(known) == 0 or known.min() == known.max() or identifier:
            left_out.append(name)
            continue
        kept[name] = np.where(np.isfinite(values), values, np.nan)
        scale.append(float(known.std()))
    if not kept:
        raise DataError("cluster: no column is a number that varies. Name columns with --column.")
    notes = [f"left out (text, constant or an identifier): {', '.join(left_out)}"] if left_out else []
    return Rows(np.column_stack(list(kept.values())), list(kept), notes, np.array(scale))


def _indicators(name: str, column: Any) -> dict[str, np.ndarray[Any, Any]]:
    """Return a 0/1 column for each value of a category, NaN where the cell is empty; none if it is no category."""
    import numpy as np
    import pyarrow as pa

    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_boolean(kind)):
        return {}
    given = column.to_pylist()
    empty = np.array([cell is None for cell in given])
    cells = np.array([str(cell) for cell in given])
    values = np.unique(cells[~empty]).tolist()
    if not 2 <= len(values) <= _MOST_LEVELS:
        return {}
    return {f"{name}={value}": np.where(empty, np.nan, cells == value).astype(float) for value in values}


def find_clusters(rows: Rows, method: str, K: int | None, most: int | None, covariance: str, seed: int) -> Clusters:
    """Fit the model, with the number of clusters that was asked for or that the criterion chooses."""
    import numpy as np

    from ..mixtures import GaussianMixture, KMeans, select_components

    notes = [*rows.notes, "columns were divided by their standard deviations"]
    Z = (rows.X - np.nanmean(rows.X, axis=0)) / rows.scale
    choice: dict[str, Any] = {}
    if method == "kmeans":
        if np.isnan(Z).any():
            notes.append(f"{int(np.isnan(Z).sum())} empty cells were filled with the mean of their column")
            Z = np.nan_to_num(Z)
        if K is None:

            def fit_centres(k: int) -> tuple[Any, float]:
                fitted = KMeans(k, n_init=5, random_state=seed).fit(Z)
                return fitted, -_silhouette(Z, fitted.labels_, seed)

            search = _search(fit_centres, 2, most, len(Z) - 1)
            model = search.model
            values = [-value for value in search.values]
            choice = {"criterion": "mean silhouette", "candidates": search.candidates, "values": values}
            notes += search.notes
        else:
            model = KMeans(K, n_init=10, random_state=seed).fit(Z)
        labels = model.labels_
        chances = None
    else:
        notes.append("a weak prior keeps components from collapsing onto a few rows (Fraley and Raftery, 2007)")
        mixture = GaussianMixture(covariance_type=covariance, n_init=3, max_iter=500, tol=1e-6, prior="default")
        mixture.set_params(random_state=seed)
        if K is None:

            def fit_mixture(k: int) -> tuple[Any, float]:
                picked = select_components(mixture, Z, [k])
                return picked.best, float(picked.values[0])

            search = _search(fit_mixture, 1, most, len(Z) - 1)
            model = search.model
            choice = {"criterion": "BIC", "candidates": search.candidates, "values": search.values}
            notes += search.notes
        else:
            model = mixture.set_params(n_components=K).fit(Z)
        chances = model.predict_proba(Z)
        labels = chances.argmax(axis=1)
    n_clusters = model.n_clusters if method == "kmeans" else model.n_components
    order = np.argsort(-np.bincount(labels, minlength=n_clusters), kind="stable")
    rank = np.argsort(order)
    return Clusters(model, Z, order, rank[labels], None if chances is None else chances[:, order], choice, notes)


class _Search(NamedTuple):
    """Which numbers of clusters were tried, and the best of them."""

    model: Any
    candidates: list[int]
    values: list[float]
    notes: list[str]


def _search(fit: Callable[[int], tuple[Any, float]], first: int, most: int | None, possible: int) -> _Search:
    """Try numbers of clusters from `first` on and take the one of least criterion.

    Without `most` the search goes on until the least value is _BEYOND numbers back, and says if it had to stop before.
    """
    last = max(first, min(_MOST_TRIED if most is None else most, possible))
    candidates: list[int] = []
    values: list[float] = []
    best: Any = None
    for k in range(first, last + 1):
        model, value = fit(k)
        if not values or value < min(values):
            best = model
        candidates.append(k)
        values.append(value)
        if most is None and k >= _AT_LEAST and len(values) - 1 - values.index(min(values)) >= _BEYOND:
            break
    notes = []
    if len(values) > 1 and values[-1] == min(values) and last < possible:
        notes.append(f"the criterion was still improving at {last} clusters, the largest number tried; raise --most")
    return _Search(best, candidates, values, notes)


def _silhouette(Z: np.ndarray[Any, Any], labels: np.ndarray[Any, Any], seed: int) -> float:
    """Return the mean silhouette (P. Rousseeuw, 1987) of some rows; −1 where it is not defined."""
    import numpy as np
    from sklearn.metrics import silhouette_score

    rows = np.random.default_rng(seed).permutation(len(Z))[:_SAMPLED]
    if not 2 <= len(np.unique(labels[rows])) < len(rows):
        return -1.0
    return float(silhouette_score(Z[rows], labels[rows]))


def _lines(found: Clusters, rows: Rows) -> list[str]:
    K = len(found.order)
    n = len(found.labels)
    lines = [
        f"{type(found.model).__name__}: {K} cluster{'s' if K > 1 else ''} of {n:,} rows, {len(rows.columns)} columns"
    ]
    lines += [f"note: {note}" for note in found.notes]
    if found.choice:
        pairs = zip(found.choice["candidates"], found.choice["values"], strict=True)
        lines.append(f"{found.choice['criterion']}: " + ", ".join(f"{k}: {value:.4g}" for k, value in pairs))
    lines.append(f"certificate: {found.model.certificate_!r}")
    for cluster in _clusters(found, rows):
        means = ", ".join(f"{c} {m:.4g}" for c, m in list(zip(rows.columns, cluster["mean"], strict=True))[:6])
        lines.append(f"cluster {cluster['name']}: {cluster['rows']:,} rows ({100 * cluster['share']:.1f} %); {means}")
    return lines


def _clusters(found: Clusters, rows: Rows) -> list[dict[str, Any]]:
    """Return size, means and spreads of the clusters, in the units of the table."""
    import warnings

    import numpy as np

    described = []
    for k in range(len(found.order)):
        own = rows.X[found.labels == k]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # a cluster may have no row, or no number in a column
            mean = np.nanmean(own, axis=0)
            spread = np.nanstd(own, axis=0)
        share = len(own) / len(rows.X)
        described.append({"name": str(k), "rows": len(own), "share": share, "mean": mean, "spread": spread})
    return described


def _record(found: Clusters, rows: Rows, source: str) -> dict[str, Any]:
    """Return what the report shows."""
    from ..evaluation.comparison.record import timestamp

    model = found.model
    mixture = found.chances is not None
    history = model.bound_history_ if mixture else model.inertia_history_
    criterion = found.choice.get("criterion")
    best = "least" if criterion == "BIC" else "greatest"
    return {
        "format": "learnable-clusters",
        "source": source,
        "created": timestamp(),
        "model": f"{type(model).__name__} with {len(found.order)} clusters",
        "rows": len(rows.X),
        "columns": rows.columns,
        "notes": [*found.notes, f"clusters are numbered by size; fitted by {type(model).__name__}"],
        "certificate": repr(model.certificate_),
        "clusters": _clusters(found, rows),
        "choice": found.choice | {"caption": f"The {criterion} of each number of clusters: the {best} is taken."}
        if found.choice and len(found.choice["candidates"]) > 1
        else None,
        "picture": _picture(found, rows),
        "history": {
            "name": "objective per row" if mixture else "inertia",
            "values": history,
            "caption": "The objective after each step of the search; it never " + ("falls." if mixture else "rises."),
        }
        if len(history) > 3  # a line through fewer points says nothing
        else None,
        "command": "learnable " + " ".join(options.arguments) if options.arguments else None,
    }


def _picture(found: Clusters, rows: Rows) -> dict[str, Any]:
    """Return some rows in the plane where they vary most, with the centres and covariances of the clusters there."""
    import numpy as np

    Z = np.nan_to_num(found.Z)
    d = Z.shape[1]
    centres = found.model.means_ if found.chances is not None else found.model.cluster_centers_
    shares = np.zeros(2)
    if d == 1:
        axes = np.array([[1.0, 0.0]])
        shown = (rows.columns[0], "")
    elif d == 2:
        axes = np.eye(2)
        shown = (rows.columns[0], rows.columns[1])
    else:
        values, vectors = np.linalg.eigh(np.cov(Z.T))
        axes = vectors[:, ::-1][:, :2]
        shares = values[::-1][:2] / values.sum()
        shown = tuple(f"component {a + 1} ({100 * shares[a]:.0f} % of the variance)" for a in range(2))  # type: ignore[assignment]
    some = np.unique(np.linspace(0, len(Z) - 1, min(len(Z), _SAMPLED)).round().astype(int))
    flat = Z[some] @ axes
    if d == 1:  # one column has no second direction: spread the rows, so that they can be seen
        flat[:, 1] = np.random.default_rng(0).uniform(-1, 1, len(flat))
    covariances = None
    if found.chances is not None and d > 1:
        full = _full_covariances(found.model)[found.order]
        covariances = np.swapaxes(axes, 0, 1) @ full @ axes
    where = "the plane of the two leading principal components" if d > 2 else "standard units"
    return {
        "x": flat[:, 0],
        "y": flat[:, 1],
        "labels": found.labels[some],
        "centres": centres[found.order] @ axes,
        "covariances": covariances,
        "x_label": shown[0],
        "y_label": shown[1],
        "caption": f"Rows by cluster in {where}; crosses are centres"
        + ("; ellipses lie at one and two standard deviations." if covariances is not None else "."),
    }


def _full_covariances(model: Any) -> np.ndarray[Any, Any]:
    """Return Σₖ as (K, d, d), whatever the kind."""
    import numpy as np

    K, d = model.means_.shape
    found = np.asarray(model.covariances_)
    if model.covariance_type == "full":
        return found
    if model.covariance_type == "tied":
        return np.broadcast_to(found, (K, d, d))
    return np.stack([np.diag(np.broadcast_to(found[k], d)) for k in range(K)])


def _write(found: Clusters, output: str) -> None:
    import pyarrow as pa
    from pyarrow import csv

    columns = {"cluster": found.labels}
    if found.chances is not None:
        columns |= {f"p({k})": found.chances[:, k] for k in range(len(found.order))}
    csv.write_csv(pa.table(columns), output)
