"""One convergence verdict for everything: has it converged, how sure is that, what to do."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from ..core.errors import DataError
from ..core.estimator import Certificate

#: What each kind of certificate says about the answer if it holds: how sure, and of what.
_MEANINGS = {
    "closed-form": ("proven", "the equations that define the answer hold"),
    "gap": ("proven", "no answer is better by more than the gap"),
    "stationarity": ("local", "no small step improves the answer; with a convex objective it is the best"),
    "ascent": ("local", "one more step changes nothing; other starts may end elsewhere"),
    "greedy": ("local", "each split is the best given those above it"),
    "chain": ("statistical", "chains from different starts agree, and there are draws enough"),
    "bellman": ("proven", "one more backup changes nothing; the value's error is at most residual·γ/(1 − γ)"),
}
#: What to do if it does not hold.
_REMEDIES = {
    "closed-form": "rescale the columns: the equations are ill-conditioned",
    "gap": "raise max_iter or max_seconds, or standardise the columns",
    "stationarity": "raise max_iter or max_seconds, or standardise the columns",
    "ascent": "raise max_iter, or loosen tol if the gain left is small enough for you",
    "greedy": "fit again: a split is not the best of its candidates",
    "chain": "draw more, or reparametrise",
    "bellman": "raise max_iter",
}
#: How to be surer although it holds.
_ADVICE = {
    "ascent": "try more starts (n_init) and keep the best",
    "stationarity": "if the objective is not convex, try more starts",
    "greedy": "judge the tree on rows it has not seen",
    "chain": "look at rank plots; run with other starts if several modes are possible",
}


@dataclass(frozen=True)
class Diagnosis:
    """The verdict on one fit.

    Attributes
    ----------
    converged : bool
        Whether the certificate holds.
    sure : {"proven", "local", "statistical", "nothing"}
        What kind of certainty that is.
    value, tolerance : float
        The certificate's number and what it had to reach.
    kind : str
        Kind of the certificate.
    reason : str
        The verdict in one sentence.
    advice : tuple of str
        What to do.
    """

    converged: bool
    sure: str
    value: float
    tolerance: float
    kind: str
    reason: str
    advice: tuple[str, ...]

    def __bool__(self) -> bool:
        return self.converged

    def to_dict(self) -> dict[str, Any]:
        """Return the record as plain JSON types."""
        record = dict(vars(self)) | {"advice": list(self.advice)}
        for key in ("value", "tolerance"):
            if not math.isfinite(record[key]):
                record[key] = None
        return record

    def __str__(self) -> str:
        verdict = "converged" if self.converged else "NOT converged"
        lines = [f"{verdict} ({self.sure}): {self.reason}"]
        return "\n".join([*lines, *(f"- {one}" for one in self.advice)])


def diagnose(fitted: Any) -> Diagnosis:
    """Say whether a fit has converged, how sure that is, and what to do.

    Parameters
    ----------
    fitted : estimator, Chains or Posterior
        Anything with a certificate: EM, hidden Markov models, k-means, mixtures, variational fits, samplers, and every
        model with an optimum.

    Returns
    -------
    Diagnosis
        Same words and same record for all of them; true if converged.

    Examples
    --------
    >>> import learnable as ln
    >>> from learnable.evaluation import diagnose
    >>> print(diagnose(ln.KMeans(2, random_state=0).fit([[0.0], [0.1], [5.0], [5.2]])))  # doctest: +ELLIPSIS
    converged (local): ...
    """
    certificate = getattr(fitted, "certificate_", None)
    if not isinstance(certificate, Certificate):
        raise DataError(f"diagnose: this {type(fitted).__name__} has no certificate; fit it first.")
    kind = certificate.kind
    value = certificate.value
    tolerance = certificate.tolerance
    if kind == "none":
        advice: tuple[str, ...] = ("judge it on rows it has not seen: nothing else is known",)
        return Diagnosis(False, "nothing", value, tolerance, kind, "this fit proves nothing about itself", advice)
    sure, meaning = _MEANINGS[kind]
    measured = f"{certificate.sentence} (tolerance {tolerance:.2g})"
    if certificate.holds:
        advice = tuple(_own_advice(fitted)) or ((_ADVICE[kind],) if kind in _ADVICE else ())
        return Diagnosis(True, sure, value, tolerance, kind, f"{meaning}; {measured}", advice)
    advice = tuple(_own_advice(fitted)) or (_REMEDIES[kind],)
    return Diagnosis(False, sure, value, tolerance, kind, measured, advice)


def _own_advice(fitted: Any) -> list[str]:
    """Return what the fit itself says is wrong: chains do."""
    chains = getattr(fitted, "chains", fitted)
    warnings = getattr(chains, "warnings", None)
    return list(warnings()) if callable(warnings) and hasattr(chains, "n_chains") else []
