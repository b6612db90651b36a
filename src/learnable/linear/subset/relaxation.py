r"""Best subsets of groups of columns, of positive coefficients, of more columns than rows, and of logistic regression.

    min  ℓ(β) + α‖β‖²  over β with at most k groups that are not zero.

The perspective relaxation replaces α‖β_g‖² by α‖β_g‖²/z_g with 0 ≤ z ≤ 1 and Σ z ≤ k. For every dual point r of the
loss

    f(S) ≥ D(r) = −ℓ*(r) − 1/(4α) (Σ_{g in} c_g + the k − |in| largest c_g of the free groups),   c_g = ‖A_gᵀr‖²,

for all subsets S of a node (for β ≥ 0, positive parts of A_gᵀr only): r need not be optimal, so rounding and early
stops cost tightness, never truth. Without a ridge term the bound is the loss of all columns that a node may use. The
tree is the proof; each leaf keeps the z from which its r follows, and `verify` computes the bounds again.

References: O. Günlük and J. Linderoth, Mathematical Programming 124, 2010; D. Bertsimas and B. Van Parys, Sparse
high-dimensional regression, Annals of Statistics 48, 2020; J. Zhu, C. Wen, J. Zhu, H. Zhang and X. Wang, A polynomial
algorithm for best-subset selection problem, PNAS 117, 2020 (splicing).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import nnls
from scipy.special import expit, xlog1py, xlogy

from ...core import AnyArray, NDArray, never

Units = list[NDArray[np.intp]]

_ROUNDS = 12  # of z given β and β given z; six leave bounds a tenth looser on 20 columns, thirty change nothing
_SMALLEST = 1e-6  # of z, so that a group can come back
_NEWTON = 40  # steps of Newton's method, at most
_MOST_SPLICED = 5  # groups exchanged at once
_BETTER = 1e-10  # relative improvement that counts
# Groups that a growing subset looks at again. On 500×2,000 with 10 columns in the truth, 20 per place reach the same
# subsets as all do, with a sixth of the reading.
_LOOKED_AT = 20
_FEWEST_LOOKED_AT = 200


class Relaxed(NamedTuple):
    """A lower bound of a node, and where it came from."""

    bound: float
    z: AnyArray  #: (n_units,)


class Timed:
    """A loss that knows when the time of a fit is up: `halted` is the fit's own."""

    halted: Callable[[], bool] = staticmethod(never)


class SquaredLoss(Timed):
    """‖y − Aβ‖² + α‖β‖², perhaps with β ≥ 0."""

    def __init__(self, A: AnyArray, y: AnyArray, alpha: float, units: Units, positive: bool = False) -> None:
        self.A = A
        self.y = y
        self.alpha = float(alpha)
        self.units = units
        self.positive = positive
        self.owner = owners(units, A.shape[1])
        self.scale = float(y @ y)
        self.norms = np.einsum("ij,ij->j", A, A)

    def columns(self, chosen: Any) -> NDArray[np.intp]:
        """Return the columns of some groups."""
        return columns_of(self.units, chosen)

    def part(self, groups: Any) -> SquaredLoss:
        """Return the same loss of some groups alone, numbered in their order."""
        columns, units = renumbered(self.units, groups)
        return SquaredLoss(self.A[:, columns], self.y, self.alpha, units, self.positive)

    def residual(self, beta: AnyArray) -> AnyArray:
        """Return y − Aβ from the columns that are used."""
        used = np.flatnonzero(beta)
        return np.asarray(self.y - self.A[:, used] @ beta[used])

    def fit(self, columns: Any, weight: AnyArray | None = None) -> tuple[AnyArray, float]:
        """Return β (p,) and ℓ + α Σ β²/weight on some columns; weight is one each unless given."""
        columns = np.asarray(columns, dtype=np.intp)
        root = np.ones(len(columns)) if weight is None else np.sqrt(weight)
        part = self.A[:, columns] * root
        gamma = self._ridge(part)
        beta = np.zeros(self.A.shape[1])
        beta[columns] = root * gamma
        r = self.y - part @ gamma
        return beta, float(r @ r + self.alpha * gamma @ gamma)

    def _ridge(self, part: AnyArray) -> AnyArray:
        k = part.shape[1]
        if not k:
            return np.zeros(0)
        rows = part
        target = self.y
        if self.alpha > 0:
            rows = np.vstack([part, np.sqrt(self.alpha) * np.eye(k)])
            target = np.r_[self.y, np.zeros(k)]
        if self.positive:
            return np.asarray(nnls(rows, target)[0])
        if self.alpha > 0 and k > len(part):
            return np.asarray(part.T @ np.linalg.solve(part @ part.T + self.alpha * np.eye(len(part)), self.y))
        return np.asarray(np.linalg.lstsq(rows, target, rcond=None)[0])

    def _sums(self, slopes: AnyArray) -> AnyArray:
        slopes = np.maximum(slopes, 0.0) if self.positive else slopes
        return np.bincount(self.owner, slopes**2, minlength=len(self.units))

    def bound(self, beta: AnyArray, inside: AnyArray, free: AnyArray, k: int) -> float:
        """Return D at the best multiple of the residual of β."""
        r = self.residual(beta)
        fit = float(r @ self.y)
        if self.alpha == 0:
            return float(r @ r)
        most = largest_sum(self._sums(self.A.T @ r), inside, free, k)
        return max(0.0, fit) ** 2 / max(float(r @ r) + most / self.alpha, 1e-300)

    def importances(self, beta: AnyArray) -> AnyArray:
        """Return what each group adds to the fit: ‖A_gβ_g‖²."""
        return np.bincount(self.owner, self.norms * beta**2, minlength=len(self.units))

    def gains(self, beta: AnyArray) -> AnyArray:
        """Return what each group outside promises: Σ (aⱼᵀr)²/‖aⱼ‖²."""
        slopes = self.residual(beta) @ self.A
        slopes = np.maximum(slopes, 0.0) if self.positive else slopes
        return np.bincount(self.owner, slopes**2 / np.maximum(self.norms, 1e-300), minlength=len(self.units))


