"""`learnable fit`: one model, on all rows, into one file."""

from __future__ import annotations

import ast
from typing import Annotated, Any

import typer

from . import completion, options
from .tables import DEMO_TARGETS, load_table, output_file

_RESTARTS = 2
_MOST_RESTARTED = 2000  # rows up to which further searches for hyperparameters take seconds

#: Shown by --help.
EXAMPLES = (
    "learnable fit houses.csv --target price --model Ridge --set alpha=10 -o ridge.safetensors",
    "learnable fit demo:tumours --target diagnosis --model LogisticRegression --set C=0.1",
    "learnable fit demo:houses -m GLM --set family=gamma --summary",
    "learnable fit demo:houses -m GaussianProcessRegressor --set 'kernel=Matern(nu=1.5) + White()'",
)


def fit(
    data: options.Data,
    target: options.Target = None,
    model: Annotated[
        str,
        typer.Option(
            "--model",
            "-m",
            metavar="NAME",
            help="Which model; `learnable models` lists them.",
            autocompletion=completion.model_names,
        ),
    ] = "",
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            "-s",
            metavar="KEY=VALUE",
            help="A parameter of the model (may be repeated).",
            autocompletion=completion.model_parameters,
        ),
    ] = None,
    intervals: Annotated[
        str,
        typer.Option(
            metavar="METHOD",
            help="Prediction intervals for numbers: cv+ (fits six times and keeps all six models), cv (fits six times, "
            "keeps one model and the errors), split (sets a quarter of the rows aside), jackknife+ or none.",
        ),
    ] = "cv+",
    summary: Annotated[
        bool,
        typer.Option(
            "--summary",
            help="Print coefficients with standard errors, tests and intervals: for LinearRegression, GLM, and "
            "LogisticRegression with C=inf, PoissonRegressor and others with alpha=0. Of other models, why they have "
            "none, and the numbers that they do have.",
        ),
    ] = False,
    output: Annotated[
        str | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Where the model goes; by default model.safetensors, if it is free."
        ),
    ] = None,
    force: options.Force = False,
    groups: options.Groups = None,
    task: options.Task = None,
    drop: options.Drop = None,
    keep: options.Keep = None,
    dayfirst: options.DayFirst = None,
    as_: options.As = None,
    seed: options.Seed = 0,
    json: options.Json = False,
    delimiter: options.Delimiter = None,
    encoding: options.Encoding = None,
    debug: options.Debug = False,
) -> None:
    """Fit one model to all rows of a table and save it.

    The file holds the encoder of the columns, the model and, for numbers, its prediction intervals.
    """
    if not model:
        raise options.WrongUsageError("name a model with --model; `learnable models` lists them")
    if target is None and data not in DEMO_TARGETS:
        raise options.WrongUsageError("name the column to predict with --target")
    output, said = output_file(output, "model.safetensors", force=force, reads=[data])
    from ..core.model_file import save
    from ..evaluation.comparison.keep import table_model, with_target
    from ..evaluation.comparison.problem import read_problem

    chosen = build_model(model, set_ or [], seed)
    table = load_table(data, delimiter=delimiter, encoding=encoding)
    problem = read_problem(
        "fit",
        table,
        target or DEMO_TARGETS[data],
        groups=groups,
        task=task or only_task(model),
        drop=drop or [],
        keep=keep or [],
        source=data,
        fewest_rows=2,
        dayfirst=dayfirst,
        kinds=options.kinds_of(as_),
    )
    check_task(model, problem.task)
    _check_method(intervals)
    settled = suit_target(chosen, set_ or [], len(problem.y)) if problem.task == "regression" else []
    problem.notes.extend(settled)
    fitted = table_model(
        chosen, problem.task, intervals=intervals, seed=seed, groups=problem.groups, readings=problem.readings
    )
    fitted.fit(problem.features, problem.targets)
    save(with_target(fitted, problem.target), output)
    problem.notes.extend([said] if said else [])
    _show(fitted, problem, model, data, output, json, summary)


