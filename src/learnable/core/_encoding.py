"""What a model file can hold: a model as strict JSON plus named arrays, and back.

A model is `{"class": name, "params": {…}, "fitted": {…}}`; a solved process or a policy, which is no estimator, is
`{"part": {…}}`. None, truth values, integers, finite floats,
strings, lists and dicts stand for themselves; everything else is an object with one key:

| key        | value                            | stands for                                               |
|------------|----------------------------------|----------------------------------------------------------|
| `$float`   | `"nan"`, `"inf"`, `"-inf"`       | what JSON has no word for                                |
| `$scalar`  | `[dtype, value]`                 | a NumPy scalar                                           |
| `$tuple`   | `[…]`                            | a tuple                                                  |
| `$dict`    | `[[key, value], …]`              | a dict whose keys are not all plain strings              |
| `$slice`   | `[start, stop, step]`            | a slice                                                  |
| `$range`   | `[start, stop, step]`            | a range                                                  |
| `$array`   | name                             | an array of numbers or truth values                      |
| `$text`    | `{utf8, offsets, shape, width}`  | an array of strings; without a width, of dtype object    |
| `$objects` | `{shape, items}`                 | an array of dtype object                                 |
| `$csr`     | `{data, indices, indptr, shape}` | a SciPy CSR array                                        |
| `$model`   | `{class, params, fitted}`        | a registered estimator                                   |
| `$part`    | `{class, fields}`                | a registered dataclass, such as a certificate            |
| `$part`    | `{class, packed}`                | one that is smaller in a form of its own, such as trees  |

The models of scikit-learn, and the values that only they have, are in `_encoding_sklearn`. A model may also have
`"output"`, the container that `set_output` asked for.

Both directions apply the same checks, so that what was saved can be loaded. Decoding needs memory in
proportion to the file: an array is used once, and what could expand (padded strings) has a fixed limit.
"""

from __future__ import annotations

import dataclasses
import inspect
import math
import re
from collections import Counter
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ._encoding_sklearn import (
    decode_foreign,
    decoders,
    encode_foreign,
    encode_value,
    output_of,
    set_output_of,
    warn_of_version,
)
from ._soundness import (
    TextBudget,
    are_offsets,
    check_model,
    check_part,
    count_of,
    hides_attribute,
    is_fitted_name,
    is_sound_csr,
    with_article,
)
from ._soundness_sklearn import sklearn_name
from .entries import PREFIX
from .errors import ModelFileError
from .registry import REGISTRY, registered_class, registered_name

#: safetensors' names of the dtypes an array may have.
DTYPES: Final[dict[str, np.dtype[Any]]] = {
    "BOOL": np.dtype("bool"),
    **{f"I{8 * size}": np.dtype(f"<i{size}") for size in (1, 2, 4, 8)},
    **{f"U{8 * size}": np.dtype(f"<u{size}") for size in (1, 2, 4, 8)},
    **{f"F{8 * size}": np.dtype(f"<f{size}") for size in (2, 4, 8)},
}
_SCALARS: Final[dict[str, Any]] = {dtype.name: dtype.type for dtype in DTYPES.values()} | {"str": np.str_}
_NOT_FINITE: Final = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}

MAX_DEPTH: Final = 100
_MAX_INTEGER_BITS: Final = 10_000  # Python reads and writes decimal integers up to 14,000 bits
_MAX_PAIRS: Final = 4096  # keys can be made to collide; this bounds the time their dict takes
_ONLY: Final = "only numbers, strings, arrays and registered models can be saved"