class LogisticLoss(Timed):
    """Σ w (log(1 + e^z) − yz) + ½α‖β‖², z = b + Aβ, b free or zero; A is centred where b is free."""

    def __init__(self, A: AnyArray, y: AnyArray, weight: AnyArray, alpha: float, units: Units, intercept: bool) -> None:
        self.A = A
        self.y = y
        self.weight = weight
        self.alpha = float(alpha)
        self.units = units
        self.intercept = intercept
        self.positive = False
        self.owner = owners(units, A.shape[1])
        self.scale = float(weight.sum() * np.log(2.0))

    def columns(self, chosen: Any) -> NDArray[np.intp]:
        """Return the columns of some groups."""
        return columns_of(self.units, chosen)

    def part(self, groups: Any) -> LogisticLoss:
        """Return the same loss of some groups alone, numbered in their order."""
        columns, units = renumbered(self.units, groups)
        alone = LogisticLoss(self.A[:, columns], self.y, self.weight, self.alpha, units, self.intercept)
        alone.halted = self.halted
        return alone

    def fit(self, columns: Any, weight: AnyArray | None = None) -> tuple[AnyArray, float]:
        """Return (β, b) (p + 1,) and the objective with α‖β‖² divided by `weight`."""
        columns = np.asarray(columns, dtype=np.intp)
        root = np.ones(len(columns)) if weight is None else np.sqrt(weight)
        Z = np.column_stack([self.A[:, columns] * root, np.full(len(self.A), float(self.intercept))])
        ridge = np.r_[np.full(len(columns), self.alpha), 0.0 if self.intercept else 1.0]
        theta = np.zeros(Z.shape[1])
        value = self._value(Z @ theta) + 0.5 * float(ridge @ theta**2)
        for _ in range(_NEWTON):
            if self.halted():
                break
            m = expit(Z @ theta)
            slope = Z.T @ (self.weight * (m - self.y)) + ridge * theta
            H = Z.T @ ((self.weight * m * (1.0 - m))[:, None] * Z) + np.diag(ridge)
            step = np.linalg.solve(H + 1e-14 * np.trace(H) * np.eye(len(H)), slope)
            length = 1.0
            while length > 1e-8:
                new = theta - length * step
                lower = self._value(Z @ new) + 0.5 * float(ridge @ new**2)
                if lower <= value:
                    break
                length *= 0.5
            if not lower < value:
                break
            done = value - lower <= 1e-13 * max(value, 1e-300)
            theta = new
            value = lower
            if done:
                break
        beta = np.zeros(self.A.shape[1] + 1)
        beta[columns] = root * theta[:-1]
        beta[-1] = theta[-1] if self.intercept else 0.0
        return beta, value

    def _value(self, z: AnyArray) -> float:
        return float(self.weight @ (np.logaddexp(0.0, z) - self.y * z))

    def _dual_point(self, beta: AnyArray) -> AnyArray:
        """Return probabilities whose sum is that of y, if b is free."""
        u = np.asarray(expit(self.A @ beta[:-1] + beta[-1]))
        if not self.intercept:
            return u
        off = float(self.weight @ (u - self.y))
        if off > 0:
            return u * (1.0 - off / float(self.weight @ u))
        room = float(self.weight @ (1.0 - u))
        return u + (-off / room if room > 0 else 0.0) * (1.0 - u)

    def bound(self, beta: AnyArray, inside: AnyArray, free: AnyArray, k: int) -> float:
        """Return D at the probabilities of β."""
        u = self._dual_point(beta)
        entropy = -float(self.weight @ (xlogy(u, u) + xlog1py(1.0 - u, -u)))
        slopes = self.A.T @ (self.weight * (u - self.y))
        sums = np.bincount(self.owner, slopes**2, minlength=len(self.units))
        return entropy - largest_sum(sums, inside, free, k) / (2.0 * self.alpha)

    def importances(self, beta: AnyArray) -> AnyArray:
        """Return the squared scores of each group's part."""
        norms = (self.weight[:, None] * self.A**2).sum(axis=0)
        return np.bincount(self.owner, norms * beta[:-1] ** 2, minlength=len(self.units))

    def gains(self, beta: AnyArray) -> AnyArray:
        """Return squared slopes of the groups outside, in units of the columns."""
        norms = np.maximum((self.weight[:, None] * self.A**2).sum(axis=0), 1e-300)
        u = expit(self.A @ beta[:-1] + beta[-1])
        slopes = self.A.T @ (self.weight * (self.y - u))
        return np.bincount(self.owner, slopes**2 / norms, minlength=len(self.units))


