from .general import GLM as GLM
from .regression import GammaRegressor as GammaRegressor
from .regression import PoissonRegressor as PoissonRegressor
from .regression import TweedieRegressor as TweedieRegressor
