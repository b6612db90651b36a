"""Compiled parts of maximum likelihood for admixture: weights of genotypes, small quadratic programs.

Their slow twins stand in `tests/oracles/admixture.py`.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ..core.jit import kernel

Array = NDArray[np.float64]
Packed = NDArray[np.uint8]

#: A product of likelihoods is turned into its logarithm before it can underflow.
_SMALL = 1e-200


@kernel
def weigh_rows(packed: Packed, F: Array, gain: Array, lost: Array, second: Array, other: Array, by_row: Array) -> None:
    """Compute what the derivatives of proportions need of genotypes with two alleles and two copies.

    IN packed (L, ⌈n/4⌉): two bits per genotype; F (L, n) probability of the second allele. OUT g/f, (2 − g)/(1 − f),
    g/f², (2 − g)/(1 − f)², zero where the genotype is missing. IN/OUT by_row (n,): log-likelihoods.
    """
    L, n = F.shape
    for row in range(L):
        for i in range(n):
            code = (packed[row, i >> 2] >> np.uint8(2 * (i & 3))) & np.uint8(3)
            copies = 0.0 if code < 2 else code - 1.0
            rest = 0.0 if code == 1 else 2.0 - copies
            a = 1.0 / F[row, i]
            b = 1.0 / (1.0 - F[row, i])
            u = copies * a
            v = rest * b
            gain[row, i] = u
            lost[row, i] = v
            second[row, i] = u * a
            other[row, i] = v * b
    likelihood_rows(packed, F, by_row)


@kernel
def likelihood_rows(packed: Packed, F: Array, by_row: Array) -> None:
    """IN/OUT by_row (n,): the log-likelihood of each individual; eight loci share a logarithm."""
    L, n = F.shape
    product = np.ones(n)
    for row in range(L):
        for i in range(n):
            code = (packed[row, i >> 2] >> np.uint8(2 * (i & 3))) & np.uint8(3)
            f = F[row, i]
            a = f if code >= 2 else 1.0 - f
            b = f if code == 3 else 1.0 - f
            product[i] *= 1.0 if code == 1 else a * b
        if row % 8 == 7 or row == L - 1:
            for i in range(n):
                by_row[i] += math.log(product[i])
                product[i] = 1.0


@kernel
def weigh_loci(packed: Packed, F: Array, first: Array, second: Array, by_locus: Array) -> None:
    """Compute what the derivatives of frequencies need.

    OUT first: g/f − (2 − g)/(1 − f); second: g/f² + (2 − g)/(1 − f)²; by_locus (L,): log-likelihoods.
    """
    L, n = F.shape
    for row in range(L):
        for i in range(n):
            code = (packed[row, i >> 2] >> np.uint8(2 * (i & 3))) & np.uint8(3)
            copies = 0.0 if code < 2 else code - 1.0
            rest = 0.0 if code == 1 else 2.0 - copies
            a = 1.0 / F[row, i]
            b = 1.0 / (1.0 - F[row, i])
            u = copies * a
            v = rest * b
            first[row, i] = u - v
            second[row, i] = u * a + v * b
    likelihood_loci(packed, F, by_locus)


@kernel
def likelihood_loci(packed: Packed, F: Array, by_locus: Array) -> None:
    """OUT by_locus (L,): log-likelihood of each locus alone; a product is cut before it can underflow."""
    L, n = F.shape
    for row in range(L):
        product = 1.0
        total = 0.0
        for i in range(n):
            code = (packed[row, i >> 2] >> np.uint8(2 * (i & 3))) & np.uint8(3)
            f = F[row, i]
            a = f if code >= 2 else 1.0 - f
            b = f if code == 3 else 1.0 - f
            product *= 1.0 if code == 1 else a * b
            if product < _SMALL:
                total += math.log(product)
                product = 1.0
        by_locus[row] = total + math.log(product)


@kernel
def weigh_counts(C: Array, F: Array, first: Array, second: Array, by_row: Array) -> None:
    """Do the same for counts of any number of alleles: IN C, F (V, n). OUT c/f, c/f². IN/OUT by_row (n,)."""
    V, n = C.shape
    for a in range(V):
        for i in range(n):
            c = C[a, i]
            if c == 0.0:
                first[a, i] = 0.0
                second[a, i] = 0.0
                continue
            u = c / F[a, i]
            first[a, i] = u
            second[a, i] = u / F[a, i]
            by_row[i] += c * math.log(F[a, i])


@kernel
def start_step(p: Array, gradient: Array, triangle: Array, H: Array, slope: Array, out: Array) -> None:
    """OUT H (K, K): the symmetric matrix of an upper triangle, row by row; slope (K,), out (K,): copies of g and p."""
    place = 0
    for j in range(len(p)):
        slope[j] = gradient[j]
        out[j] = p[j]
        for k in range(j, len(p)):
            H[j, k] = triangle[place]
            H[k, j] = triangle[place]
            place += 1


@kernel
def box_steps(P: Array, gradient: Array, hessian: Array, low: float, out: Array) -> None:
    """OUT out (L, K): maximise gᵀd − ½dᵀHd over low ≤ p + d ≤ 1 − low for each locus, one coordinate at a time.

    IN hessian (L, K(K+1)/2): the upper triangle, row by row.
    """
    L, K = P.shape
    H = np.empty((K, K))
    slope = np.empty(K)
    for row in range(L):
        start_step(P[row], gradient[row], hessian[row], H, slope, out[row])
        for _ in range(100):
            largest = 0.0
            for j in range(K):
                if H[j, j] <= 0.0:
                    continue
                new = min(max(out[row, j] + slope[j] / H[j, j], low), 1.0 - low)
                step = new - out[row, j]
                if step != 0.0:
                    out[row, j] = new
                    largest = max(largest, abs(step))
                    for k in range(K):
                        slope[k] -= step * H[j, k]
            if largest < 1e-9:
                break


@kernel
def simplex_steps(Q: Array, gradient: Array, hessian: Array, low: float, out: Array) -> None:
    """OUT out (n, K): maximise the same over q + d ≥ low, Σ(q + d) = 1, moving mass between two coordinates."""
    n, K = Q.shape
    H = np.empty((K, K))
    slope = np.empty(K)
    for i in range(n):
        start_step(Q[i], gradient[i], hessian[i], H, slope, out[i])
        for _ in range(100):
            largest = 0.0
            for j in range(K):
                for k in range(j):
                    curvature = H[j, j] + H[k, k] - 2.0 * H[j, k]
                    if curvature <= 1e-300:
                        continue
                    step = (slope[j] - slope[k]) / curvature
                    step = min(max(step, low - out[i, j]), out[i, k] - low)
                    if step != 0.0:
                        out[i, j] += step
                        out[i, k] -= step
                        largest = max(largest, abs(step))
                        for m in range(K):
                            slope[m] -= step * (H[j, m] - H[k, m])
            if largest < 1e-9:
                break
