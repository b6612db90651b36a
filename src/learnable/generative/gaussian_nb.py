r"""Naive Bayes with normal features.

    x_j | class k  ~  N(θ_kj, σ²_kj), independent given the class;    P(k | x) ∝ π_k Π_j N(x_j; θ_kj, σ²_kj)

Without a prior, θ and σ² are the maximum-likelihood estimates, with a share of the largest variance added to every σ².
With the conjugate prior (θ, σ²) ~ normal–inverse-gamma they are the posterior's, and with `integrate=True` a row is
judged by the posterior predictive density, which is Student-t: an estimate from few rows then counts for less.

An entry that is NaN is integrated out, which under independence means that its factor is left out.

Reference: K. P. Murphy, Machine Learning: A Probabilistic Perspective (2012), sections 3.5 and 4.6.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import gammaln

from ..core import (
    Array,
    Boolean,
    Certificate,
    DataError,
    Matches,
    Nothing,
    Number,
    ParameterError,
    fitted,
    law,
    laws,
    param,
)
from ..data.door import door
from ..probability.conjugate.normal_inverse_gamma import NormalInverseGamma
from ._kernels import normal_scores, observed_normal_scores, student_scores
from .base import PRIORS, SummedModel, check_priors, log_or_minus_inf, score_rows
from .moments import ClassMoments, class_moments, merge_moments


class GaussianNB(SummedModel):
    """Naive Bayes with a normal density for each class and column.

    The fit is one pass over the rows, in O(nd) time and O(n + Kd) memory besides the data. `partial_fit` gives the same
    model as one fit on all rows: unlike scikit-learn's, `epsilon_` always follows from all rows seen.

    Examples
    --------
    >>> from learnable import GaussianNB
    >>> X, y = [[-1.0, 0.0], [-2.0, 1.0], [1.0, 0.5], [2.0, float("nan")]], ["a", "a", "b", "b"]
    >>> model = GaussianNB().fit(X, y)
    >>> model.predict([[-0.8, 0.6], [float("nan"), 0.5]])
    array(['a', 'b'], dtype='<U1')
    >>> GaussianNB(integrate=True).fit(X[:3] + [[2.0, 0.7]], y).predict_proba([[-0.8, 0.6]]).round(2)
    array([[0.49, 0.51]])
    """

    _theory = "naive-bayes"

    priors: Any = param(PRIORS, "Class probabilities π; by default the shares of the classes.", default=None)
    var_smoothing: float = param(
        Number(low=0.0), "Share of the largest variance of a column that is added to every variance.", default=1e-9
    )
    prior: Any = param(
        Nothing() | Matches(lambda v: isinstance(v, dict), "a dict of mean, kappa, shape and rate"),
        "Parameters `mean, kappa, shape, rate` of a `NormalInverseGamma` prior of (θ, σ²), numbers or one a "
        "column: θ | σ² ~ N(mean, σ²/kappa), σ² ~ InverseGamma(shape, rate). None is the limit without a "
        "prior.",
        default=None,
    )
    integrate: bool = param(
        Boolean(),
        "Whether probabilities are averaged over the posterior of θ and σ² (with `prior=None`, over that of "
        "Jeffreys' prior 1/σ²) rather than computed at one estimate.",
        default=False,
    )
    class_count_: Array = fitted("(n_classes,)", "Weight of the rows of each class.", low=0.0)
    class_prior_: Array = fitted("(n_classes,)", "π.", low=0.0)
    theta_: Array = fitted("(n_classes, n_features)", "θ. With a prior: the most probable θ and σ² together.")
    var_: Array = fitted("(n_classes, n_features)", "σ².")
    epsilon_: float = fitted("()", "What was added to the variances.")
    observed_: Array = fitted("(n_classes, n_features)", "Weight of the rows with a value in the column.")
    mean_: Array = fitted("(n_classes, n_features)", "Mean of these values.")
    square_: Array = fitted(
        "(n_classes, n_features)", "Sum of their squared deviations: this is all that the model keeps of the data."
    )
    certificate_: Certificate = fitted("Certificate", "Relative rounding error of the sums.")

    _door = staticmethod(door(target="classes", sparse=False, missing=True, one_class=True))
    _missing = True

    def _sums(self, blocks: Any, n_classes: int) -> ClassMoments:
        return class_moments(type(self).__name__, blocks, n_classes, self.n_jobs)

    def _merge(self, a: ClassMoments, b: ClassMoments) -> ClassMoments:
        return merge_moments(a, b)

    def _stored(self) -> ClassMoments:
        return ClassMoments(self.class_count_, self.observed_, self.mean_, self.square_, self.certificate_.value)

    def _learn(self, sums: ClassMoments) -> float:
        K = len(self.classes_)
        self.class_count_, self.observed_, self.mean_, self.square_ = sums[:4]
        if self.priors is None:
            self.class_prior_ = self.class_count_ / self.class_count_.sum()
        else:
            self.class_prior_ = check_priors(type(self).__name__, "priors", self.priors, K)
        self.epsilon_ = float(self.var_smoothing * sums.total_variance.max())
        if self.prior is None:
            n = np.where(self.observed_ > 0, self.observed_, 1.0)
            self.theta_ = self.mean_.copy()
            self.var_ = self.square_ / n + self.epsilon_
        else:
            best = self.posterior().map()
            self.theta_ = np.array(best.mean)
            self.var_ = np.array(best.variance)
        self._require_spread()
        return sums.rounding

    def posterior(self) -> NormalInverseGamma:
        """Return the posterior of (θ, σ²), an array of shape (n_classes, n_features) of conjugate distributions.

        Without a prior it is that of Jeffreys' prior 1/σ², which needs two rows per class. What smoothing adds to a
        variance counts as spread that was seen.
        """
        n = self.observed_
        mean = self.mean_
        square = self.square_ + n * self.epsilon_
        if self.prior is None:
            few = (n <= 1.0) & (self.class_count_ > 0)[:, None]
            if few.any():
                k, j = np.argwhere(few)[0].tolist()
                raise DataError(
                    f"{type(self).__name__}: class {self.classes_.tolist()[k]!r} has a weight of {n[k, j]:g} in column "
                    f"{j}, too little for a posterior without a prior; pass one."
                )
            some = np.maximum(n, 2.0)
            return NormalInverseGamma(mean, some, 0.5 * (some - 1.0), 0.5 * np.maximum(square, np.finfo(float).tiny))
        return self._read_prior().update_moments(n, mean, square)

    def _read_prior(self) -> NormalInverseGamma:
        owner = type(self).__name__
        names = ("mean", "kappa", "shape", "rate")
        if set(self.prior) != set(names):
            raise ParameterError(f"{owner}: prior must have the keys {', '.join(names)}; got {sorted(self.prior)}.")
        prior = NormalInverseGamma(**self.prior)
        if prior.batch_shape not in ((), (1,), (self.n_features_in_,)):
            raise ParameterError(
                f"{owner}: prior must hold numbers, or {self.n_features_in_} of them, one per column; got shape "
                f"{prior.batch_shape}."
            )
        return prior

    def _require_spread(self) -> None:
        flat = (self.var_ <= 0) & (self.observed_ > 0)
        if flat.any():
            k, j = np.argwhere(flat)[0].tolist()
            raise DataError(
                f"{type(self).__name__}: column {j} is constant in class {self.classes_.tolist()[k]!r} (one sample, or "
                "all alike), so that its density is infinite; set var_smoothing > 0 or a prior, and leave out columns "
                "that are constant."
            )

    def _joint(self, X: Any) -> Array:
        log_prior = log_or_minus_inf(self.class_prior_)
        if self.integrate:
            return self._integrated(X, log_prior)
        seen = self.observed_ > 0  # a column never seen in a class says nothing about it
        var = np.where(seen, self.var_, 1.0)
        half_precision = np.where(seen, 0.5 / var, 0.0)
        half_log = np.where(seen, 0.5 * np.log(2 * np.pi * var), 0.0)
        constant = log_prior - half_log.sum(axis=1)

        def score(rows: Array, out: Array) -> None:
            normal_scores(rows, self.theta_, half_precision, constant, out)
            if np.isnan(out).any():
                observed_normal_scores(rows, self.theta_, half_precision, log_prior, half_log, out)

        return score_rows(X, len(self.classes_), score, self.n_jobs)

    def _integrated(self, X: Any, log_prior: Array) -> Array:
        predictive = self.posterior().predictive()
        df, loc, scale = (np.ascontiguousarray(a) for a in (predictive.df, predictive.loc, predictive.scale))
        each = gammaln(0.5 * (df + 1)) - gammaln(0.5 * df) - 0.5 * np.log(df * np.pi) - np.log(scale)

        def score(rows: Array, out: Array) -> None:
            student_scores(rows, loc, scale, df, log_prior, each, out)

        return score_rows(X, len(self.classes_), score, self.n_jobs)

    _laws = laws(
        law("var_ must be positive", lambda model: (model.var_[model.observed_ > 0] > 0).all(), "classes_"),
    )
