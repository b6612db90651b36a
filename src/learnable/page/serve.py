"""Start the page: a free port of this machine alone, a link that works once, and a browser."""

from __future__ import annotations

import contextlib
import socket
import webbrowser
from collections.abc import Callable
from typing import Any

from ..core.errors import ParameterError
from .app import Page
from .store import Store


def serve(
    file: str | None = None,
    *,
    folder: str | None = None,
    port: int = 0,
    browser: bool = True,
    say: Callable[[str], Any] = print,
) -> None:
    """Serve the page until Ctrl-C.

    Parameters
    ----------
    file : str, optional
        A table to begin with, read where it is.
    folder : str, optional
        Where to keep tables, runs and models; by default a temporary folder that is removed at the end.
    port : int
        The port; 0 takes a free one.
    browser : bool
        Whether to open one.
    say : callable
        What prints a line.
    """
    import uvicorn

    with Store(folder) as store, _listening(port) as listening:
        page = Page(store)
        view = ""
        if file is not None:
            view = f"&view=/tables/{store.add_file(file).id}"
        address = f"http://127.0.0.1:{listening.getsockname()[1]}{page.start_path}{view}"
        say(f"The page is at {address}")
        kept = "until this command ends; --folder DIR keeps it" if store.temporary else "and stays there"
        say(f"Work is kept in {store.folder} {kept}. The link works in one browser. Ctrl-C ends the page.")
        if browser:
            webbrowser.open(address)
        settings = uvicorn.Config(
            page.app, log_level="warning", access_log=False, server_header=False, ws="none", lifespan="on",
            timeout_graceful_shutdown=3,
        )  # fmt: skip
        server = uvicorn.Server(settings)
        leave = server.handle_exit

        def handle_exit(number: int, frame: Any) -> None:
            page.runs.hush()  # streams of events would hold the server up
            leave(number, frame)

        server.handle_exit = handle_exit  # type: ignore[assignment, method-assign]
        with contextlib.suppress(KeyboardInterrupt):  # the usual end
            server.run(sockets=[listening])


def _listening(port: int) -> socket.socket:
    """Return a socket on this machine's own address: no other machine can reach it."""
    found = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind(("127.0.0.1", port))
    except (OSError, OverflowError) as error:
        found.close()
        raise ParameterError(f"page: port {port} is taken or not allowed; leave --port out for a free one.") from error
    return found
