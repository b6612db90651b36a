r"""Best subset logistic regression: the best k columns of two classes, proven.

    min_{b, β}  Σᵢ wᵢ (log(1 + e^{zᵢ}) − yᵢzᵢ) + ½α‖β‖²,   zᵢ = b + xᵢᵀβ,   subject to  ‖β‖₀ ≤ k,

by the tree of perspective relaxations (`relaxation`), whose bounds are duals of the logistic loss. α > 0 keeps
coefficients bounded, also where the classes are separable.

Reference: A. Dedieu, H. Hazimeh and R. Mazumder, Learning sparse classifiers, JMLR 22, 2021.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import expit

from ...core import (
    TOLERANCE,
    AnyArray,
    Certificate,
    DataError,
    NDArray,
    Number,
    Options,
    Run,
    fitted,
    law,
    laws,
    param,
    tags,
)
from ...data.door import Table, class_weights, door, refuse_extreme_sizes
from ...data.sources import rowwise
from ..base import LinearClassifierModel
from .best_subset import COLUMNS, GROUPS, SIZES, BestSubset, penalty_of
from .compressed import column_numbers
from .grouped import gap_of, required_units, store_proof, units_of
from .relaxation import LogisticLoss, Tree, search


class BestSubsetClassifier(LinearClassifierModel):
    r"""Best subset of a logistic regression: minimise Σᵢ wᵢ ℓ(yᵢ, b + xᵢᵀβ) + ½α‖β‖² over k columns, exactly.

    In the form n⁻¹ΣV + λΩ (V the cross-entropy, Ω = ‖β‖₀) a size k stands for a range of λ. Two classes. Groups of
    columns are in or out together; `size` then counts groups. With `size=None` every size is solved and the one with
    the least 2·objective + c·(number of columns) kept. Time exponential in the number of columns at worst; with
    `max_seconds` the best so far is kept with the gap that is proven. Memory: O(np) and one row per leaf of the tree.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable import BestSubsetClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 6))
    >>> y = X[:, 1] - 2 * X[:, 4] + 0.5 * rng.normal(size=100) > 0
    >>> model = BestSubsetClassifier(size=2).fit(X, y)
    >>> np.flatnonzero(model.support_).tolist(), model.certificate_.kind, model.certificate_.holds
    ([1, 4], 'gap', True)
    """

    _theory = "best-subset"

    size: Any = param(SIZES, "k; or (smallest, largest); or None for all sizes.", default=None, kw_only=False)
    criterion: str = param(Options("bic", "aic"), "What chooses among several sizes.", default="bic")
    alpha: float = param(Number(low=0.0, low_open=True), "α > 0, the ridge penalty.", default=1.0)
    required: Any = param(COLUMNS, "Columns, by number or name, that every subset contains.", default=None)
    groups: Any = param(GROUPS, "Lists of columns that are in or out together.", default=None)
    tol: float = param(TOLERANCE, "Relative gap up to which a branch is not searched.", default=1e-7)
    support_: Any = fitted("(n_features,)", "The chosen columns.", kind="b")
    sizes_: Any = fitted("(n_sizes,)", "The sizes that were solved.", kind="iu", low=0)
    subsets_: Any = fitted("(n_sizes, n_features)", "The best columns of each size.", kind="b")
    objective_path_: Any = fitted("(n_sizes,)", "Their objectives.", low=0.0)
    proof_: Any = fitted(
        "(n_steps,)",
        "The trees, one per size: a group that is split (with it first), or −1 for a leaf.",
        kind="iu",
        low=-1,
    )
    leaves_: Any = fitted("(n_leaves, n_groups)", "The z from which each leaf's bound follows.", low=0.0, high=1.0)
    certificate_: Certificate = fitted("Certificate", "`gap` to the best of each size, relative to it.")

    _door = staticmethod(door(target="classes"))
    _remedy = "raise max_seconds, ask for fewer sizes, or raise alpha"
    _iterates = True
    verbose = 0
    warm_start = False
    _range = BestSubset._range
    _tags = tags(multi_class=False)

    def _fit(self, table: Table, run: Run) -> Certificate:
        owner = type(self).__name__
        table.require_memory(f"{owner}: needs the rows in memory; read the table.")
        self.classes_ = np.asarray(table.classes)
        if len(self.classes_) > 2:
            raise DataError(
                f"{owner}: Only binary classification is supported. The type of the target is multiclass: it has "
                f"{len(self.classes_)} classes. Use OneVsRestClassifier."
            )
        refuse_extreme_sizes(table.X, table.weight, owner)
        required = column_numbers(owner, "required", self.required, self)
        units = units_of(owner, self, table.n_columns)
        inside = required_units(units, required)
        weight = np.ones(table.n_rows) if table.weight is None else table.weight
        of_class = class_weights(table, self.class_weight, owner)
        if of_class is not None:
            weight = weight * of_class[table.y]
        X = np.asarray(table.X.toarray() if hasattr(table.X, "toarray") else table.X, dtype=np.float64)
        centre = weight @ X / weight.sum() if self.fit_intercept else np.zeros(X.shape[1])
        loss = LogisticLoss(X - centre, table.y.astype(float), weight, self.alpha, units, self.fit_intercept)
        loss.halted = run.should_stop
        low, high = self._range(len(units), len(inside))
        trees: list[Tree] = []
        start = inside
        for size in range(low, high + 1):
            if trees and run.should_stop():
                break
            trees.append(search(loss, size, inside, start, self.tol, run.progress))
            start = trees[-1].chosen
        self._keep(loss, trees, centre, np.arange(low, low + len(trees)))
        value = max(gap_of(tree, loss.scale) for tree in trees)
        if len(trees) <= high - low:  # some sizes were not reached
            value = float(np.inf)
        return Certificate("gap", value, self.tol, value, max(1, sum(tree.nodes for tree in trees)))

    def _keep(self, loss: LogisticLoss, trees: list[Tree], centre: AnyArray, sizes: NDArray[np.intp]) -> None:
        subsets = np.zeros((len(trees), len(centre)), dtype=bool)
        for row, tree in enumerate(trees):
            subsets[row, loss.columns(tree.chosen)] = True
        values = np.array([tree.value for tree in trees])
        factor = penalty_of(self.criterion, float(loss.weight.sum()))
        chosen = int(np.argmin(2.0 * values + factor * subsets.sum(axis=1)))
        beta = trees[chosen].beta
        self.coef_ = beta[None, :-1].copy()
        self.intercept_ = np.array([beta[-1] - centre @ beta[:-1]])
        self.sizes_ = sizes
        self.subsets_ = subsets
        self.objective_path_ = np.maximum(values, 0.0)
        self.support_ = subsets[chosen].copy()
        store_proof(self, trees, len(loss.units))

    @rowwise
    def predict_proba(self, X: Any) -> AnyArray:
        """Return the probability of each class, in the order of `classes_`."""
        scores = self.decision_function(X)
        return np.column_stack([expit(-scores), expit(scores)])

    @rowwise
    def predict_log_proba(self, X: Any) -> AnyArray:
        """Return the logarithm of `predict_proba`."""
        scores = self.decision_function(X)
        return np.column_stack([-np.logaddexp(0.0, scores), -np.logaddexp(0.0, -scores)])

    _laws = laws(
        law(
            "proof_ names a column or group that the model does not have",
            lambda model: model.proof_.max(initial=-1) < model.n_features_in_,
            "proof_",
        ),
    )
