"""Independent checks of bagged models and forests, in plain NumPy.

Bagging: draw every bag again from the seed, and have the checker of the member, which shares no code with its fit,
recompute its certificate on the bag.

Forests: draw the bags again, and walk every tree again from its root, with the rows of its own bag; what is recomputed
and compared is said in `learnable.trees.verify`. The targets that a regressor keeps of its leaves and the out-of-bag
figures are compared as well. Cost: O(T · depth · m · n log n) for m candidate columns per node, some ten times that of
the fit.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.utils.validation import has_fit_parameter

from ..core import Array, DataError, NDArray, Recheck, VerificationError, flaw_of
from ..data.checking import read_table
from ..data.rows import take_columns, take_rows
from ..meta.verify import check_members
from ..trees.verify import (
    AGREE,
    Limits,
    Rules,
    TreeWalk,
    bin_numbers,
    flaw_of_tree,
    labels_of,
    stated_categories,
    stated_limits,
)
from ..trees.verify_scores import scores_for

Ids = NDArray[np.int64]


def bagging(model: Any, X: Any, y: Any, sample_weight: Any) -> Recheck:
    """Recompute the certificate of a BaggingClassifier or BaggingRegressor: those of all its members."""
    try:
        again = type(model)(estimator=model.estimator)
        table = again._read(X, y, sample_weight)
    except DataError as error:
        raise VerificationError(f"verify: the data are not the table of the fit: {error}") from error
    wrong = []
    classes = getattr(model, "classes_", np.array([], dtype=np.int64))
    if table.classes is not None and table.classes.tolist() != classes.tolist():
        wrong.append(f"the data have the labels {table.classes.tolist()[:10]}")
    weight = model.sample_weight_
    if len(table.y) != model.n_samples_ or again.n_features_in_ != model.n_features_in_:
        wrong.append(f"the data have {len(table.y)} rows and {again.n_features_in_} columns")
    elif (weight is None) != (table.weight is None) or not (weight is None or np.array_equal(weight, table.weight)):
        wrong.append("the weights are others")
    if not wrong and (flaw := _flaw_of(model)):
        wrong.append(flaw)
    if wrong:
        return Recheck(np.inf, 0.0, f"{model.certificate_.fingerprint}, but {wrong[0]}")

    def members() -> Iterator[tuple[str, Any, Any, Any, Any]]:
        weighs = bool(getattr(model, "counted_", has_fit_parameter(model.estimator_, "sample_weight")))
        for number, inner in enumerate(model.estimators_):
            rows = model._bag(number)
            counts = None
            if weighs:  # a row that was drawn twice entered as one row of weight two
                rows, counts = np.unique(rows, return_counts=True)
            X = take_columns(take_rows(table.X, rows), model.estimators_features_[number])
            if table.container is not None and not isinstance(X, table.container):
                X = table.container(X)
            weight = None if counts is None or (counts == 1).all() else counts.astype(np.float64)
            yield f"number {number}", inner, X, table.y[rows], weight

    found = check_members(model.certificate_, members(), classes, wrong)
    if found.fingerprint != model.certificate_.fingerprint or not np.isfinite(found.value):
        return found
    if model.oob_score and (flaw := _flaw_out_of_bag(model, table)):
        return Recheck(np.inf, 0.0, f"{model.certificate_.fingerprint}, but {flaw}")
    return found


def _flaw_of(model: Any) -> str:
    """Say what is wrong with the number of members, and with their columns, which are drawn again."""
    if flaw := flaw_of([model]):
        return flaw
    if len(model.estimators_) != model.n_estimators:
        return f"there are {len(model.estimators_)} members, not {model.n_estimators}"
    drawn = [model._columns(member) for member in range(model.n_estimators)]
    same = all(np.array_equal(*pair) for pair in zip(drawn, model.estimators_features_, strict=True))
    return "" if same else "the columns of a member are others"


def _flaw_out_of_bag(model: Any, table: Any) -> str:
    """Say what is wrong with the out-of-bag figures: the members' answers are added up again."""
    name = "oob_decision_function_" if table.classes is not None else "oob_prediction_"
    shown = getattr(model, name, None)
    n = len(table.y)
    total = np.zeros((n, len(table.classes)) if table.classes is not None else table.y.shape)
    voters = np.zeros(n)
    if not isinstance(shown, np.ndarray) or shown.shape != total.shape:
        return "the out-of-bag predictions are not there"
    for inner, rows, X in model._out_of_bag(table):
        if table.classes is None:
            total[rows] += np.asarray(inner.predict(X)).reshape(total[rows].shape)
        elif hasattr(inner, "predict_proba"):
            total[np.ix_(rows, np.asarray(inner.classes_, dtype=np.int64))] += inner.predict_proba(X)
        else:
            total[rows, np.asarray(inner.predict(X), dtype=np.int64)] += 1.0
        voters[rows] += 1.0
    wanted = (total.T / np.where(voters > 0, voters, np.nan)).T
    size = float(np.abs(total).max(initial=0.0)) or 1.0
    if not np.allclose(shown, wanted, rtol=0.0, atol=1e-9 * size, equal_nan=True):
        return "the out-of-bag predictions are others"
    judged = voters > 0 if table.weight is None else (voters > 0) & (table.weight > 0)
    if table.classes is not None:
        score = float(np.mean(shown[judged].argmax(axis=1) == table.y[judged]))
    else:
        score = r_squared(table.y[judged], shown[judged]) if judged.sum() > 1 else np.nan
    near = np.isclose(score, model.oob_score_, rtol=1e-9, atol=1e-9, equal_nan=True)
    return "" if near else f"oob_score_ is {model.oob_score_:.6g}, not {score:.6g}"


