"""How a CSV file is written is found out from its bytes; what is given is believed."""

import gzip

import pytest
from tests.data.on_disk import text_file

from learnable.core.errors import DataError
from learnable.data import read_table
from learnable.data.csv_dialect import NULLS, Dialect, sniff

PLAIN = Dialect("utf-8", ",", ".", False)
ROWS = {"x": [1.5, -2.5, 3.0], "y": [2.0, 3.5, 1.0]}
FILES = {
    "plain": ("x,y\n1.5,2\n-2.5,3.5\n3,1\n", "utf-8", PLAIN),
    "semicolon, decimal comma": ("x;y\n1,5;2\n-2,5;3,5\n3;1\n", "utf-8", Dialect("utf-8", ";", ",", False)),
    "semicolon, decimal point": ("x;y\n1.5;2\n-2.5;3.5\n3;1\n", "utf-8", Dialect("utf-8", ";", ".", False)),
    "tabs": ("x\ty\n1.5\t2\n-2.5\t3.5\n3\t1\n", "utf-8", Dialect("utf-8", "\t", ".", False)),
    "bars": ("x|y\n1.5|2\n-2.5|3.5\n3|1\n", "utf-8", Dialect("utf-8", "|", ".", False)),
    "byte order mark": ("\ufeffx,y\n1.5,2\n-2.5,3.5\n3,1\n", "utf-8", PLAIN),
    "utf-16": ("x,y\n1.5,2\n-2.5,3.5\n3,1\n", "utf-16", Dialect("utf-16", ",", ".", False)),
    "utf-16, decimal comma": ("x;y\n1,5;2\n-2,5;3,5\n3;1\n", "utf-16", Dialect("utf-16", ";", ",", False)),
    "Windows line ends": ("x,y\r\n1.5,2\r\n-2.5,3.5\r\n3,1\r\n", "utf-8", PLAIN),
    "no last line end": ("x,y\n1.5,2\n-2.5,3.5\n3,1", "utf-8", PLAIN),
    "empty lines": ("x,y\n1.5,2\n\n-2.5,3.5\n3,1\n\n", "utf-8", PLAIN),
    "quotes": ('"x","y"\n"1.5","2"\n"-2.5","3.5"\n"3","1"\n', "utf-8", PLAIN),
}


@pytest.mark.parametrize("name", FILES)
def test_the_dialect_of_a_file(name, tmp_path):
    text, encoding, expected = FILES[name]
    path = text_file(tmp_path / "table.csv", text, encoding)
    assert sniff(path) == expected
    assert read_table(path).to_pydict() == ROWS


@pytest.mark.parametrize("letters, encoding", [("Größe", "cp1252"), ("Gr\x81e", "latin-1"), ("Größe 😀", "utf-8")])
def test_the_encoding_is_found_in_the_names(letters, encoding, tmp_path):
    path = text_file(tmp_path / "table.csv", f"{letters};y\n1,5;2\n3;1\n", encoding)
    assert sniff(path) == Dialect(encoding, ";", ",", False)
    assert read_table(path).column_names == [letters, "y"]


def test_a_character_cut_at_the_end_of_the_sample_is_no_error(tmp_path):
    from learnable.data import csv_dialect

    head = b"name,y\n"
    text = head + b"a" * (csv_dialect._SAMPLE - len(head) - 1) + "é,1\nb,2\n".encode()
    assert sniff(text_file(tmp_path / "table.csv", text)).encoding == "utf-8"


def test_what_is_given_is_believed(tmp_path):
    path = text_file(tmp_path / "table.csv", "a,b;c\n1,2;3\n")
    assert sniff(path).delimiter == ","
    assert sniff(path, delimiter=";").delimiter == ";"
    assert read_table(path, delimiter=";").column_names == ["a,b", "c"]
    greek = text_file(tmp_path / "greek.csv", "α,y\n1,2\n", "iso8859-7")
    assert read_table(greek, encoding="iso8859-7").column_names == ["α", "y"]


def test_text_with_commas_does_not_mislead(tmp_path):
    path = text_file(tmp_path / "table.csv", "name;size\nBell, Ada;1.5\nGauss, Carl, F.;2.5\nNoether, Emmy;3\n")
    assert sniff(path) == Dialect("utf-8", ";", ".", False)
    quoted = text_file(tmp_path / "quoted.csv", 'name,size\n"Bell; Ada",1.5\n"Gauss; Carl",2.5\n')
    assert sniff(quoted) == PLAIN


def test_a_decimal_comma_needs_another_separator(tmp_path):
    path = text_file(tmp_path / "table.csv", 'x,y\n"1,5",2\n"2,5",3\n')
    assert sniff(path).decimal == "."


def test_line_ends_within_quotes(tmp_path):
    path = text_file(tmp_path / "table.csv", 'name,y\n"two\nlines",1\nb,2\n"three\n\nlines",3\n')
    assert sniff(path).newlines
    assert read_table(path).to_pydict() == {"name": ["two\nlines", "b", "three\n\nlines"], "y": [1, 2, 3]}


def test_one_column_has_no_separator(tmp_path):
    path = text_file(tmp_path / "table.csv", "price\n1.5\n2.5\n")
    assert read_table(path).to_pydict() == {"price": [1.5, 2.5]}


@pytest.mark.parametrize("size", [2 * 10**5, 4 * 10**5])
def test_a_cell_longer_than_the_sample_or_the_limit_of_pythons_reader(size, tmp_path):
    path = text_file(tmp_path / "table.csv", "x,text,y\n1.5," + "a" * size + ",2\n2.5,b,3\n")
    assert read_table(path).column("text").to_pylist() == ["a" * size, "b"]


def test_compressed_bytes_are_read_as_text(tmp_path):
    path = tmp_path / "table.csv.gz"
    path.write_bytes(gzip.compress("Größe;y\n1,5;2\n".encode("latin-1")))
    assert sniff(path) == Dialect("cp1252", ";", ",", False)


@pytest.mark.parametrize("word", NULLS)
def test_words_for_missing(word, tmp_path):
    table = read_table(text_file(tmp_path / "table.csv", f"x,name,y\n1.5,{word},2\n{word},b,3\n"))
    assert table.to_pydict() == {"x": [1.5, None], "name": [None, "b"], "y": [2, 3]}


@pytest.mark.parametrize(
    "text, message",
    [("", "table.csv: the file is empty"), (" \n\n", "file is empty"), (b"x,y\n1,\x002\n", "no text file")],
)
def test_what_is_no_table_is_refused(text, message, tmp_path):
    with pytest.raises(DataError, match=message):
        sniff(text_file(tmp_path / "table.csv", text))