def encode(model: Any) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return the JSON document of a registered estimator and the arrays it names."""
    encoder = _Encoder()
    if getattr(type(model), "_saves_alone", False):  # a part that is of use without a model around it
        return {"part": encoder._part(model, type(model).__name__)}, encoder.arrays
    return encoder.model(model), encoder.arrays


def decode(document: Any, arrays: dict[str, NDArray[Any]], sklearn_version: str = "") -> Any:
    """Build the model that `document` describes; every array must be used exactly once.

    `sklearn_version` is the version of scikit-learn that wrote the file.
    """
    decoder = _Decoder(arrays, sklearn_version)
    if isinstance(document, dict) and set(document) == {"part"}:
        model = decoder.part(document["part"])
    else:
        model = decoder.model(document)
    if decoder.has_foreign:
        warn_of_version(sklearn_version)
    if decoder.arrays:
        raise ModelFileError(f"the array {next(iter(decoder.arrays))!r} belongs to no member of the model")
    return model


class _Encoder:
    def __init__(self) -> None:
        self.arrays: dict[str, NDArray[Any]] = {}
        self._same_name: Counter[str] = Counter()
        self._open: set[int] = set()  # containers around the current value: meeting one again is a cycle
        self._text_budget = TextBudget()

    def model(self, model: Any, path: str = "") -> dict[str, Any]:
        foreign = sklearn_name(type(model))
        document = self._own(model, path) if foreign is None else self._foreign(foreign, model, path)
        container = output_of(model)
        return document if container is None else document | {"output": container}

    def _foreign(self, name: str, model: Any, path: str) -> dict[str, Any]:
        return encode_foreign(name, model, path or name, self.value)

    def _own(self, model: Any, path: str) -> dict[str, Any]:
        cls = type(model)
        name = _name_to_save(cls, path or "the model", estimator=True)
        path = path or name
        params = model.get_params(deep=False)
        fitted = {key: x for key, x in vars(model).items() if is_fitted_name(key) and key not in params}
        for key in fitted:
            if hides_attribute(cls, key):
                raise ModelFileError(f"{path}.{key} hides an attribute of the class; a file cannot restore it")
        check_model(model, path)
        return {
            "class": name,
            "params": {key: self.value(value, f"{path}.{key}") for key, value in params.items()},
            "fitted": {key: self.value(value, f"{path}.{key}") for key, value in fitted.items()},
        }

    def value(self, value: Any, path: str) -> Any:
        kind = type(value)
        if value is None or kind in (bool, str) or (kind is int and value.bit_length() <= _MAX_INTEGER_BITS):
            return value
        if kind is float:
            return value if math.isfinite(value) else {"$float": repr(value)}
        if isinstance(value, np.generic):
            dtype = "str" if value.dtype.kind == "U" else value.dtype.name
            if dtype in _SCALARS:
                return {"$scalar": [dtype, self.value(value.item(), path)]}
        if kind in (slice, range):
            ends = (value.start, value.stop, value.step)
            return {f"${kind.__name__}": [self.value(end, path) for end in ends]}
        if id(value) in self._open or len(self._open) >= MAX_DEPTH:
            raise ModelFileError(f"{path} contains itself, or is nested deeper than {MAX_DEPTH} levels")
        self._open.add(id(value))
        encoded = self._container(value, path)
        self._open.remove(id(value))
        return encoded

    def _container(self, value: Any, path: str) -> Any:
        kind = type(value)
        if kind is list:
            return [self.value(item, _at(path, i)) for i, item in enumerate(value)]
        if kind is tuple:
            return {"$tuple": [self.value(item, _at(path, i)) for i, item in enumerate(value)]}
        if kind is dict:
            return self._dict(value, path)
        if kind in (np.ndarray, np.memmap):
            return self._array(value, path)
        if kind is sp.csr_array and is_sound_csr(value.data, value.indices, value.indptr, value.shape):
            parts = ("data", "indices", "indptr")
            names = {part: self._store(getattr(value, part), f"{path}.{part}") for part in parts}
            return {"$csr": names | {"shape": [int(size) for size in value.shape]}}
        name = registered_name(kind)
        if name is not None and not REGISTRY[name].estimator:
            return {"$part": self._part(value, path)}
        if hasattr(value, "get_params") and not isinstance(value, type):
            return {"$model": self.model(value, path)}
        encoded = encode_value(value, path, self.value)
        if encoded is not None:
            return encoded
        if isinstance(value, (np.random.Generator, np.random.RandomState)):
            raise ModelFileError(
                f"{path} is {with_article(kind)}, whose state is not stored; use an integer seed instead"
            )
        raise ModelFileError(f"{path} is {with_article(kind)}; {_ONLY}")

    def _dict(self, value: dict[Any, Any], path: str) -> Any:
        if all(type(key) is str and not key.startswith("$") for key in value):
            return {key: self.value(item, _at(path, key)) for key, item in value.items()}
        if len(value) > _MAX_PAIRS:
            raise ModelFileError(f"{path} has more than {_MAX_PAIRS} keys that are not plain strings")
        pairs = [(key, item, _at(path, key)) for key, item in value.items()]
        return {"$dict": [[self.value(key, inside), self.value(item, inside)] for key, item, inside in pairs]}

    def _part(self, part: Any, path: str) -> dict[str, Any]:
        name = _name_to_save(type(part), path, estimator=False)
        check_part(part, path)
        packed = part._to_file() if hasattr(part, "_to_file") else None
        if packed is not None:
            return {"class": name, "packed": self._dict(packed, path)}
        keys = [field.name for field in dataclasses.fields(part) if field.init and not _is_left_out(part, field)]
        return {
            "class": name,
            "fields": {key: self.value(getattr(part, key), f"{path}.{key}") for key in keys},
        }

    def _array(self, array: NDArray[Any], path: str) -> Any:
        shape = list(array.shape)
        count_of(shape, path)
        if array.dtype.kind not in "OU":
            return {"$array": self._store(array, path)}
        items = array.ravel().tolist()
        if array.dtype.kind == "O" and not all(type(item) is str for item in items):
            encoded = [self.value(item, _at(path, i)) for i, item in enumerate(items)]
            return {"$objects": {"shape": shape, "items": encoded}}
        width = array.dtype.itemsize // 4 if array.dtype.kind == "U" else None
        self._text_budget.spend(width, array.size, path)
        pieces = [item.encode("utf-8", "surrogatepass") for item in items]
        offsets = np.zeros(len(pieces) + 1, dtype=np.int64)
        np.cumsum([len(piece) for piece in pieces], out=offsets[1:])
        utf8 = np.frombuffer(b"".join(pieces), dtype=np.uint8)
        names = [self._store(utf8, f"{path}.utf8"), self._store(offsets, f"{path}.offsets")]
        return {"$text": {"utf8": names[0], "offsets": names[1], "shape": shape, "width": width}}

    def _store(self, array: NDArray[Any], path: str) -> str:
        """Keep an array, little-endian and in C order, under a name made of the member's path."""
        dtype = array.dtype.newbyteorder("<")
        if dtype not in DTYPES.values():
            raise ModelFileError(f"{path} is an array of dtype {array.dtype}; {_ONLY}")
        base = re.sub(r"[^A-Za-z0-9_]+", ".", path.partition(".")[2]).strip(".")
        name = base
        while name in self.arrays:
            self._same_name[base] += 1
            name = f"{base}.{self._same_name[base]}"
        self.arrays[name] = np.asarray(array, dtype=dtype, order="C")
        return name


