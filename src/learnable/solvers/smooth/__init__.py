"""Smooth functions: Newton's method, with a matrix or with products only, and quasi-Newton methods."""
