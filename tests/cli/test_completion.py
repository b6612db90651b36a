"""What Tab offers, in the words of each shell."""

import gzip
import os
import shutil
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet
import pytest
import typer

from learnable.cli.app import app, run
from learnable.cli.completion import column_names
from learnable.core.registry import REGISTRY


@pytest.fixture
def table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "houses.csv").write_text("price;square metres;rooms\n1;2;3\n")
    return tmp_path / "houses.csv"


@pytest.fixture
def complete(table, monkeypatch, capfd):
    """Press Tab after a line; return what a shell is told."""

    def press(line, shell="fish"):
        words = line.split(" ")
        monkeypatch.setenv("_LEARNABLE_COMPLETE", f"complete_{shell}")
        monkeypatch.setenv("COMP_WORDS" if shell == "bash" else "_TYPER_COMPLETE_ARGS", line)
        monkeypatch.setenv("COMP_CWORD", str(len(words) - 1))
        monkeypatch.setenv("_TYPER_COMPLETE_FISH_ACTION", "get-args")
        monkeypatch.setenv("_TYPER_COMPLETE_WORD_TO_COMPLETE", words[-1])
        assert run([]) == 0
        return capfd.readouterr().out

    return press


def test_commands_and_options_are_offered(complete):
    assert complete("learnable comp", "bash").split() == ["compare"]
    assert "--target" in complete("learnable fit --tar", "bash")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish", "pwsh"])
def test_names_of_models_in_every_shell(complete, shell):
    told = complete("learnable fit houses.csv --model Rid", shell)
    for name in ("Ridge", "RidgeCV", "RidgeClassifier", "RidgeClassifierCV"):
        assert name in told
    assert "Lasso" not in told


def test_all_predictors_are_offered_and_nothing_else(complete):
    told = [line.split("\t")[0] for line in complete("learnable compare houses.csv --model ").splitlines() if line]
    predictors = {name for name, entry in REGISTRY.items() if entry.traits is not None}
    assert {name for name in told if name in REGISTRY} == predictors


@pytest.mark.parametrize("option", ["--target", "--groups", "--drop", "--keep", "--time"])
def test_columns_of_the_table_are_offered(complete, option):
    command = "compare" if option == "--time" else "fit"
    assert complete(f"learnable {command} houses.csv {option} ").splitlines() == ["price", "square metres", "rooms"]


def test_spaces_are_escaped_for_bash(complete):
    assert complete("learnable fit houses.csv --target sq", "bash").split("\n")[0] == r"square\ metres"


def test_parameters_of_the_model_are_offered(complete):
    told = complete("learnable fit houses.csv -m Lasso --set al")
    assert told.split() == ["alpha="]
    assert complete("learnable fit houses.csv -m Nobody --set al").strip() == ""


def test_files_are_left_to_the_shell_and_demos_are_offered(complete):
    assert complete("learnable fit ho", "bash").strip() == ""
    assert complete("learnable fit demo", "bash").split() == ["demo:houses", "demo:tumours"]


def test_heads_of_files(tmp_path):
    with gzip.open(tmp_path / "a.csv.gz", "wt") as file:
        file.write('\ufeff"one, two",three\n')
    assert column_names(tmp_path / "a.csv.gz") == ["one, two", "three"]
    pyarrow.parquet.write_table(pa.table({"x": [1], "y": [2]}), tmp_path / "b.parquet")
    assert column_names(tmp_path / "b.parquet") == ["x", "y"]
    (tmp_path / "c.xlsx").write_bytes(b"PK")
    assert column_names(tmp_path / "c.xlsx") == [] == column_names(None)


def test_damaged_files_offer_nothing_and_say_nothing(complete, table, capfd):
    (table.parent / "bad.parquet").write_bytes(b"no parquet")
    assert complete("learnable fit bad.parquet --target ").strip() == ""
    assert capfd.readouterr().err == ""


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash here")
def test_a_real_bash_with_the_script_that_is_installed(table):
    program = table.parent / "learnable"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m learnable.cli "$@"\n')
    program.chmod(0o755)
    script = """
source <(learnable --show-completion bash)
COMP_WORDS=(learnable fit houses.csv --target ro)
COMP_CWORD=4
_learnable_completion learnable
printf '%s\\n' "${COMPREPLY[@]}"
complete -p learnable
"""
    environment = os.environ | {"PATH": f"{table.parent}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False, env=environment)
    assert done.stdout.splitlines()[0] == "rooms", done.stderr
    assert "-o default" in done.stdout.splitlines()[-1]  # files, where nothing else is offered


def test_typer_can_install_it():
    names = {option for parameter in typer.main.get_command(app).params for option in parameter.opts}
    assert {"--install-completion", "--show-completion"} <= names
