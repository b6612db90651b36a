"""What can be sampled: compiled functions, Python functions with or without gradients, on named supports.

Kernels see one thing: the address of a C function `double f(double *x, double *gradient, int64_t *data)`. A compiled
density is that; a Python function is called through a small bridge, which takes the interpreter's lock. So one compiled
sampler serves all, and it is compiled once for all densities.
"""

from __future__ import annotations

import ctypes
import math
import re
from collections.abc import Callable, Hashable, Mapping
from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ..core.errors import DataError, ParameterError
from ..core.jit import Kernel, kernel
from ._target_kernels import Problem, no_blocks
from .states import Variable
from .supports import Parameters

Array = NDArray[np.float64]

#: Beyond this many coordinates numeric gradients, 2d evaluations each, are refused.
MOST_NUMERIC: Final = 20
_BRIDGE: Final = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)


class Compiled:
    """A function that kernels can call, with the arrays that it reads; made by `compiled`.

    Attributes
    ----------
    address : int
        Of `double f(double *x, void *out, int64_t *data)`.
    writes_gradient : bool
        Whether it writes the gradient.
    """

    def __init__(self, function: Callable[..., Any], data: tuple[Any, ...], form: str) -> None:
        self.function = function
        self.form = form
        self.writes_gradient = form == "gradient"
        self._arrays = [_as_numbers(i, value) for i, value in enumerate(data)]
        if not isinstance(function, Hashable) or not callable(function):
            raise ParameterError(f"compiled: function must be a function; got {type(function).__name__}.")
        self._entry = _compile_entry(function, tuple((a.dtype.kind, a.ndim) for a in self._arrays), form)
        self.address = int(self._entry.address)

    def table(self, dimension: int) -> NDArray[np.int64]:
        """Return what the function reads: the dimension of x, then address and lengths of each array."""
        words = [dimension]
        for array in self._arrays:
            words += [array.ctypes.data, *array.shape]
        return np.array(words, dtype=np.int64)


def compiled(function: Callable[..., Any], *data: Any, gradient: bool = True) -> Compiled:
    """Compile a log density with Numba, for the samplers.

    Parameters
    ----------
    function : callable
        `function(x, gradient, *data) -> float` writes the gradient and returns the log density; with
        `gradient=False`, `function(x, *data) -> float`. In the subset of Python that Numba compiles.
    *data : arrays and numbers
        What the function reads: numbers, or arrays of them. They are not copied into the code, so that the
        same function with other data is compiled once.
    gradient : bool
        Whether the function writes the gradient.

    Returns
    -------
    Compiled
        To be passed as `log_density`.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable.sampling import compiled, nuts
    >>> def log_density(x, gradient, precision):
    ...     value = 0.0
    ...     for i in range(x.size):
    ...         gradient[i] = -precision[i] * x[i]
    ...         value += 0.5 * gradient[i] * x[i]
    ...     return value
    >>> target = compiled(log_density, np.array([1.0, 4.0]))
    >>> chains = nuts(target, {"x": 2}, n_draws=1000, random_state=0)
    >>> chains["x"].shape, chains.certificate_.holds
    ((4, 1000, 2), True)
    """
    return Compiled(function, data, "gradient" if gradient else "value")


def compiled_sweep(function: Callable[..., Any], *data: Any) -> Compiled:
    """Compile one sweep of a Gibbs sampler: `function(x, stream, *data)` changes x in place.

    The stream goes to the functions of `learnable.sampling.random`; nothing else may be random.
    """
    return Compiled(function, data, "sweep")


def _as_numbers(place: int, value: Any) -> NDArray[Any]:
    array = np.asarray(value)
    if array.dtype.kind in "biu":
        return np.ascontiguousarray(array, dtype=np.int64).reshape(array.shape)
    if array.dtype.kind == "f":
        return np.ascontiguousarray(array, dtype=np.float64).reshape(array.shape)
    raise DataError(f"compiled: data[{place}] must be numbers or an array of numbers; got {type(value).__name__}.")


