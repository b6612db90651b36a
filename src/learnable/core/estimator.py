"""The base of every estimator: scikit-learn's contract, plus a certificate, plus all-or-nothing fits.

A model writes `_parameters` (the ranges of its arguments), `_door` (what data it takes) and `_fit(table, run)`, which
sets the fitted attributes and returns a `Certificate`. Everything around that is here.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, ClassVar, Self

from sklearn.base import BaseEstimator
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.exceptions import ConvergenceWarning

from .certificate import Certificate
from .declare import Declared, check_fitted
from .parameters import Rule, check_parameters
from .registry import resolve
from .run import Run


class _Certified:
    """What every fit sets. It stands in a plain class, where type checkers do not take it for an argument."""

    certificate_: Certificate
    #: Whether the last fit was told to stop because `max_seconds` had passed; not saved.
    _told_to_stop: bool = False


class Estimator(CallbackSupportMixin, _Certified, Declared):
    """Base class; not to be used directly."""

    _parameters: ClassVar[Mapping[str, Rule]]
    #: The door: reads (estimator, X, y, sample_weight) into a table. `learnable.data` provides it.
    _door: ClassVar[Callable[..., Any]]
    #: What to do when the certificate does not hold; completes the warning.
    _remedy: ClassVar[str] = "raise max_iter, or scale the columns of X"
    #: Whether a fit reports steps although it has no `max_iter`.
    _iterates: ClassVar[bool] = False

    @with_callbacks  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array, sparse array, dataframe or list of shape (n_samples, n_features)
            Training data.
        y : array of shape (n_samples,) or (n_samples, n_targets), or str
            Targets; with a dataframe, the name of a column.
        sample_weight : array of shape (n_samples,) or str, optional
            Non-negative weights of the rows; with a dataframe, the name of a column. A row of weight zero is left out.

        Returns
        -------
        self
            The fitted estimator. If the fit fails or is interrupted, the estimator stays as it was.
        """
        given = {name: getattr(self, name) for name in self._parameters}
        check_parameters(type(self).__name__, given, self._parameters)
        draft = self._draft()
        # How many iterations an iterative model will take is not known (None); a closed form has no subtasks.
        iterates = self._iterates or hasattr(self, "max_iter") or hasattr(self, "n_estimators")
        context = self._init_callback_context(max_subtasks=None if iterates else 0) if _is_observed(self) else None
        if context is not None:
            context.call_on_fit_task_begin(estimator=self)
        limits = getattr(self, "max_seconds", None), getattr(self, "n_jobs", None)
        run = Run(self, context, *limits, (X, y, sample_weight))
        table = type(self)._door(draft, X, y, sample_weight, run)
        certificate = draft._fit(table, run)
        draft.certificate_ = replace(certificate, seconds=run.seconds, fingerprint=table.fingerprint)
        if run.told_to_stop:
            draft._told_to_stop = True
        draft._warn_unless_certificate_holds()
        for name in _fitted_names(self):
            delattr(self, name)
        self.__dict__.update(draft.__dict__)
        if context is not None:
            context.call_on_fit_task_end(estimator=self)
        return self

    def _draft(self) -> Self:
        """Return an unfitted twin that shares the parameters: an error or Ctrl-C leaves `self` untouched."""
        twin = object.__new__(type(self))
        fitted = _fitted_names(self)
        twin.__dict__.update({name: value for name, value in vars(self).items() if name not in fitted})
        return twin

    def _fit(self, table: Any, run: Run) -> Certificate:
        raise TypeError(f"{type(self).__name__} does not define _fit")

    def _html_repr(self) -> str:
        """Return the card that notebooks show; scikit-learn's own hook for it."""
        return str(resolve("learnable.report.card:card")(self))

    def _check_loaded(self) -> None:
        """Raise ModelFileError unless the arrays of a loaded model obey the class's invariants."""
        check_fitted(self)

    def _warn_unless_certificate_holds(self) -> None:
        certificate = self.certificate_
        if certificate.kind != "none" and not certificate.holds:
            warnings.warn(
                f"{type(self).__name__}: stopped after {certificate.n_iter} iterations at {certificate.kind} "
                f"{certificate.value:.3g}, above the tolerance {certificate.tolerance:.3g}; {self._remedy}.",
                ConvergenceWarning,
                stacklevel=3,
            )


def _is_observed(estimator: BaseEstimator) -> bool:
    """Tell whether callbacks are set, on the estimator or on one that it is part of; a context for nobody is slow."""
    members = vars(estimator)
    return "_skl_callbacks" in members or "_parent_callback_ctx" in members


def _fitted_names(estimator: BaseEstimator) -> list[str]:
    names = [name for name in vars(estimator) if name.endswith("_") and not name.startswith("_")]
    return [*names, "_told_to_stop"] if "_told_to_stop" in vars(estimator) else names
