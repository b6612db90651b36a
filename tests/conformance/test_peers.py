"""scikit-learn's and hmmlearn's own tests pass on our classes, but for those listed with their reasons."""

import pytest
from tests.conformance.lists import KINDS, expected, kept_for_nothing, reason_of
from tests.conformance.peers import FILES, failures_of_ours, our_names, prepare, root_of, run

#: `make test` runs one in so many of their tests, and one in six of scikit-learn's files, which take long to collect.
SAMPLE = 25
SOME_FILES = [file for file in FILES if root_of(file) != "sklearn"]
SOME_FILES += [file for file in FILES if root_of(file) == "sklearn"][::6]


def judge(folder, files, every=1):
    """Run files and return {test: what is wrong with its outcome}."""
    prepare(folder / "ours", files, our_names())
    outcomes = run(folder / "ours", files, every=every)
    assert any(outcome.outcome == "passed" for outcome in outcomes) or every > 1
    surprises = [outcome for outcome in outcomes if reason_of(outcome) is None]
    wrong = {
        f"{outcome.file}::{outcome.name}": outcome.message for outcome in failures_of_ours(folder / "theirs", surprises)
    }
    for file in files:
        useless = kept_for_nothing(file, outcomes, whole=every == 1)
        wrong |= {f"{file}::{name}": f"{why}: take it off the list" for name, why in useless.items()}
    return wrong


@pytest.mark.long
@pytest.mark.parametrize("file", FILES)
def test_all_their_tests_pass_but_for_those_listed(file, tmp_path):
    assert judge(tmp_path, [file]) == {}


@pytest.mark.parametrize("package", ["sklearn", "hmmlearn"])
def test_a_sample_of_their_tests_passes(package, tmp_path):
    assert judge(tmp_path, [file for file in SOME_FILES if root_of(file) == package], SAMPLE) == {}


def test_every_expected_failure_has_a_reason_of_a_known_kind():
    for file, reasons in expected().items():
        for name, reason in reasons.items():
            kind, _, words = reason.partition(":")
            assert kind in KINDS and words.strip(), f"{file}::{name}: {reason!r}"
