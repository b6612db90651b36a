r"""The polynomial feature map: x ↦ all monomials x₁^{a₁}⋯x_d^{a_d} of degree Σaⱼ ≤ p.

There are C(d + p, p) of them, the constant included; Σ_{q≤p} C(d, q) if no feature may enter twice. A linear model of
them is a polynomial, fitted as easily as a line. They are ordered by degree, then as words: 1, x₀, x₁, x₀², x₀x₁, x₁².
So every monomial is an earlier one times a feature, and the children of one stand side by side: a row costs one product
a monomial, and for a sparse row only those of its non-zero features are formed.

Reference: T. Hastie, R. Tibshirani and J. Friedman, The Elements of Statistical Learning, 2nd ed., section 5.1.
"""

from __future__ import annotations

from math import comb
from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import TransformerMixin
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from ...core import (
    FLOATS,
    Boolean,
    DataError,
    Declared,
    Matches,
    ModelFileError,
    Number,
    Options,
    ParameterError,
    check_parameters,
    fitted,
    param,
    tags,
)
from ...core.jit import kernel
from ...data.door import read_features

Count = NDArray[np.int64]


@kernel
def monomials_dense(X: Any, parent: Count, factor: Count, skip: int, bias: int, out: Any) -> None:
    """OUT out (n, bias + m − skip): the monomials from number `skip` on, and a column of ones if bias is 1.

    Monomial 0 is the constant; monomial c is monomial parent[c] times feature factor[c].
    """
    n = X.shape[0]
    m = parent.size
    values = np.empty(m)
    values[0] = 1.0
    for i in range(n):
        row = X[i]
        target = out[i]
        for c in range(1, m):
            values[c] = values[parent[c]] * row[factor[c]]
        if bias == 1:
            target[0] = 1.0
        for c in range(skip, m):
            target[bias + c - skip] = values[c]


@kernel
def monomials_sparse(
    data: Any, indices: Any, indptr: Any, first: Count, child: Count, degrees: tuple[int, int, int, int, int],
    out_data: Any, out_indices: Any, out_indptr: Any,
) -> None:  # fmt: skip
    """OUT the CSR parts of the monomials of CSR rows; columns come out sorted, because features are.

    `degrees` is (least, greatest, step, skip, bias): with step 1 a feature enters a monomial once at most, and the
    monomials before number `skip` are not put out. The children of monomial c are the columns child[c] + feature −
    first[c].
    """
    least, greatest, step, skip, bias = degrees
    position = 0
    for i in range(indptr.size - 1):
        start = indptr[i]
        stop = indptr[i + 1]
        if bias == 1:
            out_indices[position] = 0
            out_data[position] = 1.0
            position += 1
        columns = np.zeros(1, dtype=np.int64)
        values = np.ones(1)
        nexts = np.full(1, start)
        for degree in range(1, greatest + 1):
            count = 0
            for e in range(columns.size):
                count += max(0, stop - nexts[e])
            new_columns = np.empty(count, dtype=np.int64)
            new_values = np.empty(count)
            new_nexts = np.empty(count, dtype=nexts.dtype)
            k = 0
            for e in range(columns.size):
                for s in range(nexts[e], stop):
                    new_columns[k] = child[columns[e]] + indices[s] - first[columns[e]]
                    new_values[k] = values[e] * data[s]
                    new_nexts[k] = s + step
                    k += 1
            columns = new_columns
            values = new_values
            nexts = new_nexts
            if degree >= least:
                for e in range(count):
                    out_indices[position] = columns[e] - skip + bias
                    out_data[position] = values[e]
                    position += 1
        out_indptr[i + 1] = position


_MOST_FEATURES = 2**63 - 1  # which an index can count
_SHORT = 2**31 - 1  # up to which indices of 32 bits will do
_MOST_ENTRIES = 2**40  # 8 TB: a mistake, not a wish
_GREATEST_DEGREE = 1000  # a guard against a degree that is a mistake
_MOST_PARENTS = 2**27  # monomials of lower degree, which a table of their children needs


def _is_degree(value: Any) -> bool:
    degree = Number(low=0, high=_GREATEST_DEGREE, integer=True)
    if not isinstance(value, (tuple, list)):
        return degree.allows(value)
    return len(value) == 2 and all(degree.allows(end) for end in value) and value[0] <= value[1]