def build_model(name: str, settings: list[str], seed: int) -> Any:
    """Return an unfitted registered model with the parameters that `key=value` texts set.

    Examples
    --------
    >>> from learnable.cli.fit import build_model
    >>> build_model("Ridge", ["alpha=10"], seed=0)
    Ridge(alpha=10, random_state=0)
    """
    import difflib

    from ..core.declare import check_parameters
    from ..core.errors import ParameterError
    from ..core.registry import check_model_name, check_one_target, registered_class

    check_model_name("fit", name)
    check_one_target("fit", name)
    cls: Any = registered_class(name)
    parameters = cls().get_params(deep=False)
    values = {}
    for setting in settings:
        key, equals, text = setting.partition("=")
        if not equals or not key:
            raise options.WrongUsageError(f"--set takes key=value; got {setting!r}")
        if key not in parameters:
            close = difflib.get_close_matches(key, parameters, 3) or list(parameters)
            raise ParameterError(f"fit: {name} has no parameter {key!r}; did you mean {', '.join(close)}?")
        values[key] = parse_kernel(text) if key == "kernel" else parse_value(text)
    model = cls(**values)
    if "random_state" in parameters and "random_state" not in values:
        model.set_params(random_state=seed)
    check_parameters(name, model.get_params(deep=False), cls._parameters)
    return model


def suit_target(model: Any, settings: list[str], n_rows: int) -> list[str]:
    """Let a model whose prior is in the units of the target standardise it, unless the caller set that; return notes.

    A Gaussian process with a kernel of amplitude one and mean zero takes house prices for noise: only its length
    scales and its noise can change. In standard deviations from the mean, the same kernel suits every target.

    Examples
    --------
    >>> from learnable import GaussianProcessRegressor
    >>> from learnable.cli.fit import suit_target
    >>> model = GaussianProcessRegressor()
    >>> suit_target(model, [], 100), model.normalize_y
    (['the target is standardised (--set normalize_y=False leaves it as it is)'], True)
    """
    given = {setting.partition("=")[0] for setting in settings}
    known = model.get_params(deep=False)
    if known.get("n_restarts_optimizer") == 0 and "n_restarts_optimizer" not in given and n_rows <= _MOST_RESTARTED:
        kernel = known.get("kernel")
        if kernel is None or _has_finite_bounds(kernel):
            model.set_params(n_restarts_optimizer=_RESTARTS)  # the likelihood may have several optima
    if known.get("normalize_y") is not False or "normalize_y" in given:
        return []
    model.set_params(normalize_y=True)
    return ["the target is standardised (--set normalize_y=False leaves it as it is)"]


def _has_finite_bounds(kernel: Any) -> bool:
    import numpy as np

    bounds = getattr(kernel, "bounds", None)
    return bounds is not None and bool(np.isfinite(bounds).all())


def only_task(name: str) -> str | None:
    """Return the task of a model that is made for one only: a regression model makes a column of few numbers one.

    Examples
    --------
    >>> from learnable.cli.fit import only_task
    >>> only_task("PoissonRegressor"), only_task("LogisticRegression")
    ('regression', None)
    """
    from ..core.registry import REGISTRY

    traits = REGISTRY[name].traits
    return traits.tasks[0] if traits is not None and len(traits.tasks) == 1 else None


def check_task(name: str, task: str) -> None:
    """Raise unless the model is made for the task."""
    from ..core.errors import ParameterError
    from ..core.registry import REGISTRY

    traits = REGISTRY[name].traits
    if traits is not None and task not in traits.tasks:
        suited = [
            n
            for n, entry in REGISTRY.items()
            if entry.traits is not None and task in entry.traits.tasks and entry.traits.targets != "several"
        ]
        raise ParameterError(
            f"fit: the task is {task}, which {name} is not made for; use {' or '.join(suited)}, or say --task."
        )


def _check_method(intervals: str) -> None:
    from ..evaluation.comparison.keep import INTERVAL_METHODS

    if intervals not in INTERVAL_METHODS:
        raise options.WrongUsageError(f"--intervals must be one of {', '.join(INTERVAL_METHODS)}; got {intervals!r}")


