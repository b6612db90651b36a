"""A cluster in this process whose workers can be killed after so many tasks, and tables to fit on it."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager

import dask
import dask.array as da
import numpy as np
from distributed import Client, LocalCluster
from distributed.diagnostics.plugin import SchedulerPlugin

N_PARTS = 6
SETTINGS = {
    "distributed.scheduler.allowed-failures": 20,
    "distributed.comm.timeouts.connect": "10s",
    "distributed.scheduler.work-stealing": False,  # what runs where is then the same in every run
}


@contextmanager
def cluster_of(n_workers):
    """Yield a client of a cluster of workers with one thread each, all in this process."""
    with (
        dask.config.set(SETTINGS),
        LocalCluster(n_workers=n_workers, processes=False, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        client.wait_for_workers(n_workers, timeout=60)
        yield client


class After(SchedulerPlugin):
    """Does something once, when so many tasks have ended."""

    name = "after"

    def __init__(self, n_tasks, act):
        self.n_tasks = n_tasks
        self.act = act
        self.seen = 0

    def transition(self, key, start, finish, *args, worker=None, **kwargs):
        """Count tasks; called by the scheduler."""
        if start != "processing" or finish != "memory":
            return
        self.seen += 1
        if self.seen == self.n_tasks:
            task = asyncio.get_running_loop().create_task(self.act(worker))
            self.running = task  # a task that nobody holds may be collected before it ends


@contextmanager
def after(client, n_tasks, act):
    """Let `act(address of the worker)` run on the cluster's loop when so many tasks have ended; yield the count."""
    scheduler = client.cluster.scheduler
    plugin = After(n_tasks, act)
    client.cluster.sync(_add, scheduler, plugin)
    try:
        yield plugin
    finally:
        if scheduler.status.name == "running":
            client.cluster.sync(_remove, scheduler)


async def _add(scheduler, plugin):
    scheduler.add_plugin(plugin)


async def _remove(scheduler):
    scheduler.remove_plugin("after")


def killer(client):
    """Return a function that ends a worker at once: what it holds is lost, what it does is never told."""

    async def kill(address):
        scheduler = client.cluster.scheduler
        victim = next(worker for worker in client.cluster.workers.values() if worker.address == address)
        await scheduler.remove_worker(address, stimulus_id="killed by the test")
        await victim.close(timeout=0, executor_wait=False, nanny=False)

    return kill


def refill(client, n_workers):
    """Bring the cluster back to its size."""
    client.cluster.sync(_drop_dead, client.cluster)
    client.cluster.scale(n_workers)
    client.wait_for_workers(n_workers, timeout=60)


async def _drop_dead(cluster):
    dead = [name for name, worker in cluster.workers.items() if worker.status.name in ("closed", "closing", "failed")]
    for name in dead:
        cluster.workers.pop(name, None)
        cluster.worker_spec.pop(name, None)


def rows(n=360, d=4, seed=0):
    """Return rows in three clusters, a target and three classes."""
    rng = np.random.default_rng(seed)
    codes = np.arange(n) % 3
    X = rng.normal(size=(n, d)) + 3.0 * rng.normal(size=(3, d))[codes]
    y = X @ np.arange(1.0, d + 1) + rng.normal(size=n)
    labels = (y + rng.normal(size=n) > np.median(y)).astype(int)
    return X, y, labels


def on_dask(array, n_parts=N_PARTS):
    """Return an array in equal parts."""
    height = -(-len(array) // n_parts)
    return da.from_array(array, chunks=(height, *array.shape[1:]))
