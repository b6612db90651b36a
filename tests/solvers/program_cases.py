"""Programs with known solutions, and random ones that are feasible by construction."""

import numpy as np

from learnable.solvers import QuadraticProgram


def random_program(seed, *, most=14, bounded=True):
    """Return a feasible convex program: P of any rank, degenerate constraints now and then."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, most))
    m, k, rank = int(rng.integers(0, 2 * n + 1)), int(rng.integers(0, n // 2 + 1)), int(rng.integers(0, n + 1))
    root = rng.normal(size=(rank, n))
    inside = rng.normal(size=n)
    G, A = rng.normal(size=(m, n)), rng.normal(size=(k, n))
    h = G @ inside + rng.exponential(size=m) * (rng.random(m) < 0.7)
    width = rng.exponential(size=(2, n)) if bounded else np.full((2, n), np.inf)
    return QuadraticProgram(
        root.T @ root, rng.normal(size=n), G, h, A, A @ inside, inside - width[0], inside + width[1]
    )


def parts(program):
    """Return what `quadratic_program` takes."""
    return {name: getattr(program, name) for name in ("P", "q", "G", "h", "A", "b", "lower", "upper")}


def combination(program, proof):
    """Return Gᵀz + Aᵀν − λ + μ and hᵀz + bᵀν − lᵀλ + uᵀμ: zero, and negative, for a proof that there is no point."""
    low, high = program.bounded_below, program.bounded_above
    left = program.G.T @ proof.inequality + program.A.T @ proof.equality - proof.lower + proof.upper
    right = program.h @ proof.inequality + program.b @ proof.equality
    right += -program.lower[low] @ proof.lower[low] + program.upper[high] @ proof.upper[high]
    return left, right