def held_out_score(fitted: Any, problem: Any) -> float | None:
    """Return R² on the rows that were held out to calibrate the intervals; None if none were."""
    import numpy as np

    residuals = getattr(fitted, "scores_", None)
    if residuals is None or problem.task != "regression":
        return None
    folds = np.asarray(getattr(fitted, "folds_", np.zeros(len(problem.y))))
    held = problem.y[folds >= 0] if len(folds) == len(problem.y) else problem.y
    if len(held) != len(residuals) or len(held) < 2 or np.ptp(held) == 0:
        return None
    return float(1.0 - np.sum(np.asarray(residuals) ** 2) / np.sum((held - held.mean()) ** 2))


def worse_than_guessing(task: str, held_out: float | None, score: float, problem: Any) -> str | None:
    """Return a warning if a constant guess does better than the fitted model; None if it does not."""
    import numpy as np

    known, where = (score, "its own training rows") if held_out is None else (held_out, "rows it was not fitted to")
    if task == "regression":
        guess = 0.0
        what = "the mean of the target"
        measure = "R²"
    else:
        guess = float(np.bincount(problem.y).max() / len(problem.y))
        what = "the most frequent class"
        measure = "accuracy"
    if known >= guess:
        return None
    return (
        f"on {where} the model is worse than {what}: {measure} {known:.4f} against {guess:.4f}; do not use it. Set "
        "other parameters, or let `learnable compare` choose a model"
    )


def coefficients_of(fitted: Any, problem: Any) -> Any:
    """Return the summary of a likelihood model of a table, or in words why there is none.

    Coefficients are in the units of the columns. A category's last level, which follows from the others, is left out.
    """
    from dataclasses import replace

    import numpy as np
    from sklearn.base import clone

    from ..core.errors import DataError, ParameterError
    from ..linear.glm.general import GLM
    from ..linear.inference.refusals import refuse_penalised

    inner = getattr(fitted, "estimator_", fitted)
    model = inner.model_
    try:
        refuse_penalised(model)
        classes = getattr(model, "classes_", None)
        if classes is not None and len(classes) > 2:
            raise ParameterError("of several classes only learnable.infer, in Python, has a summary")
        encoder = clone(inner.encoder_).set_params(scale=False)
        X = encoder.fit_transform(problem.features, problem.targets)
        y = problem.targets if classes is None else (np.asarray(problem.targets) == classes[1]).astype(float)
        likelihood = model if isinstance(model, GLM) else GLM(*_family_of(model))
        found = clone(likelihood).fit(X, y).summary(names=list(encoder.get_feature_names_out()))
        return found if classes is None else replace(found, title=f"{found.title}, of class {classes[1]}")
    except (DataError, ParameterError) as error:
        return f"no standard errors: {str(error).removeprefix('infer: ')}"


def _family_of(model: Any) -> tuple[str]:
    """Return the family of a model for `GLM`."""
    from ..core.errors import ParameterError

    families = {
        "LinearRegression": "normal",
        "LogisticRegression": "binomial",
        "PoissonRegressor": "poisson",
        "GammaRegressor": "gamma",
    }
    name = type(model).__name__
    if name not in families:
        raise ParameterError(f"{name} has none here; use --model GLM")
    return (families[name],)