def largest_sum(sums: AnyArray, inside: AnyArray, free: AnyArray, k: int) -> float:
    """Return the sum over the groups inside and the largest of the free ones, k in all."""
    more = min(k - len(inside), len(free))
    total = float(sums[inside].sum())
    if more <= 0:
        return total
    return total + float(np.sort(sums[free])[len(free) - more :].sum())


def relax(loss: Any, inside: AnyArray, free: AnyArray, k: int, cutoff: float) -> Relaxed:
    """Return a bound of a node, from β given z and z given β in turn, until it is above `cutoff` or settles.

    When the time is up, the bound is zero, which no loss falls below.
    """
    z = np.zeros(len(loss.units))
    z[inside] = 1.0
    more = k - len(inside)
    if loss.halted():
        z[free] = min(more / len(free), 1.0)
        return Relaxed(0.0, z)
    within = np.r_[inside, free].astype(np.intp)
    columns = loss.columns(within)
    if loss.alpha == 0 or more >= len(free):
        z[free] = 1.0
        beta, _ = loss.fit(columns)
        return Relaxed(loss.bound(beta, inside, free, k), z)
    z[free] = more / len(free)
    best = Relaxed(0.0, z.copy())
    for _ in range(_ROUNDS):
        if loss.halted():
            break
        beta, _ = loss.fit(columns, np.maximum(z, _SMALLEST)[loss.owner[columns]])
        bound = loss.bound(beta, inside, free, k)
        gain = bound - best.bound
        if gain > 0:
            best = Relaxed(bound, z.copy())
        if best.bound >= cutoff or gain <= 1e-6 * abs(best.bound):
            break
        sizes = np.sqrt(np.bincount(loss.owner, beta[: len(loss.owner)] ** 2, minlength=len(loss.units)))
        z[free] = fill(sizes[free], more)
    return best


def fill(sizes: AnyArray, total: float) -> AnyArray:
    """Return min(1, size/τ) with τ such that they sum to `total`: the z that suits these coefficients best."""
    order = np.sort(sizes)[::-1]
    if order.sum() <= 0:
        return np.full(len(sizes), total / len(sizes))
    tails = np.cumsum(order[::-1])[::-1]
    for full in range(len(order)):
        rest = total - full
        if rest <= 0:
            break
        tau = tails[full] / rest
        if order[full] <= tau:
            return np.asarray(np.minimum(1.0, sizes / max(tau, 1e-300)))
    return (sizes >= order[int(total) - 1]).astype(float)


def owners(units: Units, p: int) -> NDArray[np.intp]:
    """Return the number of the group that each of p columns is in."""
    owner = np.zeros(p, dtype=np.intp)
    if units:
        owner[np.concatenate(units)] = np.repeat(np.arange(len(units)), [len(unit) for unit in units])
    return owner


def columns_of(units: Units, chosen: Any) -> NDArray[np.intp]:
    """Return the columns of some groups, sorted."""
    parts = [units[g] for g in chosen]
    return np.sort(np.concatenate(parts)) if parts else np.zeros(0, dtype=np.intp)


def renumbered(units: Units, groups: Any) -> tuple[NDArray[np.intp], Units]:
    """Return the columns of some groups one after the other, and these groups by their places there."""
    parts = [units[g] for g in groups]
    ends = np.cumsum([len(part) for part in parts])
    return np.concatenate(parts), np.split(np.arange(ends[-1]), ends[:-1])


