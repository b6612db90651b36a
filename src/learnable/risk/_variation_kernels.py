"""Compiled proximal operator of the total variation of a chain.

Reference: L. Condat, A direct algorithm for 1-D total variation denoising, IEEE Signal Processing Letters 20, 2013.
`tests/oracles/penalties.py` has a slow twin.
"""

from __future__ import annotations

from ..core import Array
from ..core.jit import kernel


@kernel
def variation_prox(y: Array, strength: float, x: Array) -> None:
    """Write the minimiser of ½‖x − y‖² + strength Σ|xᵢ₊₁ − xᵢ| into x (OUT), for y (IN) of length ≥ 1."""
    n = y.size
    k = 0  # sample under way
    start = 0  # of the present segment
    low_end = 0  # last sample at which the segment's value could be its lower bound
    high_end = 0  # likewise for the upper bound
    low = y[0] - strength
    high = y[0] + strength
    slack_low = strength  # dual variable if the segment has the value `low`
    slack_high = -strength
    while True:
        if k == n - 1:
            if slack_low < 0.0:  # the lower bound is too high: the segment ends at low_end
                x[start : low_end + 1] = low
                start = low_end + 1
                k = start
                low_end = start
                low = y[start]
                slack_low = strength
                slack_high = low + strength - high
            elif slack_high > 0.0:
                x[start : high_end + 1] = high
                start = high_end + 1
                k = start
                high_end = start
                high = y[start]
                slack_high = -strength
                slack_low = high - strength - low
            else:
                x[start:] = low + slack_low / (k - start + 1)
                return
            continue
        slack_low = slack_low + (y[k + 1] - low)
        slack_high = slack_high + (y[k + 1] - high)
        if slack_low < -strength:  # a jump down
            x[start : low_end + 1] = low
            start = low_end + 1
            k = start
            low_end = start
            high_end = start
            low = y[start]
            high = low + 2.0 * strength
            slack_low = strength
            slack_high = -strength
        elif slack_high > strength:  # a jump up
            x[start : high_end + 1] = high
            start = high_end + 1
            k = start
            low_end = start
            high_end = start
            high = y[start]
            low = high - 2.0 * strength
            slack_low = strength
            slack_high = -strength
        else:
            k += 1
            if slack_low >= strength:
                low_end = k
                low = low + (slack_low - strength) / (low_end - start + 1)
                slack_low = strength
            if slack_high <= -strength:
                high_end = k
                high = high + (slack_high + strength) / (high_end - start + 1)
                slack_high = -strength
