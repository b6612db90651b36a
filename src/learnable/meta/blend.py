r"""Blends: the weighted mean of several models of the same rows, and the greedy choice of the weights.

    ŷ(x) = Σ w_m ŷ_m(x),    w_m ≥ 0,  Σ w_m = 1;    of classifiers, of their probabilities.

The weights are chosen on predictions of rows that the models were not fitted to: one model after the other is added to
the blend, with replacement, whichever lowers the loss most; a model's weight is the share of times it was added. The
blend never ends worse than the best single model on these rows, and rarely uses more than a few.

Reference: R. Caruana, A. Niculescu-Mizil, G. Crew and A. Ksikes, Ensemble selection from libraries of models, ICML
2004, sections 2 and 2.1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin, MetaEstimatorMixin, RegressorMixin, clone
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from ..core import (
    Array,
    Certificate,
    DataError,
    Declared,
    Matches,
    NDArray,
    ParameterError,
    check_parameters,
    fitted,
    law,
    laws,
    optional,
    param,
)
from ..core.progress import shows_progress
from ..data.door import require_target

#: |Σw − 1| of weights that are shares.
TOLERANCE = 1e-9
_ROUNDS = 40  # Caruana et al. stop where the loss on these rows no longer falls; it always has by then
_PATIENCE = 20  # rounds in any case: a model that is worth a twentieth helps once the best one was added 19 times


def _is_model(value: Any) -> bool:
    return hasattr(value, "fit") and hasattr(value, "predict") and not isinstance(value, type)


_MODELS = Matches(
    lambda value: _is_model(value) or (isinstance(value, (list, tuple)) and bool(value) and all(map(_is_model, value))),
    "an estimator, or a list of estimators",
)
_WEIGHTS = Matches(
    lambda value: (
        isinstance(value, (list, tuple, np.ndarray))
        and len(value) > 0
        and bool(np.isfinite(np.asarray(value, dtype=np.float64)).all())
        and bool((np.asarray(value, dtype=np.float64) >= 0).all())
        and float(np.sum(value)) > 0
    ),
    "numbers that are not negative, one positive",
)


def greedy_weights(
    predictions: Sequence[NDArray[Any]], loss: Callable[[NDArray[Any]], float], rounds: int = _ROUNDS
) -> Array:
    """Return weights of a blend of predictions by greedy forward selection with replacement.

    Parameters
    ----------
    predictions : sequence of arrays of one shape
        What each model predicts of the same rows, which it was not fitted to.
    loss : callable
        What a blend of predictions is worth; less is better.
    rounds : int
        How often a model is added at most; it ends earlier where none lowers the loss.

    Returns
    -------
    array of shape (n_models,)
        Weights that add up to one; those of the best round.

    Examples
    --------
    >>> import numpy as np
    >>> y = np.array([0.0, 1.0, 2.0])
    >>> high, low = y + 0.5, y - 0.5
    >>> greedy_weights([high, low], lambda p: float(np.mean((p - y) ** 2)), rounds=4)
    array([0.5, 0.5])
    """
    counts = np.zeros(len(predictions))
    total = np.zeros_like(np.asarray(predictions[0], dtype=np.float64))
    best = np.inf
    chosen = counts
    for added in range(1, rounds + 1):
        losses = [loss((total + prediction) / added) for prediction in predictions]
        losses = [value if np.isfinite(value) else np.inf for value in losses]
        first = int(np.argmin(losses))
        counts = counts.copy()
        counts[first] += 1
        total = total + predictions[first]
        if losses[first] < best:
            best = losses[first]
            chosen = counts
        elif added > max(_PATIENCE, 2 * chosen.sum()):
            break
    if not chosen.any():
        chosen = np.ones(len(predictions))
    return np.asarray(chosen / chosen.sum(), dtype=np.float64)


class _Blend(MetaEstimatorMixin, Declared):
    """What both blends share."""

    estimators: Any = param(_MODELS, "The members; each is cloned and fitted to all rows.", kw_only=False)
    weights: Any = param(
        optional(_WEIGHTS),
        "What each member counts, scaled to add up to one; None counts all alike. `greedy_weights` chooses them.",
        default=None,
        kw_only=False,
    )
    members_: list[Any] = fitted("list of estimators", "The fitted members.")
    weights_: Array = fitted("(n_members,)", "Weights that add up to one.", low=0.0)
    certificate_: Certificate = fitted(
        "Certificate",
        "`closed-form`: that the weights add up to one; `verify` checks every member's own certificate too.",
    )

    @shows_progress
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit every member to all rows.

        Parameters
        ----------
        X, y, sample_weight
            As the members take them.

        Returns
        -------
        self
            The fitted blend; as it was if a fit fails.
        """
        owner = type(self).__name__
        check_parameters(owner, self.get_params(deep=False), self._parameters)
        require_target(owner, y)
        models = self._models()
        if self.weights is not None and len(self.weights) != len(models):
            raise ParameterError(f"{owner}: weights must be one number for each of {len(models)} estimators.")
        raw = np.ones(len(models)) if self.weights is None else np.asarray(self.weights, dtype=np.float64)
        weighted = {} if sample_weight is None else {"sample_weight": sample_weight}
        for model in models if weighted else []:
            if not has_fit_parameter(model, "sample_weight"):
                raise DataError(
                    f"{owner}: sample_weight was passed, but {type(model).__name__} has no weights. Leave it out."
                )
        members = [clone(model).fit(X, y, **weighted) for model in models]
        self._check_members(members)
        shares = raw / raw.sum()
        fingerprint = getattr(getattr(members[0], "certificate_", None), "fingerprint", "")
        self.members_ = members
        self.weights_ = shares
        self.certificate_ = Certificate(
            "closed-form", abs(float(shares.sum()) - 1.0), TOLERANCE, fingerprint=fingerprint
        )
        for name in ("n_features_in_", "feature_names_in_"):
            self.__dict__.pop(name, None)
            if hasattr(members[0], name):
                setattr(self, name, getattr(members[0], name))
        return self

    def _models(self) -> list[Any]:
        return list(self.estimators) if isinstance(self.estimators, (list, tuple)) else [self.estimators]

    def _check_members(self, members: list[Any]) -> None:
        """Refuse members that do not go together."""

    def _mean(self, method: str, X: Any) -> Array:
        """Return the weighted mean of what the members say."""
        check_is_fitted(self)
        total: Any = 0.0
        for weight, member in zip(self.weights_.tolist(), self.members_, strict=True):
            if weight > 0:
                total = total + weight * np.asarray(getattr(member, method)(X), dtype=np.float64)
        return np.asarray(total)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "members_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = [get_tags(model) for model in self._models()]
        tags.input_tags = inner[0].input_tags
        tags.input_tags.sparse = all(one.input_tags.sparse for one in inner)
        tags.input_tags.allow_nan = all(one.input_tags.allow_nan for one in inner)
        tags.classifier_tags = inner[0].classifier_tags
        tags.regressor_tags = inner[0].regressor_tags
        tags.target_tags = inner[0].target_tags
        tags.non_deterministic = any(one.non_deterministic for one in inner)
        return tags

    _laws = laws(
        law(
            "{owner}: members_ are not of the classes of estimators",
            lambda blend: (
                isinstance(blend.members_, list)
                and [type(m) for m in blend.members_] == [type(m) for m in blend._models()]
            ),
        ),
        law(
            "{owner}: weights_ must be shares that add up to one, one for each member",
            lambda blend: len(blend.weights_) == len(blend.members_) and abs(blend.weights_.sum() - 1.0) <= TOLERANCE,
        ),
    )


