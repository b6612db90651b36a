"""Cross-validation of one candidate, as a job: fit, predict and measure, split by split."""

from __future__ import annotations

import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from ...core.estimator import Certificate
from .candidates import Candidate, wants_dense
from .cut import cut_of
from .measures import measure_all, predict_rows
from .record import plain
from .warm import get_ready
from .workspace import EncodedSplit, Report, keep_predictions, read_split

#: The share of a fold's time that a model with `max_seconds` may spend; the rest is for predictions and measures.
_SHARE_OF_FIT = 0.7
_SHORTEST = 1e-3  # seconds of a fit whose time is up: whoever watches the clock ends the job


def score_candidate(
    report: Report,
    folder: str,
    splits: list[str],
    candidate: Candidate,
    task: str,
    n_classes: int | None,
    seed: int,
    seconds: float | None = None,
    rows: int | None = None,
    keep: bool = False,
) -> None:
    """Fit and measure a candidate on each split; a job.

    Reports one message for each split: its measures on test and training rows, its times, its certificate, and how far
    it came if the clock cut it. With `rows`, only so many training rows, drawn at random, are used, and four times as
    many test rows at most; with `keep`, the predictions of the test rows are left in the folder, for a blend.
    """
    warnings.simplefilter("ignore")
    get_ready(report, candidate, task)
    dense = wants_dense(candidate)
    end = None if seconds is None else time.monotonic() + seconds
    for done, split in enumerate(splits):
        data = fewer_rows(read_split(Path(folder), split, dense=dense), rows, seed)
        model = candidate.build(seed, max_seconds=seconds_for_fit(end, len(splits) - done))
        began = time.perf_counter()
        model.fit(data.X_train, data.y_train)
        fitted = time.perf_counter()
        prediction = predict_rows(model, data.X_test, n_classes)
        predicted = time.perf_counter()
        on_training_rows = predict_rows(model, data.X_train, n_classes)
        if keep:
            keep_predictions(Path(folder), candidate.name, split, prediction)
        report(
            {
                "split": split,
                "test": measure_all(task, data.y_test, prediction),
                "train": measure_all(task, data.y_train, on_training_rows),
                "fit_seconds": fitted - began,
                "predict_seconds": predicted - fitted,
                "certificate": certificate_of(model),
                "cut": cut_of(model),
            }
        )


def seconds_for_fit(end: float | None, n_splits: int) -> float | None:
    """Return how long a fit may take of the time until `end`, by `time.monotonic`; never zero, which no model takes.

    Examples
    --------
    >>> from learnable.evaluation.comparison.scoring import seconds_for_fit
    >>> seconds_for_fit(None, 5) is None, seconds_for_fit(0.0, 5) > 0
    (True, True)
    """
    return None if end is None else max(_SHORTEST, _SHARE_OF_FIT * (end - time.monotonic()) / n_splits)


def fewer_rows(data: EncodedSplit, rows: int | None, seed: int) -> EncodedSplit:
    """Return at most `rows` training rows and four times as many test rows, drawn at random; all if it is None."""
    if rows is None:
        return data
    rng = np.random.default_rng(seed)
    train, test = (
        np.sort(rng.permutation(n)[:most]) for n, most in ((len(data.y_train), rows), (len(data.y_test), 4 * rows))
    )
    return EncodedSplit(data.X_train[train], data.y_train[train], data.X_test[test], data.y_test[test])


def certificate_of(model: Any) -> dict[str, Any] | None:
    """Return a fitted model's certificate as JSON types; None for a model that has none, such as scikit-learn's."""
    certificate = getattr(model, "certificate_", None)
    if not isinstance(certificate, Certificate):
        return None
    most = getattr(model, "max_iter", None)
    return plain(certificate.to_dict()) | ({"max_iter": most} if isinstance(most, int) else {})


def weakest(certificates: list[dict[str, Any] | None]) -> dict[str, Any] | None:
    """Return the certificate that says the least: one that does not hold, or the one nearest to its tolerance."""
    found = [certificate for certificate in certificates if certificate is not None]
    if not found:
        return None

    def weakness(certificate: dict[str, Any]) -> tuple[bool, float]:
        value = certificate["value"]
        tolerance = certificate["tolerance"]
        ratio = value / tolerance if value is not None and tolerance else value
        if ratio is None:
            ratio = float("inf")
        return not certificate["holds"], ratio

    return max(found, key=weakness)
