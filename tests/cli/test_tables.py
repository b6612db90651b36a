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
