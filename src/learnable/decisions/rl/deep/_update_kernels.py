"""Compiled updates: targets, advantages, and the gradients of the losses in the outputs of the networks.

`tests/oracles/deep.py` has the same formulas in NumPy.
"""

from __future__ import annotations

import math

from ....core.jit import ieee_kernel, lean_kernel
from ..._random import uniform

_LOG_ROOT_TWO_PI = 0.5 * math.log(2.0 * math.pi)
# Places of `stats` of a policy's head.
LOSS = 0
ENTROPY = 1
DIVERGENCE = 2  # mean of old log-probability minus new
CLIPPED = 3  # share of rows whose ratio was clipped


@lean_kernel
def td_targets(reward, discount, chooser, judge, scale, out):  # type: ignore[no-untyped-def]
    """OUT out (B,): scale·r + discount · judge(s', argmax chooser(s')).

    IN chooser, judge (B, A): outputs of the online and of the target network; DQN passes the target network's
    twice, double DQN takes the action from the online one.
    """
    for i in range(len(out)):
        best = 0
        for j in range(1, chooser.shape[1]):
            if chooser[i, j] > chooser[i, best]:
                best = j
        out[i] = scale * reward[i] + discount[i] * judge[i, best]


@lean_kernel
def value_loss(z, action, target, weight, delta, out, error):  # type: ignore[no-untyped-def]
    """Return the mean weighted Huber loss of Q(s, a) − target. OUT out: its gradient in z; error (B,)."""
    B, k = z.shape
    total = 0.0
    for i in range(B):
        for j in range(k):
            out[i, j] = 0.0
        e = z[i, action[i]] - target[i]
        error[i] = e
        slope = min(max(e, -delta), delta)
        total += weight[i] * slope * (e - 0.5 * slope)
        out[i, action[i]] = weight[i] * slope / B
    return total / B


@lean_kernel
def advantages(reward, value, next_value, terminated, truncated, valid, gamma, trace, scale, out):  # type: ignore[no-untyped-def]
    """OUT out (T, n): generalised advantages Σ (γλ)ᵏ δ, with δ = r + γV(s') − V(s) and no V(s') after a termination.

    A truncated episode still counts on V(s'), but no later δ is added to it.
    """
    T, n = reward.shape
    for e in range(n):
        carried = 0.0
        for t in range(T - 1, -1, -1):
            if not valid[t, e]:
                carried = 0.0
                out[t, e] = 0.0
                continue
            if terminated[t, e] or truncated[t, e]:
                carried = 0.0
            follows = 0.0 if terminated[t, e] else gamma * next_value[t, e]
            carried = scale * reward[t, e] + follows - value[t, e] + gamma * trace * carried
            out[t, e] = carried


@lean_kernel
def log_softmax(z, action, out):  # type: ignore[no-untyped-def]
    """OUT out (B,): log-probability of the action that was taken. IN action (B, 1)."""
    for i in range(z.shape[0]):
        top = z[i, 0]
        for j in range(1, z.shape[1]):
            top = max(top, z[i, j])
        mass = 0.0
        for j in range(z.shape[1]):
            mass += math.exp(z[i, j] - top)
        out[i] = z[i, int(action[i, 0])] - top - math.log(mass)


@lean_kernel
def log_gaussian(z, log_std, action, out):  # type: ignore[no-untyped-def]
    """OUT out (B,): log-density of the point that was drawn. IN action (B, m)."""
    for i in range(z.shape[0]):
        total = 0.0
        for j in range(z.shape[1]):
            r = (action[i, j] - z[i, j]) * math.exp(-log_std[j])
            total -= 0.5 * r * r + log_std[j] + _LOG_ROOT_TWO_PI
        out[i] = total


@lean_kernel
def surrogate(new, old, advantage, clip, stats):  # type: ignore[no-untyped-def]
    """Return d(loss)/d(log-probability) of one row, times the batch; add to stats.

    clip > 0: loss = −min(ρA, clip(ρ, 1 ± clip)·A) with ρ = π/π_old (PPO); otherwise −A log π (the policy gradient).
    """
    if clip <= 0.0:
        stats[LOSS] -= advantage * new
        return -advantage
    ratio = math.exp(min(max(new - old, -20.0), 20.0))
    stats[DIVERGENCE] += old - new
    bounded = min(max(ratio, 1.0 - clip), 1.0 + clip)
    if ratio != bounded:
        stats[CLIPPED] += 1.0
    if bounded * advantage < ratio * advantage:
        stats[LOSS] -= bounded * advantage
        return 0.0
    stats[LOSS] -= ratio * advantage
    return -ratio * advantage


