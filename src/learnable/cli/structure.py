"""`learnable structure`: genotypes in; populations, the proportions of every individual, how many there are, a page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import options
from .tables import given_file

if TYPE_CHECKING:
    import numpy as np

#: Shown by --help.
EXAMPLES = (
    "learnable structure hapmap3.bed -k 2..5 --groups hapmap3.pops --report page.html  likelihood, K by masking",
    "learnable structure cats.str -k 3 --method gibbs -o proportions.csv               posterior means and intervals",
)
_CV_TOL = 1e-6  # of fits that are only compared: masked genotypes differ by far more


def structure(
    data: Annotated[
        str, typer.Argument(metavar="DATA", help="A .bed, .str, .vcf, .vcf.gz, .csv or .parquet file of genotypes.")
    ],
    populations: Annotated[
        str, typer.Option("--populations", "-k", metavar="K", help="A number of populations, or a range: 2..6.")
    ] = "2..5",
    groups: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Where individuals were sampled: a file, one label per line, or a column."),
    ] = None,
    method: Annotated[
        str, typer.Option("--method", metavar="NAME", help="ml (maximum likelihood) or gibbs (posterior).")
    ] = "ml",
    admixture: Annotated[bool, typer.Option(help="Whether individuals may come from several populations.")] = True,
    folds: Annotated[
        int, typer.Option("--folds", metavar="N", help="Parts of the genotypes that are masked in turn.")
    ] = 5,
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="FILE", help="A .csv file with the proportions.")
    ] = None,
    report: Annotated[str | None, typer.Option("--report", metavar="FILE", help="Where the HTML page goes.")] = None,
    model: Annotated[
        str | None, typer.Option("--save", metavar="FILE", help="Where the model is saved (.safetensors).")
    ] = None,
    seed: options.Seed = 0,
    debug: options.Debug = False,
) -> None:
    """Find populations from genotypes, with the bar plot that the field expects.

    Of a range of K the best predicts masked genotypes best. Runs of different K are aligned, so that colours mean the
    same. The file written has the proportions of the best K, with 90 % intervals where there are draws.
    """
    if method not in ("ml", "gibbs"):
        raise options.WrongUsageError(f"--method must be ml or gibbs; got {method!r}")
    if folds < 2:
        raise options.WrongUsageError(f"--folds must be at least 2; got {folds}")
    candidates = read_range(populations)
    replaced = [said for said in (given_file(name, data) for name in (output, report, model)) if said]
    from ..topics import read_genotypes

    table = read_genotypes(data, groups=groups)
    runs, choice, best = _search(table, candidates, method, admixture, folds, seed)
    for line in _lines(table, runs[best], choice, best):
        print(line)
    if output is not None:
        _write(table, runs[best], output)
        print(f"proportions: {output}")
    if report is not None:
        from ..core.model_file import writing
        from ..report import render_structure

        page = render_structure(_record(table, runs, choice, best, data))
        with writing(report) as file:
            file.write(page.encode("utf-8"))
        print(f"report: {report}")
    if model is not None:
        from ..core.model_file import save

        save(runs[best], model)
        print(f"model: {model}")
    for said in replaced:
        print(f"note: {said}")


def read_range(text: str) -> list[int]:
    """Return the numbers of "3", "2..6" or "2,4,8".

    Examples
    --------
    >>> from learnable.cli.structure import read_range
    >>> read_range("2..4"), read_range("3"), read_range("2,5")
    ([2, 3, 4], [3], [2, 5])
    """
    try:
        if ".." in text:
            first, _, last = text.partition("..")
            found = list(range(int(first), int(last) + 1))
        else:
            found = [int(part) for part in text.split(",")]
    except ValueError:
        found = []
    if not found or min(found) < 1 or len(found) > 50:
        raise options.WrongUsageError(f"-k must be a number, or a range such as 2..6; got {text!r}")
    return found


def in_order(names: Any) -> list[str]:
    """Return the different names; numbers in the order of numbers.

    Examples
    --------
    >>> from learnable.cli.structure import in_order
    >>> in_order(["10", "2", "b", "2"])
    ['2', '10', 'b']
    """
    return sorted(set(names), key=lambda name: (0, int(name), "") if str(name).isdigit() else (1, 0, name))


def _search(
    table: Any, candidates: list[int], method: str, admixture: bool, folds: int, seed: int
) -> tuple[dict[int, Any], Any, int]:
    """Return the fitted models by K, aligned, the choice among them, and the best K."""
    import warnings

    from ..topics import PopulationStructure, align_columns, select_populations

    settings: dict[str, Any] = {"admixture": admixture, "method": method}
    choice = None
    best = candidates[0]
    if len(candidates) > 1:
        choice = select_populations(
            table, candidates, n_folds=folds, random_state=seed, admixture=admixture, n_init=1, tol=_CV_TOL
        )
        best = choice.best
    runs: dict[int, Any] = {}
    last = None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the certificate is printed
        for K in candidates:
            fitted = PopulationStructure(K, random_state=seed, **settings).fit(table)
            if last is not None and last.n_populations <= K:
                order = align_columns(last.Q_, fitted.Q_)
                _reorder(fitted, order)
            runs[K] = fitted
            last = fitted
    return runs, choice, best


def _reorder(model: Any, order: np.ndarray[Any, Any]) -> None:
    """Renumber the populations of a fitted model."""
    import numpy as np

    for name in ("Q_", "P_", "Q_draws_", "P_draws_"):
        if hasattr(model, name):
            setattr(model, name, np.ascontiguousarray(getattr(model, name)[..., order]))
    model.labels_ = model.Q_.argmax(axis=1).astype(np.int64)


def _lines(table: Any, model: Any, choice: Any, best: int) -> list[str]:
    import numpy as np

    lines = [f"{table!r}"]
    if choice is not None:
        for K, score, error in zip(choice.candidates, choice.scores, choice.errors, strict=True):
            mark = "  <- best" if best == K else ""
            lines.append(f"K = {K}: masked log-likelihood per copy {score:.5f} ± {error:.5f}{mark}")
        if choice.deviance is not None:
            shown = ", ".join(f"{K}: {d:.5f}" for K, d in zip(choice.candidates, choice.deviance, strict=True))
            lines.append(f"cross-validation error (mean deviance of masked genotypes): {shown}")
    lines.append(f"PopulationStructure: {best} populations, log-likelihood {model.log_likelihood_:.2f}")
    lines.append(f"certificate: {model.certificate_!r}")
    sizes = ", ".join(f"{k + 1}: {100 * share:.1f} %" for k, share in enumerate(model.Q_.mean(axis=0)))
    lines.append(f"shares of the populations: {sizes}")
    if best > 1:
        fst = model.fst()
        pairs = [f"{j + 1}-{k + 1}: {fst[j, k]:.3f}" for j in range(best) for k in range(j + 1, best)]
        lines.append(f"F_ST: {', '.join(pairs[:15])}")
    for name in in_order(table.groups or ()):
        own = model.Q_[np.array(table.groups) == name]
        lines.append(f"group {name}: {len(own)} individuals; " + ", ".join(f"{q:.3f}" for q in own.mean(axis=0)))
    return lines


def _write(table: Any, model: Any, path: str) -> None:
    import csv
    import io

    from ..core.model_file import writing

    K = model.n_populations
    heads = ["individual", *(["group"] if table.groups else []), *(f"population_{k + 1}" for k in range(K))]
    ends = model.Q_interval(0.9) if model.method == "gibbs" else None
    if ends is not None:
        heads += [f"{end}_{k + 1}" for k in range(K) for end in ("low", "high")]
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(heads)
    for i, name in enumerate(table.individuals):
        line = [name, *([table.groups[i]] if table.groups else []), *(f"{q:.6f}" for q in model.Q_[i])]
        if ends is not None:
            line += [f"{ends[side][i, k]:.6f}" for k in range(K) for side in (0, 1)]
        rows.writerow(line)
    with writing(path) as file:
        file.write(text.getvalue().encode("utf-8"))


def _record(table: Any, runs: dict[int, Any], choice: Any, best: int, source: str) -> dict[str, Any]:
    """Return what the page shows; individuals are sorted by group, then by their largest population in it."""
    import numpy as np

    from ..evaluation.comparison.record import timestamp

    model = runs[best]
    groups = list(table.groups) if table.groups else None
    label = np.array(groups) if groups else np.zeros(table.n_individuals, dtype=str)
    places = []
    for name in in_order(label.tolist()):
        own = np.flatnonzero(label == name)
        main = int(model.Q_[own].mean(axis=0).argmax())
        places.append(own[np.argsort(-model.Q_[own, main], kind="stable")])
    if groups is None:  # sorted by population, then by how much of it
        top = model.Q_.argmax(axis=1)
        places = [np.lexsort((-model.Q_.max(axis=1), top))]
    order = np.concatenate(places)
    by_group = []
    for name in in_order(groups or ()):
        own = model.Q_[label == name]
        by_group.append({"name": name, "n": len(own), "shares": own.mean(axis=0).tolist()})
    notes = [
        "method: " + ("maximum likelihood by block relaxation" if model.method == "ml" else "posterior means of draws"),
        f"log-likelihood at Q and P: {model.log_likelihood_:.2f}",
        f"missing copies were left out: {1 - table.n_typed.sum() / (len(label) * table.n_loci * table.ploidy):.2%}",
        "runs of different K are aligned by their proportions; a population without individuals of its own is a guess",
    ]
    picked = None
    if choice is not None:
        picked = {
            "criterion": "masked log-likelihood per copy",
            "candidates": choice.candidates,
            "values": choice.scores.tolist(),
            "errors": choice.errors.tolist(),
            "caption": "How well masked genotypes are predicted: the highest point is the best number of populations.",
        }
    return {
        "format": "learnable-structure",
        "source": source,
        "created": timestamp(),
        "model": f"PopulationStructure({best}): {table.n_individuals} individuals, {table.n_loci} loci",
        "rows": table.n_individuals,
        "columns": list(table.loci),
        "certificate": f"certificate: {model.certificate_!r}",
        "strips": [{"K": K, "shares": run.Q_[order].tolist()} for K, run in runs.items()],
        "groups": [groups[i] for i in order] if groups else None,
        "best": best,
        "fst": model.fst().tolist(),
        "by_group": by_group,
        "choice": picked,
        "notes": notes,
        "command": "learnable " + " ".join(options.arguments),
    }