class _Decoder:
    """Each method gets a piece of the document and its path, and trusts neither its type nor its shape."""

    def __init__(self, arrays: dict[str, NDArray[Any]], sklearn_version: str) -> None:
        self.arrays = dict(arrays)
        self.has_foreign = False
        self._sklearn_version = sklearn_version
        self._depth = 0
        self._text_budget = TextBudget()
        self._by_key: dict[str, Callable[[Any, str], Any]] = {
            "$float": lambda word, path: _NOT_FINITE[word],
            "$scalar": self._scalar,
            "$tuple": lambda items, path: tuple(self._list(items, path)),
            "$dict": self._dict,
            "$slice": lambda ends, path: slice(*self._list(ends, path)),
            "$range": lambda ends, path: range(*self._list(ends, path)),
            "$array": self._take,
            "$text": self._text,
            "$objects": self._objects,
            "$csr": self._csr,
            "$model": self.model,
            "$part": self._part,
            **decoders(self.value, _members),
        }

    def model(self, document: Any, path: str = "") -> Any:
        container = None
        if isinstance(document, dict) and "output" in document:
            container = document["output"]
            document = {key: value for key, value in document.items() if key != "output"}
        name, params, fitted = _members(document, path or "the model", "class", "params", "fitted")
        if isinstance(name, str) and name.startswith(PREFIX):
            model = self._foreign(name, params, fitted, path)
        else:
            model = self._own(name, params, fitted, path)
        if container is not None:
            set_output_of(model, container, path or name)
        return model

    def _foreign(self, name: str, params: Any, fitted: Any, path: str) -> Any:
        self.has_foreign = True
        path = path or name.removeprefix(PREFIX)[:80]
        _names_in(params, path), _names_in(fitted, path)
        return decode_foreign(name, params, fitted, path, self.value, self._sklearn_version)

    def _own(self, name: Any, params: Any, fitted: Any, path: str) -> Any:
        cls = _class_to_load(name, path or "the model", estimator=True)
        path = path or name
        allowed = inspect.signature(cls).parameters
        for key in _names_in(params, path):
            if key not in allowed:
                raise ModelFileError(f"{path}: {name} has no parameter {key!r}")
        for key in _names_in(fitted, path):
            if not is_fitted_name(key) or key in allowed or hides_attribute(cls, key):
                raise ModelFileError(f"{path}: {key!r} cannot be a fitted attribute of {name}")
        model = cls(**{key: self.value(value, f"{path}.{key}") for key, value in params.items()})
        model.__dict__.update({key: self.value(value, f"{path}.{key}") for key, value in fitted.items()})
        check_model(model, path)
        return model

    def value(self, document: Any, path: str) -> Any:
        if document is None or isinstance(document, (bool, int, float, str)):
            return document
        if self._depth >= MAX_DEPTH:
            raise ModelFileError(f"{path} is nested deeper than {MAX_DEPTH} levels")
        self._depth += 1
        decoded = self._container(document, path)
        self._depth -= 1
        return decoded

    def _container(self, document: Any, path: str) -> Any:
        if isinstance(document, list):
            return self._list(document, path)
        if not any(key.startswith("$") for key in document):
            return {key: self.value(item, _at(path, key)) for key, item in document.items()}
        [(key, content)] = document.items()
        if key not in self._by_key:
            raise ModelFileError(f"{path} is written as {key!r}, which this version of learnable does not know")
        return self._by_key[key](content, path)

    def _list(self, document: Any, path: str) -> list[Any]:
        if not isinstance(document, list):
            raise ModelFileError(f"{path} must be a list")
        return [self.value(item, _at(path, i)) for i, item in enumerate(document)]

    def _dict(self, document: Any, path: str) -> dict[Any, Any]:
        if not isinstance(document, list) or len(document) > _MAX_PAIRS:
            raise ModelFileError(f"{path} must be a list of at most {_MAX_PAIRS} pairs")
        result = dict(self._list(pair, path) for pair in document)
        if len(result) < len(document):
            raise ModelFileError(f"{path} has a key twice")
        return result

    def _scalar(self, document: Any, path: str) -> Any:
        dtype, value = self._list(document, path)
        with np.errstate(all="ignore"):
            scalar = _SCALARS[dtype](value)
        if type(scalar.item()) is not type(value) or not (scalar.item() == value or math.isnan(value)):
            raise ModelFileError(f"{path} is not a number or string of dtype {dtype}")
        return scalar

    def _take(self, name: Any, path: str) -> NDArray[Any]:
        if not isinstance(name, str) or name not in self.arrays:
            raise ModelFileError(f"{path} needs the array {name!r}, which is missing or has been used before")
        return self.arrays.pop(name)

    def _text(self, document: Any, path: str) -> NDArray[Any]:
        utf8, offsets, shape, width = _members(document, path, "utf8", "offsets", "shape", "width")
        utf8 = self._take(utf8, path)
        offsets = self._take(offsets, path)
        count = count_of(shape, path)
        if utf8.dtype != np.uint8 or utf8.ndim != 1 or not are_offsets(offsets, count, len(utf8)):
            raise ModelFileError(f"{path}: the offsets of its strings do not fit their bytes")
        raw = utf8.tobytes()
        ends = offsets.tolist()
        strings = [raw[ends[i] : ends[i + 1]].decode("utf-8", "surrogatepass") for i in range(count)]
        if width is None:
            return _object_array(strings, shape)
        if type(width) is not int or width < max(map(len, strings), default=0):
            raise ModelFileError(f"{path} has strings that are longer than its width")
        self._text_budget.spend(width, count, path)
        return np.array(strings, dtype=f"<U{width}").reshape(shape)

    def _objects(self, document: Any, path: str) -> NDArray[Any]:
        shape, items = _members(document, path, "shape", "items")
        values = self._list(items, path)
        if len(values) != count_of(shape, path):
            raise ModelFileError(f"{path} has {len(values)} items, which is not what its shape says")
        return _object_array(values, shape)

    def _csr(self, document: Any, path: str) -> sp.csr_array:
        *names, shape = _members(document, path, "data", "indices", "indptr", "shape")
        data, indices, indptr = (self._take(name, path) for name in names)
        count_of(shape, path)
        if not is_sound_csr(data, indices, indptr, shape):
            raise ModelFileError(f"{path} is not a sound CSR array: its indices or row ends are out of range")
        matrix = sp.csr_array((data, indices, indptr), shape=tuple(shape))
        # SciPy may have narrowed their dtype
        matrix.indices = indices
        matrix.indptr = indptr
        return matrix

    def part(self, document: Any) -> Any:
        """Return a file's only object where that is no estimator; its class says whether it may be one."""
        name = str(document.get("class")) if isinstance(document, dict) else "nothing"
        if name not in REGISTRY or not getattr(registered_class(name), "_saves_alone", False):
            raise ModelFileError(f"the file holds {name!r}, which is only ever a part of a model")
        return self._part(document, name)

    def _part(self, document: Any, path: str) -> Any:
        if isinstance(document, dict) and "packed" in document:
            return self._packed_part(document, path)
        name, content = _members(document, path, "class", "fields")
        cls = _class_to_load(name, path, estimator=False)
        allowed = {field.name for field in dataclasses.fields(cls) if field.init}
        for key in _names_in(content, path):
            if key not in allowed:
                raise ModelFileError(f"{path}: {name} has no field {key!r}")
        part = cls(**{key: self.value(value, f"{path}.{key}") for key, value in content.items()})
        check_part(part, path)
        return part

    def _packed_part(self, document: Any, path: str) -> Any:
        name, content = _members(document, path, "class", "packed")
        cls = _class_to_load(name, path, estimator=False)
        if not hasattr(cls, "_from_file"):
            raise ModelFileError(f"{path}: a {name} is never packed")
        part = cls._from_file({key: self.value(content[key], f"{path}.{key}") for key in _names_in(content, path)})
        check_part(part, path)
        return part


