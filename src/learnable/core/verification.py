"""Re-check a fit: recompute the certificate's value from the model and the data alone, by independent code.

`verify` asks the registry for the checker of this class. A checker shares no code with the fit: it evaluates the
definition in plain NumPy and returns a `Recheck`.
"""

from __future__ import annotations

from typing import Any

from ._soundness import check_members
from ._soundness_sklearn import sklearn_name
from .checking import AGREEMENT, BOUND_ROUNDING, FINEST_CLAIM, Recheck, Verdict
from .entries import SKLEARN
from .errors import LearnableError, ModelFileError, VerificationError
from .estimator import Certificate
from .registry import REGISTRY, registered_name, resolve


def verify(model: Any, X: Any = None, y: Any = None, sample_weight: Any = None) -> Verdict:
    """Re-derive a fitted model's certificate from scratch.

    Parameters
    ----------
    model : estimator
        A fitted model of this library, perhaps loaded from a file; or a scikit-learn pipeline, search, voting or
        stacking workflow of such models. Of a pipeline the last model is checked, on the rows as the fitted steps
        transform them; of a search the `best_estimator_`; of the others every model. `Verdict.unchecked` says what
        was not re-derived.
    X, y, sample_weight
        The training data, in any form that `fit` takes; none for `Chains`, which hold their draws. The weights are
        those of the last model of a pipeline
        (`model__sample_weight` of its fit), and of every model of a voting or stacking workflow.

    Returns
    -------
    Verdict
        True when the data are the ones recorded, the value recomputed is within the tolerance, and it agrees with
        the record.

    Examples
    --------
    >>> import learnable as ln
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [0.1, 0.9, 2.1, 2.9]
    >>> model = ln.Ridge().fit(X, y)
    >>> bool(ln.verify(model, X, y))
    True
    >>> model.coef_ = model.coef_ * 1.001
    >>> bool(ln.verify(model, X, y))
    False
    """
    foreign = sklearn_name(type(model))
    if foreign is not None and SKLEARN[foreign].checker is not None:
        return _verify_workflow(foreign, model, X, y, sample_weight)
    name = registered_name(type(model))
    checker = REGISTRY[name].checker if name else None
    recorded = getattr(model, "certificate_", None)
    if name is not None and isinstance(recorded, Certificate) and recorded.kind == "none":
        raise VerificationError(f"verify: this {name} proves nothing, so there is nothing to check.")
    if checker is None and name is not None and recorded is None:
        raise VerificationError(f"verify: {name} optimises nothing, so it has no certificate and nothing to check.")
    if checker is None:
        why = "has no independent check" if name else "is not a model of this library"
        raise VerificationError(f"verify: {type(model).__name__} {why}.")
    if not isinstance(recorded, Certificate):
        raise VerificationError(f"verify: this {name} has no certificate; call fit first.")
    found = _recheck(checker, model, X, y, sample_weight)
    if isinstance(found, str):
        return Verdict(False, float("nan"), recorded, (found,))
    reasons = []
    if found.fingerprint != recorded.fingerprint:
        reasons.append(
            f"the data are not those of the fit (fingerprint {found.fingerprint}, not {recorded.fingerprint})"
        )
    # Rounding explains a difference only while it is smaller than the claim itself.
    allowance = min(found.rounding, max(recorded.tolerance, FINEST_CLAIM))
    if not found.value <= max(recorded.tolerance, allowance):
        reasons.append(
            f"the {recorded.kind} is {found.value:.3g}, above the tolerance {recorded.tolerance:.3g}"
            + _beyond_the_claim(found, allowance)
        )
    if not abs(found.value - recorded.value) <= AGREEMENT * abs(recorded.value) + allowance:
        reasons.append(
            f"the {recorded.kind} is {found.value:.3g}, but {recorded.value:.3g} was recorded"
            + _beyond_the_claim(found, allowance)
        )
    proven, rounding = (found.value, allowance) if recorded.kind == "gap" else (found.bound, BOUND_ROUNDING)
    claimed = recorded.bound
    if claimed is not None and proven is not None and not proven <= (1 + AGREEMENT) * claimed + rounding:
        reasons.append(f"the bound of the suboptimality is {proven:.3g}, but {claimed:.3g} was recorded")
    inner = found.inner
    if inner is not None and not inner and inner.recorded.holds:  # a fit that stopped early never claimed to hold
        reasons += [f"of the model inside, {reason}" for reason in inner.reasons]
    return Verdict(not reasons, found.value, recorded, tuple(reasons), inner)


def _verify_workflow(name: str, model: Any, X: Any, y: Any, sample_weight: Any) -> Verdict:
    """Have the models of a scikit-learn workflow checked, each by its own checker."""
    found: Verdict = resolve(str(SKLEARN[name].checker))(model, X, y, sample_weight)
    return found


def _recheck(checker: str, model: Any, X: Any, y: Any, sample_weight: Any) -> Recheck | str:
    """Ask the checker; of a model whose arrays do not fit together return what is wrong with them, in words."""
    try:
        check_members(model)
        found: Recheck = resolve(checker)(model, X, y, sample_weight)
    except ModelFileError as error:
        return f"the model is damaged: {str(error).removeprefix('load: ')}"
    except LearnableError:
        raise  # about the data, or about what this model can prove
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        what = f"{type(error).__name__}: {' '.join(str(error).split())}"
        return f"the model is damaged: its arrays do not fit together or to the data ({what})"
    return found


def _beyond_the_claim(found: Recheck, allowance: float) -> str:
    """Say where the data leave so few digits that nothing of the claim's size can be checked."""
    if not found.rounding > allowance:
        return ""
    return f" (rounding on these data can reach {found.rounding:.2g}, more than the claim; rescale the columns)"
