"""Rows that stay on the workers: the same bits as rows that are read in every pass, in however many answers."""

import numpy as np
import pytest
from tests.scale.faults import cluster_of, on_dask, rows

from learnable import KMeans, LogisticRegression
from learnable.data import dask_kept
from learnable.data.dask_kept import Group, share_out, sum_group
from learnable.data.sources import open_source

X, Y, LABELS = rows()
SEEN = []  # what the workers, which are threads of this process, were asked for


def one_answer(*args):
    SEEN.append("answer")
    return sum_group(*args)


def load(block):
    if len(block) > 1:  # not the look at the type of the result
        SEEN.append("load")
    return block


@pytest.fixture(scope="module")
def client():
    with cluster_of(2) as client:
        yield client


def counted(block):
    return [(block.start, float(block.X.sum()))]


def joined(a, b):
    return a + b


def swept(blocks):
    blocks.scanned()  # the first pass, which reads
    return blocks.map_reduce(counted, joined)


def blocks_of(n_parts=7):
    return open_source("Model", on_dask(X, n_parts), on_dask(Y, n_parts), None, "numeric").blocks


def test_kept_rows_give_the_bits_of_rows_that_are_read(client, monkeypatch):
    kept = blocks_of()
    found = swept(kept)
    assert kept._kept.futures is not None and len(kept._kept.futures) == 7
    monkeypatch.setattr(dask_kept, "_SHARE", 0.0)
    read = blocks_of()
    assert swept(read) == found and read._kept.futures is None and read._kept.refused
    model = LogisticRegression().fit(on_dask(X), on_dask(LABELS))
    monkeypatch.undo()
    again = LogisticRegression().fit(on_dask(X), on_dask(LABELS))
    assert again.coef_.tobytes() == model.coef_.tobytes()


def test_results_too_large_to_wait_come_in_several_answers(client, monkeypatch):
    expected = swept(blocks_of())
    monkeypatch.setattr(dask_kept, "_WAITING_BYTES", 1)
    monkeypatch.setattr(dask_kept, "sum_group", one_answer)
    SEEN.clear()
    assert swept(blocks_of()) == expected
    assert SEEN == ["answer"] * 7  # one for each partition, since no two of them fit


def test_rows_are_loaded_twice_and_no_more(client):
    blocks = open_source("Model", on_dask(X, 6).map_blocks(load, dtype=float), None, None, "none").blocks
    SEEN.clear()
    blocks.scanned()
    for _ in range(3):
        blocks.map_reduce(counted, joined)
    assert SEEN == ["load"] * 12


def test_rows_of_known_number_are_loaded_once_if_several_passes_are_expected(client):
    lazy = on_dask(X, 6).map_blocks(load, dtype=float)
    expected = swept(open_source("Model", lazy, None, None, "none").blocks)
    blocks = open_source("Model", lazy, None, None, "none").blocks
    blocks.expect_passes()
    SEEN.clear()
    assert swept(blocks) == expected
    assert SEEN == ["load"] * 6
    SEEN.clear()
    KMeans(3, max_iter=2, tol=0.5, random_state=0).fit(lazy)
    assert SEEN == ["load"] * 6


def test_rows_of_unknown_number_are_kept_when_they_have_been_counted(client):
    lazy = on_dask(X, 6).map_blocks(load, dtype=float)
    blocks = open_source("Model", lazy[lazy[:, 0] > -np.inf], None, None, "none").blocks
    blocks.expect_passes()
    SEEN.clear()
    blocks.scanned()
    assert blocks._kept.futures is None
    blocks.map_reduce(counted, joined)
    assert blocks._kept.futures is not None and SEEN == ["load"] * 12


def test_classes_share_the_rows_of_other_weights(client):
    blocks = open_source("Model", on_dask(X), on_dask(LABELS), None, "classes").blocks
    blocks.scanned()
    blocks.map_reduce(counted, joined)
    weighted = blocks.reweighted(np.array([1.0, 2.0]))
    assert weighted._kept is blocks._kept
    assert weighted.map_reduce(lambda block: float(block.weight.sum()), lambda a, b: a + b) == 360 + LABELS.sum()


def test_partitions_are_shared_out_among_the_threads_of_their_worker():
    homes = ["a", "b", "a", "a", "nowhere"]
    groups = share_out(homes, {"a": 2, "b": 4})
    assert groups == [Group("a", [0, 3]), Group("a", [2]), Group("b", [1]), Group("nowhere", [4])]
    assert sorted(number for group in groups for number in group.numbers) == list(range(5))
