"""Blocks from files: to the bit the blocks of the table in memory, whatever the files, the batches and the threads."""

import re
import threading
import time
from itertools import pairwise

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.data.on_disk import FORMATS, numbers, streamed, text_file, write

from learnable.core.errors import DataError, DataTypeError
from learnable.core.estimator import StopFlag
from learnable.data import Files, files
from learnable.data.blocks import Blocks, Part, map_reduce, scan
from learnable.data.sources import open_source
from learnable.data.stream import ArrowRows, codes_of, numbers_of


def opened(source, y="y", weight=None, target="numeric", rows=None):
    blocks = open_source("Model", source, y, weight, target).blocks
    blocks.rows = rows or blocks.rows
    return blocks


def in_memory(frame, y="y", weight=None, rows=None):
    w = None if weight is None else frame[weight].to_numpy(np.float64)
    kept = slice(None) if w is None else w > 0
    X = frame.drop(columns=[y, *([weight] if weight else [])]).to_numpy(np.float64)
    return Blocks([Part(X[kept], frame[y].to_numpy(np.float64)[kept], None if w is None else w[kept])], rows=rows)


def products(block):
    """Sums whose last bits depend on the cut of the rows."""
    weight = np.ones(len(block.y)) if block.weight is None else block.weight
    return [block.X.T @ block.X, block.X.T @ (weight * block.y), [weight @ block.y]]


def add(a, b):
    return [np.add(p, q) for p, q in zip(a, b, strict=True)]


def assert_same_bits(a, b):
    for one, other in zip(a, b, strict=True):
        assert np.asarray(one).tobytes() == np.asarray(other).tobytes()


@pytest.fixture(scope="module")
def frame():
    return numbers(3000, d=4).assign(w=np.random.default_rng(1).uniform(0.5, 2, 3000))


@pytest.mark.threaded
@pytest.mark.parametrize("fmt", FORMATS)
@pytest.mark.parametrize("n_files, n_jobs", [(1, 1), (5, 2)])
def test_sums_over_files_have_the_bits_of_memory(frame, fmt, n_files, n_jobs, tmp_path):
    source = streamed(frame, tmp_path / "t", n_files, fmt, rows_at_once=170)
    expected = map_reduce(in_memory(frame, weight="w", rows=256), products, add, n_jobs=1)
    blocks = opened(source, weight="w", rows=256)
    assert_same_bits(map_reduce(blocks, products, add, n_jobs=n_jobs), expected)
    assert_same_bits(map_reduce(blocks, products, add, n_jobs=n_jobs), expected)  # the second sweep, too
    assert blocks.n_rows == 3000
    assert blocks.fingerprint(None) == f"{scan(in_memory(frame, weight='w'))[0]:016x}"


def test_the_order_of_the_sum_matters_here(frame):
    """Otherwise the test above would pass without the fixed grid."""
    a, b = (map_reduce(in_memory(frame, rows=rows), products, add, n_jobs=1) for rows in (256, 100))
    assert a[0].tobytes() != b[0].tobytes()


@pytest.mark.threaded
@settings(deadline=None, max_examples=40)
@given(
    sizes=st.lists(st.integers(0, 30), min_size=1, max_size=5).filter(sum),
    rows=st.integers(1, 40),
    batch=st.integers(1, 40),
    zeros=st.floats(0, 0.9),
    seed=st.integers(0, 99),
)
def test_blocks_are_those_of_memory_whatever_the_grid(sizes, rows, batch, zeros, seed, tmp_path_factory):
    folder, rng = tmp_path_factory.mktemp("grid"), np.random.default_rng(seed)
    n = sum(sizes)
    table = numbers(n, d=2, seed=seed).assign(w=np.where(rng.uniform(size=n) < zeros, 0.0, rng.uniform(1, 2, n)))
    table.loc[rng.integers(n), "w"] = 1.0
    edges = np.cumsum([0, *sizes])
    for number, (start, stop) in enumerate(pairwise(edges)):
        write(table.iloc[start:stop], folder / f"{number}.parquet", "parquet", batch)
    blocks = opened(Files(folder, in_memory_bytes=0), weight="w", rows=rows)
    memory = in_memory(table, weight="w", rows=rows)
    first, whole = blocks.head(), memory.joined()
    assert np.array_equal(first.X, whole.X[: len(first.X)]) and len(first.X) > 0
    found = map_reduce(blocks, lambda block: [block], lambda a, b: a + b, n_jobs=2)
    for position, column in enumerate(whole):
        assert np.array_equal(np.concatenate([block[position] for block in found]), column)
    assert all(0 < len(block.X) <= rows and block.X.flags.c_contiguous for block in found)
    assert blocks.n_rows == len(whole.X)
    for stride in (1, 3, 8):
        for one, other in zip(blocks.every(stride), memory.every(stride), strict=True):
            assert np.array_equal(one, other)


