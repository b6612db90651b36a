"""Time contenders side by side and judge them by the quality they reach.

A `Row` names one job. Its contenders run interleaved in one process on the same data, best of several; the
first call of each, which compiles and warms caches, is reported apart. A contender whose objective is worse
than the best one seen by more than the row's tolerance does not count: speed at a worse answer is no speed.
"""

from __future__ import annotations

import gc
import os
import platform
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from math import isfinite, nan
from pathlib import Path
from typing import Any

OURS = "learnable"
PACKAGES: tuple[str, ...] = ("learnable", "numpy", "scipy", "numba", "scikit-learn", "scikit-learn-intelex")
PACKAGES += ("faiss-cpu", "lightgbm", "xgboost", "catboost", "shap")
PACKAGES += ("tomotopy", "gensim", "openTSNE")
PACKAGES += ("mabwiser", "SMPyBandits", "mdpsolver", "quantecon", "gymnasium", "stable-baselines3")


@dataclass(frozen=True)
class Row:
    """One job, its contenders and what is asked of ours.

    A contender is called `library` or `library (variant)`; ours is `learnable`. Its callable gets the data
    and returns the fitted model; an ImportError means that the library is not installed.
    """

    name: str
    job: str
    size: str
    make_data: Callable[[bool], Any]  #: quick -> data
    contenders: Mapping[str, Callable[[Any], Any]]
    quality: Callable[[Any, Any], dict[str, float]]  #: (fitted, data) -> named numbers
    targets: Mapping[str, float] = field(default_factory=dict)  #: library -> least ratio of its time to ours
    compared: str | None = "objective"  #: the number of `quality` that must not be worse; lower is better
    tolerance: float = 1e-8  #: largest relative excess over the best one seen
    floor: float = 0.0  #: the excess is relative to max(|best|, floor)
    limit_seconds: float | None = None  #: most time that ours may take
    same_steps: bool = False  #: all take the same number of steps, from the same start: no fit has to have converged
    limits: Mapping[str, float] = field(default_factory=dict)  #: number of ours' `quality` -> the most it may be
    calls: int = 1  #: if more than one, the fastest of so many counts in each turn, by processor time: jobs under 10 ms


@dataclass
class Timing:
    """What was measured of one contender."""

    contender: str
    installed: bool = True
    seconds: list[float] = field(default_factory=list)
    first_call: float | None = None
    peak_megabytes: float | None = None
    quality: dict[str, float] = field(default_factory=dict)
    certificate: dict[str, Any] | None = None
    excess: float | None = None
    reached: bool = True

    @property
    def best(self) -> float:
        """Time of the fastest call."""
        return min(self.seconds)

    @property
    def library(self) -> str:
        """The library that the contender belongs to."""
        return self.contender.partition(" (")[0]


@dataclass
class Comparison:
    """Ours against the fastest variant of one library that reaches the objective."""

    library: str
    contender: str | None
    ratio: float | None
    target: float | None
    verdict: str  #: met, MISSED, no target, not installed, objective not reached


