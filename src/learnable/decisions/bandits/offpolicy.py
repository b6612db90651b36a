r"""Off-policy evaluation: what a policy would have earned, from a log of decisions that another one took.

A row of the log has a context x, the arm a that was played, its probability p (the propensity) and the reward r. For a
policy that plays arm a with probability π(a | x), with weights w = π(a | x)/p:

| estimator | value | |
|---|---|---|
| `ips` | mean of w r | unbiased; noisy where weights are large |
| `snips` | Σ w r / Σ w | consistent; does not change when a constant is added to rewards |
| `dr` | mean of Σ_b π(b | x) q̂(x, b) + w (r − q̂(x, a)) | unbiased with the true p, and also with a true model q̂ |

The model of the doubly robust estimate is fitted on the other folds, so that no row judges itself. Where an arm that
the policy plays never occurs in the log, nothing can be said, and the evaluation refuses.

Reference: D. Horvitz and D. Thompson, JASA 1952; A. Swaminathan and T. Joachims, The self-normalized estimator, NIPS
2015;
M. Dudík, J. Langford and L. Li, Doubly robust policy evaluation and learning, ICML 2011; L. Li et al., Unbiased offline
evaluation of contextual-bandit-based news article recommendation algorithms, WSDM 2011 (replay).
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from ...core import AnyArray, DataError, Number, Options, ParameterError, check_parameters
from ...linear.least_squares.ridge import Ridge
from .policy import Policy

METHODS = ("ips", "snips", "dr")
#: Below this effective number of rows an interval from a normal law is not to be trusted.
_FEW = 30.0


@dataclass(frozen=True, eq=False)
class DecisionLog:
    """Logged decisions, checked; made by `read_log`.

    Attributes
    ----------
    arm : array of int of shape (n,)
        The arm of each row, as a number.
    reward : array of shape (n,)
        What it earned.
    propensity : array of shape (n,)
        The probability with which it was played.
    context : array of shape (n, d)
        What was known before; d may be 0.
    names : tuple
        The arms' own names.
    estimated : bool
        Whether propensities were not given and are the shares of the arms in the log.
    """

    arm: AnyArray
    reward: AnyArray
    propensity: AnyArray
    context: AnyArray
    names: tuple[Any, ...]
    estimated: bool

    @property
    def n_arms(self) -> int:
        """Number of different arms."""
        return len(self.names)

    def __len__(self) -> int:
        return len(self.arm)


@dataclass(frozen=True, eq=False)
class OffPolicyEstimate:
    """What a policy would have earned per decision.

    Attributes
    ----------
    value, lower, upper : float
        Estimate and its interval.
    standard_error : float
        Of the estimate.
    effective_rows : float
        (Σw)²/Σw²: how many rows of the policy itself would tell as much.
    largest_weight : float
        The largest share of one row in the weights.
    method : str
        "ips", "snips" or "dr".
    level : float
        Probability of the interval.
    """

    value: float
    lower: float
    upper: float
    standard_error: float
    effective_rows: float
    largest_weight: float
    method: str
    level: float

    def __str__(self) -> str:
        return (
            f"{self.method}: {self.value:.4g} [{self.lower:.4g}, {self.upper:.4g}] from {self.effective_rows:.0f} "
            "effective rows"
        )


def read_log(arm: Any, reward: Any, propensity: Any = None, context: Any = None) -> DecisionLog:
    """Check the columns of a log.

    Parameters
    ----------
    arm : array of shape (n,)
        Names of the arms that were played, of any kind.
    reward : array of shape (n,)
        Finite numbers.
    propensity : array of shape (n,), optional
        Probabilities in (0, 1]. Without it the shares of the arms are used, which is right only if the arms were drawn
        whatever the context.
    context : array of shape (n, d), optional
        Finite numbers.

    Examples
    --------
    >>> log = read_log(["a", "b", "a", "b"], [1, 0, 1, 1], propensity=[0.5] * 4)
    >>> log.names, len(log)
    (('a', 'b'), 4)
    """
    played = np.asarray(arm)
    r = np.asarray(reward, dtype=np.float64)
    if played.ndim != 1 or r.shape != played.shape or len(r) == 0:
        raise DataError(
            f"read_log: arm and reward must be columns of one length > 0; got {played.shape} and {r.shape}."
        )
    if not np.isfinite(r).all():
        raise DataError(f"read_log: row {int(np.argmin(np.isfinite(r)))} has a reward that is no finite number.")
    names, numbers = np.unique(played, return_inverse=True)
    if propensity is None:
        p = (np.bincount(numbers) / len(numbers))[numbers]
    else:
        p = np.asarray(propensity, dtype=np.float64)
        if p.shape != r.shape:
            raise DataError(f"read_log: propensity must have {len(r)} rows; got shape {p.shape}.")
        bad = ~((p > 0.0) & (p <= 1.0))
        if bad.any():
            at = int(np.argmax(bad))
            raise DataError(f"read_log: row {at} has the propensity {float(p[at])!r}; it must be > 0 and <= 1.")
    x = np.zeros((len(r), 0)) if context is None else np.asarray(context, dtype=np.float64)
    if x.ndim == 1:
        x = x[:, None]
    if x.ndim != 2 or len(x) != len(r) or not np.isfinite(x).all():
        raise DataError(f"read_log: context must be finite numbers in {len(r)} rows; got shape {x.shape}.")
    return DecisionLog(numbers, r, p, x, tuple(names.tolist()), propensity is None)


def evaluate_offline(
    log: DecisionLog,
    target: Any,
    method: str = "dr",
    *,
    level: float = 0.95,
    model: Any = None,
    folds: int = 5,
    random_state: Any = 0,
) -> OffPolicyEstimate:
    """Estimate what a policy would have earned per decision.

    Parameters
    ----------
    log : DecisionLog
        As `read_log` makes it.
    target : array of shape (n, n_arms) or (n_arms,), or arm
        The policy: its probabilities in every row, or in all of them; or the name of the one arm it plays.
    method : {"dr", "snips", "ips"}
        The estimator.
    level : float
        Probability of the interval, which is that of a normal law.
    model : estimator, optional
        Regressor of the reward for "dr", fitted per arm; ridge regression by default.
    folds : int
        Folds of the model; a row's model has not seen it.
    random_state : int or None
        Deals the rows to the folds.

    Raises
    ------
    DataError
        If an arm that the policy plays never occurs in the log: overlap is missing, and no estimate is right.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> arm = rng.integers(2, size=1000)
    >>> log = read_log(arm, rng.random(1000) < [0.3, 0.6] @ np.eye(2)[arm].T, propensity=np.full(1000, 0.5))
    >>> round(evaluate_offline(log, 1, "snips").value, 1)
    0.6
    """
    rules = {"method": Options(*METHODS), "level": Number(low=0.0, high=1.0, low_open=True, high_open=True)}
    check_parameters("evaluate_offline", {"method": method, "level": level}, rules)
    pi = read_target(log, target)
    _require_overlap(log, pi)
    rows = np.arange(len(log))
    w = pi[rows, log.arm] / log.propensity
    total = float(w.sum())
    if total == 0.0:
        raise DataError("evaluate_offline: the policy never plays the arm that was logged; overlap is missing.")
    n = len(log)
    if method == "ips":
        terms = w * log.reward
        value = float(terms.mean())
    elif method == "snips":
        value = float(w @ log.reward / total)
        terms = value + w * (log.reward - value) / (total / n)  # its influence, by the delta method
    else:
        q = _model_rewards(log, model, folds, random_state)
        terms = (pi * q).sum(axis=1) + w * (log.reward - q[rows, log.arm])
        value = float(terms.mean())
    error = float(terms.std(ddof=1) / np.sqrt(n)) if n > 1 else float("inf")
    effective = total**2 / float(w @ w)
    if effective < _FEW:
        warnings.warn(
            f"evaluate_offline: the log tells as much as {effective:.1f} rows of the policy itself; the interval is "
            "not to be trusted. Log more decisions, or explore more.",
            UserWarning,
            stacklevel=2,
        )
    reach = float(stats.norm.ppf(0.5 + level / 2.0)) * error
    return OffPolicyEstimate(
        value, value - reach, value + reach, error, effective, float(w.max() / total), method, level
    )


@dataclass(frozen=True, eq=False)
class Replay:
    """What a learning policy earned on the rows of a log that agree with it.

    Attributes
    ----------
    value, lower, upper : float
        Mean reward with its interval.
    rows : int
        Rows that were used.
    """

    value: float
    lower: float
    upper: float
    rows: int


def replay(policy: Policy, log: DecisionLog, *, level: float = 0.95, random_state: Any = 0) -> Replay:
    """Let a policy learn from a log: it sees the reward of a row where it plays the arm of the row.

    Rows whose arm was likely are skipped in proportion, so that those used are as if arms had been drawn alike; the
    mean reward is then that of the policy in use (Li et al. 2011), if contexts do not depend on what was played before.

    Parameters
    ----------
    policy : Policy
        It learns; with `n_features` it is given the context.
    log : DecisionLog
        In the order of time.
    level : float
        Probability of the interval.
    random_state : int or None
        Decides which rows are skipped.
    """
    if policy.n_arms != log.n_arms:
        raise ParameterError(f"replay: the policy has {policy.n_arms} arms and the log {log.n_arms}.")
    rng = np.random.default_rng(random_state)
    kept = rng.random(len(log)) < log.propensity.min() / log.propensity
    contextual = hasattr(policy, "n_features")
    earned = []
    for i in np.flatnonzero(kept):
        arm = policy.act(log.context[i] if contextual else None)
        if arm == log.arm[i]:
            policy.update(arm, log.reward[i], id=policy.last_id)
            earned.append(log.reward[i])
        else:
            _drop(policy)
    if len(earned) < 2:
        raise DataError("replay: the policy and the log agree in fewer than two rows; nothing can be said.")
    value = float(np.mean(earned))
    reach = float(stats.norm.ppf(0.5 + level / 2.0) * np.std(earned, ddof=1) / np.sqrt(len(earned)))
    return Replay(value, value - reach, value + reach, len(earned))


def _drop(policy: Policy) -> None:
    """Forget a decision that was not carried out."""
    policy.state["pending"] = policy.state["pending"][:-1]
    if "contexts" in policy.state:
        policy.state["contexts"] = policy.state["contexts"][:-1]


def read_target(log: DecisionLog, target: Any) -> AnyArray:
    """Return the probabilities of a policy in every row, of shape (n, n_arms)."""
    if np.ndim(target) == 0:
        found = [i for i, name in enumerate(log.names) if name == target]
        if not found:
            known = ", ".join(repr(name) for name in log.names[:10])
            raise DataError(f"evaluate_offline: the arm {target!r} never occurs in the log; its arms are {known}.")
        return np.tile(np.eye(log.n_arms)[found[0]], (len(log), 1))
    pi = np.asarray(target, dtype=np.float64)
    if pi.shape == (log.n_arms,):
        pi = np.tile(pi, (len(log), 1))
    if pi.shape != (len(log), log.n_arms):
        raise DataError(
            f"evaluate_offline: target must have shape {(len(log), log.n_arms)}, a column for each arm; got {pi.shape}."
        )
    if not (pi >= 0.0).all() or (abs(pi.sum(axis=1) - 1.0) > 1e-6).any():
        at = int(np.argmax(abs(pi.sum(axis=1) - 1.0)))
        raise DataError(f"evaluate_offline: the probabilities of row {at} sum to {pi[at].sum():g}, not to 1.")
    return pi


def _require_overlap(log: DecisionLog, pi: AnyArray) -> None:
    counts = np.bincount(log.arm, minlength=log.n_arms)
    for a in np.flatnonzero(pi.max(axis=0) > 0.0):
        if counts[a] == 0:
            raise DataError(
                f"evaluate_offline: the policy plays {log.names[a]!r}, which the log never does: no overlap."
            )


def _model_rewards(log: DecisionLog, model: Any, folds: int, random_state: Any) -> AnyArray:
    """Return q̂(x, a) for every row and arm, from models that have not seen the row."""
    n = len(log)
    k = log.n_arms
    fold = np.random.default_rng(random_state).permutation(n) % min(folds, n)
    q = np.zeros((n, k))
    for f in range(fold.max() + 1):
        out = fold == f
        rest = ~out if (~out).any() else out
        overall = float(log.reward[rest].mean())
        for a in range(k):
            seen = rest & (log.arm == a)
            if not seen.any():
                q[out, a] = overall
            elif log.context.shape[1] == 0 or seen.sum() < 2:
                q[out, a] = log.reward[seen].mean()
            else:
                fitted = _fit(model, log.context[seen], log.reward[seen])
                q[out, a] = fitted.predict(log.context[out])
    return q


def _fit(model: Any, X: AnyArray, y: AnyArray) -> Any:
    from sklearn.base import clone

    chosen = Ridge(alpha=1.0) if model is None else clone(model)
    return chosen.fit(X, y)