class BlendRegressor(RegressorMixin, _Blend):
    """The weighted mean of the predictions of several regressors.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable import KNeighborsRegressor, Ridge
    >>> from learnable.meta import BlendRegressor
    >>> X = np.arange(20.0).reshape(-1, 1)
    >>> y = X[:, 0] + np.sin(X[:, 0])
    >>> model = BlendRegressor([Ridge(), KNeighborsRegressor(3)], weights=[1, 3]).fit(X, y)
    >>> model.weights_, model.certificate_.holds
    (array([0.25, 0.75]), True)
    """

    _theory = "blending"

    def predict(self, X: Any) -> Array:
        """Return the weighted mean of the members' predictions of new rows, which are as the members take them."""
        return self._mean("predict", X)


class BlendClassifier(ClassifierMixin, _Blend):
    """The weighted mean of the probabilities of several classifiers, all with `predict_proba`.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable import GaussianNB, LogisticRegression
    >>> from learnable.meta import BlendClassifier
    >>> X = np.arange(20.0).reshape(-1, 1)
    >>> model = BlendClassifier([LogisticRegression(), GaussianNB()]).fit(X, X[:, 0] > 9)
    >>> model.predict([[2.0], [17.0]])
    array([False,  True])
    """

    _theory = "blending"

    @property
    def classes_(self) -> NDArray[Any]:
        """The labels, sorted."""
        return np.asarray(self.members_[0].classes_)

    def predict_proba(self, X: Any) -> Array:
        """Return the weighted mean of the members' probabilities, (n_samples, n_classes), columns as in `classes_`."""
        return self._mean("predict_proba", X)

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the label of the greatest probability."""
        best = self.predict_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[best])

    def _check_members(self, members: list[Any]) -> None:
        for member in members:
            if not hasattr(member, "predict_proba"):
                raise ParameterError(
                    f"BlendClassifier: {type(member).__name__} gives no probabilities; put it in a "
                    "CalibratedClassifier."
                )
            if not np.array_equal(np.asarray(member.classes_), np.asarray(members[0].classes_)):
                raise DataError("BlendClassifier: its members know different classes.")
