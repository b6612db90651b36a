"""Sources of blocks beyond memory: the first sweep counts, checks and fingerprints whatever it is asked to sum."""

import numpy as np
import pytest

from learnable.core.errors import DataError
from learnable.data.blocks import Block, Blocks, Part, map_reduce, scan
from learnable.data.external import BadCellError, ExternalBlocks


class Shelf(ExternalBlocks):
    """Rows that are in memory, but handed out as if they were not; counts the sweeps."""

    def __init__(self, part, rows, names=None):
        super().__init__("Model", names, part.X.shape[1], 1)
        self.inside, self.sweeps, self.asked = Blocks([part], rows=rows), 0, 0

    def _run(self, statistic, merge, n_jobs, flag):
        self.sweeps += 1
        return map_reduce(self.inside, statistic, merge, n_jobs=n_jobs, flag=flag)

    def _first_block(self):
        self.asked += 1
        return self.inside[0]

    def _where(self, place, row):
        return f"row {place + row}"


@pytest.fixture
def part():
    rng = np.random.default_rng(3)
    return Part(rng.normal(size=(2500, 4)), rng.normal(size=2500), rng.uniform(0.5, 2, 2500))


def total(block):
    return block.X.sum(axis=0)


def test_a_source_goes_through_the_one_map_reduce(part):
    shelf = Shelf(part, 300)
    assert not shelf.in_memory
    expected = map_reduce(Blocks([part], rows=300), total, np.add, n_jobs=1)
    for n_jobs in (1, 2):
        assert np.array_equal(map_reduce(shelf, total, np.add, n_jobs=n_jobs), expected)


def test_the_first_sweep_counts_and_scans_without_another(part):
    shelf = Shelf(part, 300)
    map_reduce(shelf, total, np.add)
    assert shelf.n_rows == 2500
    assert shelf.scanned().weight == pytest.approx(part.weight.sum(), rel=1e-14)
    checksum, _ = scan(Blocks([part]))
    assert shelf.fingerprint(None) == f"{checksum:016x}"
    assert shelf.sweeps == 1
    map_reduce(shelf, total, np.add)
    assert shelf.sweeps == 2


def test_the_labels_enter_the_fingerprint(part):
    labels = np.array(["a", "b"])
    coded = part._replace(y=(part.y > 0).astype(np.int64))
    checksum, _ = scan(Blocks([coded]), classes=labels)
    assert Shelf(coded, 300).fingerprint(labels) == f"{checksum:016x}" != Shelf(coded, 300).fingerprint(labels[::-1])


def test_who_asks_before_any_sum_pays_one_sweep(part):
    shelf = Shelf(part, 300)
    assert shelf.n_rows == 2500 and shelf.sweeps == 1


def test_weights_of_one_each(part):
    assert Shelf(part._replace(weight=None), 300).scanned().weight == 2500.0


@pytest.mark.parametrize("stride", [1, 7, 250, 4000])
@pytest.mark.parametrize("rows", [9, 64, 5000])
def test_every_so_many_rows_are_those_of_memory(part, stride, rows):
    found, expected = Shelf(part, rows).every(stride), Blocks([part]).every(stride)
    for one, other in zip(found, expected, strict=True):
        assert np.array_equal(one, other)
    assert Shelf(part._replace(weight=None), rows).every(stride).weight is None


def test_the_head_is_read_once_and_is_a_copy_of_a_few_rows(part):
    shelf = Shelf(part, 2000)
    head = shelf.head()
    assert isinstance(head, Block) and head is shelf.head() and shelf.asked == 1
    assert np.array_equal(head.X, part.X[:1024]) and np.array_equal(head.y, part.y[:1024])
    assert np.array_equal(head.weight, part.weight[:1024])
    assert not np.shares_memory(head.X, part.X)


@pytest.mark.parametrize("value, word", [(np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")])
@pytest.mark.parametrize("row", [0, 700, 2499])
def test_a_number_that_is_none_is_found_in_the_first_sweep(part, value, word, row):
    part.X[row, 2] = value
    for names, column in ((None, "column 2"), (list("abcd"), "column 'c'")):
        shelf = Shelf(part, 300, names)
        with pytest.raises(DataError, match=f"Model: Input X contains {word}: row {row}, {column}"):
            map_reduce(shelf, total, np.add)
        assert shelf.sums is None  # nothing is known of a table that was not read to its end


def test_a_number_that_is_none_is_found_in_the_head(part):
    part.X[5, 1] = np.nan
    with pytest.raises(DataError, match="Input X contains NaN: row 5, column 1"):
        Shelf(part, 300).head()


def test_what_a_reader_finds_wrong_with_a_target_is_told(part):
    class Picky(Shelf):
        def _run(self, *_):
            raise BadCellError(600, 7, "price", np.nan)

        _first_block = _run

    for ask in (lambda shelf: shelf.head(), lambda shelf: shelf.scanned()):
        with pytest.raises(DataError, match=r"Model: Input y contains NaN: row 607, column 'price'\. Drop such rows"):
            ask(Picky(part, 300))


def test_only_the_first_error_of_a_row_by_row_order_is_named(part):
    part.X[100, 3] = part.X[100, 1] = part.X[2000, 0] = np.nan
    with pytest.raises(DataError, match="row 100, column 1"):
        Shelf(part, 5000).scanned()


def test_all_rows_at_once_are_refused(part):
    with pytest.raises(DataError, match="Model: with these settings all rows are needed in memory at once"):
        Shelf(part, 300).joined()


def test_an_error_of_a_statistic_surfaces_and_nothing_is_remembered(part):
    def fails(block):
        raise ZeroDivisionError

    shelf = Shelf(part, 300)
    with pytest.raises(ZeroDivisionError):
        map_reduce(shelf, fails, np.add)
    assert shelf.sums is None


def test_a_bad_cell_survives_the_way_from_a_worker():
    import pickle

    error = pickle.loads(pickle.dumps(BadCellError((3, 0), 5, "y", np.inf)))
    assert (error.place, error.row, error.column, error.value) == ((3, 0), 5, "y", np.inf)


def test_the_base_itself_reads_nothing():
    bare = ExternalBlocks("Model", None, 2, 1)
    for ask in (bare.head, bare.scanned, lambda: bare._where(0, 0)):
        with pytest.raises(NotImplementedError):
            ask()
