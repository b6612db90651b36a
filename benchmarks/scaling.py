"""How time and memory grow with rows, columns and classes: measured slopes against the declared costs.

    python -m benchmarks scaling [family or model ...] [--markdown FILE]

Each model is fitted at four sizes of one variable, the others fixed; the slope is that of the least-squares line
through (log size, log cost) of the three largest. Time is processor time of one thread, the best of three fits, divided
by the number of iterations where the declared cost is one of an iteration. Memory is the peak of what the fit allocates
besides the data (`tracemalloc`), in a run of its own; of class labels every fit holds codes, eight bytes per row. A
slope that exceeds the declared exponent by more than `SLACK` is flagged: the model then costs more than its docstring
says. A smaller one is no fault: lower terms still count at these sizes.

The exponents are those of the O(·) in the docstring, quoted beside them; a test finds each quotation in the docstrings.
"""

from __future__ import annotations

import argparse
import gc
import time
import tracemalloc
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import learnable as ln

#: By how much a measured slope may exceed the declared exponent: caches and logarithms are no exponent.
SLACK = 0.35
VARIABLES = ("n", "d", "K")


@dataclass(frozen=True)
class Cost:
    """What a model declares, and how to measure it."""

    model: str
    family: str
    quote: str  #: as the docstring of the class, or of its module, has it
    time: dict[str, float]  #: exponents of a fit, or of an iteration
    memory: dict[str, float]  #: exponents of what is needed besides the data
    fit: Callable[[dict[str, int]], Callable[[], Any]]  #: sizes -> a fit to be timed
    sizes: dict[str, tuple[int, ...]]
    fixed: dict[str, int]
    per_iteration: bool = False
    least_memory: int = field(default=2**16)  #: bytes below which a peak says nothing


def _normal(s: dict[str, int], seed: int = 0) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(s["n"], s["d"]))
    y = X[:, 0] - X[:, -1] + rng.normal(size=s["n"])
    return rng, X, y


def _regression(make: Callable[[], Any]) -> Callable[[dict[str, int]], Callable[[], Any]]:
    def prepare(s: dict[str, int]) -> Callable[[], Any]:
        _, X, y = _normal(s)
        return lambda: make().fit(X, y)

    return prepare


def _counts(make: Callable[[], Any]) -> Callable[[dict[str, int]], Callable[[], Any]]:
    def prepare(s: dict[str, int]) -> Callable[[], Any]:
        rng, X, y = _normal(s)
        counts = rng.poisson(np.exp(0.3 * y / y.std()))
        return lambda: make().fit(X, counts)

    return prepare


def _classes(make: Callable[[], Any], positive: bool = False) -> Callable[[dict[str, int]], Callable[[], Any]]:
    def prepare(s: dict[str, int]) -> Callable[[], Any]:
        rng, X, _ = _normal(s)
        K = s.get("K", 2)
        codes = rng.integers(0, K, s["n"])
        X = X + np.random.default_rng(1).normal(size=(K, s["d"]))[codes]  # as hard for any number of rows
        X = np.floor(np.abs(3 * X)) if positive else X
        return lambda: make().fit(X, codes)

    return prepare


def _clusters(make: Callable[[int], Any]) -> Callable[[dict[str, int]], Callable[[], Any]]:
    def prepare(s: dict[str, int]) -> Callable[[], Any]:
        rng, X, _ = _normal(s)
        middles = np.random.default_rng(1).normal(size=(s["K"], s["d"]))
        X = X + middles[rng.integers(0, s["K"], s["n"])]
        return lambda: make(s["K"]).fit(X)

    return prepare


def _rows(make: Callable[[], Any]) -> Callable[[dict[str, int]], Callable[[], Any]]:
    def prepare(s: dict[str, int]) -> Callable[[], Any]:
        _, X, _ = _normal(s)
        return lambda: make().fit(X)

    return prepare


def _queries(s: dict[str, int]) -> Callable[[], Any]:
    _, X, y = _normal(s)
    model = ln.KNeighborsClassifier(algorithm="brute", n_jobs=1).fit(X, y > 0)
    new = X[:500] + 0.01
    return lambda: model.predict(new)


