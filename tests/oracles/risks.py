"""Regularised risks as textbook programs for a general solver."""

import numpy as np
from scipy.optimize import linprog


def linear_program_optimum(X, y, loss, form, value):
    """Return the optimum of the mean absolute or hinge loss with ‖w‖₁ in one of the three forms, by a linear program.

    Variables: w⁺, w⁻ >= 0, b free, slacks ξ >= 0 with ξ >= ±(y − xw − b), or ξ >= 1 − y(xw + b).
    """
    n, p = X.shape
    eye = np.eye(n)
    columns = np.hstack([X, -X, np.ones((n, 1))])
    if loss == "absolute":
        A = np.vstack([np.hstack([columns, -eye]), np.hstack([-columns, -eye])])
        b = np.r_[y, -y]
    else:
        A = np.hstack([-y[:, None] * columns, -eye])
        b = -np.ones(n)
    risk = np.r_[np.zeros(2 * p + 1), np.full(n, 1.0 / n)]
    norm = np.r_[np.ones(2 * p), np.zeros(1 + n)]
    if form == "tikhonov":
        c = risk + value * norm
    else:
        c = risk if form == "ivanov" else norm
        A = np.vstack([A, norm if form == "ivanov" else risk])
        b = np.r_[b, value]
    bounds = [(0, None)] * (2 * p) + [(None, None)] + [(0, None)] * n
    return linprog(c, A_ub=A, b_ub=b, bounds=bounds, method="highs").fun
