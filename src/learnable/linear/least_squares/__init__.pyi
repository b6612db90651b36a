from .linear_regression import LinearRegression as LinearRegression
from .linear_regression import RegressionSummary as RegressionSummary
from .ridge import Ridge as Ridge
from .ridge_classifier import RidgeClassifier as RidgeClassifier
from .ridge_classifier import RidgeClassifierCV as RidgeClassifierCV
from .ridge_cv import RidgeCV as RidgeCV
from .ridge_cv import ridge_path as ridge_path
