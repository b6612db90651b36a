"""Trees as a model file holds them: a few bytes per node, and the same bits after loading.

| array            | in the file                                                                               |
|------------------|-------------------------------------------------------------------------------------------|
| left, right      | nothing where every subtree lies behind its root, left before right: leaves say it all     |
| feature          | of inner nodes, in one or two bytes                                                       |
| threshold        | of inner nodes: single precision where that is exact, or places in a table of all values  |
| n_rows, weight   | of leaves, where an inner node's is the sum of its children's                             |
| impurity         | of inner nodes, where leaves have none                                                    |
| value            | of leaves, as places in a table; of inner nodes of classes from the counts of the leaves  |

Every shortcut is checked bit by bit when a model is saved, and is left out where it would change one. A file cannot
ask for more than `_MOST_EXPANSION` times its own size of memory.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ..core import Array, ModelFileError, NDArray

Packed = dict[str, Any]

_MOST_EXPANSION: Final = 256  # bytes in memory per byte of a file: a guard, no honest file comes near
_FREE_BYTES: Final = 2**16  # which a small file may have besides
_WIDTHS: Final = (np.uint8, np.uint16, np.uint32)
_WAYS: Final = ("counts", "counts by reciprocals")
_NODE_BYTES: Final = 64  # of a node without its values


def require(condition: Any, what: str) -> None:
    """Raise ModelFileError, in these words, unless the condition holds."""
    if not bool(condition):
        raise ModelFileError(f"load: {what}.")


def narrow(numbers: NDArray[Any]) -> NDArray[Any]:
    """Return whole numbers in the smallest unsigned type that holds them, or as they are.

    Examples
    --------
    >>> import numpy as np
    >>> narrow(np.array([3, 300])).dtype, narrow(np.array([-1, 3])).dtype
    (dtype('uint16'), dtype('int64'))
    """
    low, high = (int(numbers.min()), int(numbers.max())) if numbers.size else (0, 0)
    for width in _WIDTHS:
        if low >= 0 and high <= np.iinfo(width).max:
            return numbers.astype(width)
    return numbers.astype(np.int64)


def pack_numbers(values: Array) -> Packed:
    """Return float64 numbers in the smallest of four forms that give back every bit.

    Examples
    --------
    >>> import numpy as np
    >>> [list(pack_numbers(np.array(v))) for v in ([1.0, 2.0], [0.5, 7.5], [0.1] * 9)]
    [['whole'], ['single'], ['table', 'index']]
    """
    values = np.ascontiguousarray(values, dtype=np.float64)
    bits = values.view(np.int64)
    if values.size and (values >= 0).all() and (values < 2**32).all():
        whole = narrow(values.astype(np.int64))
        if np.array_equal(whole.astype(np.float64).view(np.int64), bits):
            return {"whole": whole}
    with np.errstate(over="ignore"):
        single = values.astype(np.float32)
    choices: list[Packed] = [{"double": values}]
    if np.array_equal(single.astype(np.float64).view(np.int64), bits):
        choices.append({"single": single})
    table, index = np.unique(bits, return_inverse=True)
    choices.append({"table": table.view(np.float64), "index": narrow(index.reshape(-1))})
    return min(choices, key=lambda choice: sum(array.nbytes for array in choice.values()))


def unpack_numbers(packed: Any, count: int) -> Array:
    """Return the numbers that `pack_numbers` was given; ModelFileError unless there are `count` of them."""
    _demand(isinstance(packed, dict), "numbers")
    if set(packed) == {"table", "index"}:
        table = _array(packed["table"], (np.float64,))
        index = _array(packed["index"], (*_WIDTHS, np.int64))
        _demand(
            len(index) == count and (not count or 0 <= index.min() <= int(index.max()) < len(table)),
            "places in a table",
        )
        return np.asarray(table[index.astype(np.int64)], dtype=np.float64)
    kinds: dict[str, tuple[Any, ...]] = {
        "whole": (*_WIDTHS, np.int64),
        "single": (np.float32,),
        "double": (np.float64,),
    }
    _demand(len(packed) == 1 and next(iter(packed)) in kinds, "numbers")
    [(kind, values)] = packed.items()
    values = _array(values, kinds[kind])
    _demand(len(values) == count, "numbers")
    return values.astype(np.float64)


def pack_trees(trees: Any) -> Packed | None:
    """Return the packed arrays of trees; None where they cannot be packed, or would expand too much."""
    inner = trees.feature >= 0
    leaf = ~inner
    if trees.threshold[leaf].view(np.int64).any() or trees.missing_left[leaf].any() or trees.missing_left.max() > 1:
        return None
    packed: Packed = {
        "leaf": np.packbits(leaf),
        "n_nodes": len(leaf),
        "start": narrow(trees.start),
        "feature": narrow(trees.feature[inner]),
        "threshold": pack_numbers(trees.threshold[inner]),
        "n_values": trees.value.shape[1],
    }
    left, right = _preorder(inner, trees.start)
    if not (np.array_equal(left, trees.left) and np.array_equal(right, trees.right)):
        packed |= {"left": narrow(trees.left[inner]), "right": narrow(trees.right[inner])}
    if trees.missing_left.any():
        packed["missing_left"] = np.packbits(trees.missing_left[inner].astype(bool))
    if (trees.category >= 0).any():
        packed["category"] = narrow(trees.category[inner] + 1)
    if len(trees.bits):
        packed["bits"] = trees.bits
    levels = _levels(inner, trees.start, trees.left, trees.right)
    packed["n_rows"] = _pack_sums(trees.n_rows, leaf, levels)
    packed["weight"] = _pack_sums(trees.weight, leaf, levels)
    if trees.impurity[leaf].view(np.int64).any():
        packed["impurity"] = {"all": pack_numbers(trees.impurity)}
    else:
        packed["impurity"] = {"inner": pack_numbers(trees.impurity[inner])}
    packed["value"] = _pack_values(trees, leaf, levels)
    return packed if _expands_within(packed) else None


def unpack_trees(packed: Any) -> dict[str, Any]:
    """Return the arrays of trees by the names of the fields; ModelFileError where they do not fit together."""
    needed = {"leaf", "n_nodes", "start", "feature", "threshold", "n_values", "n_rows", "weight", "impurity", "value"}
    allowed = needed | {"left", "right", "missing_left", "category", "bits"}
    _demand(isinstance(packed, dict) and needed <= set(packed) <= allowed, "the list of arrays")
    n = packed["n_nodes"]
    k = packed["n_values"]
    _demand(
        type(n) is type(k) is int and 0 < n < 2**31 and 0 < k < 2**31 and _expands_within(packed), "the number of nodes"
    )
    leaf = _bits(packed["leaf"], n)
    inner = ~leaf
    n_inner = int(inner.sum())
    start = _array(packed["start"], (*_WIDTHS, np.int64)).astype(np.int64)
    _demand(
        len(start) >= 2 and start[0] == 0 and start[-1] == n and (start[1:] > start[:-1]).all(), "where trees begin"
    )
    fields: dict[str, Any] = {"start": start}
    _demand(("left" in packed) == ("right" in packed), "the children")
    if "left" in packed:
        for name in ("left", "right"):
            fields[name] = _spread(_whole(packed[name], n_inner), inner, -1, np.int32)
        own = np.arange(n) - np.repeat(start[:-1], np.diff(start))
        size = np.repeat(np.diff(start), np.diff(start))
        for name in ("left", "right"):
            child = fields[name][inner]
            _demand(((child > own[inner]) & (child < size[inner])).all(), "the children")
    else:
        _check_preorder(inner, start)
        fields["left"], fields["right"] = _preorder(inner, start)
    fields["feature"] = _spread(_whole(packed["feature"], n_inner), inner, -1, np.int32)
    fields["threshold"] = _spread(unpack_numbers(packed["threshold"], n_inner), inner, 0.0, np.float64)
    goes_left = _bits(packed["missing_left"], n_inner) if "missing_left" in packed else np.zeros(n_inner, dtype=bool)
    fields["missing_left"] = _spread(goes_left, inner, 0, np.uint8)
    category = _whole(packed["category"], n_inner) - 1 if "category" in packed else np.full(n_inner, -1)
    fields["category"] = _spread(category, inner, -1, np.int64)
    fields["bits"] = _array(packed.get("bits", np.empty(0, np.uint32)), (np.uint32,))
    levels = _levels(inner, start, fields["left"], fields["right"])
    fields["n_rows"] = np.rint(_unpack_sums(packed["n_rows"], leaf, levels)).astype(np.int64)
    fields["weight"] = _unpack_sums(packed["weight"], leaf, levels)
    impurity = packed["impurity"]
    _demand(isinstance(impurity, dict) and set(impurity) in ({"all"}, {"inner"}), "the impurities")
    if "all" in impurity:
        fields["impurity"] = unpack_numbers(impurity["all"], n)
    else:
        fields["impurity"] = _spread(unpack_numbers(impurity["inner"], n_inner), inner, 0.0, np.float64)
    fields["value"] = _unpack_values(packed["value"], leaf, levels, fields["weight"], k)
    return fields


# ---- structure ----


def _preorder(inner: NDArray[np.bool_], start: NDArray[np.int64]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return the children where every subtree lies behind its root, left before right; −1 at leaves.

    While such a tree is walked, an inner node adds one subtree to those that wait, and a leaf takes one away. The right
    child of a node is the next node at which as many wait as at the node itself.
    """
    step = np.where(inner, 1, -1)
    waiting = np.cumsum(step) - step
    sizes = np.diff(start)
    own = np.arange(len(inner)) - np.repeat(start[:-1], sizes)
    waiting -= np.repeat(waiting[start[:-1]], sizes)
    order = np.lexsort((waiting, np.repeat(np.arange(len(sizes)), sizes)))
    after = np.zeros(len(inner), dtype=np.int64)
    after[order[:-1]] = order[1:]
    left = np.where(inner, own + 1, -1).astype(np.int32)
    right = np.where(inner, after - (np.arange(len(inner)) - own), -1).astype(np.int32)
    return left, right


