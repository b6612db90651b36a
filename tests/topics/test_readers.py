"""Genotypes come out of every format alike, and what is wrong with a file is said with its line and column."""

import gzip
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from learnable.core.errors import DataError, ParameterError
from learnable.topics import Genotypes, PopulationStructure, read_genotypes
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
    with gzip.open(folder / "a.vcf.gz", "wt", compresslevel=1) as file:
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


def write_csv(folder, dosage=DOSAGE):
    words = {-1: "", 0: "A/A", 1: "A/G", 2: "G/G"}
    columns = {f"rs{j}": [words[int(g)] for g in dosage[:, j]] for j in range(dosage.shape[1])}
    pd.DataFrame({"name": [f"i{i}" for i in range(len(dosage))], **columns}).to_csv(folder / "a.csv", index=False)
    return folder / "a.csv"


def write_parquet(folder, dosage=DOSAGE):
    frame = pd.DataFrame(np.where(dosage < 0, np.nan, dosage), columns=[f"rs{j}" for j in range(dosage.shape[1])])
    frame.insert(0, "name", [f"i{i}" for i in range(len(dosage))])
    frame.to_parquet(folder / "a.parquet", row_group_size=max(1, len(dosage) // 3))
    return folder / "a.parquet"


WRITERS = [write_plink, write_structure, write_vcf, write_csv, write_parquet]


@pytest.mark.parametrize("write", WRITERS)
def test_large_tables_are_read_by_pieces_and_kept_in_two_bits(write, tmp_path, monkeypatch):
    monkeypatch.setattr("learnable.topics.readers.CELLS_AT_ONCE", 700)
    monkeypatch.setattr("learnable.topics.readers._LOCI_AT_ONCE", 64)
    monkeypatch.setattr("learnable.topics.table_readers.CELLS_AT_ONCE", 700)
    monkeypatch.setattr("learnable.topics.table_readers._AT_ONCE", 50)
    dosage = np.random.default_rng(0).integers(-1, 3, size=(41, 301))
    found = read_genotypes(write(tmp_path, dosage))
    assert found.packed is not None
    assert found.packed.nbytes == 301 * 11
    np.testing.assert_array_equal(found.dosage, dosage)
    assert found.fingerprint == Genotypes.from_dosage(dosage).fingerprint
    assert found.individuals == tuple(f"i{i}" for i in range(41))


def test_a_locus_with_more_alleles_or_half_a_genotype_keeps_the_others(tmp_path):
    """What does not fit in two bits turns the table to bytes, at whatever row it comes."""
    (tmp_path / "a.str").write_text("a 1 2 5\na 2 2 5\nb 3 2 5\nb 1 -9 5\nc 4 1 5\nc 4 1 5\n")
    found = read_genotypes(tmp_path / "a.str")
    assert found.packed is None
    assert found.allele_names == (("1", "2", "3", "4"), ("1", "2"), ("5",))
    assert found.alleles.tolist() == [
        [[0, 1], [1, 1], [0, 0]],
        [[2, 0], [1, -1], [0, 0]],
        [[3, 3], [0, 0], [0, 0]],
    ]
    head = "#CHROM POS ID REF ALT QUAL FILTER INFO FORMAT x y".replace(" ", "\t")
    lines = ["1 5 . A G . . . GT 0/1 1|1", "1 6 . A G,T . . . GT 0/2 ./.", "1 7 s A . . . . GT 0/0 0/."]
    (tmp_path / "a.vcf").write_text("\n".join([head, *(line.replace(" ", "\t") for line in lines)]) + "\n")
    found = read_genotypes(tmp_path / "a.vcf")
    assert found.loci == ("1:5", "1:6", "s")
    assert found.alleles.tolist() == [[[0, 1], [0, 2], [0, 0]], [[1, 1], [-1, -1], [0, -1]]]
    assert found.n_alleles.tolist() == [2, 3, 1]


def test_loci_with_one_allele_stay_packed_and_have_their_closed_form(tmp_path):
    dosage = np.array([[0, 1, 0], [0, 2, 0], [0, 0, 0]])
    found = read_genotypes(write_structure(tmp_path, dosage), n_labels=1)
    assert found.packed is not None
    assert found.n_alleles.tolist() == [1, 2, 1]
    assert found.counts().tolist() == [[2, 1, 1, 2], [2, 0, 2, 2], [2, 2, 0, 2]]
    model = PopulationStructure(1, method="ml").fit(found)
    np.testing.assert_allclose(model.P_[:, 0], [1.0, 0.5, 0.5, 1.0], atol=1e-6)
    assert model.log_likelihood_ == pytest.approx(6 * np.log(0.5), abs=1e-5)


_READ_ALL = """
import resource, sys
from learnable.topics import read_genotypes
small, large = sys.argv[1:5], sys.argv[5:]
for path in small:
    read_genotypes(path)  # imports and scratch
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for path in large:
    assert read_genotypes(path).packed is not None
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="peak memory is counted in other units elsewhere")
@pytest.mark.long
def test_reading_takes_little_memory(tmp_path):
    """1.2 million genotypes of each format: as Python's text they would take 60 bytes each, as bytes two."""
    dosage = np.random.default_rng(0).integers(0, 3, size=(400, 3000))
    sources = []
    for name, table in [("small", dosage[:40, :300]), ("large", dosage)]:
        (tmp_path / name).mkdir()
        sources += [str(write(tmp_path / name, table)) for write in WRITERS[1:]]
    found = subprocess.run(
        [sys.executable, "-c", _READ_ALL, *sources], capture_output=True, text=True, timeout=300, check=False
    )
    assert found.returncode == 0, found.stderr
    assert int(found.stdout) < 45_000  # kilobytes


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


def two_bytes(path):
    path.write_bytes(path.read_bytes()[:2])


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
        (damaged(write_plink, two_bytes), "2 bytes instead of"),
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
    with pytest.raises(DataError, match="row 1, column 'x': '1/' is no genotype"):
        read_genotypes(pd.DataFrame({"x": ["1/", "1/2"], "y": ["1/1", "1/2"]}))
    (tmp_path / "a.csv").write_text("x,y\n1/1,1/2\n1/2,/2\n")
    with pytest.raises(DataError, match=r"a\.csv, line 3, column 'y'"):
        read_genotypes(tmp_path / "a.csv")
    (tmp_path / "b.csv").write_text("x,y\n0,1\n1,0.5\n")
    with pytest.raises(DataError, match=r"b\.csv, line 3, column 'y': copies .* got 0\.5"):
        read_genotypes(tmp_path / "b.csv")
    (tmp_path / "c.parquet").write_text("no parquet")
    with pytest.raises(DataError, match=r"c\.parquet"):
        read_genotypes(tmp_path / "c.parquet")
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
