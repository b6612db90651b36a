"""The fingerprint: against an oracle in Python integers, and the laws that make it a fingerprint."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from tests.oracles import fingerprint as oracle

from learnable.data import Blocks, Part, scan

FINITE = st.floats(allow_nan=False, allow_infinity=False)
# Few distinct, short numbers: the case in which a weak hash collides.
SMALL = st.integers(-3, 3).map(float)

no_deadline = settings(deadline=None)  # the first example may compile a kernel


@st.composite
def tables(draw, min_rows=1, min_columns=1):
    elements = st.one_of(SMALL, FINITE)
    n, d = draw(st.integers(min_rows, 8)), draw(st.integers(min_columns, 6))
    X = draw(hnp.arrays(np.float64, (n, d), elements=elements))
    y = draw(st.one_of(st.none(), hnp.arrays(np.float64, n, elements=elements)))
    weight = draw(st.one_of(st.none(), hnp.arrays(np.float64, n, elements=st.floats(0.25, 8.0))))
    return Part(X, y, weight)


def checksum(*parts, rows=None, n_jobs=1, classes=None):
    return scan(Blocks(list(parts), rows=rows), n_jobs, classes).checksum


def take(part, rows):
    return Part(*(None if column is None else column[rows] for column in part))


def nested(part):
    X, y, weight = part
    targets = None if y is None else y.reshape(len(y), -1).tolist()
    return X.tolist(), targets, None if weight is None else weight.tolist()


@no_deadline
@given(tables())
def test_it_is_what_the_definition_says(part):
    assert checksum(part) == oracle.checksum(*nested(part))


@pytest.mark.threaded
def test_it_is_what_the_definition_says_on_several_blocks_and_targets():
    rng = np.random.default_rng(0)
    part = Part(rng.normal(size=(700, 3)), rng.normal(size=(700, 2)), rng.uniform(size=700))
    expected = oracle.checksum(*nested(part))
    assert checksum(part, rows=64, n_jobs=2) == expected
    assert checksum(part) == expected


def test_a_known_value_stays():
    """Certificates in stored models hold fingerprints: the definition may not drift."""
    X, y = np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([0, 1])
    assert oracle.checksum(X.tolist(), [[0.0], [1.0]], labels=["no", "yes"]) == 0x49933AB0AE1DA4EE
    assert checksum(Part(X, y), classes=np.array(["no", "yes"])) == 0x49933AB0AE1DA4EE


@no_deadline
@given(tables(), st.randoms(use_true_random=False))
def test_the_order_of_the_rows_does_not_matter(part, random):
    order = list(range(len(part.X)))
    random.shuffle(order)
    assert checksum(take(part, order)) == checksum(part)


@pytest.mark.threaded
@no_deadline
@given(tables(), st.integers(1, 8), st.integers(0, 8))
def test_blocks_and_parts_do_not_matter(part, rows, cut):
    assert checksum(part, rows=rows, n_jobs=2) == checksum(part)
    assert checksum(take(part, slice(cut)), take(part, slice(cut, None))) == checksum(part)


@no_deadline
@given(tables())
def test_the_container_does_not_matter(part):
    X = part.X
    with_holes = np.zeros((2 * X.shape[0], 3 * X.shape[1]))
    with_holes[::2, ::3] = X
    twins = [
        np.asfortranarray(X),
        with_holes[::2, ::3],
        sp.csr_array(X),
        sp.csc_matrix(X),
        sp.csr_array((X.ravel(), np.tile(np.arange(X.shape[1]), len(X)), np.arange(len(X) + 1) * X.shape[1])),
    ]
    for twin in twins:
        assert checksum(part._replace(X=twin)) == checksum(part)


@no_deadline
@given(hnp.arrays(np.float32, (4, 3), elements=st.floats(width=32, allow_nan=False, allow_infinity=False)))
def test_float32_and_its_float64_copy_are_the_same_data(X):
    assert checksum(Part(X)) == checksum(Part(X.astype(np.float64)))
    assert checksum(Part(sp.csr_array(X))) == checksum(Part(X))


def test_minus_zero_is_zero():
    zero = np.zeros((3, 2))
    assert checksum(Part(-zero, -zero[:, 0])) == checksum(Part(zero, zero[:, 0]))
    explicit = sp.csr_array((np.array([-0.0]), np.array([1]), np.array([0, 0, 1, 1])), shape=(3, 2))
    assert checksum(Part(explicit)) == checksum(Part(zero))


@no_deadline
@given(tables())
def test_no_weight_is_weight_one(part):
    one = part._replace(weight=np.ones(len(part.X)))
    assert checksum(one) == checksum(part._replace(weight=None))


@no_deadline
@given(tables(), st.data())
def test_a_change_of_any_single_element_changes_it(part, data):
    columns = {name: column for name, column in part._asdict().items() if column is not None}
    name = data.draw(st.sampled_from(sorted(columns)))
    changed = columns[name].copy()
    place = tuple(data.draw(st.integers(0, size - 1)) for size in changed.shape)
    old = changed[place]
    changed[place] = data.draw(st.one_of(FINITE, SMALL, st.sampled_from([np.nextafter(old, 9e9), -old])))
    assume(changed[place] != old)
    assert checksum(part._replace(**{name: changed})) != checksum(part)


@no_deadline
@given(tables(min_columns=2), st.data())
def test_swapping_two_columns_changes_it(part, data):
    d = part.X.shape[1]
    i, j = data.draw(st.lists(st.integers(0, d - 1), min_size=2, max_size=2, unique=True))
    order = np.arange(d)
    order[[i, j]] = j, i
    assume(not np.array_equal(part.X[:, i], part.X[:, j]))
    # With the same rows in another order it would be the same table.
    assume(sorted(map(tuple, part.X.tolist())) != sorted(map(tuple, part.X[:, order].tolist())))
    assert checksum(part._replace(X=part.X[:, order])) != checksum(part)


@no_deadline
@given(tables(min_rows=2), st.data())
def test_swapping_two_labels_changes_it(part, data):
    n = len(part.X)
    i, j = data.draw(st.lists(st.integers(0, n - 1), min_size=2, max_size=2, unique=True))
    y = np.arange(n) % 2 if part.y is None else part.y.copy()
    part = part._replace(y=y)
    weight = np.ones(n) if part.weight is None else part.weight
    assume(y[i] != y[j] and (weight[i] != weight[j] or not np.array_equal(part.X[i], part.X[j])))
    swapped = y.copy()
    swapped[[i, j]] = y[[j, i]]
    assert checksum(part._replace(y=swapped)) != checksum(part)


def test_columns_of_zeros_and_ones_are_told_apart():
    """Bits of small integers sit at the top of a float64, where a plain product would lose the multiplier."""
    unit_rows = np.eye(1000)
    assert len({checksum(Part(unit_rows[i : i + 1])) for i in range(1000)}) == 1000


@pytest.mark.parametrize("axis", [0, 1])
def test_a_further_row_or_column_of_zeros_changes_it(axis):
    X = np.arange(6.0).reshape(3, 2)
    longer = np.pad(X, [(0, 1 - axis), (0, axis)])
    assert checksum(Part(longer)) != checksum(Part(X))
    assert checksum(Part(X, np.zeros(3))) != checksum(Part(X))
    assert checksum(Part(X, np.zeros((3, 2)))) != checksum(Part(X, np.zeros(3)))
    assert checksum(Part(X, np.zeros((3, 1)))) == checksum(Part(X, np.zeros(3)))


def test_labels_belong_to_the_data():
    part = Part(np.eye(2), np.array([0, 1]))
    as_int, as_float = np.array([0, 1]), np.array([0.0, 1.0])
    assert checksum(part, classes=as_int) == checksum(part, classes=as_float)
    assert checksum(part, classes=as_int) == checksum(part, classes=np.array([False, True]))
    assert checksum(part, classes=np.array(["a", "b"])) == checksum(part, classes=np.array(["a", "b"], object))
    different = [as_int, np.array([0, 2]), np.array(["0", "1"]), np.array(["0", "2"])]
    assert len({checksum(part, classes=labels) for labels in different}) == len(different)


@no_deadline
@given(tables(), st.sampled_from([np.nan, np.inf, -np.inf]), st.data())
def test_rows_that_are_not_finite_are_counted(part, value, data):
    X = part.X.copy()
    bad = data.draw(st.sets(st.integers(0, len(X) - 1)))
    for row in bad:
        X[row, data.draw(st.integers(0, X.shape[1] - 1))] = value
    for container in (X, np.asfortranarray(X), sp.csr_array(X)):
        assert scan(Blocks([Part(container)], rows=3), 2).bad_rows == len(bad)
    assert scan(Blocks([Part(np.full((2, 2), np.finfo(float).max))])).bad_rows == 0


@given(tables(min_rows=2, min_columns=2))
@no_deadline
def test_the_memory_order_does_not_matter(part):
    """Rows that lie by columns are scanned without becoming rows."""
    by_columns = part._replace(X=np.asfortranarray(part.X))
    assert by_columns.X.flags.f_contiguous and not by_columns.X.flags.c_contiguous
    assert scan(Blocks([by_columns])) == scan(Blocks([part]))


def test_many_rows_by_columns_are_scanned_in_runs():
    rng = np.random.default_rng(0)
    X, y, weight = rng.standard_normal((9001, 3)), rng.standard_normal((9001, 2)), rng.random(9001)
    X[[5, 5, 8999], [0, 1, 2]] = np.nan
    one, two = (scan(Blocks([Part(table, y, weight)]), 2) for table in (X, np.asfortranarray(X)))
    assert one == two and two.bad_rows == 2
