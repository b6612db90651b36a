r"""Basis expansions: x ↦ φ₁(x), …, φ_m(x), so that a linear model of the φ's is a non-linear model of x.

The φ's may be any functions of a row or of one column. Named functions and B-splines can be saved in a model file;
functions written in Python cannot, because loading a file never runs code.

B-splines of degree k on knots t₀ < … < t_{K−1}: the K + k − 1 functions that are polynomials of degree k between two
knots, have k − 1 continuous derivatives, and are each positive on k + 1 intervals; on [t₀, t_{K−1}] they add up to one.

References: T. Hastie, R. Tibshirani and J. Friedman, The Elements of Statistical Learning, 2nd ed., chapter 5; C. de
Boor, A Practical Guide to Splines, 1978.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Self

import numpy as np
from scipy.interpolate import BSpline
from sklearn.base import TransformerMixin
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from ...core import (
    Array,
    Boolean,
    DataError,
    Declared,
    Matches,
    ModelFileError,
    NDArray,
    ParameterError,
    check_parameters,
    fitted,
    optional,
    param,
)
from ...data.door import read_features

#: The functions that have a name, of one column; what is not finite is refused.
FUNCTIONS: Final[dict[str, Callable[[Array], Array]]] = {
    "identity": lambda x: x,
    "square": np.square,
    "cube": lambda x: x**3,
    "abs": np.abs,
    "sign": np.sign,
    "sqrt": np.sqrt,
    "exp": np.exp,
    "log": np.log,
    "log1p": np.log1p,
    "sin": np.sin,
    "cos": np.cos,
    "tanh": np.tanh,
    "reciprocal": np.reciprocal,
    "positive": lambda x: np.maximum(x, 0.0),
}
_MOST_KNOTS = 10_000  # a guard against a model file that asks for all memory
_MANY_SPLINES = 500  # from which on only those that are not zero at a point are computed
_EXTRAPOLATIONS = ("constant", "continue", "error")


@dataclass(frozen=True)
class BSplines:
    """B-splines of one column, as an entry of `BasisExpansion`.

    Parameters
    ----------
    knots : int or sequence of float
        The knots t₀ < t₁ < …, or how many, equally spaced from the least to the greatest value of the fit.
    degree : int
        k; 0 gives steps, 1 broken lines, 3 cubic splines.
    extrapolation : {"constant", "continue", "error"}
        Outside the knots: the value at the nearest knot, the last polynomial, or an error.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable import BasisExpansion
    >>> from learnable.linear import BSplines
    >>> hats = BasisExpansion([BSplines(knots=[0.0, 1.0, 2.0], degree=1)]).fit([[0.5]])
    >>> hats.transform([[0.5], [2.0]])
    array([[0.5, 0.5, 0. ],
           [0. , 0. , 1. ]])
    """

    knots: int | tuple[float, ...] = 5
    degree: int = 3
    extrapolation: str = "constant"

    def __post_init__(self) -> None:
        if isinstance(self.degree, bool) or not isinstance(self.degree, int) or not 0 <= self.degree <= 20:
            raise ParameterError(f"BSplines: degree must be an integer from 0 to 20; got {self.degree!r}.")
        if self.extrapolation not in _EXTRAPOLATIONS:
            raise ParameterError(
                f"BSplines: extrapolation must be one of {', '.join(_EXTRAPOLATIONS)}; got {self.extrapolation!r}."
            )
        if isinstance(self.knots, (int, np.integer)) and not isinstance(self.knots, bool):
            if not 2 <= self.knots <= _MOST_KNOTS:
                raise ParameterError(f"BSplines: there must be 2 to {_MOST_KNOTS} knots; got {self.knots}.")
            object.__setattr__(self, "knots", int(self.knots))
            return
        try:
            knots = tuple(float(knot) for knot in self.knots)  # type: ignore[union-attr]
        except (TypeError, ValueError) as error:
            why = f"BSplines: knots must be a number of knots, or numbers; got {self.knots!r}."
            raise ParameterError(why) from error
        _check_knots(np.array(knots), ParameterError, "BSplines: ")
        object.__setattr__(self, "knots", knots)

    def place(self, x: Array) -> Array:
        """Return the knots for a column of the fit."""
        if not isinstance(self.knots, int):
            return np.array(self.knots)
        low = float(x.min())
        high = float(x.max())
        if low == high:
            low = low - 0.5 * max(1.0, abs(low))
            high = high + 0.5 * max(1.0, abs(high))
        return np.linspace(low, high, self.knots)

    def evaluate(self, x: Array, knots: Array) -> Array:
        """Return the splines (n, K + k − 1) at the points of a column."""
        k = self.degree
        outside = (x < knots[0]) | (x > knots[-1])
        if self.extrapolation == "error" and outside.any():
            raise DataError(
                f"BasisExpansion: {x[outside][0]:g} lies outside the knots, {knots[0]:g} to {knots[-1]:g}; set "
                "extrapolation='constant' or 'continue', or give wider knots."
            )
        if self.extrapolation != "continue":
            x = np.clip(x, knots[0], knots[-1])
        # Outside, the knots go on with the distance of the last two, as in scikit-learn's SplineTransformer.
        left = knots[0] - (knots[1] - knots[0]) * np.arange(k, 0, -1)
        right = knots[-1] + (knots[-1] - knots[-2]) * np.arange(1, k + 1)
        t = np.concatenate([left, knots, right])
        n_out = len(knots) + k - 1
        if n_out > _MANY_SPLINES:
            return np.asarray(BSpline.design_matrix(x, t, k, extrapolate=True).toarray())
        return np.asarray(BSpline(t, np.eye(n_out), k, extrapolate=True)(x))

    def _check_loaded(self) -> None:
        BSplines(self.knots, self.degree, self.extrapolation)


def _check_knots(knots: Array, error: type[Exception], owner: str) -> None:
    if knots.ndim != 1 or not 2 <= len(knots) <= _MOST_KNOTS:
        raise error(f"{owner}there must be 2 to {_MOST_KNOTS} knots; got {knots.size}.")
    if not (np.isfinite(knots).all() and (np.diff(knots) > 0).all() and np.isfinite(np.diff(knots)).all()):
        raise error(f"{owner}knots must be finite and increasing; got {knots.tolist()[:10]}.")


class _Term(NamedTuple):
    """One function of one column, or of the whole row."""

    function: Any  #: callable, name or BSplines
    column: int | None


class BasisExpansion(TransformerMixin, Declared):
    """Any functions of the features, as features.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable import BasisExpansion
    >>> X = np.array([[0.0, 1.0], [np.pi / 2, 2.0]])
    >>> basis = BasisExpansion([("sin", 0), ("square", 1), lambda X: X[:, 0] * X[:, 1]]).fit(X)
    >>> basis.transform(X).round(3)
    array([[0.   , 1.   , 0.   ],
           [1.   , 4.   , 3.142]])
    >>> basis.get_feature_names_out().tolist()
    ['sin(x0)', 'square(x1)', 'f2']
    """

    _theory = "features"

    functions: Sequence[Any] = param(
        Matches(lambda value: isinstance(value, (list, tuple)) and len(value) > 0, "a list of functions or pairs"),
        "Each entry is a function φ or a pair (φ, column), with the column's number or name. φ is a name "
        '("identity", "square", "cube", "abs", "sign", "sqrt", "exp", "log", "log1p", '
        '"sin", "cos", "tanh", "reciprocal", "positive"), `BSplines`, or any Python function. A '
        "name or `BSplines` without a column is applied to every column; a Python function without a column "
        "gets the whole array (n, d), with a column that column (n,); it returns (n,) or (n, m).",
        default=("identity",),
        kw_only=False,
    )
    include_bias: bool = param(Boolean(), "Whether the constant 1 is the first column.", default=False)
    names: Any = param(
        optional(
            Matches(
                lambda value: (
                    not isinstance(value, str)
                    and isinstance(value, Sequence | np.ndarray)
                    and all(isinstance(name, str) for name in value)
                ),
                "a list of names",
            )
        ),
        "Names of all features put out.",
        default=None,
    )
    knots_: list[Array] = fitted(
        "list of arrays", "The knots of each column that has splines, in the order of the features."
    )
    widths_: NDArray[np.int64] = fitted("array of int", "How many features each function gives.")
    n_output_features_: int = fitted("int", "How many features are put out.")

    def fit(self, X: Any, y: Any = None) -> Self:
        """Place the knots of splines, and count what the functions give.

        Parameters
        ----------
        X : array or dataframe of shape (n_samples, n_features)
            Rows; the functions are called on them.
        y : ignored
            There for pipelines.

        Returns
        -------
        self
            The fitted transformer.
        """
        check_parameters(type(self).__name__, self.get_params(deep=False), self._parameters)
        table = read_features(self, X, sparse=False, reset=True).astype(np.float64, copy=False)
        terms = self._terms()
        knots = [t.function.place(table[:, t.column]) for t in terms if isinstance(t.function, BSplines)]
        for placed in knots:
            _check_knots(placed, DataError, "BasisExpansion: the values of a column are too close together: ")
        blocks = self._evaluate(table, terms, knots)
        self.knots_ = knots
        self.widths_ = np.array([block.shape[1] for block in blocks], dtype=np.int64)
        n_out = int(self.widths_.sum()) + int(self.include_bias)
        if self.names is not None and len(self.names) != n_out:
            raise ParameterError(
                f"BasisExpansion: names must have one for each of {n_out} features; got {len(self.names)}."
            )
        self.n_output_features_ = n_out
        return self

    def transform(self, X: Any) -> Array:
        """Return the functions of each row.

        Parameters
        ----------
        X : array or dataframe of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        array of shape (n_samples, n_output_features_)
            In the order of `get_feature_names_out`.
        """
        table = read_features(self, X, sparse=False)
        blocks = self._evaluate(table.astype(np.float64, copy=False), self._terms(), self.knots_)
        widths = [block.shape[1] for block in blocks]
        if widths != self.widths_.tolist():
            raise DataError(
                f"BasisExpansion: the functions gave {widths} features, but {self.widths_.tolist()} in the fit; they "
                "must always give as many."
            )
        return np.column_stack([np.ones((len(table), int(self.include_bias))), *blocks])

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Return the names of the features put out, such as "sin(x0)".

        Parameters
        ----------
        input_features : list of str, optional
            Names of the columns; by default those of the fit, or x0, x1, …

        Returns
        -------
        array of str objects
            One name per feature.
        """
        check_is_fitted(self)
        columns = _check_feature_names_in(self, input_features)
        if self.names is not None:
            return np.array(list(self.names), dtype=object)
        found = ["1"] if self.include_bias else []
        for number, (term, width) in enumerate(zip(self._terms(), self.widths_.tolist(), strict=True)):
            column = None if term.column is None else columns[term.column]
            if isinstance(term.function, BSplines):
                found += [f"{column}_sp_{k}" for k in range(width)]
                continue
            word = _word(term.function, number)
            name = str(column) if word == "identity" else f"{word}({column})"
            name = word if column is None else name
            found += [name] if width == 1 else [f"{name}_{k}" for k in range(width)]
        return np.array(found, dtype=object)

    def _terms(self) -> list[_Term]:
        """Return each function with its column, named functions and splines once for every column."""
        terms = []
        for entry in self.functions:
            pair = isinstance(entry, (tuple, list))
            if pair and len(entry) != 2:
                raise ParameterError(f"BasisExpansion: an entry must be a function or a pair; got {entry!r}.")
            function = entry[0] if pair else entry
            if isinstance(function, str) and function not in FUNCTIONS:
                known = ", ".join(FUNCTIONS)
                raise ParameterError(f"BasisExpansion: there is no function {function!r}; known are {known}.")
            if not (isinstance(function, (str, BSplines)) or callable(function)):
                raise ParameterError(
                    f"BasisExpansion: a function must be a name, BSplines or a Python function; got {function!r}."
                )
            if pair:
                terms.append(_Term(function, self._column(entry[1])))
            elif isinstance(function, (str, BSplines)):
                terms += [_Term(function, column) for column in range(self.n_features_in_)]
            else:
                terms.append(_Term(function, None))
        return terms

    def _column(self, column: Any) -> int:
        if isinstance(column, str):
            names = list(getattr(self, "feature_names_in_", []))
            if column not in names:
                raise DataError(f"BasisExpansion: there is no column {column!r}; the columns are {names or 'unnamed'}.")
            return names.index(column)
        if isinstance(column, bool) or not isinstance(column, (int, np.integer)):
            raise ParameterError(f"BasisExpansion: a column is a number or a name; got {column!r}.")
        if not 0 <= column < self.n_features_in_:
            raise DataError(f"BasisExpansion: there is no column {column}; X has {self.n_features_in_}.")
        return int(column)

    def _evaluate(self, table: Array, terms: list[_Term], knots: list[Array]) -> list[Array]:
        """Return the features of each term as (n, m) arrays."""
        waiting = iter(knots)
        blocks = []
        for number, (function, column) in enumerate(terms):
            x = table if column is None else table[:, column]
            if isinstance(function, BSplines):
                blocks.append(function.evaluate(x, next(waiting)))
                continue
            call = FUNCTIONS[function] if isinstance(function, str) else function
            with np.errstate(all="ignore"):
                found = np.asarray(call(x))
            word = _word(function, number)
            if found.dtype.kind not in "biuf" or found.ndim not in (1, 2) or len(found) != len(table):
                raise DataError(
                    f"BasisExpansion: {word} must return numbers of shape ({len(table)},) or ({len(table)}, m); got "
                    f"{found.dtype} of shape {found.shape}."
                )
            found = found.astype(np.float64).reshape(len(table), -1)
            if not np.isfinite(found).all():
                row = int(np.argmax(~np.isfinite(found).all(axis=1)))
                at = f"at {x[row]:g}, " if column is not None else ""
                raise DataError(
                    f"BasisExpansion: {word} is not finite {at}in row {row}; use a function that is defined there."
                )
            blocks.append(found)
        return blocks

    @property
    def _n_features_out(self) -> int:
        return self.n_output_features_

    def _check_loaded(self) -> None:
        if not all(hasattr(self, name) for name in ("knots_", "widths_", "n_output_features_", "n_features_in_")):
            raise ModelFileError("load: BasisExpansion: a fitted one has knots_, widths_ and n_output_features_.")
        self._check_widths()  # first: what follows takes time and memory in proportion to them
        try:
            terms = self._terms()
        except (DataError, ParameterError) as error:
            raise ModelFileError(f"load: {error}") from error
        splines = [term for term in terms if isinstance(term.function, BSplines)]
        if not isinstance(self.knots_, list) or len(self.knots_) != len(splines):
            raise ModelFileError("load: BasisExpansion: knots_ does not fit the splines of functions.")
        for knots in self.knots_:
            if not isinstance(knots, np.ndarray) or knots.dtype != np.float64:
                raise ModelFileError("load: BasisExpansion: knots_ must be arrays of numbers.")
            _check_knots(knots, ModelFileError, "load: BasisExpansion: ")

    def _check_widths(self) -> None:
        """Raise unless `widths_`, an array of the file, has one entry for each function of each column."""
        columns = self.n_features_in_
        functions = self.functions
        widths = self.widths_
        sound = isinstance(columns, int) and columns >= 1 and isinstance(functions, (list, tuple))
        sound = sound and isinstance(widths, np.ndarray) and widths.dtype == np.int64 and widths.ndim == 1
        if sound:
            spread = sum(isinstance(entry, (str, BSplines)) for entry in functions)  # these stand for every column
            number = spread * columns + len(functions) - spread
            total = sum(widths.tolist()) + int(self.include_bias is True)
            sound = len(widths) == number and bool((widths >= 1).all()) and total == self.n_output_features_
        if not sound:
            raise ModelFileError("load: BasisExpansion: widths_ does not fit functions and n_output_features_.")


def _word(function: Any, number: int) -> str:
    """Return a function's name; one without a name is called by its place."""
    if isinstance(function, str):
        return function
    name = getattr(function, "__name__", "<object>")
    return name if name.isidentifier() else f"f{number}"
