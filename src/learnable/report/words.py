"""Certificates, bounds and results as plain sentences, their numbers taken from the record."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from ..plots.markup import Markup, clean, join, tag
from .numbers import Numbers, decimals_for, decimals_to_tell, is_number, text_of, word

_NAME: Final = 120
#: Where a long name may break: after a joint, as in "city=|Paris", but not inside a number, as in "3.5".
_JOINTS: Final = re.compile(r"(?<=[=_/:])|(?<=\.)(?!\d)")

_CLAIMS: Final = {
    "closed-form": ("The equations that define the solution hold to a relative residual of ", "."),
    "gap": ("The objective is at most ", " (relative) above the best value possible."),
    "stationarity": ("The gradient at the solution vanishes up to ", " (relative)."),
    "ascent": ("One more step would raise the objective by ", " (relative): a local optimum."),
    "greedy": ("No split falls short of the best of its candidates by more than ", "."),
    "chain": ("R-hat, which compares the chains with each other, exceeds one by ", "."),
    "bellman": ("One more backup would change the values by ", "."),
}

#: How an interval was made, and what that promises. Keys are looked for inside the method's name, in this order.
_METHODS: Final = {
    "clopper": "It is the exact binomial interval (Clopper and Pearson): it covers the true value at least this often, "
    "whatever the distribution and the number of rows.",
    "bernstein": "It is the empirical Bernstein interval (Maurer and Pontil): it holds for every distribution and "
    "every number of rows, at the price of being wide.",
    "corrected": "It is Student's interval, corrected for folds that share training rows (Nadeau and Bengio): an "
    "approximation.",
    "bootstrap": "It is a bootstrap interval, from rows drawn again and again with replacement: right as the number of "
    "rows grows.",
    "delong": "It is DeLong's interval of the area under the curve: right as the number of rows grows.",
    "fisher": "It rests on Fisher's transformation of a correlation: right for normal errors, otherwise approximate.",
    "linearised": "It is Student's interval of the score, made linear in the rows: right as the number of rows grows.",
    "one row": "One row gives no interval.",
    "constant target": "A constant target gives no interval.",
    "student": "It is Student's interval: exact for normal values, and for others right as the number of rows grows.",
}
_ALIASES: Final = {
    "exact binomial": "clopper",
    "t": "student",
    "root of the t-interval": "student",
    "t of the linearised score": "linearised",
}

#: What varies as a whole where rows do not vary by themselves, by the end of the method's name.
_TOGETHER: Final = {
    " of stretches of time": " Rows near each other in time are alike: what varies is taken to be stretches of time.",
    " of groups": " Rows of a group are alike: what varies is taken to be the groups.",
}

_COVERAGE: Final = {
    "split": "Split conformal prediction promises at least this level, on average over new rows like these.",
    "cv+": "CV+ (Barber, Candès, Ramdas and Tibshirani) proves that they miss at most about twice as often as the "
    "level says; in practice they keep the level.",
    "cv": "They are as wide as the errors of models that had not seen the rows; in practice they keep the level, which "
    "is proven only for models that a few rows more or less hardly change.",
    "jackknife+": "The jackknife+ (Barber, Candès, Ramdas and Tibshirani) proves that they miss at most twice as often "
    "as the level says; in practice they keep the level.",
}

STATUS: Final = {
    "failed": "failed",
    "timeout": "out of time",
    "interrupted": "interrupted",
    "skipped": "not started",
}

WARNINGS: Final = {
    "leak": "Possible leak",
    "identifier": "Identifier",
    "constant": "Constant",
    "missing": "Missing values",
    "duplicates": "Duplicates",
    "imbalance": "Rare class",
    "size": "Size",
}


def name(text: Any, most: int = _NAME) -> Markup:
    """Return a name from the record, cut if it is very long, isolated from the writing direction around it."""
    shown = clean(text, most)
    full = clean(text, 400) if shown != clean(text) else None
    pieces = [piece for piece in _JOINTS.split(shown) if piece] if len(shown) > 12 else [shown or "(no name)"]
    return tag("bdi", pieces[0], *(join([Markup("<wbr>"), piece]) for piece in pieces[1:]), title=full)


def listing(items: Sequence[Any], most: int = 4) -> Markup:
    """Return "a, b and c", "a, b, c and nine more", or, of very many, "a, b, c and many more"."""
    shown = list(items[:most])
    more = len(items) - most
    if more > 0:
        shown.append(f"{word(more)} more" if more <= 10 else "many more")
    if len(shown) < 2:
        return join(shown)
    return join([join(shown[:-1], ", "), " and ", shown[-1]])


def certificate_sentence(numbers: Numbers, *path: str | int) -> Markup | None:
    """Return how well a fit was solved, in one or two sentences; None if the record has no certificate."""
    record = numbers.at(*path)
    if not isinstance(record, dict) or not record.get("kind"):
        return None
    kind = str(record["kind"])
    if kind == "none":
        extra = None if record.get("sentence") == "nothing is proven" else record.get("sentence")
        return join([extra[:1].upper() + extra[1:] + "." if extra else "How well it was solved is not known."])
    if kind not in _CLAIMS or not numbers.known(*path, "value"):
        return join([f"{kind}: {record.get('sentence') or 'no value is recorded'}."])
    before, after = _CLAIMS[kind]
    pieces: list[Any] = [before, numbers.show(*path, "value", style="scientific"), after]
    if numbers.known(*path, "tolerance"):
        verb = " The tolerance is " if record["value"] <= record["tolerance"] else " That misses the tolerance of "
        pieces += [verb, numbers.show(*path, "tolerance", style="scientific"), "."]
    if _was_cut(record):
        pieces.append(f" That is said of a part of the model that was asked for: it was {record['sentence']}.")
    bound = record.get("bound")
    if bound is not None and is_number(bound) and bound > 0 and bound != record["value"]:
        pieces += [" It follows that the objective is at most ", numbers.show(*path, "bound", style="scientific")]
        pieces.append(" (relative) above the best value possible.")
    return join(pieces)


def certificate_mark(record: Any) -> tuple[str, str]:
    """Return a class and a few words for a certificate: how far a fit was solved, not how good a model is.

    Examples
    --------
    >>> from learnable.report.words import certificate_mark
    >>> certificate_mark({"kind": "gap", "value": 3.1e-9, "tolerance": 1e-8, "holds": True})
    ('holds', 'solved to 4e-9')
    >>> certificate_mark({"kind": "gap", "value": 0.02, "tolerance": 1e-6, "holds": False})
    ('misses', 'stopped at 0.02')
    """
    if not isinstance(record, dict) or not record.get("kind"):
        return "absent", "–"
    if record["kind"] == "none":
        return "absent", "none"
    value = record.get("value")
    size = _rounded_up(value) if is_number(value) else "?"
    if _was_cut(record):
        return "misses", "cut"
    if not record.get("holds"):
        return "misses", f"stopped at {size}"
    if record["kind"] == "greedy":
        return "holds", "splits checked"
    what = {"ascent": "local optimum to", "chain": "chains agree to"}.get(str(record["kind"]), "solved to")
    return "holds", f"{what} {size}"


def _was_cut(record: dict[str, Any]) -> bool:
    """Tell whether a comparison's clock ended the fit, so that its certificate is about a smaller model."""
    return not record.get("holds") and str(record.get("sentence")).startswith("cut by")


