"""Run the test files of scikit-learn and hmmlearn on our classes.

The files are those of the installed packages. Each is rewritten into a temporary folder, where our public names are
put over theirs after every import, and runs there in a process of its own. Private names stay theirs. What fails on
the original classes too, in this environment, is no test of ours: failures are run again without our names.
"""

from __future__ import annotations

import ast
import importlib.util
import inspect
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

INSIDE = Path(__file__).parent / "inside"

#: `package:path`; the package is sklearn where none is named.
FILES = [
    "cluster/tests/test_k_means.py",
    "cluster/tests/test_spectral.py",
    "decomposition/tests/test_factor_analysis.py",
    "decomposition/tests/test_kernel_pca.py",
    "decomposition/tests/test_nmf.py",
    "decomposition/tests/test_pca.py",
    "decomposition/tests/test_truncated_svd.py",
    "ensemble/_hist_gradient_boosting/tests/test_gradient_boosting.py",
    "ensemble/_hist_gradient_boosting/tests/test_monotonic_constraints.py",
    "ensemble/_hist_gradient_boosting/tests/test_warm_start.py",
    "ensemble/tests/test_bagging.py",
    "ensemble/tests/test_common.py",
    "ensemble/tests/test_forest.py",
    "ensemble/tests/test_gradient_boosting.py",
    "ensemble/tests/test_stacking.py",
    "ensemble/tests/test_voting.py",
    "ensemble/tests/test_weight_boosting.py",
    "gaussian_process/tests/test_gpc.py",
    "gaussian_process/tests/test_gpr.py",
    "linear_model/_glm/tests/test_glm.py",
    "linear_model/tests/test_base.py",
    "linear_model/tests/test_common.py",
    "linear_model/tests/test_coordinate_descent.py",
    "linear_model/tests/test_logistic.py",
    "linear_model/tests/test_perceptron.py",
    "linear_model/tests/test_ridge.py",
    "linear_model/tests/test_sag.py",
    "linear_model/tests/test_sparse_coordinate_descent.py",
    "manifold/tests/test_isomap.py",
    "manifold/tests/test_locally_linear.py",
    "manifold/tests/test_spectral_embedding.py",
    "manifold/tests/test_t_sne.py",
    "mixture/tests/test_gaussian_mixture.py",
    "mixture/tests/test_mixture.py",
    "neighbors/tests/test_neighbors.py",
    "neighbors/tests/test_neighbors_pipeline.py",
    "neural_network/tests/test_mlp.py",
    "preprocessing/tests/test_polynomial.py",
    "svm/tests/test_bounds.py",
    "svm/tests/test_sparse.py",
    "svm/tests/test_svm.py",
    "tests/test_discriminant_analysis.py",
    "tests/test_kernel_approximation.py",
    "tests/test_kernel_ridge.py",
    "tests/test_multiclass.py",
    "tests/test_naive_bayes.py",
    "tree/tests/test_export.py",
    "tree/tests/test_monotonic_tree.py",
    "tree/tests/test_split.py",
    "tree/tests/test_tree.py",
    "hmmlearn:tests/test_categorical_hmm.py",
    "hmmlearn:tests/test_gaussian_hmm.py",
    "hmmlearn:tests/test_gmm_hmm.py",
    "hmmlearn:tests/test_gmm_hmm_multisequence.py",
    "hmmlearn:tests/test_gmm_hmm_new.py",
    "hmmlearn:tests/test_poisson_hmm.py",
]

#: Names of ours that mean something else there.
OTHER_MEANING = {"load", "save", "verify", "select", "read_table", "config_context", "get_config", "set_config"}
#: Public names that are not on the top level of learnable.
DEEPER = {name: f"trees.{name}" for name in ("export_text", "export_graphviz", "plot_tree")}
#: Modules whose public classes are looked up through the module itself: `svm.SVC`.
MODULES = {
    "cluster",
    "decomposition",
    "discriminant_analysis",
    "ensemble",
    "gaussian_process",
    "hmm",
    "kernel_ridge",
    "linear_model",
    "manifold",
    "mixture",
    "multiclass",
    "naive_bayes",
    "neighbors",
    "svm",
    "tree",
}


class Outcome(NamedTuple):
    """One test."""

    file: str  #: an item of FILES
    name: str  #: `test_name[parameters]`, with its class before it where it has one
    outcome: str  #: "passed", "failed" or "skipped"
    message: str  #: of a failure

    @property
    def names(self) -> set[str]:
        """The names by which a list may call it: with or without its class, with or without its parameters."""
        plain = self.name.partition("[")[0]
        inner = self.name[len(plain.rpartition("::")[0]) :].removeprefix("::")
        return {self.name, plain, inner, inner.partition("[")[0]}


def root_of(file: str) -> str:
    """Return the package that a file belongs to."""
    return file.partition(":")[0] if ":" in file else "sklearn"


def our_names() -> dict[str, str]:
    """Return {public name: where it is in learnable}."""
    import learnable as ln

    public = [name for name in ln.__all__ if name not in OTHER_MEANING and not inspect.ismodule(getattr(ln, name))]
    return {name: name for name in public} | DEEPER


