from .regression import LogisticRegression as LogisticRegression
