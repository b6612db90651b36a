r"""Logistic regression with C, and the share of the L1 penalty, chosen by cross-validation.

    min_{W, b}  C Σᵢ sᵢ ℓ(yᵢ, b + Wxᵢ) + ρ‖W‖₁ + ½(1 − ρ)‖W‖²

for the C and ρ with the best mean score over the folds. Each fold follows one path from the smallest C upwards, every
fit starting from the one before, on a thread of its own. In the form n⁻¹ΣV + λΩ, λ = 1/(nC).

Reference: T. Hastie, R. Tibshirani and J. Friedman, The Elements of Statistical Learning, 2nd ed., section 7.10.
"""

from __future__ import annotations

import inspect
import warnings
import zlib
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.metadata_routing import UNUSED, process_routing

from ...core import (
    Array,
    ArrayLike,
    Boolean,
    Certificate,
    LearnableError,
    Matches,
    NDArray,
    Nothing,
    Number,
    Options,
    ParameterError,
    Run,
    fitted,
    law,
    laws,
    param,
    resolve_n_jobs,
)
from ...data.blocks import Blocks, Part, map_reduce
from ...data.door import Table, class_weights, refuse_extreme_sizes
from ...data.sources import named_columns
from ...meta.binary import is_routing
from ..choosing import ChoosingModel, Fold, Metadata, Shares, accepted
from .regression import SOLVERS, LogisticRegression, StatedPenalty

_INVERSE_STRENGTH = Number(low=1e-100, high=1e100) | Matches(lambda v: v == np.inf, "infinity")
_SHARE = Number(low=0.0, high=1.0)
_GRID = (-4, 4)  # decimal exponents of the ends of a grid of C, scikit-learn's


class FoldPath(NamedTuple):
    """What one fold gave for one ρ."""

    coefs: Array  #: (n_cs, n_scores, d + 1), the intercept last
    reached: NDArray[np.bool_]  #: (n_cs,), whether there was time
    n_iter: NDArray[np.int32]  #: (n_cs,)


