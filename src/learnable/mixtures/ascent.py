r"""Gradient ascent on the likelihood of a mixture: the other way up the hill that EM climbs.

By Fisher's identity the gradient of log p(x) is the expectation of that of log p(x, z) given x, so that it needs what
an E-step leaves: $N_k$ and $T_k$. In natural parameters and logarithms of the weights,

$$ \partial_{\eta_k} = T_k - N_k\,\mathbb{E}_k[t], \qquad \partial_{\log\pi_k} = N_k - \pi_k\sum_j N_j. $$

EM goes to the member with the mean statistic T/N at once, and needs no step length; the gradient needs a line search.
A climb stops where an EM step would add no more than `tol`, so that both end with the same certificate.

Reference: L. Xu and M. Jordan, On convergence properties of the EM algorithm for Gaussian mixtures, Neural Computation
8 (1996), 129–151.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data.blocks import map_reduce
from ..solvers.em import EMResult
from ..solvers.lab.minimize import minimize
from ..solvers.problem import Evaluation, Moment

Array = NDArray[np.float64]

_ROUNDS = 6  # of smaller tolerances, until the rise of an EM step is small enough too


class NegativeLikelihood:
    """−(log-likelihood + log-prior)/W of a mixture, as a function of its packed parameters.

    Its measure is what the M-step adds to the expected log-likelihood, per unit of weight: zero at a stationary point.
    """

    def __init__(self, problem: Any, blocks: Any, weight: float, n_jobs: int | None = None, flag: Any = None) -> None:
        self.problem, self.blocks, self.weight = problem, blocks, weight
        self.n_jobs, self.flag = n_jobs, flag

    def at(self, mixture: Any) -> tuple[tuple[Any, ...], float]:
        """Return the expected statistics and the objective, not divided."""
        expectation = partial(_expect, self.problem, mixture)
        statistics, likelihood = map_reduce(self.blocks, expectation, _merge, n_jobs=self.n_jobs, flag=self.flag)
        return statistics, likelihood + self.problem.log_prior(mixture)

    def evaluate(self, z: Array) -> Evaluation:
        """Return value, gradient and measure; infinite where the vector stands for no mixture."""
        mixture = self.problem.unpack(z)
        if mixture is None:
            return Evaluation(np.inf, np.zeros_like(z), np.inf)
        statistics, objective = self.at(mixture)
        if not np.isfinite(objective):
            return Evaluation(np.inf, np.zeros_like(z), np.inf)
        gain = self.problem.gain(statistics, mixture, self.problem.maximisation(statistics, mixture))
        gradient = self.problem.gradient(statistics, mixture) / self.weight
        return Evaluation(-objective / self.weight, -gradient, abs(gain) / self.weight)


def ascend(
    objective: NegativeLikelihood, starts: Iterable[Any], *, method: str, tol: float, max_iter: int, run: Any
) -> Any:
    """Climb from every start in turn, and return the best, as `em` does.

    Parameters
    ----------
    objective : NegativeLikelihood
        What is minimised.
    starts : iterable of mixtures
        Where to begin.
    method : {"gd", "lbfgs"}
        Steepest ascent with a line search, or L-BFGS.
    tol : float
        What an EM step may still add, per unit of weight.
    max_iter : int
        Iterations from each start.
    run : Run
        The clock and the callbacks.
    """
    climbs = []
    for start in starts:
        climbs.append(_climb(objective, start, method, tol, max_iter, run))
        if run.should_stop():
            break
    bounds = np.array([climb.bound for climb in climbs])
    best = int(bounds.argmax())
    return climbs[best]._replace(start=best, bounds=bounds)


def _climb(
    objective: NegativeLikelihood, start: Any, method: str, tol: float, max_iter: int, run: Any
) -> EMResult[Any]:
    weight, z = objective.weight, objective.problem.pack(start)
    history: list[float] = []

    def watch(moment: Moment) -> bool:
        if not history or moment.iteration > 0:
            history.append(-moment.value * weight)
        return bool(run.progress(len(history), history[-1]))

    mixture, bound, rise, goal, used = start, -np.inf, np.inf, tol, 0
    for _ in range(_ROUNDS):
        found = minimize(
            objective, z, method=method, callback=watch, tol=goal, max_iter=max_iter - used, keep_path=False
        )
        z, used = found.x, used + found.n_iter
        mixture = objective.problem.unpack(z)
        statistics, bound = objective.at(mixture)
        rise = objective.at(objective.problem.maximisation(statistics, mixture))[1] - bound
        if rise <= tol * weight or used >= max_iter or (found.n_iter == 0 and goal < tol) or run.should_stop():
            break
        goal *= 0.2
    kept = np.maximum.accumulate(history)  # a line search may take a step that rounding makes a little worse
    return EMResult(mixture, bound, rise, used, kept, bool(rise <= tol * weight), 0, np.array([bound]))


def _expect(problem: Any, mixture: Any, block: Any) -> Any:
    return problem.expectation(block, mixture)


def _merge(a: Any, b: Any) -> Any:
    return tuple(x + y for x, y in zip(a[0], b[0], strict=True)), float(a[1]) + float(b[1])