@dataclass
class Result:
    """One row, measured."""

    row: str
    job: str
    size: str
    compared: str | None
    tolerance: float
    limit_seconds: float | None
    timings: list[Timing]
    comparisons: list[Comparison]
    failures: list[str]  #: why ours does not count, in words

    @property
    def ours(self) -> Timing:
        """What was measured of ours."""
        return next(timing for timing in self.timings if timing.contender == OURS)

    @property
    def passed(self) -> bool:
        """Whether ours is right and every target is met."""
        return not self.failures and all(comparison.verdict != "MISSED" for comparison in self.comparisons)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain JSON types."""
        record = asdict(self)
        for timing, stored in zip(self.timings, record["timings"], strict=True):
            if timing.seconds:
                stored |= {"best": timing.best, "warm_up": warm_up(timing)}
        return record | {"passed": self.passed}


def measure(row: Row, *, quick: bool = False, repeats: int = 5, say: Callable[[str], None] = print) -> Result:
    """Run every contender of `row`, interleaved, and judge the outcome; a quick run has no targets."""
    data = row.make_data(quick)
    timings = [Timing(name) for name in row.contenders]
    models: dict[str, Any] = {}
    for turn in range(repeats + 1):
        for timing in timings:
            if not timing.installed:
                continue
            models.pop(timing.contender, None)
            fit = row.contenders[timing.contender]
            try:
                seconds, models[timing.contender], peak = _timed(fit, data, 1 if turn == 0 else row.calls)
            except ImportError:
                timing.installed = False
                say(f"  {timing.contender}: not installed")
                continue
            if turn == 0:
                timing.first_call = seconds
            else:
                timing.seconds.append(seconds)
                timing.peak_megabytes = peak
            say(f"  {timing.contender}: {seconds:.4g} s{' (first call)' if turn == 0 else ''}")
    for timing in timings:
        if timing.installed:
            model = models.pop(timing.contender)
            timing.quality = row.quality(model, data)
            certificate = getattr(model, "certificate_", None)
            timing.certificate = None if certificate is None else certificate.to_dict()
    if quick:
        row = replace(row, size=f"{row.size}, quick version", targets={}, limits={})
    return judge(row, timings)


def judge(row: Row, timings: list[Timing]) -> Result:
    """Mark who reached the objective, and compare ours with the fastest of each library that did."""
    present = [timing for timing in timings if timing.installed]
    if row.compared is not None:
        best = min((v for t in present if isfinite(v := t.quality[row.compared])), default=nan)
        for timing in present:
            timing.excess = (timing.quality[row.compared] - best) / max(abs(best), row.floor)
            timing.reached = timing.excess <= row.tolerance
    ours = next(timing for timing in timings if timing.contender == OURS)
    libraries = dict.fromkeys([*(t.library for t in timings if t is not ours), *row.targets])
    comparisons = [_compare(library, ours, timings, row.targets.get(library)) for library in libraries]
    failures = []
    if not ours.reached:
        failures.append(f"{row.compared} is {ours.excess:.2g} (relative) above the best one seen")
    # `none` claims nothing, so that nothing has to hold: the numbers judge such a fit.
    claim = None if row.same_steps else ours.certificate
    if claim is not None and claim["kind"] != "none" and not claim["holds"]:
        failures.append("the certificate does not hold")
    if row.limit_seconds is not None and ours.best > row.limit_seconds:
        failures.append(f"took {ours.best:.3g} s, more than {row.limit_seconds:g} s")
    for name, most in row.limits.items():
        if ours.quality[name] > most:
            failures.append(f"{name} is {ours.quality[name]:.4g}, more than {most:g}")
    return Result(
        row=row.name,
        job=row.job,
        size=row.size,
        compared=row.compared,
        tolerance=row.tolerance,
        limit_seconds=row.limit_seconds,
        timings=timings,
        comparisons=comparisons,
        failures=failures,
    )


def warm_up(timing: Timing) -> float:
    """Return what the first call took beyond the best one: compiling and warming caches."""
    return max(0.0, (timing.first_call or 0.0) - timing.best)


def blas_threads() -> int:
    """Return the threads that BLAS has, which every contender gets."""
    import scipy.linalg  # noqa: F401  its BLAS has to be loaded to be counted
    from threadpoolctl import threadpool_info

    return max((pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"), default=1)


def environment() -> dict[str, Any]:
    """Return the versions, the machine and the date."""
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "cpu": _cpu_model(),
        "cpus": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "blas_threads": blas_threads(),
        "system": f"{platform.system()} {platform.machine()}",
        "versions": {"python": platform.python_version(), **{name: _version(name) for name in PACKAGES}},
    }


#: Threads of BLAS and of other libraries wait actively after a call; a contender must not pay for the one before it.
SETTLING_SECONDS = 0.3


def _timed(fit: Callable[[Any], Any], data: Any, calls: int) -> tuple[float, Any, float | None]:
    gc.collect()
    if calls > 1:
        return *_fastest_of(fit, data, calls), None
    time.sleep(SETTLING_SECONDS)
    before = _reset_peak_memory()
    start = time.perf_counter()
    model = fit(data)
    seconds = time.perf_counter() - start
    peak = _status_megabytes("VmHWM")
    return seconds, model, None if before is None or peak is None else max(0.0, peak - before)


def _fastest_of(fit: Callable[[Any], Any], data: Any, calls: int) -> tuple[float, Any]:
    """Return the processor time of the fastest call, which other processes do not change, and the last model."""
    best = float("inf")
    for _ in range(calls):
        start = time.process_time()
        model = fit(data)
        best = min(best, time.process_time() - start)
    return best, model


def _compare(library: str, ours: Timing, timings: list[Timing], target: float | None) -> Comparison:
    variants = [timing for timing in timings if timing.library == library]
    if not any(timing.installed for timing in variants):
        return Comparison(library, None, None, target, "not installed")
    reached = [timing for timing in variants if timing.installed and timing.reached]
    if not reached:
        return Comparison(library, None, None, target, "objective not reached")
    fastest = min(reached, key=lambda timing: timing.best)
    ratio = fastest.best / ours.best
    verdict = "no target" if target is None else "met" if ratio >= target else "MISSED"
    return Comparison(library, fastest.contender, ratio, target, verdict)


def _reset_peak_memory() -> float | None:
    """Set the process's peak to its present size and return that in MB; None where there is no /proc."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return None
    return _status_megabytes("VmRSS")


def _status_megabytes(entry: str) -> float | None:
    try:
        match = re.search(rf"^{entry}:\s+(\d+) kB", Path("/proc/self/status").read_text(), re.MULTILINE)
    except OSError:
        return None
    return int(match[1]) / 1024 if match else None


def _cpu_model() -> str:
    try:
        match = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    except OSError:
        match = None
    return match[1] if match else platform.processor() or "unknown"


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        if package != OURS:
            return "not installed"
        import learnable

        return learnable.__version__
