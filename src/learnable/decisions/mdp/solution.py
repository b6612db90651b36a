r"""What a solver returns: a policy, values, and bounds that one backup proves again.

For a discount γ < 1, any values v, d = Tv − v and the policy π that is greedy for v,

$$ Tv + \frac{\gamma}{1-\gamma} \min d \;\le\; V^\pi \;\le\; V^* \;\le\; Tv + \frac{\gamma}{1-\gamma} \max d, $$

so that π loses at most γ/(1−γ)·(max d − min d) in any state (MacQueen 1966, Porteus 1971). If the process can end, the
end counts as one more state, of which d = 0: `spread_of`. With γ = 1 the bounds are two tables: `upper` with
T·upper ≤ upper lies above V*, and `lower` with T_π·lower ≥ lower lies below V^π if π surely ends.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ...core import AnyArray, Certificate, Loadable, law, laws

#: What the bounds rest on.
PROOFS = ("discounted", "episodic", "residual", "horizon", "average", "robust")


@dataclass(frozen=True, eq=False)
class MDPSolution(Loadable):
    """A solved process.

    Attributes
    ----------
    values : array of shape (n_states,), or (horizon + 1, n_states)
        V, of which the bounds are proven; with a horizon, one row for each number of steps already taken. With average
        rewards the bias, which is zero in the first state.
    policy : array of int of shape (n_states,), or (horizon, n_states)
        The action in each state.
    lower, upper : arrays of the shape of `values`
        Proven bounds: `lower` is below the value of the policy, `upper` above that of every policy. NaN where nothing
        is proven (`proof` is "residual").
    gain : float
        With average rewards, the reward per step of the policy, at least; NaN otherwise.
    proof : str
        What the bounds rest on: "discounted", "episodic", "horizon", "average", "robust", or "residual" (no bounds).
    method : str
        The algorithm.
    radius : float or array
        Of a robust solution, the L1 distance that each row of probabilities may be off.
    certificate_ : Certificate
        Kind `bellman`: what the policy loses at most, in any state.
    """

    values: AnyArray
    policy: AnyArray
    lower: AnyArray
    upper: AnyArray
    proof: str
    method: str
    certificate_: Certificate
    gain: float = float("nan")
    radius: Any = field(default=0.0)

    _saves_alone: ClassVar[bool] = True

    @property
    def loss_bound(self) -> float:
        """What the policy loses at most against the best one, in any state; infinite where nothing is proven."""
        return float(self.certificate_.value) if self.certificate_.bound is not None else float("inf")

    def __repr__(self) -> str:
        return f"MDPSolution({self.method}: {self.certificate_})"

    _laws = laws(
        law(
            "values, bounds and policy of an MDPSolution do not fit together",
            lambda solution: (
                solution.values.shape == solution.lower.shape == solution.upper.shape
                and solution.policy.shape
                == (
                    solution.values.shape
                    if solution.values.ndim == 1
                    else (len(solution.values) - 1, solution.values.shape[1])
                )
            ),
        ),
        law(
            "the policy of an MDPSolution must be actions, its proof a known one",
            lambda solution: (
                solution.proof in PROOFS and solution.policy.dtype.kind in "iu" and (solution.policy >= 0).all()
            ),
        ),
        law("the values of an MDPSolution must be finite", lambda solution: np.isfinite(solution.values).all()),
    )


def spread_of(d: AnyArray, ends: bool) -> tuple[float, float]:
    """Return the least and the greatest change of one backup, over the states and the end if there is one."""
    low = float(d.min())
    high = float(d.max())
    return (min(low, 0.0), max(high, 0.0)) if ends else (low, high)


def two_sided(
    owner: str,
    proof: str,
    mdp: Any,
    v: AnyArray,
    Tv: AnyArray,
    chosen: AnyArray,
    settings: dict[str, Any],
    radius: Any = 0.0,
) -> MDPSolution:
    """Return the solution with the bounds that one backup proves for γ < 1.

    Where the process never ends, a constant that is added to v moves Tv by γ times it: v is put in the middle.
    """
    ends = mdp.can_end
    low, high = spread_of(Tv - v, ends)
    factor = mdp.gamma / (1.0 - mdp.gamma)
    middle = 0.0 if ends else (low + high) / (2.0 * (1.0 - mdp.gamma))
    loss = factor * (high - low)
    certificate = Certificate("bellman", loss, bound=loss, fingerprint=mdp.fingerprint, **settings)
    return MDPSolution(
        values=v + middle,
        policy=mdp.pair_action[chosen],
        lower=Tv + factor * low,
        upper=Tv + factor * high,
        proof=proof,
        method=owner,
        certificate_=certificate,
        radius=radius,
    )


@dataclass(frozen=True, eq=False)
class PolicyValues:
    """The values of one policy.

    Attributes
    ----------
    values : array of shape (n_states,)
        V^π.
    action_values : array of shape (n_states, n_actions)
        Q^π; −inf where there is no such action.
    certificate_ : Certificate
        Kind `bellman`: how far any value can be off.
    """

    values: AnyArray
    action_values: AnyArray
    certificate_: Certificate


def warn_unless_proven(owner: str, certificate: Certificate, remedy: str) -> None:
    """Warn that a solver stopped before its tolerance."""
    if not certificate.holds:
        warnings.warn(
            f"{owner}: stopped after {certificate.n_iter} iterations at bellman {certificate.value:.3g}, above the "
            f"tolerance {certificate.tolerance:.3g}; {remedy}.",
            ConvergenceWarning,
            stacklevel=3,
        )