@lru_cache(maxsize=64)  # the same function with other data is compiled once
def _compile_entry(function: Callable[..., Any], kinds: tuple[tuple[str, int], ...], form: str) -> Any:
    """Return Numba's C callback that finds the arrays and calls the function with them.

    The source depends on the kinds of the data alone: a table of addresses is read when it runs.
    """
    import numba
    from numba import types

    from ..core import intrinsics

    inner = function if isinstance(function, Kernel) or hasattr(function, "py_func") else kernel(function)
    second = "words" if form == "sweep" else "numbers"
    length = 1 + sum(1 + ndim for _, ndim in kinds)
    lines = [
        "def entry(x, out, data):",
        f"    table = array_at(data, ({length},))",
        "    n = table[0]",
        "    point = array_at(x, (n,))",
    ]
    arguments = ["point"]
    place = 1
    if form != "value":
        size = "4" if form == "sweep" else "n"
        lines.append(f"    second = array_at(out, ({size},))")
        arguments.append("second")
    for i, (kind, ndim) in enumerate(kinds):
        at = "numbers_at" if kind == "f" else "integers_at"
        shape = ", ".join(f"table[{place + 1 + k}]" for k in range(ndim)) if ndim else "1"
        lines.append(f"    a{i} = array_at({at}(uint64(table[{place}])), ({shape},))")
        arguments.append(f"a{i}" if ndim else f"a{i}[0]")
        place += 1 + ndim
    call = f"inner({', '.join(arguments)})"
    lines += [f"    {call}", "    return 0.0"] if form == "sweep" else [f"    return {call}"]
    names = {
        "inner": inner,
        "array_at": intrinsics.array_at,
        "numbers_at": intrinsics.numbers_at,
        "integers_at": intrinsics.integers_at,
        "uint64": np.uint64,
    }
    exec("\n".join(lines), names)  # the lines are made of numbers alone
    pointer: Any = types.CPointer
    kind_of_second = types.uint64 if second == "words" else types.float64
    signature = types.float64(pointer(types.float64), pointer(kind_of_second), pointer(types.int64))
    try:
        compile_callback: Any = numba.cfunc
        return compile_callback(signature, nopython=True)(names["entry"])
    except numba.core.errors.NumbaError as error:
        lines = re.sub(r"\x1b\[[0-9;]*m", "", str(error)).strip().splitlines()  # without the colours of a terminal
        raise DataError(f"compiled: Numba cannot compile {function!r}: {' '.join(lines[:4])}") from error


