"""The inside of a job: errors in a line, memory within limits."""

import multiprocessing

import numpy as np
import pytest

from learnable.evaluation.comparison.race import free_memory, limit_memory, one_line


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (ValueError("two\n lines"), "two lines"),
        (KeyError("name"), "KeyError: 'name'"),
        (RuntimeError(), "RuntimeError"),
        (ZeroDivisionError("division by zero"), "ZeroDivisionError: division by zero"),
        (ValueError("bell \x07 and \x1b[31mred"), "bell ? and ?[31mred"),
    ],
)
def test_an_error_is_one_printable_line(error, line):
    assert one_line(error) == line


def test_a_long_error_is_cut():
    assert len(one_line(ValueError("x" * 10_000))) == 300


def _allocate(pipe):
    limit_memory(2**27)
    np.ones(2**22)  # 32 MiB fit
    try:
        np.ones(2**26)  # 512 MiB do not
        pipe.send("allowed")
    except MemoryError:
        pipe.send("refused")


def test_memory_beyond_the_limit_is_refused():
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("fork").Process(target=_allocate, args=(theirs,))
    process.start()
    process.join(60)
    assert ours.recv() == "refused"


def test_free_memory_is_a_plausible_number():
    room = free_memory()
    assert room is None or 2**20 < room < 2**50
