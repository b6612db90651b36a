"""Files as one table: found in order, read whole or in pieces with the same cells, and refused with a reason."""

import os
import time
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.data.on_disk import FORMATS, numbers, text_file, write, write_parts

from learnable.core.errors import DataError, DataTypeError
from learnable.data import Files, files, read_table
from learnable.data.files import find_files

GOOD = "x,y\n1,2\n2,4\n3,5\n"


def gathered(source, **options):
    """Return all rows that the batches hold, and check that they are numbered within their files."""
    done = {}
    batches = list(source.batches(**options))
    for batch in batches:
        assert batch.start == done.get(batch.path, 0)
        done[batch.path] = batch.start + batch.rows.num_rows
    return pa.Table.from_batches([batch.rows for batch in batches]).to_pandas()


def assert_same_cells(found, frame):
    pd.testing.assert_frame_equal(found, frame, check_dtype=False, check_exact=True)


# What a table is.


def test_a_path_a_glob_a_folder_and_a_list_name_the_same_files(tmp_path):
    frame = numbers(20)
    write_parts(frame, tmp_path, 3)
    paths = sorted(tmp_path.iterdir())
    for source in (tmp_path, str(tmp_path), f"{tmp_path}/*.parquet", f"{tmp_path}/**/*.parquet", paths, tuple(paths)):
        assert find_files(source) == paths
        assert_same_cells(read_table(source).to_pandas(), frame)
    assert find_files(paths[1]) == find_files(str(paths[1])) == [paths[1]]
    assert find_files([paths[2], f"{tmp_path}/part-00*"]) == [paths[2], paths[0]]


def test_files_come_in_the_order_of_their_names(tmp_path):
    for number, name in enumerate(("b", "c", "a")):
        text_file(tmp_path / f"{name}.csv", f"x,y\n{number},1\n")
    assert read_table(tmp_path).column("x").to_pylist() == [2, 0, 1]
    assert read_table([tmp_path / "c.csv", tmp_path / "a.csv"]).column("x").to_pylist() == [1, 2]


@pytest.mark.parametrize("target", ["gone.parquet", "p1.parquet"], ids=["of nothing", "of itself"])
@pytest.mark.parametrize("ask", ["{}/p*.parquet", "{}", "{}/**/*.parquet", "{}/p1.parquet"])
def test_a_dangling_link_is_refused_and_not_skipped(tmp_path, ask, target):
    pq.write_table(pa.table({"x": [1.0]}), tmp_path / "p0.parquet")
    (tmp_path / "p1.parquet").symlink_to(tmp_path / target)
    with pytest.raises(DataError, match=r"p1\.parquet"):
        find_files(ask.format(tmp_path))


def test_links_to_files_and_folders_are_followed(tmp_path):
    (tmp_path / "far").mkdir()
    pq.write_table(pa.table({"x": [1.0]}), tmp_path / "far" / "p0.parquet")
    (tmp_path / "near").mkdir()
    (tmp_path / "near" / "p1.parquet").symlink_to(tmp_path / "far" / "p0.parquet")
    (tmp_path / "near" / "p2.parquet").symlink_to(tmp_path / "far")  # a folder is no table, whatever its name
    assert find_files(tmp_path / "near" / "p*.parquet") == [tmp_path / "near" / "p1.parquet"]


def test_a_home_folder_is_found(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    text_file(tmp_path / "table.csv", GOOD)
    assert find_files("~/table.csv") == [tmp_path / "table.csv"]


def test_a_name_with_brackets_is_a_file_before_it_is_a_pattern(tmp_path):
    text_file(tmp_path / "t[1].csv", GOOD)
    assert find_files(tmp_path / "t[1].csv") == [tmp_path / "t[1].csv"]


def test_a_folder_holds_tables_and_other_things(tmp_path):
    text_file(tmp_path / "a.csv", GOOD)
    for other in ("_SUCCESS", ".hidden.csv", "_metadata.parquet", "readme.md"):
        text_file(tmp_path / other, "?")
    (tmp_path / "sub.csv").mkdir()
    assert find_files(tmp_path) == [tmp_path / "a.csv"]


# Reading.


@pytest.mark.parametrize("fmt", FORMATS)
@pytest.mark.parametrize("n_files", [1, 4])
def test_every_format_gives_the_same_cells(fmt, n_files, tmp_path):
    frame = numbers(500).assign(whole=np.arange(500), name=np.where(np.arange(500) % 3, "a", "é"))
    source = Files(write_parts(frame, tmp_path, n_files, fmt, rows_at_once=70))
    assert source.columns == list(frame.columns)
    assert_same_cells(source.read().to_pandas(), frame)
    for rows in (1, 64, 10**6):
        assert_same_cells(gathered(source, rows=rows), frame)
    assert_same_cells(gathered(source, columns=["whole", "x1"])[["x1"]], frame[["x1"]])
    assert source.read(["whole", "x1"]).column_names == ["whole", "x1"]


@settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    sizes=st.lists(st.integers(0, 40), min_size=1, max_size=5),
    rows=st.integers(1, 50),
    group=st.integers(1, 50),
    fmt=st.sampled_from(["parquet", "arrow", "csv"]),
)
def test_the_rows_come_in_order_however_they_are_cut(sizes, rows, group, fmt, tmp_path_factory):
    folder = tmp_path_factory.mktemp("cut")
    frame = numbers(sum(sizes), d=1)
    edges = np.cumsum([0, *sizes])
    for number, (start, stop) in enumerate(pairwise(edges)):
        write(frame.iloc[start:stop], folder / f"{number}.{fmt}", fmt, group)
    source = Files(folder)
    found = [batch.rows.column("y").to_numpy(zero_copy_only=False) for batch in source.batches(rows=rows)]
    assert np.array_equal(np.concatenate([*found, []]), frame.y)
    assert np.array_equal(source.read().column("y").to_numpy(), frame.y)