def _check_preorder(inner: NDArray[np.bool_], start: NDArray[np.int64]) -> None:
    """Raise unless the leaves of every tree end it, and none before."""
    step = np.where(inner, 1, -1)
    total = np.cumsum(step)
    before = np.repeat(np.r_[0, total[start[1:-1] - 1]], np.diff(start))
    waiting = total - before
    last = start[1:] - 1
    _demand((waiting[last] == -1).all() and np.count_nonzero(waiting < 0) == len(last), "the leaves")


def _levels(inner: Any, start: Any, left: Any, right: Any) -> list[tuple[Any, Any, Any]]:
    """Return inner nodes with their children among all nodes, level by level from the roots."""
    sizes = np.diff(start)
    base = np.repeat(start[:-1], sizes)
    levels = []
    here = np.asarray(start[:-1])
    while here.size:
        here = here[inner[here]]
        first = base[here] + left[here]
        second = base[here] + right[here]
        if here.size:
            levels.append((here, first, second))
        here = np.concatenate([first, second])
        _demand(sum(len(level[0]) for level in levels) <= len(inner), "the children")
    return levels


def _sum_up(values: Any, levels: Any) -> None:
    """Set the value of every inner node to the sum of its children's, from the leaves to the roots."""
    for here, first, second in reversed(levels):
        values[here] = values[first] + values[second]


