"""How the models of scikit-learn, and what their parameters hold, stand in a model file.

A model is `{"class": "sklearn.Name", "params": {…}, "fitted": {…}}`, as our own are. Besides what `_encoding` lists,
a value may be

| key             | value                            | stands for                                            |
|-----------------|----------------------------------|-------------------------------------------------------|
| `$masked`       | `{data, mask}`                   | a masked array, as in `cv_results_`                   |
| `$transposed`   | a matrix                         | its transpose, in Fortran's order                     |
| `$dtype`        | `"<f8"`                          | a NumPy dtype                                         |
| `$type`         | `"numpy.float64"`                | a type                                                |
| `$function`     | `"f_classif"`                    | a function, by its name                               |
| `$arguments`    | `{class, params}`                | a splitter or a column selector                       |
| `$distribution` | `{name, args, kwds}`             | a frozen distribution of SciPy                        |
| `$bspline`      | `{t, c, k, extrapolate}`         | a B-spline of SciPy                                   |

Every name comes from a list in `entries_sklearn`; nothing is looked up elsewhere.
"""

from __future__ import annotations

import builtins
import warnings
from collections.abc import Callable
from functools import cache
from importlib import metadata as distributions
from typing import Any, Final

import numpy as np

from ._soundness_sklearn import check_foreign, members_of
from .entries import ARGUMENTS_ONLY, DISTRIBUTIONS, FUNCTIONS, PREFIX, SKLEARN, TYPES
from .errors import ModelFileError
from .registry import resolve

Inner = Callable[[Any, str], Any]  #: encodes, or decodes, a value at a path

#: What scikit-learn keeps on a model besides parameters and state: callbacks, requests of metadata, output containers.
_INTERNAL: Final = ("_skl_callbacks", "_parent_callback_ctx", "_metadata_request", "_sklearn_output_config")
_UNKNOWN: Final = "which this version of learnable does not know"
_CONTAINERS: Final = ("default", "pandas", "polars")
_DTYPES: Final = {
    f"{order}{kind}{size}": np.dtype(f"{order}{kind}{size}")
    for order, kind, size in (
        *(("|", kind, 1) for kind in "biu"),
        *(("<", kind, size) for kind in "iu" for size in (2, 4, 8)),
        *(("<", "f", size) for size in (2, 4, 8)),
    )
} | {"|O": np.dtype("O")}


def output_of(model: Any) -> str | None:
    """Return the container that `set_output` asked for; None without such a call."""
    container: str | None = vars(model).get("_sklearn_output_config", {}).get("transform")
    return container


def set_output_of(model: Any, container: Any, path: str) -> None:
    """Have a loaded transformer give the container that the saved one gave."""
    if not isinstance(container, str) or container not in _CONTAINERS or not hasattr(type(model), "set_output"):
        raise ModelFileError(f"{path}: the output must be one of {', '.join(_CONTAINERS)}, and of a transformer")
    model._sklearn_output_config = {"transform": container}


def encode_foreign(name: str, model: Any, path: str, inner: Inner) -> dict[str, Any]:
    """Return the document of a scikit-learn model of the list."""
    params = model.get_params(deep=False)
    members = members_of(name)
    for key in vars(model):
        if key not in params and key not in members and key not in (*SKLEARN[name].left_out, *_INTERNAL):
            raise ModelFileError(
                f"{path}.{key} is a member that this version of learnable does not know of {name} "
                f"(scikit-learn {installed_version()}); upgrade learnable"
            )
    fitted = {key: value for key, value in vars(model).items() if key in members and key not in params}
    document = {
        "class": PREFIX + name,
        "params": {key: inner(value, f"{path}.{key}") for key, value in params.items()},
        "fitted": {key: _in_its_order(value, f"{path}.{key}", inner) for key, value in fitted.items()},
    }
    check_foreign(name, model, path)  # afterwards: a member that cannot be saved is named above
    return document


def _in_its_order(value: Any, path: str, inner: Inner) -> Any:
    """Encode a member; a matrix keeps its order in memory, on which the last bits of products depend."""
    if type(value) is np.ndarray and value.ndim == 2 and value.flags.f_contiguous and not value.flags.c_contiguous:
        return {"$transposed": inner(value.T, path)}
    return inner(value, path)


