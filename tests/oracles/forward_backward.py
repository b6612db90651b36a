"""Forward–backward for one hidden Markov chain, as the textbook writes it: the slow twin of the compiled recursions.

Two steps alternate. *Predict* moves the law of the state one row ahead, p(z_t | x_{<t}) = Aᵀ p(z_{t−1} | x_{<t}).
*Condition on* an observation multiplies by its likelihood and divides by p(x_t | x_{<t}), whose logarithms add up to
log p(x). Backward, the same two steps in reverse order give β_t, the likelihood of what comes after row t.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def predict(law: Array, A: Array) -> Array:
    """Return the law of the next state."""
    return A.T @ law


def condition_on(law: Array, likelihood: Array) -> tuple[Array, float]:
    """Return the law given an observation, and the probability of the observation."""
    joint = law * likelihood
    return joint / joint.sum(), float(joint.sum())


def forward_backward(b: Array, start: Array, A: Array) -> tuple[float, Array, Array, Array]:
    """Return log p(x), P(z_t | x_1…x_t), P(z_t | x) and Σ_t P(z_t, z_{t+1} | x), from likelihoods b (T, K)."""
    filtered, evidence = [], []
    ahead = start
    for likelihood in b:
        law, p = condition_on(ahead, likelihood)
        filtered.append(law)
        evidence.append(p)
        ahead = predict(law, A)
    beta = np.ones(len(start))
    smoothed, pairs = [filtered[-1]], np.zeros_like(A)
    for t in range(len(b) - 2, -1, -1):
        later = b[t + 1] * beta / evidence[t + 1]
        pairs += filtered[t][:, None] * A * later
        beta = A @ later
        smoothed.append(filtered[t] * beta)
    return float(np.log(evidence).sum()), np.array(filtered), np.array(smoothed[::-1]), pairs
