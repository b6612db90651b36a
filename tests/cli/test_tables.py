import gzip
import io
import json
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from learnable.cli.tables import DEMO_TARGETS, load_table
from learnable.core.errors import DataError


@pytest.mark.parametrize("name", DEMO_TARGETS)
def test_built_in_tables_are_the_same_every_time_and_hold_their_target(name):
    table = load_table(name)
    assert table.equals(load_table(name)) and DEMO_TARGETS[name] in table.column_names


def test_the_houses_have_what_real_tables_have():
    table = load_table("demo:houses")
    assert table["area"].null_count and table["heating"].null_count
    assert len(table["sale_id"].unique()) == table.num_rows and len(table["country"].unique()) == 1


def test_an_unknown_table_is_refused():
    with pytest.raises(DataError, match="demo:houses and demo:tumours"):
        load_table("demo:none")


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "parquet", "arrow", "json", "jsonl"])
def test_standard_input_is_told_by_its_first_bytes(kind, tmp_path, monkeypatch):
    table = pa.table({"a": [1, 2, 3], "b": ["x", "y", None]})
    path = tmp_path / f"table.{kind}"
    if kind == "parquet":
        pyarrow.parquet.write_table(table, path)
    elif kind == "arrow":
        with pa.ipc.new_file(path, table.schema) as writer:
            writer.write_table(table)
    elif kind == "json":
        path.write_text(json.dumps(table.to_pylist()), encoding="utf-8")
    elif kind == "jsonl":
        path.write_text("\n".join(map(json.dumps, table.to_pylist())), encoding="utf-8")
    else:
        pyarrow.csv.write_csv(table, tmp_path / "table.csv")
        text = (tmp_path / "table.csv").read_bytes()
        path.write_bytes(gzip.compress(text) if kind.endswith("gz") else text)
    with path.open("rb") as piped:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(piped))
        assert load_table("-").to_pydict() == table.to_pydict()


def test_a_terminal_is_no_table(monkeypatch):
    monkeypatch.setattr("sys.stdin", SimpleNamespace(isatty=lambda: True))
    with pytest.raises(DataError, match="nothing is piped in"):
        load_table("-")
