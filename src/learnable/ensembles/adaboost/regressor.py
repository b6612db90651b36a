"""AdaBoost.R2: a weighted median of regressors, each fitted to rows drawn in favour of those predicted badly.

    for t = 1 … T:   fit h_t to n rows drawn from D;   L_i = |y_i − h_t(x_i)| / max_j |y_j − h_t(x_j)|  (or its square,
    or 1 − e^{−L});   ε_t = Σ D_i L_i;   β_t = ε_t/(1 − ε_t);   D_i ∝ D_i β_t^{1 − L_i}.

The prediction is the median of h_t(x) under the weights log(1/β_t). Rounds end when ε_t ≥ ½. With L ∈ {0, 1} the
formulas are those of AdaBoost with full votes. There is no single objective behind them.

Reference: H. Drucker, Improving regressors using boosting techniques, ICML 1997.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sklearn.base import MetaEstimatorMixin, RegressorMixin, clone
from sklearn.utils.validation import check_is_fitted

from ...core import (
    Array,
    Certificate,
    Estimator,
    NDArray,
    Options,
    Run,
    fitted,
    law,
    laws,
    optional,
    param,
    passes,
    resolve_n_jobs,
)
from ...data.door import Table, door, read_features
from ...data.rows import take_rows
from ...data.sources import rowwise
from ...meta.binary import MODEL
from ...trees import Columns, DecisionTreeRegressor, GrowthRule, grow
from ...trees._random import seed_of
from ...trees.criteria import Target
from ...trees.layout import Trees, concatenate
from .._members import MemberSequence, check_models, member_tree, weighted_importances
from ..draws import Draw, draw_rows
from ..weak_learners import WeakLearning, as_given, remembering_container, seed_parts

#: Depth of the trees that `estimator=None` stands for.
DEPTH = 3
#: How far a mean loss, summed again, may be from the record.
RESIDUAL = 1e-9
_CHUNK_ROWS = 2**14


class AdaBoostRegressor(MemberSequence, RegressorMixin, MetaEstimatorMixin, WeakLearning, Estimator):
    """AdaBoost.R2: the weighted median of regressors, each fitted to rows drawn in favour of large errors.

    There is no objective that the rounds minimise, hence no λ. Trees take O(nd) memory and O(nd·depth) time per round.

    Examples
    --------
    >>> from learnable import AdaBoostRegressor
    >>> X, y = [[float(i)] for i in range(20)], [float(i > 9) for i in range(20)]
    >>> model = AdaBoostRegressor(n_estimators=5, random_state=0).fit(X, y)
    >>> model.predict([[2.0], [17.0]]).tolist()
    [0.0, 1.0]
    """

    _theory = "adaboost-regression"

    estimator: Any = param(
        optional(MODEL),
        "The regressor; None: regression trees of depth three, by squared error.",
        default=None,
        kw_only=False,
    )
    loss: str = param(
        Options("linear", "square", "exponential"),
        "L as a function of the error's share of the largest error.",
        default="linear",
    )

    estimator_weights_: Array = fitted("(n_learners,)", "log(1/β_t) times the learning rate.", kind="f8", low=0.0)
    trees_: Trees | None = fitted("Trees or None", "All trees as flat arrays.")
    certificate_: Certificate = fitted(
        "Certificate",
        "`closed-form`: how far errors and weights are from what follows from the data and the regressors. The fits of "
        "the regressors are not judged.",
    )

    _door = staticmethod(remembering_container(door(target="numeric")))

    def _fit(self, table: Table, run: Run) -> Certificate:
        table.require_memory(
            "AdaBoostRegressor: every round draws rows, so they have to fit into memory; read the table."
        )
        n = table.n_rows
        y = table.y
        seed = seed_of(self.random_state)
        self.seed_ = seed
        fit_one = self._tree_learner(table, seed, run) if self.estimator is None else self._model_learner(table, seed)
        log_D = np.zeros(n) if table.weight is None else np.log(table.weight)
        learners: list[Any] = []
        weights: list[float] = []
        errors: list[float] = []
        while len(learners) < self.n_estimators:
            if run.progress(len(learners) + 1, errors[-1] if errors else 1.0) and learners:
                break
            D = normalised(log_D)
            learner, predicted = fit_one(draw_rows(Draw(seed, n, n, True, D), len(learners)), len(learners))
            L = relative_losses(y, predicted, self.loss)
            error = float(D @ L)
            if error >= 0.5 and learners:
                break
            learners.append(learner)
            errors.append(error)
            weights.append(round_weight(error, self.learning_rate, weights))
            if not 0.0 < error < 0.5:  # without error, or alone and of no use
                break
            log_D = log_D + (1.0 - L) * self.learning_rate * np.log(error / (1.0 - error))
        self.trees_ = concatenate(learners) if self.estimator is None else None
        self.models_ = None if self.estimator is None else learners
        self.estimator_weights_ = np.array(weights)
        self.estimator_errors_ = np.array(errors)
        return Certificate("closed-form", 0.0, RESIDUAL, None, len(learners), by_construction=True)

    def _tree_learner(self, table: Table, seed: int, run: Run) -> Callable[..., tuple[Any, Array]]:
        threads = resolve_n_jobs(self.n_jobs)
        columns = Columns.build(table.X, n_threads=threads)
        target = Target.numbers(table.y)
        rule = GrowthRule(max_depth=DEPTH)

        def fit(rows: NDArray[np.int64], number: int) -> tuple[Trees, Array]:
            tree = grow(columns, target, rule, rows=rows, seed=tree_seed(seed, number), n_threads=threads).tree
            return tree, tree.sum(table.X, self.n_jobs)[:, 0]

        return fit

    def _model_learner(self, table: Table, seed: int) -> Callable[..., tuple[Any, Array]]:
        def fit(rows: NDArray[np.int64], number: int) -> tuple[Any, Array]:
            model = clone(self.estimator)
            seed_parts(model, seed, number)
            model.fit(as_given(self, take_rows(table.X, rows)), table.y[rows])
            return model, np.asarray(model.predict(table.X), dtype=np.float64).ravel()

        return fit

    @property
    def estimator_(self) -> Any:
        """The regressor, unfitted."""
        check_is_fitted(self)
        return DecisionTreeRegressor(max_depth=DEPTH) if self.estimator is None else clone(self.estimator)

    @property
    def estimators_(self) -> list[Any]:
        """The fitted regressors; the ensemble is a sequence of them."""
        check_is_fitted(self)
        return list(self.models_ or []) if self.trees_ is None else self._kept(self.trees_, self._members_of_trees)

    def _members_of_trees(self) -> list[Any]:
        template = self.estimator_
        d = self.n_features_in_
        members = []
        for number in range(self.estimator_weights_.size):
            state = tree_seed(self.seed_, number) % 2**31
            members.append(member_tree(template, self.trees_.tree(number), state, d, 1))  # type: ignore[union-attr]
            members[-1].max_features_ = d
        return members

    @property
    def feature_importances_(self) -> Array:
        """Mean of the learners' importances, weighted by `estimator_weights_`."""
        return weighted_importances(self)

    @rowwise
    def predict(self, X: Any) -> Array:
        """Return the weighted median of the learners' predictions."""
        return weighted_median(self._predictions(X), self.estimator_weights_)

    def staged_predict(self, X: Any) -> Iterator[Array]:
        """Yield the predictions of the first learner, of the first two, and so on."""
        found = self._predictions(X)
        for t in range(1, found.shape[1] + 1):
            yield weighted_median(found[:, :t], self.estimator_weights_[:t])

    def staged_score(self, X: Any, y: Any, sample_weight: Any = None) -> Iterator[float]:
        """Yield R² of the first learner, of the first two, and so on."""
        from sklearn.metrics import r2_score

        for predicted in self.staged_predict(X):
            yield float(r2_score(y, predicted, sample_weight=sample_weight))

    def _predictions(self, X: Any) -> Array:
        """Return what every learner predicts, (n, T)."""
        X = read_features(self, X)
        if self.trees_ is None:
            return np.column_stack([np.asarray(model.predict(X)).ravel() for model in self.models_ or []])
        leaves = self.trees_.apply(X, self.n_jobs) + self.trees_.start[:-1]
        return self.trees_.value[:, 0][leaves]

    _laws = laws(
        law(
            "{owner}: trees_ must hold one tree for each weight",
            lambda m: (
                m.estimator is not None
                or (
                    isinstance(m.trees_, Trees)
                    and m.trees_.n_trees == m.estimator_weights_.size
                    and m.models_ is None
                    and passes(m.trees_.check, m.n_features_in_, 1)
                )
            ),
        ),
        law(
            "{owner}: models_ must hold one model for each weight",
            lambda m: (
                m.estimator is None
                or (
                    isinstance(m.models_, list)
                    and len(m.models_) == m.estimator_weights_.size
                    and m.trees_ is None
                    and passes(check_models, "AdaBoostRegressor", m.models_, m.estimator, m.n_features_in_)
                )
            ),
        ),
    )


