"""`learnable plan`: how many rows to label and to test, before any are there."""

from __future__ import annotations

from typing import Annotated

import typer

from . import options

#: Shown by --help.
EXAMPLES = (
    "learnable plan --error .05 --margin .01",
    "learnable plan --error .2 --margin .02 --models 12 --confidence .99",
)


def plan(
    error: Annotated[float, typer.Option("--error", help="The error rate that is expected, as a share.")],
    margin: Annotated[float, typer.Option("--margin", help="How far above it the bound may be.")],
    confidence: Annotated[float, typer.Option("--confidence", help="Probability that the bound holds.")] = 0.95,
    models: Annotated[int, typer.Option("--models", help="How many models the same rows judge.")] = 1,
    json: options.Json = False,
    debug: options.Debug = False,
) -> None:
    """Say how many rows it takes to prove an error rate, to judge several models, and to tell two apart."""
    from ..evaluation.guarantees.plan import plan_rows

    found = plan_rows(error, margin, round(1.0 - confidence, 12), models)
    if json:
        import json as json_module

        print(json_module.dumps(found.to_dict()))
        return
    from .display import console

    out = console()
    level = f"{100.0 * confidence:g} %"
    top = f"{100.0 * (error + margin):g} %"
    lines = [
        f"To prove with {level} confidence that a model of {100.0 * error:g} % errors errs below {top}:",
        f"  {found.exact:,} test rows for one model (Clopper–Pearson)",
    ]
    if models > 1:
        lines.append(f"  {found.leaderboard:,} test rows for {models} models judged by the same rows")
    lines += [
        f"  {found.no_errors:,} test rows if there is no error among them",
        f"  {found.any_error:,} test rows for ± {100.0 * margin:g} % whatever the error rate is (Hoeffding)",
        f"To tell it from a model that errs {100.0 * margin:g} % more, with probability 80 %:",
        f"  {found.compare:,} test rows if their errors are independent; fewer if they err on the same rows",
    ]
    for line in lines:
        out.print(line, soft_wrap=True, highlight=False)
