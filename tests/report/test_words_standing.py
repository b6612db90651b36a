import pytest
from tests.report import records

from learnable.report.words import standing


def test_the_standing_of_a_comparison():
    found = standing(records.houses())
    assert (found.winner, found.baseline, found.tied) == (0, 4, [1, 2])
    assert found.ranked == [0, 1, 2, 3, 4]
    assert found.unfinished == [5, 6]
    assert found.beats_baseline is True


def test_ranks_decide_the_order_and_scores_where_there_are_none():
    record = records.houses()
    for row, rank in zip(record["leaderboard"], [3, 1, 2, None, None, None, None], strict=True):
        row["rank"] = rank
    assert standing(record).ranked == [1, 2, 0, 3, 4]
    record["protocol"]["metric"]["greater_is_better"] = False
    for row in record["leaderboard"]:
        row["rank"] = None
    assert standing(record).ranked == [4, 3, 2, 1, 0]


@pytest.mark.parametrize("greater, ends, beats", [(True, (-0.1, 0.2), False), (True, (0.1, 0.2), True),
                                                  (False, (0.1, 0.2), False), (False, (-0.2, -0.1), True)])  # fmt: skip
def test_a_baseline_is_beaten_by_the_whole_interval(greater, ends, beats):
    record = records.houses()
    record["protocol"]["metric"]["greater_is_better"] = greater
    record["winner"]["against"] = None
    record["leaderboard"][0] |= {"low": ends[0], "high": ends[1]}
    assert standing(record).beats_baseline is beats


@pytest.mark.parametrize("word, beats", [("better", True), ("undecided", False), ("worse", False)])
def test_on_the_hold_out_the_paired_difference_decides(word, beats):
    record = records.houses()
    record["winner"]["against"]["verdict"] = word
    assert standing(record).beats_baseline is beats


@pytest.mark.parametrize("word, beats", [("worse", True), ("undecided", False), ("equal", False)])
def test_without_a_hold_out_the_folds_decide(word, beats):
    record = records.houses()
    record["winner"] |= {"against": None, "holdout": None}
    record["leaderboard"][0]["verdict"] = "best"
    record["leaderboard"][4]["verdict"] = word
    assert standing(record).beats_baseline is beats


def test_without_winner_or_baseline_nothing_is_beaten():
    assert standing(records.houses() | {"winner": None}).beats_baseline is None
    assert standing(records.nothing_worked()).ranked == []
    assert standing(records.wide(5)).beats_baseline is None
