"""What a loaded `AdaBoostClassifier` must hold."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from ..core.errors import ModelFileError
from ._members import sides_are_sound
from .stumps import Stumps


def check_loaded(model: Any) -> None:
    """Raise ModelFileError unless learners, votes and classes fit each other: kernels check nothing."""
    classes, votes = getattr(model, "classes_", None), getattr(model, "estimator_weights_", None)
    if not (isinstance(classes, np.ndarray) and classes.ndim == 1 and len(classes) >= 1):
        _refuse("classes_ must hold labels")
    if not (isinstance(votes, np.ndarray) and votes.dtype == np.float64 and votes.ndim == 1 and len(votes)):
        _refuse("estimator_weights_ must be a list of numbers")
    if not (np.isfinite(votes).all() and (votes >= 0).all() and votes.sum() > 0):
        _refuse("estimator_weights_ must be finite and not negative, and some positive")
    if type(getattr(model, "n_rows_", None)) is not int or model.n_rows_ < 1:
        _refuse("n_rows_ must be a number of rows")
    if type(getattr(model, "seed_", None)) is not int or model.seed_ < 0:
        _refuse("seed_ must be a whole number")
    stumps, models = getattr(model, "stumps_", None), getattr(model, "models_", None)
    n_scores = 1 if len(classes) <= 2 else len(classes)
    if model.estimator is None:
        if not isinstance(stumps, Stumps) or len(stumps) != len(votes) or models is not None:
            _refuse("stumps_ must hold one stump for each vote")
        if stumps.value.shape[2] != n_scores or (stumps.feature >= model.n_features_in_).any():
            _refuse("stumps_ must have a score for each class and test columns that exist")
        if not sides_are_sound(getattr(model, "stump_sides_", None), (len(votes), 2, len(classes) + 1)):
            _refuse("stump_sides_ must hold weights of the classes and rows on both sides of each stump")
    elif not isinstance(models, list) or len(models) != len(votes) or stumps is not None:
        _refuse("models_ must hold one model for each vote")
    elif any(type(member) is not type(model.estimator) for member in models):
        _refuse("models_ must be of the class of estimator")
    elif any(getattr(member, "n_features_in_", None) != model.n_features_in_ for member in models):
        _refuse("models_ must have the features of the ensemble")
    elif any(not np.isin(getattr(member, "classes_", []), classes).all() for member in models):
        _refuse("models_ must know the classes of the ensemble")


def _refuse(what: str) -> NoReturn:
    raise ModelFileError(f"load: AdaBoostClassifier: {what}.")
