from .inference import RegressionSummary as RegressionSummary
from .least_squares import LinearRegression as LinearRegression
from .logistic import LogisticRegression as LogisticRegression
from .ridge import Ridge as Ridge
from .ridge_cv import RidgeCV as RidgeCV
from .ridge_cv import ridge_path as ridge_path