def _chain(s: dict[str, int]) -> Callable[[], Any]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(s["n"], 1)) + 3 * rng.integers(0, s["K"], (s["n"], 1))
    return lambda: ln.GaussianHMM(s["K"], n_iter=5, tol=0.0, random_state=0).fit(X)


TALL = (20_000, 40_000, 80_000, 160_000)
MANY = (16, 32, 64, 128)
SQUARE = (500, 1000, 2000, 4000)
COSTS = (
    Cost(
        "LinearRegression", "linear", "O(nd²)", {"n": 1, "d": 2}, {"n": 0, "d": 2},
        _regression(lambda: ln.LinearRegression(n_jobs=1)), {"n": TALL, "d": MANY}, {"n": 20_000, "d": 30},
    ),
    Cost(
        "Ridge", "linear", "O(nd·min(n, d))", {"n": 1, "d": 2}, {"n": 1, "d": 2},
        _regression(lambda: ln.Ridge(n_jobs=1)), {"n": TALL, "d": MANY}, {"n": 20_000, "d": 30},
    ),
    Cost(
        "BayesianLinearRegression", "linear", "O(nd·min(n, d))", {"n": 1, "d": 2}, {"n": 0, "d": 2},
        _regression(lambda: ln.BayesianLinearRegression()), {"n": TALL, "d": MANY}, {"n": 20_000, "d": 30},
    ),
    Cost(
        "Lasso", "linear", "O(d²) for tables with many more rows than columns", {"n": 1, "d": 2}, {"n": 0, "d": 2},
        _regression(lambda: ln.Lasso(alpha=0.05)), {"n": TALL, "d": MANY}, {"n": 20_000, "d": 30},
    ),
    Cost(
        "LogisticRegression", "linear", "O(nd² + iterations·nd)", {"n": 1, "d": 2, "K": 2}, {"n": 1, "d": 2, "K": 2},
        _classes(lambda: ln.LogisticRegression(n_jobs=1)), {"n": TALL, "d": (8, 16, 32, 64), "K": (3, 6, 12, 24)},
        {"n": 10_000, "d": 8, "K": 3},
    ),
    Cost(
        "PoissonRegressor", "linear", "O(nd² + iterations·nd)", {"n": 1, "d": 2}, {"n": 1, "d": 2},
        _counts(lambda: ln.PoissonRegressor()), {"n": TALL, "d": (8, 16, 32, 64)}, {"n": 20_000, "d": 10},
    ),
    Cost(
        "LinearSVC", "linear", "O(nd²)", {"n": 1, "d": 2}, {"n": 1, "d": 2},
        _classes(lambda: ln.LinearSVC()), {"n": (5000, 10_000, 20_000, 40_000), "d": (8, 16, 32, 64)},
        {"n": 10_000, "d": 10, "K": 2},
    ),
    Cost(
        "GaussianNB", "generative", "O(nd)", {"n": 1, "d": 1, "K": 0}, {"n": 1, "d": 1, "K": 1},
        _classes(lambda: ln.GaussianNB()), {"n": TALL, "d": MANY, "K": (4, 8, 16, 32)},
        {"n": 40_000, "d": 20, "K": 3},
    ),
    Cost(
        "MultinomialNB", "generative", "O(n + Kd)", {"n": 1, "d": 1, "K": 0}, {"n": 1, "d": 1, "K": 1},
        _classes(lambda: ln.MultinomialNB(), positive=True), {"n": TALL, "d": MANY}, {"n": 40_000, "d": 20, "K": 3},
    ),
    Cost(
        "LinearDiscriminantAnalysis", "generative", "O(nd²)", {"n": 1, "d": 2, "K": 0}, {"n": 1, "d": 2, "K": 1},
        _classes(lambda: ln.LinearDiscriminantAnalysis()), {"n": TALL, "d": MANY, "K": (4, 8, 16, 32)},
        {"n": 20_000, "d": 30, "K": 3},
    ),
    Cost(
        "QuadraticDiscriminantAnalysis", "generative", "O(nd²)", {"n": 1, "d": 2, "K": 0}, {"n": 1, "d": 2, "K": 1},
        _classes(lambda: ln.QuadraticDiscriminantAnalysis()), {"n": TALL, "d": MANY}, {"n": 20_000, "d": 30, "K": 3},
    ),
    Cost(
        "KMeans", "mixtures", "(d + 2) float32 and 28 bytes for each row", {"n": 1, "d": 1, "K": 1},
        {"n": 1, "d": 1, "K": 1},
        _clusters(lambda K: ln.KMeans(K, random_state=0, n_init=1, max_iter=10, n_jobs=1)),
        {"n": TALL, "d": MANY, "K": (8, 16, 32, 64)}, {"n": 20_000, "d": 10, "K": 8}, per_iteration=True,
    ),
    Cost(
        "GaussianMixture", "mixtures", "O(Kd²)", {"n": 1, "d": 2, "K": 1}, {"n": 1, "d": 2, "K": 1},
        _clusters(lambda K: ln.GaussianMixture(K, random_state=0, max_iter=5, init_params="random_from_data")),
        {"n": (5000, 10_000, 20_000, 40_000), "d": (8, 16, 32, 64), "K": (2, 4, 8, 16)}, {"n": 5000, "d": 8, "K": 4},
        per_iteration=True,
    ),
    Cost(
        "PCA", "manifold", "O(nd²)", {"n": 1, "d": 2}, {"n": 1, "d": 2},
        _rows(lambda: ln.PCA(5)), {"n": TALL, "d": MANY}, {"n": 20_000, "d": 30},
    ),
    Cost(
        "ClassicalMDS", "manifold", "O(n²k)", {"n": 2}, {"n": 2},
        _rows(lambda: ln.ClassicalMDS(2)), {"n": (250, 500, 1000, 2000)}, {"n": 500, "d": 5},
    ),
    Cost(
        "KernelRidge", "kernel", "O(n³/3)", {"n": 3, "d": 1}, {"n": 2, "d": 1},
        _regression(lambda: ln.KernelRidge(alpha=1.0, kernel="rbf")), {"n": SQUARE, "d": (8, 16, 32, 64)},
        {"n": 800, "d": 5},
    ),
    Cost(
        "SVC", "kernel", "between O(n²d) and O(n³d)", {"n": 3, "d": 1}, {"n": 2, "d": 1},
        _classes(lambda: ln.SVC(C=1.0)), {"n": SQUARE, "d": (8, 16, 32, 64)}, {"n": 1000, "d": 5, "K": 2},
    ),
    Cost(
        "KNeighborsClassifier", "neighbors", "a prediction compares with all", {"n": 1, "d": 1}, {"n": 1, "d": 0},
        _queries, {"n": TALL, "d": MANY}, {"n": 20_000, "d": 20},
    ),
    Cost(
        "DecisionTreeClassifier", "trees", "O(nd log", {"n": 1.2, "d": 1, "K": 1}, {"n": 1, "d": 1, "K": 1},
        _classes(lambda: ln.DecisionTreeClassifier(random_state=0, max_depth=8)),
        {"n": (5000, 10_000, 20_000, 40_000), "d": (8, 16, 32, 64)}, {"n": 5000, "d": 10, "K": 3},
    ),
    Cost(
        "HistGradientBoostingRegressor", "ensembles", "Time O(nd)", {"n": 1, "d": 1}, {"n": 1, "d": 1},
        _regression(lambda: ln.HistGradientBoostingRegressor(max_iter=10, random_state=0, early_stopping=False)),
        {"n": TALL, "d": (8, 16, 32, 64)}, {"n": 20_000, "d": 10},
    ),
    Cost(
        "GaussianHMM", "sequences", "O(TK²)", {"n": 1, "K": 2}, {"n": 1, "K": 1},
        _chain, {"n": (5000, 10_000, 20_000, 40_000), "K": (4, 8, 16, 32)}, {"n": 5000, "d": 1, "K": 4},
        per_iteration=True,
    ),
    Cost(
        "MLPRegressor", "neural", "O(n) for the residuals", {"n": 1, "d": 1}, {"n": 1, "d": 1},
        _regression(lambda: ln.MLPRegressor(hidden_layer_sizes=(16,), max_iter=3, random_state=0, n_iter_no_change=9)),
        {"n": (5000, 10_000, 20_000, 40_000), "d": MANY}, {"n": 5000, "d": 10}, per_iteration=True,
    ),
)  # fmt: skip


