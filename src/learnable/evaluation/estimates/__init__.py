"""Scores on rows that a model has not seen: estimates, intervals, tests, curves, importances."""