def forest(model: Any, X: Any, y: Any, sample_weight: Any) -> Recheck:
    """Recompute the certificate of a random forest or of extremely randomised trees."""
    table = read_table(model, X, y, sample_weight, again=model._draft())
    n = table.n_rows
    d = table.n_columns
    if table.fingerprint != model.certificate_.fingerprint or (n, d) != (model.n_samples_, model.n_features_in_):
        return Recheck(np.inf, 0.0, table.fingerprint)
    labels = labels_of(table.classes)
    shown = labels_of(getattr(model, "classes_", None))
    if [own.tolist() for own in labels] != [own.tolist() for own in shown]:
        return Recheck(np.inf, 0.0, f"{table.fingerprint}, but the labels are others")
    weight = model._row_weight(table)
    if flaw := flaw_of_tree(model, table) or _flaw_of_bags(model, table, weight):
        return Recheck(np.inf, 0.0, f"{table.fingerprint}, but {flaw}")
    categorical = stated_categories(model, d)
    values = table.X if model.max_bins is None else bin_numbers(table.X, model.max_bins, categorical)
    rules = Rules(_limits(model, table, weight), categorical, model.ccp_alpha == 0)
    worst = 0.0
    judge = OutOfBag(model, table)
    for number in range(model.trees_.n_trees):
        w, rows = _weights(model, table, weight, number)
        scores = scores_for(model.criterion, table.y, [len(own) for own in labels], w)
        tree = model.trees_.tree(number)
        walked = TreeWalk(tree, table.X, values, w, scores, rules, _tree_seed(model.seed_, number))
        worst = max(worst, walked.shortfall())
        if worst > 1.0:
            return Recheck(np.inf, AGREE, table.fingerprint)
        judge.add(tree.value, walked, w > 0)
        if not labels and not _holds_targets(model, table, number, rows, walked.leaf):
            return Recheck(
                np.inf, 0.0, f"{table.fingerprint}, but the targets in the leaves of tree {number} are others"
            )
    if flaw := judge.flaw():
        return Recheck(np.inf, 0.0, f"{table.fingerprint}, but {flaw}")
    return Recheck(worst, AGREE, table.fingerprint)


def _limits(model: Any, table: Any, weight: Array | None) -> Limits:
    """Return what stops the trees; the whole of a bag weighs as much as it has draws."""
    if model.max_samples_ is None:
        return stated_limits(model, table, weight, model._splitter)
    limits = stated_limits(model, table, None, model._splitter)
    return limits._replace(min_weight_leaf=model.min_weight_fraction_leaf * model.max_samples_)


def _tree_seed(seed: int, number: int) -> int:
    """Return the seed of the columns and thresholds that one tree draws: that of a decision tree with its state."""
    state = int(np.random.SeedSequence([seed, number]).generate_state(1)[0] >> 1)
    return int(np.random.SeedSequence(state).generate_state(1, np.uint64)[0] >> np.uint64(1))


def drawn_rows(seed: int, member: int, n_rows: int, n_drawn: int, weight: Array | None) -> Ids:
    """Return the rows of one bootstrap bag, sorted; with weights, drawn in proportion to them."""
    rng = np.random.default_rng([seed, member, 0])
    if weight is None:
        return np.sort(rng.integers(n_rows, size=n_drawn))
    return np.sort(rng.choice(n_rows, n_drawn, p=weight / weight.sum()))


def _flaw_of_bags(model: Any, table: Any, weight: Array | None) -> str:
    """Say what is wrong with the number of trees, and with the weights that rows are drawn or counted by."""
    if model.trees_.n_trees != model.certificate_.n_iter:
        return f"there are {model.trees_.n_trees} trees, not {model.certificate_.n_iter}"
    held = [model.sample_weight_]
    if table.classes is None and not model.bootstrap:
        held.append(model.leaves_.weight)
    if not all(own is weight is None or (weight is not None and np.array_equal(own, weight)) for own in held):
        return "the weights are others"
    if table.classes is None and model.bootstrap and model.leaves_.weight is not None:
        return "rows are drawn by their weights, yet they are weighed again"
    return ""


