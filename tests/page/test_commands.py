"""Settings from a browser are checked, and the commands shown are those of the tool."""

import shlex

import pytest
import typer

from learnable.cli.app import app
from learnable.page.commands import FORMS, arguments, check_settings, command_line, python_code
from learnable.page.store import RefusedError, Table


@pytest.mark.parametrize(
    "kind, settings",
    [
        ("nothing", {}),
        (None, {}),
        ("compare", {}),
        ("compare", []),
        ("compare", {"target": 3}),
        ("compare", {"target": "y", "shell": "rm"}),
        ("compare", {"target": "y", "models": ["os:system"]}),
        ("compare", {"target": "y", "models": ["sklearn.linear_model:Ridge"]}),
        ("compare", {"target": "y", "models": "Ridge"}),
        ("compare", {"target": "y", "seconds": 1e9}),
        ("compare", {"target": "y", "seconds": True}),
        ("compare", {"target": "y", "folds": 2.5}),
        ("compare", {"target": "y", "task": "magic"}),
        ("compare", {"target": "y\0"}),
        ("compare", {"target": "y" * 5000}),
        ("cluster", {"clusters": 10**6}),
        ("topics", {}),
    ],
)
def test_settings_that_make_no_sense_are_refused(kind, settings):
    with pytest.raises(RefusedError):
        check_settings(kind, settings)


@pytest.mark.parametrize("kind", FORMS)
def test_every_option_of_a_form_is_one_of_its_command(kind):
    command = typer.main.get_command(app).commands[FORMS[kind].command]
    known = {flag for option in command.params for flag in [*option.opts, *option.secondary_opts]}
    assert {field.flag for field in FORMS[kind].fields} <= known


@pytest.mark.parametrize("kind", FORMS)
def test_defaults_of_a_form_are_those_of_its_command(kind):
    """What is left out of the command line must mean the same there; only the time of a comparison is always given."""
    command = typer.main.get_command(app).commands[FORMS[kind].command]
    defaults = {flag: option.default for option in command.params for flag in option.opts}
    for field in FORMS[kind].fields:
        if field.default is not None and field.name != "seconds":
            assert defaults[field.flag] == field.default, field.name


def test_names_that_look_like_options_stay_names():
    words = arguments("compare", "-x.csv", {"target": "--help", "drop": ["-a b"]})
    assert words[:2] == ["compare", "./-x.csv"] and "--target=--help" in words and "--drop=-a b" in words
    assert "--help" not in words
    line = command_line("compare", "a b.csv", {"target": "it's; rm -rf /"})
    assert shlex.split(line)[:5] == ["learnable", "compare", "a b.csv", "--target", "it's; rm -rf /"]


def test_the_python_runs_the_same_comparison():
    import ast

    table = Table("0" * 12, "t.csv", "/private/t.csv", "t.csv", 1, "upload")
    code = python_code("compare", table, {"target": 'y"', "models": ["Ridge"], "seed": 3})
    assert "/private" not in code
    call = ast.parse(code).body[-1].value
    assert [ast.literal_eval(a) for a in call.args] == ["t.csv", 'y"']
    named = {k.arg: ast.literal_eval(k.value) for k in call.keywords}
    assert named == {"seconds": 60.0, "models": ["Ridge"], "seed": 3, "model_file": "model.safetensors"}
