r"""Bayes' rule with any density for each class.

    P(class k | x) ∝ π_k p_k(x),    p_k fitted to the rows of class k alone

p_k may be a family of distributions (fitted by maximum likelihood), a conjugate prior (whose posterior predictive is
taken), a distribution that is known, or an estimator of a density with `score_samples`, such as a mixture. A family on
the line is taken for each column, independently: naive Bayes with that family.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from .. import probability
from ..core import Array, Certificate, DataError, Matches, ParameterError, Run, fitted, law, laws, param
from ..data.blocks import Block, add_each, map_reduce
from ..data.door import Table, door
from ..probability import Distribution, ExponentialFamily, MultivariateNormal, Normal
from ..probability.conjugate.base import Conjugate
from .base import PRIORS, TOLERANCE, DensityModel, check_priors, log_or_minus_inf, score_rows
from .moments import class_moments, class_scatter

_KINDS = "a family of learnable.probability or its name, a distribution, a conjugate prior, an estimator of a density"


def _is_density(value: Any) -> bool:
    if isinstance(value, str):
        return _family(value) is not None
    if isinstance(value, type):
        return issubclass(value, Distribution)
    return isinstance(value, (Distribution, Conjugate)) or (hasattr(value, "fit") and hasattr(value, "score_samples"))


def _family(name: str) -> Any:
    found = getattr(probability, name, None) if name in dir(probability) else None
    return found if isinstance(found, type) and issubclass(found, Distribution) else None


class GenerativeClassifier(DensityModel):
    """The Bayes classifier of densities that are fitted to each class.

    A family of exponential type is fitted from sums over the rows, in memory, in files and on Dask; other densities
    need the rows of a class in memory.

    Examples
    --------
    >>> from learnable import GenerativeClassifier
    >>> X, y = [[1, 0], [2, 1], [0, 1], [7, 4], [6, 3], [9, 5]], ["few", "few", "few", "many", "many", "many"]
    >>> model = GenerativeClassifier("Poisson").fit(X, y)
    >>> model.predict([[2, 2], [5, 4]])
    array(['few', 'many'], dtype='<U4')
    >>> model.densities()[0]
    Poisson(rate=[1.    , 0.6667])
    """

    _theory = "plug-in"

    density: Any = param(
        Matches(
            lambda v: all(map(_is_density, v.values())) and bool(v) if isinstance(v, dict) else _is_density(v),
            f"{_KINDS}, or a dict of these by label",
        ),
        "The density of a class: the name of a family in `learnable.probability` or its class; a "
        "distribution, which is taken as known; a conjugate prior; or an estimator with `fit(X)` and "
        "`score_samples(X)`, which is cloned. A dict gives each label its own.",
        default="Normal",
        kw_only=False,
    )
    priors: Any = param(PRIORS, "Class probabilities; by default the shares of the classes.", default=None)
    class_count_: Array = fitted("(n_classes,)", "Weight of the rows of each class.")
    class_prior_: Array = fitted("(n_classes,)", "π.")
    fitted_: Any = fitted(
        "list",
        "What was fitted to each class: an estimator, or family and parameters; `densities()` returns it as objects.",
    )
    certificate_: Certificate = fitted(
        "Certificate",
        "For exponential families, how far the mean statistics of the densities are from those of the rows: "
        "zero at the maximum of the likelihood. Nothing is proven of other densities.",
    )

    _door = staticmethod(door(target="classes", sparse=False))

    def _fit(self, table: Table, run: Run) -> Certificate:
        self.classes_ = np.asarray(table.classes)
        wanted = self._wanted()
        families = {density for density in wanted if isinstance(density, type)}
        summed = len(families) == 1 and len(wanted) == sum(isinstance(density, type) for density in wanted)
        family = next(iter(families)) if summed else None
        if family is not None and issubclass(family, ExponentialFamily):
            densities = self._fit_sums(table, family)
        else:
            part = table.blocks.joined()
            self.class_count_ = np.bincount(part.y, part.weight, len(wanted)).astype(np.float64)
            densities = [self._fit_rows(density, part, k) for k, density in enumerate(wanted)]
        self.fitted_ = [_as_record(density) for density in densities]
        if self.priors is None:
            self.class_prior_ = self.class_count_ / self.class_count_.sum()
        else:
            self.class_prior_ = check_priors(type(self).__name__, "priors", self.priors, len(wanted))
        if family is None or not issubclass(family, ExponentialFamily):
            return Certificate("none", 0.0, 0.0)
        return Certificate("closed-form", self._residual(table.blocks, densities), TOLERANCE)

    def _wanted(self) -> list[Any]:
        """Return the density of each class, families as classes."""
        if isinstance(self.density, dict):
            missing = [label for label in self.classes_.tolist() if label not in self.density]
            if missing:
                raise ParameterError(f"{type(self).__name__}: density has no entry for the class {missing[0]!r}.")
            wanted = [self.density[label] for label in self.classes_.tolist()]
        else:
            wanted = [self.density] * len(self.classes_)
        return [_family(density) if isinstance(density, str) else density for density in wanted]

    def _fit_sums(self, table: Table, family: Any) -> list[Any]:
        """Return the densities of greatest likelihood, from sums over the rows of each class."""
        owner = type(self).__name__
        K = len(self.classes_)
        if issubclass(family, MultivariateNormal):
            found = class_scatter(owner, table.blocks, K, pooled=False, n_jobs=self.n_jobs)
            self.class_count_ = found.weight
            return [self._build(k, family, m, S / n) for k, (n, m, S) in enumerate(zip(*found[:3], strict=True))]
        if issubclass(family, Normal):
            moments = class_moments(owner, table.blocks, K, self.n_jobs)
            self.class_count_ = moments.weight
            spread = np.sqrt(moments.square / moments.observed)
            return [self._build(k, family, m, s) for k, (m, s) in enumerate(zip(moments.mean, spread, strict=True))]
        if table.in_memory:
            part = table.blocks.joined()
            self.class_count_ = np.bincount(part.y, part.weight, K).astype(np.float64)
            return [self._fit_rows(family, part, k) for k in range(K)]
        example = self._call(0, family.fit_mle, table.blocks.head().X)  # lends its t(x), which all members share
        statistic = partial(_class_statistics, member=example, n_classes=K)
        count, total = map_reduce(table.blocks, statistic, add_each, n_jobs=self.n_jobs)
        self.class_count_ = count
        return [self._call(k, family.from_mean_statistic, total[k] / count[k], **example.known) for k in range(K)]

    def _fit_rows(self, density: Any, part: Any, k: int) -> Any:
        """Return the density of one class from its rows."""
        if isinstance(density, Distribution):
            return density
        mine = part.y == k
        X = np.asarray(part.X[mine], dtype=np.float64)
        weight = None if part.weight is None else part.weight[mine]
        if isinstance(density, type):
            return self._call(k, density.fit_mle, X, weight)  # type: ignore[attr-defined]
        if isinstance(density, Conjugate):
            return self._call(k, lambda: density.update(X, weight).predictive())
        estimator = clone(density)
        if weight is None or np.ptp(weight) == 0:
            return estimator.fit(X)
        if not has_fit_parameter(estimator, "sample_weight"):
            raise DataError(
                f"{type(self).__name__}: {type(estimator).__name__} takes no weights; leave out sample_weight."
            )
        return estimator.fit(X, sample_weight=weight)

    def _build(self, k: int, family: Any, *parameters: Array) -> Any:
        flat = parameters[-1] <= 0 if parameters[-1].ndim == 1 else np.diag(parameters[-1]) <= 0
        if flat.any():
            raise DataError(
                f"{type(self).__name__}: column {int(np.argmax(flat))} is constant in class "
                f"{self.classes_.tolist()[k]!r}, so that its density is infinite; leave it out, or use GaussianNB."
            )
        return self._call(k, family, *parameters)

    def _call(self, k: int, function: Any, *args: Any, **kwargs: Any) -> Any:
        """Return a density; what is wrong with the rows of its class is said in this estimator's name."""
        try:
            return function(*args, **kwargs)
        except (DataError, ParameterError) as error:
            label = self.classes_.tolist()[k]
            raise DataError(f"{type(self).__name__}: class {label!r} has no such density: {error}") from None

    def _residual(self, blocks: Any, densities: list[Any]) -> float:
        """Return the largest distance of the densities' mean statistics from those of the rows, relative to them."""
        statistic = partial(_class_statistics, member=densities[0], n_classes=len(densities))
        count, total = map_reduce(blocks, statistic, add_each, n_jobs=self.n_jobs)
        worst = 0.0
        for k, density in enumerate(densities):
            goal = total[k] / count[k]
            size = np.abs(goal).max(axis=-1, keepdims=True) + 1e-300
            worst = max(worst, float(np.max(np.abs(density.mean_statistic - goal) / size)))
        return worst

    def densities(self) -> list[Any]:
        """Return the density of each class: distributions, or fitted estimators."""
        check_is_fitted(self)
        return [_from_record(record) for record in self.fitted_]

    def _joint(self, X: Any) -> Array:
        log_prior = log_or_minus_inf(self.class_prior_)
        densities = self.densities()

        def score(rows: Array, out: Array) -> None:
            for k, density in enumerate(densities):
                out[:, k] = log_prior[k] + log_density(density, rows)

        threads = self.n_jobs if all(isinstance(density, Distribution) for density in densities) else 1
        return score_rows(X, len(densities), score, threads)

    _laws = laws(
        law(
            "fitted_ must be a list of one density per class",
            lambda model: isinstance(model.fitted_, list) and len(model.fitted_) == len(model.classes_),
            "classes_",
        ),
        law(
            "fitted_ must hold families with parameters, or estimators of densities",
            lambda model: all(
                isinstance(density, Distribution) or hasattr(density, "score_samples")
                for density in map(_from_record, model.fitted_)
            ),
            "classes_",
        ),
    )


