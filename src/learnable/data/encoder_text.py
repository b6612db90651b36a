r"""Short codes and free text: what tells them apart, the prefix of a code, and the reduction of hashed text.

A code such as "C85" or "PC 17599" is short, of one word or two, and often occurs once; what its values have in common
is how they begin. Free text is hashed into many columns, which suits linear models; for models of dense columns the
hashed rows H are projected on the directions of their greatest variation, the first right singular vectors of H:

    Z = H V,    V of the eigenvectors of HᵀH with the largest eigenvalues.

The vectors come from every 2ᵏ-th row, so that a table in pieces gives the same ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ..core.threads import one_thread_blas
from .encoder_categories import Level
from .encoder_read import Labels
from .sample import RowSample

Array = NDArray[np.float64]

COMPONENTS: Final = 32  # of a free-text column, for models of dense columns
_SAMPLE: Final = 2**13  # rows that the directions come from
_CODE_LETTERS: Final = 12
_CODE_WORDS: Final = 2.0
_ROWS_PER_PREFIX: Final = 5
_RANK: Final = 1e-10  # eigenvalues below this share of the largest are rounding


def is_code(words: float, letters: float) -> bool:
    """Tell whether the values of a column are short codes or names rather than text (means over the rows).

    Examples
    --------
    >>> is_code(words=1.1, letters=3.6), is_code(words=6.0, letters=30.0), is_code(words=1.0, letters=24.0)
    (True, False, False)
    """
    return words < _CODE_WORDS and letters <= _CODE_LETTERS


def prefix_of(code: str) -> str:
    """Return how a code begins: the letters before its first digit, or its first two characters.

    Examples
    --------
    >>> prefix_of("C85"), prefix_of("PC 17599"), prefix_of("90210"), prefix_of("Smith")
    ('C', 'PC', '90', 'Sm')
    """
    head = code.strip()
    if head[:1].isalpha():
        end = next((place for place, letter in enumerate(head) if letter.isdigit()), None)
        if end is not None:
            return head[:end].rstrip(" -_/.:#")
    return head[:2]


def merge_prefixes(level: Level) -> Level | None:
    """Return the totals of the prefixes of some levels; None where they say nothing that the levels do not.

    There must be at least two, at most a third as many as levels, and rows enough for each.
    """
    names = [prefix_of(name) for name in level.names]
    prefixes = sorted(set(names))
    weight = float(level.weight[:-1].sum())
    if not 2 <= len(prefixes) <= len(names) / 3 or weight < _ROWS_PER_PREFIX * len(prefixes):
        return None
    place = {prefix: number for number, prefix in enumerate(prefixes)}
    to = np.array([place[name] for name in names] + [len(prefixes)], dtype=np.int64)
    totals = []
    for values in (level.weight, level.sums, level.squares):
        merged = np.zeros((len(prefixes) + 1, *values.shape[1:]))
        np.add.at(merged, to, values)
        totals.append(merged)
    return Level(prefixes, totals[0], totals[1], totals[2], level.shift)


def prefix_labels(labels: Labels) -> Labels:
    """Return the prefixes of a column of codes."""
    names = [prefix_of(value) for value in labels.values]
    values = sorted(set(names))
    place = {prefix: number for number, prefix in enumerate(values)}
    lookup = np.array([place[name] for name in names] + [-1], dtype=np.int64)
    return Labels(lookup[labels.codes], values)


class TextSample:
    """Every 2ᵏ-th value of a column of text that arrives in consecutive pieces."""

    def __init__(self) -> None:
        self._rows = RowSample(_SAMPLE)

    def update(self, labels: Labels) -> None:
        """Take note of the next rows."""
        values = np.array([*labels.values, ""], dtype=object)
        self._rows.update(values[labels.codes])

    def texts(self) -> list[str]:
        """Return the values that are not missing."""
        return [text for text in self._rows.rows().tolist() if text] if self._rows.n_seen else []


def reduction(hashed: Any, n_components: int, *, scale: bool) -> Array:
    """Return V, (n_hashed, k): the first right singular vectors of hashed rows, k at most `n_components`.

    Parameters
    ----------
    hashed : CSR matrix of shape (n_rows, n_hashed)
        Hashed text.
    n_components : int
        Most vectors.
    scale : bool
        Whether to scale the vectors so that their features have mean square one.
    """
    gram = (hashed.T @ hashed).toarray()
    with one_thread_blas():  # the same bits, however many threads there are
        values, vectors = np.linalg.eigh(gram)
    values, vectors = values[::-1][:n_components], vectors[:, ::-1][:, :n_components]
    kept = values > _RANK * max(float(values[0]), 1e-300)
    values, vectors = values[kept], vectors[:, kept]
    largest = np.abs(vectors).argmax(axis=0)
    vectors = vectors * np.sign(vectors[largest, np.arange(vectors.shape[1])])
    if scale:
        vectors = vectors / np.sqrt(values / hashed.shape[0])
    return np.ascontiguousarray(vectors)


def component_names(name: str, count: int) -> Sequence[str]:
    """Return the names of the features of reduced text."""
    return [f"{name}: text component {number}" for number in range(count)]
