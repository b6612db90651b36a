"""ID3 as its pseudo-code says, in dictionaries; and every tree of two questions, by enumeration."""

import itertools
import math
from collections import Counter


def entropy(labels, weights):
    totals = Counter()
    for label, weight in zip(labels, weights, strict=True):
        totals[label] += weight
    n = sum(totals.values())
    return -sum(w / n * math.log2(w / n) for w in totals.values() if w)


def gain(values, labels, weights):
    """Return information gain and split information."""
    n, within = sum(weights), 0.0
    for value in set(values):
        here = [i for i, v in enumerate(values) if v == value]
        share = sum(weights[i] for i in here) / n
        within += share * entropy([labels[i] for i in here], [weights[i] for i in here])
    return entropy(labels, weights) - within, entropy(values, weights)


def majority(labels, weights):
    totals = Counter()
    for label, weight in zip(labels, weights, strict=True):
        totals[label] += weight
    best = max(totals.values())
    return min(label for label, weight in totals.items() if weight > best - 1e-9)


def grow(rows, labels, weights, *, ratio=False, max_depth=None):
    """Return a leaf's label, or (column, {value: subtree}, majority)."""
    most = majority(labels, weights)
    varying = [j for j in range(len(rows[0])) if len({row[j] for row in rows}) > 1]
    if len(set(labels)) == 1 or not varying or max_depth == 0:
        return most
    found = {j: gain([row[j] for row in rows], labels, weights) for j in varying}
    score = {j: g for j, (g, _) in found.items()}
    if ratio:
        average = sum(score.values()) / len(score)
        score = {j: g / info for j, (g, info) in found.items() if g >= average - 1e-9}
    j = min(j for j, s in score.items() if s > max(score.values()) - 1e-9)
    branches = {}
    for value in {row[j] for row in rows}:
        here = [i for i, row in enumerate(rows) if row[j] == value]
        branches[value] = grow(
            [rows[i] for i in here],
            [labels[i] for i in here],
            [weights[i] for i in here],
            ratio=ratio,
            max_depth=None if max_depth is None else max_depth - 1,
        )
    return j, branches, most


def predict(tree, row):
    while isinstance(tree, tuple):
        j, branches, most = tree
        tree = branches.get(row[j], most)
    return tree


def fewest_errors_of_two_questions(rows, labels):
    """Return the errors of the best tree that asks each row two questions about binary columns."""
    d, best = len(rows[0]), len(rows)
    for j, a, b in itertools.product(range(d), repeat=3):
        for answers in itertools.product(sorted(set(labels)), repeat=4):
            wrong = 0
            for row, label in zip(rows, labels, strict=True):
                second = a if row[j] else b
                wrong += answers[2 * row[j] + row[second]] != label
            best = min(best, wrong)
    return best