class LogisticRegressionCV(ChoosingModel, LogisticRegression):
    r"""Logistic regression that chooses C (and ρ): minimise C Σᵢ sᵢ ℓ(yᵢ, b + Wxᵢ) + ρ‖W‖₁ + ½(1 − ρ)‖W‖².

    In the form n⁻¹ΣV + λΩ, λ = 1/(nC). A class that a fold's training rows lack has probability (almost) zero there.
    Time: that of as many `LogisticRegression` fits as there are folds and C, each started from the last. Memory: the
    training rows of as many folds as there are threads, and all coefficients of all folds, which the model keeps.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable import LogisticRegressionCV
    >>> X = np.random.default_rng(0).normal(size=(60, 3))
    >>> y = np.where(X[:, 0] + 0.5 * np.cos(np.arange(60)) > 0, "yes", "no")
    >>> model = LogisticRegressionCV(Cs=5, l1_ratios=(0,), scoring="neg_log_loss", use_legacy_attributes=False)
    >>> model = model.fit(X, y)
    >>> model.C_, model.scores_.shape, model.coefs_paths_.shape
    (1.0, (5, 1, 5), (5, 1, 5, 1, 4))
    >>> model.certificate_.kind, model.certificate_.holds
    ('gap', True)
    """

    _theory = "maximum-likelihood"
    _positional = ("Cs",)

    Cs: Any = param(
        Number(low=1, integer=True) | ArrayLike(_INVERSE_STRENGTH),
        "The candidates, or how many of them between 1e-4 and 1e4.",
        default=10,
    )
    l1_ratios: Any = param(
        Options("warn") | Nothing() | ArrayLike(_SHARE),
        "Candidates of ρ. As in scikit-learn the default is None, which means (0,), and warns that it will change.",
        default="warn",
    )
    cv: Any = param(
        Nothing() | Matches(lambda v: not isinstance(v, (str, float, bool)), "a number of folds or a splitter"),
        "Folds; None is 5 stratified ones.",
        default=None,
    )
    scoring: Any = param(
        Nothing() | Matches(lambda v: isinstance(v, str) or callable(v), "a scorer or its name"),
        "How predictions on the folds are scored; None is the accuracy. The default is None and warns, as in "
        "scikit-learn, that it will change.",
        default="warn",
    )
    solver: str = param(Options(*SOLVERS, "liblinear"), "As in `LogisticRegression`.", default="auto")
    refit: bool = param(
        Boolean(),
        "Whether the chosen penalty is fitted to all rows; otherwise coefficients, C and ρ are means over the folds of "
        "the best of each, and nothing is proven about them.",
        default=True,
    )
    use_legacy_attributes: Any = param(
        Options("warn") | Boolean(),
        'Whether `C_`, `l1_ratio_`, `scores_`, `coefs_paths_` and `n_iter_` have their old shapes; "warn" is True and '
        "warns, as in scikit-learn.",
        default="warn",
    )
    Cs_: Array = fitted("(n_cs,)", "The candidates.", infinite=True, low=0.0)
    l1_ratios_: Array = fitted("(n_l1_ratios,)", "The candidates of ρ.", low=0.0, high=1.0)
    C_: Any = fitted("() or (1,) or (n_classes,)", "The chosen C; repeated for each class in the old shape.", low=0.0)
    l1_ratio_: Any = fitted("() or (1,) or (n_classes,)", "The chosen ρ.", low=0.0, high=1.0)
    scores_: Any = fitted(
        "array of shape (n_folds, n_l1_ratios, n_cs), or dict of arrays",
        "Scores on the folds; minus infinity where `max_seconds` left no time. In the old shape a dict with an array "
        "of shape (n_folds, n_cs[, n_l1_ratios]) for each class, the second of two.",
    )
    coefs_paths_: Any = fitted(
        "array of shape (n_folds, n_l1_ratios, n_cs, n_scores, n_features + 1), or dict of arrays",
        "Coefficients of the folds, the intercept last if there is one; in the old shape a dict as `scores_`.",
    )
    n_iter_: Any = fitted("array", "Iterations, in the order of `scores_`.")
    row_order_: int = fitted(
        "int", "Checksum of the labels in their order, by which `verify` knows whether it can draw the folds again."
    )
    certificate_: Certificate = fitted("Certificate", "`gap` of the fit to all rows; `none` if `refit` is False.")

    C = 1.0
    l1_ratio = 0.0
    warm_start = False
    _scores_by_scorer = True
    __metadata_request__score: ClassVar[dict[str, Any]] = {"sample_weight": UNUSED}  # only the scorer may ask for it

    def _get_scorer(self) -> Any:
        from sklearn.metrics import get_scorer

        scoring = None if isinstance(self.scoring, str) and self.scoring == "warn" else self.scoring
        try:
            return get_scorer(scoring or "accuracy")
        except ValueError as error:
            raise ParameterError(f"{type(self).__name__}: {error}") from error

    def score(  # type: ignore[override]
        self, X: Any, y: Any, *, sample_weight: Any = None, **score_params: Any
    ) -> float:
        """Return the score of predictions by `scoring`.

        Parameters
        ----------
        X : array, sparse array, dataframe, path or Dask collection
            Rows to predict.
        y, sample_weight : array or str
            Their labels and weights; with a frame also the name of a column.
        **score_params : dict
            Passed on to the scorer, with scikit-learn's metadata routing enabled.
        """
        owner = type(self).__name__
        if score_params and not is_routing():
            raise ParameterError(
                f"{owner}: passing {sorted(score_params)} to score is only supported if enable_metadata_routing=True, "
                "which can be set by sklearn.set_config(enable_metadata_routing=True)."
            )
        X, y, sample_weight = named_columns(owner, X, y, sample_weight)
        extra = {} if sample_weight is None else {"sample_weight": sample_weight}
        if is_routing():
            extra = dict(process_routing(self, "score", **extra, **score_params).scorer.score)
        return float(self._get_scorer()(self, X, y, **extra))

    def _fit(self, table: Table, run: Run) -> Certificate:
        owner = type(self).__name__
        table.require_memory(f"{owner}: cross-validation needs the rows in memory; use {owner[:-2]} or read the table.")
        settings = stated_settings(self)
        self.classes_ = np.asarray(table.classes)
        _check_class_weight(self)
        weight = table.weight
        of_class = class_weights(table, self.class_weight, owner)
        if of_class is not None:
            weight = of_class[table.y] if weight is None else weight * of_class[table.y]
        refuse_extreme_sizes(table.X, weight, owner)
        whole = Blocks([Part(table.X, table.y, weight)])
        metadata = self._metadata(table)
        folds = self._folds(table, run, metadata, self.classes_[table.y])
        scorer = self._get_scorer()
        if settings.scoring is not None:
            scorer = with_labels(scorer, self.classes_)
        tasks = [(fold, ratio) for fold in folds for ratio in settings.ratios.tolist()]
        shares = Shares(run, self.max_seconds, len(tasks), resolve_n_jobs(self.n_jobs))

        def follow(task: tuple[Fold, float]) -> list[FoldPath]:
            fold, ratio = task
            part = Part(table.X[fold.train], table.y[fold.train], None if weight is None else weight[fold.train])
            return [self._path(part, ratio, settings.Cs, shares.begin())]

        paths = map_reduce(tasks, follow, lambda a, b: a + b, n_jobs=self.n_jobs)
        shape = (len(folds), len(settings.ratios))
        # Scorers are called one after the other: those of a user need not be safe on threads.
        judges = [_Judge(scorer, table, fold, metadata) for fold, _ in tasks]
        scores = np.array([self._scores_of(*pair) for pair in zip(paths, judges, strict=True)]).reshape(*shape, -1)
        coefs = np.array([path.coefs for path in paths]).reshape(*shape, *paths[0].coefs.shape)
        n_iter = np.array([path.n_iter for path in paths]).reshape(*shape, -1)
        self._warn_of_missing(scores)
        certificate = self._finish(whole, settings, scores, coefs, run)
        self._store_paths(settings, scores, coefs, n_iter)
        self.row_order_ = label_order(self.classes_, table)
        return certificate

    def _scores_of(self, path: FoldPath, judge: _Judge) -> Array:
        """Return the scores of a path on the test rows of its fold; minus infinity where there was no time."""
        member = self._member(1)
        scores = np.full(len(path.coefs), -np.inf)
        for place in np.flatnonzero(path.reached).tolist():
            member.coef_ = path.coefs[place, :, :-1]
            member.intercept_ = path.coefs[place, :, -1]
            scores[place] = judge.score(member)
        return scores

    def _path(self, part: Part, ratio: float, Cs: Array, is_over: Any) -> FoldPath:
        """Follow one path from the smallest C upwards."""
        n_scores = 1 if len(self.classes_) == 2 else len(self.classes_)
        coefs = np.zeros((len(Cs), n_scores, part.X.shape[1] + 1))
        reached = np.zeros(len(Cs), dtype=bool)
        n_iter = np.zeros(len(Cs), dtype=np.int32)
        member = self._member(1)
        for place in np.argsort(Cs, kind="stable").tolist():
            if is_over():
                break
            member.C = float(Cs[place])
            inner = _MemberRun(member, is_over)
            member._fit_rows(Blocks([part]), StatedPenalty(member.C, ratio), inner)
            coefs[place] = np.column_stack([member.coef_, member.intercept_])
            n_iter[place] = int(member.n_iter_[0])
            reached[place] = True
        return FoldPath(coefs, reached, n_iter)

    def _member(self, n_jobs: int | None) -> LogisticRegression:
        """Return the model of one fold, to be fitted again and again."""
        member = LogisticRegression(
            fit_intercept=self.fit_intercept,
            tol=self.tol,
            intercept_scaling=self.intercept_scaling,
            random_state=self.random_state,
            solver=self.solver,
            max_iter=self.max_iter,
            n_jobs=n_jobs,
            warm_start=True,
        )
        member.classes_ = self.classes_
        member.n_features_in_ = self.n_features_in_
        return member

    def _finish(self, whole: Blocks, settings: Settings, scores: Array, coefs: Array, run: Run) -> Certificate:
        """Choose C and ρ, and set the coefficients: fitted to all rows, or means over the folds."""
        by_size = scores.transpose(0, 2, 1)  # ties go to the first C of the list, then to the first ρ
        n_cs, n_ratios = by_size.shape[1:]
        if self.refit:
            best = np.unravel_index(np.argmax(by_size.sum(axis=0)), (n_cs, n_ratios))
            self.C_ = float(settings.Cs[best[0]])
            self.l1_ratio_ = float(settings.ratios[best[1]])
            member = self._member(self.n_jobs)
            member.C = self.C_
            member.warm_start = False  # the same bits as a LogisticRegression with this C
            certificate = member._fit_rows(whole, StatedPenalty(self.C_, self.l1_ratio_), run)
            self.coef_ = member.coef_
            self.intercept_ = member.intercept_
            return certificate
        places = [np.unravel_index(np.argmax(one), (n_cs, n_ratios)) for one in by_size]
        chosen = np.array([coefs[fold, r, c] for fold, (c, r) in enumerate(places)]).mean(axis=0)
        self.C_ = float(np.mean([settings.Cs[c] for c, _ in places]))
        self.l1_ratio_ = float(np.mean([settings.ratios[r] for _, r in places]))
        self.coef_ = np.ascontiguousarray(chosen[:, :-1])
        self.intercept_ = chosen[:, -1].copy()
        return Certificate("none", np.nan, 0.0)

    def _store_paths(self, settings: Settings, scores: Array, coefs: Array, n_iter: NDArray[np.int32]) -> None:
        """Store scores, coefficients and iterations, in scikit-learn's new or old shapes."""
        self.Cs_ = settings.Cs
        self.l1_ratios_ = settings.ratios
        if not self.fit_intercept:
            coefs = coefs[..., :-1]
        if not settings.legacy:
            self.scores_ = scores
            self.coefs_paths_ = np.ascontiguousarray(coefs)
            self.n_iter_ = n_iter
            return
        keys = self.classes_.tolist()[-1:] if len(self.classes_) == 2 else self.classes_.tolist()
        by_class = coefs.transpose(3, 0, 2, 1, 4)
        by_size = scores.transpose(0, 2, 1)
        steps = n_iter.transpose(0, 2, 1)[None]
        if settings.drops_ratios:
            by_class = by_class[:, :, :, 0]
            by_size = by_size[:, :, 0]
            steps = steps[:, :, :, 0]
        self.scores_ = {key: by_size.copy() for key in keys}
        self.coefs_paths_ = {key: part.copy() for key, part in zip(keys, by_class, strict=True)}
        self.n_iter_ = steps.copy()
        self.C_ = np.full(len(keys), self.C_)
        self.l1_ratio_ = np.full(len(keys), self.l1_ratio_)

    def _warn_of_missing(self, scores: Array) -> None:
        missing = int(np.isneginf(scores).sum())
        if missing and self.max_seconds is not None:
            warnings.warn(
                f"{type(self).__name__}: max_seconds={self.max_seconds:g} left no time for {missing} of {scores.size} "
                "fits on the folds; C_ is the best of those that every fold was fitted with, or the first. Raise "
                "max_seconds, or pass fewer Cs.",
                ConvergenceWarning,
                stacklevel=6,
            )

    _laws = laws(
        law(
            "scores_ and coefs_paths_ must have arrays of one shape",
            lambda model: all(
                len({np.shape(part) for part in _parts(record)}) == 1 for record in (model.scores_, model.coefs_paths_)
            ),
            "scores_",
        ),
    )


