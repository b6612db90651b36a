"""Models of a comparison besides the one it kept: fitted again when they are first asked for, and then kept too.

A run's folder holds the kept model and what it said of the rows set aside. The same two files of another line of the
leaderboard stand in `others/<number>`, the number being its place in the record's leaderboard.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from ..core.errors import DataError, ParameterError
from .store import read_json, write_json

MODEL: Final = "model.safetensors"
ASIDE: Final = "aside.npz"
_ABOUT: Final = "about.json"


def read_record(run: str) -> dict[str, Any]:
    """Return the record of a run."""
    found = read_json(Path(run) / "record.json")
    if not isinstance(found, dict):
        raise DataError("This run has no result: it failed, or was stopped before a model was finished.")
    return found


def folder_of(run: str, model: str | None) -> Path:
    """Return where the files of a model of the run are: the run's own folder for the one it kept."""
    record = read_record(run)
    if model is None or model == (record["winner"] or {}).get("name"):
        return Path(run)
    names = [row["name"] for row in record["leaderboard"]]
    if model not in names:
        raise ParameterError(f"The leaderboard has no model {model[:80]!r}.")
    return Path(run) / "others" / str(names.index(model))


def about_other(run: str, model: str | None) -> dict[str, Any] | None:
    """Return what was found of a model that was fitted again; None of the kept one, or before it was asked for."""
    folder = folder_of(run, model)
    return None if folder == Path(run) else read_json(folder / _ABOUT)


def askable(record: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the lines of the leaderboard that can be asked, the best first."""
    from ..evaluation.comparison.again import can_be_fitted

    winner = (record["winner"] or {}).get("name")
    return [
        {"name": row["name"], "short": row.get("short") or row["name"], "rank": row["rank"], "mean": row["mean"]}
        for row in record["leaderboard"]
        if row["name"] == winner or can_be_fitted(row)
    ]


def fit_other(run: str, path: str, model: str) -> dict[str, Any]:
    """Fit a line of the leaderboard again, unless that was done, and say how it does on the rows set aside."""
    from ..core.model_file import save
    from ..evaluation.comparison.again import fit_again
    from ..evaluation.comparison.aside import write_aside
    from ..evaluation.comparison.record import plain
    from .shelf import load_table

    folder = folder_of(run, model)
    if folder == Path(run):
        return {"name": model, "kept": True}
    known = read_json(folder / _ABOUT)
    if known is not None:
        return dict(known)
    settings = dict(read_json(Path(run) / "run.json")["settings"])
    again = fit_again(load_table(path), read_record(run), settings, model)
    folder.mkdir(parents=True, exist_ok=True)
    save(again.model, folder / MODEL)
    write_aside(again.aside, folder / ASIDE)
    about: dict[str, Any] = plain({"name": model, "kept": False, "rows": again.rows, "holdout": again.holdout})
    write_json(folder / _ABOUT, about)  # last: with it, the other two are there
    return about