def certificate_words(numbers: Numbers, *path: str | int) -> tuple[str, Markup]:
    """Return the class and the words of a certificate for the page, the number with the place it comes from."""
    record = numbers.at(*path)
    css, text = certificate_mark(record)
    before, _, _ = text.rpartition(" ")
    if css == "absent" or not numbers.known(*path, "value") or not text[-1].isdigit():
        return css, join([text])
    if record["value"] == 0:
        return css, join(["solved"])
    return css, join([before, " ", numbers.show(*path, "value", style="scientific")])


def _rounded_up(value: float) -> str:
    """Return a number that is not below the one given, with one digit: 3.1e-9 is 4e-9."""
    value = max(abs(value), 1e-16)
    power = math.floor(math.log10(value) + 1e-12)
    digit = math.ceil(value / 10.0**power - 1e-9)
    if digit == 10:
        digit = 1
        power = power + 1
    return f"{digit}e{power}" if power < -2 else f"{digit * 10.0**power:g}"


def interval_sentence(method: Any) -> str:
    """Return what the method of an interval promises."""
    known = str(method or "").lower()
    together = ""
    for units, sentence in _TOGETHER.items():
        if known.endswith(units):
            known = known.removesuffix(units)
            together = sentence
    known = _ALIASES.get(known, known)
    for key, sentence in _METHODS.items():
        if key in known:
            return sentence + together
    return f"Its method: {clean(method, 200)}." if method else ""