@pytest.mark.threaded
def test_after_the_first_sweep_blocks_are_numbered_by_the_rows_that_count(tmp_path):
    table = numbers(20, d=1).assign(w=np.r_[np.zeros(7), np.ones(2), np.zeros(6), np.ones(5)])
    blocks = opened(streamed(table, tmp_path / "t"), weight="w", rows=4)
    blocks.scanned()
    starts = map_reduce(blocks, lambda block: [block.start], lambda a, b: a + b)
    assert starts == [0, 1, 2, 3]  # of the rows 7, 8, 15 and 16 to 19
    weighted = blocks.reweighted(np.array([2.0]))
    assert weighted._starts == blocks._starts and weighted.scanned() is blocks.scanned()


def test_weights_of_classes_multiply(tmp_path):
    table = numbers(50, d=1).assign(w=np.r_[np.zeros(10), np.full(40, 0.5)], y=np.arange(50) % 3)
    plain = opened(streamed(table, tmp_path / "t"), weight="w", target="classes", rows=8)
    bare = opened(streamed(table.drop(columns="w"), tmp_path / "bare"), target="classes", rows=8)
    of_class = np.array([1.0, 10.0, 100.0])
    for source, base, kept in ((plain, 0.5, slice(10, None)), (bare, 1.0, slice(None))):
        weight = map_reduce(source.reweighted(of_class), lambda b: [b.weight], lambda a, b: a + b)
        assert np.array_equal(np.concatenate(weight), base * of_class[(np.arange(50) % 3)[kept]])


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_table_without_weight_or_rows_is_refused(n_jobs, tmp_path):
    nothing = opened(streamed(numbers(30).assign(w=0.0), tmp_path / "t"), weight="w", rows=8)
    for ask in (nothing.head, nothing.scanned, lambda: map_reduce(nothing, products, add, n_jobs=n_jobs)):
        with pytest.raises(DataError, match="Model: the table has no rows of positive weight"):
            ask()
    header = opened(Files(text_file(tmp_path / "t.csv", "x,y\n"), in_memory_bytes=0))
    empty = opened(streamed(numbers(0), tmp_path / "empty"))
    for source in (header, empty):
        for ask in (source.head, source.scanned):
            with pytest.raises(DataError, match=r"Model: Files\(.*\) holds no rows"):
                ask()


# Types.


def test_every_kind_of_number_becomes_the_same_float():
    values = np.array([0, 1, 1, 0, 1, 0])
    columns = {
        "bool": pa.array(values.astype(bool)),
        "decimal": pa.array(values).cast(pa.decimal128(21, 2)),
        **{kind: pa.array(values).cast(kind) for kind in ("int8", "uint16", "int64", "uint64", "float", "halffloat")},
    }
    batch = pa.record_batch(columns)
    for name in columns:
        found = np.asarray(numbers_of("Model", batch, name), dtype=float)
        assert np.array_equal(found, values), name
    gaps = pa.record_batch({name: pa.concat_arrays([c, pa.nulls(1, c.type)]) for name, c in columns.items()})
    for name in columns:
        found = numbers_of("Model", gaps, name)
        assert np.array_equal(found[:-1], values) and np.isnan(found[-1]), name
    assert np.isnan(numbers_of("Model", pa.record_batch({"nothing": pa.nulls(3)}), "nothing")).all()


STRANGE = {
    "text": ["a", "b"],
    "category": pa.array(["a", "b"]).dictionary_encode(),
    "day": pa.array([1, 2]).cast("int32").cast("date32"),
    "time": pa.array([1, 2]).cast("timestamp[ns]"),
    "span": pa.array([1, 2]).cast("duration[s]"),
    "list": [[1.0], [2.0]],
    "bytes": [b"1", b"2"],
}


@pytest.mark.parametrize("name", STRANGE)
def test_what_is_no_number_is_refused(name):
    batch = pa.record_batch({name: pa.array(STRANGE[name])})
    with pytest.raises(DataTypeError, match=f"Model: column '{name}' is of type .*, not a number"):
        numbers_of("Model", batch, name)


def test_a_list_of_batches_is_emptied_when_it_is_converted():
    pieces = [pa.record_batch({"x": [1.0], "y": [2.0]}), pa.record_batch({"x": [3, 4], "y": [True, False]})]
    block = ArrowRows("Model", ["x"], "y", None, None)(pieces, 5)
    assert pieces == [] and block.start == 5 and block.weight is None
    assert block.X.tolist() == [[1.0], [3.0], [4.0]] and block.y.tolist() == [2.0, 1.0, 0.0]


def test_codes_of_labels():
    labels = np.array(["b", "z", "a"], dtype=object)
    assert codes_of(labels, {"a": 0, "b": 1}).tolist() == [1, -1, 0]
    assert codes_of(np.array([1.0, 2.0]), {1: 0, 2: 1}).tolist() == [0, 1]


# What is wrong with cells is said with file, row and column.


def wrong(frame, row, column, value):
    frame = frame.copy()
    frame.loc[row, column] = value
    return frame


