r"""Robust values: the best policy against the worst probabilities near the given ones.

$$ V(s) = \max_a \min_{q:\ \|q - p(\cdot \mid s, a)\|_1 \le \varepsilon} r(s, a) + \gamma \sum_{s'} q(s') V(s'), $$

where q may use the successors of p (the end of the process is one, of value 0), and nature may choose anew
for each pair. The operator is monotone and moves by at most γc when v moves by c, so that the bounds of `solution`
hold.

Reference: A. Nilim and L. El Ghaoui, Robust control of Markov decision processes, Oper. Res. 53, 2005.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core import MAX_ITER, MAX_SECONDS, N_JOBS, TOLERANCE, DataError, check_parameters
from ..chunks import over_ranges
from ._kernels import robust_backup
from .model import MDP
from .solution import MDPSolution, spread_of, two_sided, warn_unless_proven
from .sweeps import Clock


def robust_value_iteration(
    mdp: MDP,
    radius: Any,
    *,
    tol: float = 1e-6,
    max_iter: int = 100_000,
    max_seconds: float | None = None,
    n_jobs: int | None = None,
) -> MDPSolution:
    """Return the policy whose worst case is best.

    Parameters
    ----------
    mdp : MDP
        The process, with γ < 1.
    radius : float or array of shape (n_pairs,)
        ε: how far, in sum of absolute differences, the true probabilities of a pair may be from the given ones; 2
        allows anything on the same successors.
    tol, max_iter, max_seconds, n_jobs
        As for `modified_policy_iteration`.
    """
    limits = {"tol": tol, "max_iter": max_iter, "max_seconds": max_seconds, "n_jobs": n_jobs}
    rules = {"tol": TOLERANCE, "max_iter": MAX_ITER, "max_seconds": MAX_SECONDS, "n_jobs": N_JOBS}
    check_parameters("robust_value_iteration", limits, rules)
    if mdp.gamma == 1.0:
        raise DataError("robust_value_iteration: gamma must be below 1.")
    eps = np.broadcast_to(np.asarray(radius, dtype=np.float64), (mdp.n_pairs,)).copy()
    if not ((eps >= 0.0) & (eps <= 2.0)).all():
        raise DataError("robust_value_iteration: radius must be between 0 and 2.")
    clock = Clock(max_seconds)
    v = np.zeros(mdp.n_states)
    chosen = np.zeros(mdp.n_states, dtype=np.int64)
    factor = mdp.gamma / (1.0 - mdp.gamma)
    Tv = np.empty_like(v)

    def work(lo: int, hi: int) -> None:
        rows = (mdp.P.indptr, mdp.P.indices, mdp.P.data)
        robust_backup(lo, hi, mdp.pair_start, *rows, mdp.stop, mdp.reward, mdp.gamma, eps, v, Tv, chosen)

    for n_iter in range(1, max_iter + 1):
        Tv = np.empty_like(v)
        over_ranges(work, mdp.n_states, n_jobs, 500)
        low, high = spread_of(Tv - v, mdp.can_end)
        if factor * (high - low) <= tol or n_iter == max_iter or clock.is_over:
            break
        v = Tv
    settings: dict[str, Any] = {"tolerance": tol, "n_iter": n_iter, "seconds": clock.seconds}
    solution = two_sided("robust_value_iteration", "robust", mdp, v, Tv, chosen, settings, eps)
    warn_unless_proven("robust_value_iteration", solution.certificate_, "raise max_iter or tol")
    return solution
