"""Kernels of `layout`: many rows walk down trees of numbers, eight at a time and without branches.

A node is packed into 16 bytes: threshold, column, and the distance from the left child, which follows its parent, to
the right one. The sign bit of threshold − x says which way to go, so that nothing is mispredicted, and eight
independent walks hide the time to fetch a node. A leaf has the threshold −∞ and the distance −1: whoever is there
stays there.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ..core.jit import kernel

Array = NDArray[np.float64]

NODE: Final = np.dtype([("threshold", "f8"), ("column", "u4"), ("jump", "i4")])
_MISSING_LEFT: Final = np.uint32(1 << 31)  # the top bit of `column`
_LANES: Final = 8


def pack(start: Any, feature: Any, threshold: Array, right: Any, missing_left: Any) -> NDArray[Any]:
    """Return the nodes, each of whose left children follows it, in the packed form."""
    leaf = feature < 0
    own = np.arange(len(feature)) - np.repeat(start[:-1], np.diff(start))
    nodes = np.empty(len(feature), NODE)
    nodes["threshold"] = np.where(leaf, -np.inf, threshold)
    nodes["column"] = np.where(leaf, 0, feature) | np.where(missing_left & ~leaf, _MISSING_LEFT, np.uint32(0))
    nodes["jump"] = np.where(leaf, -1, right - own - 1)
    return nodes


@kernel
def _step(nodes: Any, x: Any, i: Any) -> Any:
    """Return the node after node i for the row x."""
    node = nodes[np.uint64(i)]
    at = node.column & np.uint32(0x7FFFFFFF)
    value = x[np.uint64(at)]
    if value != value:
        return i + 1 if node.column != at else i + 1 + np.int64(node.jump)
    difference = np.float64(node.threshold - value)
    return i + 1 + (np.int64(node.jump) & (difference.view(np.int64) >> np.int64(63)))


@kernel
def _walk_one(nodes: Any, x: Any) -> Any:
    i = np.int64(0)
    while True:
        after = _step(nodes, x, i)
        if after == i:
            return i
        i = after


@kernel
def _walk_eight(nodes: Any, X: Any, leaf: NDArray[np.int64]) -> None:
    """Write the leaves of eight rows."""
    a = b = c = d = e = f = g = h = np.int64(0)
    xa, xb, xc, xd, xe, xf, xg, xh = X[0], X[1], X[2], X[3], X[4], X[5], X[6], X[7]
    while True:
        a2, b2, c2, d2 = _step(nodes, xa, a), _step(nodes, xb, b), _step(nodes, xc, c), _step(nodes, xd, d)
        e2, f2, g2, h2 = _step(nodes, xe, e), _step(nodes, xf, f), _step(nodes, xg, g), _step(nodes, xh, h)
        moved = (a2 ^ a) | (b2 ^ b) | (c2 ^ c) | (d2 ^ d) | (e2 ^ e) | (f2 ^ f) | (g2 ^ g) | (h2 ^ h)
        a, b, c, d, e, f, g, h = a2, b2, c2, d2, e2, f2, g2, h2
        if moved == 0:
            break
    leaf[0], leaf[1], leaf[2], leaf[3], leaf[4], leaf[5], leaf[6], leaf[7] = a, b, c, d, e, f, g, h


@kernel
def sum_packed(X: Any, start: Any, packed: Any, value: Array, out: Array) -> None:
    """Add the leaf values of every tree to the rows of `out`."""
    leaf = np.empty(_LANES, np.int64)
    n, width = X.shape[0], value.shape[1]
    for t in range(start.size - 1):
        nodes = packed[start[t] : start[t + 1]]
        values = value[start[t] : start[t + 1]]
        r = 0
        while r < n:
            lanes = min(_LANES, n - r)
            if lanes == _LANES:
                _walk_eight(nodes, X[r : r + _LANES], leaf)
            else:
                for k in range(lanes):
                    leaf[k] = _walk_one(nodes, X[r + k])
            for k in range(lanes):
                for c in range(width):
                    out[r + k, c] += values[leaf[k], c]
            r += lanes


@kernel
def apply_packed(X: Any, start: Any, packed: Any, value: Array, out: NDArray[np.int32]) -> None:
    """Write the leaf of each row in every tree, counted within the tree."""
    leaf = np.empty(_LANES, np.int64)
    n = X.shape[0]
    for t in range(start.size - 1):
        nodes = packed[start[t] : start[t + 1]]
        r = 0
        while r < n:
            lanes = min(_LANES, n - r)
            if lanes == _LANES:
                _walk_eight(nodes, X[r : r + _LANES], leaf)
            else:
                for k in range(lanes):
                    leaf[k] = _walk_one(nodes, X[r + k])
            for k in range(lanes):
                out[r + k, t] = leaf[k]
            r += lanes
