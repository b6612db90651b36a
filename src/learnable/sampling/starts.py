"""Where chains start: what the user says, or random points of finite density; failures name the parameter."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.errors import DataError, ParameterError
from .states import branch_of
from .targets import Target

Array = NDArray[np.float64]

#: Random starts are uniform on (−2, 2) in every free coordinate, as in Stan; so many are tried before giving up.
_RADIUS = 2.0
_TRIES = 100


def starting_points(target: Target, x0: Any, n_chains: Any, root: np.random.SeedSequence) -> list[Array]:
    """Return the free coordinates of the start of each chain.

    Parameters
    ----------
    target : Target
        What is sampled.
    x0 : None, array, mapping or sequence of mappings
        None draws starts.
    n_chains : int
        Number of chains.
    root : SeedSequence
        For random starts, which are apart from the streams of the chains.
    """
    owner = target.owner
    if not isinstance(n_chains, (int, np.integer)) or isinstance(n_chains, bool) or n_chains < 1:
        raise ParameterError(f"{owner}: n_chains must be an integer of at least 1; got {n_chains!r}.")
    if x0 is not None:
        return _given(target, x0, int(n_chains))
    rng = branch_of(root, 0)
    return [_random_start(target, rng) for _ in range(int(n_chains))]


def check_start(target: Target, u: Array) -> None:
    """Raise DataError unless the density at a start is finite and its gradient says where to go."""
    value, gradient = target.evaluate(u)
    if not math.isfinite(value):
        raise DataError(
            f"{target.owner}: the log density at the start {_describe(target, u)} is {value}; "
            "pass x0 where it is finite."
        )
    faulty = [label for label, g in zip(target.labels, gradient, strict=True) if not math.isfinite(g)]
    if faulty:
        named = ", ".join(faulty[:5])
        raise DataError(f"{target.owner}: the gradient by {named} is not finite at the start {_describe(target, u)}.")
    still = [label for label, g in zip(target.labels, gradient, strict=True) if g == 0.0]
    if len(still) == len(gradient):
        raise DataError(
            f"{target.owner}: the gradient by {', '.join(still[:5])} is zero at the start; the density does not "
            "depend on its parameters there, or its gradient is not written. If the start is the very mode, pass "
            "another x0."
        )


def _given(target: Target, x0: Any, n_chains: int) -> list[Array]:
    if isinstance(x0, Mapping):
        return [_free(target, x0)] * n_chains
    if isinstance(x0, Sequence) and x0 and all(isinstance(one, Mapping) for one in x0):
        if len(x0) != n_chains:
            raise DataError(f"{target.owner}: x0 has {len(x0)} starts for {n_chains} chains.")
        return [_free(target, one) for one in x0]
    start = np.asarray(x0, dtype=np.float64)
    wanted = target.parameters.n_natural if target.parameters else target.dimension
    if start.shape not in ((wanted,), (n_chains, wanted)):
        raise DataError(f"{target.owner}: x0 must have shape ({wanted},) or ({n_chains}, {wanted}); got {start.shape}.")
    if not np.isfinite(start).all():
        raise DataError(f"{target.owner}: x0 must be finite; got {start[~np.isfinite(start)][0]}.")
    rows = np.broadcast_to(start, (n_chains, wanted))
    if target.parameters is None:
        return [row.copy() for row in rows]
    return [_free(target, target.parameters.named(row)) for row in rows]


def _free(target: Target, values: Mapping[str, Any]) -> Array:
    if target.parameters is None:
        raise DataError(f"{target.owner}: x0 by name needs parameters={{…}} that say the names.")
    return target.parameters.free(target.owner, values)


def _random_start(target: Target, rng: np.random.Generator) -> Array:
    for _ in range(_TRIES):
        u = rng.uniform(-_RADIUS, _RADIUS, target.dimension)
        value, gradient = target.evaluate(u)
        if math.isfinite(value) and np.isfinite(gradient).all():
            return u
    if math.isfinite(value):
        check_start(target, u)
    raise DataError(
        f"{target.owner}: none of {_TRIES} random starts has a finite density; the last was {_describe(target, u)}, "
        "where the log density is −inf, +inf or NaN. Pass x0, or give each parameter its support."
    )


def _describe(target: Target, u: Array) -> str:
    """Return the natural parameters of a point in words."""
    if target.parameters is None:
        return f"x = {np.array2string(u, precision=4, threshold=6)}"
    parts = target.parameters.natural(u)
    return ", ".join(f"{name} = {np.array2string(x, precision=4, threshold=4)}" for name, x in list(parts.items())[:6])
