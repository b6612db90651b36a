"""What models of tables add to their targets: predictions by blocks of rows, learning on, spreads and intervals."""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax
from sklearn.utils.metaestimators import available_if

from ..core.declare import Number, check_parameters
from ..core.errors import DataError, ParameterError
from ..data.door import read_features
from ..data.sources import rowwise
from ..probability.normal import Normal
from .layers.base import Keys
from .model import _dense_rows
from .presets import effective
from .targets import ClassTargets, NumberTargets

Array = NDArray[Any]


def _has_partial_fit(model: Any) -> bool:
    if model.solver == "lbfgs":
        raise AttributeError(
            f"partial_fit is only available for stochastic optimizers. {model.solver} is not stochastic."
        )
    return True


class TableClasses(ClassTargets):
    """Classes of rows."""

    @rowwise
    def predict_proba(self, X: Any) -> Array:
        """Return the probability of each class, columns as in `classes_`; of labels, of each label.

        Parameters
        ----------
        X : array, sparse array or dataframe of shape (n_samples, n_features)
            Rows.
        """
        return self._probabilities(self._scores(X).astype(np.float64))

    @rowwise
    def predict_log_proba(self, X: Any) -> Array:
        """Return the logarithm of the probability of each class."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.predict_proba(X)))

    @rowwise
    def predict(self, X: Any) -> Array:
        """Return the most probable class of each row, or an indicator matrix of labels with probability above ½."""
        p = self.predict_proba(X)
        if self.multilabel_:
            return np.asarray(p > 0.5, dtype=np.int64)
        return np.asarray(self.classes_[p.argmax(axis=-1)])

    @available_if(_has_partial_fit)  # type: ignore[untyped-decorator]
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Make one epoch over some rows, from where the last call ended; the optimiser's memory is kept.

        Parameters
        ----------
        X : array, sparse array or dataframe of shape (n_samples, n_features)
            Rows, in memory.
        y : array of shape (n_samples,) or (n_samples, n_labels)
            Labels.
        classes : array of shape (n_classes,), optional
            All labels that will ever be seen; needed in the first call.
        sample_weight : array of shape (n_samples,), optional
            Non-negative weights of the rows.
        """
        check_parameters(type(self).__name__, self.get_params(deep=False), self._parameters)
        known = hasattr(self, "theta_")
        if not known and classes is None:
            raise DataError(
                f"{type(self).__name__}: classes must be passed on the first call to partial_fit: all labels that will "
                "ever be seen."
            )
        draft = self._draft()
        table = type(self)._door(draft, X, y, sample_weight)
        self._check_columns(draft, known)
        draft._known_classes = self.classes_ if known else np.unique(np.asarray(classes))
        if known and classes is not None and not np.array_equal(np.unique(np.asarray(classes)), self.classes_):
            raise DataError(
                f"{type(self).__name__}: `classes` is not the same as on last call to partial_fit: {classes!r} and "
                f"before {self.classes_!r}."
            )
        self._partial_fit(table, draft, known)
        self.__dict__.pop("_known_classes", None)
        return self

    def predict_spread(self, X: Any, n_draws: int = 50, random_state: Any = 0) -> Array:
        """Return the standard deviation of the probabilities with dropout left on (MC dropout), or between members.

        It shows where networks disagree; it is no confidence interval.
        """
        draws = _draw_scores(self, X, n_draws, random_state)
        if self.out_activation_ == "softmax":
            return np.asarray(softmax(draws, axis=-1).std(axis=0))
        p = expit(draws)
        return np.asarray((p if self.multilabel_ else np.concatenate([1.0 - p, p], axis=-1)).std(axis=0))


