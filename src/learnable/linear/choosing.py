"""What the models that choose a penalty by cross-validation share: folds, scorers, and metadata on their way to both.

With `sklearn.set_config(enable_metadata_routing=True)` whatever else `fit` is given, groups of the rows for example,
goes to the splitter and the scorer that ask for it, as in scikit-learn. Splitters number the rows as they were given;
rows without weight are then left out of the folds.
"""

from __future__ import annotations

import inspect
import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing

from ..core import DataError, Estimator, ParameterError, Run
from ..data.door import Table
from ..data.sources import named_columns
from ..meta.binary import is_routing, of_rows

Rows = NDArray[np.intp]

_FOLDS_SHARE = 0.8  # of max_seconds; the rest is for the fit to all rows


class Fold(NamedTuple):
    """One split, without the rows that have no weight."""

    train: Rows  #: positions in the table
    test: Rows  #: positions in the table
    given: Rows  #: the test rows as they were numbered in `fit`


class Metadata(NamedTuple):
    """What `fit` was given for splitters and scorers."""

    splitter: dict[str, Any]
    scorer: dict[str, Any]
    n_given: int
    kept: Rows  #: the rows given that have weight

    def of_all(self) -> dict[str, Any]:
        """Return what the scorer gets with all rows that have weight."""
        return of_rows(self.scorer, self.n_given, self.kept)

    def of(self, fold: Fold) -> dict[str, Any]:
        """Return what the scorer gets with the test rows of a fold."""
        return of_rows(self.scorer, self.n_given, fold.given)


class ChoosingModel(Estimator):
    """A model whose `fit` passes metadata on to a splitter, and perhaps to a scorer."""

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, **params: Any) -> Self:
        """Choose the penalty, and fit the model.

        Parameters
        ----------
        X : array, sparse array, dataframe or list of shape (n_samples, n_features)
            Training data.
        y : array of shape (n_samples,) or (n_samples, n_targets), or str
            Targets; with a dataframe, the name of a column.
        sample_weight : array of shape (n_samples,) or str, optional
            Non-negative weights of the rows; with a dataframe, the name of a column. A row of weight zero is left out.
        **params : dict
            Passed on to the splitter and the scorer that ask for them; scikit-learn's metadata routing must be enabled.

        Returns
        -------
        self
            The fitted estimator. If the fit fails or is interrupted, the estimator stays as it was.
        """
        if params and not is_routing():
            raise ParameterError(
                f"{type(self).__name__}: passing {sorted(params)} to fit is only supported if "
                "enable_metadata_routing=True, which can be set by sklearn.set_config(enable_metadata_routing=True)."
            )
        self._params = params
        try:
            return super().fit(X, y, sample_weight)
        finally:
            del self._params

    def get_metadata_routing(self) -> MetadataRouter:
        """Return what scikit-learn's metadata routing passes on to the splitter and the scorer."""
        from sklearn.model_selection import check_cv

        router = MetadataRouter(owner=self).add_self_request(self)
        router.add(splitter=check_cv(self.cv), method_mapping=MethodMapping().add(caller="fit", callee="split"))
        scorer = self._get_scorer()
        if scorer is not None:
            mapping = MethodMapping().add(caller="fit", callee="score")
            if self._scores_by_scorer:
                mapping.add(caller="score", callee="score")
            router.add(scorer=scorer, method_mapping=mapping)
        return router

    #: Whether `score` uses the scorer of the fit, too.
    _scores_by_scorer = False
    cv: Any = None

    def _get_scorer(self) -> Any:
        """Return the scorer that judges predictions on the folds; None where that is always the squared error."""
        return None

    def _metadata(self, table: Table) -> Metadata:
        """Return the metadata of this fit; without routing the scorer gets the weights."""
        n_given = table.n_rows if table.kept is None else len(table.kept)
        weight = table.weight
        if weight is not None and table.kept is not None:
            whole = np.zeros(n_given)
            whole[table.kept] = weight
            weight = whole
        weights = {} if weight is None else {"sample_weight": weight}
        kept = np.arange(n_given) if table.kept is None else np.flatnonzero(table.kept)
        if not is_routing():
            return Metadata({}, weights, n_given, kept)
        routed = process_routing(self, "fit", **weights, **getattr(self, "_params", {}))
        scorer = dict(routed.scorer.score) if self._get_scorer() is not None else {}
        return Metadata(dict(routed.splitter.split), scorer, n_given, kept)

    def _folds(self, table: Table, run: Run, metadata: Metadata, labels: Any = None) -> list[Fold]:
        """Return the folds of the rows that have weight, stratified by `labels` if there are any."""
        owner = type(self).__name__
        try:
            folds = list(_folds_of(self.cv, table, run, metadata, labels))
        except (TypeError, ValueError, IndexError) as error:
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise ParameterError(f"{owner}: cv={self.cv!r} does not work here: {reason}") from error
        if not folds or any(len(fold.train) < 1 or len(fold.test) < 1 for fold in folds):
            raise DataError(f"{owner}: cv={self.cv!r} leaves a fold without rows; use fewer folds.")
        return folds