class PolynomialFeatures(TransformerMixin, Declared):
    """All monomials of the features up to a degree.

    Examples
    --------
    >>> from learnable import PolynomialFeatures
    >>> poly = PolynomialFeatures(degree=2).fit([[2.0, 3.0]])
    >>> poly.transform([[2.0, 3.0]])
    array([[1., 2., 3., 4., 6., 9.]])
    >>> poly.get_feature_names_out().tolist()
    ['1', 'x0', 'x1', 'x0^2', 'x0 x1', 'x1^2']
    """

    _theory = "features"

    degree: Any = param(
        Matches(
            _is_degree,
            f"an int or tuple (min_degree, max_degree), of integers from 0 to {_GREATEST_DEGREE}, where "
            "degree=(min_degree, max_degree) must have min_degree <= max_degree",
        ),
        "The greatest degree p, or the least and the greatest.",
        default=2,
        kw_only=False,
    )
    interaction_only: bool = param(Boolean(), "Whether a feature may enter a monomial once at most.", default=False)
    include_bias: bool = param(Boolean(), "Whether the constant 1 is the first column.", default=True)
    order: str = param(Options("C", "F"), "Memory order of a dense result.", default="C")
    n_output_features_: int = fitted("int", "The number of monomials: C(d + p, p) by default.")
    _tags = tags(sparse=True, preserves_dtype=FLOATS)

    def fit(self, X: Any, y: Any = None) -> Self:
        """Count the features; the values do not matter.

        Parameters
        ----------
        X : array, sparse array or dataframe of shape (n_samples, n_features)
            A table with the columns to expand.
        y : ignored
            There for pipelines.

        Returns
        -------
        self
            The fitted transformer.
        """
        check_parameters(type(self).__name__, self.get_params(deep=False), self._parameters)
        least, greatest = self._degrees()
        if greatest == 0 and not self.include_bias:
            what = "degree" if np.ndim(self.degree) == 0 else "both min_degree and max_degree"
            raise ParameterError(
                f"PolynomialFeatures: Setting {what} to zero and include_bias to False would result in an empty output "
                "array. Raise degree, or set include_bias=True."
            )
        table = read_features(self, X, reset=True)
        n_out = self._count(table.shape[1])
        if n_out > _MOST_FEATURES:
            raise DataError(
                "PolynomialFeatures: The output that would result from the current configuration would have "
                f"{n_out} features which is too large to be indexed: all monomials of {table.shape[1]} features of "
                f"degree {least} to {greatest}. Lower degree, or set interaction_only=True."
            )
        self.n_output_features_ = n_out
        return self

    def transform(self, X: Any) -> Any:
        """Return the monomials of each row.

        Parameters
        ----------
        X : array, sparse array or dataframe of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        array, or for sparse X a CSR array (CSC for CSC), of shape (n_samples, n_output_features_)
            The monomials, in the order of `get_feature_names_out`; float32 for float32.
        """
        table = read_features(self, X)
        if self.n_output_features_ != self._count(self.n_features_in_):
            raise DataError("PolynomialFeatures: the parameters were changed after the fit; call fit again.")
        if sp.issparse(table):
            found = self._transform_sparse(table)
            return sp.csc_array(found) if getattr(X, "format", "") == "csc" else found
        if len(table) * self.n_output_features_ > _MOST_ENTRIES:
            raise DataError(
                f"PolynomialFeatures: {len(table)} rows of {self.n_output_features_} monomials do not fit into memory; "
                "lower degree, set interaction_only=True, or pass sparse rows."
            )
        tree = grow(self.n_features_in_, self._degrees()[1], self.interaction_only)
        out = np.empty((len(table), self.n_output_features_), dtype=table.dtype)
        rows = np.ascontiguousarray(table)
        monomials_dense(rows, tree.parent, tree.factor, self._skipped(), int(self.include_bias), out)
        return out if self.order == "C" else np.asfortranarray(out)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Return the names of the monomials, such as "x0^2 x1".

        Parameters
        ----------
        input_features : list of str, optional
            Names of the features; by default those of the fit, or x0, x1, …

        Returns
        -------
        array of str objects
            One name per column.
        """
        check_is_fitted(self)
        names = _check_feature_names_in(self, input_features)
        tree = grow(self.n_features_in_, self._degrees()[1], self.interaction_only)
        # A parent's last factor is its child's last but one: a power grows as long as they agree.
        stems = [""] * len(tree.parent)
        words = ["1"] * len(tree.parent)
        times = [0] * len(tree.parent)
        for c in range(1, len(tree.parent)):
            p = int(tree.parent[c])
            f = int(tree.factor[c])
            again = p > 0 and int(tree.factor[p]) == f
            times[c] = times[p] + 1 if again else 1
            stem = words[p] + " " if p > 0 else ""
            stems[c] = stems[p] if again else stem
            words[c] = stems[c] + (names[f] if times[c] == 1 else f"{names[f]}^{times[c]}")
        return np.array(words[:1] * self.include_bias + words[self._skipped() :], dtype=object)

    @property
    def powers_(self) -> NDArray[np.int64]:
        """The exponents of each monomial, (n_output_features_, n_features_in_)."""
        check_is_fitted(self)
        tree = grow(self.n_features_in_, self._degrees()[1], self.interaction_only)
        powers = np.zeros((len(tree.parent), self.n_features_in_), dtype=np.int64)
        for start, stop in zip(tree.starts[1:], tree.starts[2:], strict=False):
            powers[start:stop] = powers[tree.parent[start:stop]]
            powers[np.arange(start, stop), tree.factor[start:stop]] += 1
        return np.concatenate([powers[: int(self.include_bias)], powers[self._skipped() :]])

    def _transform_sparse(self, table: Any) -> Any:
        least, greatest = self._degrees()
        if self._count_all(self.n_features_in_, max(greatest - 1, 0)) > _MOST_PARENTS:
            raise DataError(
                f"PolynomialFeatures: there are more than {_MOST_PARENTS} monomials below degree {greatest}; lower "
                "degree, or set interaction_only=True."
            )
        tree = grow(self.n_features_in_, max(greatest - 1, 0), self.interaction_only)
        filled, entries = np.unique(np.diff(table.indptr), return_inverse=True)
        each = np.array([self._count(int(k)) for k in filled], dtype=object)
        total = int(sum(each * np.bincount(entries, minlength=len(each))))
        if total > _MOST_ENTRIES:
            raise DataError(f"PolynomialFeatures: the result would have {total} entries; lower degree.")
        wide = np.int64 if max(total, self.n_output_features_) > _SHORT else np.int32
        data = np.empty(total, dtype=table.dtype)
        indices = np.empty(total, dtype=wide)
        indptr = np.zeros(table.shape[0] + 1, dtype=wide)
        form = (max(least, 1), greatest, int(self.interaction_only), self._skipped(), int(self.include_bias))
        monomials_sparse(table.data, table.indices, table.indptr, tree.first, tree.child, form, data, indices, indptr)
        return sp.csr_array((data, indices, indptr), shape=(table.shape[0], self.n_output_features_))

    def _degrees(self) -> tuple[int, int]:
        return (0, int(self.degree)) if np.ndim(self.degree) == 0 else (int(self.degree[0]), int(self.degree[1]))

    def _count_all(self, n_features: int, degree: int) -> int:
        """Return the number of monomials up to a degree, the constant included."""
        if self.interaction_only:
            return sum(comb(n_features, q) for q in range(min(degree, n_features) + 1))
        return comb(n_features + degree, degree)

    def _count(self, n_features: int) -> int:
        least, greatest = self._degrees()
        below = self._count_all(n_features, max(least, 1) - 1)
        return self._count_all(n_features, greatest) - below + int(self.include_bias) if greatest else 1

    def _skipped(self) -> int:
        """Return how many monomials, the constant among them, come before the least degree."""
        least, greatest = self._degrees()
        return self._count_all(self.n_features_in_, max(least, 1) - 1) if greatest else 1

    @property
    def _n_features_out(self) -> int:
        return self.n_output_features_

    def _check_loaded(self) -> None:
        n_features = getattr(self, "n_features_in_", None)
        n_out = getattr(self, "n_output_features_", None)
        sound = isinstance(n_features, int) and 1 <= n_features <= _MOST_FEATURES
        if not sound or n_out != self._count(n_features) or n_out > _MOST_FEATURES:  # type: ignore[arg-type,operator]
            raise ModelFileError("load: PolynomialFeatures: n_output_features_ does not fit n_features_in_ and degree.")


class Tree(NamedTuple):
    """The monomials up to a degree, in their order; number 0 is the constant."""

    parent: Count  #: number of the monomial without its last factor
    factor: Count  #: that factor, a feature
    first: Count  #: the first feature that a child may have as its last factor
    child: Count  #: number of the first child, if it had one
    starts: list[int]  #: number of the first monomial of each degree, and of one more


def grow(n_features: int, degree: int, interaction_only: bool) -> Tree:
    """Return how each monomial arises from one of a lower degree.

    Examples
    --------
    >>> from learnable.linear.features.polynomial import grow
    >>> tree = grow(2, 2, interaction_only=False)
    >>> tree.parent.tolist(), tree.factor.tolist()
    ([0, 0, 0, 1, 1, 2], [0, 0, 1, 0, 1, 1])
    """
    parents = [np.zeros(1, np.int64)]
    factors = [np.zeros(1, np.int64)]
    firsts = [np.zeros(1, np.int64)]
    children = []
    starts = [0, 1]
    for _ in range(degree):
        counts = n_features - firsts[-1]
        before = np.cumsum(counts) - counts
        children.append(starts[-1] + before)
        parent = np.repeat(np.arange(len(counts)), counts)
        factor = np.arange(len(parent)) - before[parent] + firsts[-1][parent]
        parents.append(starts[-2] + parent)
        factors.append(factor)
        firsts.append(factor + int(interaction_only))
        starts.append(starts[-1] + len(parent))
    counts = n_features - firsts[-1]
    children.append(starts[-1] + np.cumsum(counts) - counts)
    parent, factor, first, child = (np.concatenate(parts) for parts in (parents, factors, firsts, children))
    return Tree(parent, factor, first, child, starts)
