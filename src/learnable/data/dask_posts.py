"""Tasks that stay on the workers of a cluster while a fit lasts, and answer one message per pass.

A pass by tasks of Dask takes some ten milliseconds of processor time on the scheduler, the client and the workers, as
long as a pass over 10⁵ rows. So fits of many passes over kept rows (`dask_kept.py`) leave one task at each thread of
the cluster. It holds the rows of its group and a connection to the client: the client sends what to compute, and the
task answers with one sum per partition, in their order. A connection sends no more than the client reads, so that few
sums wait.

A task also remembers what a pass leaves for the next one (`memory.py`): bounds on distances, for example. What is
remembered may only change how long a pass takes, never what it returns, because it is gone when a worker dies.

When a connection breaks, or a worker says nothing and is gone, the pass goes on by tasks of Dask, which know what to do
about dead workers, lost partitions and full disks; the next pass leaves new tasks at the workers.

Every message carries a keyed checksum of its number and its bytes. The key is made from a secret that travels through
Dask alone, and from a number drawn for the connection; what others send is not looked at.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import socket
import struct
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

from ..core.errors import LearnableError
from .dask_kept import Group, KeptParts
from .external import BadCellError
from .memory import remembering
from .sockets import listen, prepared, receive

#: Bytes of a table below which passes are made by tasks of Dask: a fit of so few rows takes a second at most.
LEAST_BYTES = 2**22
#: Seconds without a message after which a task leaves its post.
_PATIENCE = 60.0
_CONNECT = 3.0  # seconds for a connection; where workers cannot be reached from here, Dask's tasks do the work
_POLL = 0.5
_LOOK = 1.0  # seconds between two looks at which workers there are
_TRIES = 5  # times that posts are lost, or cannot be reached, after which a fit does without them
_HEAD = struct.Struct("<Q32s")


class PostLostError(Exception):
    """A task has left its post, or cannot be reached."""


class Line:
    """Messages between two processes that share a secret.

    Parameters
    ----------
    peer : socket
        Connected.
    secret : bytes
        Of this fit.
    asks : bool
        Whether this is the client's end, which draws the number of the connection.
    waits : function, optional
        Called about twice a second while nothing comes; raises to give up.
    """

    def __init__(self, peer: socket.socket, secret: bytes, asks: bool, waits: Callable[[], None] | None = None) -> None:
        self.peer = peer
        self.waits = waits
        self._sent = 0
        self._received = 0
        self._sides = (b"client", b"worker") if asks else (b"worker", b"client")
        if asks:
            drawn = secrets.token_bytes(32)
            peer.sendall(drawn)
        else:
            drawn = bytes(receive(peer, bytearray(32)))
        self._key = hashlib.blake2b(drawn, key=secret, digest_size=32).digest()

    def send(self, data: bytes) -> None:
        """Send one message."""
        mark = self._mark(self._sides[0], self._sent, data)
        self._sent += 1
        polls = self.peer.gettimeout()
        self.peer.settimeout(None)  # the other side may be busy with what it has got
        try:
            self.peer.sendall(_HEAD.pack(len(data), mark))
            self.peer.sendall(data)
        finally:
            self.peer.settimeout(polls)

    def receive(self) -> bytearray:
        """Return the next message."""
        size, mark = _HEAD.unpack(receive(self.peer, bytearray(_HEAD.size), self.waits))
        data = bytearray(size)
        receive(self.peer, data, self.waits)
        if not hmac.compare_digest(mark, self._mark(self._sides[1], self._received, data)):
            raise PostLostError("a message does not come from this fit")
        self._received += 1
        return data

    def close(self) -> None:
        """End the talk."""
        with suppress(OSError):  # it may be closed already
            self.peer.shutdown(socket.SHUT_RDWR)
        self.peer.close()

    def _mark(self, side: bytes, number: int, data: Any) -> bytes:
        mark = hashlib.blake2b(key=self._key, digest_size=32)
        mark.update(side + number.to_bytes(8, "little"))
        mark.update(data)
        return mark.digest()


# --------------------------------------------------------------------------------------------------------------------
# On the workers. Workers of one process share these tables.

_LOCK = threading.Lock()
_SERVERS: dict[tuple[str, int], socket.socket] = {}


def open_posts(name: str, places: dict[str, tuple[str, list[int]]], dask_worker: Any) -> dict[int, int]:
    """Open a socket for each post of this worker; return their ports."""
    host, numbers = places[dask_worker.address]
    ports = {}
    for number in numbers:
        server = listen(host)
        with _LOCK:
            _SERVERS[name, number] = server
        ports[number] = int(server.getsockname()[1])
    return ports


def close_posts(name: str) -> None:
    """Close the sockets that no task has taken."""
    with _LOCK:
        mine = [_SERVERS.pop(key) for key in list(_SERVERS) if key[0] == name]
    for server in mine:
        server.close()


def stand_by(name: str, post: int, secret: bytes, parts: list[Any], places: list[tuple[int, int]]) -> str:
    """Answer the client until it closes the connection, or says nothing for long. Runs on a worker."""
    from distributed import secede

    secede()  # others may use the thread while this one waits
    with _LOCK:
        server = _SERVERS.pop((name, post), None)
    if server is None:
        return "the worker has been started again"
    line = _welcome(server, secret)
    if line is None:
        return "nobody came"
    memories: list[dict[Any, Any]] = [{} for _ in parts]
    try:
        while True:
            _answer(line, parts, places, memories)
    except (OSError, PostLostError):  # the client has closed the connection, or is gone
        return "done"
    finally:
        line.close()


def _welcome(server: socket.socket, secret: bytes) -> Line | None:
    """Return the connection to the client; None if no peer with the secret connects."""
    deadline = time.monotonic() + _PATIENCE
    with server:
        while time.monotonic() < deadline:
            try:
                peer, _ = server.accept()
            except TimeoutError:
                continue
            peer.settimeout(5.0)
            try:
                line = Line(peer, secret, asks=False)
                line.receive()
            except (OSError, PostLostError):
                peer.close()
                continue
            prepared(peer).settimeout(_PATIENCE)
            return line
    return None


def _answer(line: Line, parts: list[Any], places: list[tuple[int, int]], memories: list[dict[Any, Any]]) -> None:
    """Answer one message with the result of each partition, or the first error."""
    from distributed.protocol.pickle import dumps, loads

    work = loads(line.receive())
    for part, (number, start), memory in zip(parts, places, memories, strict=True):
        try:
            with remembering(memory):
                found = (True, work(part, number, start))
        except Exception as error:
            found = (False, error)
        line.send(dumps(found))
        if not found[0]:
            raise PostLostError("the pass has failed")


# --------------------------------------------------------------------------------------------------------------------
# On the client.


class Posts:
    """Tasks that stand by at the workers.

    Parameters
    ----------
    client : distributed.Client
        The cluster.
    kept : KeptParts
        The rows.
    starts : list of int
        First row of each partition.
    """

    def __init__(self, client: Any, kept: KeptParts, starts: list[int]) -> None:
        self.client = client
        self.groups = kept.groups(client)
        self.looked = time.monotonic()
        self.lines: list[Line] = []
        self.tasks: list[Any] = []
        name = secrets.token_hex(8)
        secret = secrets.token_bytes(32)
        self._end = weakref.finalize(self, _leave, self.lines, self.tasks)
        try:
            self._open(name, secret, kept.futures or [], starts)
        except Exception as error:
            self.close()
            with suppress(Exception):  # the workers may be gone
                client.run(close_posts, name, on_error="ignore")
            raise PostLostError(str(error)) from error

    def _open(self, name: str, secret: bytes, futures: list[Any], starts: list[int]) -> None:
        client = self.client
        posts: dict[str, tuple[str, list[int]]] = {}
        for number, group in enumerate(self.groups):
            posts.setdefault(group.worker, (host_of(group.worker), []))[1].append(number)
        found = client.run(open_posts, name, posts, workers=list(posts))
        ports = {number: port for of_worker in found.values() for number, port in of_worker.items()}
        for number, group in enumerate(self.groups):
            rows = [futures[part] for part in group.numbers]
            places = [(part, starts[part]) for part in group.numbers]
            self.tasks.append(
                client.submit(
                    stand_by, name, number, secret, rows, places, workers=[group.worker], pure=False, retries=0
                )
            )
            peer = socket.create_connection((posts[group.worker][0], ports[number]), timeout=_CONNECT)
            line = Line(prepared(peer), secret, asks=True, waits=self._watch(group))
            peer.settimeout(_POLL)
            line.send(b"here")
            self.lines.append(line)

    def _watch(self, group: Group) -> Callable[[], None]:
        client = self.client

        def look() -> None:
            if client.status not in ("running", "connecting") or group.worker not in client.nthreads():
                raise PostLostError(f"worker {group.worker} is gone")

        return look

    def is_current(self, kept: KeptParts) -> bool:
        """Tell whether the workers are those that the posts were made for; looks about once a second."""
        if time.monotonic() - self.looked > _LOOK:
            self.looked = time.monotonic()
            return kept.groups(self.client) is self.groups
        return True

    def results(self, work: Callable[[Any, int, int], Any], n_parts: int) -> Iterator[Any]:
        """Yield (whether it went well, the result or the error) of each partition in order."""
        from distributed.protocol.pickle import dumps, loads

        line_of = {
            number: line for line, group in zip(self.lines, self.groups, strict=True) for number in group.numbers
        }
        done = False
        try:
            message = dumps(work)
            for line in self.lines:
                line.send(message)
            for number in range(n_parts):
                yield loads(line_of[number].receive())
            done = True
        except OSError as error:
            raise PostLostError(str(error)) from error
        finally:
            if not done:  # answers to this pass must not be taken for those to the next
                self.close()

    def close(self) -> None:
        """Let the tasks go."""
        self._end()


def at_posts(client: Any, kept: KeptParts, work: Callable[[Any, int, int], Any], starts: list[int]) -> Iterator[Any]:
    """Yield `work(part, number, start)` of each partition in order, computed by tasks that stand by.

    Raises
    ------
    PostLostError
        Where tasks of Dask have to do it, from the first partition on that has not been yielded: in the first pass over
        kept rows, for small tables, and after whatever goes wrong on a worker that is not an error of the data.
    """
    kept.n_passes += 1
    if kept.n_passes == 1 or kept.n_bytes < LEAST_BYTES or kept.n_lost >= _TRIES:
        raise PostLostError("by tasks of Dask")
    if kept.posts is not None and not kept.posts.is_current(kept):
        kept.posts.close()
        kept.posts = None
    try:
        if kept.posts is None:
            kept.posts = Posts(client, kept, starts)
        for well, found in kept.posts.results(work, len(starts)):
            if not well and isinstance(found, (LearnableError, BadCellError)):
                raise found
            if not well:
                raise PostLostError(str(found))
            yield found
    except BaseException as error:  # whatever it is, the tasks have left their posts
        kept.n_lost += isinstance(error, PostLostError)
        kept.posts = None
        raise


def _leave(lines: list[Line], tasks: list[Any]) -> None:
    for line in lines:
        line.close()
    lines.clear()
    tasks.clear()


def host_of(address: str) -> str:
    """Return the host of a worker."""
    if address.startswith("inproc"):
        return "127.0.0.1"
    from distributed.comm import get_address_host

    return str(get_address_host(address))
