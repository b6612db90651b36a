"""Permutation importance: how much of a score is lost when a column, or a group of columns, is shuffled.

The rows should be ones that the model has not seen: on training rows a column that was only overfitted looks important.
Columns that say the same thing share their importance; shuffle them together, as a group, to see what they say.

Where the metric is a mean over rows, the interval is Student's over rows and counts both that the rows are a sample and
that shuffling is random; for other metrics it counts the shuffling only, over repeats, and is too short for new rows.

References: L. Breiman, Random forests, Machine Learning 45, 2001; A. Fisher, C. Rudin and F. Dominici, JMLR 20, 2019.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import scipy.sparse as sp

from ...core import RANDOM_STATE, Array, DataError, NDArray, Number, ParameterError, check_parameters
from ...data.door import is_frame
from ...data.frames import listed, open_frame
from ...data.rows import RowTable, read_rows
from ...meta.folds import scorer_of
from ...meta.splits import as_generator
from .evaluate import pooled_score
from .intervals import LEVEL, Interval, t_interval
from .losses import Remembered, RowLoss, responses_of, row_loss


@dataclass(frozen=True)
class Importances:
    """Losses of score by shuffling, in the order of the columns.

    Attributes
    ----------
    names : list of str
        Of the columns, or of the groups of columns.
    mean : array of shape (n_groups,)
        Mean loss of score; around zero for a column that does not matter.
    low, high : arrays of shape (n_groups,)
        Confidence interval.
    values : array of shape (n_groups, n_repeats)
        Every loss of score.
    baseline : float
        The score without shuffling.
    metric : str
        Name of the score.
    method : str
        What the interval counts: "t over rows" or "t over repeats".
    level : float
        Confidence level.
    """

    names: list[str]
    mean: Array
    low: Array
    high: Array
    values: Array
    baseline: float
    metric: str
    method: str
    level: float

    @property
    def order(self) -> NDArray[np.int64]:
        """Positions, the most important first."""
        return np.argsort(-self.mean, kind="stable")

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON types, the most important first."""
        rows = [
            {
                "name": self.names[i],
                "value": float(self.mean[i]),
                "low": _plain(self.low[i]),
                "high": _plain(self.high[i]),
            }
            for i in self.order
        ]
        return {"metric": self.metric, "baseline": self.baseline, "level": self.level, "importances": rows}


def permutation_importance(
    model: Any,
    X: Any,
    y: Any,
    *,
    scoring: Any = None,
    n_repeats: int = 10,
    groups: Mapping[str, Sequence[Any]] | None = None,
    sample_weight: Any = None,
    level: float = 0.95,
    random_state: Any = 0,
) -> Importances:
    """Measure how much a fitted model's score falls when columns are shuffled.

    Parameters
    ----------
    model : estimator
        Fitted; any estimator of scikit-learn's kind, pipelines included.
    X : array, sparse array or dataframe of shape (n_rows, n_columns)
        Rows that the model has not seen.
    y : array of shape (n_rows,) or str
        Their targets.
    scoring : str, callable or None
        The metric, as in `evaluate`.
    n_repeats : int
        How often each column is shuffled.
    groups : mapping of a name to columns, optional
        Columns (names or positions) to shuffle together; by default each column alone.
    sample_weight : array of shape (n_rows,) or str, optional
        Weights of the rows in the score.
    level : float
        Confidence level.
    random_state : int, Generator, RandomState or None
        Where the shuffling comes from.

    Returns
    -------
    Importances
        One number and its interval for each column or group.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable import LinearRegression
    >>> from learnable.evaluation import permutation_importance
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 3))
    >>> y = 2 * X[:, 0] + X[:, 1] + rng.normal(size=400)
    >>> model = LinearRegression().fit(X[:200], y[:200])
    >>> found = permutation_importance(model, X[200:], y[200:])
    >>> [found.names[i] for i in found.order]
    ['x0', 'x1', 'x2']
    >>> bool(found.low[1] > 0), bool(found.low[2] > 0)
    (True, False)
    """
    owner = "permutation_importance"
    rules = {"n_repeats": Number(low=1, integer=True), "level": LEVEL, "random_state": RANDOM_STATE}
    check_parameters(owner, {"n_repeats": n_repeats, "level": level, "random_state": random_state}, rules)
    table = read_rows(owner, X, y, sample_weight)
    if table.y is None:
        raise DataError(f"{owner}: needs targets to score with; y is None.")
    if table.n_rows < 2:
        raise DataError(f"{owner}: needs at least 2 rows to shuffle; got {table.n_rows}.")
    scorer, metric = scorer_of(owner, model, scoring)
    names, columns = _columns(owner, model, table.X, groups)
    loss = row_loss(metric, table.y)
    if loss is not None and not hasattr(model, loss.response):
        loss = None
    generators = as_generator(random_state).spawn(n_repeats)
    orders = [rng.permutation(table.n_rows) for rng in generators]  # the same for every column: comparable
    share = np.full(table.n_rows, 1.0 / table.n_rows) if table.weight is None else table.weight / table.weight.sum()
    before, baseline = _judge(owner, model, table.X, table, scorer, loss)
    values = np.empty((len(names), n_repeats))
    intervals = []
    for position, group in enumerate(columns):
        taken = np.zeros(table.n_rows)
        given = np.zeros(table.n_rows)
        for repeat, order in enumerate(orders):
            losses, score = _judge(owner, model, shuffle_columns(table.X, group, order), table, scorer, loss)
            values[position, repeat] = baseline - score
            part = share * losses / n_repeats
            taken += part
            given[order] += part
        mean = float(values[position].mean())
        intervals.append(
            t_interval(values[position], level)
            if loss is None
            else _row_interval(loss, share * before, taken, given, table, share, mean, level)
        )
    low, high = (np.array([interval[end] for interval in intervals], dtype=np.float64) for end in (0, 1))
    method = "t over rows" if loss is not None else "t over repeats"
    return Importances(names, values.mean(axis=1), low, high, values, baseline, metric, method, level)


