import re

from tests.report import records

from learnable.report.numbers import Numbers
from learnable.report.sections import leaderboard, score_decimals
from learnable.report.words import standing


def board(record):
    return leaderboard(Numbers(record), standing(record), "R²")


def test_marks_and_failures():
    found = board(records.houses())
    assert [line.marks for line in found.lines] == [["best"], ["equal"], ["equal"], [], ["baseline"]]
    cut = records.houses()
    cut["leaderboard"][1] |= {"rank": 0, "cut": {"done": 3, "of": 100, "unit": "rounds"}}
    cut["leaderboard"][0]["verdict"] = "undecided"
    assert [line.marks for line in board(cut).lines][:2] == [["best", "cut"], ["chosen", "undecided"]]
    assert [(f.status, f.reason[:9]) for f in found.failures] == [("out of time", "stopped a"), ("failed", "DataError")]
    assert found.also == ["rmse", "mae"]


def test_a_distant_baseline_does_not_squeeze_the_intervals():
    found = board(records.houses())
    assert "◂" in found.lines[-1].figure
    (left, right) = (float(x) for x in re.findall(r":([\d.]+)%", found.band))
    assert right - left > 10


def test_the_band_is_the_winners_interval():
    found = board(records.houses())
    left, right = (float(x) for x in re.findall(r":([\d.]+)%", found.band))
    x1, x2 = re.search(r'x1="([\d.]+)%" x2="([\d.]+)%"', found.lines[0].figure).groups()
    assert (float(x1), float(x2)) == (left, right)


def test_parameters_are_shown_unless_the_name_tells_them():
    record = records.houses()
    record["leaderboard"][1]["parameters"] = {"alpha": 1.0, "solver": "svd"}
    assert board(record).lines[1].parameters == "solver=svd"


def test_scores_get_the_decimals_that_their_intervals_deserve():
    assert score_decimals(records.houses()) == 3
    assert score_decimals({"leaderboard": [], "winner": None}) == 3


def test_no_lines():
    found = board(records.nothing_worked())
    assert found.lines == [] and len(found.failures) == 2
    assert found.failures[1].reason == "no reason was recorded"


def test_scores_have_the_decimals_that_tell_the_best_apart_whatever_the_others_are():
    best = [{"mean": 0.0199, "low": 0.0102, "high": 0.0296}, {"mean": 0.0217, "low": 0.0118, "high": 0.0316}]
    others = [{"mean": 0.1, "low": 0.0, "high": 0.3}] * 10
    found = score_decimals({"leaderboard": [*best, *others], "winner": {"holdout": best[0]}})
    assert found == 4 and f"{best[0]['mean']:.{found}f}" != f"{best[1]['mean']:.{found}f}"


def test_a_model_that_was_tried_on_fewer_rows_is_not_called_not_started():
    record = records.houses()
    late = next(row for row in record["leaderboard"] if row["status"] == "timeout")
    late |= {"status": "skipped", "reason": "left behind: R² 0.5 on 4,000 rows, where the best had 0.8"}
    found = board(record).failures[0]
    assert (found.status, found.reason) == ("left behind", "R² 0.5 on 4,000 rows, where the best had 0.8")
