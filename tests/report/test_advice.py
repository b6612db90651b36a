from tests.report import records

from learnable.report import advise
from learnable.report.advice import read_curve


def said(record, part):
    return any(part in sentence for sentence in advise(record))


def test_advice_follows_what_was_found():
    record = records.houses()
    assert "assessed_value" in advise(record)[0]
    assert said(record, "ran out of time") and said(record, "failed") and said(record, "tied")
    assert said(record, "learning curve is flat") and said(record, "learnable predict")
    assert not said(record, "max_iter") and not said(record, "regularise") and not said(record, "better ones before")


def test_an_unfinished_fit_and_overfitting_are_told():
    record = records.houses()
    record["leaderboard"][0]["certificate"]["holds"] = False
    record["leaderboard"][0]["train_mean"] = 0.99
    assert said(record, "max_iter") and said(record, "0.99 against 0.8123")


def test_a_useless_table_is_told():
    record = records.houses()
    record["winner"]["holdout"]["low"] = -1.0
    assert said(record, "better ones before better models")


def test_an_interruption_is_told():
    assert said(records.nothing_worked(), "interrupted")


def test_there_is_always_something_to_do():
    record = records.letters()
    assert advise(record) and all(sentence.endswith((".", "csv")) for sentence in advise(record))


def test_reading_a_learning_curve():
    flat = {"sizes": [1, 2, 3], "test": [0.5, 0.8, 0.801], "low": [0, 0, 0.79], "high": [1, 1, 0.81]}
    assert "flat" in read_curve(flat)
    assert "more rows are likely to help" in read_curve(flat | {"test": [0.5, 0.6, 0.7]})
    assert "flat" in read_curve({"test": [0.5, 0.8, 0.801]})
    assert read_curve({"test": [0.5, None, 0.7]}) is None
    assert read_curve({"test": [0.5]}) is None
    assert read_curve(None) is None
