"""`learnable hmm`: a table of observations in time in; the hidden states over time out."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from . import options
from .tables import load_table

#: Shown by --help.
EXAMPLES = (
    "learnable hmm earthquakes.csv --column count --emission poisson --states 3",
    "learnable hmm returns.csv --column return_pct -o states.csv       states by BIC, 1 to 5",
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
    model: Annotated[
        str | None, typer.Option("--save", metavar="FILE", help="Where the model is saved (.safetensors).")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="Draws the starts.")] = 0,
    delimiter: options.Delimiter = None,
    encoding: options.Encoding = None,
    debug: options.Debug = False,
) -> None:
    """Fit a hidden Markov model to rows in the order of time, and tell the state of every row.

    Empty cells are missing observations. The columns written are `state` and `p(0)`, `p(1)`, …, the probabilities
    of the states given all rows; states are numbered by their first mean.
    """
    if emission not in _EMISSIONS:
        raise options.WrongUsageError(f"--emission must be {', '.join(_EMISSIONS)}; got {emission!r}")
    if mix is not None and (mix < 1 or emission != "mixture"):
        raise options.WrongUsageError(f"--mix must be at least 1, with --emission mixture; got {mix} with {emission}")
    if states is not None and states < 1:
        raise options.WrongUsageError(f"--states must be at least 1; got {states}")
    table = load_table(data, delimiter=delimiter, encoding=encoding)
    settings = {"n_mix": mix or 2} if emission == "mixture" else {}
    fitted, X = fit_states(table, column or table.column_names, emission, states, seed, **settings)
    order = _by_first_mean(fitted)
    K = fitted.n_components
    print(f"{type(fitted).__name__} with {K} state{'s' if K > 1 else ''}: log-likelihood {fitted.score(X):.3f}")
    print(fitted.certificate_)
    for place, k in enumerate(order):
        means = ", ".join(f"{value:.4g}" for value in fitted._expected(_unit(K, k)))
        stays = 1 / max(1 - fitted.transmat_[k, k], 1e-300)
        print(f"state {place}: mean {means}; stays {stays:.3g} rows on average")
    if output is not None:
        _write(fitted, X, order, output)
    if model is not None:
        from ..core.model_file import save

        save(fitted, model)


def fit_states(
    table: Any, columns: list[str], emission: str, states: int | None, seed: int, **settings: Any
) -> tuple[Any, Any]:
    """Return a fitted model, with the number of states that was asked for or that BIC chooses, and its rows."""
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
        return model.set_params(n_components=states).fit(X), X
    choice = sequences.select_states(model, X)
    print("BIC:", ", ".join(f"{K} states {value:.1f}" for K, value in choice.criteria.items()))
    return choice.best, X


def _unit(K: int, k: int) -> Any:
    import numpy as np

    return np.eye(K)[k]


def _by_first_mean(model: Any) -> list[int]:
    import numpy as np

    return np.argsort(model._expected(np.eye(model.n_components))[:, 0], kind="stable").tolist()


def _write(model: Any, X: Any, order: list[int], output: str) -> None:
    import numpy as np
    import pyarrow as pa
    from pyarrow import csv

    rank = np.argsort(order)
    probability = model.predict_proba(X)[:, order]
    columns = {"state": rank[model.predict(X)]} | {f"p({k})": probability[:, k] for k in range(len(order))}
    csv.write_csv(pa.table(columns), output)