def _folds_of(cv: Any, table: Table, run: Run, metadata: Metadata, labels: Any) -> Any:
    from sklearn.model_selection import check_cv

    n = metadata.n_given
    y = table.y if labels is None else labels
    X = table.X
    if table.kept is not None:
        if isinstance(run.data[1], str):
            _, y, _ = named_columns("fit", *run.data)
        else:
            y = np.asarray(run.data[1])
        X = np.zeros((n, 1))
    position = np.arange(n) if table.kept is None else np.where(table.kept, np.cumsum(table.kept) - 1, -1)
    for train, test in check_cv(cv, y, classifier=labels is not None).split(X, y, **metadata.splitter):
        train, test = (np.arange(n)[part] for part in (train, test))
        train, test = (part[position[part] >= 0] for part in (train, test))
        yield Fold(position[train], position[test], test)


def plain_splits(cv: Any, table: Table) -> list[tuple[Rows, Rows]]:
    """Return the folds as positions in the table, where nothing is routed."""
    n_given = table.n_rows if table.kept is None else len(table.kept)
    kept = np.arange(n_given) if table.kept is None else np.flatnonzero(table.kept)
    y = np.zeros(n_given)
    metadata = Metadata({}, {}, n_given, kept)
    return [(fold.train, fold.test) for fold in _folds_of(cv, table, Run(data=(None, y, None)), metadata, None)]


def bounds_of_folds(owner: str, cv: Any, n_rows: int) -> NDArray[np.int64]:
    """Return the first row of each fold and the number of rows: `KFold` without shuffling, over rows with weight.

    Examples
    --------
    >>> bounds_of_folds("LassoCV", 3, 10).tolist()
    [0, 4, 7, 10]
    """
    n_folds = 5 if cv is None else cv
    if type(cv).__name__ == "KFold" and not cv.shuffle:
        n_folds = cv.n_splits
    if not isinstance(n_folds, (int, np.integer)) or n_folds < 2:
        raise ParameterError(
            f"{owner}: with files and Dask, cv must be a number of folds from 2 on, or KFold without shuffling; got "
            f"{cv!r}. Read the table, and pass a dataframe, for other folds."
        )
    if n_folds > n_rows:
        raise DataError(f"{owner}: cv={cv!r} asks for more folds than there are rows, {n_rows}; use fewer.")
    heights = np.full(n_folds, n_rows // n_folds)
    heights[: n_rows % n_folds] += 1
    return np.r_[0, np.cumsum(heights)]


def accepted(scorer: Any, metadata: dict[str, Any]) -> dict[str, Any]:
    """Return the metadata that a scorer takes: scikit-learn's take weights, a plain function may not."""
    if "sample_weight" in metadata and inspect.isfunction(scorer):
        parameters = inspect.signature(scorer).parameters
        wild = any(one.kind is inspect.Parameter.VAR_KEYWORD for one in parameters.values())
        if "sample_weight" not in parameters and not wild:
            return {name: value for name, value in metadata.items() if name != "sample_weight"}
    return metadata


class Shares:
    """Gives every fold its share of the time, so that all paths come equally far and the last fit has some left."""

    def __init__(self, run: Run, max_seconds: float | None, n_tasks: int, n_threads: int) -> None:
        self._run = run
        self._n_tasks = n_tasks
        self._n_threads = n_threads
        self._end = None if max_seconds is None else time.perf_counter() + _FOLDS_SHARE * max_seconds
        self._lock = threading.Lock()

    def begin(self) -> Callable[[], bool]:
        """Return what tells whether the time of the fold that begins now is over."""
        run = self._run
        if self._end is None:
            return lambda: run.out_of_time
        with self._lock:
            rounds = -(-self._n_tasks // self._n_threads)
            self._n_tasks -= 1
        now = time.perf_counter()
        end = now + max(0.0, self._end - now) / max(1, rounds)
        return lambda: run.out_of_time or time.perf_counter() > end
