r"""Conformal prediction sets: the labels that a new row may have, with coverage for any classifier.

The score s(x, k) says how strange label k is for x, given the classifier's probabilities p:

    lac:  s = 1 − p_k                                 (smallest sets on average)
    aps:  s = Σ_{j: p_j > p_k} p_j + u p_k, u = 0     (sets that grow where the classifier is unsure)

or, randomised, with u uniform on [0, 1] for each row. With u = 0 the set holds the fewest likeliest labels whose
probabilities reach a threshold: with a split it is never empty, and its coverage may exceed the level. The set of x
holds the labels k for which fewer than ⌈(1 − α)(n + 1)⌉ of the calibration rows have a score below s(x, k); with CV+
each row i is compared with s(x, k) under the classifier without the fold of row i. What is guaranteed, and why, is in
`conformal_base.py`.

References: M. Sadinle, J. Lei and L. Wasserman, Least ambiguous set-valued classifiers with bounded error levels, JASA
114, 2019; Y. Romano, M. Sesia and E. J. Candès, Classification with valid and adaptive coverage, NeurIPS 2020,
equations 8 and 10.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, MetaEstimatorMixin
from sklearn.utils.validation import check_is_fitted

from ..core.declare import RANDOM_STATE, Boolean, Matches, Nothing, Options, fitted, param
from ..core.errors import DataError, ModelFileError
from ..core.estimator import Certificate, Run
from ..data.rows import Sample, sample_door
from ..linear.logistic.regression import LogisticRegression
from ._rows import Rows, is_prefit
from .conformal_base import ConformalModel, generator_of

Array = NDArray[np.float64]

_CLASSIFIER = Matches(
    lambda v: not isinstance(v, type) and hasattr(v, "fit") and hasattr(v, "predict_proba"),
    "a classifier with predict_proba (calibrate it with CalibratedClassifier if it has none)",
)


class ConformalClassifier(MetaEstimatorMixin, ClassifierMixin, ConformalModel):
    """A classifier with sets of labels that hold a new row's label with the chosen probability.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The labels.
    estimator_ : classifier
        What `predict` and `predict_proba` use: fitted to all rows, or with "split" to those that do not calibrate.
    estimators_ : list of classifiers
        One a fold; empty for "split".
    scores_ : array
        The scores s(xᵢ, yᵢ) of the calibration rows.
    uniform_ : array
        Their u; zeros unless randomised.
    folds_ : array of shape (n_samples,)
        The fold of each row with positive weight; −1 for rows that only the classifier of a split was fitted to.
    guarantee_ : str
        What is proven about the sets of this fit at `level`.
    certificate_ : Certificate
        `closed-form`: that the scores are what the classifiers and the rows give. It says nothing about new rows;
        `guarantee_` does, if they are exchangeable with the old ones.
    n_features_in_ : int
        Number of columns, if the classifier counts them.
    feature_names_in_ : array of shape (n_features_in_,)
        Their names, if the classifier knows them.

    Notes
    -----
    With fewer than level/(1 − level) calibration rows only the set of all labels has the coverage asked for; a warning
    says how many rows are needed. A label that a fold's classifier has not seen has probability zero there. Folds are
    not stratified: the guarantee needs folds that do not look at the labels.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable.evaluation import ConformalClassifier
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(3, size=300)
    >>> X = rng.normal(size=(300, 2)) + np.array([[0, 0], [3, 0], [0, 3]])[y]
    >>> model = ConformalClassifier(method="cv+", level=0.9, random_state=0).fit(X, y)
    >>> model.predict_set([[0.0, 0.0], [1.5, 1.5]])
    array([[ True, False, False],
           [False,  True,  True]])
    """

    _theory = "conformal"

    estimator: Any = param(
        Nothing() | _CLASSIFIER,
        "Any scikit-learn classifier with `predict_proba`, pipeline or `TableModel`; None is `LogisticRegression()`.",
        default=None,
        kw_only=False,
    )
    method: str = param(
        Options("split", "cv+"),
        '"split" fits once, to part of the rows; "cv+" fits once a fold and once to all rows, and wastes none.',
        default="split",
    )
    conformity_score: str = param(
        Options("lac", "aps"),
        '"lac" gives the smallest sets on average; "aps" larger ones for hard rows and smaller ones for easy rows.',
        default="aps",
    )
    randomized: bool = param(
        Boolean(),
        'For "aps": u uniform instead of 0. Where no probability is zero, coverage is then the level itself '
        "(plus what `allow_empty=False` adds), but the sets depend on chance.",
        default=False,
    )
    allow_empty: bool = param(
        Boolean(),
        "Whether a set may be empty, which says that no label suits the row. Otherwise the likeliest label is "
        "added: coverage only grows.",
        default=False,
    )
    random_state: Any = param(
        RANDOM_STATE,
        "Which rows calibrate, which are in what fold, and u. With an integer, the same call gives the same "
        "sets; rows asked one at a time then all get the same u, so leave it None for that.",
        default=None,
    )

    _door = staticmethod(sample_door("classes"))
    _region = "set"

    classes_: NDArray[Any] = fitted("(n_classes,)", "The labels.", kind="biufOUST")
    uniform_: Array = fitted("(n_scores,)", "u of the calibration rows; zeros unless randomised.", low=0.0, high=1.0)

    def _fit(self, table: Sample, run: Run) -> Certificate:
        inner = self._inner()
        if is_prefit(inner, self.cv) and hasattr(inner, "classes_"):
            table = _with_labels_of(inner, table)  # rows that calibrate may lack a class that the classifier knows
        self.classes_ = np.asarray(table.classes)
        return super()._fit(table, run)

    def _calibrate(self, table: Sample) -> Array:
        u = generator_of(self.random_state).spawn(2)[0].uniform(size=table.n_rows)
        self.uniform_ = u if self.randomized else np.zeros(table.n_rows)
        scores = super()._calibrate(table)
        self.uniform_ = self.uniform_[self.folds_ >= 0]
        return scores

    def _score_rows(self, model: Any, X: Any, y: NDArray[Any], rows: Rows) -> Array:
        scores = label_scores(self._probabilities(model, X), self.conformity_score, self.uniform_[rows])
        return np.asarray(scores[np.arange(len(y)), y])

    def predict_set(self, X: Any, level: float | None = None) -> NDArray[np.bool_]:
        """Return which labels belong to the set of each row.

        Parameters
        ----------
        X : array, sparse array or dataframe of shape (n_samples, n_features)
            New rows, as the inner classifier takes them.
        level : float, optional
            Another level than that of the constructor.

        Returns
        -------
        bool array of shape (n_samples, n_classes)
            In the order of `classes_`; all True, with a warning, where the calibration rows are too few for the level.
        """
        check_is_fitted(self)
        rank = self._rank(level)
        below: Any = 0
        calibration_folds = self.folds_[self.folds_ >= 0]
        u = None
        for k, model in enumerate(self._fold_models()):
            p = self._probabilities(model, X)
            if u is None:
                u = self._draw(len(p))
            scores = label_scores(p, self.conformity_score, u)
            below = below + np.searchsorted(np.sort(self.scores_[calibration_folds == k]), scores, side="left")
        chosen = np.asarray(below < rank)
        if not self.allow_empty:
            empty = ~chosen.any(axis=1)
            likeliest = self._probabilities(self.estimator_, X).argmax(axis=1)
            chosen[empty, likeliest[empty]] = True
        return chosen

    def predict_proba(self, X: Any) -> Array:
        """Return the inner classifier's probability of each class, in the order of `classes_`; not calibrated."""
        check_is_fitted(self)
        return self._probabilities(self.estimator_, X)

    def _draw(self, n: int) -> Array:
        return generator_of(self.random_state).spawn(2)[1].uniform(size=n) if self.randomized else np.zeros(n)

    def _probabilities(self, model: Any, X: Any) -> Array:
        """Return a column for each of `classes_`; zeros for labels that the classifier has not seen."""
        p = np.asarray(model.predict_proba(X), dtype=np.float64)
        known = np.asarray(model.classes_).tolist()
        if p.ndim != 2 or p.shape[1] != len(known) or not np.isfinite(p).all():
            raise DataError(
                f"ConformalClassifier: {type(model).__name__}.predict_proba must give one finite number a class; got "
                f"shape {p.shape} for {len(known)} classes."
            )
        if known == self.classes_.tolist():
            return p
        place = {label: code for code, label in enumerate(self.classes_.tolist())}
        strange = [label for label in known if label not in place]
        if strange:
            raise DataError(
                f"ConformalClassifier: the classifier knows the class {strange[0]!r}, which y does not have. "
                "Calibrate it with rows of all its classes."
            )
        full = np.zeros((len(p), len(place)))
        full[:, [place[label] for label in known]] = p
        return full

    def _inner(self) -> Any:
        return LogisticRegression() if self.estimator is None else self.estimator

    def _check_loaded(self) -> None:
        super()._check_loaded()
        classes = getattr(self, "classes_", None)
        u = getattr(self, "uniform_", None)
        if not isinstance(classes, np.ndarray) or classes.ndim != 1 or len(classes) < 2:
            raise ModelFileError("load: classes_ must hold at least two labels.")
        if not isinstance(u, np.ndarray) or u.dtype != np.float64 or u.shape != self.scores_.shape:
            raise ModelFileError("load: uniform_ must have one number for each score.")
        for model in [self.estimator_, *self.estimators_]:
            if not set(np.asarray(getattr(model, "classes_", ())).tolist()) <= set(classes.tolist()):
                raise ModelFileError("load: a classifier knows labels that classes_ does not have.")