@pytest.mark.sampled(6)
@pytest.mark.parametrize("rows", [16, 2000])
@pytest.mark.parametrize("weight", [None, "w"])
@pytest.mark.parametrize("fmt", ["parquet", "csv"])
@pytest.mark.parametrize(
    "row, place", [(0, "row 0 of part-00"), (105, "row 47 of part-01"), (299, "row 136 of part-02")]
)
def test_a_gap_is_named_by_file_row_and_column(rows, weight, fmt, row, place, tmp_path):
    base = numbers(300).assign(w=np.where(np.arange(300) % 4 == 1, 0.0, 1.0))
    base = base if weight else base.drop(columns="w")
    for number, (column, word, value) in enumerate((("x1", "X", np.nan), ("y", "y", np.nan), ("x2", "X", np.inf))):
        table = wrong(base, row, column, value)
        n_jobs = 1 + number % 2
        blocks = opened(streamed(table, tmp_path / str(number), 3, fmt), weight=weight, rows=rows)
        what = "NaN" if np.isnan(value) else "infinity"
        with pytest.raises(DataError, match=f"Model: Input {word} contains {what}: {place}.{fmt}, column '{column}'"):
            map_reduce(blocks, products, add, n_jobs=n_jobs)
    if row == 0:
        with pytest.raises(DataError, match=place):
            blocks.head()


@pytest.mark.parametrize("value", [-1.0, np.nan, np.inf, 1e200])
def test_a_weight_that_is_none_is_refused(value, tmp_path):
    table = wrong(numbers(30).assign(w=1.0), 20, "w", value)
    with pytest.raises(DataError, match=re.escape(f"column 'w' holds {value:g}")):
        opened(streamed(table, tmp_path / "t"), weight="w").scanned()


def test_a_target_out_of_range_is_refused(tmp_path):
    with pytest.raises(DataError, match="y reaches beyond 1e"):
        opened(streamed(wrong(numbers(30), 20, "y", 1e305), tmp_path / "t")).scanned()


def test_text_among_numbers_far_down_a_file(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "_CSV_BLOCK", 2**10)
    rows = "".join(f"{i},{i % 5}\n" for i in range(2000))
    blocks = opened(Files(text_file(tmp_path / "t.csv", f"x,y\n{rows}oops,1\n"), in_memory_bytes=0))
    with pytest.raises(DataError, match=r"Model: t\.csv cannot be read: .*invalid value 'oops'"):
        blocks.scanned()


def test_text_from_the_second_file_on(tmp_path):
    write(numbers(30), tmp_path / "a.parquet")
    write(numbers(30).astype({"x1": str}), tmp_path / "b.parquet")
    with pytest.raises(DataTypeError, match=r"Model: column 'x1' is of type .*string, not a number"):
        opened(Files(tmp_path, in_memory_bytes=0)).scanned()


# Between sweeps, and in the middle of one.


@pytest.mark.parametrize("fmt", ["parquet", "csv", "arrow"])
def test_a_file_that_disappears_between_two_sweeps(fmt, tmp_path):
    blocks = opened(streamed(numbers(300), tmp_path, 3, fmt), rows=16)
    blocks.scanned()
    (tmp_path / f"part-01.{fmt}").unlink()
    with pytest.raises(DataError, match=rf"Model: part-01\.{fmt} cannot be read"):
        map_reduce(blocks, products, add)


def test_a_label_that_appears_between_two_sweeps(tmp_path):
    table = pd.DataFrame({"x": np.arange(30.0), "y": ["a", "b"] * 15})
    blocks = opened(streamed(table, tmp_path), target="classes")
    write(table.assign(y=["a", "c"] * 15), tmp_path / "part-00.parquet")
    with pytest.raises(DataError, match="Model: labels in 'y' changed between two sweeps"):
        blocks.scanned()


@pytest.mark.threaded
@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_error_in_a_statistic_ends_the_threads(n_jobs, error, tmp_path):
    blocks, done, flag = opened(streamed(numbers(3000), tmp_path), rows=8), [], StopFlag()

    def statistic(block):
        done.append(block.start)
        if len(done) == 5:
            raise error("in the fifth block")
        return block.X.sum()

    with pytest.raises(error, match="in the fifth block"):
        map_reduce(blocks, statistic, lambda a, b: a + b, n_jobs=n_jobs, flag=flag)
    assert flag.raised and len(done) < 12
    assert not [t for t in threading.enumerate() if t.name.startswith("learnable")]
    assert blocks.n_rows == 3000  # and the table can be read again


@pytest.mark.threaded
def test_few_blocks_are_in_memory_at_a_time(tmp_path):
    """Reading stops while sums wait to be merged."""
    blocks = opened(streamed(numbers(4000), tmp_path), rows=8)
    lock, counts, ahead = threading.Lock(), {"made": 0, "merged": 1}, []

    def make(block):
        with lock:
            counts["made"] += 1
            ahead.append(counts["made"] - counts["merged"])
        return len(block.X)

    def merge_slowly(a, b):
        time.sleep(0.001)
        with lock:
            counts["merged"] += 1
        return a + b

    assert map_reduce(blocks, make, merge_slowly, n_jobs=2) == 4000
    assert max(ahead) <= 5
