"""Where pickles of the first releases look for the class of their certificates."""

from .estimator import Certificate as Certificate
