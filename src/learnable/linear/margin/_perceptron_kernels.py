"""Passes of the perceptron over rows, compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.jit import kernel

Array = NDArray[np.float64]


@kernel
def perceptron_dense(
    X: Array,
    order: NDArray[np.int64],
    label: Array,
    step: Array,
    intercept: bool,
    average: bool,
    w: Array,
    total: Array,
    done: Array,
) -> tuple[int, float]:
    """One pass; return the mistakes and Σ max(0, −yz). IN/OUT w = (b, w); the mean of all w is w − total/done."""
    d = X.shape[1]
    weights, sums = w[1:], total[1:]
    mistakes, loss = 0, 0.0
    for i in order:
        row = X[i]
        z = w[0]
        for j in range(d):
            z += row[j] * weights[j]
        if label[i] * z <= 0.0:
            mistakes += 1
            loss -= label[i] * z
            change = step[i] * label[i]
            for j in range(d):
                weights[j] += change * row[j]
            if average:
                for j in range(d):
                    sums[j] += change * done[0] * row[j]
            if intercept:
                w[0] += change
                total[0] += change * done[0]
        done[0] += 1.0
    return mistakes, loss


@kernel
def perceptron_sparse(
    data: Array,
    indices: NDArray[Any],
    indptr: NDArray[Any],
    order: NDArray[np.int64],
    label: Array,
    step: Array,
    intercept: bool,
    average: bool,
    w: Array,
    total: Array,
    done: Array,
) -> tuple[int, float]:
    """Do the same over CSR rows."""
    weights, sums = w[1:], total[1:]
    mistakes, loss = 0, 0.0
    for i in order:
        z = w[0]
        for e in range(indptr[i], indptr[i + 1]):
            z += data[e] * weights[indices[e]]
        if label[i] * z <= 0.0:
            mistakes += 1
            loss -= label[i] * z
            change = step[i] * label[i]
            for e in range(indptr[i], indptr[i + 1]):
                weights[indices[e]] += change * data[e]
            if average:
                for e in range(indptr[i], indptr[i + 1]):
                    sums[indices[e]] += change * done[0] * data[e]
            if intercept:
                w[0] += change
                total[0] += change * done[0]
        done[0] += 1.0
    return mistakes, loss


@kernel
def penalised_pass(
    data: Array,
    indices: NDArray[Any],
    indptr: NDArray[Any],
    order: NDArray[np.int64],
    label: Array,
    step: Array,
    form: tuple[bool, float, float],
    w: Array,
    state: Array,
    shrunk: Array,
) -> tuple[int, float]:
    """One pass with a penalty: every row multiplies w by 1 − ηαl₂, and draws what it touches to zero by ηαl₁.

    `form` is (intercept, ηαl₁, ηαl₂). IN/OUT w = (b, w/scale); `state` = (scale, L1 strength so far); `shrunk` what
    each coefficient has had of it (Tsuruoka et al., ACL 2009). Return the mistakes and Σ max(0, −yz).
    """
    intercept, l1, l2 = form
    weights = w[1:]
    mistakes, loss = 0, 0.0
    for i in order:
        z = 0.0
        for e in range(indptr[i], indptr[i + 1]):
            z += data[e] * weights[indices[e]]
        z = z * state[0] + w[0]
        state[0] *= max(0.0, 1.0 - l2)
        if state[0] < 1e-9:
            for j in range(len(weights)):
                weights[j] *= state[0]
            state[0] = 1.0
        if label[i] * z <= 0.0:
            mistakes += 1
            loss -= label[i] * z
            change = step[i] * label[i]
            for e in range(indptr[i], indptr[i + 1]):
                weights[indices[e]] += change * data[e] / state[0]
            if intercept:
                w[0] += change
        if l1 > 0.0:
            state[1] += l1
            for e in range(indptr[i], indptr[i + 1]):
                j = indices[e]
                before = weights[j] * state[0]
                after = before
                if before > 0.0:
                    after = max(0.0, before - (state[1] + shrunk[j]))
                elif before < 0.0:
                    after = min(0.0, before + (state[1] - shrunk[j]))
                weights[j] = after / state[0]
                shrunk[j] += after - before
    return mistakes, loss