def decode_foreign(full_name: str, params: Any, fitted: Any, path: str, inner: Inner, version: str) -> Any:
    """Build a scikit-learn model of the list; `version` is the scikit-learn that wrote the file."""
    name = full_name.removeprefix(PREFIX)
    if name not in SKLEARN:
        raise ModelFileError(f"the file names the class {full_name[:80]!r}, {_UNKNOWN}")
    cls = resolve(f"{SKLEARN[name].module}:{name}")
    members = members_of(name)
    allowed = cls._get_param_names()
    for key in params:
        if key not in allowed:
            raise ModelFileError(f"{path}: {name} has no parameter {key[:80]!r}{_other_version(version)}")
    for key in fitted:
        if key not in members or key in allowed:
            raise ModelFileError(
                f"{path}: {key[:80]!r} cannot be a fitted attribute of {name}{_other_version(version)}"
            )
    model = cls(**{key: inner(value, f"{path}.{key}") for key, value in params.items()})
    model.__dict__.update({key: inner(value, f"{path}.{key}") for key, value in fitted.items()})
    try:
        check_foreign(name, model, path)
    except ModelFileError as error:
        raise ModelFileError(f"{error}{_other_version(version)}") from error
    restore = SKLEARN[name].restore
    if restore is not None:
        resolve(restore)(model)
    return model


def installed_version() -> str:
    """Return the version of scikit-learn that runs."""
    return distributions.version("scikit-learn")


def warn_of_version(version: str) -> None:
    """Warn, once for a file, that its scikit-learn models were fitted by another minor version."""
    if _minor(version) != _minor(installed_version()):
        warnings.warn(
            f"load: the scikit-learn models of this file are of version {version[:20] or 'unknown'}, and "
            f"{installed_version()} is installed; all their members are known to it, but it may predict otherwise.",
            UserWarning,
            stacklevel=3,
        )


def _minor(version: str) -> list[str]:
    return version.split(".")[:2]


def _other_version(version: str) -> str:
    """Say, at the end of an error, that the file is of another minor version of scikit-learn; empty if it is not."""
    if _minor(version) == _minor(installed_version()):
        return ""
    return (
        f" (written with scikit-learn {version[:20]}, and {installed_version()} is installed: "
        f"load it with scikit-learn {'.'.join(_minor(version))[:20]}, or fit again)"
    )


# Values of parameters and members


@cache
def _types() -> dict[str, type]:
    """Return the types that a parameter may be, by name."""
    found = {}
    for name in TYPES:
        module, _, short = name.rpartition(".")
        found[name] = getattr(np if module else builtins, short)
    return found


def encode_value(value: Any, path: str, inner: Inner) -> dict[str, Any] | None:
    """Return how a value that is no container of `_encoding` stands in a file; None if it cannot."""
    kind = type(value)
    if kind is np.ma.MaskedArray:
        mask = np.broadcast_to(np.ma.getmaskarray(value), value.shape).copy()
        data = np.array(value.data)
        data[mask] = None if data.dtype == object else np.zeros((), data.dtype)  # what was there is left-over memory
        return {"$masked": {"data": inner(data, f"{path}.data"), "mask": inner(mask, f"{path}.mask")}}
    if isinstance(value, np.dtype):
        written = value.newbyteorder("<").str
        return {"$dtype": written} if written in _DTYPES else None
    if isinstance(value, type):
        names = [name for name, known in _types().items() if known is value]
        return {"$type": names[0]} if names else None
    if callable(value) and getattr(value, "__name__", None) in FUNCTIONS:
        return {"$function": value.__name__} if value is resolve(FUNCTIONS[value.__name__]) else None
    if kind.__module__.startswith("sklearn.") and kind.__name__ in ARGUMENTS_ONLY:
        module, allowed = ARGUMENTS_ONLY[kind.__name__]
        if kind is resolve(f"{module}:{kind.__name__}"):
            held = {name: inner(getattr(value, name), f"{path}.{name}") for name in allowed}
            return {"$arguments": {"class": kind.__name__, "params": held}}
    if kind.__module__.startswith("scipy."):
        return _encode_scipy(value, path, inner)
    return None


