"""Quadratic programs by brute force: every set of active constraints is tried."""

from itertools import combinations

import numpy as np


def brute_force(program):
    """Return the smallest value over the feasible stationary points of all active sets; nothing from the library."""
    n = len(program.q)
    G = np.concatenate([np.asarray(program.G), -np.eye(n), np.eye(n)])
    h = np.concatenate([program.h, -program.lower, program.upper])
    A, b, best = np.asarray(program.A), program.b, np.inf
    for size in range(n - len(b) + 1):
        for chosen in combinations(range(len(h)), size):
            B, right = np.concatenate([A, G[list(chosen)]]), np.concatenate([b, h[list(chosen)]])
            K = np.block([[program.P, B.T], [B, np.zeros((len(B), len(B)))]])
            x = np.linalg.lstsq(K, np.concatenate([-program.q, right]), rcond=1e-12)[0][:n]
            feasible = (G @ x - h).max() <= 1e-9 and np.abs(A @ x - b).max(initial=0.0) <= 1e-9
            if feasible:
                best = min(best, 0.5 * x @ program.P @ x + program.q @ x)
    return best
