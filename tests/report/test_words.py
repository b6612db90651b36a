import re

import pytest
from tests.report import records

from learnable.report import words
from learnable.report.numbers import Numbers
from learnable.report.words import standing


def plain(markup):
    return re.sub(r"<[^>]*>", "", markup)


def verdict(record):
    return " ".join(plain(sentence) for sentence in words.verdict(Numbers(record), standing(record), 3))


def test_the_verdict_says_who_won_by_how_much_and_against_what():
    text = verdict(records.houses())
    assert "RidgeCV has the best cross-validated score of the models tried to predict price" in text
    assert "on 4,128 rows it had never seen it reaches R² 0.809" in text
    assert "interval 0.795 to 0.822" in text
    assert "On the same rows the baseline (always the mean) reaches −0.001; row by row" in text
    assert "the model is better by 0.810" in text
    assert "(interval 0.796 to 0.823)." in text
    assert "Ridge (alpha=1) and LinearRegression are equal to it in cross-validation" in text
    assert "within the margin of 0.01." in text


def test_a_winner_no_better_than_the_baseline_is_said_to_be_so():
    record = records.houses()
    record["winner"]["against"] |= {"difference": 0.01, "low": -0.02, "high": 0.04, "verdict": "undecided"}
    assert "the gain of the model is 0.010" in verdict(record) and "which of them is better cannot be told" in verdict(
        record
    )
    record["winner"]["against"] |= {"difference": -0.05, "low": -0.08, "high": -0.02, "verdict": "worse"}
    assert verdict(record).count("the difference is −0.050 (interval −0.080 to −0.020): the model is worse.") == 1


def test_the_headline_shows_the_order_that_rounding_would_hide():
    record = records.houses()
    record["winner"]["holdout"]["score"] = 0.80871
    record["winner"]["against"] |= {"score": 0.80868, "difference": 0.00003}
    assert "0.80871" in verdict(record) and "0.80868" in verdict(record)


def test_copies_give_two_figures():
    record = records.houses()
    assert "copies" not in verdict(record)
    record["data"]["copies"] = {"rows": 1177, "exact": 1177, "near": 0, "kept": "together"}
    record["winner"]["as_given"] = {"score": 0.9, "low": 0.88, "high": 0.92}
    assert "1,177 rows are copies of others" in verdict(record)
    assert "with copies on both sides the score would read 0.900" in verdict(record)


def test_models_that_folds_cannot_tell_apart_are_called_undecided_and_not_equal():
    record = records.houses()
    record["leaderboard"][3] |= {"verdict": "undecided"}
    assert "Whether it is better than Lasso (alpha=500) cannot be told from these folds." in verdict(record)


def test_a_winner_that_is_not_the_first_line_is_not_called_the_best():
    record = records.houses()
    record["leaderboard"][1] |= {"rank": 0, "cut": {"done": 3, "of": 100, "unit": "rounds"}}
    text = verdict(record)
    assert "has the best" not in text and "Ridge (alpha=1) ranks above it but is not kept" in text
    record["leaderboard"][0]["verdict"] = "undecided"
    next(row for row in record["leaderboard"] if row["baseline"])["verdict"] = "undecided"
    told = r"Whether Ridge \(alpha=1\) is better than RidgeCV and the baseline \(.*\) cannot be told"
    assert re.search(told, verdict(record))
    assert "ridge" not in verdict(record)  # only baselines are written small inside a sentence


def test_the_headline_has_the_decimals_of_the_hold_out_where_folds_scatter_far_more():
    record = records.houses()
    for row in record["leaderboard"][:3]:
        row |= {"low": row["mean"] - 1.5, "high": row["mean"] + 1.5}
    record["winner"]["holdout"] |= {"score": 0.8364, "low": 0.796, "high": 0.8768}
    found = " ".join(plain(sentence) for sentence in words.verdict(Numbers(record), standing(record), 0))
    assert re.search(r"R² 0\.836 \(.*interval 0\.796 to 0\.877\)", found)