def test_batches_are_as_small_as_asked_for(tmp_path):
    source = Files(write(numbers(1000), tmp_path / "t.parquet"))
    assert max(batch.rows.num_rows for batch in source.batches(rows=64)) == 64


def test_a_csv_file_is_parsed_in_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "_CSV_BLOCK", 2**10)
    source = Files(write(numbers(500), tmp_path / "t.csv", "csv"))
    assert len(list(source.batches())) > 10


def test_whole_numbers_of_a_csv_file_may_be_followed_by_others(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "_CSV_BLOCK", 2**10)
    text = "x,z,y\n" + "".join(f"{i},{i % 7},{i % 3}\n" for i in range(2000)) + "1.5,2.5,3.5\n"
    source = Files(text_file(tmp_path / "t.csv", text))
    assert_same_cells(gathered(source), source.read().to_pandas())
    assert gathered(source).iloc[-1].tolist() == [1.5, 2.5, 3.5]


def test_labels_stay_whole_numbers(tmp_path):
    source = Files(text_file(tmp_path / "t.csv", GOOD))
    assert gathered(source).dtypes.tolist() == [np.float64, np.float64]
    assert gathered(source, labels="y").dtypes.tolist() == [np.float64, np.int64]


def test_a_column_that_begins_with_gaps_may_hold_numbers(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "_CSV_BLOCK", 2**10)
    source = Files(text_file(tmp_path / "t.csv", "x,y\n" + ",1\n" * 1000 + "2.5,1\n"))
    found = gathered(source)
    assert found.x.isna().sum() == 1000 and found.x.iloc[-1] == 2.5


def test_files_may_have_their_columns_in_another_order(tmp_path):
    frame = numbers(60)
    for fmt in ("parquet", "csv", "arrow"):
        folder = tmp_path / fmt
        folder.mkdir()
        write(frame[:25], folder / f"a.{fmt}", fmt)
        write(frame[25:][["y", "x2", "x0", "x1"]], folder / f"b.{fmt}", fmt)
        source = Files(folder)
        assert_same_cells(source.read().to_pandas(), frame)
        for batch in source.batches(["x2", "y"]):
            assert sorted(batch.rows.schema.names) == ["x2", "y"]
        y = np.concatenate([batch.rows.column("y").to_numpy() for batch in source.batches(["x2", "y"])])
        assert np.array_equal(y, frame.y)


def test_files_may_hold_other_types_of_numbers(tmp_path):
    write(numbers(30).round().astype(np.int64), tmp_path / "a.parquet")
    write(numbers(30).astype(np.float32), tmp_path / "b.parquet")
    assert [str(kind) for kind in read_table(tmp_path).schema.types] == ["double"] * 4


def test_names_with_dots_and_other_signs(tmp_path):
    frame = numbers(9).rename(columns={"x0": "a.b", "x1": "größe (m²)", "x2": "a"})
    for fmt in ("parquet", "csv", "arrow"):
        source = Files(write(frame, tmp_path / f"t.{fmt}", fmt))
        assert_same_cells(gathered(source), frame)
        assert_same_cells(gathered(source, columns=["a"]), frame[["a"]])


