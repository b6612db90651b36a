"""Textbook methods to try on functions of your own: first-order methods, step rules, reports about a function."""
