"""One prior of every conjugate pair, with data that its family may give, for the laws that all of them obey."""

import numpy as np

from learnable.probability import (
    BetaBinomial,
    DirichletCategorical,
    DirichletMultinomial,
    GammaExponential,
    GammaNormal,
    GammaPoisson,
    InverseGammaNormal,
    NormalGamma,
    NormalInverseGamma,
    NormalNormal,
    NormalWishart,
)

PSI = np.array([[2.0, 0.6], [0.6, 1.0]])

#: name -> (prior, data)
PAIRS = {
    "BetaBernoulli": (BetaBinomial(1.5, 2.5), [1, 0, 1, 1, 1]),
    "BetaBinomial": (BetaBinomial(1.5, 2.5, n=7), [3, 0, 7, 5]),
    "DirichletCategorical": (DirichletCategorical([1.5, 0.7, 2.0]), [0, 2, 2, 1, 2]),
    "DirichletMultinomial": (DirichletMultinomial([1.5, 0.7, 2.0]), [[3, 0, 1], [2, 2, 0], [1, 0, 5]]),
    "NormalNormal": (NormalNormal(0.5, 1.5, 0.8), [2.0, 1.1, 2.5]),
    "GammaNormal": (GammaNormal(2.5, 1.3, mean=0.5), [2.0, 1.1, -2.5]),
    "InverseGammaNormal": (InverseGammaNormal(2.5, 1.3, mean=0.5), [2.0, 1.1, -2.5]),
    "GammaPoisson": (GammaPoisson(2.5, 1.3), [3, 0, 4, 1]),
    "GammaExponential": (GammaExponential(2.5, 1.3), [0.4, 2.0, 1.1]),
    "NormalInverseGamma": (NormalInverseGamma(0.5, 1.5, 2.0, 1.2), [2.0, 1.1, 2.5]),
    "NormalGamma": (NormalGamma(0.5, 1.5, 2.0, 1.2), [2.0, 1.1, 2.5]),
    "NormalWishart": (NormalWishart([0.5, -1.0], 1.5, 4.5, PSI), [[2.0, 1.1], [2.5, 0.0], [-0.5, 0.3]]),
}
NAMES = list(PAIRS)


def repeated(prior, m):
    """Return the prior m times, as an array of priors."""
    return type(prior)(**{name: np.broadcast_to(p, (m, *np.shape(p))) for name, p in prior.parameters.items()})


def assert_same(one, other, rtol=1e-12):
    assert type(one) is type(other)
    for name, value in one.parameters.items():
        np.testing.assert_allclose(value, other.parameters[name], rtol=rtol, atol=1e-13, err_msg=name)
