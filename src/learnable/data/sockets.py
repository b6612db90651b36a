"""A world whose parts are processes: each talks to part 0 over a socket of its own, in arrays of known length.

Nothing that comes over a socket is executed: a message is its length and the bytes of an array whose type the receiver
knows. Who connects has to say a secret that only the parts of one fit were given. A part that is gone, or says nothing
for long, ends the others with `PartLostError`.
"""

from __future__ import annotations

import hmac
import socket
import struct
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .any_order import Ints, World

_HELLO = struct.Struct("<32sI")
_LENGTH = struct.Struct("<Q")
_PATIENCE = 120.0  # seconds that a part waits for the others to come


class PartLostError(Exception):
    """A part of the table is gone: its worker died, or was told to stop."""


def listen(host: str) -> socket.socket:
    """Return a socket that parts can connect to."""
    server = socket.create_server((host, 0), backlog=1024)
    server.settimeout(0.5)
    return server


class SocketWorld(World):
    """One of several processes.

    Parameters
    ----------
    rank, size : int
        Which part this is, of how many.
    secret : bytes
        32 bytes that all parts were given.
    server : socket or None
        Of part 0: what the others connect to.
    address : (host, port)
        Of the others: where part 0 listens.
    """

    def __init__(
        self, rank: int, size: int, secret: bytes, server: socket.socket | None, address: tuple[str, int]
    ) -> None:
        self.rank = rank
        self.size = size
        self.closed = False
        self._peers: list[socket.socket] = []
        self.bytes_sent = 0
        try:
            if server is not None:
                self._peers = self._welcome(server, secret)
            elif rank:
                self._peers = [self._join(address, secret)]
        except OSError as error:
            self.close()
            raise PartLostError(f"the parts did not come together: {error}") from error

    def _welcome(self, server: socket.socket, secret: bytes) -> list[socket.socket]:
        """Return the sockets of parts 1, 2, …, once all have come."""
        found: dict[int, socket.socket] = {}
        deadline = time.monotonic() + _PATIENCE
        with server:
            while len(found) < self.size - 1:
                if self.closed or time.monotonic() > deadline:
                    raise PartLostError(f"only {len(found) + 1} of {self.size} parts have come")
                try:
                    peer, _ = server.accept()
                except TimeoutError:
                    continue
                peer.settimeout(5.0)
                said, rank = _HELLO.unpack(receive(peer, bytearray(_HELLO.size)))
                if not hmac.compare_digest(said, secret) or not 0 < rank < self.size or rank in found:
                    peer.close()
                    continue
                found[rank] = prepared(peer)
        return [found[rank] for rank in sorted(found)]

    def _join(self, address: tuple[str, int], secret: bytes) -> socket.socket:
        deadline = time.monotonic() + _PATIENCE
        while True:
            try:
                peer = socket.create_connection(address, timeout=5.0)
                break
            except OSError:
                if self.closed or time.monotonic() > deadline:
                    raise
                time.sleep(0.05)
        peer.sendall(_HELLO.pack(secret, self.rank))
        return prepared(peer)

    def close(self) -> None:
        """End the talk; parts that wait for this one are ended too."""
        self.closed = True
        for peer in self._peers:
            with suppress(OSError):  # it may be closed already
                peer.shutdown(socket.SHUT_RDWR)
            peer.close()
        self._peers = []

    def sum(self, x: Ints) -> Ints:
        """Return the sums over all parts, entry by entry."""
        return self._all(x, np.add)

    def most(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the largest entries of all parts."""
        return self._all(x, np.maximum)

    def sum_at_root(self, x: NDArray[Any]) -> NDArray[Any] | None:
        """Return the sums in part 0, in the order of the parts, in place of its own numbers; None in the others."""
        return self._merged(x, np.add, x)

    def from_root(self, x: Ints) -> Ints:
        """Return what part 0 has; the others pass an array of the same type and length."""
        if self.rank == 0:
            for peer in self._peers:
                self._send(peer, x)
            return x
        return self._fetch(self._peers[0], x)

    def _all(self, x: NDArray[Any], merge: Any) -> NDArray[Any]:
        merged = self._merged(x, merge, np.empty_like(x))
        return self.from_root(x if merged is None else merged)

    def _merged(self, x: NDArray[Any], merge: Any, out: NDArray[Any]) -> NDArray[Any] | None:
        if self.rank:
            self._send(self._peers[0], x)
            return None
        if out is not x:
            np.copyto(out, x)
        for peer in self._peers:
            merge(out, self._fetch(peer, out), out=out)
        return out

    def _send(self, peer: socket.socket, x: NDArray[Any]) -> None:
        data = np.ascontiguousarray(x)
        try:
            peer.sendall(_LENGTH.pack(data.nbytes))
            peer.sendall(data.reshape(-1).view(np.uint8).data)
        except OSError as error:
            raise PartLostError(str(error)) from error
        self.bytes_sent += data.nbytes

    def _fetch(self, peer: socket.socket, like: NDArray[Any]) -> NDArray[Any]:
        out = np.empty(like.shape, like.dtype)
        try:
            (size,) = _LENGTH.unpack(receive(peer, bytearray(_LENGTH.size)))
            if size != out.nbytes:
                raise PartLostError(f"a part sent {size} bytes where {out.nbytes} were to come")
            receive(peer, out.reshape(-1).view(np.uint8).data)
        except OSError as error:
            raise PartLostError(str(error)) from error
        return out


def prepared(peer: socket.socket) -> socket.socket:
    """Return a socket that waits as long as it takes and sends small messages at once."""
    peer.settimeout(None)
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    return peer


def receive(peer: socket.socket, buffer: Any, waits: Callable[[], None] | None = None) -> Any:
    """Fill a buffer and return it; `waits` is called whenever the socket's timeout passes, and raises to give up."""
    view = memoryview(buffer)
    at = 0
    while at < len(view):
        try:
            got = peer.recv_into(view[at:])
        except TimeoutError:
            if waits is None:
                raise
            waits()
            continue
        if not got:
            raise ConnectionResetError("a part has closed its socket")
        at += got
    return buffer