def coverage_sentences(numbers: Numbers) -> Markup | None:
    """Return what is known about the winner's prediction intervals."""
    record = numbers.at("winner", "intervals")
    if not isinstance(record, dict):
        return None
    place = ("winner", "intervals")
    pieces: list[Any] = ["Prediction intervals"]
    if numbers.known(*place, "level"):
        pieces += [" at level ", numbers.show(*place, "level", style="level")]
    if numbers.known(*place, "holdout_coverage"):
        pieces += [" held ", numbers.show(*place, "holdout_coverage", style="percent"), " of the hold-out rows"]
        if numbers.known(*place, "chance", "low"):
            ends = (numbers.show(*place, "chance", end, style="percent") for end in ("low", "high"))
            pieces += [" (so few rows give ", next(ends), " to ", next(ends), " by chance)"]
    else:
        pieces.append(" come with the model")
    if numbers.known(*place, "mean_width"):
        pieces += [", at a mean width of ", numbers.show(*place, "mean_width")]
    pieces.append(". ")
    method = str(record.get("method") or "")
    promise = _COVERAGE.get(method.lower())
    pieces.append(promise or (f"Their method: {clean(method, 80)}." if method else ""))
    return join(pieces)


def interval(numbers: Numbers, place: tuple[str | int, ...], decimals: int | None = None) -> Markup | None:
    """Return "low to high", or None if there is no interval."""
    if not numbers.known(*place, "low") or not numbers.known(*place, "high"):
        return None
    low, high = (numbers.show(*place, end, decimals=decimals) for end in ("low", "high"))
    texts = (text_of(numbers.at(*place, end), decimals=decimals) for end in ("low", "high"))
    if len(set(texts)) == 1:
        return None  # scores without spread, such as a constant guess's, give an interval that says nothing
    return join([low, " to ", high])


def verdict(numbers: Numbers, standing: Standing, decimals: int | None) -> list[Markup]:
    """Return the result in two sentences: who won by how much, and against what."""
    if standing.winner is None:
        return [_nothing_won(numbers, standing)]
    if numbers.at("subject") == "model":
        return [_one_model(numbers, decimals), _against_baseline(numbers, standing, decimals)]
    winner = numbers.at("winner") or {}
    scores = [(winner.get(key) or {}).get("score") for key in ("holdout", "against", "as_given")]
    shown = decimals if decimals is None else decimals_to_tell(scores, max(decimals, _of_holdout(winner)))
    found = [
        _who_won(numbers, standing, shown),
        join([_against_baseline(numbers, standing, shown), " ", _who_tied(numbers, standing)]),
    ]
    return [*found, *_with_copies(numbers, shown)]


def _of_holdout(winner: dict[str, Any]) -> int:
    """Return the decimals that the interval of the hold-out score deserves; folds may scatter far more."""
    holdout = winner.get("holdout") or {}
    low = holdout.get("low")
    high = holdout.get("high")
    return decimals_for([(high - low) / 2]) if is_number(low) and is_number(high) else 0


def _who_won(numbers: Numbers, standing: Standing, decimals: int | None) -> Markup:
    record = numbers.record
    winner = strong(record["winner"]["name"])
    target = name(record["data"].get("target"), 60)
    if standing.winner == standing.baseline:
        first = join(["No model predicts ", target, " better than the baseline ", winner])
    elif sum(not row.get("baseline") for row in record["leaderboard"]) == 1:
        first = join([winner, " predicts ", target])
    elif standing.leader is not None and record["leaderboard"][standing.leader].get("baseline"):
        leader = name(baseline_words(record["leaderboard"][standing.leader]["name"]), 80)
        above = join(["No model tried predicts ", target, " better in cross-validation than the baseline (", leader])
        first = join([above, "); the best of them is ", winner])
    elif standing.leader != standing.winner:
        ahead = name(record["leaderboard"][standing.leader or 0]["name"], 80)
        first = join([winner, " predicts ", target, "; ", ahead, " ranks above it but is not kept"])
    else:
        first = join([winner, " has the best cross-validated score of the models tried to predict ", target])
    if not numbers.known("winner", "holdout", "score"):
        place: tuple[str | int, ...] = ("leaderboard", standing.winner or 0)
        score = _score(numbers, (*place, "mean"), place, decimals)
        return join([first, ": in cross-validation it reaches ", score, "; no hold-out score was recorded."])
    score = _score(numbers, ("winner", "holdout", "score"), ("winner", "holdout"), decimals)
    seen: Any = "on new rows"
    if numbers.known("protocol", "holdout_rows"):
        seen = join(["on ", numbers.show("protocol", "holdout_rows", style="count"), " rows it had never seen"])
    return join([first, ": ", seen, " it reaches ", score, "."])


