"""The server listens on this machine alone."""

import socket

import pytest

from learnable.core.errors import ParameterError
from learnable.page.serve import _listening, serve


def test_it_listens_on_this_machine_alone_and_says_what_is_taken():
    with _listening(0) as one:
        host, port = one.getsockname()
        one.listen()
        assert host == "127.0.0.1"
        with pytest.raises(ParameterError, match=f"port {port} is taken"):
            _listening(port)


def test_it_says_where_it_is_and_opens_the_table(monkeypatch, tmp_path):
    import uvicorn

    seen = []
    monkeypatch.setattr(uvicorn.Server, "run", lambda self, sockets: seen.append(sockets[0].getsockname()))
    lines = []
    serve("demo:houses", folder=str(tmp_path / "work"), browser=False, say=lines.append)
    assert seen[0][0] == "127.0.0.1" and isinstance(seen[0][1], int)
    assert f"http://127.0.0.1:{seen[0][1]}/start?token=" in lines[0] and "&view=/tables/" in lines[0]
    assert str(tmp_path / "work") in lines[1] and (tmp_path / "work" / "tables").is_dir()
    with pytest.raises(OSError, match=r".*"), socket.create_connection(seen[0], timeout=1):
        pass  # nobody listens any more
