from .regression import LogisticRegression as LogisticRegression
from .regression_cv import LogisticRegressionCV as LogisticRegressionCV
