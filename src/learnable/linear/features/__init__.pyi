from .basis import BasisExpansion as BasisExpansion
from .basis import BSplines as BSplines
from .polynomial import PolynomialFeatures as PolynomialFeatures