def test_a_file_without_rows_among_others(tmp_path):
    frame = numbers(20)
    for number, part in enumerate((frame[:0], frame[:10], frame[:0], frame[10:])):
        write(part, tmp_path / f"{number}.parquet")
    source = Files(tmp_path)
    assert_same_cells(gathered(source), frame)
    assert_same_cells(source.read().to_pandas(), frame)


# Size.


@pytest.mark.parametrize("fmt", FORMATS)
def test_what_is_small_is_read_whole(fmt, tmp_path):
    path = write(numbers(100), tmp_path / f"t.{fmt}", fmt)
    assert Files(path).is_small()
    assert not Files(path, in_memory_bytes=0).is_small()
    assert not Files([path] * 5, in_memory_bytes=8000).is_small()  # 5 tables of 100 × 4 numbers


def test_the_size_of_a_parquet_file_is_that_of_its_numbers(tmp_path):
    frame = pd.DataFrame({"x": np.zeros(10_000), "y": np.ones(10_000)})  # compresses to nothing
    path = write(frame, tmp_path / "t.parquet")
    assert os.path.getsize(path) < 10_000
    assert Files(path, in_memory_bytes=160_000).is_small()
    assert not Files(path, in_memory_bytes=159_999).is_small()


def test_how_it_shows_itself(tmp_path):
    path = text_file(tmp_path / "t.csv", GOOD)
    assert repr(Files(path)) == f"Files({str(path)!r})"
    assert repr(Files([path] * 3)) == f"Files({str(path)!r} and 2 more)"


# What is wrong.


@pytest.mark.parametrize(
    "name, message",
    [
        ("missing.csv", "There is no file .*missing.csv'. Check the path"),
        ("tabel.csv", "there is .*table.csv"),
        ("none-*.csv", "No file matches .*none-"),
        ("table.ods", "table.ods: files that end in '.ods' are not read; use .csv"),
        ("table.parquet.gz", "are not read"),
        ("empty", "The folder .* holds no CSV, Parquet, Arrow, JSON or Excel file"),
        ("nowhere/table.csv", "There is no file"),
    ],
)
def test_what_is_not_there_is_said(name, message, tmp_path):
    text_file(tmp_path / "table.csv", GOOD)
    for other in ("table.ods", "table.parquet.gz"):
        text_file(tmp_path / other, "?")
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match=message):
        Files(tmp_path / name)


def test_an_unknown_ending_within_a_glob_is_refused(tmp_path):
    for name in ("t.csv", "t.ods"):
        text_file(tmp_path / name, GOOD)
    with pytest.raises(DataError, match=r"t\.ods"):
        Files(f"{tmp_path}/t.*")


def parquet_bytes(tmp_path):
    return write(numbers(500), tmp_path / "good.parquet").read_bytes()


