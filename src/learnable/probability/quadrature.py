r"""Divergences without a closed form, by quadrature over probabilities.

With x = Q(u), the quantile function, an expectation is an integral over the unit interval,
E f(x) = ∫₀¹ f(Q(u)) du. The integrands here have at most logarithmic singularities at the ends, for which the
tanh–sinh rule (Takahasi and Mori, 1974) converges as fast as for a smooth function.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.integrate import tanhsinh

from .base import Array, Univariate


def kl_by_quadrature(p: Univariate, q: Univariate) -> Array:
    """Return E_p[log p(x) - log q(x)] for smooth densities on the whole line."""
    shape = np.broadcast_shapes(p.batch_shape, q.batch_shape)
    pairs = [(_entry(p, shape, i), _entry(q, shape, i)) for i in range(math.prod(shape))]
    return np.reshape([_integrate(*pair) for pair in pairs], shape)[()]


def _integrate(p: Univariate, q: Univariate) -> float:
    def log_ratio(u: Array) -> Array:
        x = p.quantile(u)
        return np.where(np.isfinite(x), p.logpdf(x) - q.logpdf(x), 0.0)  # the ends have no weight

    with np.errstate(all="ignore"):
        result = tanhsinh(log_ratio, 0.0, 1.0, rtol=1e-12, atol=1e-14)
    return max(float(result.integral), 0.0)


def _entry(d: Univariate, shape: tuple[int, ...], i: int) -> Univariate:
    """Return entry i of an array of distributions broadcast to a shape."""
    values = {name: np.ravel(np.broadcast_to(value, shape))[i] for name, value in d.parameters.items()}
    return type(d)(**values)
