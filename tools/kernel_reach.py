"""Which kernels there are, and which of them the small cases of `learnable warmup` and `make wheel` reach.

A kernel is reached where a case calls it, or calls one that it is part of: its code is in the wheel then. `make wheel`
names the kernels that are missing and in neither list below.

    python -m tools.kernel_reach        # runs every case, some minutes
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
from collections.abc import Iterable, Iterator, Mapping
from types import CodeType, FunctionType, ModuleType
from typing import Any

import learnable
from learnable.core.jit import Kernel
from learnable.core.kernel_cache import name_of

_IN_DENSITY = "is compiled into the density that NUTS is given, which is a function of its own"
#: Kernels that no case can reach, with the reason.
EXEMPT = {
    "learnable.ensembles.forest._kernels.count_codes": "forests on a cluster whose workers have no room for the table",
    "learnable.ensembles.forest._kernels.place_rows": "forests on a cluster whose workers have no room for the table",
    "learnable.sampling._metropolis_kernels.sweep": "takes the user's compiled density, and is compiled with it",
    "learnable.sampling._metropolis_kernels.walk": "takes the user's compiled density, and is compiled with it",
    "learnable.sampling._regression_kernels._score": _IN_DENSITY,
    "learnable.sampling._regression_kernels._softmax_rows": _IN_DENSITY,
    "learnable.sampling._regression_kernels.digamma": _IN_DENSITY,
    "learnable.sampling._regression_kernels.log_posterior": _IN_DENSITY,
    "learnable.sampling._regression_kernels.log_prior": _IN_DENSITY,
    "learnable.sampling._regression_kernels.row_likelihood": _IN_DENSITY,
    "learnable.sampling.random.beta": "is there for kernels that users write",
    "learnable.sampling.random.categorical": "is there for kernels that users write",
    "learnable.sampling.random.exponential": "is there for kernels that users write",
}
#: Kernels that no case reaches yet: their first use compiles them, from the wheel too. The list may only shrink.
GAPS = frozenset(
    {
        "learnable.data.stream.rows_of_columns",
        "learnable.decisions.rl.deep._physics.advance_many",
        "learnable.decisions.rl.deep._update_kernels.first_bad",
        "learnable.kernel.gp.likelihood.multiply_rows",
        "learnable.kernel.operators._sum_line",
        "learnable.kernel.operators.gauss_sums",
        "learnable.kernel.operators.gauss_sums64",
        "learnable.kernel.rows.gauss_tile",
        "learnable.kernel.rows.sparse_dots",
        "learnable.linear.descent.epoch_sparse",
        "learnable.linear.logistic.tall.add_columns",
        "learnable.linear.margin._kernels.dual_pass_sparse",
        "learnable.linear.margin._kernels.lasso_hinge_pass",
        "learnable.linear.margin._kernels.subgradient_pass",
        "learnable.linear.margin._kernels.subgradient_step",
        "learnable.linear.margin.crammer_singer.joint_pass",
        "learnable.linear.margin.crammer_singer.project_rows_onto_simplex",
        "learnable.linear.margin.crammer_singer.solve_simplex",
        "learnable.mixtures._kernels.lower_squares",
        "learnable.neighbors._kernels.sparse_squares_of_pairs",
        "learnable.neighbors._kernels.squares_of_pairs",
        "learnable.neural._kernels.scatter_add",
        "learnable.neural._optimiser_kernels.adagrad",
        "learnable.neural._optimiser_kernels.descent",
        "learnable.neural._optimiser_kernels.momentum",
        "learnable.probability.multivariate_normal.squared_lengths",
        "learnable.risk.shortfall.curvature_sparse",
        "learnable.sequences._kernels.backward_logs",
        "learnable.sequences._kernels.draw_paths",
        "learnable.sequences._kernels.forward_logs",
        "learnable.sequences._kernels.log_mix",
        "learnable.sequences._kernels.log_total",
        "learnable.solvers.composite._kernels.column_dots",
        "learnable.solvers.composite._kernels.column_sums",
        "learnable.solvers.composite._kernels.gather_scaled",
        "learnable.solvers.conic._smo_kernels.narrow_rows",
        "learnable.solvers.systems.moments.sparse_normal_product",
        "learnable.topics._kernels.build_aliases",
        "learnable.topics._kernels.draw_documents",
        "learnable.topics._kernels.left_to_right",
        "learnable.topics._kernels.sweep_collapsed",
        "learnable.topics._kernels.sweep_sparse",
        "learnable.topics._ml_kernels.weigh_counts",
        "learnable.trees.exact._nodes.take_rows",
        "learnable.trees.histogram.walker.add_walked",
    }
)


def main() -> int:
    """Run every case; print the kernels that none of them reaches and return how many there are."""
    from learnable.core import kernel_cache
    from learnable.evaluation.comparison.cases import warm_cases

    for warmed in warm_cases():
        if warmed.failure is not None:
            print(f"{warmed.name} failed: {warmed.failure}", file=sys.stderr)
    lost = missing(take_inventory(), kernel_cache.called)
    print("\n".join(lost))
    return len(lost)


def take_inventory() -> dict[str, Kernel]:
    """Import every module whose dependencies are installed, and return all kernels by name."""
    kernels: dict[str, Kernel] = {}
    for name in _module_names():
        try:
            module = importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name is None or error.name.startswith("learnable"):
                raise
            continue
        for value in vars(module).values():
            for kernel in _kernels_in(value):
                kernels[name_of(kernel.py_func)] = kernel
    return kernels


def missing(kernels: Mapping[str, Kernel], called: Iterable[str]) -> list[str]:
    """Return the kernels that were neither called nor part of one that was, and are in neither list."""
    reached = set(called)
    for name in reached & kernels.keys():
        reached |= {name_of(part.py_func) for part in parts_of(kernels[name])}
    return sorted(kernels.keys() - reached - EXEMPT.keys() - GAPS)


def parts_of(kernel: Kernel) -> Iterator[Kernel]:
    """Yield a kernel and all kernels that it calls."""
    found = {id(kernel): kernel}
    waiting = [kernel]
    while waiting:
        one = waiting.pop()
        yield one
        for other in _used_by(one.py_func):
            if id(other) not in found:
                found[id(other)] = other
                waiting.append(other)


def _used_by(function: Any) -> Iterator[Kernel]:
    names = set(_names_in(function.__code__))
    values = [function.__globals__[name] for name in names if name in function.__globals__]
    values += [cell.cell_contents for cell in function.__closure__ or ()]
    for value in values:
        if isinstance(value, FunctionType):  # an overload that Numba compiles with the kernel
            yield from _used_by(value)
        inner = [vars(value)[name] for name in names if name in vars(value)] if isinstance(value, ModuleType) else []
        for one in (value, *inner):
            yield from _kernels_in(one)


def _names_in(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names_in(constant)


def _kernels_in(value: Any) -> Iterator[Kernel]:
    if isinstance(value, Kernel):
        yield value
    elif isinstance(value, tuple | list | set | frozenset):
        for one in value:
            yield from _kernels_in(one)
    elif isinstance(value, dict):
        for one in value.values():
            yield from _kernels_in(one)


def _module_names() -> list[str]:
    found = pkgutil.walk_packages(learnable.__path__, "learnable.")
    return [one.name for one in found if not one.name.endswith("__main__")]


if __name__ == "__main__":
    sys.exit(main())
