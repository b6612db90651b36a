r"""Which columns? For any estimator, one column in or out at a time, by cross-validation.

    forward:   S ← S ∪ argmax_j CV(S ∪ {j}),        backward:   S ← S \ argmax_j CV(S \ {j}),

where CV is the mean score of a copy of the estimator over the folds. Every step is the best of its candidates, which
`verify` confirms by taking the steps again; the result need not be the best subset.

Reference: F. Ferri, P. Pudil, M. Hatef and J. Kittler, Comparative study of techniques for large-scale feature
selection, Machine Intelligence and Pattern Recognition 16, 1994.
"""

from __future__ import annotations

import warnings
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing

from ..core import MAX_SECONDS, N_JOBS, Certificate, Number, Options, ParameterError, Run, fitted, optional, param
from ..data.blocks import map_reduce
from .binary import is_routing, of_rows
from .selectors import COUNT, CV, SCORING, TOLERANCE, ColumnSelector, Given, Mask, Split, refuse_endless_scores


class SequentialFeatureSelector(ColumnSelector):
    """Add, or remove, one column at a time: the one with the best cross-validated score.

    Every step fits the estimator to every fold for every candidate, on `n_jobs` threads; folds are drawn once, so that
    all candidates are compared on the same rows. With `max_seconds` the columns chosen so far are kept, and a warning
    says so. Progress comes through `set_callbacks`: one task per step, with its score. Memory: a copy of the
    candidates' columns per thread.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable import Ridge, SequentialFeatureSelector
    >>> X = np.random.default_rng(0).normal(size=(60, 6))
    >>> y = X[:, 1] - 2 * X[:, 4] + 0.1 * np.cos(np.arange(60))
    >>> model = SequentialFeatureSelector(Ridge(), n_features_to_select=2).fit(X, y)
    >>> model.get_support(indices=True).tolist(), model.order_.tolist()
    ([1, 4], [4, 1])
    """

    _theory = "forward-stepwise"

    n_features_to_select: Any = param(
        Options("auto") | COUNT,
        'Columns to keep, or their share; "auto" is half of them, or with `tol` as many as it takes.',
        default="auto",
    )
    tol: float | None = param(
        optional(Number()), 'Least gain of the score of a step, with "auto"; may be negative backward.', default=None
    )
    direction: str = param(Options("forward", "backward"), "Whether columns come in or go out.", default="forward")
    scoring: Any = param(SCORING, "How predictions are scored; None is the estimator's own score.", default=None)
    cv: Any = param(CV, "Folds.", default=5)
    n_jobs: int | None = param(N_JOBS, "Threads; None is one. The result does not depend on it.", default=None)
    max_seconds: float | None = param(MAX_SECONDS, "Time after which the steps end.", default=None)
    n_features_to_select_: int = fitted("int", "Columns that were chosen.")
    order_: Any = fitted(
        "(n_steps,)", "Columns in the order in which they came in, or went out.", kind="iu", low=0, below="n_features"
    )
    scores_: Any = fitted("(n_steps,)", "The cross-validated score after each step.")

    _needs_y: ClassVar[bool] = False
    _reads_finite: ClassVar[bool] = True
    _remedy = "raise max_seconds"

    def _fit(self, table: Given, run: Run) -> Certificate:
        from sklearn.model_selection import check_cv

        n_steps = self._steps(table.n_columns)
        fits, splitter, scores = self._metadata()
        cv = check_cv(self.cv, table.y, classifier=is_classifier(self.estimator))
        splits = list(cv.split(table.X, table.y, **splitter))
        trial = Trial(self.estimator, self._get_scorer(), table, splits, fits, scores)
        forward = self.direction == "forward"
        by_gain = self.tol is not None and self.n_features_to_select == "auto"
        moved = np.zeros(table.n_columns, dtype=bool)
        order: list[int] = []
        path: list[float] = []
        last = -np.inf
        whole = True
        for step in range(n_steps):
            free = np.flatnonzero(~moved)
            masks = [_with(moved, j) if forward else ~_with(moved, j) for j in free.tolist()]
            found = self._scores_of(masks, trial, run)
            whole = not run.should_stop()
            if not whole and order:
                self._warn_of_time(len(order), n_steps)
                break
            best = int(np.argmax(found))
            if by_gain and found[best] - last < float(self.tol or 0.0):
                break
            last = found[best]
            moved[free[best]] = True
            order.append(int(free[best]))
            path.append(float(last))
            if run.progress(step + 1, float(last)) and step + 1 < n_steps:
                self._warn_of_time(step + 1, n_steps)
                break
        self.support_ = moved if forward else ~moved
        self.n_features_to_select_ = int(self.support_.sum())
        self.order_ = np.array(order, dtype=np.int64)
        self.scores_ = np.array(path)
        if not whole and len(order) == 1:  # the only step did not see all candidates: nothing is known of it
            return Certificate("greedy", np.inf, TOLERANCE, None, 1)
        return Certificate("greedy", 0.0, TOLERANCE, None, max(1, len(order)), by_construction=True)

    def _scores_of(self, masks: list[Any], trial: Trial, run: Run) -> list[float]:
        """Return the score of every candidate; minus infinity of those that there was no time for, but the first."""

        def score(number: int) -> list[float]:
            late = number > 0 and run.should_stop()
            if late:
                return [-np.inf]
            found = trial.score(masks[number])
            refuse_endless_scores("SequentialFeatureSelector", found)
            return [found]

        return map_reduce(range(len(masks)), score, lambda a, b: a + b, n_jobs=self.n_jobs or 1)

    def _warn_of_time(self, step: int, n_steps: int) -> None:
        warnings.warn(
            f"{type(self).__name__}: max_seconds={self.max_seconds} ended after {step} of {n_steps} steps; the columns "
            "chosen so far are kept. Raise max_seconds.",
            ConvergenceWarning,
            stacklevel=7,
        )

    def _steps(self, p: int) -> int:
        """Return how many steps it takes at most."""
        wanted = self.n_features_to_select
        if wanted == "auto":
            count = p - 1 if self.tol is not None else p // 2
        elif isinstance(wanted, (int, np.integer)):
            if wanted >= p:
                raise ParameterError(
                    f"{type(self).__name__}: n_features_to_select must be < n_features. It is {wanted}, X has {p}."
                )
            count = int(wanted)
        else:
            count = int(p * wanted)
        if self.tol is not None and self.tol < 0 and self.direction == "forward":
            raise ParameterError(
                f"{type(self).__name__}: tol must be strictly positive when doing forward selection; got {self.tol}."
            )
        return count if wanted == "auto" or self.direction == "forward" else p - count

    def _passed_on(self, params: dict[str, Any]) -> list[str]:
        return []

    def _metadata(self) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
        """Return what goes to the estimator's fit, to the splitter and to the scorer."""
        if not is_routing():
            return {}, {}, {}
        routed = process_routing(self, "fit", **self._params)
        return dict(routed.estimator.fit), dict(routed.splitter.split), dict(routed.scorer.score)

    def _get_scorer(self) -> Any:
        from sklearn.metrics import check_scoring

        return check_scoring(self.estimator, self.scoring)

    def get_metadata_routing(self) -> MetadataRouter:
        """Return what scikit-learn's metadata routing passes on."""
        from sklearn.model_selection import check_cv

        to_fit = MethodMapping().add(caller="fit", callee="fit")
        splitter = check_cv(self.cv, classifier=is_classifier(self.estimator))
        router = MetadataRouter(owner=self).add(estimator=self.estimator, method_mapping=to_fit)
        router.add(splitter=splitter, method_mapping=MethodMapping().add(caller="fit", callee="split"))
        router.add(scorer=self._get_scorer(), method_mapping=MethodMapping().add(caller="fit", callee="score"))
        return router


class Trial(NamedTuple):
    """Scores a copy of an estimator on some columns, over all folds."""

    estimator: Any
    scorer: Any
    table: Given
    splits: list[Split]
    fit_params: dict[str, Any]
    score_params: dict[str, Any]

    def score(self, mask: Mask) -> float:
        """Return the mean score over the folds."""
        total = 0.0
        columns = np.flatnonzero(mask)
        X = self.table.X[:, columns]
        n = self.table.n_rows
        for train, test in self.splits:
            model = clone(self.estimator)
            targets = () if self.table.y is None else (self.table.y[train],)
            model.fit(X[train], *targets, **of_rows(self.fit_params, n, train))
            truth = () if self.table.y is None else (self.table.y[test],)
            total += float(self.scorer(model, X[test], *truth, **of_rows(self.score_params, n, test)))
        return total / len(self.splits)


def _with(mask: Mask, column: int) -> Mask:
    found = mask.copy()
    found[column] = True
    return found
