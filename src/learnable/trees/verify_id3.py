"""An independent check of ID3's certificate: every node is built again from the rows, in plain Python.

It counts with dictionaries. The value is the largest shortfall of a split, in bits (or in units of the gain ratio),
against the best of its candidates. It is one where a node is wrong in another way: where its weights are not those of
the rows that reach it, its branches not the values that occur, or a leaf has no reason to be one.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np

from ..core import Recheck, VerificationError
from ..data.categories import CategoryTable, read_categories

_ROUNDING = 1e-9  # what rounding may add to an entropy

Row = tuple[list[Any], int, float]  # values, class, weight
Branch = Callable[[Row], Any]


def id3(model: Any, X: Any, y: Any, sample_weight: Any) -> Recheck:
    """Recompute the certificate of an ID3Classifier."""
    table = read_categories(type(model)(), X, y, sample_weight, owner="verify")
    if len(table.categories) != model.n_features_in_:
        raise VerificationError(
            f"verify: the model has {model.n_features_in_} features; the data have {len(table.categories)}."
        )
    same_words = [a.tolist() for a in table.categories] == [b.tolist() for b in model.categories_]
    same_words = same_words or _spelled(table.categories) == _spelled(model.categories_)
    if not same_words or not np.array_equal(np.asarray(table.classes), np.asarray(model.classes_)):
        return Recheck(1.0, 0.0, table.fingerprint)
    return Recheck(_largest_shortfall(model, table), _ROUNDING, table.fingerprint)


def _largest_shortfall(model: Any, table: CategoryTable) -> float:
    of_class = _class_weights(model.class_weight, table)
    rows: list[Row] = [
        (table.codes[:, i].tolist(), k, w * of_class[k])
        for i, (k, w) in enumerate(zip(table.y.tolist(), table.weight.tolist(), strict=True))
    ]
    tree = model.tree_
    worst = 0.0
    met = 0
    children: dict[int, dict[int, int]] = defaultdict(dict)
    for node in range(1, tree.node_count):
        children[int(tree.parent[node])][int(tree.code[node])] = node
    waiting = [(0, rows, 0)]
    while waiting:
        node, here, depth = waiting.pop()
        met += 1
        weights = _class_totals(here)
        value = tree.value[node].tolist()
        total = sum(weights.values())
        agrees = len(here) == tree.n_rows[node]
        agrees &= all(abs(value[k] - weights.get(k, 0.0)) <= _ROUNDING * total for k in range(len(value)))
        agrees &= abs(tree.impurity[node] - _entropy(weights)) <= _ROUNDING
        best, scores = _best_split(here, model) if _may_split(here, depth, model) else (-1.0, {})
        test = (int(tree.feature[node]), int(tree.level[node]))
        if test[0] < 0:
            agrees &= best < 0 and not children[node] and tree.gain[node] == 0
            worst = max(worst, 0.0 if agrees else 1.0)
            continue
        agrees = agrees and test in scores and abs(tree.gain[node] - scores[test][1]) <= _ROUNDING
        parts: dict[int, list[Row]] = defaultdict(list)
        for row in here:
            parts[row[0][test[0]] if test[1] < 0 else int(row[0][test[0]] == test[1])].append(row)
        agrees = agrees and set(parts) == set(children[node])
        worst = max(worst, best - scores[test][0] if agrees else 1.0)
        waiting.extend((child, parts[code], depth + 1) for code, child in children[node].items() if parts.get(code))
    return worst if met == tree.node_count else 1.0


def _may_split(rows: list[Row], depth: int, model: Any) -> bool:
    pure = len({k for _, k, _ in rows}) == 1
    return not pure and depth != model.max_depth and len(rows) >= model.min_samples_split


def _best_split(rows: list[Row], model: Any) -> tuple[float, dict[tuple[int, int], tuple[float, float]]]:
    """Return the best score, −1 if nothing can be split, and the score and gain of each (column, level) allowed."""
    tests: dict[tuple[int, int], tuple[float, float]] = {}
    for j in range(len(rows[0][0])):
        levels = {row[0][j] for row in rows}
        if len(levels) < 2:
            continue
        for level in levels if model.split == "binary" else (-1,):
            tests[j, level] = _gain(rows, _branches(j, level))
    ratio = {t: gain / info if info > 0 else 0.0 for t, (gain, info) in tests.items()}
    score = ratio if model.criterion == "gain_ratio" else {t: gain for t, (gain, _) in tests.items()}
    # A column stands for its best level: the average gain is over columns.
    column: dict[int, tuple[int, int]] = {}
    for t in sorted(tests):
        if t[0] not in column or score[t] > score[column[t[0]]] + 1e-12:
            column[t[0]] = t
    least = model.min_gain
    if column and model.criterion == "gain_ratio" and max(gain for gain, _ in tests.values()) >= least - _ROUNDING:
        least = max(least, sum(tests[t][0] for t in column.values()) / len(column))
    allowed = {t: (score[t], gain) for t, (gain, _) in tests.items() if gain >= least - _ROUNDING}
    of_columns = [score[t] for t in column.values() if t in allowed]
    return (max(of_columns), allowed) if of_columns else (-1.0, {})


def _branches(j: int, level: int) -> Branch:
    """Return the branch that a row takes at a test of column j: by its value, or whether it is the level."""
    return (lambda row: row[0][j]) if level < 0 else (lambda row: row[0][j] == level)


def _gain(rows: list[Row], branch: Branch) -> tuple[float, float]:
    """Return the information gain and the split information, in bits."""
    parts: dict[Any, list[Row]] = defaultdict(list)
    for row in rows:
        parts[branch(row)].append(row)
    sizes = {key: math.fsum(w for _, _, w in part) for key, part in parts.items()}
    total = math.fsum(sizes.values())
    within = math.fsum(sizes[key] / total * _entropy(_class_totals(part)) for key, part in parts.items())
    return max(0.0, _entropy(_class_totals(rows)) - within), _entropy(sizes)


def _class_totals(rows: list[Row]) -> dict[int, float]:
    weights: dict[int, list[float]] = defaultdict(list)
    for _, k, w in rows:
        weights[k].append(w)
    return {k: math.fsum(ws) for k, ws in weights.items()}


def _entropy(weights: dict[Any, float]) -> float:
    total = math.fsum(weights.values())
    return -math.fsum(w / total * math.log2(w / total) for w in weights.values() if w > 0) + 0.0


def _class_weights(class_weight: Any, table: CategoryTable) -> list[float]:
    labels = table.classes.tolist()
    if class_weight is None:
        return [1.0] * len(labels)
    if isinstance(class_weight, str):
        totals = [float(table.weight[table.y == k].sum()) for k in range(len(labels))]
        return [sum(totals) / (len(labels) * total) for total in totals]
    return [float(class_weight.get(label, 1.0)) for label in labels]


def _spelled(categories: list[Any]) -> list[list[str]]:
    return [[repr(word) for word in levels.tolist()] for levels in categories]
