"""Genotypes come out of every format alike, and what is wrong with a file is said with its line and column."""

import gzip

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from learnable.core.errors import DataError, ParameterError
from learnable.topics import Genotypes, read_genotypes
from learnable.topics.genotypes import pack, unpack

DOSAGE = np.array([[0, 1, 2], [2, -1, 0], [1, 1, 2], [0, 0, 0], [2, 2, 1]])


@given(arrays(np.int8, st.tuples(st.integers(1, 5), st.integers(1, 9)), elements=st.integers(-1, 2)))
def test_two_bits_hold_a_genotype(dosage):
    np.testing.assert_array_equal(unpack(pack(dosage), dosage.shape[1]), dosage)


def write_plink(folder, dosage=DOSAGE):
    (folder / "a.bed").write_bytes(b"\x6c\x1b\x01" + pack(dosage.T.astype(np.int8)).tobytes())
    (folder / "a.bim").write_text("".join(f"1 rs{j} 0 {j} A G\n" for j in range(dosage.shape[1])))
    (folder / "a.fam").write_text("".join(f"f{i} i{i} 0 0 1 -9\n" for i in range(len(dosage))))
    return folder / "a.bed"


def write_structure(folder, dosage=DOSAGE):
    lines = []
    for i, row in enumerate(dosage):
        for c in range(2):
            copies = ["-9" if g < 0 else "AG"[int(c >= 2 - g)] for g in row]
            lines.append("\t".join([f"i{i}", *copies]))
    (folder / "a.str").write_text("\n".join(lines) + "\n")
    return folder / "a.str"


def write_vcf(folder, dosage=DOSAGE):
    head = ["#CHROM", "POS", "ID", "REF", "ALT", "QUAL", "FILTER", "INFO", "FORMAT"]
    lines = ["##fileformat=VCFv4.3", "\t".join(head + [f"i{i}" for i in range(len(dosage))])]
    words = {-1: "./.", 0: "0/0", 1: "0|1", 2: "1/1"}
    for j in range(dosage.shape[1]):
        calls = [f"{words[int(g)]}:7" for g in dosage[:, j]]
        lines.append("\t".join(["1", str(j), f"rs{j}", "A", "G", ".", ".", ".", "GT:DP", *calls]))
    with gzip.open(folder / "a.vcf.gz", "wt") as file:
        file.write("\n".join(lines) + "\n")
    return folder / "a.vcf.gz"


@pytest.mark.parametrize("write", [write_plink, write_structure, write_vcf])
def test_every_format_holds_the_same_genotypes(write, tmp_path):
    found = read_genotypes(write(tmp_path))
    expected = Genotypes.from_dosage(DOSAGE)
    np.testing.assert_array_equal(found.dosage, DOSAGE)
    assert found.fingerprint == expected.fingerprint
    np.testing.assert_array_equal(found.counts(), expected.counts())
    np.testing.assert_array_equal(found.corpus().words, expected.corpus().words)
    assert found.individuals[0] in ("i0", "f0")
    np.testing.assert_array_equal(found.n_typed, expected.n_typed)


def test_tables_hold_genotypes_in_three_ways():
    pairs = pd.DataFrame({"cat": ["a", "b"], "x_1": [136, np.nan], "x_2": [146, np.nan], "pop": ["n", "s"]})
    one = read_genotypes(pairs, groups="pop")
    whole = read_genotypes(pd.DataFrame({"cat": ["a", "b"], "x": ["136/146", None]}), groups=["n", "s"])
    assert one.fingerprint == whole.fingerprint
    assert one.groups == ("n", "s")
    assert one.individuals == ("a", "b")
    assert one.allele_names == (("136", "146"),)
    assert read_genotypes(pd.DataFrame(DOSAGE)).fingerprint == Genotypes.from_dosage(DOSAGE).fingerprint


