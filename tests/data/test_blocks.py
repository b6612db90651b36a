"""Blocks and map-reduce: the same bits whatever the threads, the parts and the storage; errors and Ctrl-C surface."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import learnable
from learnable.core.errors import DataError
from learnable.core.estimator import StopFlag
from learnable.core.threads import _controller, one_thread_blas
from learnable.data.blocks import Blocks, Part, grid_rows, map_reduce

pytestmark = pytest.mark.threaded  # BLAS with all its threads

N_ROWS, N_COLUMNS = 5003, 300  # 2**20 // 300 elements: two blocks of 2048 rows and a short one


def blas_threads():
    return [library["num_threads"] for library in _controller().info()]


class Moments(NamedTuple):
    gram: np.ndarray
    cross: np.ndarray
    weighted: np.ndarray
    starts: tuple

    def __add__(self, other):
        return Moments(*(a + b for a, b in zip(self, other, strict=True)))


def moments(block):
    """Several BLAS calls whose rounding depends on the cut of the rows and on the layout."""
    X, y, weight, start = block
    return Moments(X.T @ X, X.T @ y, weight @ y, (start,))


def reduce_moments(parts, n_jobs, rows=None):
    return map_reduce(Blocks(parts, rows=rows), moments, Moments.__add__, n_jobs=n_jobs)


def assert_same_bits(a, b):
    for left, right in zip(a, b, strict=True):
        left, right = (x.toarray() if sp.issparse(x) else np.asarray(x) for x in (left, right))
        assert left.tobytes() == right.tobytes()


@pytest.fixture(scope="module")
def whole():
    rng = np.random.default_rng(7)
    X = rng.normal(size=(N_ROWS, N_COLUMNS)).astype(np.float32).astype(np.float64)
    return Part(X, rng.normal(size=(N_ROWS, 3)), rng.uniform(0.5, 2.0, N_ROWS))


def cut(part, cuts):
    edges = [0, *cuts, part.X.shape[0]]
    return [Part(*(c[a:b] for c in part)) for a, b in pairwise(edges)]


SEVEN = [1, 700, 701, 2048, 2050, 4999]


def test_the_grid_has_several_blocks(whole):
    assert len(Blocks([whole])) == 3


@pytest.mark.sampled(6)
@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("cuts", [[], SEVEN, range(1, N_ROWS)], ids=["one", "seven", "rows"])
@pytest.mark.parametrize("storage", ["C", "F", "float32", "strided", "big-endian", "read-only"])
def test_dense_sums_have_the_same_bits(whole, n_jobs, cuts, storage):
    expected = reduce_moments([whole], 1)
    X, y, weight = whole
    match storage:
        case "F":
            X, y = np.asfortranarray(X), np.asfortranarray(y)
        case "float32":
            X = X.astype(np.float32)
        case "strided":
            X, y, weight = X.repeat(2, 1)[:, ::2], y.repeat(2, 1)[:, ::2], weight.repeat(2)[::2]
        case "big-endian":
            X = X.astype(">f8")
        case "read-only":
            X = X.view()
            X.flags.writeable = False
    assert_same_bits(reduce_moments(cut(Part(X, y, weight), cuts), n_jobs), expected)


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("cuts", [[], SEVEN, range(1, 600)], ids=["one", "seven", "rows"])
def test_sparse_sums_have_the_same_bits(whole, n_jobs, cuts):
    rng = np.random.default_rng(0)
    X = sp.csr_array(np.where(rng.uniform(size=whole.X.shape) < 0.02, whole.X, 0.0))
    part = whole._replace(X=X)
    expected = reduce_moments([part], 1, rows=512)
    assert_same_bits(reduce_moments(cut(part, cuts), n_jobs, rows=512), expected)
    float32 = part._replace(X=X.astype(np.float32))
    assert_same_bits(reduce_moments(cut(float32, cuts), n_jobs, rows=512), expected)


def test_the_order_of_the_sum_matters_here(whole):
    """Otherwise the tests above would pass without the fixed grid."""
    on_grid, off_grid = reduce_moments([whole], 1), reduce_moments([whole], 1, rows=1000)
    assert on_grid.gram.tobytes() != off_grid.gram.tobytes()


@settings(deadline=None)
@given(st.lists(st.integers(0, 12), min_size=1, max_size=6), st.integers(1, 9), st.booleans())
def test_blocks_hold_the_rows_in_order(sizes, rows, sparse):
    n = sum(sizes)
    X = np.arange(3.0 * n).reshape(n, 3)
    whole = Part(sp.csr_array(X) if sparse else X, np.arange(n), np.arange(n) + 0.5)
    edges = np.cumsum([0, *sizes])
    blocks = Blocks([Part(*(c[a:b] for c in whole)) for a, b in pairwise(edges)], rows)
    found = list(blocks)
    assert len(found) == len(blocks) == max(1, -(-n // rows))
    assert [block.start for block in found] == list(range(0, max(n, 1), rows))
    assert all(block.X.shape[0] == len(block.y) == len(block.weight) <= rows for block in found)
    assert np.array_equal(np.vstack([b.X.toarray() if sparse else b.X for b in found]), X)
    assert np.array_equal(np.concatenate([b.y for b in found]), whole.y)
    assert np.array_equal(np.concatenate([b.weight for b in found]), whole.weight)


@pytest.mark.parametrize("sparse", [False, True])
def test_every_so_many_rows_are_the_same_whatever_the_parts(sparse):
    X, y = np.arange(60.0).reshape(30, 2), np.arange(30)
    whole = Part(sp.csr_array(X) if sparse else X, y)
    for stride in (1, 3, 7, 40):
        for cuts in ([], [1, 2, 9, 10], range(1, 30)):
            edges = [0, *cuts, 30]
            picked, targets, weight = Blocks(
                [Part(whole.X[a:b], y[a:b], y[a:b] / 2) for a, b in pairwise(edges)]
            ).every(stride)
            assert np.array_equal(weight, y[::stride] / 2)
            assert np.array_equal(picked.toarray() if sparse else picked, X[::stride])
            assert np.array_equal(targets, y[::stride])


def test_a_block_is_a_view_where_it_can_be():
    X, y = np.ones((1000, 4)), np.ones(1000)
    block = Blocks([Part(X, y)], rows=100)[3]
    assert np.shares_memory(block.X, X) and np.shares_memory(block.y, y)
    csr = sp.csr_array(X)
    assert np.shares_memory(Blocks([Part(csr)], rows=100)[3].X.data, csr.data)


def test_a_block_has_the_promised_layout():
    X = np.asfortranarray(np.ones((50, 4), dtype=np.float32))
    block = Blocks([Part(X, np.asfortranarray(np.ones((50, 2))), np.ones(100, np.float32)[::2])], rows=20)[1]
    assert block.X.dtype == np.float64 and block.X.flags.c_contiguous
    assert block.y.flags.c_contiguous
    assert block.weight.dtype == np.float64 and block.weight.flags.c_contiguous
    unaligned = np.frombuffer(b"x" + np.ones((6, 2)).tobytes(), offset=1).reshape(6, 2)
    assert not unaligned.flags.aligned and Blocks([Part(unaligned)])[0].X.flags.aligned


def test_the_grid_depends_on_the_number_of_columns_alone():
    assert [grid_rows(d) for d in (1, 16, 17, 100, 4096, 10**7)] == [2**16, 2**16, 2**15, 2**13, 2**8, 2**8]
    assert Blocks([Part(np.ones((3, 100)))]).rows == Blocks([Part(np.ones((9000, 100), np.float32))]).rows


def test_there_is_no_block_outside():
    blocks = Blocks([Part(np.ones((5, 2)))])
    for number in (-1, 1):
        with pytest.raises(IndexError):
            blocks[number]


@pytest.mark.parametrize(
    "parts, message",
    [
        ([], "at least one part"),
        ([Part(np.ones((2, 3))), Part(np.ones((2, 4)))], "part 1 has 4 columns"),
        ([Part(np.ones((2, 3))), Part(sp.csr_array(np.ones((2, 3))))], "part 1 has 3 columns .csr_array."),
        ([Part(np.ones((2, 3)), np.ones(2)), Part(np.ones((2, 3)))], "every part must have y, or none"),
        ([Part(np.ones((2, 3)), None, np.ones(3))], "2 rows in X but 3 in weight"),
    ],
)
def test_parts_that_do_not_fit_together_are_refused(parts, message):
    with pytest.raises(DataError, match=message):
        Blocks(parts)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_results_are_merged_in_order(n_jobs):
    def slow_first(number):
        time.sleep(0.02 if number % 4 == 0 else 0.0)
        return [number]

    assert map_reduce(range(40), slow_first, lambda a, b: a + b, n_jobs=n_jobs) == list(range(40))


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_result_may_be_none(n_jobs):
    merged = []
    assert map_reduce(range(9), lambda number: None, lambda a, b: merged.append((a, b)), n_jobs=n_jobs) is None
    assert merged == [(None, None)] * 8


@pytest.mark.parametrize("threads", [2, 3])
def test_the_number_of_unmerged_results_is_bounded(threads, monkeypatch):
    monkeypatch.setattr("learnable.core.threads.thread_budget", lambda: threads)  # on machines of one core too
    changed, counts, peak = threading.Condition(), {"made": 0, "merged": 1}, []

    def make(number):
        with changed:
            counts["made"] += 1
            peak.append(counts["made"] - counts["merged"])
            changed.notify_all()
        return number

    def merge_late(a, b):
        with changed:  # until the other threads are ahead, however slow they are
            changed.wait_for(lambda: counts["made"] == 100 or counts["made"] - counts["merged"] >= 2, timeout=60.0)
        time.sleep(0.002)  # time to go too far ahead
        with changed:
            counts["merged"] += 1
        return a + b

    assert map_reduce(range(100), make, merge_late, n_jobs=threads) == sum(range(100))
    assert 2 <= max(peak) <= 2 * threads + 1  # two per thread, and the one in the merger's hands


def test_an_error_in_the_only_block_surfaces_and_raises_the_flag():
    before, flag = blas_threads(), StopFlag()
    with pytest.raises(ZeroDivisionError):
        map_reduce([0], lambda number: 1 // number, lambda a, b: a + b, flag=flag)
    assert flag.raised
    assert blas_threads() == before


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_error_in_a_statistic_surfaces(n_jobs, error):
    before, done, flag = blas_threads(), [], StopFlag()

    def statistic(number):
        done.append(number)
        if number == 5:
            raise error("in block 5")
        return number

    with pytest.raises(error, match="in block 5"):
        map_reduce(range(1000), statistic, lambda a, b: a + b, n_jobs=n_jobs, flag=flag)
    assert flag.raised
    assert len(done) < 20  # the others were never begun
    assert blas_threads() == before
    assert not [t for t in threading.enumerate() if t.name.startswith("learnable")]


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_error_in_merge_surfaces(n_jobs):
    with pytest.raises(ZeroDivisionError):
        map_reduce(range(10), lambda number: number, lambda a, b: a / 0, n_jobs=n_jobs)
    assert not [t for t in threading.enumerate() if t.name.startswith("learnable")]


def with_source():
    return os.environ | {"PYTHONPATH": str(Path(learnable.__file__).parents[1])}


INTERRUPTED = r"""
import os, sys, numpy as np
from learnable.data import Blocks, Part, map_reduce