BROKEN = {
    "no bytes.parquet": lambda good: b"",
    "cut.parquet": lambda good: good[: len(good) // 2],
    "without its end.parquet": lambda good: good[:-20],
    "another thing.parquet": lambda good: b"PAR1" + b"\x07" * 100 + b"PAR1",
    "text.parquet": lambda good: GOOD.encode(),
    "text.arrow": lambda good: GOOD.encode(),
    "no bytes.arrow": lambda good: b"",
    "text.csv.gz": lambda good: GOOD.encode(),
    "pixels.csv": lambda good: bytes(range(256)),
    "no bytes.csv": lambda good: b"",
    "ragged.csv": lambda good: GOOD.encode() + b"1,2,3\n",
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_file_is_named(name, tmp_path):
    path = text_file(tmp_path / name, BROKEN[name](parquet_bytes(tmp_path)))
    with pytest.raises(DataError, match=name):
        Files(path).read()
    with pytest.raises(DataError, match=name):
        list(Files(path).batches())


def test_a_broken_file_among_others_is_named(tmp_path):
    text_file(tmp_path / "b.parquet", parquet_bytes(tmp_path)[:-100])
    write(numbers(10), tmp_path / "a.parquet")
    source = Files([tmp_path / "a.parquet", tmp_path / "b.parquet"])
    with pytest.raises(DataError, match=r"b\.parquet cannot be read"):
        source.read()
    with pytest.raises(DataError, match=r"b\.parquet cannot be read"):
        list(source.batches())
    with pytest.raises(DataError, match=r"b\.parquet cannot be read"):
        source.is_small()


def test_a_compressed_file_that_ends_early(tmp_path):
    whole = write(numbers(3000), tmp_path / "t.csv.gz", "csv.gz").read_bytes()
    path = text_file(tmp_path / "cut.csv.gz", whole[: len(whole) // 2])
    with pytest.raises(DataError, match=r"cut\.csv\.gz cannot be read"):
        list(Files(path).batches())


def test_a_folder_that_may_not_be_read(tmp_path):
    if os.geteuid() == 0:
        pytest.skip("the superuser may read everything")
    path = text_file(tmp_path / "t.csv", GOOD)
    path.chmod(0)
    with pytest.raises(DataError, match=r"t\.csv cannot be read"):
        Files(path)


def test_a_row_that_is_wrong_far_down_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "_CSV_BLOCK", 2**10)
    rows = "".join(f"{i},{i % 5}\n" for i in range(2000))
    for name, last, message in (
        ("text.csv", "oops,1\n", r"text\.csv cannot be read: .*invalid value 'oops'"),
        ("ragged.csv", "1\n", r"ragged\.csv cannot be read: .*Expected 2 columns, got 1"),
    ):
        source = Files(text_file(tmp_path / name, "x,y\n" + rows + last))
        with pytest.raises(DataError, match=message):
            list(source.batches(["x", "y"]))


OTHER_COLUMNS = {
    "another name": ("z,y\n1,2\n", "b.csv has no column 'x'; a.csv has. Its columns are 'z', 'y'"),
    "one less": ("y\n2\n", "b.csv has no column 'x'"),
    "one more": ("x,y,z\n1,2,3\n", "b.csv has the column 'z', which a.csv has not"),
    "one twice": ("x,y,x\n1,2,3\n", "b.csv: the column name 'x' occurs more than once"),
    "no bytes": ("", "b.csv: the file is empty"),
}


@pytest.mark.parametrize("name", OTHER_COLUMNS)
def test_a_file_with_other_columns_is_refused(name, tmp_path):
    text, message = OTHER_COLUMNS[name]
    text_file(tmp_path / "a.csv", GOOD)
    text_file(tmp_path / "b.csv", text)
    source = Files(tmp_path)
    for read in (source.read, lambda: list(source.batches()), lambda: list(source.batches(["y", "x"]))):
        with pytest.raises(DataError, match=message):
            read()


def test_columns_that_nobody_asks_for_may_differ(tmp_path):
    text_file(tmp_path / "a.csv", GOOD)
    text_file(tmp_path / "b.csv", "y,z\n7,8\n")
    assert gathered(Files(tmp_path), columns=["y"]).y.tolist() == [2, 4, 5, 7]


def test_names_that_occur_twice_are_refused(tmp_path):
    text_file(tmp_path / "t.csv", "x,x,y\n1,2,3\n")
    pq.write_table(pa.table([[1.0], [2.0], [3.0]], names=["x", "y", "x"]), tmp_path / "t.parquet")
    for name in ("t.csv", "t.parquet"):
        with pytest.raises(DataError, match=f"{name}: the column name 'x' occurs more than once"):
            Files(tmp_path / name)


def test_files_of_types_that_do_not_go_together_are_refused(tmp_path):
    text_file(tmp_path / "a.csv", GOOD)
    text_file(tmp_path / "b.csv", "x,y\nabc,2\n")
    with pytest.raises(DataTypeError, match="The files do not fit together"):
        read_table(tmp_path)
    with pytest.raises(DataError, match=r"b\.csv cannot be read: .*invalid value 'abc'"):
        list(Files(tmp_path).batches())


def test_a_file_that_goes_away_is_told(tmp_path):
    write_parts(numbers(100), tmp_path, 2)
    source = Files(tmp_path)
    batches = source.batches()
    next(batches)
    (tmp_path / "part-01.parquet").unlink()
    with pytest.raises(DataError, match=r"part-01\.parquet cannot be read: .*[Nn]o such file"):
        list(batches)


def test_files_are_closed_after_reading(tmp_path):
    if not Path("/proc/self/fd").is_dir():
        pytest.skip("open files are listed in /proc/self/fd")
    for fmt in ("parquet", "csv", "arrow", "csv.gz"):
        source = Files(write(numbers(200), tmp_path / f"t.{fmt}", fmt))
        source.read()
        list(source.batches())
        half = source.batches(rows=10)
        next(half)
        half.close()
        limit = time.monotonic() + 20  # a thread that reads ahead may still be at it
        while is_open(f"t.{fmt}") and time.monotonic() < limit:
            time.sleep(0.01)
        assert not is_open(f"t.{fmt}")


def is_open(name):
    links = [Path("/proc/self/fd") / number for number in os.listdir("/proc/self/fd")]
    return any(os.readlink(link).endswith(name) for link in links if link.is_symlink())


def test_without_pyarrow_the_remedy_is_told(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(DataError, match="needs pyarrow, which is not installed"):
        Files(text_file(tmp_path / "t.csv", GOOD))
