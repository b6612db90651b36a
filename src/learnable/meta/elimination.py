r"""Which columns? For any estimator: fit, drop the least important columns, fit again.

    S ← S \ {the columns with the least importance of a fit on S},

where the importance of a column is its squared coefficient, summed over several scores, or the estimator's own. Every
step is the best of its candidates, which `verify` confirms by taking the steps again; the result need not be the best
subset.

Reference: I. Guyon, J. Weston, S. Barnhill and V. Vapnik, Gene selection for cancer classification using support vector
machines, Machine Learning 46, 2002.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from copy import deepcopy
from operator import attrgetter
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier
from sklearn.utils import get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from ..core import N_JOBS, Boolean, Certificate, Matches, Number, Run, fitted, law, laws, optional, param
from ..data.blocks import map_reduce
from .binary import is_routing, of_rows
from .selectors import COUNT, CV, SCORING, TOLERANCE, Array, ColumnSelector, Given, Mask, Split, refuse_endless_scores

Method = TypeVar("Method", bound=Callable[..., Any])

_IMPORTANCE = Matches(lambda v: isinstance(v, str) or callable(v), "the name of an attribute, or a function")
_STEP = Number(low=0.0, low_open=True, high=1.0, high_open=True) | Number(low=1, integer=True)


def _if_estimator_has(name: str) -> Callable[[Method], Method]:
    """Return the decorator of a method that is there if the estimator has it."""

    def check(self: Any) -> bool:
        getattr(self.estimator_ if hasattr(self, "estimator_") else self.estimator, name)
        return True

    return cast(Callable[[Method], Method], available_if(check))


class Elimination(NamedTuple):
    """What one elimination gave, step by step: the columns before each of its fits."""

    support: Mask
    ranking: NDArray[np.int64]
    counts: list[int]
    supports: list[Mask]
    rankings: list[NDArray[np.int64]]
    scores: list[float]


class RFE(ColumnSelector):
    """Recursive feature elimination: fit, drop the columns with the least importance, fit again.

    The importance of a column is its squared coefficient, summed over several scores, or `feature_importances_`.
    ⌈(p − k)/step⌉ + 1 fits. Progress comes through `set_callbacks`: one task per fit.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable import RFE, Ridge
    >>> X = np.random.default_rng(0).normal(size=(60, 6))
    >>> model = RFE(Ridge(), n_features_to_select=2).fit(X, X[:, 1] - 2 * X[:, 4])
    >>> model.get_support(indices=True).tolist(), model.ranking_.tolist()
    ([1, 4], [4, 1, 3, 5, 1, 2])
    """

    _theory = "backward-stepwise"

    n_features_to_select: Any = param(
        optional(COUNT), "Columns to keep, or their share; None is half of them.", default=None
    )
    step: float = param(_STEP, "Columns that go at once, or their share of all.", default=1)
    verbose: int = param(Boolean() | Number(low=0, integer=True), "Kept for compatibility.", default=0)
    importance_getter: Any = param(
        _IMPORTANCE,
        '"auto", the name of an attribute such as "named_steps.clf.coef_", or a function of the fitted estimator.',
        default="auto",
    )
    ranking_: Any = fitted("(n_features,)", "1 for the chosen columns, more the earlier they went.", kind="iu", low=1)
    n_features_: int = fitted("int", "Columns that were chosen.")
    estimator_: Any = fitted("estimator", "Fitted to the chosen columns.")

    def _fit(self, table: Given, run: Run) -> Certificate:
        fits = self._params
        if is_routing():
            fits = dict(process_routing(self, "fit", **self._params).estimator.fit)
        wanted = self._wanted(table.n_columns)
        found = self._eliminate(table, wanted, fits, progress=run.progress)
        self._keep(table, found, fits)
        return Certificate("greedy", 0.0, TOLERANCE, None, max(1, len(found.counts)), by_construction=True)

    def _wanted(self, p: int) -> int:
        wanted = self.n_features_to_select
        if wanted is None:
            return p // 2
        if not isinstance(wanted, (int, np.integer)):
            return int(p * wanted)
        if wanted > p:
            warnings.warn(
                f"Found n_features_to_select={wanted} > n_features={p}. There will be no feature selection and all "
                "features will be kept.",
                UserWarning,
                stacklevel=6,
            )
        return int(wanted)

    def _eliminate(
        self,
        table: Given,
        wanted: int,
        fits: dict[str, Any],
        judge: Callable[[Any, Any], float] | None = None,
        progress: Callable[[int, float], bool] | None = None,
    ) -> Elimination:
        """Drop columns until `wanted` are left; `judge` scores the fit before each drop, and the last one."""
        p = table.n_columns
        step = int(max(1, self.step * p)) if 0.0 < self.step < 1.0 else int(self.step)
        support = np.ones(p, dtype=bool)
        ranking = np.ones(p, dtype=np.int64)
        found = Elimination(support, ranking, [], [], [], [])
        while support.sum() > wanted or judge is not None:
            columns = np.flatnonzero(support)
            model = clone(self.estimator).fit(table.X[:, columns], table.y, **fits)
            found.counts.append(len(columns))
            found.supports.append(support.copy())
            found.rankings.append(ranking.copy())
            if judge is not None:
                found.scores.append(judge(model, columns))
            if progress is not None:
                progress(len(found.counts), float(len(columns) - wanted))
            if support.sum() <= wanted:
                break
            importance = importances(model, self.importance_getter, len(columns))
            worst = np.argsort(importance, kind="stable")[: min(step, len(columns) - wanted)]
            support[columns[worst]] = False
            ranking[~support] += 1
        return found

    def _keep(self, table: Given, found: Elimination, fits: dict[str, Any]) -> None:
        self.support_ = found.support
        self.ranking_ = found.ranking
        self.n_features_ = int(found.support.sum())
        self.estimator_ = clone(self.estimator).fit(table.X[:, np.flatnonzero(found.support)], table.y, **fits)

    @property
    def classes_(self) -> Any:
        """The labels of a classifier."""
        return self.estimator_.classes_

    @_if_estimator_has("predict")
    def predict(self, X: Any, **params: Any) -> Any:
        """Return the estimator's predictions from the chosen columns."""
        check_is_fitted(self)
        return self.estimator_.predict(self.transform(X), **self._routed_to("predict", params))

    @_if_estimator_has("score")
    def score(self, X: Any, y: Any, **params: Any) -> float:
        """Return the estimator's score on the chosen columns."""
        check_is_fitted(self)
        extra = self._routed_to("score", params) if is_routing() else params
        return float(self.estimator_.score(self.transform(X), y, **extra))

    @_if_estimator_has("decision_function")
    def decision_function(self, X: Any) -> Any:
        """Return the estimator's decision function on the chosen columns."""
        check_is_fitted(self)
        return self.estimator_.decision_function(self.transform(X))

    @_if_estimator_has("predict_proba")
    def predict_proba(self, X: Any) -> Any:
        """Return the estimator's probabilities from the chosen columns."""
        check_is_fitted(self)
        return self.estimator_.predict_proba(self.transform(X))

    @_if_estimator_has("predict_log_proba")
    def predict_log_proba(self, X: Any) -> Any:
        """Return the estimator's log-probabilities from the chosen columns."""
        check_is_fitted(self)
        return self.estimator_.predict_log_proba(self.transform(X))

    def _routed_to(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        check_is_fitted(self)
        if not is_routing():
            if params:
                raise ValueError(
                    f"Passing extra keyword arguments to {type(self).__name__}.{method} is only supported if "
                    "enable_metadata_routing=True, which you can set using `sklearn.set_config`."
                )
            return {}
        return dict(process_routing(self, method, **params).estimator[method])

    def get_metadata_routing(self) -> MetadataRouter:
        """Return what scikit-learn's metadata routing passes on."""
        mapping = MethodMapping()
        for method in ("fit", "predict", "score"):
            mapping.add(caller=method, callee=method)
        return MetadataRouter(owner=self).add(estimator=self.estimator, method_mapping=mapping)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.estimator_type = inner.estimator_type
        tags.classifier_tags = deepcopy(inner.classifier_tags)
        tags.regressor_tags = deepcopy(inner.regressor_tags)
        if tags.classifier_tags is not None:
            tags.classifier_tags.poor_score = True
        if tags.regressor_tags is not None:
            tags.regressor_tags.poor_score = True
        tags.target_tags.required = True
        tags.target_tags.multi_output = inner.target_tags.multi_output
        return tags

    _laws = laws(
        law(
            "{owner}: estimator_ must be of the class of estimator",
            lambda model: type(model.estimator_) is type(model.estimator),
            "estimator_",
        ),
        law(
            "{owner}: estimator_ must have the chosen columns",
            lambda model: model.estimator_.n_features_in_ == int(np.sum(model.support_)),
            "estimator_",
        ),
    )


class RFECV(RFE):
    """Recursive feature elimination whose number of columns has the best cross-validated score.

    One elimination per fold, on `n_jobs` threads, and one on all rows; ties go to fewer columns.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable import RFECV, Ridge
    >>> X = np.random.default_rng(0).normal(size=(60, 6))
    >>> model = RFECV(Ridge()).fit(X, X[:, 1] - 2 * X[:, 4] + np.cos(np.arange(60)))
    >>> model.get_support(indices=True).tolist(), model.cv_results_["n_features"].tolist()
    ([1, 4], [1, 2, 3, 4, 5, 6])
    """

    _theory = "backward-stepwise"

    n_features_to_select = None
    min_features_to_select: int = param(Number(low=1, integer=True), "Least number of columns.", default=1)
    cv: Any = param(CV, "Folds; None is 5.", default=None)
    scoring: Any = param(SCORING, "How predictions are scored; None is the accuracy or R².", default=None)
    n_jobs: int | None = param(N_JOBS, "Threads; None is one. The result does not depend on it.", default=None)
    cv_results_: Any = fitted(
        "dict of arrays",
        "`n_features`, rising, with `mean_test_score`, `std_test_score` and of every fold i `split{i}_test_score`, "
        "`split{i}_support` and `split{i}_ranking`.",
    )

    def _fit(self, table: Given, run: Run) -> Certificate:
        from sklearn.model_selection import check_cv

        p = table.n_columns
        if self.min_features_to_select > p:
            warnings.warn(
                f"Found min_features_to_select={self.min_features_to_select} > n_features={p}. There will be no "
                "feature selection and all features will be kept.",
                UserWarning,
                stacklevel=5,
            )
        fits, splitter, scores = self._metadata()
        cv = check_cv(self.cv, table.y, classifier=is_classifier(self.estimator))
        splits = list(cv.split(table.X, table.y, **splitter))
        scorer = self._get_scorer()
        least = min(self.min_features_to_select, p)
        n = table.n_rows

        def follow(split: Split) -> list[Elimination]:
            train, test = split
            part = Given(table.X[train], table.y[train], "")
            extra = of_rows(scores, n, test)

            def judge(model: Any, columns: Any) -> float:
                return float(scorer(model, table.X[test][:, columns], table.y[test], **extra))

            return [self._eliminate(part, least, of_rows(fits, n, train), judge)]

        found = map_reduce(splits, follow, lambda a, b: a + b, n_jobs=self.n_jobs or 1)
        table_of_scores = np.array([one.scores for one in found])[:, ::-1]
        refuse_endless_scores("RFECV", table_of_scores)
        counts = np.array(found[0].counts[::-1])
        wanted = int(counts[np.argmax(table_of_scores.sum(axis=0))])
        whole = self._eliminate(table, wanted, fits, progress=run.progress)
        self._keep(table, whole, fits)
        self.cv_results_ = {
            "mean_test_score": table_of_scores.mean(axis=0),
            "std_test_score": table_of_scores.std(axis=0),
            **{f"split{i}_test_score": row.copy() for i, row in enumerate(table_of_scores)},
            **{f"split{i}_ranking": np.array(one.rankings[::-1]) for i, one in enumerate(found)},
            **{f"split{i}_support": np.array(one.supports[::-1]) for i, one in enumerate(found)},
            "n_features": counts,
        }
        return Certificate("greedy", 0.0, TOLERANCE, None, max(1, len(whole.counts)), by_construction=True)

    def _passed_on(self, params: dict[str, Any]) -> list[str]:
        return ["groups"]

    def _metadata(self) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
        if not is_routing():
            return {}, {"groups": self._params.get("groups")}, {}
        routed = process_routing(self, "fit", **self._params)
        return dict(routed.estimator.fit), dict(routed.splitter.split), dict(routed.scorer.score)

    def _get_scorer(self) -> Any:
        from sklearn.metrics import get_scorer

        if self.scoring is None:
            return get_scorer("accuracy" if is_classifier(self.estimator) else "r2")
        return get_scorer(self.scoring)

    def score(self, X: Any, y: Any, **params: Any) -> float:
        """Return the score of predictions by `scoring`."""
        check_is_fitted(self)
        if params and not is_routing():
            self._routed_to("score", params)
        extra = dict(process_routing(self, "score", **params).scorer.score) if is_routing() else {}
        return float(self._get_scorer()(self, X, y, **extra))

    def get_metadata_routing(self) -> MetadataRouter:
        """Return what scikit-learn's metadata routing passes on."""
        from sklearn.model_selection import check_cv

        to_model = MethodMapping().add(caller="fit", callee="fit").add(caller="predict", callee="predict")
        to_scorer = MethodMapping().add(caller="fit", callee="score").add(caller="score", callee="score")
        router = MetadataRouter(owner=self).add(estimator=self.estimator, method_mapping=to_model)
        router.add(splitter=check_cv(self.cv), method_mapping=MethodMapping().add(caller="fit", callee="split"))
        router.add(scorer=self._get_scorer(), method_mapping=to_scorer)
        return router


def importances(model: Any, getter: Any, p: int) -> Array:
    """Return one number per column: squared coefficients, summed over scores, or what `getter` gives, squared."""
    if callable(getter):
        found = getter(model)
    elif getter == "auto":
        if hasattr(model, "coef_"):
            found = model.coef_
        elif hasattr(model, "feature_importances_"):
            found = model.feature_importances_
        else:
            raise ValueError(
                f"when `importance_getter=='auto'`, the underlying estimator {type(model).__name__} should have "
                "`coef_` or `feature_importances_` attribute. Either pass a fitted estimator to feature selector "
                "or call fit before calling transform."
            )
    else:
        found = attrgetter(getter)(model)
    found = np.asarray(found.toarray() if sp.issparse(found) else found, dtype=np.float64)
    found = found**2 if found.ndim == 1 else (found**2).sum(axis=0)
    if found.shape != (p,):
        raise ValueError(f"importance_getter gave shape {found.shape} for {p} columns; it must give one each.")
    return np.asarray(found)