def test_three_copies_and_half_genotypes():
    table = Genotypes.from_alleles([[[0, 1, 2], [1, 1, -1]], [[-1, -1, -1], [0, 0, 1]]])
    assert table.ploidy == 3
    assert table.n_typed.tolist() == [5, 3]
    assert table.counts().tolist() == [[1, 1, 1, 0, 2], [0, 0, 0, 2, 1]]
    assert table.select([1]).counts().tolist() == [[0, 0, 0, 2, 1]]


def damaged(write, change):
    def make(folder):
        path = write(folder)
        change(path)
        return path

    return make


def cut(path):
    path.write_bytes(path.read_bytes()[:-1])


def no_magic(path):
    path.write_bytes(b"\x00" + path.read_bytes()[1:])


def by_individual(path):
    path.write_bytes(path.read_bytes()[:2] + b"\x00" + path.read_bytes()[3:])


def short_bim(path):
    path.with_suffix(".bim").write_text("1 rs0 0 1 A G\n1 rs1 0 2\n")


def no_fam(path):
    path.with_suffix(".fam").unlink()


def odd_row(path):
    path.write_text(path.read_text() + "i9\tA\tA\tG\n")


def short_row(path):
    path.write_text(path.read_text().replace("i4\tA\tA", "i4\tA", 1).replace("i4\tG\tG\tA", "i4\tG\tG", 1))


def bad_call(path):
    text = gzip.decompress(path.read_bytes()).decode().replace("1/1:7", "1/3:7", 1)
    path.write_bytes(gzip.compress(text.encode()))


def bad_columns(path):
    text = gzip.decompress(path.read_bytes()).decode().replace("\t./.:7", "", 1)
    path.write_bytes(gzip.compress(text.encode()))


def truncated_gzip(path):
    path.write_bytes(path.read_bytes()[:-12])


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (damaged(write_plink, cut), "bytes instead of"),
        (damaged(write_plink, no_magic), "no PLINK"),
        (damaged(write_plink, by_individual), "byte 3"),
        (damaged(write_plink, short_bim), "line 2"),
        (damaged(write_plink, no_fam), "is missing"),
        (damaged(write_structure, odd_row), "line 11"),
        (damaged(write_structure, short_row), "line 9|line 10"),
        (damaged(write_vcf, bad_call), r"line \d+, column \d+"),
        (damaged(write_vcf, bad_columns), r"line \d+: 13 columns instead of 14"),
        (damaged(write_vcf, truncated_gzip), "damaged"),
    ],
)
def test_a_damaged_file_is_refused_with_its_place(make, words, tmp_path):
    with pytest.raises(DataError, match=words):
        read_genotypes(make(tmp_path))


def test_other_bad_sources_are_refused(tmp_path):
    with pytest.raises(DataError, match="no file"):
        read_genotypes(tmp_path / "none.bed")
    with pytest.raises(DataError, match="expected a path"):
        read_genotypes(3)
    with pytest.raises(DataError, match="is no genotype"):
        read_genotypes(pd.DataFrame({"x": ["1/", "1/2"], "y": ["1/1", "1/2"]}))
    with pytest.raises(ParameterError, match="no column"):
        read_genotypes(pd.DataFrame({"x": ["1/1"]}), ignore="z")
    with pytest.raises(DataError, match="row 0, column 1 holds 3"):
        Genotypes.from_dosage([[0, 3]])


def test_the_shipped_formats_of_one_data_set_agree(reference_data):
    folder = reference_data / "genetics"
    bed = read_genotypes(folder / "faststructure_original" / "testdata.bed")
    text = read_genotypes(folder / "faststructure_test.str")
    np.testing.assert_array_equal(bed.dosage, 2 - text.dosage)  # code 2 of the .str file is A1, the first of the .bim
    cats = read_genotypes(folder / "nancycats.str")
    assert cats.fingerprint == read_genotypes(folder / "nancycats.csv", groups="colony").fingerprint
    assert (cats.n_individuals, cats.n_loci, len(set(cats.groups))) == (237, 9, 17)
