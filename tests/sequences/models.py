"""Small fitted and given hidden Markov models, and their data."""

import numpy as np

from learnable import GMMHMM, CategoricalHMM, GaussianHMM, PoissonHMM

KINDS = ("categorical", "poisson", "diag", "spherical", "full", "tied", "mixture")


def given(kind, K=3, d=2, seed=0):
    """Return a model with parameters that were set, not fitted."""
    rng = np.random.default_rng(seed)
    A = 0.7 * np.eye(K) + 0.3 * rng.dirichlet(np.ones(K), K)
    if kind == "categorical":
        model = CategoricalHMM(K)
        model.emissionprob_ = rng.dirichlet(np.full(4, 0.5), K)
    elif kind == "poisson":
        model = PoissonHMM(K)
        model.lambdas_ = rng.uniform(0.5, 12, (K, d))
    elif kind == "mixture":
        model = GMMHMM(K, 2)
        model.weights_, model.means_ = rng.dirichlet(np.ones(2), K), 4 * rng.normal(size=(K, 2, d))
        model.covars_ = rng.uniform(0.3, 2.0, (K, 2, d))
    else:
        model = GaussianHMM(K, kind)
        model.means_ = 4 * rng.normal(size=(K, d))
        B = rng.normal(size=(K, d, d))
        full = B @ B.transpose(0, 2, 1) + 0.3 * np.eye(d)
        shapes = {"full": full, "tied": full[0], "diag": full[:, range(d), range(d)], "spherical": full[:, 0, 0]}
        model.covars_ = shapes[kind]
    model.startprob_, model.transmat_ = rng.dirichlet(np.ones(K)), A
    return model


def holes(X, seed=0, share=0.1):
    """Return X as floats with missing rows and, in several columns, missing entries."""
    rng = np.random.default_rng(seed)
    X = np.array(X, dtype=float)
    X[rng.random(X.shape) < share] = np.nan
    X[3:6] = np.nan
    return X
