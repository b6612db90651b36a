r"""Levels of a column of text, and the mean target of each: counted over rows that arrive in any pieces.

A column with few levels becomes one column per level. With many, the level is replaced by its mean target, drawn to the
overall mean as in scikit-learn's `TargetEncoder` (empirical Bayes):

    λ ȳ_level + (1 − λ) ȳ,    λ = σ² n / (σ² n + s²),

with n rows of the level, s² their variance and σ² the variance of all targets. A training row must not see its own
target: the level's mean is then taken over the rows of the other four folds, and the fold of a row is its number mod 5.

Reference: D. Micci-Barreca, A preprocessing scheme for high-cardinality categorical attributes in classification and
prediction problems, SIGKDD Explorations 3 (2001), equations 5 and 6.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Literal, NamedTuple

import numpy as np

from ..core import Array, DataError, NDArray, one_thread_blas
from .arrays import as_array
from .door import read_target, read_values
from .encoder_read import Labels, is_missing
from .sample import RowSample

FOLDS: Final = 5

MOST_LEVELS: Final = 2**16  # a column with more is free text


class EncoderTarget(NamedTuple):
    """The targets of some rows, as target encoding wants them."""

    values: NDArray[Any]  #: (n, k) float64, or (n,) class codes
    n_classes: int  #: 0 for regression


class Level(NamedTuple):
    """Totals of the levels of one column; L levels, sorted, and a last one for missing values."""

    names: list[str]
    weight: Array  #: (L + 1, FOLDS)
    sums: Array  #: (L + 1, FOLDS, k), of the target minus `shift`
    squares: Array  #: (L + 1, FOLDS, k)
    shift: Array  #: (k,)


class CategoryStatistics:
    """Levels of one column, with their weight and their targets in each fold."""

    def __init__(self, n_targets: int = 0, n_classes: int = 0) -> None:
        self.n_classes = n_classes
        self.k = 1 if n_classes == 2 else n_classes or n_targets
        self.position: dict[str, int] = {}
        self.n_rows = self.missing = self.words = self.letters = 0
        self.overflow = False
        self.shift: Array | None = None
        self.weight = np.zeros((1, FOLDS))  # row 0 is for missing values
        self.sums = np.zeros((1, FOLDS, self.k))
        self.squares = np.zeros((1, FOLDS, self.k))

    def update(self, labels: Labels, target: EncoderTarget | None, weight: Array | None, first_row: int) -> None:
        """Take note of the next rows."""
        codes = labels.codes
        if weight is not None and not weight.all():
            codes = np.where(weight > 0, codes, -2)  # a row of weight zero counts as none
        counts = np.bincount(codes[codes >= 0], minlength=len(labels.values))
        self.n_rows += int((codes >= -1).sum())
        self.missing += int((codes == -1).sum())
        for value, count in zip(labels.values, counts.tolist(), strict=True):
            if count:
                self.words += count * len(value.split())
                self.letters += count * len(value)
        if self.overflow:
            return
        lookup = np.zeros(len(labels.values) + 2, dtype=np.int64)
        for code in np.flatnonzero(counts).tolist():
            lookup[code] = 1 + self.position.setdefault(labels.values[code], len(self.position))
        if len(self.position) > MOST_LEVELS:
            self.overflow = True
            self.position = {}
            self.weight = self.weight[:0]
            self.sums = self.sums[:0]
            self.squares = self.squares[:0]
            return
        self._grow()
        folds = (first_row + np.arange(len(codes))) % FOLDS
        rows = slice(None) if (codes >= -1).all() else np.flatnonzero(codes >= -1)
        w = np.ones(len(codes)) if weight is None else weight
        if target is not None and self.shift is None and len(codes):
            self.shift = np.zeros(self.k) if self.n_classes else np.array(target.values[0], dtype=np.float64)
        self._add(lookup[codes[rows]], folds[rows], w[rows], None if target is None else target.values[rows])

    def _grow(self) -> None:
        needed = len(self.position) + 1
        if needed > len(self.weight):
            size = max(needed, 2 * len(self.weight))
            for name in ("weight", "sums", "squares"):
                old = getattr(self, name)
                new = np.zeros((size, *old.shape[1:]))
                new[: len(old)] = old
                setattr(self, name, new)

    @np.errstate(over="ignore", invalid="ignore")  # what overflows is refused where it is used
    def _add(self, levels: NDArray[np.int64], folds: NDArray[np.int64], w: Array, y: NDArray[Any] | None) -> None:
        # add.at adds row after row onto the running totals, so that pieces do not change the order of the sum.
        np.add.at(self.weight, (levels, folds), w)
        if y is None or not self.k:
            return
        if self.n_classes:
            if self.n_classes == 2:
                levels = levels[y == 1]
                folds = folds[y == 1]
                w = w[y == 1]
                y = y[y == 1] - 1
            np.add.at(self.sums, (levels, folds, y), w)
            return
        for j in range(self.k):
            deviation = y[:, j] - (0.0 if self.shift is None else self.shift[j])
            np.add.at(self.sums[:, :, j], (levels, folds), w * deviation)
            np.add.at(self.squares[:, :, j], (levels, folds), w * deviation * deviation)

    def finish(self) -> Level:
        """Return the totals, levels sorted."""
        names = sorted(self.position)
        order = np.array([1 + self.position[name] for name in names] + [0], dtype=np.int64)
        weight = self.weight[order]
        sums = self.sums[order]
        squares = sums if self.n_classes else self.squares[order]
        return Level(names, weight, sums, squares, np.zeros(self.k) if self.shift is None else self.shift)


@np.errstate(over="ignore", invalid="ignore")
def target_means(level: Level) -> Array:
    """Return the smoothed mean targets, shape (FOLDS + 1, L + 2, k).

    Row f < FOLDS leaves out fold f; the last one is over all rows. The two last levels are missing and unseen.
    """
    n_levels, _, k = level.sums.shape
    means = np.empty((FOLDS + 1, n_levels + 1, k))
    for fold in range(FOLDS + 1):
        others = [f for f in range(FOLDS) if f != fold]
        if not level.weight[:, others].any():
            others = list(range(FOLDS))
        n = level.weight[:, others].sum(axis=1)[:, None]
        sums = level.sums[:, others].sum(axis=1)
        squares = level.squares[:, others].sum(axis=1)
        overall = sums.sum(axis=0) / n.sum()
        total = n.sum()
        variance = np.maximum(squares.sum(axis=0) / total - overall**2, 0.0)
        size = np.where(n > 0, n, 1.0)
        mean = sums / size
        within = np.maximum(squares / size - mean**2, 0.0)
        denominator = variance * n + within
        trust = np.divide(variance * n, denominator, out=np.zeros_like(mean), where=denominator > 0)
        means[fold, :-1] = overall + np.where(n > 0, trust, 0.0) * (mean - overall)
        means[fold, -1] = overall
    return means + level.shift


def choose_levels(level: Level, most: int) -> NDArray[np.int64]:
    """Return for each level (the last is missing) its one-hot column, −1 for none.

    At most `most` columns: the most frequent levels have their own, all others share the last one.
    """
    total = level.weight.sum(axis=1)
    present = np.flatnonzero(total > 0)
    columns = np.full(len(total), -1, dtype=np.int64)
    if len(present) <= most:
        columns[present] = np.arange(len(present))
        return columns
    rare_first = present[np.argsort(total[present], kind="stable")]  # ties as in OneHotEncoder
    own = np.sort(rare_first[len(present) - most + 1 :])
    columns[present] = most - 1
    columns[own] = np.arange(most - 1)
    return columns


# The target as an encoder sees it: what task it makes, and its values.

Task = Literal["regression", "binary", "multiclass"]

_MOST_CLASSES = 20  # more distinct whole numbers are amounts, not names


def guess_task(y: Any) -> tuple[Task, str]:
    """Return what kind of target `y` is, and why.

    Examples
    --------
    >>> guess_task(["yes", "no", "yes"])
    ('binary', '2 distinct labels')
    >>> guess_task([1.5, 2.0, 0.25])
    ('regression', 'numbers with fractions')
    """
    values = as_array("guess_task", read_values("guess_task", y), "y")
    if values.ndim == 2 and values.shape[1] > 1:
        return "regression", f"{values.shape[1]} targets"
    values = values.reshape(-1)
    if values.dtype.kind == "O":
        values = np.array([value for value in values.tolist() if not is_missing(value)])
    if values.dtype.kind not in "iuf":
        count = len(set(values.tolist()))
        what = "truth values" if values.dtype.kind == "b" else f"{count} distinct labels"
        return "binary" if count <= 2 else "multiclass", what
    numbers = values[~np.isnan(values)] if values.dtype.kind == "f" else values
    if numbers.dtype.kind == "f" and (numbers != np.trunc(numbers)).any():
        return "regression", "numbers with fractions"
    count = len(np.unique(numbers))
    if count <= 2:
        return "binary", f"{count} distinct whole numbers"
    if count <= min(_MOST_CLASSES, len(numbers) / 3):
        return "multiclass", f"only {count} distinct whole numbers"
    return "regression", f"{count} distinct whole numbers"


def read_encoder_target(
    owner: str, y: Any, task: str, classes: NDArray[Any] | None = None
) -> tuple[EncoderTarget, Any]:
    """Return the targets of the rows and the classes (None for regression).

    Parameters
    ----------
    owner : str
        Whose errors they are.
    y : array of targets
        One per row.
    task : {"auto", "regression", "classification"}
        What they are.
    classes : array, optional
        All labels, sorted, if these rows are only some of them.
    """
    if task == "auto" and classes is None:
        task = "regression" if guess_task(y)[0] == "regression" else "classification"
    if task == "regression":
        values, _ = read_target(owner, y, "numeric", multi_output=True)
        return EncoderTarget(values.reshape(len(values), -1), 0), None
    codes, found = read_target(owner, y, "classes", multi_output=False)
    assert found is not None
    if classes is None:
        return EncoderTarget(codes, len(found)), found
    position = {label: code for code, label in enumerate(np.asarray(classes).tolist())}
    unknown = [label for label in found.tolist() if label not in position]
    if unknown:
        raise DataError(f"{owner}: y holds the label {unknown[0]!r}, which is not one of the classes given.")
    return EncoderTarget(
        np.array([position[label] for label in found.tolist()], dtype=np.int64)[codes], len(classes)
    ), classes


def read_rows(owner: str, y: Any, n_rows: int) -> Any:
    """Return targets as an array with one row for each of `n_rows`."""
    values = as_array(owner, read_values(owner, y), "y")
    if values.ndim == 0 or len(values) != n_rows:
        raise DataError(
            f"{owner}: X and y have inconsistent numbers of samples: X has {n_rows} rows, "
            f"y has {len(values) if values.ndim else 'no length'}. Pass one target per row."
        )
    return values


# Short codes and free text: what tells them apart, the prefix of a code, and the reduction of hashed text.
#
# A code such as "C85" or "PC 17599" is short, of one word or two, and often occurs once; what its values have in
# common
# is how they begin. Free text is hashed into many columns, which suits linear models; for models of dense columns the
# hashed rows H are projected on the directions of their greatest variation, the first right singular vectors of H:
#
#     Z = H V,    V of the eigenvectors of HᵀH with the largest eigenvalues.
#
# The vectors come from every 2ᵏ-th row, so that a table in pieces gives the same ones.

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
    values = values[::-1][:n_components]
    vectors = vectors[:, ::-1][:, :n_components]
    kept = values > _RANK * max(float(values[0]), 1e-300)
    values = values[kept]
    vectors = vectors[:, kept]
    largest = np.abs(vectors).argmax(axis=0)
    vectors = vectors * np.sign(vectors[largest, np.arange(vectors.shape[1])])
    if scale:
        vectors = vectors / np.sqrt(values / hashed.shape[0])
    return np.ascontiguousarray(vectors)


def component_names(name: str, count: int) -> Sequence[str]:
    """Return the names of the features of reduced text."""
    return [f"{name}: text component {number}" for number in range(count)]
