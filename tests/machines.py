"""Run the tests that take decisions from numbers as other machines would: `python -m tests.machines [--list]`.

OpenBLAS and Numba choose their code by the processor, and sums differ in their last bits; a decision that hangs on
these bits would be right here and wrong elsewhere. Each run pretends to be one machine: a kernel of OpenBLAS with one
thread or two, beside it an instruction set for Numba or the processor's own, or a machine on which every core is busy.
What this processor cannot run is left out, and said. `python -m tests.machines Zen busy` runs those machines only whose
names have one of these words.

The tests are those of the packages whose fits take decisions from sums: whether the rows are separable, which split
is best, whether a step went up, when to stop. On the busy machine it is all of them, because any test may wait.
"""

from __future__ import annotations

import contextlib
import os
import platform
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
PACKAGES = (
    "solvers", "linear", "kernel", "generative", "mixtures", "sequences", "neighbors", "trees", "ensembles",
    "contract", "data", "decisions", "manifold", "meta", "neural", "probability", "risk", "sampling", "theory",
    "topics",
)  # fmt: skip
#: The processor's flags that each needs.
AVX2, AVX512 = {"avx2", "fma"}, {"avx512f", "avx512dq", "avx512bw", "avx512vl"}


class Machine(NamedTuple):
    """One run."""

    name: str
    settings: dict[str, str]
    needs: set[str]
    is_busy: bool = False


#: Flags of the processor that each kernel of OpenBLAS and each instruction set needs.
NEEDS = {
    "Haswell": AVX2,
    "Zen": AVX2,
    "SkylakeX": AVX512,
    "x86-64-v2": {"sse4_2"},
    "x86-64-v3": AVX2,
    "x86-64-v4": AVX512,
}
#: Kernel of OpenBLAS, its threads, and Numba's instruction set ("" for all that the processor has).
PAIRS = (
    ("Haswell", 1, "x86-64-v2"),
    ("Haswell", 2, "x86-64-v3"),
    ("Zen", 1, "x86-64-v3"),
    ("Zen", 2, ""),
    ("SkylakeX", 1, "x86-64-v4"),
    ("SkylakeX", 2, ""),
)


def machines() -> list[Machine]:
    """Return all runs."""
    return [*(_machine(*pair) for pair in PAIRS), Machine("every core busy", {}, set(), is_busy=True)]


def _machine(core: str, threads: int, level: str) -> Machine:
    settings = {
        "OPENBLAS_CORETYPE": core,
        "OPENBLAS_NUM_THREADS": str(threads),
        "LEARNABLE_BLAS_THREADS": str(threads),
    }
    if level:  # without the empty list of features Numba would add those of this processor to the ones named
        settings |= {"NUMBA_CPU_NAME": level, "NUMBA_CPU_FEATURES": ""}
    name = f"OpenBLAS {core} with {threads} thread(s), Numba {level or 'as it is'}"
    return Machine(name, settings, NEEDS[core] | NEEDS.get(level, set()))


def why_not(machine: Machine, flags: set[str], processor: str) -> str | None:
    """Return why a run is left out on a processor with these flags; None if it is not."""
    if machine.needs and processor not in ("x86_64", "AMD64"):
        return f"this processor is {processor}"
    missing = sorted(machine.needs - flags)
    return f"this processor has no {', '.join(missing)}" if missing else None


def processor_flags() -> set[str]:
    """Return the flags of this processor, where the system tells them."""
    path = Path("/proc/cpuinfo")
    text = path.read_text() if path.exists() else ""
    return next((set(line.partition(":")[2].split()) for line in text.splitlines() if line.startswith("flags")), set())


@contextlib.contextmanager
def busy_cores(is_wanted: bool) -> Iterator[None]:
    """Keep every core busy."""
    loop = [sys.executable, "-c", "while True: pass"]
    idle = [subprocess.Popen(loop) for _ in range(os.cpu_count() or 1)] if is_wanted else []
    try:
        yield
    finally:
        for process in idle:
            process.kill()
            process.wait()


def main() -> int:
    """Run everything; return how many runs failed."""
    flags, failed = processor_flags(), []
    words = [word for word in sys.argv[1:] if not word.startswith("-")]
    for machine in machines():
        if words and not any(word in machine.name for word in words):
            continue
        reason = why_not(machine, flags, platform.machine())
        print(f"== {machine.name}: {'left out, ' + reason if reason else machine.settings}", flush=True)
        if reason or "--list" in sys.argv:
            continue
        command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "--dist", "loadfile", "-m", "not long"]
        command += ["--no-loadscope-reorder"]
        with busy_cores(machine.is_busy):
            folders = ["tests"] if machine.is_busy else [f"tests/{package}" for package in PACKAGES]
            environment = os.environ | machine.settings | {"LEARNABLE_CASES": "more"}
            done = subprocess.run([*command, *folders], cwd=ROOT, env=environment)
        if done.returncode:
            failed.append(machine.name)
    print(f"{len(failed)} runs failed{': ' if failed else ''}{', '.join(failed)}")
    return len(failed)


if __name__ == "__main__":
    sys.exit(main())