def _is_left_out(part: Any, field: Any) -> bool:
    """Tell whether a field has a value that files leave out: then older versions read them, too."""
    return "left_out" in field.metadata and bool(getattr(part, field.name) == field.metadata["left_out"])


def _name_to_save(cls: type, path: str, *, estimator: bool) -> str:
    name = registered_name(cls)
    if name is not None and REGISTRY[name].estimator is estimator:
        return name
    known = [parent.__name__ for parent in cls.__mro__[1:] if registered_name(parent) or sklearn_name(parent)]
    parents = f", a subclass of {known[0]}" if known else ""
    foreign = f"; scikit-learn's {cls.__name__} is not one of them" if cls.__module__.startswith("sklearn.") else ""
    raise ModelFileError(f"{path} is {with_article(cls)}{parents}; {_ONLY}{foreign}")


def _class_to_load(name: Any, path: str, *, estimator: bool) -> Any:
    if not isinstance(name, str):
        raise ModelFileError(f"the class of {path} must be a name")
    cls = registered_class(name)
    if REGISTRY[name].estimator is not estimator:
        raise ModelFileError(f"{path} cannot be {with_article(cls)}")
    return cls


def _members(document: Any, path: str, *keys: str) -> list[Any]:
    if not isinstance(document, dict) or set(document) != set(keys):
        raise ModelFileError(f"{path} must be described by {', '.join(keys)}, and by nothing else")
    return [document[key] for key in keys]


def _names_in(document: Any, path: str) -> list[str]:
    if not isinstance(document, dict):
        raise ModelFileError(f"the members of {path} must have names")
    return list(document)


def _object_array(items: list[Any], shape: Any) -> NDArray[Any]:
    flat = np.empty(len(items), dtype=object)
    for i, item in enumerate(items):  # one by one: NumPy would unpack items that are sequences
        flat[i] = item
    return flat.reshape(shape)


def _at(path: str, key: Any) -> str:
    """Return the path of an item; bounded, because a hostile file may have long keys at every depth."""
    return f"{path}[{key[:40] if isinstance(key, str) else key!r}]"[:200]
