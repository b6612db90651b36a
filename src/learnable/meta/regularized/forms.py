r"""From one form to another: the parameters at which Tikhonov, Ivanov and Phillips have the same solution.

If f minimises R + λΩ, it minimises R over Ω ≤ τ = Ω(f), with λ as the multiplier, and Ω over R ≤ κ = R(f), with 1/λ:
a point of lower risk in the ball, or of lower penalty in the level set, would lower R + λΩ. Conversely, with a
multiplier λ > 0, a solution of either minimises R + λΩ. A point that is proven to be within ε of the optimum of one
form is so in the others: ε for Tikhonov and Ivanov, ε/λ for Phillips.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from ...core.errors import ParameterError
from .model import RegularizedRisk

_FORMS = ("tikhonov", "ivanov", "phillips")


@dataclass(frozen=True)
class EquivalentForm:
    """Another form with the same solution.

    Attributes
    ----------
    form : str
        Its name.
    value : float
        λ, τ or κ.
    multiplier : float
        λ; of Ivanov's constraint λ, of Phillips's 1/λ.
    excess : float
        How far the solution at hand is at most above the optimum of this form, in the units of its objective: R + λΩ,
        R, or Ω.
    model : RegularizedRisk
        An unfitted model in this form, with the same loss, penalty and constraints.
    """

    form: str
    value: float
    multiplier: float
    excess: float
    model: RegularizedRisk

    def __repr__(self) -> str:
        return (
            f"{self.form} with value {self.value:.6g}, multiplier {self.multiplier:.6g}; the same coefficients "
            "are at most "
            f"{self.excess:.2g} above its optimum"
        )


def equivalent(model: RegularizedRisk, form: str) -> EquivalentForm:
    """Return the form and parameter whose solution is that of a fitted model.

    Parameters
    ----------
    model : RegularizedRisk
        Fitted.
    form : {"tikhonov", "ivanov", "phillips"}
        The form asked for.

    Returns
    -------
    EquivalentForm
        Parameter, multiplier, and a proof that the model's coefficients are (nearly) optimal there too.

    Raises
    ------
    ParameterError
        Where the model's constraint is idle: then no λ > 0 gives its solution.

    Examples
    --------
    >>> from learnable import RegularizedRisk
    >>> from learnable.meta import equivalent
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [0.0, 1.0, 2.0, 4.0]
    >>> model = RegularizedRisk("squared", "l2", value=0.5).fit(X, y)
    >>> back = equivalent(equivalent(model, "phillips").model.fit(X, y), "tikhonov")
    >>> round(back.value, 4)
    0.5
    """
    if form not in _FORMS:
        raise ParameterError(f"equivalent: form must be one of {', '.join(_FORMS)}; got {form!r}.")
    check_is_fitted(model)
    strength = _strength_of(model)
    if form == model.form:
        value = float(model.value)
    elif form == "tikhonov":
        value = strength
    else:
        value = model.penalty_ if form == "ivanov" else model.risk_
    excess = _excess(model, strength)
    if form == "phillips":
        excess /= strength
    multiplier = 1.0 / strength if form == "phillips" else strength
    return EquivalentForm(form, value, multiplier, excess, clone(model).set_params(form=form, value=value))


def _strength_of(model: RegularizedRisk) -> float:
    """Return λ of a fitted model in any form; raise ParameterError where there is none."""
    strength = model.multiplier_
    if model.form == "phillips":
        strength = 1.0 / model.multiplier_ if model.multiplier_ > 0.0 else math.inf
    # λΩ of a multiplier that is zero but for rounding moves nothing that a gap of the fit could see.
    moved = model.risk_ - model.least_risk_
    idle = model.form == "ivanov" and strength * model.penalty_ <= model.tol * moved
    idle |= model.form == "phillips" and moved <= model.tol * strength * model.penalty_
    if not 0.0 < strength < math.inf or idle or model.penalty_ == 0.0:
        raise ParameterError(
            f"equivalent: the constraint of this model is idle (multiplier {model.multiplier_:.3g}, Ω = "
            f"{model.penalty_:.3g}), so that no λ > 0, τ > 0 and κ give its solution in every form; use a "
            f"{'smaller' if model.form != 'tikhonov' else 'smaller λ as'} value."
        )
    return float(strength)


def _excess(model: RegularizedRisk, strength: float) -> float:
    """Return the proven distance from the optimum of R + λΩ."""
    gap = model.certificate_.value
    if model.form == "phillips":
        return strength * gap * model.penalty_
    primal = model.risk_ - model.least_risk_
    if model.form == "tikhonov":
        primal += strength * model.penalty_
    return gap * primal