X = np.ones((4096, 256))
class Endless:
    def __len__(self): return 10**9
    def __getitem__(self, number): return X
def statistic(X):
    os.write(1, b"working\n")  # in one piece, whatever the other thread writes
    return float(sum((X.T @ X)[0, 0] for _ in range(5)))
try:
    map_reduce(Endless(), statistic, lambda a, b: a + b, n_jobs=int(sys.argv[1]))
except KeyboardInterrupt:
    print("interrupted", flush=True)
    sys.exit(7)
"""


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_ctrl_c_ends_a_long_sum_at_once(n_jobs):
    process = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, str(n_jobs)],
        stdout=subprocess.PIPE,
        text=True,
        env=with_source(),
    )
    try:
        for _ in range(10):
            assert process.stdout.readline() == "working\n"
        process.send_signal(signal.SIGINT)
        # The promise is one second on an idle machine; the sum itself would take days.
        output, _ = process.communicate(timeout=120)
    finally:
        process.kill()
    assert process.returncode == 7
    assert output.endswith("interrupted\n")


def test_one_thread_blas_nests_and_is_restored():
    before = blas_threads()
    with one_thread_blas():
        with one_thread_blas():
            assert set(blas_threads()) == {1}
        assert set(blas_threads()) == {1}
    assert blas_threads() == before


def test_concurrent_sums_leave_the_blas_threads_as_they_were():
    before = blas_threads()

    def sums(seed):
        X = np.random.default_rng(seed).normal(size=(400, 5))
        for _ in range(20):
            map_reduce(Blocks([Part(X)], rows=50), lambda b: b.X.T @ b.X, lambda a, b: a + b, n_jobs=2)

    run_on_threads(sums, 4)
    assert blas_threads() == before


def test_a_sum_on_any_thread_uses_one_blas_thread():
    with one_thread_blas():  # threadpoolctl remembers which thread was the first to set a limit
        pass
    seen = []

    def sums(_):
        map_reduce(range(8), lambda number: seen.extend(blas_threads()), lambda a, b: None, n_jobs=2)

    run_on_threads(sums, 3)
    assert set(seen) == {1}


OVERLAPPING = """
import threading
from learnable.core.threads import _controller, one_thread_blas

def count(): print(max(library["num_threads"] for library in _controller().info()), flush=True)
first_in, second_in, first_out, end = (threading.Event() for _ in range(4))

def first():
    with one_thread_blas():
        first_in.set()
        second_in.wait()
    first_out.set()
    end.wait()

def second():
    first_in.wait()
    with one_thread_blas():
        second_in.set()
        first_out.wait()
        count()

count()
threads = [threading.Thread(target=first), threading.Thread(target=second)]
for thread in threads: thread.start()
threads[1].join()
count()
end.set()
"""


def test_overlapping_limits_of_two_threads_end_with_the_last():
    outcome = subprocess.run(
        [sys.executable, "-c", OVERLAPPING], capture_output=True, text=True, timeout=60, env=with_source()
    )
    before, within, after = outcome.stdout.split()
    assert within == "1"
    assert after == before


def run_on_threads(task, n_threads):
    threads = [threading.Thread(target=task, args=(number,)) for number in range(n_threads)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