class Settings(NamedTuple):
    """What the parameters say together."""

    Cs: Array
    ratios: Array
    drops_ratios: bool  #: whether the old shapes have no axis for ρ
    legacy: bool
    scoring: Any  #: None for the accuracy


class _Judge(NamedTuple):
    """Scores models on the test rows of one fold."""

    scorer: Any
    table: Table
    fold: Fold
    metadata: Metadata

    def score(self, model: Any) -> float:
        """Return the score of a fitted model."""
        X = self.table.X[self.fold.test]
        y = np.asarray(self.table.classes)[self.table.y[self.fold.test]]
        extra = accepted(self.scorer, self.metadata.of(self.fold))
        try:
            return float(self.scorer(model, X, y, **extra))
        except LearnableError:
            raise
        except (TypeError, ValueError, LookupError, AttributeError) as error:
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise ParameterError(f"LogisticRegressionCV: scoring does not work on a fold: {reason}") from error


class _MemberRun(Run):
    """The run of one fit on a fold: it starts from the model's last fit, and ends with the fold's time."""

    def __init__(self, member: Any, is_over: Any) -> None:
        super().__init__(member)
        self._is_over = is_over

    @property
    def out_of_time(self) -> bool:
        """Whether the fold's time is over."""
        return bool(self._is_over())


