"""AdaBoost: classifier, regressor, rounds and stumps."""