def _pack_sums(values: NDArray[Any], leaf: NDArray[np.bool_], levels: Any) -> Packed:
    """Return numbers of nodes: those of the leaves, where the others are sums of them."""
    numbers = values.astype(np.float64)
    again = np.where(leaf, numbers, 0.0)
    _sum_up(again, levels)
    if np.array_equal(again.view(np.int64), numbers.view(np.int64)):
        return {"leaves": pack_numbers(numbers[leaf])}
    return {"all": pack_numbers(numbers)}


def _unpack_sums(packed: Any, leaf: NDArray[np.bool_], levels: Any) -> Array:
    _demand(isinstance(packed, dict) and set(packed) in ({"leaves"}, {"all"}), "rows and weights")
    if "all" in packed:
        return unpack_numbers(packed["all"], len(leaf))
    values = np.zeros(len(leaf))
    values[leaf] = unpack_numbers(packed["leaves"], int(leaf.sum()))
    _sum_up(values, levels)
    return values


# ---- values ----


def _pack_values(trees: Any, leaf: NDArray[np.bool_], levels: Any) -> Packed:
    value = np.ascontiguousarray(trees.value)
    table, index = _distinct_rows(value[leaf])
    packed: Packed = {"table": table, "index": narrow(index)}
    if packed["table"].nbytes + packed["index"].nbytes >= value[leaf].nbytes:
        packed = {"leaves": pack_numbers(value[leaf].reshape(-1))}
    for way in _WAYS:  # compilers may turn a division into a product with the reciprocal
        again = _values_from_counts(value, leaf, levels, trees.weight, way)
        if again is not None and np.array_equal(again.view(np.int64), value.view(np.int64)):
            return packed | {"inner": way}
    return packed | {"inner": pack_numbers(value[~leaf].reshape(-1))}


