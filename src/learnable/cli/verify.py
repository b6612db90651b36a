"""`learnable verify`: whether a model file keeps what its certificate claims, on the table of the fit."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from . import options
from .tables import load_table

#: Shown by --help.
EXAMPLES = (
    "learnable verify model.safetensors houses.csv",
    "learnable verify ridge.safetensors houses.csv --target price --json",
)


def verify(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A file that compare, fit or learnable.save wrote.")],
    data: options.Data,
    target: Annotated[
        str | None,
        typer.Option(
            "--target",
            "-t",
            metavar="COLUMN",
            help="The column that was predicted; files written by this tool know it.",
        ),
    ] = None,
    json: options.Json = False,
    delimiter: options.Delimiter = None,
    encoding: options.Encoding = None,
    debug: options.Debug = False,
) -> int:
    """Re-derive what a fit proves from the file and the training table alone; exit code 1 if it does not hold."""
    from ..core.model_file import load

    fitted = load(model)
    table = load_table(data, delimiter=delimiter, encoding=encoding)
    verdict = check_model(fitted, table, target)
    # A bound from other rows than the fit's would prove nothing.
    bounds = bound_risk(fitted, table, target) if verdict.ok else None
    if json:
        import json as json_module

        from ..evaluation.comparison.record import plain

        print(json_module.dumps(plain(_record(fitted, verdict) | {"risk": bounds}), allow_nan=False))
    else:
        from .display import console, one_line

        out = console()
        for part, found in _parts(fitted, verdict):
            out.print(one_line(f"{describe(part)}: {found}", 1000), soft_wrap=True)
        if bounds is not None:
            out.print(one_line(f"risk: {bounds['sentence']}", 1000), soft_wrap=True)
    return 0 if verdict.ok else 1


def check_model(model: Any, table: Any, target: str | None = None) -> Any:
    """Return the verdict on a model file; the models inside a conformal model are checked with it.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from learnable import Ridge
    >>> from learnable.meta import TableModel
    >>> from learnable.cli.verify import check_model
    >>> table = pa.table({"x": [0.0, 1.0, 2.0, 3.0], "y": [0.0, 1.0, 2.0, 4.0]})
    >>> model = TableModel(Ridge()).fit(table.select(["x"]), table["y"].to_numpy())
    >>> bool(check_model(model, table, "y"))
    True
    """
    from importlib.util import find_spec

    from ..core.declare import Declared
    from ..core.verification import verify as check

    X, y = _training_rows(model, table, target)
    verdict = check(model, X, y)
    unsettled = not verdict and not isinstance(model, Declared) and hasattr(X, "to_pandas")
    if unsettled and find_spec("pandas") is not None:
        # scikit-learn's steps add up the rows of other kinds of tables in another order: what differs is rounding.
        return check(model, X.to_pandas(), y) or verdict
    return verdict


def bound_risk(model: Any, table: Any, target: str | None = None) -> dict[str, Any]:
    """Return the tightest bound on the risk that the training table proves, as JSON types.

    The certificate does not use it: it says how well the training problem was solved, this how well the model predicts.
    """
    from ..core.errors import LearnableError
    from ..evaluation.guarantees.risk_bound import risk_bound

    try:
        found = risk_bound(model, *_training_rows(model, table, target), kind="training")
    except LearnableError as error:
        return {"sentence": f"nothing is proven about it: {error}", "bounds": [], "reasons": [str(error)]}
    record = found.to_dict()
    return {name: record[name] for name in ("sentence", "bounds", "reasons", "baseline", "delta")}


def _training_rows(model: Any, table: Any, target: str | None) -> tuple[Any, Any]:
    """Return the features and the targets of a model's training table."""
    from sklearn.base import is_classifier

    from ..core.errors import VerificationError
    from ..evaluation.comparison.problem import check_column, read_targets, rows_with_target
    from .predict import columns_as_numbers

    target = target or getattr(model, "target_name_", None)
    if target is None:
        raise VerificationError("verify: the file does not name its target; give --target.")
    check_column("verify", target, table.column_names, "target")
    names = [str(name) for name in getattr(model, "feature_names_in_", [])]
    for name in names:
        check_column("verify", name, table.column_names, "feature")
    table, _ = rows_with_target("verify", table, target, 1)
    y, labels = read_targets("verify", table[target], "binary" if is_classifier(model) else "regression", target)
    y = y if labels is None else labels[y]
    if not names:
        return columns_as_numbers("verify", model, table.drop_columns([target])), y
    return table.select(names), y


def describe(model: Any) -> str:
    """Return the classes of a model from the outside in."""
    inner = _inside(model)
    return type(model).__name__ + ("" if inner is None else f" of {describe(inner)}")


def _inside(model: Any) -> Any:
    return getattr(model, "estimator_", None) or getattr(model, "model_", None)


def _parts(model: Any, verdict: Any) -> list[tuple[Any, Any]]:
    """Return the model and the models inside that have certificates of their own, each with its verdict."""
    found = [(model, verdict)]
    while (verdict := verdict.inner) is not None:
        model = _inside(model)
        found.append((model, verdict))
    return found


def _record(model: Any, verdict: Any) -> dict[str, Any]:
    """Return a verdict as JSON types."""
    return {
        "ok": verdict.ok,
        "model": describe(model),
        "kind": verdict.recorded.kind,
        "value": verdict.value,
        "recorded": verdict.recorded.value,
        "tolerance": verdict.recorded.tolerance,
        "reasons": list(verdict.reasons),
        "inner": None if verdict.inner is None else _record(_inside(model), verdict.inner),
    }
