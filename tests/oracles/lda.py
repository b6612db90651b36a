"""Latent Dirichlet allocation by the book: the likelihood of a document summed over all topics, coherence by pairs."""

import itertools

import numpy as np
from scipy.special import gammaln


def document_likelihood(words, phi, alpha):
    """p(words | Φ, α), θ integrated out: the sum over all K^N assignments; phi (K, V)."""
    total = 0.0
    K = len(alpha)
    for z in itertools.product(range(K), repeat=len(words)):
        n = np.bincount(z, minlength=K)
        prior = gammaln(alpha.sum()) - gammaln(alpha.sum() + len(words)) + (gammaln(alpha + n) - gammaln(alpha)).sum()
        total += np.exp(prior) * np.prod([phi[k, w] for k, w in zip(z, words, strict=True)])
    return total


def npmi(a, b, X):
    """Normalised pointwise mutual information of two words in documents."""
    A = X[:, a] > 0
    B = X[:, b] > 0
    joint = (A & B).mean()
    if joint == 0:
        return -1.0
    return np.log(joint / (A.mean() * B.mean())) / -np.log(joint)
