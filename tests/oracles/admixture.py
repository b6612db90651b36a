"""Admixture by the book: probabilities of all assignments, the likelihood entry by entry, one sweep, one EM step."""

import itertools

import numpy as np
from scipy.special import gammaln


def log_joint(genotypes, z, K, alpha, lam):
    """log p(genotypes, z): z is an array like the alleles; urns of individuals and of loci, copy by copy."""
    total = 0.0
    seen = {}
    for i in range(genotypes.n_individuals):
        own = np.zeros(K)
        for j in range(genotypes.n_loci):
            for c in range(genotypes.ploidy):
                a = genotypes.alleles[i, j, c]
                if a < 0:
                    continue
                k = z[i, j, c]
                total += np.log((own[k] + alpha) / (own.sum() + K * alpha))
                urn = seen.setdefault((k, j), np.zeros(genotypes.n_alleles[j]))
                total += np.log((urn[a] + lam) / (urn.sum() + lam * len(urn)))
                own[k] += 1
                urn[a] += 1
    return total


def log_joint_whole(genotypes, z, K, lam):
    """log p(genotypes, z) without admixture: one population per individual, all equally likely."""
    total = -genotypes.n_individuals * np.log(K)
    counts = genotypes.counts()
    for k in range(K):
        own = counts[np.asarray(z) == k].sum(axis=0)
        for a, b in itertools.pairwise(genotypes.starts):
            part = own[a:b]
            total += gammaln(lam * len(part)) - gammaln(lam * len(part) + part.sum())
            total += (gammaln(lam + part) - gammaln(lam)).sum()
    return total


def log_likelihood(genotypes, Q, P):
    """Σ log Σ_k q_ik p_kla over the copies that are known, one by one."""
    total = 0.0
    for i, j, c in itertools.product(*map(range, genotypes.alleles.shape)):
        a = genotypes.alleles[i, j, c]
        if a >= 0:
            total += np.log(Q[i] @ P[genotypes.starts[j] + a])
    return total


def expected_copies(genotypes, Q, P):
    """Expected copies of each population given Q and P, by individual and by allele, and their variances."""
    found = [np.zeros_like(Q), np.zeros_like(P), np.zeros_like(Q), np.zeros_like(P)]
    for i, j, c in itertools.product(*map(range, genotypes.alleles.shape)):
        a = genotypes.alleles[i, j, c]
        if a >= 0:
            share = Q[i] * P[genotypes.starts[j] + a]
            share = share / share.sum()
            found[0][i] += share
            found[1][genotypes.starts[j] + a] += share
            found[2][i] += share * (1 - share)
            found[3][genotypes.starts[j] + a] += share * (1 - share)
    return found


def em_step(genotypes, Q, P):
    """One EM step: the expected copies of each population, by individual and by allele."""
    new_Q, new_P, _, _ = expected_copies(genotypes, Q, P)
    for a, b in itertools.pairwise(genotypes.starts):
        new_P[a:b] /= new_P[a:b].sum(axis=0)
    return new_Q / new_Q.sum(axis=1, keepdims=True), new_P
