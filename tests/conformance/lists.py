"""The tests of other packages that our classes are not meant to pass: `expected_*.py`, one list for each file."""

from __future__ import annotations

import importlib
import re
from functools import cache
from pathlib import Path

from tests.conformance.peers import FILES, Outcome

#: How a reason begins.
KINDS = {
    "private": "asks for internals that are not part of the public interface",
    "wording": "compares the words of a message",
    "departure": "asks for what we do otherwise, as our documentation says",
    "numeric": "compares numbers more closely than the problem defines them",
}


@cache
def expected() -> dict[str, dict[str, str]]:
    """Return {file of FILES: {test: reason}}; each list names its file, in backticks, on its first line."""
    found: dict[str, dict[str, str]] = {}
    for path in sorted(Path(__file__).parent.glob("expected_*.py")):
        module = importlib.import_module(f"tests.conformance.{path.stem}")
        found.setdefault(file_of(path.stem, module.__doc__ or ""), {}).update(module.EXPECTED)
    return found


def file_of(stem: str, docstring: str) -> str:
    """Return the item of FILES that a list is about."""
    named = re.search(r"`(?:sklearn/|hmmlearn[:/])?([\w/]*test_\w+\.py)`", docstring)
    inner = named.group(1) if named else ""
    package = "hmmlearn:" if "hmmlearn" in stem else ""
    candidates = [file for file in FILES if file.startswith(package) and file.rpartition(":")[2] == inner]
    candidates = [file for file in candidates if (":" in file) == bool(package)]
    assert len(candidates) == 1, f"{stem}: the first line must name one test file in backticks"
    return candidates[0]


def reason_of(outcome: Outcome) -> str | None:
    """Return why a test is expected to fail; None if it is expected to pass."""
    reasons = expected().get(outcome.file, {})
    return next((reasons[name] for name in outcome.names if name in reasons), None)


def kept_for_nothing(file: str, outcomes: list[Outcome], *, whole: bool) -> dict[str, str]:
    """Return the entries of a list whose tests pass now, or do not exist; of a sample, only what it can show."""
    useless = {}
    for name in expected().get(file, {}):
        meant = [outcome for outcome in outcomes if outcome.file == file and name in outcome.names]
        if whole and not meant:
            useless[name] = "there is no such test"
        elif meant and (whole or "[" in name) and all(outcome.outcome == "passed" for outcome in meant):
            useless[name] = "it passes now"
    return useless
