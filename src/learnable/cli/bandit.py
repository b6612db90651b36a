"""`learnable bandit`: a log of decisions in; what other policies would have earned out."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import typer

from . import options
from .tables import given_file, load_table

#: Shown by --help.
EXAMPLES = (
    "learnable bandit clicks.csv --arm banner --reward clicked                  arms that were drawn at random",
    "learnable bandit clicks.csv --arm banner --reward clicked -p probability   arms with logged probabilities",
    "learnable bandit clicks.csv -a banner -r clicked -p p -c age -c hour --report bandit.html",
)
_FEWEST_ROWS = 20


def bandit(
    data: options.Data,
    arm: Annotated[str, typer.Option("--arm", "-a", metavar="NAME", help="The column of the arm that was played.")],
    reward: Annotated[str, typer.Option("--reward", "-r", metavar="NAME", help="The column of what it earned.")],
    propensity: Annotated[
        str | None,
        typer.Option("--propensity", "-p", metavar="NAME", help="The column of the probability it was played with."),
    ] = None,
    context: Annotated[
        list[str] | None,
        typer.Option("--context", "-c", metavar="NAME", help="A column known before; may be repeated."),
    ] = None,
    method: Annotated[str, typer.Option("--method", metavar="NAME", help="dr, snips or ips.")] = "dr",
    report: Annotated[str | None, typer.Option("--report", metavar="FILE", help="Where the HTML report goes.")] = None,
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="Deals rows to folds and draws arms.")] = 0,
    delimiter: options.Delimiter = None,
    encoding: options.Encoding = None,
    debug: options.Debug = False,
) -> None:
    """Evaluate policies on a log of decisions: every arm by itself, equal chances, the best arm by context, learners.

    Without --propensity the shares of the arms in the log are taken, which is right if arms were drawn whatever the
    context. Contexts must be numbers. Estimates come with intervals and with the number of rows that they are worth.
    """
    if method not in ("dr", "snips", "ips"):
        raise options.WrongUsageError(f"--method must be dr, snips or ips; got {method!r}")
    said = given_file(report, data) if report else None
    table = load_table(data, delimiter=delimiter, encoding=encoding)
    log, notes = read_decisions(table, arm, reward, propensity, context or [])
    lines = evaluate_log(log, method, seed)
    shown = [f"{len(log)} decisions among {log.n_arms} arms; logged mean {log.reward.mean():.4g}", *_format(lines)]
    for line in [*(f"note: {note}" for note in notes), *shown]:
        print(line)
    if report is not None:
        from ..core.model_file import writing
        from ..report import render_bandit

        page = render_bandit(_record(log, lines, notes, data, method, arm, reward, context or []))
        with writing(report) as file:
            file.write(page.encode("utf-8"))
        print(f"report: {report}")
    if said:
        print(f"note: {said}")


class Line(NamedTuple):
    """One policy, evaluated; without numbers where the log cannot tell."""

    policy: str
    value: float | None
    lower: float | None
    upper: float | None
    rows: float
    remark: str


def read_decisions(
    table: Any, arm: str, reward: str, propensity: str | None, context: list[str]
) -> tuple[Any, list[str]]:
    """Return the log in a table, and notes on what was left out or assumed."""
    import numpy as np
    import pyarrow as pa

    from ..core.errors import DataError
    from ..decisions.bandits.offpolicy import read_log

    columns = list(dict.fromkeys([arm, reward, *([propensity] if propensity else []), *context]))
    missing = [name for name in columns if name not in table.column_names]
    if missing:
        known = ", ".join(table.column_names[:12])
        raise DataError(f"there is no column {missing[0]!r}; the columns are {known}.")
    kept = table.select(columns).drop_null()
    notes = []
    if kept.num_rows < table.num_rows:
        notes.append(f"{table.num_rows - kept.num_rows} rows with empty cells were left out")
    if kept.num_rows < _FEWEST_ROWS:
        raise DataError(f"the log has {kept.num_rows} whole rows; at least {_FEWEST_ROWS} are needed.")

    def numbers(name: str) -> Any:
        try:
            return kept[name].cast(pa.float64()).to_numpy(zero_copy_only=False)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            raise DataError(f"the column {name!r} must be numbers; it is {kept.schema.field(name).type}.") from None

    X = np.column_stack([numbers(name) for name in context]) if context else None
    names = np.array([str(value) for value in kept[arm].to_pylist()])
    log = read_log(names, numbers(reward), numbers(propensity) if propensity else None, X)
    if log.n_arms < 2:
        raise DataError(f"the column {arm!r} has one arm, {log.names[0]!r}; there is nothing to compare.")
    if log.n_arms > 100:
        raise DataError(f"the column {arm!r} has {log.n_arms} arms, more than 100; is it the right column?")
    if log.estimated:
        notes.append("probabilities are the shares of the arms: right if arms were drawn whatever the context")
    return log, notes


def evaluate_log(log: Any, method: str, seed: int) -> list[Line]:
    """Return the policies, the best first."""
    import warnings

    import numpy as np

    from ..core.errors import DataError
    from ..decisions.bandits import UCB, LinUCB, Thompson, replay
    from ..decisions.bandits.offpolicy import _model_rewards, evaluate_offline

    k = log.n_arms
    targets: dict[str, Any] = {f"always {name}": np.eye(k)[i] for i, name in enumerate(log.names)}
    targets["equal chances"] = np.full(k, 1.0 / k)
    if log.context.shape[1]:
        targets["best arm by context (linear)"] = np.eye(k)[_model_rewards(log, None, 5, seed).argmax(axis=1)]
    lines = []
    for name, target in targets.items():
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                found = evaluate_offline(log, target, method, random_state=seed)
            except DataError as error:
                lines.append(Line(name, None, None, None, 0.0, str(error).partition(": ")[2]))
                continue
        remark = "too few rows to trust the interval" if caught else ""
        lines.append(Line(name, found.value, found.lower, found.upper, found.effective_rows, remark))
    low = float(log.reward.min())
    high = float(log.reward.max())
    learners: dict[str, Any] = {"UCB, learning": UCB(k, sigma=max(high - low, 1e-12) / 2, random_state=seed)}
    if set(np.unique(log.reward).tolist()) <= {0.0, 1.0}:
        learners["Thompson, learning"] = Thompson(k, random_state=seed)
    if log.context.shape[1]:
        learners["LinUCB, learning"] = LinUCB(k, n_features=log.context.shape[1], random_state=seed)
    for name, policy in learners.items():
        try:
            seen = replay(policy, log, random_state=seed)
            lines.append(Line(name, seen.value, seen.lower, seen.upper, float(seen.rows), "by replay"))
        except DataError as error:
            lines.append(Line(name, None, None, None, 0.0, str(error).partition(": ")[2]))
    return sorted(lines, key=lambda line: -np.inf if line.value is None else line.value, reverse=True)


def _format(lines: list[Line]) -> list[str]:
    width = max(len(line.policy) for line in lines)
    shown = []
    for line in lines:
        if line.value is None:
            shown.append(f"{line.policy:<{width}}  no estimate: {line.remark}")
            continue
        interval = f"[{line.lower:.4g}, {line.upper:.4g}]"
        remark = f"  {line.remark}" if line.remark else ""
        shown.append(
            f"{line.policy:<{width}}  {line.value:8.4g}  {interval:<20} {line.rows:7.0f} effective rows{remark}"
        )
    return shown


def _record(
    log: Any, lines: list[Line], notes: list[str], source: str, method: str, arm: str, reward: str, context: list[str]
) -> dict[str, Any]:
    """Return what the report shows."""
    import numpy as np

    from ..evaluation.comparison.record import timestamp

    by_arm = [(name, log.reward[log.arm == i]) for i, name in enumerate(log.names)]
    return {
        "format": "learnable-bandit",
        "source": source,
        "created": timestamp(),
        "model": f"{reward} per decision, by {arm}; estimator {method}, intervals of 95 %",
        "rows": len(log),
        "columns": [arm, reward, *context],
        "notes": notes,
        "logged": float(log.reward.mean()),
        "arms": [
            {"name": name, "rows": len(r), "mean": float(np.mean(r)), "spread": float(np.std(r))} for name, r in by_arm
        ],
        "policies": [line._asdict() for line in lines],
        "command": "learnable " + " ".join(options.arguments) if options.arguments else None,
    }