def tree_seed(seed: int, number: int) -> int:
    """Return the seed of one tree."""
    return seed % 2**31 + number


def normalised(log_weights: Array) -> Array:
    """Return e^{log_weights}, divided by its sum."""
    D = np.exp(log_weights - log_weights.max())
    return D / D.sum()


def relative_losses(y: Array, predicted: Array, loss: str) -> Array:
    """Return L of every row: its error as a share of the largest, squared or exponential if so chosen."""
    error = np.abs(predicted - y)
    largest = error.max()
    L = error / largest if largest > 0 else error
    return np.asarray({"linear": L, "square": L**2, "exponential": 1.0 - np.exp(-L)}[loss])


def round_weight(error: float, learning_rate: float, before: list[float]) -> float:
    """Return the weight of a regressor: one without error outweighs all others; one of no use is alone."""
    if error <= 0.0:
        return sum(before) + 1.0
    return learning_rate * float(np.log((1.0 - error) / error)) if error < 0.5 else 1.0


def weighted_median(predictions: Array, weights: Array) -> Array:
    """Return for each row the smallest prediction up to which lies at least half of the weight.

    Examples
    --------
    >>> import numpy as np
    >>> weighted_median(np.array([[3.0, 1.0, 2.0]]), np.array([1.0, 1.0, 5.0]))
    array([2.])
    """
    found = np.empty(len(predictions))
    for start in range(0, len(predictions), _CHUNK_ROWS):
        part = predictions[start : start + _CHUNK_ROWS]
        order = np.argsort(part, axis=1)
        below = np.cumsum(weights[order], axis=1)
        middle = (below >= 0.5 * below[:, -1:]).argmax(axis=1)
        rows = np.arange(len(part))
        found[start : start + _CHUNK_ROWS] = part[rows, order[rows, middle]]
    return found
