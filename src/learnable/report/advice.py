"""What to do next, read off the record by rules; every sentence says what it saw, and what is not known is not said."""

from __future__ import annotations

from typing import Any, Final

from .numbers import is_number, text_of
from .words import Standing, baseline_words, standing

#: Parameters of which more (+1) or less (−1) makes a model more regular.
_REGULAR: Final = {
    "alpha": 1,
    "C": -1,
    "n_neighbors": 1,
    "max_depth": -1,
    "min_samples_leaf": 1,
    "max_leaf_nodes": -1,
    "ccp_alpha": 1,
}
_BEYOND: Final = 1.6  # times the last size of a learning curve that the table may have; five folds have 1.25
_FASTER: Final = 3.0  # how many times as fast an equal model must be to be named
_NOTHING: Final = "Nothing stands out. Try the winner on rows of another time or place before it is relied upon."


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
        found += [*_about_baseline(record, stand, row), *_about_fit(record, row)]
        found += [*_about_others(record, stand, row), *_about_variants(record, stand, row)]
        found += _about_curve(record)
        if not found and record.get("subject") != "model":
            found = [_NOTHING]
        found += _about_use(record)
    return found or [_NOTHING]


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
    """Say why models have no score: the clock, an error, or the user."""
    rows = [record["leaderboard"][k] for k in stand.unfinished]
    late = sum(row.get("status") == "timeout" for row in rows)
    stopped = sum(row.get("status") in ("interrupted", "skipped") for row in rows)
    found = []
    if record.get("status") == "interrupted" or any(row.get("status") == "interrupted" for row in rows):
        found.append(_interrupted(stopped))
    elif stopped:
        behind = sum(str(row.get("reason") or "").startswith("left behind") for row in rows)
        if behind:
            who = "1 model" if behind == 1 else f"{behind} models"
            found.append(
                f"{who} did not race on all rows for want of time: the reasons stand in the leaderboard; give more "
                "--seconds to race them all."
            )
        if stopped > behind:
            found.append(f"{_models(stopped - behind)} not started: the reasons stand in the leaderboard.")
    if late:
        limit = (record.get("protocol") or {}).get("seconds_limit")
        remedy = "give more --seconds, or fewer rows" if is_number(limit) else "use fewer rows"
        them = "it" if late == 1 else "them"
        who = "1 model has" if late == 1 else f"{late} models have"
        found.append(f"{who} no score because the time was up: {remedy}, to rank {them} too.")
    failed = sum(row.get("status") == "failed" for row in rows)
    if failed:
        found.append(
            "1 model failed: its reason stands in the leaderboard."
            if failed == 1
            else f"{failed} models failed: their reasons stand in the leaderboard."
        )
    return found


def _interrupted(stopped: int) -> str:
    left = f", before {stopped} of the models had a score" if stopped else " after the race, before everything was told"
    return f"The comparison was stopped{left}: run it again before the ranking is relied upon."


def _models(count: int) -> str:
    return "1 model was" if count == 1 else f"{count} models were"


def _about_baseline(record: dict[str, Any], stand: Standing, row: dict[str, Any]) -> list[str]:
    if stand.winner == stand.baseline:
        return [f"No model tried is better than the baseline ({baseline_words(row.get('name'))}): do not rely on one."]
    found = []
    leader = None if stand.leader is None else record["leaderboard"][stand.leader]
    past = (leader or {}).get("model") == "past values"
    if leader is not None and leader.get("baseline"):
        text = f"The baseline ({baseline_words(leader.get('name'))}) ranks above every model."
        if past:
            text += " It knows the targets before each row, which the models are not given: add columns of them."
        found.append(text)
    against = (record.get("winner") or {}).get("against") or {}
    name = against.get("name")
    if name is None and stand.baseline is not None:
        name = record["leaderboard"][stand.baseline].get("name")
    if against.get("verdict") == "worse":
        found.append(
            f"On the rows set aside {row.get('name')} is worse than the baseline ({baseline_words(name)}): use that "
            "instead."
        )
    elif stand.beats_baseline is False:
        where = "On the rows set aside" if against else "In cross-validation"
        found.append(
            f"{where} {row.get('name')} cannot be told from the baseline ({baseline_words(name)})"
            + _by_the_folds(record, stand, bool(against))
        )
    return found


def _by_the_folds(record: dict[str, Any], stand: Standing, holdout: bool) -> str:
    """Say what follows from a hold-out that cannot tell the winner from the baseline."""
    rows = record["leaderboard"]
    told = holdout and stand.leader == stand.winner and stand.baseline is not None
    if told and rows[stand.baseline].get("verdict") == "worse":
        return ", although in cross-validation it is better beyond noise: get more rows before it is relied upon."
    return ": do not rely on it."


def _about_fit(record: dict[str, Any], row: dict[str, Any]) -> list[str]:
    """Say what ended a fit before its tolerance: the clock or the iterations; nothing if that is not known."""
    cut = row.get("cut")
    if cut:
        of = f" of {cut['of']}" if cut.get("of") else ""
        how_far = f"after {cut.get('done')}{of} {cut.get('unit')}"
        return [f"{row.get('name')} was cut by the clock {how_far}: give more --seconds, and it may do better."]
    certificate = row.get("certificate") or {}
    if certificate.get("kind") in (None, "none") or certificate.get("holds"):
        return []
    most = certificate.get("max_iter")
    done = certificate.get("n_iter")
    if is_number(most) and is_number(done) and done >= most > 0:
        return [f"{row.get('name')} stopped at its limit of {most} iterations, before its tolerance: raise max_iter."]
    return []