def test_a_baseline_that_leads_is_named_first():
    record = records.houses()
    record["leaderboard"][4] |= {"rank": 0, "mean": 0.99, "name": "baseline: the last value"}
    text = verdict(record)
    assert "No model tried predicts price better in cross-validation than the baseline (the last value)" in text
    assert "the best of them is RidgeCV" in text and "equal to the last value" in text


def test_a_winning_baseline_is_said_to_have_won():
    record = records.houses()
    record["winner"]["name"] = "Always the mean"
    assert "No model predicts price better than the baseline Always the mean" in verdict(record)
    assert "Nothing was learned" in verdict(record)


def test_a_baseline_that_says_so_itself_is_not_called_one_twice():
    record = records.houses()
    record["leaderboard"][4]["name"] = "baseline: the mean"
    record["winner"]["against"] = None
    assert "In cross-validation the baseline (the mean) reaches" in verdict(record)


def test_a_measure_that_should_be_low_is_said_to_be_so():
    record = records.churn()
    record["protocol"]["metric"] = {"name": "log_loss", "label": "log loss", "greater_is_better": False}
    assert "; lower is better" in verdict(record)


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"leaderboard": []}, "No model was tried"),
        ({"leaderboard": records.nothing_worked()["leaderboard"]}, "None of the two models finished"),
        ({}, "No winner was recorded"),
    ],
)
def test_no_winner(changes, message):
    assert message in verdict(records.houses() | {"winner": None} | changes)


def test_without_a_hold_out_the_verdict_falls_back_on_cross_validation():
    record = records.houses()
    record["winner"]["holdout"] = None
    assert "in cross-validation it reaches R² 0.812" in verdict(record)


def test_that_every_other_model_is_worse_is_said_only_where_it_is_known():
    record = records.churn()
    assert "Every other model" not in verdict(record)
    record["leaderboard"][1]["verdict"] = "worse"
    assert "Every other model is worse in cross-validation, beyond noise." in verdict(record)


CLAIM = {"kind": "gap", "value": 3.1e-7, "tolerance": 1e-6, "holds": True, "bound": 3.1e-7, "sentence": "s"}


@pytest.mark.parametrize(
    "record, sentence",
    [
        (CLAIM, "The objective is at most 3.1 × 10⁻⁷ (relative) above the best value possible. The tolerance is 10⁻⁶."),
        (CLAIM | {"holds": False, "value": 1e-3, "bound": None},
         "The objective is at most 0.001 (relative) above the best value possible. That misses the tolerance of 10⁻⁶."),
        (CLAIM | {"kind": "stationarity", "bound": 0.5},
         "The gradient at the solution vanishes up to 3.1 × 10⁻⁷ (relative). The tolerance is 10⁻⁶. "
         "It follows that the objective is at most 0.5 (relative) above the best value possible."),
        (CLAIM | {"kind": "closed-form", "bound": 0.0},
         "The equations that define the solution hold to a relative residual of 3.1 × 10⁻⁷. The tolerance is 10⁻⁶."),
        (CLAIM | {"kind": "greedy", "value": 0.0, "bound": None, "holds": False, "sentence": "cut by its time"},
         "No split falls short of the best of its candidates by more than 0. The tolerance is 10⁻⁶. That is said of a "
         "part of the model that was asked for: it was cut by its time."),
        (CLAIM | {"kind": "none", "sentence": None}, "How well it was solved is not known."),
        (CLAIM | {"kind": "none", "sentence": "coverage of 90 %"}, "Coverage of 90 %."),
        (CLAIM | {"kind": "novel"}, "novel: s."),
        (CLAIM | {"value": None, "sentence": None}, "gap: no value is recorded."),
    ],
)  # fmt: skip
def test_a_certificate_in_words(record, sentence):
    assert plain(words.certificate_sentence(Numbers({"c": record}), "c")) == sentence


