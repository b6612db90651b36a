"""Messy tables to numbers: `TableEncoder`.

| column                        | becomes                                                                         |
|-------------------------------|---------------------------------------------------------------------------------|
| numbers, durations            | themselves, centred and scaled; gaps take the median                            |
| truth values                  | 0 and 1                                                                         |
| text with few values          | one column a value; missing is a value                                          |
| text with many, with a target | the mean target of the value, smoothed and cross-fitted                         |
| text with many, no target     | one column for each frequent value, one for the others                          |
| dates and times               | days since 1970, sine and cosine of the place in the year, the week and the day |
| short codes                   | as text with many values; where it helps, how they begin, too                   |
| free text                     | hashed n-grams of words or characters, reduced to a few columns on demand        |
| constant or empty             | nothing; `columns_` says so                                                     |

Numbers, truth values, dates and free text that were missing somewhere in the fit get a 0/1 column that says where.
All statistics are sums over the rows, or come from rows chosen by their number, so that a table that arrives in pieces
gives the same encoder as in one.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted

from ..core import (
    Boolean,
    DataError,
    Declared,
    Matches,
    ModelFileError,
    Number,
    Options,
    check_parameters,
    fitted,
    optional,
    param,
    tags,
)
from .arrays import kind_of
from .dask_blocks import Reader, run_on_partitions
from .door import is_dask, is_dask_frame, is_frame, match_columns, read_weight, take_named_columns
from .encoder_categories import FOLDS, read_encoder_target, read_rows
from .encoder_fit import EncoderFit
from .encoder_input import Columns, input_names, open_table, read_whole
from .encoder_output import Record, encode, features
from .encoder_read import Type
from .files import Files
from .frames import open_frame, read_series
from .readings import DATES, READINGS
from .sources import labels_of_files, labels_on_dask, open_files


def _are_readings(value: Any) -> bool:
    return isinstance(value, dict) and all(reading in READINGS for reading in value.values())


class TableEncoder(TransformerMixin, Declared):
    """Turn a table of numbers, categories, dates, text and gaps into an array of numbers.

    Named columns are found by name, in any order; further columns are ignored. A value that the fit has not seen is
    never an error: its one-hot columns are zero, its mean target is the overall mean.

    Notes
    -----
    Time O(nd), memory O(d · 2¹⁷) besides the table and the features. `fit_transform(X, y)` differs from
    `fit(X, y).transform(X)` in the mean targets: a row's own fold (its number mod 5) has no part in them.
    scikit-learn's `TargetEncoder` does the same, with folds drawn at random.

    Examples
    --------
    >>> import pandas as pd
    >>> from learnable.data import TableEncoder
    >>> table = pd.DataFrame({"age": [20, None, 40], "colour": ["red", "blue", None]})
    >>> encoder = TableEncoder(scale=False).fit(table)
    >>> encoder.transform(table)
    array([[20.,  0.,  0.,  1.,  0.],
           [30.,  1.,  1.,  0.,  0.],
           [40.,  0.,  0.,  0.,  1.]])
    >>> encoder.get_feature_names_out().tolist()
    ['age', 'age=(missing)', 'colour=blue', 'colour=red', 'colour=(missing)']
    """

    _theory = "encoding"

    scale: bool = param(
        Boolean(),
        "Whether numbers and mean targets get mean zero and variance one over the rows of the fit.",
        default=True,
    )
    fill: str = param(
        Options("median", "mean"),
        "What a missing number becomes. Medians of more than 2¹⁷ rows are taken from every 2ᵏ-th row.",
        default="median",
    )
    max_categories: int = param(Number(low=2, integer=True), "Most one-hot columns of a text column.", default=20)
    text: str = param(
        Options("auto", "words", "characters", "category", "drop"),
        'Free text is hashed by words or by characters, treated as a category, or left out. "auto" takes '
        "words where most values have several. A column is free text when most of its values occur once, or "
        "are long.",
        default="auto",
    )
    n_text_features: int = param(
        Number(low=1, high=2**20, integer=True), "Hashed columns of a free-text column.", default=1024
    )
    n_text_components: int | None = param(
        optional(Number(low=1, high=1024, integer=True)),
        "To how many columns the hashed columns of a free-text column are reduced, by their singular vectors; None for "
        "all of them. `TableModel` reduces to 32 for models that take dense columns only.",
        default=None,
    )
    task: str = param(
        Options("auto", "regression", "classification"),
        'What the target is, for mean targets; "auto" looks at it.',
        default="auto",
    )
    sparse: Any = param(
        Options("auto") | Boolean(),
        'Whether to return a SciPy CSR array; "auto" does so when less than a fifth of the entries would not be zero.',
        default="auto",
    )
    readings: dict[str, str] | None = param(
        optional(Matches(_are_readings, "a dict from names of columns to readings")),
        "Columns of text that hold dates or amounts, and how they are written: a name to one of "
        '"day-month-year", "month-day-year", "year-month-day", "decimal point", "decimal comma" '
        "(`learnable.data.readings`). A value that cannot be read so is missing.",
        default=None,
    )
    columns_: list[dict[str, Any]] = fitted(
        "list of dict",
        'One record for each input column: `name`, `kind` ("number", "boolean", "date", "category", '
        '"text", "constant", "empty"), `missing` and what its encoding needs.',
    )
    sources_: NDArray[np.int64] = fitted(
        "(n_features_out,)", "The position of the input column each output column comes from.", kind="i", low=0
    )
    sparse_: bool = fitted("bool", "Whether `transform` returns a CSR array.")
    _tags = tags(allow_nan=True, categorical=True, string=True)

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn the encoding of each column.

        Parameters
        ----------
        X : dataframe, array, list of rows, path or Dask collection, of shape (n_samples, n_features)
            The table; files and Dask collections are read into memory.
        y : array of shape (n_samples,) or (n_samples, n_targets), or str, optional
            Targets, for mean targets; with a dataframe, the name of a column.
        sample_weight : array of shape (n_samples,) or str, optional
            Non-negative weights of the rows. A row of weight zero is left out.

        Returns
        -------
        self
            The fitted encoder; as it was if the fit fails.
        """
        self._fit(X, y, sample_weight)
        return self

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Fit, and encode the rows of the fit without letting a mean target see its own row.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`.

        Returns
        -------
        array or CSR array of shape (n_samples, n_features_out)
            The features.
        """
        return self._encode(self._fit(X, y, sample_weight), first_row=0)

    def transform(self, X: Any) -> Any:
        """Encode rows.

        Parameters
        ----------
        X : dataframe, array or list of rows, of shape (n_samples, n_features)
            Rows with the columns of the fit.

        Returns
        -------
        array or CSR array of shape (n_samples, n_features_out)
            The features.
        """
        check_is_fitted(self)
        return self._encode(self._open(X), first_row=None)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Return the name of each output column.

        Parameters
        ----------
        input_features : array of str, optional
            Names of the input columns, for arrays, which have none.

        Returns
        -------
        array of str objects
            `column`, `column=value`, `column=(missing)`, `column: mean target` and so on.
        """
        check_is_fitted(self)
        names = input_names(self, input_features)
        records = [record | {"name": name} for record, name in zip(self.columns_, names, strict=True)]
        found = [name for record in records for name in features(record)]
        seen: dict[str, int] = {}
        for place, name in enumerate(found):
            seen[name] = seen.get(name, 0) + 1
            if seen[name] > 1:
                found[place] = f"{name} #{seen[name]}"
        return np.array(found, dtype=object)

    # ---- the fit, in pieces ----

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> Columns:
        owner = type(self).__name__
        X, y, sample_weight = take_named_columns(owner, *read_whole(owner, X, y, sample_weight))
        check_parameters(owner, self.get_params(deep=False), self._parameters)
        table = open_table(owner, X).read_as(self.readings)
        draft = clone(self)._fit_table(table, y, sample_weight)
        match_columns(draft, X, reset=True)
        self.__dict__.pop("feature_names_in_", None)
        self.__dict__.update({name: value for name, value in vars(draft).items() if name.endswith("_")})
        return table

    def _fit_table(self, table: Columns, y: Any, sample_weight: Any) -> Self:
        """Fit on rows that are all there: one piece."""
        schema = table.schema()
        classes = None
        n_targets = 0
        if y is not None:
            y = read_rows(table.owner, y, table.n_rows)
            if any(kind in ("text", "mixed") for _, kind in schema):
                target, classes = read_encoder_target(table.owner, y, self.task)
                n_targets = 0 if target.n_classes else target.values.shape[1]
        read_weight(table.owner, sample_weight, table.n_rows)
        self._begin(schema, classes=classes, n_targets=n_targets)
        self._update_table(table, y, sample_weight)
        return self._finish()

    def _begin(self, schema: Sequence[tuple[Any, Type]], *, classes: Any = None, n_targets: int = 0) -> None:
        """Begin a fit on the rows of a dataframe that come in consecutive pieces.

        Parameters
        ----------
        schema : list of (name, type)
            The columns, as `read_schema` gives them; of a frame that may be empty.
        classes : array, optional
            All labels of a classification target, sorted.
        n_targets : int, default=0
            Columns of a regression target.
        """
        owner = type(self).__name__
        options = self.get_params(deep=False)
        check_parameters(owner, options, self._parameters)
        schema = [(name, self._type_read(name, kind)) for name, kind in schema]
        self._work = EncoderFit(owner, schema, options, classes, n_targets)

    def _type_read(self, name: Any, kind: Type) -> Type:
        """Return the type of a column once its text is read."""
        reading = (self.readings or {}).get(name)
        if reading is None or kind != "text":
            return kind
        return "date" if reading in DATES else "number"

    def _update(self, X: Any, y: Any = None, sample_weight: Any = None) -> None:
        """Take note of the next rows, if there are any."""
        if len(X):
            table = open_table(type(self).__name__, X).read_as(self.readings)
            self._update_table(table.select([name for name, _ in self._work.schema]), y, sample_weight)

    def _update_table(self, table: Columns, y: Any, sample_weight: Any) -> None:
        target = None
        if self._work.has_target:
            task = "regression" if self._work.classes is None else "classification"
            y = read_rows(table.owner, y, table.n_rows)
            target, _ = read_encoder_target(table.owner, y, task, self._work.classes)
        self._work.update(table, target, read_weight(table.owner, sample_weight, table.n_rows, whole=False))

    def _finish(self) -> Self:
        """End the fit that `_begin` began."""
        self.columns_, self.sparse_ = self._work.finish()
        names = [name for name, _ in self._work.schema]
        del self._work
        widths = [len(features(record)) for record in self.columns_]
        self.sources_ = np.repeat(np.arange(len(names)), widths)
        self.n_features_in_ = len(names)
        if all(isinstance(name, str) for name in names):
            self.feature_names_in_ = np.array(names, dtype=object)
        return self

    # ---- the rows ----

    def _encode(self, table: Columns, first_row: int | None) -> Any:
        return encode(table.read_as(self.readings), self.columns_, sparse=self.sparse_, first_row=first_row)

    def _open(self, X: Any) -> Columns:
        """Return the columns of the fit, by name where there are names."""
        owner = type(self).__name__
        (X,) = read_whole(owner, X)
        table = open_table(owner, X)
        names = getattr(self, "feature_names_in_", None)
        if names is not None and is_frame(X) and set(names) <= set(table.names):
            return table.select(names.tolist())
        match_columns(self, X, reset=False)
        return table

    @property
    def _n_features_out(self) -> int:
        return len(self.sources_)

    def _check_loaded(self) -> None:
        check_records(self)


# What must hold of the records of a loaded `TableEncoder`.

_INPUT_OF: Final[dict[str, set[str]]] = {
    "number": {"number", "duration"},
    "boolean": {"boolean"},
    "date": {"date"},
    "category": {"text", "mixed"},
    "text": {"text", "mixed"},
    "constant": {"number", "boolean", "date", "duration", "text", "mixed"},
    "empty": {"number", "boolean", "date", "duration", "text", "mixed", "empty"},
}


def check_records(encoder: Any) -> None:
    """Raise ModelFileError unless the fitted attributes are ones that a fit could have left."""
    try:
        sound = _are_sound(encoder)
    except (AttributeError, KeyError, TypeError, ValueError, IndexError) as error:
        raise ModelFileError(f"load: TableEncoder: columns_ is not what a fit leaves: {error!r}") from error
    if not sound:
        raise ModelFileError("load: TableEncoder: sources_ or sparse_ does not fit columns_.")


def _are_sound(encoder: Any) -> bool:
    records = encoder.columns_
    if type(records) is not list or len(records) != encoder.n_features_in_:
        return False
    for record in records:
        if not _is_sound(record):
            name = record.get("name") if isinstance(record, dict) else None
            raise ModelFileError(f"load: TableEncoder: the record of column {name!r} is not what a fit leaves.")
    widths = [len(features(record)) for record in records]
    sources = np.repeat(np.arange(len(records)), widths)
    return type(encoder.sparse_) is bool and np.array_equal(encoder.sources_, sources)


def _is_sound(record: Record) -> bool:
    kind = record["kind"]
    if type(record["name"]) is not str or type(record["missing"]) is not int or record["input"] not in _INPUT_OF[kind]:
        return False
    if kind in ("number", "boolean", "date"):
        numbers = [record[key] for key in ("fill", "mean", "scale")]
        truths = [record["varies"], record["flag"], *([record["clock"]] if kind == "date" else [])]
        if not isinstance(record.get("zone"), str | None):
            return False
        return _are_finite(numbers) and record["scale"] > 0 and all(type(truth) is bool for truth in truths)
    if kind == "text":
        known = record["analyzer"] in ("words", "characters") and type(record["flag"]) is bool
        sized = type(record["n_features"]) is int and 0 <= record["n_features"] <= 2**20
        return known and sized and _is_sound_reduction(record)
    return _is_sound_category(record) if kind == "category" else True


def _is_sound_reduction(record: Record) -> bool:
    if "reduction" not in record:
        return True
    vectors = record["reduction"]
    if not isinstance(vectors, np.ndarray) or vectors.dtype != np.float64 or vectors.ndim != 2:
        return False
    fits = vectors.shape[0] == record["n_features"] and 0 < vectors.shape[1] <= vectors.shape[0]
    return bool(fits and np.isfinite(vectors).all())


def _is_sound_category(record: Record) -> bool:
    levels = record["levels"]
    if "prefix" in record:
        inside = record["prefix"]
        if record["encoding"] != "target" or "prefix" in inside or inside["kind"] != "category":
            return False
        if not _is_sound_category(inside):
            return False
    if levels.dtype != object or levels.ndim != 1 or not all(type(level) is str for level in levels.tolist()):
        return False
    if record["encoding"] == "target":
        values = record["values"]
        k = record["values"].shape[-1]
        shapes = values.shape == (FOLDS + 1, len(levels) + 2, k) and record["mean"].shape == record["scale"].shape == (
            k,
        )
        labels = type(record["targets"]) is list and len(record["targets"]) == (k if k > 1 else 0)
        return bool(
            shapes
            and labels
            and np.isfinite(values).all()
            and np.isfinite(record["mean"]).all()
            and (record["scale"] > 0).all()
        )
    columns = record["columns"]
    used = np.unique(columns[columns >= 0])
    fits = columns.dtype == np.int64 and columns.shape == (len(levels) + 1,) and record["encoding"] == "onehot"
    return bool(fits and columns.min() >= -1 and np.array_equal(used, np.arange(len(used))))


def _are_finite(numbers: list[Any]) -> bool:
    return all(type(number) is float and np.isfinite(number) for number in numbers)


# --------------------------------------------------------------------------------------------------------------------
# Messy tables beyond memory: a `TableEncoder` fitted piece by piece, and its features as a source of blocks.
#
# The encoder's statistics are sums over the rows, so that the pieces give the encoder of the whole table; the
# features are computed anew in every sweep, where the rows are.


def encode_external(
    owner: str, encoder: TableEncoder, X: Any, y: Any, sample_weight: Any, *, classes: bool
) -> tuple[TableEncoder, Any, Any, Any]:
    """Fit a clone of `encoder` on files or a Dask frame, and return it with the features, y and the weights.

    Parameters
    ----------
    owner : str
        For messages.
    encoder : TableEncoder
        Not changed.
    X : path, Files or Dask dataframe
        The table.
    y, sample_weight : str
        Names of columns.
    classes : bool
        Whether the target is a class.

    Returns
    -------
    encoder, X, y, sample_weight
        The fitted encoder, and what a model of this library is fitted on.
    """
    for name, value in (("y", y), ("sample_weight", sample_weight)):
        if not isinstance(value, str) and value is not None:
            raise DataError(f"{owner}: with files and Dask, {name} must name a column; got {kind_of(value)}.")
    if is_dask(X):
        return _encode_dask(owner, encoder, X, y, sample_weight, classes)  # type: ignore[no-any-return]
    files = open_files(owner, X)
    labels = labels_of_files(owner, files, y, sample_weight)[0] if classes else None
    names = [name for name in files.columns if name not in (y, sample_weight)]
    fitted = clone(encoder)
    import pyarrow as pa

    for number, batch in enumerate(files.batches(labels=y if classes else None)):
        _update(fitted, pa.Table.from_batches([batch.rows]), names, y, sample_weight, labels, first=number == 0)
    fitted._finish()
    return fitted, files.encoded(partial(_encode, fitted), names, len(fitted.sources_)), y, sample_weight


def encoded_by(encoder: TableEncoder, files: Files) -> Files:
    """Return encoded files with the features of another fitted encoder of the same columns."""
    return files.encoded(partial(_encode, encoder), files.features or files.columns, len(encoder.sources_))


def _encode(encoder: TableEncoder, frame: Any, first_row: int) -> Any:
    """Return the features of rows of the fit, cross-fitted by their numbers."""
    return encoder._encode(open_table(type(encoder).__name__, frame), first_row=first_row)


def _update(
    encoder: TableEncoder, frame: Any, names: list[str], y: Any, weight: Any, labels: NDArray[Any] | None, first: bool
) -> None:
    opened = open_frame(type(encoder).__name__, frame)
    features = opened.select(names).to_native()
    if first:
        schema = open_table(type(encoder).__name__, features).schema()
        encoder._begin(schema, classes=labels, n_targets=0 if labels is not None or y is None else 1)
    columns = (None if name is None else read_series(opened.get_column(name)) for name in (y, weight))
    encoder._update(features, *columns)


def _encode_dask(owner: str, encoder: TableEncoder, X: Any, y: Any, weight: Any, classes: bool) -> Any:
    import dask
    import dask.array as da

    if not is_dask_frame(X):
        raise DataError(f"{owner}: a Dask table must be a dataframe; got {kind_of(X)}.")
    names = [name for name in X.columns if name not in (y, weight)]
    fitted = clone(encoder)
    parts = X.to_delayed()
    heights: list[int] = []
    pack = dask.delayed(_with_nothing, pure=False)
    labels = labels_on_dask(Reader(owner, names, y, weight), [pack(part) for part in parts])[0] if classes else None
    for frame in run_on_partitions(owner, _as_it_is, parts):
        _update(fitted, frame, names, y, weight, labels, first=not heights)
        heights.append(len(frame))
    fitted._finish()
    starts = np.cumsum([0, *heights]).tolist()
    encode = dask.delayed(_encode_part, pure=False)
    width = len(fitted.sources_)
    arrays = [
        da.from_delayed(encode(fitted, part, names, start), shape=(height, width), dtype=np.float64)
        for part, start, height in zip(parts, starts, heights, strict=False)
        if height
    ]
    column = [None if name is None else X[name].to_dask_array(lengths=heights) for name in (y, weight)]
    return fitted, da.concatenate(arrays), *column


def _encode_part(encoder: TableEncoder, frame: Any, names: list[str], first_row: int) -> NDArray[np.float64]:
    X = _encode(encoder, open_frame(type(encoder).__name__, frame).select(names).to_native(), first_row)
    return np.ascontiguousarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)


def _with_nothing(frame: Any) -> tuple[Any, None, None]:
    return frame, None, None


def _as_it_is(part: Any, number: int) -> Any:
    return part