def _about_others(record: dict[str, Any], stand: Standing, row: dict[str, Any]) -> list[str]:
    """Say which models are equal, and why the one that is saved is."""
    if record.get("subject") == "model" or stand.leader is None:
        return []
    rows = record["leaderboard"]
    first = rows[stand.leader]
    if first is not row:
        if first.get("baseline"):
            return []
        why = "was cut by the clock" if first.get("cut") else "has no model that can be kept"
        return [f"{first.get('name')} ranks first but {why}; {row.get('name')} is kept instead."]
    equal = [rows[k] for k in stand.tied if not rows[k].get("baseline")]
    if not equal:
        return []
    kept = "saved" if (record.get("winner") or {}).get("model_file") else "reported"
    names = ", ".join(str(other.get("name")) for other in equal[:4]) + (" …" if len(equal) > 4 else "")
    margin = (record.get("protocol") or {}).get("margin")
    within = f"the margin of {text_of(margin)}" if is_number(margin) else "the margin"
    verb = "is" if len(equal) == 1 else "are"
    text = f"{row.get('name')} is {kept} because its mean is the best; {names} {verb} equal within {within}"
    quick = _much_faster(row, equal)
    return [f"{text}{quick}."]


def _much_faster(row: dict[str, Any], equal: list[dict[str, Any]]) -> str:
    """Return the clause about an equal model that predicts much faster, if there is one."""
    mine = row.get("predict_seconds")
    timed = [other for other in equal if is_number(other.get("predict_seconds")) and other["predict_seconds"] > 0]
    if not is_number(mine) or not timed:
        return ""
    fastest = min(timed, key=lambda other: other["predict_seconds"])
    times = mine / fastest["predict_seconds"]
    if times < _FASTER or mine < 1e-3:
        return ""
    return f", and {fastest.get('name')} predicts {times:.0f} times as fast: take that one where speed counts"


def _about_variants(record: dict[str, Any], stand: Standing, row: dict[str, Any]) -> list[str]:
    """Say that the best setting lies at the edge of those tried, where it is better than the next one beyond noise."""
    if stand.leader != stand.winner or stand.tied or row.get("settings_tried"):
        return []  # where others are equal, the setting makes little difference; further ones were tried by tuning
    for key, sign in _REGULAR.items():
        mine = (row.get("parameters") or {}).get(key)
        if not is_number(mine):
            continue
        family = [
            (sign * other["parameters"][key], other)
            for k in stand.ranked
            if (other := record["leaderboard"][k]).get("model") == row.get("model")
            and other is not row
            and is_number((other.get("parameters") or {}).get(key))
            and not other.get("cut")
            and _same_but(other["parameters"], row["parameters"], key)
        ]
        for more, direction in ((True, "more"), (False, "less")):
            beyond = [regular for regular, _ in family if (regular > sign * mine) == more]
            if beyond or not family:
                continue
            _, nearest = min(family, key=lambda pair: abs(pair[0] - sign * mine))
            if nearest.get("verdict") == "worse":
                change = "larger" if (sign > 0) == more else "smaller"
                return [
                    f"{row.get('name')} is the {direction} regular end of the settings tried and better than "
                    f"{nearest.get('name')} ({text_of(row['mean'])} against {text_of(nearest['mean'])}): try a "
                    f"{change} {key}."
                ]
    return []


def _same_but(a: dict[str, Any], b: dict[str, Any], key: str) -> bool:
    return {k: v for k, v in a.items() if k != key} == {k: v for k, v in b.items() if k != key}


def _about_use(record: dict[str, Any]) -> list[str]:
    found = []
    if record.get("subject") == "model":
        found.append("Score the model on rows it was not fitted on before its numbers are relied upon.")
    command = (record.get("winner") or {}).get("predict_command")
    if command:
        found.append(f"Predict new rows with: {command}")
    return found


def _about_curve(record: dict[str, Any]) -> list[str]:
    details = (record.get("details") or {}).get((record.get("winner") or {}).get("name")) or {}
    reading = read_curve(details.get("learning_curve"))
    return [] if reading is None else [reading]


def _ends_early(curve: dict[str, Any]) -> bool:
    """Tell whether a curve of some of the rows ends far below what there is: it then says nothing of more rows."""
    sizes = curve.get("sizes") or []
    return is_number(curve.get("rows")) and bool(sizes) and curve["rows"] > _BEYOND * sizes[-1]


def read_curve(curve: Any) -> str | None:
    """Return what a learning curve says about more rows; None if it says nothing."""
    trend = curve.get("trend") if isinstance(curve, dict) else None
    if not isinstance(trend, dict) or not all(is_number(trend.get(key)) for key in ("per_doubling", "low", "high")):
        return None
    gain = text_of(trend["per_doubling"], decimals=4)
    ends = f"95 % interval {text_of(trend['low'], decimals=4)} to {text_of(trend['high'], decimals=4)}"
    if trend.get("word") == "rising" and not _ends_early(curve):
        return (
            f"More rows are likely to help: at the end of the learning curve, twice as many rows improved the score by "
            f"{gain} ({ends})."
        )
    if trend.get("word") == "flat" and is_number(trend.get("margin")):
        return (
            f"The learning curve is flat at its end: twice as many rows changed the score by {gain} ({ends}), within "
            f"the margin of {text_of(trend['margin'])}."
        )
    return None
