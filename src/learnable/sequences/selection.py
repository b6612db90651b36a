"""The number of states by an information criterion."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from sklearn.base import clone

from ..core.errors import ParameterError


class StateChoice(NamedTuple):
    """The outcome of `select_states`."""

    best: Any  #: the fitted model with the least criterion
    n_components: int  #: its number of states
    criteria: dict[int, float]  #: the criterion of each number of states


def select_states(
    model: Any, X: Any, lengths: Any = None, *, candidates: Iterable[int] = range(1, 6), criterion: str = "bic"
) -> StateChoice:
    """Fit a hidden Markov model with each number of states and keep the one of least BIC (or AIC).

    Parameters
    ----------
    model : HiddenMarkovModel
        The settings; only `n_components` changes. Several starts (`n_init`) make the comparison fair.
    X, lengths
        As in `fit`.
    candidates : iterable of int
        Numbers of states.
    criterion : {"bic", "aic"}
        What decides.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable.sequences import PoissonHMM, select_states
    >>> X = np.array([1, 0, 2, 1, 1, 9, 12, 8, 11, 10, 1, 0, 1, 2, 1, 10, 9, 12, 9, 8] * 3)[:, None]
    >>> select_states(PoissonHMM(n_iter=200, n_init=3, random_state=0), X, candidates=[1, 2]).n_components
    2
    """
    if criterion not in ("bic", "aic"):
        raise ParameterError(f"select_states: criterion must be 'bic' or 'aic'; got {criterion!r}.")
    fitted = {K: clone(model).set_params(n_components=K).fit(X, lengths) for K in candidates}
    if not fitted:
        raise ParameterError("select_states: candidates must hold at least one number of states; got none.")
    criteria = {K: float(getattr(each, criterion)(X, lengths)) for K, each in fitted.items()}
    K = min(criteria, key=criteria.__getitem__)
    return StateChoice(fitted[K], K, criteria)
