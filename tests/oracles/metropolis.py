"""Random-walk Metropolis with robust adaptation (Vihola 2012), as the papers write it, in plain NumPy."""

import math

import numpy as np
from tests.oracles.nuts import Stream


def adapt(S, z, accept, target, count):
    """Return the Cholesky factor of S(I + η(α − α*) zzᵀ/‖z‖²)Sᵀ."""
    eta = min(1.0, len(z) * count ** (-2 / 3))
    inner = np.eye(len(z)) + eta * (accept - target) * np.outer(z, z) / (z @ z)
    return np.linalg.cholesky(S @ inner @ S.T)


def walk(log_density, u, S, words, n_warmup, target):
    """Return the points after each step, and the last factor."""
    points = []
    value = log_density(u)
    for count, row in enumerate(words, start=1):
        stream = Stream(row)
        z = stream.normals(len(u))
        proposed = u + S @ z
        new = log_density(proposed)
        accept = math.exp(min(0.0, new - value))
        if stream.uniform() < accept:
            u, value = proposed, new
        if count <= n_warmup:
            S = adapt(S, z, accept, target, count)
        points.append(u)
    return np.array(points), S
