"""Columns read side by side by several threads give, to the bit, the blocks of one reader."""

import threading

import numpy as np
import pytest
from tests.data.on_disk import FORMATS, numbers, streamed, write
from tests.data.test_stream import add, assert_same_bits, in_memory, opened, products

from learnable.core.errors import DataError
from learnable.data import Files
from learnable.data.blocks import map_reduce
from learnable.data.stream import LaneAhead


@pytest.fixture(scope="module")
def frame():
    return numbers(3000, d=4).assign(w=np.random.default_rng(1).uniform(0.5, 2, 3000))


def lanes_of(blocks, number):
    """Let a source read its columns in several lanes, each by its own thread."""
    blocks._lanes = lambda threads: [
        LaneAhead(blocks._cuts(columns)) for columns in blocks.files.lanes(blocks.columns, number)
    ]
    return blocks


@pytest.mark.sampled(4)
@pytest.mark.threaded
@pytest.mark.parametrize("number", [2, 3, 50])
@pytest.mark.parametrize("rows, rows_at_once", [(256, 170), (64, 64), (5000, 999)])
def test_lanes_give_the_blocks_of_one_lane(frame, number, rows, rows_at_once, tmp_path):
    source = streamed(frame, tmp_path / "t", 5, rows_at_once=rows_at_once)
    expected = map_reduce(in_memory(frame, weight="w", rows=rows), products, add, n_jobs=1)
    blocks = lanes_of(opened(source, weight="w", rows=rows), number)
    for n_jobs in (1, 2):
        assert_same_bits(map_reduce(blocks, products, add, n_jobs=n_jobs), expected)
    assert not [t for t in threading.enumerate() if t.name.startswith("learnable")]


def test_only_parquet_has_lanes(tmp_path):
    for fmt in FORMATS:
        source = streamed(numbers(30, d=4), tmp_path / fmt, fmt=fmt)
        lanes = source.lanes(["x0", "x1", "x2", "x3", "y"], 2)
        assert lanes == ([["x0", "x2", "y"], ["x1", "x3"]] if fmt == "parquet" else [["x0", "x1", "x2", "x3", "y"]])


def test_files_whose_types_differ_within_a_block(frame, tmp_path):
    whole = frame.round(0)
    write(whole[:1000], tmp_path / "a.parquet")
    write(whole[1000:].astype({"x1": "int32", "x2": "float32", "y": "int64"}), tmp_path / "b.parquet")
    blocks = lanes_of(opened(Files(tmp_path, in_memory_bytes=0), weight="w", rows=256), 3)
    expected = map_reduce(in_memory(whole, weight="w", rows=256), products, add, n_jobs=1)
    assert_same_bits(map_reduce(blocks, products, add, n_jobs=2), expected)


def test_a_file_that_another_lane_finds_changed(tmp_path):
    blocks = opened(streamed(numbers(300), tmp_path), rows=16)
    other = opened(streamed(numbers(200), tmp_path / "other"), rows=16)
    blocks._lanes = lambda threads: [LaneAhead(blocks._cuts(["x0", "y"])), LaneAhead(other._cuts(["x1", "x2"]))]
    with pytest.raises(DataError, match=r"Model: the files changed while they were read\. Fit again"):
        map_reduce(blocks, products, add, n_jobs=2)
    assert not [t for t in threading.enumerate() if t.name.startswith("learnable")]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_error_in_a_statistic_ends_the_lanes(error, tmp_path):
    blocks = lanes_of(opened(streamed(numbers(3000), tmp_path), rows=8), 3)

    def statistic(block):
        raise error("at once")

    with pytest.raises(error, match="at once"):
        map_reduce(blocks, statistic, lambda a, b: a + b, n_jobs=2)
    assert not [t for t in threading.enumerate() if t.name.startswith("learnable")]
