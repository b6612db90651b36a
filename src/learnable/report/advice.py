"""What to do next, read off the record by rules; every rule says what it saw."""

from __future__ import annotations

from typing import Any

from .numbers import is_number, text_of
from .standing import Standing, standing


def advise(record: dict[str, Any]) -> list[str]:
    """Return what to do next, the most important first.

    Parameters
    ----------
    record : dict
        A comparison record.

    Returns
    -------
    list of str
        Sentences, at least one.

    Examples
    --------
    >>> from learnable.report import advise
    >>> record = {"protocol": {}, "data": {"warnings": [{"kind": "leak", "column": "id"}]}, "leaderboard": []}
    >>> advise(record)[0]
    'Check whether id is known at the time of a prediction; if not, leave it out and start again.'
    """
    stand = standing(record)
    found = [*_about_data(record), *_about_unfinished(record, stand)]
    if stand.winner is not None:
        row = record["leaderboard"][stand.winner]
        found += [*_about_winner(record, stand, row), *_about_curve(record)]
    return found or ["Nothing stands out. Try the winner on rows of another time or place before it is relied upon."]


def _about_data(record: dict[str, Any]) -> list[str]:
    warnings = record["data"].get("warnings") or []
    leaks = [str(w["column"]) for w in warnings if w.get("kind") == "leak" and w.get("column") is not None]
    if not leaks:
        return []
    names = ", ".join(leaks[:4]) + (" …" if len(leaks) > 4 else "")
    verb, them = ("is", "it") if len(leaks) == 1 else ("are", "them")
    remedy = f"if not, leave {them} out and start again."
    return [f"Check whether {names} {verb} known at the time of a prediction; {remedy}"]


def _about_unfinished(record: dict[str, Any], stand: Standing) -> list[str]:
    rows = [record["leaderboard"][k] for k in stand.unfinished]
    found = []
    if any(row.get("status") in ("timeout", "skipped") for row in rows):
        found.append("Some models ran out of time: give a larger --seconds, or fewer rows, to rank them too.")
    if any(row.get("status") == "failed" for row in rows):
        found.append("Some models failed: their reasons stand in the leaderboard.")
    if any(row.get("status") == "interrupted" for row in rows):
        found.append("The comparison was interrupted: run it again before the ranking is relied upon.")
    return found


def _about_winner(record: dict[str, Any], stand: Standing, row: dict[str, Any]) -> list[str]:
    found = []
    one_model = record.get("subject") == "model"
    if stand.beats_baseline is False or stand.winner == stand.baseline:
        found.append("The columns hold little about the target as they are: look for better ones before better models.")
    if stand.tied:
        found.append("The best models are tied: prefer the one that is simplest to explain or fastest to run.")
    certificate = row.get("certificate") or {}
    if certificate.get("kind") not in (None, "none") and not certificate.get("holds") and not row.get("cut"):
        found.append("The fit stopped before its tolerance: raise max_iter, or scale the columns.")
    if _overfits(row) and not one_model:
        train, mean = text_of(row["train_mean"]), text_of(row["mean"])
        found.append(f"It knows its training rows better than new ones ({train} against {mean}): regularise more.")
    if one_model:
        found.append("Score the model on rows it was not fitted on before its numbers are relied upon.")
    command = (record.get("winner") or {}).get("predict_command")
    if command:
        found.append(f"Predict new rows with: {command}")
    return found


def _overfits(row: dict[str, Any]) -> bool:
    if not all(is_number(row.get(key)) for key in ("train_mean", "mean", "low", "high")):
        return False
    return bool(abs(row["train_mean"] - row["mean"]) > 2 * (row["high"] - row["low"]))


def _about_curve(record: dict[str, Any]) -> list[str]:
    details = (record.get("details") or {}).get((record.get("winner") or {}).get("name")) or {}
    reading = read_curve(details.get("learning_curve"))
    return [] if reading is None else [reading]


def read_curve(curve: Any) -> str | None:
    """Return what a learning curve says about more rows; None if it says nothing."""
    if not isinstance(curve, dict):
        return None
    test, low, high = (curve.get(key) or [] for key in ("test", "low", "high"))
    if len(test) < 3 or not all(is_number(t) for t in test[-2:]):
        return None
    ends_known = bool(low) and bool(high) and is_number(low[-1]) and is_number(high[-1])
    noise = (high[-1] - low[-1]) / 2 if ends_known else 0.01 * abs(test[-1])
    if abs(test[-1] - test[-2]) > noise:
        return "The score was still changing at the full size: more rows are likely to help."
    return "The learning curve is flat at its end: more rows of this kind will help little; better columns may."
