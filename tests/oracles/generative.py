"""Generative classifiers by brute force: enumeration of categories, numeric integration over parameters."""

import numpy as np
from scipy import stats


def categorical_posterior(X, y, query, alpha):
    """Return P(class | query) of naive Bayes by counting, in plain Python."""
    classes = sorted(set(y))
    weights = []
    for c in classes:
        rows = [x for x, label in zip(X, y, strict=True) if label == c]
        p = len(rows) / len(y)
        for j, value in enumerate(query):
            if value is None:
                continue
            n_values = len({x[j] for x in X})
            p *= (sum(x[j] == value for x in rows) + alpha) / (len(rows) + alpha * n_values)
        weights.append(p)
    return np.array(weights) / sum(weights)


def exact_posterior(joint):
    """Return P(class | x) for every x of a table P(x, class), whose last axis is the class."""
    return joint / joint.sum(axis=-1, keepdims=True)


def normal_predictive(x, sample, mean, kappa, shape, rate):
    """Return the posterior predictive density at x of normal data under a normal–inverse-gamma prior, on a grid."""
    mu = np.linspace(np.mean(sample) - 15, np.mean(sample) + 15, 1501)[:, None]
    log_var = np.linspace(-9, 9, 1201)[None, :]
    std = np.exp(0.5 * log_var)
    log_p = (
        stats.norm.logpdf(mu, mean, std / np.sqrt(kappa)) + stats.invgamma.logpdf(std**2, shape, scale=rate) + log_var
    )
    for value in sample:
        log_p = log_p - 0.5 * ((value - mu) / std) ** 2 - np.log(std)
    weight = np.exp(log_p - log_p.max())
    return (weight * np.exp(-0.5 * ((x - mu) / std) ** 2) / (std * np.sqrt(2 * np.pi))).sum() / weight.sum()


def discriminant(X, y, priors=None):
    """Return class means, pooled and own covariances (divisor n) and shares, by the definitions."""
    classes = np.unique(y)
    means = np.array([X[y == c].mean(axis=0) for c in classes])
    own = np.array([np.cov(X[y == c].T, bias=True).reshape(X.shape[1], -1) for c in classes])
    shares = np.array([(y == c).mean() for c in classes]) if priors is None else np.asarray(priors)
    pooled = np.einsum("k,kij->ij", np.array([(y == c).mean() for c in classes]), own)
    return means, pooled, own, shares


def normal_posterior(X, means, covs, priors):
    """Return P(class | x) of normal classes, by SciPy's densities."""
    joint = np.stack(
        [p * stats.multivariate_normal(m, c).pdf(X) for p, m, c in zip(priors, means, covs, strict=True)], 1
    )
    return joint / joint.sum(axis=1, keepdims=True)
