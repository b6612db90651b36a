"""What the parameters of boosted models mean for a table: signs, sets of columns, rows held out, categories."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from copy import copy
from numbers import Integral
from typing import Any, Final, NamedTuple

import narwhals.stable.v2 as nw
import numpy as np
import scipy.sparse as sp
from sklearn.utils.class_weight import compute_sample_weight

from ...core import Array, DataError, Matches, NDArray, Number, Options, ParameterError, optional, resolve_n_jobs
from ...data.any_order import ALONE, World, mean
from ...data.arrays import as_array
from ...data.door import Table, door, is_dask, is_dask_frame, is_external, is_frame, take_named_columns
from ...data.frames import open_frame, read_series
from ...data.sources import open_files, read_files
from ...trees.file_layout import require
from ...trees.histogram.walker import CodeWalker
from ...trees.layout import Trees
from .driver import Rounds, mean_loss
from .losses import BoostingLoss

Rows = NDArray[np.int64]

SHARE: Final = Number(low=0.0, high=1.0, low_open=True)
COLUMNS: Final = optional(
    Matches(
        lambda value: hasattr(value, "__len__") and not isinstance(value, str), "an array of columns or truth values"
    )
    | Options("from_dtype")
)
SIGNS: Final = optional(Matches(lambda value: hasattr(value, "__len__") and not isinstance(value, str), "an array"))
CUSTOM_LOSS: Final = Matches(
    lambda value: not isinstance(value, (str, type)) and hasattr(value, "value") and hasattr(value, "gradient"),
    "an object with value(y, z) and gradient(y, z)",
)
CLASS_WEIGHT: Final = optional(Options("balanced") | Matches(lambda v: isinstance(v, dict), "a dict of weights"))


#: Σh that a leaf needs for the log loss, for each of `min_samples_leaf` rows, in units of the mean weight. The default
#: of 20 rows needs 0.25, h of one row at even odds. On 50 generated tables with ten rows of the rare class, needs of
#: 1e-3, 0.1, 0.25, 0.5 and 1 had a median log loss of 0.94, 0.66, 0.59, 0.55 and 0.52 times LightGBM's, the worst 1.52,
#: 1.19, 1.02, 0.92 and 1.11; on spambase 0.5 and 1 were 1 % worse than 0.25.
EACH_ROW = 0.25 / 20
_LEAST = 1e-3  # scikit-learn's, whatever the loss


def least_hessian(model: Any, w: Array | None, world: World = ALONE) -> float:
    """Return Σh that a leaf needs; that of the log loss has no unit, so that its least is known."""
    if model.min_hessian is not None:
        return float(model.min_hessian)
    if isinstance(model.loss, str) and model.loss == "log_loss":
        return EACH_ROW * model.min_samples_leaf * (1.0 if w is None else mean(w, None, world))
    return _LEAST


def class_factors(owner: str, class_weight: Any, classes: Any, totals: list[float]) -> Array:
    """Return the factor on the weight of each class: given, or such that all classes weigh the same."""
    if isinstance(class_weight, str):
        weight = np.array(totals)
        return np.asarray(weight.sum() / (len(weight) * weight))
    try:
        factor = np.asarray(compute_sample_weight(class_weight, np.asarray(classes, dtype=object)), np.float64)
    except (ValueError, TypeError) as error:
        raise ParameterError(f"{owner}: class_weight: {error}") from error
    if (factor < 0).any() or not np.isfinite(factor).all() or not factor.any():
        raise ParameterError(f"{owner}: class_weight must hold weights >= 0, not all zero; got {class_weight!r}.")
    return factor


def monotone_signs(owner: str, given: Any, n_columns: int, names: Any, n_outputs: int) -> NDArray[np.int8] | None:
    """Return 1, −1 or 0 for each column; None without constraints."""
    if given is None:
        return None
    if isinstance(given, dict):
        known = [] if names is None else list(names)
        strange = [name for name in given if name not in known]
        if strange:
            shown = [*sorted(strange)[:5], *(["..."] if len(strange) > 5 else [])]
            raise ParameterError(f"{owner}: monotonic_cst contains {len(strange)} unexpected feature names: {shown!r}.")
        signs = np.array([given.get(name, 0) for name in known])
    else:
        signs = np.asarray(given)
    if signs.shape != (n_columns,):
        raise ParameterError(
            f"{owner}: monotonic_cst has shape {signs.shape} but the input data X has {n_columns} features; give one "
            "sign for each."
        )
    if not np.isin(signs, (-1, 0, 1)).all():
        raise ParameterError(
            f"{owner}: monotonic_cst must be an array-like of -1, 0 or 1. Observed values: "
            f"{np.unique(signs).tolist()!r}."
        )
    if not signs.any():
        return None
    if n_outputs > 1:
        raise ParameterError(
            f"{owner}: monotonic constraints are not supported for multiclass classification, nor for several "
            "quantiles: they are for one score."
        )
    return signs.astype(np.int8)


def interaction_sets(owner: str, given: Any, n_columns: int) -> list[list[int]] | None:
    """Return the sets of columns that may meet on a path; those in no set form one of their own."""
    if given is None:
        return None
    if isinstance(given, str):
        sets = [{j} for j in range(n_columns)]
        if given == "pairwise":
            sets = [set(pair) for pair in itertools.combinations(range(n_columns), 2)] or sets
    else:
        try:
            sets = [set(group) for group in given]
        except TypeError as error:
            raise ParameterError(
                f"{owner}: Interaction constraints must be a sequence of tuples or lists, got: {given!r}."
            ) from error
    for group in sets:
        if not all(isinstance(j, (Integral, np.integer)) and 0 <= j < n_columns for j in group):
            raise ParameterError(
                f"{owner}: Interaction constraints must consist of integer indices in [0, n_features - 1] = "
                f"[0, {n_columns - 1}], specifying the position of features, got invalid indices: {group!r}."
            )
    rest = set(range(n_columns)).difference(*sets) if sets else set(range(n_columns))
    return [sorted(int(j) for j in group) for group in (*sets, rest) if group]


def hold_out(owner: str, y: NDArray[Any], classes: bool, fraction: Any, seed: int) -> tuple[Rows, Rows]:
    """Return the rows to fit on and the rows held out, the latter with the same shares of the classes."""
    from sklearn.model_selection import train_test_split

    try:
        fit, held = train_test_split(
            np.arange(len(y)),
            test_size=fraction,
            stratify=y.astype(np.float64) if classes else None,
            random_state=seed % 2**32,
        )
    except ValueError as error:
        raise DataError(f"{owner}: no rows can be held out for early stopping: {error}") from error
    if classes and len(np.unique(y[fit])) < len(np.unique(y)):
        raise DataError(
            f"{owner}: The training data after the early stopping split lacks a class: all its rows are held out. Pass "
            "X_val and y_val instead."
        )
    return np.sort(fit), np.sort(held)


# --------------------------------------------------------------------------------------------------------------------
# When rounds end early: scores of rows held out, or of the training rows, after every round.


class Stopping(NamedTuple):
    """When rounds end early."""

    fraction: Any  #: rows held out; None: judged on the training rows
    patience: int
    tol: float
    scoring: Any = "loss"


class Part(NamedTuple):
    """Some rows, ready for the loop."""

    X: Any  #: the features, or their codes (`streams.Encoded`)
    y: NDArray[Any]  #: as the door gives it: numbers or class codes
    w: Array | None
    empty: Any = np.empty  #: gives the memory of what there is per row


class Watch:
    """Scores of rows held out, or of the training rows, after every round; says when no more are needed."""

    def __init__(
        self,
        model: Any,
        loss: BoostingLoss,
        part: Part,
        y: Array,
        held: Part | None,
        stopping: Stopping,
        rounds: Rounds,
        old: Any,
        world: World = ALONE,
    ) -> None:
        self.world = world
        self.model, self.loss, self.part, self.y, self.held, self.rule = model, loss, part, y, held, stopping
        self.threads = resolve_n_jobs(model.n_jobs)
        self.first = len(rounds.steps)
        kept = old is not None and len(getattr(old, "train_score_", ())) > self.first
        self.train_scores = old.train_score_[: self.first + 1].tolist() if kept else []
        self.scores = old.validation_score_[: self.first + 1].tolist() if kept else []
        self.y_held = np.empty(0) if held is None else loss.targets.truth(held.y)
        self.walker = CodeWalker(held.X.binned) if held is not None and hasattr(held.X, "binned") else None
        if held is not None:
            self.F = (old if old is not None else model)._raw_start(held.X)
            if old is not None:
                self.F = old._raw_of(held.X)
        if not kept:
            self._note(rounds)

    def __call__(self, rounds: Rounds, trees: list[Trees]) -> bool:
        """Look at one more round; return whether it is enough."""
        if self.held is not None:
            for k, tree in enumerate(trees):
                if self.walker is not None:
                    self.walker.add(tree, self.F[k])
                else:
                    self.F[k] += tree.sum(self.held.X, self.threads)[:, 0]
        self._note(rounds)
        scores = self.decisive()
        if len(scores) <= self.rule.patience:
            return False
        before = scores[-self.rule.patience - 1] + self.rule.tol
        return not any(score > before for score in scores[-self.rule.patience :])

    def best_round(self, n_rounds: int) -> int:
        """Return the round with the best score on the rows held out, at least one; else all rounds."""
        if self.held is None or not self.scores:
            return n_rounds
        return max(1, int(np.argmax(self.scores)))

    def decisive(self) -> list[float]:
        """Return the scores that early stopping goes by: of the rows held out, or else of the training rows."""
        return self.train_scores if self.held is None else self.scores

    def _note(self, rounds: Rounds) -> None:
        if isinstance(self.rule.scoring, str) and self.rule.scoring == "loss":
            if not rounds.losses:
                rounds.losses.append(mean_loss(self.loss, self.y, rounds.F, self.part.w, self.world))
            self.train_scores.append(-rounds.losses[-1])
            if self.held is not None:
                self.scores.append(-mean_loss(self.loss, self.y_held, self.F, self.held.w, self.world))
            return
        self.train_scores.append(self._scored(self.part, rounds.F))
        if self.held is not None:
            self.scores.append(self._scored(self.held, self.F))

    def _scored(self, part: Part, F: Array) -> float:
        """Return what the scorer says of scores that are known already."""
        from sklearn.metrics import check_scoring

        twin = copy(self.model)
        twin._scores = F
        twin.__dict__.pop("feature_names_in_", None)  # the rows below are placeholders
        scorer = check_scoring(twin, self.rule.scoring)
        y = twin.classes_[part.y] if twin._classes else part.y
        kwargs = {} if part.w is None else {"sample_weight": part.w}
        return float(scorer(twin, np.zeros((F.shape[1], twin.n_features_in_)), y, **kwargs))


def take_rows(part: Part, rows: NDArray[np.int64]) -> Part:
    """Return some of the rows."""
    return Part(part.X[rows], part.y[rows], None if part.w is None else part.w[rows])


# --------------------------------------------------------------------------------------------------------------------
# Columns of categories become codes 0, 1, … when data come in: at the fit, and the same way at every prediction.
#
# Values may be numbers or strings. The levels are the distinct values of the fit, sorted; what is missing, negative
# or was never seen has the code NaN and takes a split's branch of missing values.


def boosting_door(target: Any) -> Callable[..., Table]:
    """Return a door that turns categories into codes first."""
    doors = {infinite: door(target=target, sparse=True, missing=True, infinite=infinite) for infinite in (False, True)}

    def read(estimator: Any, X: Any, y: Any = None, sample_weight: Any = None, run: Any = None) -> Table:
        owner = type(estimator).__name__
        inner = doors[estimator._infinite]
        if is_external(X):
            from .external_levels import find_categories, use_levels  # here, because these need the levels below

            files = None if is_dask(X) else open_files(owner, X)
            if files is None or not files.is_small():
                table = inner(estimator, X if files is None else files, y, sample_weight, run)
                mask = find_categories(owner, estimator.categorical_features, table.blocks, _types_of(X, files))
                estimator.is_categorical_ = mask
                estimator.levels_ = None if mask is None else use_levels(owner, table.blocks, mask)
                return table
            X = read_files(owner, files)
        X, y, sample_weight = take_named_columns(owner, X, y, sample_weight)
        mask = categorical_columns(owner, estimator.categorical_features, X)
        estimator.is_categorical_ = mask
        estimator.levels_ = None if mask is None else find_levels(owner, X, mask)
        if mask is not None:
            X = encode(owner, X, mask, estimator.levels_)
        return inner(estimator, X, y, sample_weight, run)

    return read


def _types_of(X: Any, files: Any) -> dict[str, Any] | None:
    """Return the types of the columns of a Dask frame or of files."""
    if files is not None:
        return {name: files.schema.field(name).type for name in files.columns}
    return dict(X.dtypes) if is_dask_frame(X) else None


def categorical_columns(owner: str, given: Any, X: Any) -> NDArray[np.bool_] | None:
    """Return which columns of a table hold categories; None if there are none."""
    frame = open_frame(owner, X) if is_frame(X) else None
    names = None if frame is None else list(frame.columns)
    if given is None or (isinstance(given, str) and frame is None):
        return None
    shape = X.shape if hasattr(X, "shape") else as_array(owner, X, "X").shape
    if len(shape) != 2:  # the door says what is wrong
        return None
    n_columns = int(shape[1])
    if isinstance(given, str):
        types = [] if frame is None else frame.schema.values()
        found = np.array([dtype in (nw.Categorical, nw.Enum) for dtype in types], dtype=bool)
        return found if found.any() else None
    return marked_columns(owner, given, n_columns, names)


def marked_columns(owner: str, given: Any, n_columns: int, names: list[str] | None) -> NDArray[np.bool_] | None:
    """Return the mask that numbers, names or truth values of columns stand for; None if they mark none."""
    marked = _marked(owner, given, n_columns, names)
    return marked if marked.any() else None


def _marked(owner: str, given: Any, n_columns: int, names: list[str] | None) -> NDArray[np.bool_]:
    """Return the mask that numbers, names or truth values of columns stand for."""
    marked, array = np.zeros(n_columns, dtype=bool), np.asarray(given)

    def wrong(rule: str) -> ParameterError:
        return ParameterError(f"{owner}: {rule}. Got {given!r}.")

    if not array.size:
        return marked
    kinds = sorted({type(item).__name__ for item in array.tolist()}) if array.dtype == object else [array.dtype.name]
    if array.dtype.kind not in "OUbiu" or (array.dtype == object and not set(kinds) <= {"bool", "int", "str"}):
        raise ParameterError(
            f"{owner}: categorical_features must be an array-like of bool, int or str, got: {', '.join(kinds)}."
        )
    if array.dtype.kind == "b":
        if array.shape != (n_columns,):
            raise wrong(f"categorical_features set as a boolean mask must have shape (n_features,) = ({n_columns},)")
        return array.copy()
    if array.dtype.kind in "iu":
        if array.max() >= n_columns or array.min() < 0:
            raise wrong(
                f"categorical_features set as integer indices must be in [0, n_features - 1], 0 to {n_columns - 1}"
            )
        marked[array] = True
        return marked
    if names is None:
        raise wrong(
            "categorical_features should be passed as an array of integers or as a boolean mask when the model is "
            "fitted on data without feature names"
        )
    for name in array.tolist():
        if name not in names:
            raise wrong(
                f"categorical_features has an item value {name!r} which is not a valid feature name of the training "
                f"data. Observed feature names: {names!r}"
            )
        marked[names.index(name)] = True
    return marked


def find_levels(owner: str, X: Any, mask: NDArray[np.bool_]) -> list[NDArray[Any]]:
    """Return the sorted levels of each column of categories; empty where the codes are to be used as they are."""
    return [
        np.zeros(0) if sp.issparse(X) else column_levels(_column(owner, X, j)) for j in np.flatnonzero(mask).tolist()
    ]


def encode(owner: str, X: Any, mask: NDArray[np.bool_], levels: list[NDArray[Any]]) -> Any:
    """Return X with codes in place of categories: a frame of numbers, or an array."""
    if sp.issparse(X):
        return X
    columns = np.flatnonzero(mask).tolist()
    if is_frame(X):
        frame = open_frame(owner, X)
        if len(frame.columns) != len(mask):
            return X  # the door says what is wrong
        series = [
            nw.new_series(frame.columns[j], _codes(_column(owner, X, j), own), nw.Float64, backend=frame.implementation)
            for j, own in zip(columns, levels, strict=True)
        ]
        return frame.with_columns(*series).to_native()
    array = as_array(owner, X, "X")
    if array.ndim != 2 or array.shape[1] != len(mask):
        return X
    codes = [_codes(array[:, j], own) for j, own in zip(columns, levels, strict=True)]
    if array.dtype.kind == "f" and all(
        np.array_equal(array[:, j], own, equal_nan=True) for j, own in zip(columns, codes, strict=True)
    ):
        return array
    out = array.astype(object if array.dtype == object else np.float64)
    for j, own in zip(columns, codes, strict=True):
        out[:, j] = own
    return out if out.dtype != object else out.astype(np.float64)


def check_levels(mask: Any, levels: Any, n_features: int) -> None:
    """Raise ModelFileError unless a loaded model's categories fit its columns."""
    if mask is None and levels is None:
        return
    sound = isinstance(mask, np.ndarray) and mask.dtype == bool and mask.shape == (n_features,)
    sound = sound and isinstance(levels, list) and len(levels) == int(mask.sum())
    sound = sound and all(isinstance(own, np.ndarray) and own.ndim == 1 for own in levels)
    require(sound, "the levels of the categories do not fit the columns")


