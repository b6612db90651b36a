"""Linear models, every fit with its certificate.

Least squares, ridge, lasso and elastic net, with paths and cross-validated forms; logistic and softmax regression;
support vector machines and the perceptron; Poisson, Gamma and Tweedie regression; polynomials and basis functions.
"""

from ..core.lazy import attach as _attach

__getattr__, __dir__, __all__ = _attach(__name__, __file__)
