"""Tasks that stand by at the workers: the same bits as passes by tasks of Dask, whatever happens to them."""

import os
import signal
import socket
import threading

import numpy as np
import pytest
from distributed import Client, LocalCluster
from tests.scale.faults import cluster_of, on_dask, rows

from learnable import GaussianMixture, LogisticRegression
from learnable.core.errors import DataError
from learnable.data import dask_posts
from learnable.data.dask_posts import Line, PostLostError
from learnable.data.memory import part_memory
from learnable.data.sources import open_source

X, Y, LABELS = rows()


@pytest.fixture(scope="module")
def client():
    with cluster_of(2) as client:
        yield client


@pytest.fixture
def small_tables(monkeypatch):
    """Let tasks stand by for tables as small as these."""
    monkeypatch.setattr(dask_posts, "LEAST_BYTES", 0)


def counted(block):
    return [(block.start, float(block.X.sum()))]


def joined(a, b):
    return a + b


def remembered(block):
    """Return how often the partition was asked, as far as its task remembers."""
    memory = part_memory()
    if memory is None:
        return [-1]
    memory["passes"] = memory.get("passes", 0) + 1
    return [memory["passes"]]


def blocks_of(n_parts=7):
    return open_source("Model", on_dask(X, n_parts), on_dask(Y, n_parts), None, "numeric").blocks


def test_posts_give_the_bits_of_tasks(client, small_tables):
    blocks = blocks_of()
    blocks.scanned()
    by_tasks = blocks.map_reduce(counted, joined)
    assert blocks._kept.posts is None
    assert blocks.map_reduce(counted, joined) == by_tasks
    assert len(blocks._kept.posts.lines) == 2 and blocks._kept.n_lost == 0
    for model, y in ((LogisticRegression(), LABELS), (GaussianMixture(3, random_state=0), None)):
        args = (on_dask(X),) if y is None else (on_dask(X), on_dask(y))
        at_posts = model.fit(*args)
        found = {name: np.asarray(value).tobytes() for name, value in vars(at_posts).items() if name.endswith("_")}
        dask_posts.LEAST_BYTES = 2**40
        again = model.fit(*args)
        dask_posts.LEAST_BYTES = 0
        for name, value in vars(again).items():
            if name.endswith("_") and name != "certificate_":
                assert np.asarray(value).tobytes() == found[name], name


def test_a_task_remembers_what_it_left(client, small_tables):
    blocks = blocks_of()
    blocks.scanned()
    assert blocks.map_reduce(remembered, joined) == [-1] * 7
    assert blocks.map_reduce(remembered, joined) == [1] * 7
    assert blocks.map_reduce(remembered, joined) == [2] * 7


def test_a_broken_line_costs_a_pass_by_tasks(client, small_tables):
    blocks = blocks_of()
    blocks.scanned()
    expected = blocks.map_reduce(counted, joined)
    blocks.map_reduce(counted, joined)
    blocks._kept.posts.lines[1].peer.shutdown(socket.SHUT_RDWR)
    assert blocks.map_reduce(counted, joined) == expected
    assert blocks._kept.n_lost == 1 and blocks._kept.posts is None
    assert blocks.map_reduce(remembered, joined) == [1] * 7  # new tasks, which remember nothing
    assert blocks.map_reduce(counted, joined) == expected


def fails(block):
    if part_memory() is not None:
        raise DataError("Model: this is said as it is.")
    return [0]


def test_errors_of_the_data_are_raised_as_they_are(client, small_tables):
    blocks = blocks_of()
    blocks.scanned()
    blocks.map_reduce(counted, joined)
    with pytest.raises(DataError, match="this is said as it is"):
        blocks.map_reduce(fails, joined)
    assert len(blocks.map_reduce(counted, joined)) == 7


def dies_once(number, block):
    """End the process of the worker, the first time that it is asked at a post."""
    if part_memory() is not None and block.start == 0 and os.environ.pop("LEARNABLE_TEST_DIES", ""):
        os.kill(os.getpid(), signal.SIGKILL)
    return counted(block)


def arm():
    os.environ["LEARNABLE_TEST_DIES"] = "yes"


@pytest.mark.long
def test_a_worker_that_is_killed_in_a_pass_changes_no_bit(small_tables):
    from functools import partial

    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster, Client(cluster) as client:
        blocks = blocks_of()
        blocks.scanned()
        expected = blocks.map_reduce(counted, joined)
        blocks.map_reduce(counted, joined)
        client.run(arm)
        assert blocks.map_reduce(partial(dies_once, 0), joined) == expected
        assert blocks._kept.n_lost == 1
        assert blocks.map_reduce(counted, joined) == expected


def pair():
    server = socket.create_server(("127.0.0.1", 0))
    here = socket.create_connection(server.getsockname())
    there, _ = server.accept()
    server.close()
    return here, there


def test_what_does_not_know_the_secret_is_not_heard():
    here, there = pair()
    asks = Line(here, b"a" * 32, asks=True)
    answers = Line(there, b"b" * 32, asks=False)
    asks.send(b"hello")
    with pytest.raises(PostLostError, match="does not come from this fit"):
        answers.receive()
    asks.close()
    answers.close()


def test_a_message_that_is_sent_again_is_not_heard():
    here, there = pair()
    asks = Line(here, b"a" * 32, asks=True)
    answers = Line(there, b"a" * 32, asks=False)
    asks.send(b"one")
    assert answers.receive() == b"one"
    asks._sent = 0  # the first message again
    asks.send(b"one")
    with pytest.raises(PostLostError, match="does not come"):
        answers.receive()
    asks.close()
    answers.close()


def test_large_messages_pass_both_ways():
    here, there = pair()
    asks = Line(here, b"a" * 32, asks=True)
    answers = Line(there, b"a" * 32, asks=False)
    data = np.random.default_rng(0).bytes(2**22)
    sender = threading.Thread(target=asks.send, args=(data,))
    sender.start()
    assert answers.receive() == data
    sender.join()
    answers.send(b"")
    assert asks.receive() == b""
    asks.close()
    answers.close()