def _column(owner: str, X: Any, j: int) -> NDArray[Any]:
    if is_frame(X):
        frame = open_frame(owner, X)
        return read_series(frame.get_column(frame.columns[j]))
    return np.asarray(as_array(owner, X, "X")[:, j])


def column_levels(values: NDArray[Any]) -> NDArray[Any]:
    """Return the distinct values of a column that are not missing, sorted."""
    known = values[~_missing(values)]
    if known.dtype != object:
        return np.unique(known)
    try:
        numbers = known.astype(np.float64)
    except (TypeError, ValueError):
        if not all(isinstance(value, str) for value in known.tolist()):
            raise DataError("a column of categories must hold numbers or strings, not both.") from None
        return np.unique(known.astype(str))
    return np.unique(numbers[numbers >= 0])


def _codes(values: NDArray[Any], levels: NDArray[Any]) -> Array:
    """Return the position of each value among the levels; NaN where it is not among them."""
    out = np.full(len(values), np.nan)
    known = np.flatnonzero(~_missing(values))
    if not len(known) or not len(levels):
        return out
    try:
        own = values[known].astype(levels.dtype if levels.dtype.kind == "U" else np.float64)
    except (TypeError, ValueError):
        return out
    if levels.dtype.kind == "U":
        own = values[known].astype(str)  # a longer string must not be cut to the length of a level
    at = np.minimum(np.searchsorted(levels, own), len(levels) - 1)
    found = levels[at] == own
    out[known[found]] = at[found]
    return out


def _missing(values: NDArray[Any]) -> NDArray[np.bool_]:
    if values.dtype.kind == "f":
        return np.isnan(values) | (values < 0)
    if values.dtype.kind == "i":
        return values < 0
    if values.dtype == object:
        return np.array([value is None or value != value for value in values.tolist()], dtype=bool)
    return np.zeros(len(values), dtype=bool)