@dataclass
class Slope:
    """One measured exponent."""

    model: str
    variable: str
    declared: float
    measured: float
    what: str  #: "time" or "memory"

    @property
    def exceeds(self) -> bool:
        """Whether the cost grows faster than declared."""
        return self.measured > self.declared + SLACK


def measure(cost: Cost, small: bool = False) -> list[Slope]:
    """Return the slopes of one model in all its variables."""
    found = []
    for variable, sizes in cost.sizes.items():
        sizes = sizes[:2] if small else sizes
        times = []
        peaks = []
        for size in sizes:
            fit = cost.fit(cost.fixed | {variable: size})
            times.append(_seconds(fit, cost.per_iteration))
            peaks.append(float(_peak(fit)))
        found.append(Slope(cost.model, variable, cost.time.get(variable, 0), _slope(sizes, times), "time"))
        if min(peaks[-3:]) >= cost.least_memory:
            slope = _slope(sizes, peaks)
            found.append(Slope(cost.model, variable, cost.memory.get(variable, 0), slope, "memory"))
    return found


def _seconds(fit: Callable[[], Any], per_iteration: bool) -> float:
    best = np.inf
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(3):
            gc.collect()
            begin = time.process_time()
            model = fit()
            seconds = time.process_time() - begin
            if per_iteration:
                seconds /= max(1, int(np.max(getattr(model, "n_iter_", len(getattr(model, "history_", [1]))))))
            best = min(best, seconds)
    return best


