"""Names that are loaded on first use: a package's stub (`__init__.pyi`) says where each of them lives.

Type checkers and editors read the same stub, so that the list of names is written once. It is read through the
package's own loader, which works in a zip file too.
"""

from __future__ import annotations

import ast
import importlib
import os
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any


def attach(package: str, file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return `__getattr__`, `__dir__` and `__all__` of a package, called as `attach(__name__, __file__)`."""
    homes = _homes(package, file)
    names = sorted(homes)

    def load(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        home = homes[name]
        value = importlib.import_module(f"{package}.{home or name}")
        if home:
            value = getattr(value, name)
        vars(sys.modules[package])[name] = value
        return value

    sys.modules[package].__class__ = _package_type({name for name, home in homes.items() if name == home})
    return load, lambda: list(names), list(names)


def _package_type(shared: set[str]) -> type[ModuleType]:
    """Return the type of a package in which some names stand for what the module of that name holds, not for it.

    Importing a submodule sets it as an attribute of its package, over whatever the stub means by the name.
    """

    class Package(ModuleType):
        def __setattr__(self, name: str, value: Any) -> None:
            if not (name in shared and isinstance(value, ModuleType)):
                super().__setattr__(name, value)

    return Package


def _homes(package: str, file: str) -> dict[str, str]:
    """Return each name's module within the package; an empty one for a name that is a module itself."""
    stub = os.path.splitext(file)[0] + ".pyi"
    loader: Any = sys.modules[package].__spec__.loader  # type: ignore[union-attr]
    homes = {}
    for statement in ast.parse(loader.get_data(stub)).body:
        if isinstance(statement, ast.ImportFrom) and statement.level == 1:
            for alias in statement.names:
                homes[alias.name] = statement.module or ""
    return homes