def rewrite(text: str, package: str, ours: Iterable[str]) -> str:
    """Return the text of a test file with our names put over the imported ones, wherever it imports them."""
    root, ours, lines = package.partition(".")[0], set(ours), text.split("\n")
    edits: list[tuple[int, int, str | None, list[str]]] = []  # first line, last line, module, lines to add
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if not isinstance(node, (ast.Import, ast.ImportFrom)):
            continue
        module = _absolute(node, package) if isinstance(node, ast.ImportFrom) else None
        if module is not None and module.partition(".")[0] != root:
            continue
        added = [line for alias in node.names if (line := _overlaid(alias, module, root, ours))]
        relative = module if isinstance(node, ast.ImportFrom) and node.level else None
        edits.append(
            (node.lineno, node.end_lineno or node.lineno, relative, [" " * node.col_offset + x for x in added])
        )
    for first, last, relative, added in sorted(edits, reverse=True):
        if relative is not None:
            lines[first - 1] = re.sub(
                r"from\s+\.+[\w.]*\s+import", f"from {relative} import", lines[first - 1], count=1
            )
        lines[last:last] = added
    top = next(n.lineno for n in tree.body if isinstance(n, (ast.Import, ast.ImportFrom)) and not _is_future(n))
    lines[top - 1 : top - 1] = ["import _overlay"]
    return "\n".join(lines)


def _overlaid(alias: ast.alias, module: str | None, root: str, ours: set[str]) -> str | None:
    bound = alias.asname or alias.name
    if module is None:  # `import sklearn.svm as svm`
        return f"{bound} = _overlay.module({bound})" if alias.asname and alias.name.startswith(root) else None
    if alias.name in ours:
        return f"{bound} = _overlay.get({alias.name!r})"
    return f"{bound} = _overlay.module({bound})" if module == root and alias.name in MODULES else None


def _absolute(node: ast.ImportFrom, package: str) -> str:
    if not node.level:
        return node.module or ""
    parts = package.split(".")
    return ".".join([*parts[: len(parts) - node.level + 1], *([node.module] if node.module else [])])


def _is_future(node: ast.stmt) -> bool:
    return isinstance(node, ast.ImportFrom) and node.module == "__future__"


def copy_name(file: str) -> str:
    """Return the name of the rewritten file."""
    return "test_" + file.replace(":", "__").replace("/", "__").replace("__test_", "__")


def prepare(folder: Path, files: Iterable[str], ours: Mapping[str, str]) -> None:
    """Write the rewritten files, and what they need around them, to a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(INSIDE / "peer_conftest.py", folder / "conftest.py")
    shutil.copy(INSIDE / "overlay.py", folder / "_overlay.py")
    (folder / "ours.json").write_text(json.dumps(dict(ours)))
    (folder / "pytest.ini").write_text("[pytest]\n")
    for file in files:
        inner = Path(file.rpartition(":")[2])
        spec = importlib.util.find_spec(root_of(file))
        assert spec is not None and spec.origin is not None
        package = ".".join([root_of(file), *inner.parts[:-1]])
        text = (Path(spec.origin).parent / inner).read_text(encoding="utf-8")
        (folder / copy_name(file)).write_text(rewrite(text, package, ours), encoding="utf-8")


def run(
    folder: Path, files: Iterable[str], *, every: int = 1, only: Iterable[str] = (), seconds: float = 3000
) -> list[Outcome]:
    """Run prepared files of one package in one process and return what became of their tests.

    `every` = m runs every m-th test, chosen by a checksum of its name; `only` names the tests to run.
    """
    by_copy = {copy_name(file): file for file in files}
    record = folder / "outcomes.jsonl"
    record.unlink(missing_ok=True)
    arguments = folder / "arguments.txt"
    arguments.write_text("\n".join(only or by_copy))
    roots = {root_of(file) for file in by_copy.values()}
    assert len(roots) == 1
    settings = {"PEERS_ROOT": roots.pop(), "PEERS_RECORD": str(record), "PEERS_EVERY": str(every)}
    settings |= {"SKLEARN_SKIP_NETWORK_TESTS": "1", "PYTHONWARNINGS": "ignore", "PYTHONDONTWRITEBYTECODE": "1"}
    settings |= {"MPLBACKEND": "agg", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    inherited = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
    command = [sys.executable, "-m", "pytest", "-q", "--no-header", "--tb=short", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, "-p", "no:xdist", f"@{arguments}"],
        cwd=folder,
        env=inherited | settings,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=seconds,
    )
    if done.returncode not in (0, 1) or not record.exists():  # 1: some tests failed; beyond that, the run itself did
        raise RuntimeError(f"the run of {list(by_copy)} ended with {done.returncode}:\n{done.stdout[-3000:]}")
    rows = [json.loads(line) for line in record.read_text().splitlines()]
    return [Outcome(by_copy[row["file"]], row["name"], row["outcome"], row["message"]) for row in rows]


def failures_of_ours(folder: Path, outcomes: Iterable[Outcome]) -> list[Outcome]:
    """Return the failures among the outcomes that are not failures of the original classes too."""
    failed = [outcome for outcome in outcomes if outcome.outcome == "failed"]
    if not failed:
        return []
    files = sorted({outcome.file for outcome in failed})
    prepare(folder, files, {})
    asked = [f"{copy_name(outcome.file)}::{outcome.name}" for outcome in failed]
    original = run(folder, files, only=asked)
    theirs = {(outcome.file, outcome.name) for outcome in original if outcome.outcome == "failed"}
    return [outcome for outcome in failed if (outcome.file, outcome.name) not in theirs]
