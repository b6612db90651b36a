"""Boosting by majority."""
