"""Compile the kernels of all models, as `learnable warmup` does: two processes share the work, a group at a time.

The models of a group share kernels, and groups have few in common, so that next to nothing is compiled twice. A
process takes the next group as soon as it is free; long groups come first, and last what uses the kernels of others.
"""

from __future__ import annotations

import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from learnable.core.registry import REGISTRY, estimator_names
from learnable.core.threads import _controller, thread_budget
from learnable.evaluation.comparison import cases

#: Where the models of a group lie; a model belongs to the first group that has it.
GROUPS = (
    ("ensembles.gradient.hist",),
    ("trees", "ensembles"),
    ("linear",),
    ("manifold", "sequences", "topics"),
    ("neural",),
    ("mixtures",),
    ("kernel", "neighbors", "generative"),
)
#: What is no model, and the models that are built of others.
DECISIONS, REST = len(GROUPS), len(GROUPS) + 1


def group_of(name: str) -> int:
    """Return the number of the group of a model."""
    path = REGISTRY[name].path.removeprefix("learnable.")
    return next((number for number, folders in enumerate(GROUPS) if path.startswith(folders)), REST)


def warm(group: int) -> list[str]:
    """Run the small cases of a group; return what could not be fitted."""
    thread_budget()  # is counted before BLAS's threads are limited: those of two processes would wait for each other
    _controller().limit(limits=1)
    names = [name for name in estimator_names() if group_of(name) == group]
    failures = [
        f"{warmed.name}: {warmed.failure}"
        for warmed in cases.warm_cases(names, others=False, documented=False)  # examples are tests themselves
        if warmed.failure is not None
    ]
    others = {DECISIONS: (cases.small_decisions, cases.small_posteriors)}
    others[REST] = tuple(case for case in cases.OTHERS if case not in others[DECISIONS])
    for case in others.get(group, ()):
        for _ in case():
            pass
    return failures


def main() -> int:
    """Run all groups; return how many models could not be fitted."""
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as processes:
        failures = [failure for found in processes.map(warm, range(REST + 1)) for failure in found]
    print("\n".join(failures), file=sys.stderr, end="\n" if failures else "")
    return len(failures)


if __name__ == "__main__":
    sys.exit(main())
