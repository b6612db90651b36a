"""Contracts of import-linter that its own kinds cannot state."""

from __future__ import annotations

from typing import Any

from importlinter import Contract, ContractCheck, fields, output


class CheckersContract(Contract):
    """A checker (`verify*.py`) imports what checkers may import and other checkers, and nothing that a fit uses.

    Attributes
    ----------
    root : str
        The package.
    may_import : list of str
        Modules and packages that are open to checkers.
    except_in : list of str
        Packages whose `verify*.py` are no checkers.
    """

    root = fields.StringField()
    may_import = fields.ListField(subfield=fields.StringField())
    except_in = fields.ListField(subfield=fields.StringField(), required=False)

    def check(self, graph: Any, verbose: bool) -> ContractCheck:
        """Find what checkers import besides."""
        wrong = []
        for module in sorted(graph.modules):
            if not _is_checker(module) or _lies_in(module, self.except_in or []):
                continue
            for found in sorted(graph.find_modules_directly_imported_by(module)):
                if found.startswith(f"{self.root}.") and not (_is_checker(found) or _lies_in(found, self.may_import)):
                    wrong.append(f"{module} imports {found}")
        return ContractCheck(kept=not wrong, metadata={"wrong": wrong})

    def render_broken_contract(self, check: ContractCheck) -> None:
        """Print what checkers import besides."""
        for line in check.metadata["wrong"]:
            output.print_error(line)


def _is_checker(module: str) -> bool:
    return module.rpartition(".")[2].startswith("verify")


def _lies_in(module: str, packages: Any) -> bool:
    return any(module == package or module.startswith(f"{package}.") for package in packages)