class Target:
    """A log density on free coordinates, ready for kernels.

    Parameters
    ----------
    owner : str
        The sampler, for messages.
    log_density : Compiled or callable
        A Python function gets the natural parameters, as a dict by name if `parameters` has supports by name and as one
        vector otherwise, and returns the log density or the pair (log density, gradient); the gradient has the
        same form as the argument.
    parameters : Parameters or None
        Names and supports; None for one free vector "x".
    dimension : int
        Number of free coordinates.
    needs_gradient : bool
        Whether the sampler uses gradients.
    """

    def __init__(
        self, owner: str, log_density: Any, parameters: Parameters | None, dimension: int, *, needs_gradient: bool
    ) -> None:
        if not (callable(log_density) or isinstance(log_density, Compiled)):
            raise ParameterError(f"{owner}: log_density must be a function or compiled(…); got {log_density!r}.")
        if isinstance(log_density, Compiled) and log_density.form == "sweep":
            raise ParameterError(f"{owner}: a compiled sweep is no density; pass it to gibbs.")
        self.owner = owner
        self.log_density = log_density
        self.parameters = parameters
        self.dimension = dimension
        self.needs_gradient = needs_gradient
        self.numeric = False  #: whether gradients are differences
        self.failed = np.zeros(1, dtype=np.int64)
        self._error: BaseException | None = None
        if isinstance(log_density, Compiled):
            if needs_gradient and not log_density.writes_gradient:
                raise ParameterError(
                    f"{owner}: the compiled density writes no gradient; pass compiled(…, gradient=True)."
                )
            self.address = log_density.address
            self.table = log_density.table(parameters.n_natural if parameters else dimension)
        else:
            self._bridge = _BRIDGE(self._call)
            self.address = int(ctypes.cast(self._bridge, ctypes.c_void_p).value or 0)
            self.table = np.array([dimension], dtype=np.int64)

    @property
    def is_compiled(self) -> bool:
        """Whether no Python runs inside the sampler."""
        return isinstance(self.log_density, Compiled)

    @property
    def variables(self) -> tuple[Variable, ...]:
        """What one draw holds."""
        return self.parameters.variables if self.parameters else (Variable("x", (self.dimension,)),)

    @property
    def labels(self) -> list[str]:
        """Names of the free coordinates."""
        return self.parameters.free_labels() if self.parameters else [f"x[{i}]" for i in range(self.dimension)]

    def problem(self) -> Problem:
        """Return what kernels need, with scratch arrays of its own; the target must outlive it."""
        n = self.parameters.n_natural if self.parameters else 0
        blocks, bounds = (self.parameters.blocks, self.parameters.bounds) if self.parameters else no_blocks()
        return Problem(self.address, self.table, blocks, bounds, np.zeros(n), np.zeros(n), self.failed)

    def natural(self, u: Array) -> Array:
        """Return draws on the natural scale, row by row."""
        return self.parameters.flat(u) if self.parameters else u

    def evaluate(self, u: Array) -> tuple[float, Array]:
        """Return the log density and its gradient by the free coordinates; for starts and checks, from Python."""
        from ._target_kernels import evaluate_one

        gradient = np.zeros(self.dimension)
        value = evaluate_one(self.problem(), np.ascontiguousarray(u, dtype=np.float64), gradient)
        self.raise_error()
        return float(value), gradient

    def values_around(self, u: Array, places: NDArray[np.int64], lengths: tuple[float, ...]) -> Array:
        """Return log densities (n_places, n_lengths, 2) where one coordinate is h·max(1, |u|) more, and less."""
        from ._target_kernels import evaluate_many

        shape = (len(places), len(lengths), 2)
        points = np.broadcast_to(u, (*shape, len(u))).copy()
        for k, i in enumerate(places):
            step = np.array(lengths) * max(1.0, abs(u[i]))
            points[k, :, 0, i] += step
            points[k, :, 1, i] -= step
        values = np.empty(points.size // len(u))
        evaluate_many(self.problem(), points.reshape(-1, len(u)), np.zeros(self.dimension), values)
        self.raise_error()
        return values.reshape(shape)

    def raise_error(self) -> None:
        """Raise what the Python function raised inside the sampler, if it did."""
        if self._error is not None:
            error = self._error
            self._error = None
            self.failed[0] = 0
            raise error

    # ---- Python functions ----

    def _call(self, x: int, out: int, data: int) -> float:
        """Call the Python function for a kernel; an error stops the kernel and is raised afterwards."""
        if self.failed[0]:
            return math.nan
        try:
            n = self.parameters.n_natural if self.parameters else self.dimension
            numbers: Any = ctypes.c_double * n
            point = np.frombuffer(numbers.from_address(x), dtype=np.float64).copy()
            value, gradient = self.value_and_gradient(point)
            if gradient is not None:
                np.frombuffer(numbers.from_address(out), dtype=np.float64)[:] = gradient
            return value
        except BaseException as error:  # handed to the caller of the kernel
            self._error = error
            self.failed[0] = 1
            return math.nan

    def value(self, x: Array) -> float:
        """Return the user's log density at natural parameters."""
        found = self.log_density(self.parameters.named(x) if self.parameters else x)
        return self._number(found[0] if isinstance(found, tuple) else found)

    def value_and_gradient(self, x: Array) -> tuple[float, Array | None]:
        """Return the user's log density and its gradient by the natural parameters, numeric if there is none."""
        found = self.log_density(self.parameters.named(x) if self.parameters else x)
        if isinstance(found, tuple) and len(found) == 2:
            return self._number(found[0]), self._flat_gradient(found[1], len(x))
        value = self._number(found)
        if not self.needs_gradient:
            return value, None
        if len(x) > MOST_NUMERIC:
            raise DataError(
                f"{self.owner}: log_density returns no gradient, and numeric ones are refused for {len(x)} parameters, "
                f"more than {MOST_NUMERIC}; return (log density, gradient), from JAX or torch for example."
            )
        self.numeric = True
        return value, self._differences(x)

    def _number(self, value: Any) -> float:
        try:
            return float(value)
        except (TypeError, ValueError):
            raise DataError(
                f"{self.owner}: log_density must return a number or (number, gradient); got {type(value).__name__}."
            ) from None

    def _flat_gradient(self, gradient: Any, n: int) -> Array:
        if isinstance(gradient, Mapping) and self.parameters:
            missing = [v.name for v in self.variables if v.name not in gradient]
            if missing:
                raise DataError(f"{self.owner}: the gradient lacks {', '.join(missing)}.")
            parts = []
            for variable in self.variables:
                part = np.asarray(gradient[variable.name], dtype=np.float64)
                if part.shape != variable.shape:
                    raise DataError(
                        f"{self.owner}: the gradient by {variable.name} must have shape {variable.shape}; "
                        f"got {part.shape}."
                    )
                parts.append(part.ravel())
            return np.concatenate(parts)
        flat = np.asarray(gradient, dtype=np.float64).ravel()
        if flat.shape != (n,):
            raise DataError(f"{self.owner}: the gradient must have {n} numbers; got {flat.size}.")
        return flat

    def _differences(self, x: Array) -> Array:
        gradient = np.empty(len(x))
        for i in range(len(x)):
            h = 6e-6 * max(1.0, abs(x[i]))
            ends = []
            for side in (1.0, -1.0):
                moved = x.copy()
                moved[i] += side * h
                ends.append(self.value(moved))
            gradient[i] = (ends[0] - ends[1]) / (2 * h)
        return np.where(np.isfinite(gradient), gradient, 0.0)


def make_target(owner: str, log_density: Any, parameters: Any, x0: Any, *, needs_gradient: bool) -> Target:
    """Return the target of a sampler's arguments."""
    if isinstance(parameters, (Parameters, Mapping)):
        described = parameters if isinstance(parameters, Parameters) else Parameters(parameters)
        return Target(owner, log_density, described, described.n_free, needs_gradient=needs_gradient)
    if isinstance(parameters, (int, np.integer)) and not isinstance(parameters, bool) and parameters > 0:
        return Target(owner, log_density, None, int(parameters), needs_gradient=needs_gradient)
    if parameters is None and x0 is not None and not isinstance(x0, Mapping):
        start = np.asarray(x0, dtype=np.float64)
        if start.ndim in (1, 2) and start.size:
            return Target(owner, log_density, None, start.shape[-1], needs_gradient=needs_gradient)
    raise ParameterError(
        f"{owner}: say what is sampled by parameters={{'mu': Real(), 'tau': Positive()}}, by parameters=d for one "
        "vector of d numbers, or by a start x0 with d numbers."
    )


def check_gradient(target: Target, u: Array, rng: np.random.Generator) -> None:
    """Raise DataError, naming the parameter, if the gradient at u is not that of the density.

    Central differences of the log density on free coordinates are compared for at most 30 of them.
    """
    value, gradient = target.evaluate(u)
    if target.numeric or not math.isfinite(value):
        return
    d = target.dimension
    places = np.arange(d) if d <= 30 else np.sort(rng.choice(d, 30, replace=False))
    values = target.values_around(u, places, (1e-4, 1e-5))
    for i, ends in zip(places, values, strict=True):
        steps = [h * max(1.0, abs(u[i])) for h in (1e-4, 1e-5)]
        estimates = [(forth - back) / (2 * step) for (forth, back), step in zip(ends, steps, strict=True)]
        rounding = 1e-15 * max(abs(value), 1.0) / (1e-5 * max(1.0, abs(u[i])))
        spread = abs(estimates[0] - estimates[1])
        size = max(abs(gradient[i]), abs(estimates[1]))
        if not all(map(math.isfinite, estimates)):
            continue
        if min(abs(e - gradient[i]) for e in estimates) > 1e-3 * size + 3 * spread + 100 * rounding + 1e-8:
            raise DataError(
                f"{target.owner}: the gradient by {target.labels[i]} is {gradient[i]:.6g}, but differences of the log "
                f"density give {estimates[1]:.6g}; correct the gradient, or pass check=False if the density is rough."
            )