def test_every_kind_of_certificate_has_its_words():
    from learnable.core.estimator import KINDS

    for kind in KINDS:
        text = plain(words.certificate_sentence(Numbers({"c": CLAIM | {"kind": kind}}), "c"))
        assert text.endswith(".") and (kind == "none" or "3.1 × 10⁻⁷" in text)


@pytest.mark.parametrize("record", [None, {}, {"kind": None}, "text"])
def test_no_certificate_has_no_words(record):
    assert words.certificate_sentence(Numbers({"c": record}), "c") is None
    assert words.certificate_mark(record) == ("absent", "–")


def test_a_certificate_in_one_word():
    assert words.certificate_mark(CLAIM)[1] == "solved to 4e-7"
    assert words.certificate_mark(CLAIM | {"value": 1e-8})[1] == "solved to 1e-8"
    assert words.certificate_mark(CLAIM | {"holds": False})[1] == "stopped at 4e-7"
    assert words.certificate_mark(CLAIM | {"holds": False, "sentence": "cut by its share of time"})[1] == "cut"
    assert words.certificate_mark(CLAIM | {"kind": "ascent"})[1] == "local optimum to 4e-7"
    assert words.certificate_mark(CLAIM | {"kind": "greedy"})[1] == "splits checked"
    assert words.certificate_mark(CLAIM | {"kind": "none"})[1] == "none"


@pytest.mark.parametrize(
    "method, key",
    [
        ("exact binomial", "Clopper"),
        ("clopper-pearson", "Clopper"),
        ("empirical Bernstein", "Maurer"),
        ("corrected resampled t", "Nadeau"),
        ("t", "Student"),
        ("t of the linearised score", "linear"),
        ("root of the t-interval", "Student"),
        ("bootstrap", "replacement"),
        ("one row", "no interval"),
        ("tea leaves", "Its method: tea leaves."),
        (None, ""),
    ],
)
def test_a_method_of_intervals_in_words(method, key):
    assert key in words.interval_sentence(method)
    assert bool(words.interval_sentence(method)) == bool(key)


def test_coverage_in_words():
    text = plain(words.coverage_sentences(Numbers(records.houses())))
    assert "held 90.4" in text and "mean width of 214,300" in text and "twice as often" in text
    assert words.coverage_sentences(Numbers(records.churn())) is None
    empty = {"winner": {"intervals": {"method": None, "level": None, "holdout_coverage": None, "mean_width": None}}}
    assert plain(words.coverage_sentences(Numbers(empty))).startswith("Prediction intervals come with the model")


def test_lists_in_words():
    assert plain(words.listing(["a"])) == "a"
    assert plain(words.listing(["a", "b", "c"])) == "a, b and c"
    assert plain(words.listing(list("abcdef"))) == "a, b, c, d and two more"
    assert plain(words.listing(list("abcdefgh" * 4))) == "a, b, c, d and many more"


def test_names():
    assert words.name("") == "<bdi>(no name)</bdi>"
    assert words.name("ocean_proximity=INLAND") == "<bdi>ocean_<wbr>proximity=<wbr>INLAND</bdi>"
    assert words.name("over 2.221 to 3.299") == "<bdi>over 2.221 to 3.299</bdi>"  # a number is not broken
    assert words.name("sklearn.linear_model") == "<bdi>sklearn.<wbr>linear_<wbr>model</bdi>"
    assert words.name("x" * 200, 10) == f'<bdi title="{"x" * 200}">xxxxxxxxx…</bdi>'


def test_an_interval_without_width_is_left_out():
    numbers = Numbers(
        {"a": {"low": 0.5, "high": 0.5}, "b": {"low": 0.1, "high": None}, "c": {"low": 0.1, "high": 0.25}}
    )
    assert words.interval(numbers, ("a",), 2) is None
    assert words.interval(numbers, ("b",), 2) is None
    assert plain(words.interval(numbers, ("c",), 2)) == "0.10 to 0.25"
