"""Conformal prediction and calibration by their definitions: slow, plain, and sharing nothing with the library."""

import math
from fractions import Fraction

import numpy as np
from scipy.optimize import minimize
from sklearn.base import clone


def rank(level, n):
    return math.ceil(Fraction(str(level)) * (n + 1))


def without_each_fold(make, X, y, folds, weight=None):
    """The model fitted without each fold, by the fold's number."""
    models = {}
    for k in np.unique(folds):
        train = folds != k
        extra = {} if weight is None else {"sample_weight": weight[train]}
        models[k] = clone(make).fit(X[train], y[train], **extra)
    return models


def plus_interval(models, X, y, folds, x, level):
    """The CV+ interval of one row x, from the definition (Barber et al. 2021, equation 11); jackknife+ if n folds."""
    low, high = [], []
    for k, model in models.items():
        for i in np.flatnonzero(folds == k):
            residual = abs(y[i] - model.predict(X[i : i + 1])[0])
            low.append(model.predict(x[None, :])[0] - residual)
            high.append(model.predict(x[None, :])[0] + residual)
    upper_rank = rank(level, len(y))
    if upper_rank > len(y):
        return -np.inf, np.inf
    lower_rank = math.floor((1 - Fraction(str(level))) * (len(y) + 1))
    return sorted(low)[lower_rank - 1], sorted(high)[upper_rank - 1]


def aps_score(p, label, u):
    """Σ of the probabilities above the label's, plus u times its own (Romano, Sesia and Candès 2020)."""
    return sum(q for q in p if q > p[label]) + u * p[label]


def isotonic(scores, targets, weight):
    """The isotonic fit at the sorted distinct scores: the max over i ≤ k of the min over j ≥ k of the means of i…j."""
    points = np.unique(scores)
    w = np.array([weight[scores == point].sum() for point in points])
    mean = np.array([weight[scores == point] @ targets[scores == point] for point in points]) / w
    n = len(points)

    def average(i, j):
        return (w[i : j + 1] @ mean[i : j + 1]) / w[i : j + 1].sum()

    return points, np.array([max(min(average(i, j) for j in range(k, n)) for i in range(k + 1)) for k in range(n)])


def platt(scores, positive, weight):
    """Platt's a and b by a derivative-free search on the smoothed likelihood."""
    plus, minus = weight[positive].sum(), weight[~positive].sum()
    target = np.where(positive, (plus + 1) / (plus + 2), 1 / (minus + 2))

    def loss(ab):
        z = -(ab[0] * scores + ab[1])
        return weight @ (np.logaddexp(0, z) - target * z)

    options = {"xatol": 1e-10, "fatol": 1e-14, "maxiter": 10_000}
    return minimize(loss, [0.0, 0.0], method="Nelder-Mead", options=options).x
