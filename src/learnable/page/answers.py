"""Questions about tables, runs and scenes, and who answers them: `data`, `evaluation`, `report` and `lab`.

Each function takes plain values and paths that the server chose, and returns plain JSON types. Nothing here computes:
it reads, asks the library, and puts figures of `plots` beside the numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from ..core.errors import DataError, LearnableError, ParameterError
from ..data.demo import DEMO_TARGETS
from ..plots.markup import isolated
from .look import (
    look_confusion,
    look_effect,
    look_errors,
    look_explain,
    look_slices,
    look_summary,
    look_threshold,
)
from .others import fit_other
from .predict import predict_file, predict_form, predict_row
from .shelf import load_table
from .store import GENOTYPES, read_json, write_json

_PAGE: Final = 200  # rows of one answer at most
_COLUMNS: Final = 60  # columns of one answer at most


def table_profile(path: str, folder: str, start: int = 0, count: int = _COLUMNS) -> dict[str, Any]:
    """Return what a table holds, a page of its columns with figures; the whole profile is kept beside the table."""
    from ..data.profile import profile

    if path.lower().endswith(GENOTYPES):
        return {"genotypes": True, "rows": None, "columns": None, "names": [], "profile": [], "warnings": []}
    file = Path(folder) / "profile.json"
    found = read_json(file)
    if found is None:
        found = profile(load_table(path)).to_dict()
        write_json(file, found)
    described = found["profile"]
    shown = described[start : start + min(count, _COLUMNS)]
    return {
        "genotypes": False,
        "rows": found["rows"],
        "columns": found["columns"],
        "duplicate_rows": found["duplicate_rows"],
        "warnings": found["warnings"][:40],
        "names": [column["name"] for column in described],
        "kinds": [column["kind"] for column in described],
        "start": start,
        "profile": [column | {"figure": _spark(column)} for column in shown],
        "target": DEMO_TARGETS.get(path),
    }


def _spark(column: dict[str, Any]) -> str | None:
    """Return a column's distribution as a small figure."""
    from ..plots import bars, sparkline

    title = f"Distribution of {isolated(column['name'], 60)}"
    bins = column.get("histogram")
    try:
        if bins and bins.get("counts"):
            return sparkline(bins["edges"], bins["counts"], title=title)
        if column.get("top"):
            return bars([number for _, number in column["top"]], title=title)
    except DataError:  # bins that cannot be drawn
        return None
    return None


def table_rows(path: str, start: int = 0, count: int = 20, first: int = 0) -> dict[str, Any]:
    """Return a page of rows as short text, of a page of columns."""
    from ..evaluation.comparison.glance import show_cell

    table = load_table(path)
    names = table.column_names[first : first + _COLUMNS]
    part = table.slice(max(0, start), min(max(1, count), _PAGE)).select(names)
    columns = [[show_cell(value) for value in column.to_pylist()] for column in part.columns]
    return {
        "total": table.num_rows,
        "start": start,
        "columns": names,
        "rows": [list(row) for row in zip(*columns, strict=True)],
    }


def table_target(path: str, target: str) -> dict[str, Any]:
    """Return what a target is, by itself: the task and why, what can rank, which models suit it."""
    from ..data.profile import profile
    from ..evaluation.comparison.problem import check_column

    table = load_table(path)
    check_column("page", target, table.column_names, "target")
    found = profile(table.select([target]), target)
    return _choices_of(target, str(found.task), found.task_reason, found.classes)


def _choices_of(target: str, task: str, reason: str | None, classes: Any) -> dict[str, Any]:
    """Return what can be chosen for a task."""
    from ..evaluation.comparison.measures import measures_for
    from .commands import models_for

    return {
        "target": target,
        "task": task,
        "reason": reason,
        "n_classes": None if classes is None else len(classes),
        "metrics": [{"name": measure.name, "label": measure.label} for measure in measures_for(task)],
        "models": models_for(task),
    }


def table_check(path: str, target: str, **roles: Any) -> dict[str, Any]:
    """Return what a comparison would make of a target: what is learned from, how texts are read, leaks, copies."""
    from ..evaluation.comparison.problem import read_problem

    problem = read_problem("page", load_table(path), target, source="", **roles)
    data = problem.data
    return _choices_of(target, problem.task, data["task_reason"], data["classes"]) | {
        "rows": data["rows"],
        "features": problem.features.num_columns,
        "notes": problem.notes[:20],
        "warnings": data["warnings"][:20],
    }


# --------------------------------------------------------------------------------------------------------------------
# The laboratory, where it is installed.

_DRAGGED: Final = "svm"  # the scene whose points can be dragged


def lab_scenes() -> list[dict[str, Any]]:
    """Return the scenes by name, with their titles and what tables they take."""
    from importlib import import_module

    try:
        scenes = import_module("learnable.lab").SCENES
    except ModuleNotFoundError:
        return []
    parts = ("title", "text", "takes")
    return [{"name": name} | {part: str(getattr(scenes[name], part, "")) for part in parts} for name in scenes]


def lab_scene(name: str, path: str | None = None, moves: list[list[float]] | None = None) -> str:
    """Return a scene as one page, on the built-in table or on one of the session.

    `moves`, of the scene whose points can be dragged: row, x and y of every point that was moved, in their order.
    """
    from importlib import import_module

    lab = import_module("learnable.lab")
    if name not in lab.SCENES:
        raise ParameterError(f"There is no scene {name[:60]!r}.")
    table = None if path is None else load_table(path)
    if name != _DRAGGED:
        found: str = lab.SCENES[name].page(table)
        return found
    for row, x, y in moves or []:
        table = lab.move_point(table, int(row), float(x), float(y))
    found = lab.SCENES[name].page(table, live=True, walk=not moves)
    return found


QUESTIONS: Final[dict[str, Callable[..., Any]]] = {
    "profile": table_profile,
    "rows": table_rows,
    "target": table_target,
    "check": table_check,
    "summary": look_summary,
    "model": fit_other,
    "threshold": look_threshold,
    "confusion": look_confusion,
    "slices": look_slices,
    "errors": look_errors,
    "effect": look_effect,
    "explain": look_explain,
    "form": predict_form,
    "predict": predict_row,
    "predict_file": predict_file,
    "scenes": lab_scenes,
    "scene": lab_scene,
}


def answer(question: dict[str, Any]) -> dict[str, Any]:
    """Return `{"answer": …}`, or `{"error": …}` in one line."""
    from ..evaluation.comparison.race import one_line

    asked = dict(question)
    try:
        return {"answer": QUESTIONS[asked.pop("question")](**asked)}
    except LearnableError as error:
        return {"error": one_line(error).removeprefix("page: ").removeprefix("predict: ")}
    except MemoryError:
        return {"error": "Out of memory: the table is too large for this machine."}
    except Exception as error:
        return {"error": one_line(error)}