class OutOfBag:
    """What the trees say of the rows that they have not seen, added up again.

    Parameters
    ----------
    model : forest
        Fitted.
    table : Table
        Its table.
    """

    def __init__(self, model: Any, table: Any) -> None:
        self.model = model
        self.table = table
        self.asked = bool(model.oob_score) and model.max_samples_ is not None
        self.total = np.zeros((table.n_rows, model.trees_.value.shape[1]))
        self.voters = np.zeros(table.n_rows)

    def add(self, value: Array, walk: TreeWalk, seen: NDArray[np.bool_]) -> None:
        """Add one tree."""
        if self.asked:
            unseen = np.flatnonzero(~seen)
            self.total[unseen] += value[walk.leaves_of_all()[unseen]]
            self.voters[unseen] += 1

    def flaw(self) -> str:
        """Say what is wrong with the model's out-of-bag figures."""
        if not self.asked:
            return ""
        model = self.model
        y = self.table.y
        shown = getattr(model, "oob_decision_function_" if self.table.classes is not None else "oob_prediction_", None)
        if not isinstance(shown, np.ndarray) or len(shown) != len(y):
            return "the out-of-bag predictions are not there"
        judged = self.voters > 0
        wanted = self.total / np.where(judged, self.voters, np.nan)[:, None]
        flat = shown
        if self.table.classes is not None and shown.ndim == 3:  # (n, K, m) is shown of m targets
            flat = shown.transpose(0, 2, 1)
        size = float(np.abs(self.total).max(initial=0.0)) or 1.0
        if not np.allclose(flat.reshape(len(y), -1), wanted, rtol=0.0, atol=AGREE * size, equal_nan=True):
            return "the out-of-bag predictions are others"
        score = self._score(shown[judged], y[judged])
        near = np.isclose(score, model.oob_score_, rtol=AGREE, atol=AGREE, equal_nan=True)
        return "" if near else f"oob_score_ is {model.oob_score_:.6g}, not {score:.6g}"

    def _score(self, shown: Array, y: NDArray[Any]) -> float:
        own = self.model.oob_score if callable(self.model.oob_score) else None
        if self.table.classes is None:
            if len(y) < 2:
                return np.nan
            return float(own(y.reshape(shown.shape), shown)) if own else r_squared(y.reshape(shown.shape), shown)
        codes = shown.argmax(axis=1)
        if own is None:
            return float(np.mean((codes == y).reshape(len(y), -1).all(axis=1)))
        labels = self.model.classes_
        if not isinstance(labels, list):
            return float(own(labels[y], labels[codes]))
        return float(own(*(np.column_stack([own_[c[:, k]] for k, own_ in enumerate(labels)]) for c in (y, codes))))


def r_squared(y: Array, found: Array) -> float:
    """Return the mean over the targets of 1 − Σ(y − f)²/Σ(y − ȳ)²."""
    found = found.reshape(len(y), -1)
    y = y.reshape(len(y), -1)
    rest = ((y - found) ** 2).sum(axis=0)
    spread = ((y - y.mean(axis=0)) ** 2).sum(axis=0)
    shares = np.where(spread > 0, rest / np.where(spread > 0, spread, 1.0), np.where(rest > 0, 1.0, 0.0))
    return float(np.mean(1.0 - shares))


def _weights(model: Any, table: Any, weight: Array | None, number: int) -> tuple[Array, NDArray[Any]]:
    """Return the weights of the rows in one tree, and its bag."""
    n = table.n_rows
    if model.max_samples_ is None:
        return np.ones(n) if weight is None else weight, np.arange(n)
    equal = weight is None or weight.min() == weight.max()
    rows = drawn_rows(model.seed_, number, n, model.max_samples_, None if equal else weight)
    counts = np.bincount(rows, minlength=n).astype(np.float64)
    if getattr(model, "class_weight", None) == "balanced_subsample":
        for codes in table.y.reshape(n, -1).T:  # every class that was drawn gets the same total
            totals = np.bincount(codes[rows])
            share = len(rows) / (np.count_nonzero(totals) * np.maximum(totals, 1))
            counts = counts * share[np.minimum(codes, len(share) - 1)]
    return counts, rows


def _holds_targets(model: Any, table: Any, number: int, rows: NDArray[Any], leaf: Ids) -> bool:
    held = model.leaves_
    first = int(held.sizes[:number].sum())
    mine = held.rows[first : first + int(held.sizes[number])]
    same = np.array_equal(held.y, table.y.reshape(table.n_rows, -1)) and np.array_equal(np.sort(mine), np.sort(rows))
    return bool(same and (np.diff(leaf[mine]) >= 0).all())