def _one_model(numbers: Numbers, decimals: int | None) -> Markup:
    record = numbers.record
    score = _score(numbers, ("winner", "holdout", "score"), ("winner", "holdout"), decimals)
    rows = numbers.show("data", "rows", style="count")
    note = record["winner"].get("optimism_note")
    told = [" ", note] if note else []
    return join([strong(record["winner"]["name"]), " reaches ", score, " on the ", rows, " rows given.", *told])


def _score(numbers: Numbers, path: tuple[str | int, ...], ends: tuple[str | int, ...], decimals: int | None) -> Markup:
    metric = numbers.at("protocol", "metric") or {}
    label = metric.get("label") or metric.get("name") or "a score of"
    pieces: list[Any] = [clean(label, 40), " ", tag("strong", numbers.show(*path, decimals=decimals))]
    around = interval(numbers, ends, decimals)
    if around:
        known = numbers.known("protocol", "level")
        level = [numbers.show("protocol", "level", style="level"), " "] if known else []
        pieces += [" (", *level, "interval ", around, ")"]
    if metric.get("greater_is_better") is False:
        pieces.append("; lower is better")
    return join(pieces)


def _against_baseline(numbers: Numbers, standing: Standing, decimals: int | None) -> Markup:
    k = standing.baseline
    if k is None:
        return join(["There is no baseline to compare it with."])
    row = numbers.record["leaderboard"][k]
    if k == standing.winner:
        return join(["Nothing was learned from the columns that a constant guess does not know already."])
    if numbers.known("winner", "against", "difference"):
        return _on_the_same_rows(numbers, decimals)
    score = numbers.show("leaderboard", k, "mean", decimals=decimals)
    where = "On the same rows the" if numbers.at("subject") == "model" else "In cross-validation the"
    baseline = join([where, " baseline (", name(baseline_words(row["name"]), 80), ") reaches ", score])
    if standing.beats_baseline is False:
        return join([baseline, ", and the model is not clearly better."])
    return join([baseline, "."])


def _on_the_same_rows(numbers: Numbers, decimals: int | None) -> Markup:
    """Return the sentence about winner and baseline on the hold-out, row by row."""
    place: tuple[str | int, ...] = ("winner", "against")
    against = numbers.at(*place)
    pieces: list[Any] = ["On the same rows the baseline (", name(baseline_words(against.get("name")), 80), ") reaches "]
    pieces += [numbers.show(*place, "score", decimals=decimals), "; row by row "]
    told = {"worse": "the difference is ", "undecided": "the gain of the model is "}
    pieces.append(told.get(str(against.get("verdict")), "the model is better by "))
    pieces.append(numbers.show(*place, "difference", decimals=decimals))
    around = interval(numbers, place, decimals)
    if around:
        pieces += [" (interval ", around, ")"]
    end = {"worse": ": the model is worse.", "undecided": ": which of them is better cannot be told."}
    pieces.append(end.get(str(against.get("verdict")), "."))
    return join(pieces)


def _with_copies(numbers: Numbers, decimals: int | None) -> list[Markup]:
    """Return what the score would have been if copies of rows were not kept together."""
    if not numbers.known("winner", "as_given", "score") or not numbers.known("data", "copies", "rows"):
        return []
    pieces: list[Any] = [numbers.show("data", "copies", "rows", style="count"), " rows are copies of others. They are "]
    pieces.append("kept on one side of every split here; with copies on both sides the score would read ")
    pieces += [numbers.show("winner", "as_given", "score", decimals=decimals), "."]
    return [join(pieces)]


def _who_tied(numbers: Numbers, standing: Standing) -> Markup:
    """Return who is equal to the first line within the margin, and of whom that cannot be told."""
    rows = numbers.record["leaderboard"]
    equal = [_called(rows[k]) for k in standing.tied]  # to the first line, which need not be the winner
    undecided = [_called(rows[k]) for k in standing.undecided]
    it: Any = "it"
    if standing.leader is not None and standing.leader != standing.winner:
        first = rows[standing.leader]
        it = name(baseline_words(first["name"]) if first.get("baseline") else first["name"], 80)
    pieces: list[Any] = []
    if equal:
        known = numbers.known("protocol", "margin")
        margin = ["the margin of ", numbers.show("protocol", "margin")] if known else ["the margin"]
        verb = "is" if len(equal) == 1 else "are"
        pieces += [listing(equal), f" {verb} equal to ", it, " in cross-validation, within ", *margin, "."]
    if undecided:
        pieces += [" " if pieces else "", "Whether ", it, " is better than ", listing(undecided)]
        pieces.append(" cannot be told from these folds.")
    if pieces:
        return join(pieces)
    others = [k for k in standing.ranked if not rows[k].get("baseline") and k != standing.winner]
    if others and all(rows[k].get("verdict") == "worse" for k in others) and standing.leader == standing.winner:
        return join(["Every other model is worse in cross-validation, beyond noise."])
    return Markup("")


