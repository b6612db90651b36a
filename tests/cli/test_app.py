"""What becomes of errors, and that help is complete and quick to load."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from learnable.cli import compare, fit, models, options, predict, verify, warmup
from learnable.cli.app import app

ROOT = Path(__file__).parents[2]
COMMANDS = {"compare": compare, "fit": fit, "predict": predict, "verify": verify, "models": models, "warmup": warmup}


@pytest.mark.parametrize("name", COMMANDS)
def test_help_has_examples_and_documents_every_option(learnable, name):
    code, out, err = learnable(name, "--help")
    assert code == 0 and err == "" and "Example" in out
    for example in COMMANDS[name].EXAMPLES:
        assert example in out
    command = typer.main.get_command(app).commands[name]
    for parameter in command.params:
        assert parameter.help, f"{name} {parameter.name}"


def test_the_tool_itself_has_help_and_a_version(learnable):
    code, out, _ = learnable("--help")
    assert code == 0 and all(name in out for name in COMMANDS)
    code, out, _ = learnable("--version")
    assert code == 0 and out.strip()[0].isdigit()


@pytest.mark.parametrize("arguments", [[], ["--help"], ["-h"]])
@pytest.mark.parametrize("module", ["learnable", "learnable.cli"])
def test_help_is_on_standard_output_however_it_is_asked_for(module, arguments):
    done = subprocess.run([sys.executable, "-m", module, *arguments], capture_output=True, text=True)
    assert done.returncode == 0 and done.stderr == ""
    assert done.stdout.startswith("Usage: learnable") and len(done.stdout.splitlines()) > 20


def commands_of_pages():
    """Return every command of the tool that the documentation shows, with its page."""
    return [
        (path.relative_to(ROOT).as_posix(), line)
        for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
        for line in re.findall(r"^\$ (learnable .*?)\s*$", path.read_text(encoding="utf-8"), re.MULTILINE)
    ]


def test_every_command_that_a_page_shows_is_one_of_the_tool():
    shown = commands_of_pages()
    assert len(shown) > 15
    tool = typer.main.get_command(app)
    for page, line in shown:
        _, name, *words = shlex.split(line, comments=True)
        assert name in tool.commands, f"{page}: {line}"
        tool.commands[name].make_context(name, words)  # raises what the tool would answer


def test_help_loads_nothing_heavy():
    heavy = ("numpy", "scipy", "sklearn", "numba", "pandas", "pyarrow", "rich.console", "jinja2", "matplotlib")
    code = (
        "import sys; from learnable.cli.app import run; run(['--help']); run(['compare', '--help']);"
        f"print([m for m in {heavy!r} if m in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nonsense"], "nonsense"),
        (["compare", "--nonsense"], "--nonsense"),
        (["compare", "--folds", "1"], "folds"),
        (["compare", "numbers.csv"], "--target; numbers.csv has 'x', 'kind', 'y'"),
        (["fit", "numbers.csv", "--target", "y"], "--model"),
        (["fit", "numbers.csv", "--model", "Ridge"], "--target"),
        (["fit", "numbers.csv", "-t", "y", "-m", "Ridge", "--set", "alpha"], "key=value"),
        (["fit", "numbers.csv", "-t", "y", "-m", "Ridge", "--intervals", "wide"], "cv+, cv, split"),
        (["predict"], "MODEL"),
        (["predict", "m.safetensors", "numbers.csv", "--level", "2"], "between 0 and 1"),
        (["predict", "m.safetensors", "numbers.csv", "-o", "p.xlsx"], ".csv or .parquet"),
    ],
)
def test_wrong_usage_is_one_line_and_exit_code_2(learnable, arguments, message):
    code, out, err = learnable(*arguments)
    assert code == 2 and out == "" and message in err
    assert err.startswith("learnable: ") and err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["fit", "nowhere.csv", "-t", "y", "-m", "Ridge"], "nowhere.csv"),
        (["fit", "numbers.csv", "-t", "Y", "-m", "Ridge"], "did you mean 'y'"),
        (["fit", "numbers.csv", "-t", "y", "-m", "Rigde"], "did you mean Ridge"),
        (["fit", "numbers.csv", "-t", "y", "-m", "LogisticRegression"], "not made for"),
        (["fit", "numbers.csv", "-t", "y", "-m", "Ridge", "-s", "alhpa=1"], "did you mean alpha"),
        (["fit", "numbers.csv", "-t", "y", "-m", "Ridge", "-s", "alpha=-1"], "alpha must be"),
        (["fit", "demo:nothing", "-t", "y", "-m", "Ridge"], "demo:houses"),
        (["predict", "nowhere.safetensors", "numbers.csv"], "nowhere.safetensors"),
        (["predict", "numbers.csv", "numbers.csv"], "not a learnable model file"),
        (["verify", "nowhere.safetensors", "numbers.csv"], "nowhere.safetensors"),
    ],
)
def test_a_failure_is_one_line_and_exit_code_1(learnable, arguments, message):
    code, out, err = learnable(*arguments)
    assert code == 1 and out == "" and message in err
    assert err.startswith("learnable: ") and err.count("\n") == 1


def test_an_unexpected_error_is_one_line_too_and_debug_shows_where(learnable, monkeypatch):
    def explode():
        raise ZeroDivisionError("boom\nbang")

    monkeypatch.setattr(models, "listed_models", explode)
    code, out, err = learnable("models")
    assert code == 1 and out == "" and err.count("\n") == 1 and "ZeroDivisionError: boom bang" in err
    code, _, err = learnable("models", "--debug")
    assert code == 1 and "Traceback" in err and err.splitlines()[-1].startswith("learnable: ")


def test_the_time_of_a_command_runs_from_its_call(learnable, monkeypatch):
    """In a process that has been running for long, a limit is as long as anywhere."""
    monkeypatch.setattr(options, "started", options.started - 1e6)
    code, out, err = learnable(
        "compare", "numbers.csv", "-t", "y", "-m", "Ridge", "--seconds", 300, "--no-report", "--no-tune"
    )
    assert code == 0 and "Ridge" in out and err == ""


def test_without_its_extra_the_tool_says_how_to_install_it(tmp_path):
    (tmp_path / "typer.py").write_text("raise ModuleNotFoundError(\"No module named 'typer'\", name='typer')")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])}
    command = [sys.executable, "-m", "learnable", "models"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == "learnable: the command-line tool needs its extra: pip install 'learnable[cli]'\n"


@pytest.mark.parametrize(("words", "expected"), [("learnable comp", "compare"), ("learnable compare --qui", "--quiet")])
def test_the_shell_completes_commands_and_options(words, expected):
    asked = {"_LEARNABLE_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    done = subprocess.run(
        [sys.executable, "-m", "learnable"], capture_output=True, text=True, env=os.environ | asked, check=True
    )
    assert done.stdout.split() == [expected]