def _parts(stored: Any) -> list[Any]:
    return list(stored.values()) if isinstance(stored, dict) else [stored]


def with_labels(scorer: Any, classes: NDArray[Any]) -> Any:
    """Return a scorer that knows all labels, where its metric can: the test rows of a fold may lack one."""
    from sklearn.metrics import make_scorer

    metric = getattr(scorer, "_score_func", None)
    known = {} if metric is None else inspect.signature(metric).parameters
    if "labels" not in known:
        return scorer
    positive = {"pos_label": classes[-1]} if len(classes) == 2 and "pos_label" in known else {}
    made = make_scorer(
        metric,
        greater_is_better=scorer._sign == 1,
        response_method=scorer._response_method,
        **(dict(labels=classes, **positive) | getattr(scorer, "_kwargs", {})),
    )
    return made


def label_order(classes: NDArray[Any], table: Table) -> int:
    """Return a checksum of labels and rows left out, in their order: only so does `verify` find the folds again."""
    checksum = zlib.crc32(np.ascontiguousarray(table.y, dtype=np.int64).tobytes())
    return checksum if table.kept is None else zlib.crc32(table.kept.tobytes(), checksum)


def _check_class_weight(model: Any) -> None:
    if isinstance(model.class_weight, dict) and not set(model.class_weight) <= set(model.classes_.tolist()):
        raise ParameterError(
            f"{type(model).__name__}: The given class_weight dict must have the class labels as keys; the classes are "
            f"{model.classes_.tolist()}, the keys {list(model.class_weight)}."
        )


