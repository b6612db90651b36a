"""The contract of checkers: it allows what checkers may import, and names everything else."""

import pytest

pytest.importorskip("importlinter")

from tools.import_contracts import CheckersContract


class Graph:
    """What a contract asks of import-linter's graph."""

    def __init__(self, imports):
        self.imports = imports
        self.modules = set(imports)

    def find_modules_directly_imported_by(self, module):
        return self.imports[module]


def check(imports):
    contract = CheckersContract(
        name="checkers",
        session_options={},
        contract_options={"root": "pkg", "may_import": ["pkg.core", "pkg.data"], "except_in": ["pkg.cli"]},
    )
    return contract.check(Graph(imports), verbose=False)


@pytest.mark.parametrize(
    "allowed", ["pkg.core", "pkg.core.checking", "pkg.data.rows", "pkg.other.verify_rows", "numpy"]
)
def test_what_a_checker_may_import(allowed):
    assert check({"pkg.trees.verify": {allowed}}).kept


@pytest.mark.parametrize("module", ["pkg.trees.verify", "pkg.trees.verify_id3"])
@pytest.mark.parametrize("used", ["pkg.trees.grower", "pkg.corel", "pkg.database.rows"])
def test_what_it_may_not_import_is_named(module, used):
    found = check({module: {used, "pkg.core"}, "pkg.trees.fit": {"pkg.trees.grower"}})
    assert not found.kept
    assert found.metadata["wrong"] == [f"{module} imports {used}"]


def test_a_subcommand_is_no_checker():
    assert check({"pkg.cli.verify": {"pkg.trees.grower"}}).kept