def splice(loss: Any, chosen: AnyArray, required: AnyArray) -> tuple[AnyArray, AnyArray, float]:
    """Exchange the least useful groups inside for the most promising outside while that lowers the objective."""
    chosen = np.sort(chosen)
    beta, value = loss.fit(loss.columns(chosen))
    every = np.arange(len(loss.units))
    improved = True
    while improved and len(chosen) and not loss.halted():
        improved = False
        movable = np.setdiff1d(chosen, required)
        outside = np.setdiff1d(every, chosen)
        weak = movable[np.argsort(loss.importances(beta)[movable], kind="stable")]
        strong = outside[np.argsort(-loss.gains(beta)[outside], kind="stable")]
        for size in range(1, min(len(weak), len(strong), _MOST_SPLICED) + 1):
            if loss.halted():
                break
            trial = np.sort(np.r_[np.setdiff1d(chosen, weak[:size]), strong[:size]])
            other, lower = loss.fit(loss.columns(trial))
            if lower < value * (1.0 - _BETTER) - 1e-300:
                chosen = trial
                beta = other
                value = lower
                improved = True
                break
    return chosen, beta, value


def grow(loss: Any, chosen: AnyArray, k: int) -> AnyArray:
    """Return k groups: those chosen and the most promising others.

    Of very many groups only the most promising of the first look are looked at again: each look at all of them reads
    the whole table.
    """
    among = np.arange(len(loss.units))
    look = loss
    while len(chosen) < k:
        place = np.searchsorted(among, chosen)
        gains = look.gains(look.fit(look.columns(place))[0])
        gains[place] = np.inf
        best = int(np.argmax(np.where(np.isinf(gains), -1.0, gains)))
        chosen = np.sort(np.r_[chosen, among[best]]).astype(np.intp)
        most = max(_FEWEST_LOOKED_AT, _LOOKED_AT * k)
        if look is loss and len(among) > 2 * most and len(chosen) < k:
            among = np.sort(np.argpartition(-gains, most)[:most])
            look = loss.part(among)
    return chosen


class Tree(NamedTuple):
    """A searched tree: what was found, what is proven, and the proof."""

    chosen: AnyArray
    beta: AnyArray
    value: float
    bound: float
    proof: list[int]  #: a group that is split (with it first), or −1 for a leaf
    leaves: list[AnyArray]  #: z of each leaf
    nodes: int


def search(
    loss: Any, k: int, required: AnyArray, start: AnyArray, tol: float, stop: Callable[[int, float], bool]
) -> Tree:
    """Search the tree of groups in and out depth first, from the subset `start`."""
    chosen, beta, value = splice(loss, grow(loss, start, k), required)
    proof: list[int] = []
    leaves: list[AnyArray] = []
    lowest = np.inf
    nodes = 0
    every = np.arange(len(loss.units))
    stack: list[tuple[AnyArray, AnyArray]] = [(required, np.setdiff1d(every, required))]
    stopped = False
    while stack:
        inside, free = stack.pop()
        nodes += 1
        cutoff = value / (1.0 + tol)
        if len(inside) == k or len(inside) + len(free) <= k:  # one subset is left
            here = inside if len(inside) == k else np.sort(np.r_[inside, free]).astype(np.intp)
            other, lower = loss.fit(loss.columns(here))
            if lower < value:
                chosen = here
                beta = other
                value = lower
            proof.append(-1)
            leaves.append(np.isin(every, here).astype(float))
            lowest = min(lowest, lower)
            continue
        node = relax(loss, inside, free, k, cutoff)
        if node.bound < cutoff and not stopped:
            rounded = np.sort(np.r_[inside, free[np.argsort(-node.z[free], kind="stable")][: k - len(inside)]])
            trial, other, lower = splice(loss, rounded.astype(np.intp), required)
            if lower < value:
                chosen = trial
                beta = other
                value = lower
            stopped = stop(nodes, value) or loss.halted()
        if node.bound >= value / (1.0 + tol) or stopped:
            proof.append(-1)
            leaves.append(node.z)
            lowest = min(lowest, node.bound)
            continue
        unit = _heaviest(loss, free, inside)
        if loss.alpha > 0:
            unit = int(free[np.argmin(np.abs(node.z[free] - 0.5 - 1e-3))])
        proof.append(unit)
        rest = np.setdiff1d(free, [unit])
        stack.append((inside, rest))
        stack.append((np.sort(np.r_[inside, unit]).astype(np.intp), rest))
    return Tree(chosen, beta, value, min(lowest, value), proof, leaves, nodes)


def _heaviest(loss: Any, free: AnyArray, inside: AnyArray) -> int:
    """Return the free group that the fit on all columns would miss most."""
    beta, _ = loss.fit(loss.columns(np.r_[inside, free].astype(np.intp)))
    return int(free[np.argmax(loss.importances(beta)[free])])
