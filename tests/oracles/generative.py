"""Generative classifiers by brute force: enumeration of categories, numeric integration over parameters."""

import numpy as np
from scipy import integrate, stats


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
    """Return the posterior predictive density at x of normal data under a normal–inverse-gamma prior, by quadrature."""

    def posterior(mu, log_var):
        var = np.exp(log_var)
        prior = stats.norm.logpdf(mu, mean, np.sqrt(var / kappa)) + stats.invgamma.logpdf(var, shape, scale=rate)
        return prior + stats.norm.logpdf(sample, mu, np.sqrt(var)).sum() + log_var  # dvar = var dlog_var

    centre = np.mean([*sample, mean])
    spread = 6 * (np.std([*sample, mean]) + 1.0)
    top = max(posterior(centre, v) for v in np.linspace(-6, 6, 41))
    box = (-8.0, 8.0, centre - spread, centre + spread)

    def integral(f):
        return integrate.dblquad(lambda mu, v: np.exp(posterior(mu, v) - top) * f(mu, v), *box, epsabs=1e-9)[0]

    return integral(lambda mu, v: stats.norm.pdf(x, mu, np.exp(v / 2))) / integral(lambda mu, v: 1.0)


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
