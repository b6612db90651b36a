"""`learnable hmm`: a table of observations in time in; the hidden states over time out."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import typer

from . import options
from .tables import given_file, load_table

#: Shown by --help.
EXAMPLES = (
    "learnable hmm earthquakes.csv --column count --emission poisson --states 3",
    "learnable hmm returns.csv --column return_pct -o states.csv       states by BIC, 1 to 5",
    "learnable hmm returns.csv -c return_pct --report states.html      a page with the states over time",
    "learnable hmm returns.csv -c return_pct --emission mixture --mix 3  three Gaussians in each state",
)
_EMISSIONS = {"gaussian": "GaussianHMM", "mixture": "GMMHMM", "poisson": "PoissonHMM", "categorical": "CategoricalHMM"}


def hmm(
    data: options.Data,
    column: Annotated[
        list[str] | None, typer.Option("--column", "-c", metavar="NAME", help="An observed column; may be repeated.")
    ] = None,
    emission: Annotated[
        str,
        typer.Option(
            "--emission", metavar="KIND", help="gaussian, mixture (of Gaussians), poisson or categorical (0, 1, …)."
        ),
    ] = "gaussian",
    mix: Annotated[
        int | None, typer.Option("--mix", metavar="G", help="Gaussians in each state of a mixture; 2 by default.")
    ] = None,
    states: Annotated[
        int | None, typer.Option("--states", "-k", metavar="K", help="Number of hidden states; by default BIC chooses.")
    ] = None,
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="FILE", help="A .csv file of states and probabilities.")
    ] = None,
    report: Annotated[str | None, typer.Option("--report", metavar="FILE", help="Where the HTML report goes.")] = None,
    model: Annotated[
        str | None, typer.Option("--save", metavar="FILE", help="Where the model is saved (.safetensors).")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="Draws the starts.")] = 0,
    delimiter: options.Delimiter = None,
    encoding: options.Encoding = None,
    debug: options.Debug = False,
) -> None:
    """Fit a hidden Markov model to rows in the order of time, and tell the state of every row.

    Without --column all columns are observed that are numbers and do not just count the rows. Empty cells are missing
    observations. The columns written are `state` and `p(0)`, `p(1)`, …, the probabilities of the states given all
    rows; states are numbered by their first mean.
    """
    if emission not in _EMISSIONS:
        raise options.WrongUsageError(f"--emission must be {', '.join(_EMISSIONS)}; got {emission!r}")
    if mix is not None and (mix < 1 or emission != "mixture"):
        raise options.WrongUsageError(f"--mix must be at least 1, with --emission mixture; got {mix} with {emission}")
    if states is not None and states < 1:
        raise options.WrongUsageError(f"--states must be at least 1; got {states}")
    replaced = [said for said in (given_file(name, data) for name in (output, report, model)) if said]
    table = load_table(data, delimiter=delimiter, encoding=encoding)
    settings = {"n_mix": mix or 2} if emission == "mixture" else {}
    columns, notes = (column, []) if column else _observed(table)
    fitted, X, choice = fit_states(table, columns, emission, states, seed, **settings)
    states_found = describe_states(fitted, X)
    for line in [*(f"note: {note}" for note in notes), *_lines(fitted, X, states_found, columns)]:
        print(line)
    if output is not None:
        _write(fitted, X, states_found.order, output)
        print(f"states of the rows: {output}")
    if report is not None:
        from ..core.model_file import writing
        from ..report import render_states

        page = render_states(_record(fitted, X, states_found, columns, data, notes, choice))
        with writing(report) as file:
            file.write(page.encode("utf-8"))
        print(f"report: {report}")
    if model is not None:
        from ..core.model_file import save

        save(fitted, model)
        print(f"model: {model}")
    for said in replaced:
        print(f"note: {said}")


class States(NamedTuple):
    """What the hidden states look like, in the order of their first means."""

    order: list[int]  #: the model's number of each state
    names: list[str]
    labels: Any  #: (n,) most probable state of each row
    mean: Any  #: (K, d) of the rows, weighed by the probability of the state
    spread: Any  #: (K, d)
    share: Any  #: (K,)
    transitions: Any  #: (K, K)


def describe_states(model: Any, X: Any) -> States:
    """Return the states of a fitted model, with mean and standard deviation of the rows that are in them."""
    import numpy as np

    K = model.n_components
    order = np.argsort(model._expected(np.eye(K))[:, 0], kind="stable")
    chances = model.predict_proba(X)[:, order]
    known = ~np.isnan(X)
    filled = np.where(known, X, 0.0)
    weight = np.maximum(chances.T @ known, np.finfo(float).tiny)
    mean = chances.T @ filled / weight
    spread = np.sqrt(np.maximum(chances.T @ filled**2 / weight - mean**2, 0.0))
    names = {1: ["only"], 2: ["low", "high"], 3: ["low", "middle", "high"]}.get(K, [str(k) for k in range(K)])
    return States(
        order.tolist(), names, np.argsort(order)[model.predict(X)], mean, spread, chances.mean(axis=0),
        model.transmat_[np.ix_(order, order)],
    )  # fmt: skip


def _observed(table: Any) -> tuple[list[str], list[str]]:
    """Return the columns that are numbers and do not count the rows (a year, an index), and a note on the others."""
    import numpy as np
    import pyarrow as pa

    kept: list[str] = []
    left_out: list[str] = []
    for name in table.column_names:
        kind = table.schema.field(name).type
        numeric = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
        steps = np.diff(table[name].cast(pa.float64()).to_numpy(zero_copy_only=False)) if numeric else np.zeros(0)
        counts_rows = len(steps) > 1 and bool(steps[0] != 0) and bool((steps == steps[0]).all())
        (kept if numeric and not counts_rows else left_out).append(name)
    if not kept:
        return list(table.column_names), []
    return kept, [f"left out (not numbers, or counting the rows): {', '.join(left_out)}"] if left_out else []


def _lines(model: Any, X: Any, found: States, columns: list[str]) -> list[str]:
    K = model.n_components
    lines = [f"{type(model).__name__} with {K} state{'s' if K > 1 else ''}: log-likelihood {model.score(X):.3f}"]
    lines.append(str(model.certificate_))
    for k in range(K):
        values = zip(columns, found.mean[k], found.spread[k], strict=True)
        what = ", ".join(f"{name} {mean:.4g} (sd {sd:.3g})" for name, mean, sd in list(values)[:6])
        named = f" ({found.names[k]})" if found.names[k] != str(k) else ""
        lines.append(
            f"state {k}{named}: {100 * found.share[k]:.1f} % of the rows, stays {_stay(found, k):.3g} rows; mean {what}"
        )
    if K > 1:
        lines.append("next state:   " + "  ".join(f"{k:>6}" for k in range(K)))
        lines += [
            f"  from {k:<6}  " + "  ".join(f"{100 * chance:5.1f}%" for chance in found.transitions[k]) for k in range(K)
        ]
    return lines


def _stay(found: States, k: int) -> float:
    """Return how many rows a state lasts on average."""
    return float(1 / max(1 - found.transitions[k][k], 1e-300))


def _record(
    model: Any, X: Any, found: States, columns: list[str], source: str, notes: list[str], choice: dict[int, float]
) -> dict[str, Any]:
    """Return what the report shows."""
    import numpy as np

    from ..evaluation.comparison.record import timestamp

    states = [
        {
            "name": f"{k}" if found.names[k] == str(k) else f"{k} ({found.names[k]})",
            "share": found.share[k],
            "stay": _stay(found, k),
            "mean": found.mean[k],
            "spread": found.spread[k],
        }
        for k in range(model.n_components)
    ]
    return {
        "format": "learnable-states",
        "source": source,
        "created": timestamp(),
        "model": f"{type(model).__name__} with {len(states)} states, log-likelihood {model.score(X):.3f}",
        "rows": len(X),
        "columns": columns,
        "notes": [*notes, "rows are taken in the order of the file; states are numbered by their first mean"],
        "certificate": str(model.certificate_),
        "states": states,
        "transitions": found.transitions,
        "series": {"name": columns[0], "x": np.arange(len(X)), "y": X[:, 0], "labels": found.labels},
        "choice": {"criterion": "BIC", "candidates": list(choice), "values": list(choice.values())} if choice else None,
        "command": "learnable " + " ".join(options.arguments) if options.arguments else None,
    }


def fit_states(
    table: Any, columns: list[str], emission: str, states: int | None, seed: int, **settings: Any
) -> tuple[Any, Any, dict[int, float]]:
    """Return a fitted model with the states that were asked for or that BIC chooses, its rows, and the BIC of each."""
    import numpy as np
    import pyarrow as pa

    from .. import sequences
    from ..core.errors import DataError

    unknown = [name for name in columns if name not in table.column_names]
    if unknown:
        raise DataError(f"hmm: there is no column {unknown[0]!r}; the table has {', '.join(table.column_names[:10])}.")
    try:
        arrays = [table[name].cast(pa.float64()).to_numpy(zero_copy_only=False) for name in columns]
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise DataError(f"hmm: the observed columns must be numbers; name them with --column ({error}).") from error
    X = np.column_stack(arrays).astype(float)
    kind = getattr(sequences, _EMISSIONS[emission])
    model = kind(n_iter=500, n_init=4, tol=1e-4, random_state=seed, **settings)
    if states is not None:
        return model.set_params(n_components=states).fit(X), X, {}
    choice = sequences.select_states(model, X)
    print("BIC:", ", ".join(f"{K} states {value:.1f}" for K, value in choice.criteria.items()))
    return choice.best, X, choice.criteria


def _write(model: Any, X: Any, order: list[int], output: str) -> None:
    import numpy as np
    import pyarrow as pa
    from pyarrow import csv

    rank = np.argsort(order)
    probability = model.predict_proba(X)[:, order]
    columns = {"state": rank[model.predict(X)]} | {f"p({k})": probability[:, k] for k in range(len(order))}
    csv.write_csv(pa.table(columns), output)