def _encode_scipy(value: Any, path: str, inner: Inner) -> dict[str, Any] | None:
    from scipy.interpolate import BSpline

    if type(value) is BSpline:
        held = {key: inner(getattr(value, key), f"{path}.{key}") for key in ("t", "c", "k", "extrapolate")}
        return {"$bspline": held} if value.axis == 0 else None
    name = getattr(getattr(value, "dist", None), "name", None)
    if name in DISTRIBUTIONS and type(value.dist) is type(resolve(f"scipy.stats:{name}")):
        arguments = {"args": inner(list(value.args), path), "kwds": inner(dict(value.kwds), path)}
        return {"$distribution": {"name": name, **arguments}}
    return None


def decoders(inner: Inner, members: Callable[..., list[Any]]) -> dict[str, Inner]:
    """Return the reader of each key; `members` takes a document apart by its keys."""

    def masked(document: Any, path: str) -> Any:
        data, mask = (inner(part, path) for part in members(document, path, "data", "mask"))
        if (
            type(data) is not np.ndarray
            or type(mask) is not np.ndarray
            or mask.dtype != bool
            or mask.shape != data.shape
        ):
            raise ModelFileError(f"{path} must be an array and truth values of the same shape")
        return np.ma.MaskedArray(data, mask=mask)

    def transposed(document: Any, path: str) -> Any:
        matrix = inner(document, path)
        if type(matrix) is not np.ndarray or matrix.ndim != 2:
            raise ModelFileError(f"{path} must be a matrix")
        return matrix.T

    def arguments(document: Any, path: str) -> Any:
        name, params = members(document, path, "class", "params")
        module, allowed = ARGUMENTS_ONLY[_known(name, ARGUMENTS_ONLY, path)]
        held = dict(zip(allowed, members(params, path, *allowed), strict=True))
        return resolve(f"{module}:{name}")(**{key: inner(value, path) for key, value in held.items()})

    def distribution(document: Any, path: str) -> Any:
        name, args, kwds = members(document, path, "name", "args", "kwds")
        values = inner(args, path)
        named = inner(kwds, path)
        if not isinstance(values, list) or not isinstance(named, dict):
            raise ModelFileError(f"{path} must have a list and a dict of numbers")
        if not all(isinstance(value, (int, float, np.number)) for value in (*values, *named.values())):
            raise ModelFileError(f"{path} must have a list and a dict of numbers")
        return resolve(f"scipy.stats:{_known(name, DISTRIBUTIONS, path)}")(*values, **named)

    def spline(document: Any, path: str) -> Any:
        from scipy.interpolate import BSpline

        knots, weights, degree, extrapolate = (
            inner(part, path) for part in members(document, path, "t", "c", "k", "extrapolate")
        )
        if type(degree) is not int or not (isinstance(extrapolate, bool) or extrapolate == "periodic"):
            raise ModelFileError(f"{path} must have a whole degree, and extrapolate or not")
        if not all(type(part) is np.ndarray and part.dtype == np.float64 for part in (knots, weights)):
            raise ModelFileError(f"{path} must have arrays of numbers")
        return BSpline(knots, weights, degree, extrapolate)  # it checks the order of the knots and all lengths

    return {
        "$masked": masked,
        "$transposed": transposed,
        "$dtype": lambda name, path: _DTYPES[_known(name, _DTYPES, path)],
        "$type": lambda name, path: _types()[_known(name, TYPES, path)],
        "$function": lambda name, path: resolve(FUNCTIONS[_known(name, FUNCTIONS, path)]),
        "$arguments": arguments,
        "$distribution": distribution,
        "$bspline": spline,
    }


def _known(name: Any, names: Any, path: str) -> str:
    if not isinstance(name, str) or name not in names:
        raise ModelFileError(f"{path} names {str(name)[:80]!r}, {_UNKNOWN}")
    return name
