"""`learnable page`: starts the server with what was asked, and says how to install what is missing."""

import sys

import pytest


def test_it_serves_what_was_asked(learnable, monkeypatch):
    serve = pytest.importorskip(
        "learnable.page.serve", reason="the page needs its extra: pip install 'learnable[page]'"
    )
    asked = []
    monkeypatch.setattr(serve, "serve", lambda data, **settings: asked.append((data, settings)))
    code, _, _ = learnable("page", "numbers.csv", "--no-browser", "--folder", "work", "--port", "0")
    assert code == 0
    assert asked == [("numbers.csv", {"folder": "work", "port": 0, "browser": False})]


def test_a_file_that_is_not_there_is_one_line(learnable, monkeypatch):
    pytest.importorskip("starlette", reason="the page needs its extra: pip install 'learnable[page]'")
    code, _, err = learnable("page", "nothing.csv", "--no-browser")
    assert code == 1 and "There is no file 'nothing.csv'" in err and err.count("\n") == 1


def test_a_missing_package_is_named_with_the_remedy(learnable, monkeypatch):
    monkeypatch.setitem(sys.modules, "learnable.page.serve", None)
    monkeypatch.setitem(sys.modules, "starlette.applications", None)

    def missing(name, *more, **named):
        if name.endswith("page.serve"):
            raise ModuleNotFoundError("No module named 'starlette'", name="starlette")
        return real(name, *more, **named)

    import builtins

    real = builtins.__import__
    monkeypatch.setattr(builtins, "__import__", missing)
    code, _, err = learnable("page")
    assert code == 1 and "pip install 'learnable[page]'" in err