def _called(row: dict[str, Any]) -> Markup:
    """Return a line's name in a list of others, of a baseline with what it is."""
    if row.get("baseline"):
        return join(["the baseline (", name(baseline_words(row["name"]), 60), ")"])
    return name(row["name"], 60)


def _nothing_won(numbers: Numbers, standing: Standing) -> Markup:
    record = numbers.record
    if numbers.at("subject") == "model":
        return join([strong(numbers.at("winner", "name")), " has no score: the measure is not defined on these rows."])
    if not record.get("leaderboard"):
        return join(["No model was tried, so there is no winner."])
    if not standing.ranked:
        return join(["None of the ", numbers.length("leaderboard"), " models finished, so there is no winner."])
    return join(["No winner was recorded; the scores of the models that finished stand below."])


def strong(text: Any) -> Markup:
    """Return a name that stands out."""
    return tag("strong", name(text))


# --------------------------------------------------------------------------------------------------------------------
# Who won, against what, and who is as good: read off the record once, for every part of the report.


@dataclass(frozen=True)
class Standing:
    """Positions in the leaderboard.

    Attributes
    ----------
    ranked : list of int
        Lines with a score, the best first.
    unfinished : list of int
        Lines without one.
    winner : int or None
        The line that won.
    baseline : int or None
        The best line that is a baseline.
    tied : list of int
        Lines that are equal to the first one within the margin.
    beats_baseline : bool or None
        Whether the winner is better than the baseline beyond noise: on the hold-out, row by row; without a hold-out in
        cross-validation. None if that cannot be said.
    undecided : list of int
        Lines of which the folds cannot tell whether the first one is better.
    """

    ranked: list[int]
    unfinished: list[int]
    winner: int | None
    baseline: int | None
    tied: list[int]
    beats_baseline: bool | None
    undecided: list[int]

    @property
    def leader(self) -> int | None:
        """The first line, which may be a baseline; verdicts on the others are about it."""
        return self.ranked[0] if self.ranked else None


def baseline_words(name: Any) -> str:
    """Return a baseline's name for the middle of a sentence.

    Examples
    --------
    >>> from learnable.report.words import baseline_words
    >>> baseline_words("baseline: the mean"), baseline_words("Always the mean")
    ('the mean', 'always the mean')
    """
    shown = re.sub(r"^baseline:\s*", "", str(name), flags=re.IGNORECASE)
    return shown[:1].lower() + shown[1:] if shown[1:2].islower() and " " in shown else shown


def standing(record: dict[str, Any]) -> Standing:
    """Read the standing off a record."""
    rows = record.get("leaderboard") or []
    greater = bool((record["protocol"].get("metric") or {}).get("greater_is_better", True))

    def order(k: int) -> tuple[float, float]:
        rank = rows[k].get("rank")
        mean = rows[k]["mean"]
        return (rank if is_number(rank) else float("inf"), -mean if greater else mean)

    finished = [k for k, row in enumerate(rows) if row.get("status", "ok") == "ok" and is_number(row.get("mean"))]
    ranked = sorted(finished, key=order)
    unfinished = [k for k in range(len(rows)) if k not in set(finished)]
    named = (record.get("winner") or {}).get("name")
    winner = next((k for k in ranked if rows[k].get("name") == named), None)
    baseline = next((k for k in ranked if rows[k].get("baseline")), None)
    others = ranked[1:] if winner is not None else []
    tied = [k for k in others if rows[k].get("tied")]
    undecided = [k for k in others if rows[k].get("verdict") == "undecided"]
    beats = _beats(record, rows, winner, baseline, greater)
    return Standing(ranked, unfinished, winner, baseline, tied, beats, undecided)


def _beats(record: dict[str, Any], rows: Any, winner: int | None, baseline: int | None, greater: bool) -> bool | None:
    if winner is None or baseline is None or winner == baseline:
        return None
    against = (record.get("winner") or {}).get("against")
    if isinstance(against, dict) and against.get("verdict"):
        return bool(against["verdict"] == "better")
    if rows[winner].get("verdict") == "best" and rows[baseline].get("verdict"):
        return bool(rows[baseline]["verdict"] == "worse")
    edge = rows[winner].get("low" if greater else "high")
    edge = edge if is_number(edge) else rows[winner]["mean"]
    if not is_number(edge):
        return None
    mean = rows[baseline]["mean"]
    return bool(edge > mean if greater else edge < mean)
