"""What can be asked of a table, as forms, and the command line and the Python that do the same.

A form's fields are options of a command, so that what is on the screen can be run again without the page. Settings
come from the browser: everything is checked here, and a model is a name of the registry, never a module to import.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from ..core.registry import REGISTRY
from ..data.demo import DEMO_TARGETS
from .store import RefusedError, Table

_LONGEST: Final = 2000
_MOST_ITEMS: Final = 10_000
METRICS: Final = {
    "regression": ("r2", "rmse", "mae"),
    "classification": ("accuracy", "balanced_accuracy", "log_loss", "auc", "average_precision"),
}
#: Files that an analysis leaves, with the options that name them.
OUTPUTS: Final = (("-o", "rows.csv"), ("--report", "report.html"), ("--save", "model.safetensors"))


@dataclass(frozen=True)
class Field:
    """One field of a form: an option of the command."""

    name: str
    label: str
    flag: str
    kind: str  #: "choice", "whole", "number", "column", "columns", "models", "text" or "flag"
    choices: tuple[str, ...] = ()
    default: Any = None
    low: float | None = None
    high: float | None = None
    required: bool = False
    help: str = ""


@dataclass(frozen=True)
class Form:
    """What can be asked."""

    title: str
    about: str
    command: str
    fields: tuple[Field, ...]


_SEED = Field(
    "seed", "Seed", "--seed", "whole", default=0, low=0, high=2**32 - 1, help="The same seed, the same result."
)
_EMISSIONS = ("gaussian", "mixture", "poisson", "categorical")

FORMS: Final = {
    "compare": Form(
        "Compare models",
        "Honest scores with intervals: one fifth of the rows is set aside and scored once, by the winner.",
        "compare",
        (
            Field("target", "Predict", "--target", "column", required=True),
            Field("seconds", "Time limit, seconds", "--seconds", "number", default=60.0, low=5.0, high=86_400.0),
            Field("task", "Task", "--task", "choice", ("regression", "classification"), help="By default, by values."),
            Field("models", "Models", "--model", "models", help="By default all that suit the task."),
            Field("metric", "Rank by", "--metric", "choice", (*METRICS["regression"], *METRICS["classification"])),
            Field("cost", "Costs of errors", "--cost", "text", help="Two classes only, for example FP=1,FN=20."),
            Field("groups", "Keep together", "--groups", "column", help="Rows of one value stay on one side."),
            Field("time", "Ordered by", "--time", "column", help="Train on earlier rows, test on later ones."),
            Field("drop", "Leave out", "--drop", "columns"),
            Field("folds", "Folds", "--folds", "whole", default=5, low=2, high=100),
            _SEED,
        ),
    ),
    "cluster": Form(
        "Clusters",
        "Groups of similar rows, how many there are, and what each looks like.",
        "cluster",
        (
            Field("model", "Model", "--model", "choice", ("gaussian", "kmeans"), "gaussian"),
            Field("clusters", "Clusters", "--clusters", "whole", low=1, high=100, help="Chosen if left empty."),
            Field("column", "Columns", "--column", "columns", help="All numbers if left empty."),
            _SEED,
        ),
    ),
    "hmm": Form(
        "Sequences",
        "Hidden states of rows in the order of time, by a hidden Markov model.",
        "hmm",
        (
            Field("column", "Observed columns", "--column", "columns", help="All numbers if left empty."),
            Field("emission", "Each state emits", "--emission", "choice", _EMISSIONS, "gaussian"),
            Field("states", "States", "--states", "whole", low=1, high=100, help="Chosen by BIC if left empty."),
            _SEED,
        ),
    ),
    "embed": Form(
        "Picture of the rows",
        "Every row as a point of a plane, with how far the picture can be trusted.",
        "embed",
        (
            Field("model", "Model", "--model", "choice", ("pca", "mds", "isomap", "spectral", "tsne"), "pca"),
            Field("neighbours", "Neighbours", "--neighbours", "whole", default=10, low=2, high=1000),
            Field("colour", "Colour by", "--colour", "column"),
            Field("column", "Columns", "--column", "columns", help="All numbers if left empty."),
        ),
    ),
    "topics": Form(
        "Topics",
        "What a column of texts is about: topics, their words, their documents.",
        "topics",
        (
            Field("text", "Column of texts", "--text", "column", required=True),
            Field("topics", "Topics", "--topics", "text", default="10", help="A number, or several: 5,10,20."),
            Field("sweeps", "Sweeps", "--sweeps", "whole", default=400, low=20, high=100_000),
            _SEED,
        ),
    ),
    "structure": Form(
        "Population structure",
        "Populations from genotypes (.str, .vcf or .csv), and every individual's share of each.",
        "structure",
        (
            Field("populations", "Populations", "--populations", "text", default="2..5", help="A number or a range."),
            Field("method", "Method", "--method", "choice", ("ml", "gibbs"), "ml"),
            _SEED,
        ),
    ),
}  # fmt: skip


def forms() -> dict[str, Any]:
    """Return all forms as JSON types."""
    return {name: asdict(form) for name, form in FORMS.items()}


def check_settings(kind: Any, given: Any) -> dict[str, Any]:
    """Return the settings of a form, checked; those that are at their defaults are left out.

    Examples
    --------
    >>> from learnable.page.commands import check_settings
    >>> check_settings("cluster", {"model": "kmeans", "clusters": 3, "seed": 0})
    {'model': 'kmeans', 'clusters': 3}
    """
    if not isinstance(kind, str) or kind not in FORMS:
        raise RefusedError(f"There is no analysis {str(kind)[:40]!r}; there are {', '.join(FORMS)}.")
    if not isinstance(given, dict):
        raise RefusedError("Settings must be an object.")
    fields = {field.name: field for field in FORMS[kind].fields}
    strange = [name for name in given if name not in fields]
    if strange:
        raise RefusedError(f"{kind} has no setting {str(strange[0])[:40]!r}; it has {', '.join(fields)}.")
    found = {}
    for field in fields.values():
        value = given.get(field.name)
        if value is None or value == "" or value == []:
            if field.required:
                raise RefusedError(f"{field.label}: choose a column.")
            continue
        value = _checked(field, value)
        if value != field.default:
            found[field.name] = value
    return found


def _checked(field: Field, value: Any) -> Any:
    """Return a value of a field, or refuse it."""
    if field.kind in ("columns", "models"):
        if not isinstance(value, list) or len(value) > _MOST_ITEMS or not all(_is_text(item) for item in value):
            raise RefusedError(f"{field.label}: must be a list of names.")
        unknown = [item for item in value if field.kind == "models" and item not in REGISTRY]
        if unknown:
            raise RefusedError(f"Models: there is no model {unknown[0][:60]!r}.")
        return value
    if field.kind in ("whole", "number"):
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
            raise RefusedError(f"{field.label}: must be a number.")
        if field.kind == "whole" and value != int(value):
            raise RefusedError(f"{field.label}: must be a whole number; got {value:g}.")
        low, high = field.low, field.high
        if (low is not None and value < low) or (high is not None and value > high):
            raise RefusedError(f"{field.label}: must be from {low:g} to {high:g}; got {value:g}.")
        return int(value) if field.kind == "whole" else float(value)
    if not _is_text(value):
        raise RefusedError(f"{field.label}: must be text.")
    if field.kind == "choice" and value not in field.choices:
        raise RefusedError(f"{field.label}: must be one of {', '.join(field.choices)}; got {value[:40]!r}.")
    return value


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= _LONGEST and "\0" not in value


def arguments(kind: str, source: str, settings: dict[str, Any]) -> list[str]:
    """Return what follows `learnable` on the command line.

    Examples
    --------
    >>> from learnable.page.commands import arguments
    >>> arguments("compare", "houses.csv", {"target": "price", "models": ["Ridge"], "seconds": 30.0})
    ['compare', 'houses.csv', '--target', 'price', '--seconds', '30', '--model', 'Ridge']
    """
    form = FORMS[kind]
    words = [form.command, f"./{source}" if source.startswith("-") else source]
    for field in form.fields:
        if field.name not in settings:
            # The page's own default of the time differs from the command's.
            if kind == "compare" and field.name == "seconds":
                words += [field.flag, f"{field.default:g}"]
            continue
        value = settings[field.name]
        for item in value if isinstance(value, list) else [value]:
            text = f"{item:g}" if isinstance(item, float) else str(item)
            # A value that begins with a dash would be taken for an option.
            words += [f"{field.flag}={text}"] if text.startswith("-") else [field.flag, text]
    return words


def command_line(kind: str, source: str, settings: dict[str, Any]) -> str:
    """Return the command that does what the page did."""
    words = arguments(kind, source, settings)
    if kind != "compare":
        words += [word for pair in OUTPUTS for word in pair]
    return shlex.join(["learnable", *words])


def python_code(kind: str, table: Table, settings: dict[str, Any]) -> str:
    """Return the Python that does what the page did."""
    if kind == "compare":
        from ..evaluation.comparison.record import python_lines

        asked = {"seconds": FORMS["compare"].fields[1].default, **settings, "model_file": "model.safetensors"}
        target = asked.pop("target")
        return python_lines(table.source, target, asked, {} if table.source in DEMO_TARGETS else None)
    words = [*arguments(kind, table.source, settings), *(word for pair in OUTPUTS for word in pair)]
    return f"from learnable.cli.app import run\n\nrun({words!r})"


def models_for(task: str) -> list[dict[str, Any]]:
    """Return the models that a comparison of this task can have, with their families."""
    wanted = "regression" if task == "regression" else "classification"
    found = []
    for name, entry in REGISTRY.items():
        traits = entry.traits
        if traits is None or wanted not in _tasks(traits.tasks):
            continue
        found.append({"name": name, "family": traits.family, "certifies": traits.certifies})
    return found


def _tasks(tasks: Sequence[str]) -> set[str]:
    """Return the tasks of the registry as the two words of a comparison."""
    return {"regression" if task == "regression" else "classification" for task in tasks}
