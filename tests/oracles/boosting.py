"""Slow, independent code for boosting: every stump there is, AdaBoost as the book writes it, and general solvers."""

from itertools import product

import numpy as np
from scipy.optimize import linprog, minimize, minimize_scalar


def all_stumps(X, n_classes=2):
    """Yield (column, threshold, left class, right class) for every stump that differs on the rows."""
    for j in range(X.shape[1]):
        values = np.unique(X[:, j])
        for threshold in [*((values[:-1] + values[1:]) / 2), values[-1]]:
            for left, right in product(range(n_classes), repeat=2):
                yield j, threshold, left, right


def says(stump, X):
    j, threshold, left, right = stump
    return np.where(X[:, j] <= threshold, left, right)


def least_error(X, y, D, n_classes=2):
    """Return the smallest weighted error of a stump."""
    return min(D[says(stump, X) != y].sum() for stump in all_stumps(X, n_classes))


def least_z(X, y, D, smoothing):
    """Return the smallest Σ_sides 2√((W₀ + δ)(W₁ + δ)) of a split."""
    found = [2 * np.sqrt((D[y == 0].sum() + smoothing) * (D[y == 1].sum() + smoothing))]
    for j in range(X.shape[1]):
        for threshold in np.unique(X[:, j])[:-1]:
            left = X[:, j] <= threshold
            sides = [(D[s & (y == 0)].sum() + smoothing) * (D[s & (y == 1)].sum() + smoothing) for s in (left, ~left)]
            found.append(2 * np.sqrt(sides).sum())
    return min(found)


def textbook(X, y, rounds):
    """Run AdaBoost with ±1 and votes ½ log((1−ε)/ε); return errors, votes, and f on the rows after each round."""
    sign, n = np.where(y == 1, 1.0, -1.0), len(y)
    D, f = np.full(n, 1 / n), np.zeros(n)
    errors, votes, traces = [], [], []
    for _ in range(rounds):
        stump = min(all_stumps(X), key=lambda s: round(D[says(s, X) != y].sum(), 12))
        h = 2.0 * says(stump, X) - 1
        error = D[h != sign].sum()
        if error == 0 or error >= 0.5:
            break
        alpha = 0.5 * np.log((1 - error) / error)
        f = f + alpha * h
        D = D * np.exp(-alpha * sign * h)
        D /= D.sum()
        errors.append(error)
        votes.append(alpha)
        traces.append(f.copy())
    return np.array(errors), np.array(votes), traces


def stagewise(X, y, rounds):
    """Minimise Σ exp(−y(f + αh)) over α > 0 and all stumps, numerically; return the losses."""
    sign, f, losses = np.where(y == 1, 1.0, -1.0), np.zeros(len(y)), []
    stumps = [2.0 * says(stump, X) - 1 for stump in all_stumps(X)]

    def along(h):
        return minimize_scalar(lambda a: np.mean(np.exp(-sign * (f + a * h))), bounds=(0, 20), method="bounded",
                               options={"xatol": 1e-10})  # fmt: skip

    for _ in range(rounds):
        best = min(((along(h), h) for h in stumps), key=lambda pair: round(pair[0].fun, 12))
        f = f + best[0].x * best[1]
        losses.append(best[0].fun)
    return np.array(losses)


def best_votes(wrong, weight, n_classes=2):
    """Minimise Σ w exp(Σ a(1[wrong] − c)) over a ≥ 0 by L-BFGS-B; return the loss."""
    M = np.asarray(wrong, dtype=float).T - (n_classes - 1) / n_classes

    def value(a):
        terms = weight * np.exp(M @ a)
        return terms.sum(), M.T @ terms

    options = {"ftol": 1e-15, "gtol": 1e-12, "maxiter": 5000}
    return minimize(value, np.full(M.shape[1], 0.1), jac=True, bounds=[(0, None)] * M.shape[1], options=options).fun


def smallest_edge(U):
    """Return min_D max_t Σ_i D_i U_it by a linear program: the dual of the largest margin."""
    n, T = U.shape
    found = linprog(
        np.r_[np.zeros(n), 1.0],
        A_ub=np.column_stack([U.T, -np.ones(T)]),
        b_ub=np.zeros(T),
        A_eq=np.r_[np.ones(n), 0.0][None],
        b_eq=[1.0],
        bounds=[(0, None)] * n + [(None, None)],
    )
    return found.fun