def _with_labels_of(inner: Any, table: Sample) -> Sample:
    """Return the rows with their targets numbered as the classifier numbers its classes."""
    classes = np.asarray(inner.classes_)
    place = {label: code for code, label in enumerate(classes.tolist())}
    found = np.asarray(table.classes).tolist()
    if not set(found) <= set(place):
        return table  # an unknown label has probability zero
    return replace(table, y=np.array([place[label] for label in found])[table.y], classes=classes)


def label_scores(p: Array, kind: str, u: Array) -> Array:
    """Return s(x, k) for rows of probabilities p (n, K): how strange each label is.

    Examples
    --------
    >>> import numpy as np
    >>> p = np.array([[0.5, 0.3, 0.2]])
    >>> label_scores(p, "lac", np.zeros(1)), label_scores(p, "aps", np.zeros(1))
    (array([[0.5, 0.7, 0.8]]), array([[0. , 0.5, 0.8]]))
    """
    if kind == "lac":
        return 1.0 - p
    order = np.argsort(-p, axis=1)
    falling = np.take_along_axis(p, order, axis=1)
    before = np.zeros_like(p)
    before[:, 1:] = np.cumsum(falling, axis=1)[:, :-1]
    # Labels of equal probability share what stands before the first of them.
    tied = falling[:, 1:] == falling[:, :-1]
    before[:, 1:][tied] = 0.0
    before = np.maximum.accumulate(before, axis=1)
    scores = np.empty_like(p)
    np.put_along_axis(scores, order, before + u[:, None] * falling, axis=1)
    return scores
