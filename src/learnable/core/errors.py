"""What can go wrong, as a small hierarchy: every message names the owner, the rule, what was received, and the remedy.

Each class is also a built-in exception, so that code written for scikit-learn (`except ValueError`) keeps working.
"""

from __future__ import annotations


class LearnableError(Exception):
    """Base of every error this library raises on purpose."""


class ParameterError(LearnableError, ValueError):
    """A constructor argument outside its declared range."""


class DataError(LearnableError, ValueError):
    """Data that cannot be learned from as they are: NaN, wrong shapes, one class, no rows."""


class DataTypeError(DataError, TypeError):
    """Data that are of the wrong type; a TypeError too, as scikit-learn raises for them."""


class ModelFileError(LearnableError, ValueError):
    """A model file that is damaged, hostile, of another version, or a model that cannot be saved."""


class VerificationError(LearnableError, ValueError):
    """A model whose certificate cannot be re-derived, because there is no model, no record or no checker."""


class NoRootError(LearnableError, ArithmeticError):
    """A root that was not found."""


class LostRowsError(DataError):
    """Rows that went away in the middle of a fit, with their worker or with the whole cluster.

    `kept` is where the fit was by then, in the form in which the model takes a start; None if it had reached nothing.
    """

    kept: object = None


class SeparableDataError(DataError):
    """A likelihood without a maximum: a linear rule separates the classes and nothing bounds the weights."""


class NotExponentialFamilyError(LearnableError, AttributeError):
    """What only exponential families have, asked of a distribution that is none."""


class AscentError(LearnableError, ArithmeticError, ValueError):
    """A step of an alternate maximisation that lowered the objective; the step, or the model's formulas, are wrong."""