@lean_kernel
def softmax_policy_loss(z, action, advantage, old, clip, bonus, out, stats):  # type: ignore[no-untyped-def]
    """Add the loss and entropy to stats (4,). OUT out: gradient of mean loss − bonus · mean entropy in z (B, A)."""
    B, k = z.shape
    for i in range(B):
        top = z[i, 0]
        for j in range(1, k):
            top = max(top, z[i, j])
        mass = 0.0
        for j in range(k):
            e = math.exp(z[i, j] - top)
            out[i, j] = e
            mass += e
        log_mass = math.log(mass)
        entropy = 0.0
        for j in range(k):
            p = out[i, j] / mass
            entropy -= p * (z[i, j] - top - log_mass)
        taken = int(action[i, 0])
        slope = surrogate(z[i, taken] - top - log_mass, old[i], advantage[i], clip, stats)
        stats[ENTROPY] += entropy
        for j in range(k):
            p = out[i, j] / mass
            g = -slope * p + bonus * p * (z[i, j] - top - log_mass + entropy)
            if j == taken:
                g += slope
            out[i, j] = g / B


@lean_kernel
def gaussian_policy_loss(z, log_std, action, advantage, old, clip, bonus, out, out_std, stats):  # type: ignore[no-untyped-def]
    """As `softmax_policy_loss` for normal actions. OUT out (B, m), out_std (m,): gradients in means and log_std."""
    B, m = z.shape
    entropy = 0.0
    for j in range(m):
        out_std[j] = -bonus
        entropy += log_std[j] + 0.5 + _LOG_ROOT_TWO_PI
    for i in range(B):
        new = 0.0
        for j in range(m):
            r = (action[i, j] - z[i, j]) * math.exp(-log_std[j])
            new -= 0.5 * r * r + log_std[j] + _LOG_ROOT_TWO_PI
        slope = surrogate(new, old[i], advantage[i], clip, stats)
        stats[ENTROPY] += entropy
        for j in range(m):
            r = (action[i, j] - z[i, j]) * math.exp(-log_std[j])
            out[i, j] = slope * r * math.exp(-log_std[j]) / B
            out_std[j] += slope * (r * r - 1.0) / B


@lean_kernel
def squared_loss(v, target, share, out):  # type: ignore[no-untyped-def]
    """Return the mean of (v − target)². OUT out (B, 1): the gradient of ½·2·share times it."""
    B = v.shape[0]
    total = 0.0
    for i in range(B):
        e = v[i, 0] - target[i]
        total += e * e
        out[i, 0] = 2.0 * share * e / B
    return total / B


@lean_kernel
def shuffle(order, rng):  # type: ignore[no-untyped-def]
    """Permute the numbers of an array in place."""
    for i in range(len(order) - 1, 0, -1):
        j = int(uniform(rng) * (i + 1))
        order[i], order[j] = order[j], order[i]


@lean_kernel
def add_moments(obs, valid, rows, count, mean, spread):  # type: ignore[no-untyped-def]
    """Update mean (d,) and sum of squared deviations `spread` (d,) by the rows of a block (Welford)."""
    for t in range(rows):
        for e in range(obs.shape[1]):
            if not valid[t, e]:
                continue
            count[0] += 1.0
            for j in range(obs.shape[2]):
                r = obs[t, e, j] - mean[j]
                mean[j] += r / count[0]
                spread[j] += r * (obs[t, e, j] - mean[j])


@lean_kernel
def add_return_moments(block, rows, gamma, running, moments):  # type: ignore[no-untyped-def]
    """Update the moments (count, mean, squares) of discounted returns so far. IN/OUT running (n,), moments (3,)."""
    for t in range(rows):
        for e in range(block.reward.shape[1]):
            if not block.valid[t, e]:
                continue
            running[e] = gamma * running[e] + block.reward[t, e]
            moments[0] += 1.0
            r = running[e] - moments[1]
            moments[1] += r / moments[0]
            moments[2] += r * (running[e] - moments[1])
            if block.terminated[t, e] or block.truncated[t, e]:
                running[e] = 0.0


@ieee_kernel
def scale_rows(x, centre, scale, far, out):  # type: ignore[no-untyped-def]
    """OUT out (B, d): observations as the network sees them; columns of scale 0 pass unchanged."""
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            v = x[i, j]
            if scale[j] != 0.0:
                v = min(max((v - centre[j]) * scale[j], -far), far)
            out[i, j] = v


@lean_kernel
def first_bad(block, rows):  # type: ignore[no-untyped-def]
    """Return t·n + e of the first step whose observations or reward are not finite; −1 if there is none."""
    n = block.reward.shape[1]
    for t in range(rows):
        for e in range(n):
            if not block.valid[t, e]:
                continue
            total = block.reward[t, e]
            bad = not math.isfinite(total)
            for j in range(block.obs.shape[2]):
                bad = bad or not math.isfinite(block.obs[t, e, j]) or not math.isfinite(block.next_obs[t, e, j])
            if bad:
                return t * n + e
    return -1
