"""Members of every family, for the laws that all of them obey: one distribution, another one, and an array of two."""

import numpy as np

from learnable.probability import (
    Bernoulli,
    Beta,
    Binomial,
    Categorical,
    Dirichlet,
    Exponential,
    ExponentialFamily,
    Gamma,
    InverseGamma,
    InverseWishart,
    Laplace,
    Multinomial,
    MultivariateNormal,
    Normal,
    Poisson,
    StudentT,
    Wishart,
)

V = np.array([[2.0, 0.6], [0.6, 1.0]])
W = np.array([[1.0, -0.2], [-0.2, 0.5]])

#: name -> (one member, another with the same known parameters)
PAIRS = {
    "Normal": (Normal(0.7, 1.3), Normal(-0.2, 2.0)),
    "StudentT": (StudentT(4.5, 0.7, 1.3), StudentT(6.0, 0.1, 2.0)),
    "Laplace": (Laplace(0.7, 1.3), Laplace(0.1, 2.0)),
    "Exponential": (Exponential(0.6), Exponential(1.7)),
    "Gamma": (Gamma(2.3, 0.7), Gamma(0.8, 1.1)),
    "InverseGamma": (InverseGamma(5.5, 3.0), InverseGamma(4.3, 2.0)),
    "Beta": (Beta(2.3, 0.7), Beta(1.5, 3.0)),
    "Bernoulli": (Bernoulli(0.3), Bernoulli(0.6)),
    "Binomial": (Binomial(7, 0.3), Binomial(7, 0.6)),
    "Poisson": (Poisson(3.2), Poisson(1.4)),
    "Categorical": (Categorical([0.2, 0.5, 0.3]), Categorical([0.4, 0.1, 0.5])),
    "Multinomial": (Multinomial(5, [0.2, 0.5, 0.3]), Multinomial(5, [0.4, 0.1, 0.5])),
    "Dirichlet": (Dirichlet([2.0, 0.8, 3.5]), Dirichlet([1.0, 1.5, 2.0])),
    "MultivariateNormal": (MultivariateNormal([0.5, -1.0], V), MultivariateNormal([0.0, 0.3], W)),
    "Wishart": (Wishart(5.5, V), Wishart(4.2, W)),
    "InverseWishart": (InverseWishart(9.5, V), InverseWishart(8.0, W)),
}
ALL = [one for one, _ in PAIRS.values()]
EXPONENTIAL = {name: pair for name, pair in PAIRS.items() if isinstance(pair[0], ExponentialFamily)}
#: Families whose natural parameter is not unique: A(η) is stated for the one that is given.
OVERCOMPLETE = {"Categorical", "Multinomial"}
CONTINUOUS_LINE = ("Normal", "StudentT", "Laplace", "Exponential", "Gamma", "InverseGamma", "Beta")
COUNTS = ("Bernoulli", "Binomial", "Poisson", "Categorical")
VECTORS = ("Multinomial", "Dirichlet", "MultivariateNormal", "Wishart", "InverseWishart")


def stacked(name):
    """Return both members as one array of distributions."""
    one, other = PAIRS[name]
    return type(one)(**{key: np.stack([value, other.parameters[key]]) for key, value in one.parameters.items()})