class TableNumbers(NumberTargets):
    """Numbers of rows."""

    @rowwise
    def predict(self, X: Any) -> Array:
        """Return the predicted numbers.

        Parameters
        ----------
        X : array, sparse array or dataframe of shape (n_samples, n_features)
            Rows.
        """
        found = self._from_scores(self._scores(X).astype(np.float64))
        return found[:, 0] if self.single_ else found

    def predict_dist(self, X: Any) -> Normal:
        """Return Normal distributions: the mean of an ensemble, its spread plus the noise of the residuals.

        One network has no spread of its own: use `ensemble_size=5`. With `calibration_fraction` the noise is that of
        rows that were kept out of training.
        """
        if len(getattr(self, "theta_", [0])) < 2:
            raise ParameterError(
                f"{type(self).__name__}: predict_dist needs several networks; set ensemble_size=5, or use "
                "predict_interval with calibration_fraction=0.2."
            )
        z = self._scores(X).astype(np.float64)
        members = np.stack([self._from_scores(part[None]) for part in z])
        mean = members.mean(axis=0)
        std = np.sqrt(members.var(axis=0, ddof=1) + self.noise_)
        return Normal(mean[:, 0], std[:, 0]) if self.single_ else Normal(mean, std)

    def predict_interval(self, X: Any, level: float = 0.9) -> tuple[Array, Array]:
        """Return the ends of intervals that hold a new y with probability at least `level` (split conformal).

        The half width is the ⌈(m + 1)·level⌉-th smallest |y − ŷ| of the m rows that `calibration_fraction` kept out.
        """
        scores = getattr(self, "calibration_scores_", None)
        if scores is None:
            raise ParameterError(
                f"{type(self).__name__}: predict_interval needs rows that training has not seen; fit with "
                "calibration_fraction=0.2, or use evaluation.ConformalRegressor."
            )
        if not Number(low=0.0, high=1.0, low_open=True, high_open=True).allows(level):
            raise ParameterError(f"{type(self).__name__}: level must be a number > 0 and < 1; got {level!r}.")
        rank = math.ceil((len(scores) + 1) * level)
        width = scores[rank - 1] if rank <= len(scores) else np.inf
        centre = self.predict(X)
        return centre - width, centre + width

    @available_if(_has_partial_fit)  # type: ignore[untyped-decorator]
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Make one epoch over some rows, from where the last call ended; the optimiser's memory is kept.

        Parameters
        ----------
        X : array, sparse array or dataframe of shape (n_samples, n_features)
            Rows, in memory.
        y : array of shape (n_samples,) or (n_samples, n_outputs)
            Targets.
        sample_weight : array of shape (n_samples,), optional
            Non-negative weights of the rows.
        """
        check_parameters(type(self).__name__, self.get_params(deep=False), self._parameters)
        known = hasattr(self, "theta_")
        draft = self._draft()
        table = type(self)._door(draft, X, y, sample_weight)
        self._check_columns(draft, known)
        self._partial_fit(table, draft, known)
        return self

    def predict_spread(self, X: Any, n_draws: int = 50, random_state: Any = 0) -> Array:
        """Return the standard deviation of predictions with dropout left on (MC dropout), or between members.

        It shows where networks disagree; it is no prediction interval.
        """
        draws = _draw_scores(self, X, n_draws, random_state)
        found = np.stack([self._from_scores(part[None]) for part in draws]).std(axis=0)
        return np.asarray(found[:, 0] if self.single_ else found)


def _draw_scores(model: Any, X: Any, n_draws: int, random_state: Any) -> Array:
    """Return the scores of members, or of one network under different masks of dropout (draws, n, k)."""
    dropout = getattr(effective(model), "dropout", 0.0)
    if len(model.theta_) > 1 and not dropout:
        return np.asarray(model._scores(X).astype(np.float64))
    if not dropout:
        raise ParameterError(
            f"{type(model).__name__}: predict_spread needs something that varies; fit with dropout=0.1 or "
            "ensemble_size=5."
        )
    rows = model._inputs(_dense_rows(read_features(model, X), model.theta_.dtype))
    network = model._built()
    rng = np.random.default_rng(random_state)
    draws = []
    for k in range(n_draws):
        keys = Keys(int(rng.integers(2**32)))
        member = k % len(model.theta_)
        tape = network.open(
            model.theta_[member], len(rows), training=True, buffers=model.buffers_[member].copy(), keys=keys
        )
        draws.append(tape.forward(rows).astype(np.float64))
    return np.stack(draws)
