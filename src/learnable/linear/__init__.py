"""Linear models, every fit with its certificate.

Least squares, ridge, lasso and elastic net, with paths and cross-validated forms; logistic and softmax regression;
support vector machines and the perceptron; Poisson, Gamma and Tweedie regression; polynomials and basis functions.
"""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