def stated_settings(model: Any) -> Settings:
    """Return what the parameters state, and warn of what scikit-learn deprecated."""
    ratios = model.l1_ratios
    if isinstance(ratios, str):
        ratios = None
        warnings.warn(_L1_RATIOS_WILL_CHANGE, FutureWarning, stacklevel=5)
    if model.penalty == "deprecated":
        if model.l1_ratios is None:
            warnings.warn(_L1_RATIOS_NONE, FutureWarning, stacklevel=5)
        used = [0.0] if ratios is None else list(np.ravel(ratios))
    else:
        warnings.warn(_PENALTY_DEPRECATED, FutureWarning, stacklevel=5)
        used = _ratios_of_penalty(model, ratios)
    scoring = model.scoring
    if isinstance(scoring, str) and scoring == "warn":
        warnings.warn(_SCORING_WILL_CHANGE, FutureWarning, stacklevel=5)
        scoring = None
    legacy = model.use_legacy_attributes
    if isinstance(legacy, str):
        warnings.warn(_ATTRIBUTES_WILL_CHANGE.format(owner=type(model).__name__), FutureWarning, stacklevel=5)
        legacy = True
    Cs = np.logspace(*_GRID, model.Cs) if np.ndim(model.Cs) == 0 else np.asarray(model.Cs, dtype=np.float64).ravel()
    if model.solver == "liblinear" and np.isinf(Cs).any():
        raise ParameterError("LogisticRegressionCV: C=np.inf is not supported for the liblinear solver; use another.")
    return Settings(Cs, np.asarray(used, dtype=np.float64), ratios is None, bool(legacy), scoring)


def _ratios_of_penalty(model: Any, ratios: Any) -> list[float]:
    """Return the ρ that the deprecated `penalty` means."""
    if model.penalty == "elasticnet":
        if ratios is None:
            raise ParameterError(
                "LogisticRegressionCV: l1_ratios must be an array-like of numbers between 0 and 1; got (l1_ratios=None)"
            )
        return list(np.ravel(ratios))
    if ratios is not None:
        warnings.warn(
            f"l1_ratios parameter is only used when penalty is 'elasticnet'. Got (penalty={model.penalty})",
            stacklevel=6,
        )
    share = 1.0 if model.penalty == "l1" else 0.0
    return [share] if ratios is None else [share] * len(np.ravel(ratios))


_L1_RATIOS_WILL_CHANGE = (
    "The default value for l1_ratios will change from None to (0.0,) in version 1.10. From version 1.10 onwards, only "
    "array-like with values in [0, 1] will be allowed, None will be forbidden. To avoid this warning, explicitly set a "
    "value, e.g. l1_ratios=(0,)."
)
_L1_RATIOS_NONE = (
    "'l1_ratios=None' was deprecated in version 1.8 and will trigger an error in 1.10. Use an array-like with values"
    "in [0, 1] instead."
)
_PENALTY_DEPRECATED = (
    "'penalty' was deprecated in version 1.8 and will be removed in 1.10. To avoid this warning, leave 'penalty' set "
    "to its default value and use 'l1_ratios' and 'Cs' instead. Use l1_ratios=(0,) instead of penalty='l2', "
    "l1_ratios=(1,) instead of penalty='l1', l1_ratios set to floats between 0 and 1 instead of penalty='elasticnet', "
    "and Cs=(np.inf,) instead of penalty=None."
)
_SCORING_WILL_CHANGE = (
    "The default value of the parameter 'scoring' will change from None, i.e. accuracy, to 'neg_log_loss' in version "
    "1.11. To silence this warning, explicitly set the scoring parameter: scoring='neg_log_loss' for the new, "
    "scoring='accuracy' or scoring=None for the old default."
)
_ATTRIBUTES_WILL_CHANGE = (
    "The fitted attributes of {owner} will be simplified in scikit-learn 1.10 to remove redundancy. Set"
    "`use_legacy_attributes=False` to enable the new behavior now, or set it to `True` to silence this warning during "
    "the transition period while keeping the deprecated behavior for the time being. The default value of "
    "use_legacy_attributes will change from True to False in scikit-learn 1.10. See the docstring of {owner} for more "
    "details."
)