def log_density(density: Any, X: Array) -> Array:
    """Return the logarithm of a density at every row; of one on the line, that of independent columns."""
    if not isinstance(density, Distribution):
        return np.asarray(density.score_samples(X), dtype=np.float64)
    if len(density.event_shape) == 1:
        return np.asarray(density.logpdf(X))
    return np.asarray(density.logpdf(X)).sum(axis=1)


def _as_record(density: Any) -> Any:
    """Return a distribution as its family's name and parameters, which a model file can hold."""
    name = type(density).__name__
    if not isinstance(density, Distribution) or _family(name) is not type(density):
        return density
    return {"family": name, "parameters": {key: np.array(value) for key, value in density.parameters.items()}}


def _from_record(record: Any) -> Any:
    if not isinstance(record, dict):
        return record
    family = _family(record["family"])
    if family is None:
        raise ParameterError(f"{record['family']!r} is no family of learnable.probability")
    return family(**record["parameters"])


def _class_statistics(block: Block, member: Any, n_classes: int) -> tuple[Array, Array]:
    """Return the weights of the classes and the sums of t(x) over their rows."""
    count = np.bincount(block.y, block.weight, n_classes).astype(np.float64)  # type: ignore[arg-type]
    if np.isneginf(member.log_base_measure(block.X)).any():
        raise DataError(f"GenerativeClassifier: X holds rows that are impossible: they must be {member._support}.")
    found = []
    for k in range(n_classes):
        mine = np.asarray(block.y) == k
        weight = None if block.weight is None else block.weight[mine]
        found.append(member.sum_statistic(block.X[mine], weight)[1] if mine.any() else None)
    shape = next(total.shape for total in found if total is not None)
    return count, np.stack([np.zeros(shape) if total is None else total for total in found])