def _show(fitted: Any, problem: Any, name: str, data: str, output: str, json: bool, summary: bool) -> None:
    import shlex

    inner = getattr(fitted, "estimator_", fitted)
    coefficients = coefficients_of(fitted, problem) if summary else None
    certificate = inner.certificate_
    score = float(inner.score(problem.features, problem.targets))
    predict = f"learnable predict {shlex.quote(output)} {shlex.quote(data)}"
    guarantee = getattr(fitted, "guarantee_", None)
    held_out = held_out_score(fitted, problem)
    warning = worse_than_guessing(problem.task, held_out, score, problem)
    if json:
        import json as json_module

        from ..evaluation.comparison.record import plain, versions

        record = {
            "model": name,
            "target": problem.target,
            "task": problem.task,
            "rows": len(problem.y),
            "features": problem.features.column_names,
            "notes": problem.notes,
            "train_score": score,
            "held_out_score": held_out,
            "warnings": [warning] if warning else [],
            "certificate": certificate.to_dict(),
            "guarantee": guarantee,
            "model_file": output,
            "predict_command": predict,
            "versions": versions(),
        }
        if summary:
            frame = getattr(coefficients, "to_frame", None)
            record["summary"] = frame().reset_index().to_dict("records") if frame else coefficients
            if frame is None:
                record["shown_instead"] = numbers_of(inner)
        print(json_module.dumps(plain(record), allow_nan=False))
        return
    from .display import console, one_line

    measure = "R²" if problem.task == "regression" else "accuracy"
    lines = [
        f"{name}: {problem.task} of {problem.target!r}, {len(problem.y):,} rows, "
        f"{problem.features.num_columns} columns",
        *(f"note: {note}" for note in problem.notes),
        f"optimisation: {certificate!r}",
        *([f"{measure} on rows that a fit had not seen: {held_out:.4f}"] if held_out is not None else []),
        f"{measure} on its own training rows: {score:.4f} (how it predicts new rows, `learnable compare` tells)",
        *([f"warning: {warning}"] if warning else []),
        *([f"intervals: {guarantee}"] if guarantee else []),
        f"model: {output}",
        f"predict with:  {predict}",
        f"verify with:   learnable verify {shlex.quote(output)} {shlex.quote(data)}",
    ]
    out = console()
    for line in lines:
        out.print(one_line(line, 1000), soft_wrap=True)
    if coefficients is not None:
        out.print(str(coefficients), markup=False, highlight=False, soft_wrap=True)
    if isinstance(coefficients, str):
        out.print(numbers_of(inner), markup=False, highlight=False, soft_wrap=True)


def numbers_of(inner: Any) -> str:
    """Return what a model without standard errors can show: its settings and its most important numbers."""
    from ..report.summary import summary

    scaled = bool(getattr(getattr(inner, "encoder_", None), "scale", False))
    units = (
        " (coefficients are per standard deviation of a column)" if hasattr(inner.model_, "coef_") and scaled else ""
    )
    return f"What the fit itself says{units}:\n{summary(inner)}"


# --------------------------------------------------------------------------------------------------------------------
# Values on the command line: Python literals, words, and kernels such as `Matern(nu=1.5) + White()`.
#
# Nothing is executed: the text is parsed, and only literals, names of registered kernels, + and * are understood.


_WORDS = {"true": True, "false": False, "none": None, "null": None, "inf": float("inf")}


def parse_value(text: str) -> Any:
    """Return the Python value that a text on the command line stands for: numbers, true, false, none, lists, else text.

    Examples
    --------
    >>> from learnable.cli.fit import parse_value
    >>> parse_value("0.5"), parse_value("true"), parse_value("[1, 10]"), parse_value("auto"), parse_value("inf")
    (0.5, True, [1, 10], 'auto', inf)
    """
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return text


def parse_kernel(text: str) -> Any:
    """Return the kernel that an expression stands for; a text without parentheses is a name, and stays one.

    Examples
    --------
    >>> from learnable.cli.fit import parse_kernel
    >>> parse_kernel("2 * Gaussian(1.5) + White(noise=0.1)"), parse_kernel("rbf")
    (2.0 * Gaussian(length_scale=1.5) + White(noise=0.1), 'rbf')
    """
    if "(" not in text:
        return parse_value(text)
    from ..core.errors import ParameterError

    try:
        return _kernel(ast.parse(text, mode="eval").body)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError) as error:
        if isinstance(error, ParameterError):
            raise
        from ..core.entries import KERNELS

        raise ParameterError(
            f"fit: kernel must be a sum or product of {', '.join(KERNELS)} with numbers, for example "
            f"'Constant(1) * Gaussian(1) + White(0.1)'; got {text!r}: {str(error).splitlines()[0]}."
        ) from error


def _kernel(node: ast.expr) -> Any:
    """Return what a node stands for; ValueError if it is neither a kernel nor a literal."""
    from ..core.entries import KERNELS
    from ..core.registry import resolve

    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Mult)):
        left = _kernel(node.left)
        right = _kernel(node.right)
        return left + right if isinstance(node.op, ast.Add) else left * right
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        if node.func.id not in KERNELS:
            raise ValueError(f"there is no kernel {node.func.id!r}")
        given = [ast.literal_eval(argument) for argument in node.args]
        named = {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in node.keywords}
        return resolve(KERNELS[node.func.id].path)(*given, **named)
    return ast.literal_eval(node)