def _unpack_values(packed: Any, leaf: NDArray[np.bool_], levels: Any, weight: Array, k: int) -> Array:
    _demand(
        isinstance(packed, dict) and set(packed) in ({"table", "index", "inner"}, {"leaves", "inner"}), "the values"
    )
    n_leaves = int(leaf.sum())
    value = np.zeros((len(leaf), k))
    if "table" in packed:
        table = packed["table"]
        index = _whole(packed["index"], n_leaves)
        _demand(
            isinstance(table, np.ndarray) and table.dtype == np.float64 and table.ndim == 2 and table.shape[1] == k,
            "the values",
        )
        _demand(not n_leaves or int(index.max()) < len(table), "the values")
        value[leaf] = table[index]
    else:
        value[leaf] = unpack_numbers(packed["leaves"], n_leaves * k).reshape(n_leaves, k)
    if isinstance(packed["inner"], str):
        again = _values_from_counts(value, leaf, levels, weight, packed["inner"])
        _demand(again is not None, "the values")
        return np.asarray(again)
    value[~leaf] = unpack_numbers(packed["inner"], (len(leaf) - n_leaves) * k).reshape(-1, k)
    return value


def _values_from_counts(value: Array, leaf: NDArray[np.bool_], levels: Any, weight: Array, way: str) -> Array | None:
    """Return shares of classes from the counts in the leaves; None where there are no such shares."""
    if value.shape[1] < 2 or way not in _WAYS or not (weight > 0).all():
        return None
    counts = np.zeros_like(value)
    counts[leaf] = np.rint(value[leaf] * weight[leaf][:, None])
    _sum_up(counts, levels)
    found = counts / weight[:, None] if way == "counts" else counts * (1.0 / weight)[:, None]
    found[leaf] = value[leaf]
    return np.asarray(found, dtype=np.float64)


def _distinct_rows(values: Array) -> tuple[Array, NDArray[np.int64]]:
    """Return the different rows, and which of them each row is."""
    rows = np.ascontiguousarray(values).view(np.dtype((np.void, 8 * values.shape[1]))).reshape(-1)
    _, first, index = np.unique(rows, return_index=True, return_inverse=True)
    return values[first], index.reshape(-1)


# ---- pieces of a file, which may hold anything ----


def _expands_within(packed: Packed) -> bool:
    return (
        packed["n_nodes"] * (_NODE_BYTES + 8 * packed["n_values"]) <= _MOST_EXPANSION * _bytes_in(packed) + _FREE_BYTES
    )


def _bytes_in(packed: Any) -> int:
    if isinstance(packed, dict):
        return sum(_bytes_in(item) for item in packed.values())
    return int(packed.nbytes) if isinstance(packed, np.ndarray) else 0


def _spread(values: Any, where: NDArray[np.bool_], other: Any, dtype: Any) -> NDArray[Any]:
    """Return an array with values at some nodes and `other` elsewhere."""
    spread = np.full(len(where), other, dtype=dtype)
    spread[where] = values
    return spread


def _array(values: Any, dtypes: tuple[Any, ...]) -> NDArray[Any]:
    _demand(
        isinstance(values, np.ndarray) and values.ndim == 1 and values.dtype in [np.dtype(d) for d in dtypes],
        "an array",
    )
    return values


def _whole(values: Any, count: int) -> NDArray[np.int64]:
    found = _array(values, (*_WIDTHS, np.int64)).astype(np.int64)
    _demand(len(found) == count and (not count or 0 <= found.min() <= found.max() < 2**31), "whole numbers")
    return found


def _bits(packed: Any, count: int) -> NDArray[np.bool_]:
    found = _array(packed, (np.uint8,))
    _demand(len(found) == (count + 7) // 8, "truth values")
    return np.unpackbits(found, count=count).astype(bool)


def _demand(condition: Any, what: str) -> None:
    require(condition, f"the trees are damaged: {what} cannot be those of a packed tree")
