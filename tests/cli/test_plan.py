"""`learnable plan`: the numbers of `plan_rows`, in words and as JSON."""

import json

from typer.testing import CliRunner

from learnable.cli.app import app
from learnable.evaluation import plan_rows


def run(*arguments):
    return CliRunner().invoke(app, ["plan", *arguments])


def test_words_and_json_have_the_numbers_of_plan_rows():
    expected = plan_rows(0.05, 0.01, models=10)
    shown = run("--error", ".05", "--margin", ".01", "--models", "10")
    assert shown.exit_code == 0
    for number in (expected.exact, expected.leaderboard, expected.no_errors, expected.any_error, expected.compare):
        assert f"{number:,}" in shown.output
    told = run("--error", ".05", "--margin", ".01", "--models", "10", "--json")
    assert json.loads(told.output) == expected.to_dict()


def test_one_model_has_no_line_for_several():
    assert "judged by the same rows" not in run("--error", "0", "--margin", ".01").output