def _peak(fit: Callable[[], Any]) -> int:
    gc.collect()
    tracemalloc.start()
    try:
        with threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fit()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def _slope(sizes: tuple[int, ...], costs: list[float]) -> float:
    """Return the slope of log cost against log size over the three largest sizes."""
    x = np.log(np.array(sizes[-3:], dtype=float))
    y = np.log(np.maximum(costs[-3:], 1e-9))
    return float(np.polyfit(x, y, 1)[0])


def to_markdown(slopes: list[Slope]) -> str:
    """Return one row per model: declared and measured exponents."""
    lines = [
        "| model | docstring | time: n | d | K | memory: n | d | K | |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for cost in COSTS:
        mine = {(slope.what, slope.variable): slope for slope in slopes if slope.model == cost.model}
        if not mine:
            continue
        cells = []
        for what in ("time", "memory"):
            for variable in VARIABLES:
                slope = mine.get((what, variable))
                cells.append("" if slope is None else f"{slope.measured:.2f} ({slope.declared:g})")
        flag = ", ".join(f"{s.what} in {s.variable} EXCEEDS" for s in mine.values() if s.exceeds)
        lines.append(f"| `{cost.model}` | {cost.quote} | " + " | ".join(cells) + f" | {flag} |")
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    """Measure, print the table, and return 1 if a cost exceeds what is declared."""
    parser = argparse.ArgumentParser(prog="benchmarks scaling", description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", metavar="name", help="families or models; all if none")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the table")
    options = parser.parse_args(arguments)
    known = {cost.model for cost in COSTS} | {cost.family for cost in COSTS}
    unknown = sorted(set(options.names) - known)
    if unknown:
        parser.error(f"there is no {', '.join(unknown)}; there are {', '.join(sorted(known))}")
    slopes = []
    for cost in COSTS:
        if options.names and not {cost.model, cost.family} & set(options.names):
            continue
        found = measure(cost)
        slopes += found
        said = "; ".join(f"{s.what} {s.variable} {s.measured:.2f} ({s.declared:g})" for s in found)
        print(f"{cost.model}: {said}", flush=True)
    table = to_markdown(slopes)
    print("\n" + table)
    if options.markdown:
        options.markdown.write_text(table + "\n", encoding="utf-8")
    return int(any(slope.exceeds for slope in slopes))


if __name__ == "__main__":
    raise SystemExit(main())
