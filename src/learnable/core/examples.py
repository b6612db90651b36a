"""The examples in the docstrings of public names, to be run without comparing what they print.

They are the smallest use of every entry point, so that running them compiles, or loads, the kernels behind it. That
they print what they say is a matter of the tests.
"""

from __future__ import annotations

import contextlib
import doctest
import importlib
import inspect
import io
import os
import pkgutil
import tempfile
import warnings
from collections.abc import Iterator
from typing import Any, Final

#: Packages without kernels of their own, or whose names open files, windows and sockets.
_SILENT: Final = ("cli", "page", "lab", "report", "export", "plots", "theory")


def public_objects() -> Iterator[tuple[str, Any]]:
    """Yield the functions and classes that packages list, each once, by name.

    Examples
    --------
    >>> from learnable.core.examples import public_objects
    >>> "learnable.sampling.nuts" in dict(public_objects())
    True
    """
    root = __name__.partition(".")[0]
    seen: set[int] = set()
    folder = importlib.import_module(root).__path__
    for found in pkgutil.walk_packages(folder, f"{root}."):
        parts = found.name.split(".")
        if not found.ispkg or parts[1] in _SILENT or any(part.startswith("_") for part in parts):
            continue
        package = importlib.import_module(found.name)
        for name in getattr(package, "__all__", ()):
            value = getattr(package, name)
            if (inspect.isclass(value) or inspect.isfunction(value)) and id(value) not in seen:
                seen.add(id(value))
                yield f"{found.name}.{name}", value


def run_examples(name: str, value: Any) -> Iterator[tuple[str, str]]:
    """Run the examples of a function, or of a class and its methods; yield the name and what was printed.

    An example that needs a package which is not installed ends there.
    """
    module = inspect.getmodule(value)
    for test in doctest.DocTestFinder(exclude_empty=True).find(value, name, module=module):
        if test.examples:
            yield test.name, _printed(test)


def _printed(test: doctest.DocTest) -> str:
    out = io.StringIO()
    names = dict(test.globs)
    where = os.getcwd()
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(out), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        os.chdir(folder)
        try:
            for example in test.examples:
                code = compile(example.source, f"<example of {test.name}>", "single")
                exec(code, names)
        except Exception:  # a missing package, or an error that the example is there to show
            pass
        finally:
            os.chdir(where)
    return out.getvalue()