def shuffle_columns(X: Any, columns: Sequence[Any], order: NDArray[np.int64]) -> Any:
    """Return a copy of X in which some columns hold the values of the rows in another order.

    Examples
    --------
    >>> import numpy as np
    >>> shuffle_columns(np.array([[1, 2], [3, 4]]), [1], np.array([1, 0]))
    array([[1, 4],
           [3, 2]])
    """
    if is_frame(X):
        frame = nw.from_native(X, eager_only=True)
        moved = [frame.get_column(name) for name in columns]
        return frame.with_columns(*(_reordered(column, order) for column in moved)).to_native()
    if sp.issparse(X):
        moved = sp.csc_array(X, copy=True)
        where = np.empty_like(order)
        where[order] = np.arange(len(order))  # row i goes to where the order takes it
        for column in columns:
            part = slice(moved.indptr[column], moved.indptr[column + 1])
            moved.indices[part] = where[moved.indices[part]]
        moved.has_sorted_indices = False
        return moved.tocsr()
    copy = np.array(X)
    copy[:, list(columns)] = copy[order][:, list(columns)]
    return copy


def _reordered(column: nw.Series[Any], order: NDArray[np.int64]) -> nw.Series[Any]:
    """Return the values in another order, under the old index of a pandas column."""
    moved = column[order]
    return (
        nw.maybe_set_index(moved, index=nw.maybe_get_index(column)) if nw.maybe_get_index(column) is not None else moved
    )


def _columns(owner: str, model: Any, X: Any, groups: Mapping[str, Sequence[Any]] | None) -> tuple[list[str], list[Any]]:
    """Return the names and the columns (names in a frame, positions otherwise) of what is shuffled together."""
    if is_frame(X):
        every: list[Any] = list(open_frame(owner, X).columns)
        named = {name: name for name in every}
    else:
        if len(X.shape) != 2:
            raise DataError(f"{owner}: X must have rows and columns; got shape {X.shape}.")
        every = list(range(X.shape[1]))
        labels = getattr(model, "feature_names_in_", None)
        names = labels if labels is not None and len(labels) == len(every) else [f"x{j}" for j in every]
        named = dict(zip(map(str, names), every, strict=True))
    if groups is None:
        return list(named), [[column] for column in named.values()]
    found = []
    for name, members in groups.items():
        members = [members] if isinstance(members, (str, int, np.integer)) else list(members)
        group = [named.get(member, member) if isinstance(member, str) else _at(every, member) for member in members]
        if not group or any(member not in every for member in group):
            raise ParameterError(
                f"{owner}: group {name!r} must name columns of X ({listed(list(named))}); got {members!r}."
            )
        found.append(group)
    return [str(name) for name in groups], found


def _at(every: list[Any], position: Any) -> Any:
    return every[position] if isinstance(position, (int, np.integer)) and 0 <= position < len(every) else None


def _judge(owner: str, model: Any, X: Any, table: RowTable, scorer: Any, loss: RowLoss | None) -> tuple[Array, float]:
    """Return the loss of every row (zeros if there is none) and the score."""
    y = np.asarray(table.y)
    if loss is not None:
        response = np.asarray(getattr(model, loss.response)(X))
        losses = loss.loss(y, response, getattr(model, "classes_", None))
        return losses, loss.score_of(loss.mean(losses, table.weight), y, table.weight)
    if type(scorer).__module__.startswith("sklearn.") and hasattr(model, "predict"):
        stand_in = Remembered(model, responses_of(model, X), getattr(model, "classes_", None))
        return np.zeros(len(y)), pooled_score(owner, scorer, stand_in, y, table.weight)
    extra = {} if table.weight is None else {"sample_weight": table.weight}
    return np.zeros(len(y)), float(scorer(model, X, y, **extra))


def _row_interval(
    loss: RowLoss,
    before: Array,
    taken: Array,
    given: Array,
    table: RowTable,
    share: Array,
    mean: float,
    level: float,
) -> Interval:
    """Return Student's interval of the fall in score, to first order in the mean losses before and after.

    After shuffling, a row counts twice: for the loss that it has with another row's values (`taken`), and for the one
    that another row has with its values (`given`). All losses come times the rows' shares.
    """
    y = np.asarray(table.y)
    n = table.n_rows
    moved = np.zeros(n)
    for parts, sign in ((before, 1.0), (taken, -1.0), (given, -1.0)):
        whole = float(parts.sum())
        step = 1e-4 * max(whole, float(np.finfo(np.float64).tiny))
        above, below = (loss.score_of(whole + d, y, table.weight) for d in (step, -step))
        moved += sign * (above - below) / (2.0 * step) * n * (parts - share * whole)
    return t_interval(mean + moved, level)


def _plain(number: float) -> float | None:
    return float(number) if np.isfinite(number) else None
