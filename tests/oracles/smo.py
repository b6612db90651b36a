"""Sequential minimal optimisation as the textbook has it, one pair at a time, in NumPy.

R.-E. Fan, P.-H. Chen and C.-J. Lin, Working set selection using second order information, JMLR 6, 2005.
"""

import numpy as np


def second_order_pairs(K, v, beta, low, high, goal, most=10**6):
    """Minimise ½βᵀKβ − vᵀβ with Σβ fixed and low ≤ β ≤ high; return β and the number of pairs moved.

    i is the variable that may rise with the largest pull; j the one that may fall whose pair with i gains most.
    """
    beta = beta.copy()
    pull = v - K @ beta
    for steps in range(most):
        rising = np.where(beta < high, pull, -np.inf)
        falling = np.where(beta > low, pull, np.inf)
        if rising.max() - falling.min() <= goal:
            return beta, steps
        i = int(rising.argmax())
        curvature = np.maximum(K[i, i] + K.diagonal() - 2.0 * K[i], 1e-12)
        gain = np.maximum(rising[i] - falling, 0.0) ** 2 / curvature
        j = int(gain.argmax())
        t = min((pull[i] - pull[j]) / curvature[j], high[i] - beta[i], beta[j] - low[j])
        beta[i] += t
        beta[j] -= t
        pull -= t * (K[i] - K[j])
    return beta, most
