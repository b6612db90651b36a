"""Rows of two components of every exponential family, for the tests of mixtures."""

import numpy as np

from learnable import probability

#: By family: two members from which the rows are drawn.
PAIRS = {
    "Normal": (probability.Normal([0.0, 1.0], 1.0), probability.Normal([4.0, 5.0], 0.5)),
    "MultivariateNormal": (
        probability.MultivariateNormal([0.0, 1.0], [[1.0, 0.5], [0.5, 1.0]]),
        probability.MultivariateNormal([4.0, 5.0], [[0.5, -0.2], [-0.2, 0.3]]),
    ),
    "Poisson": (probability.Poisson([2.0, 3.0]), probability.Poisson([12.0, 9.0])),
    "Exponential": (probability.Exponential([1.0, 2.0, 1.0]), probability.Exponential([0.05, 0.1, 0.1])),
    "Bernoulli": (probability.Bernoulli([0.2, 0.1, 0.2, 0.3, 0.1]), probability.Bernoulli([0.8, 0.7, 0.9, 0.8, 0.8])),
    "Binomial": (probability.Binomial(10, [0.2, 0.3]), probability.Binomial(10, [0.8, 0.7])),
    "Categorical": (
        probability.Categorical([[0.7, 0.1, 0.1, 0.1]] * 5),
        probability.Categorical([[0.1, 0.1, 0.1, 0.7]] * 5),
    ),
    "Multinomial": (probability.Multinomial(10, [0.7, 0.2, 0.1]), probability.Multinomial(10, [0.1, 0.2, 0.7])),
    "Gamma": (probability.Gamma([3.0, 2.0], 1.0), probability.Gamma([20.0, 30.0], 1.0)),
    "InverseGamma": (probability.InverseGamma([5.0, 6.0], 1.0), probability.InverseGamma([20.0, 15.0], 40.0)),
    "Beta": (probability.Beta([2.0, 1.5], 8.0), probability.Beta([9.0, 7.0], 2.0)),
    "Dirichlet": (probability.Dirichlet([2.0, 8.0, 1.0]), probability.Dirichlet([9.0, 2.0, 3.0])),
    "Wishart": (probability.Wishart(5.0, np.eye(2)), probability.Wishart(15.0, 3 * np.eye(2))),
    "InverseWishart": (probability.InverseWishart(8.0, np.eye(2)), probability.InverseWishart(15.0, 60 * np.eye(2))),
}
KNOWN = {"Binomial": {"n": 10}}


def rows_of(name, n=100, seed=0):
    """Return rows, three fifths of them from the first member, and the member of each."""
    rng = np.random.default_rng(seed)
    sizes = (n - 2 * n // 5, 2 * n // 5)
    parts = [np.asarray(d.sample(size, rng)).reshape(size, -1) for d, size in zip(PAIRS[name], sizes, strict=True)]
    return np.concatenate(parts), np.repeat([0, 1], sizes)
