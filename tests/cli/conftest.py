"""The tool as a user runs it: in a folder of its own, as a process of its own."""

import subprocess
import sys
import tempfile

import pyarrow.csv
import pytest
from tests.evaluation.comparison.tables import classes, numbers

from learnable.cli.app import run

COMMAND = [sys.executable, "-m", "learnable.cli"]


@pytest.fixture
def leftovers(tmp_path_factory, monkeypatch):
    """A place for temporary files that no other process uses; returns what the tool has left there."""
    place = tmp_path_factory.mktemp("temporary")
    monkeypatch.setenv("TMPDIR", str(place))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return lambda: [path.name for path in place.glob("learnable-*")]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working folder with two small tables."""
    monkeypatch.chdir(tmp_path)
    pyarrow.csv.write_csv(numbers(), "numbers.csv")
    pyarrow.csv.write_csv(classes(k=2), "classes.csv")
    return tmp_path


@pytest.fixture
def learnable(folder, capfd):
    """Run the tool within this process; returns exit code, standard output and error output."""

    def call(*arguments):
        code = run([str(argument) for argument in arguments])
        out, err = capfd.readouterr()
        return code, out, err

    return call


@pytest.fixture
def start(folder):
    """Start the tool as a process of its own."""

    def begin(*arguments, **options):
        return subprocess.Popen(
            [*COMMAND, *map(str, arguments)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=folder,
            **options,
        )

    return begin
