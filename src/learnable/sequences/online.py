"""Filtering one observation at a time: P(z_t | x_1…x_t) from P(z_{t−1} | x_1…x_{t−1}) and x_t."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from ..core.errors import DataError
from .hmm import HiddenMarkovModel

Array = NDArray[Any]


class OnlineFilter:
    """The state of a hidden Markov model as observations arrive.

    Parameters
    ----------
    model : HiddenMarkovModel
        A fitted model.

    Attributes
    ----------
    log_likelihood : float
        log p(x_1…x_t).
    n_seen : int
        t.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable import CategoricalHMM
    >>> model = CategoricalHMM(n_components=2)
    >>> model.startprob_, model.transmat_ = np.array([0.5, 0.5]), np.array([[0.9, 0.1], [0.1, 0.9]])
    >>> model.emissionprob_ = np.array([[0.9, 0.1], [0.2, 0.8]])
    >>> online = model.online()
    >>> online.update([0])
    array([0.8182, 0.1818])
    >>> online.predict(steps=2)
    array([0.7036, 0.2964])
    """

    def __init__(self, model: HiddenMarkovModel) -> None:
        self.model = model
        self._parameters = model._fitted()
        with np.errstate(divide="ignore"):
            self._start, self._moves = np.log(self._parameters.startprob), np.log(self._parameters.transmat)
        self.reset()

    def reset(self) -> None:
        """Begin a new sequence."""
        self._log_proba: Array | None = None
        self.log_likelihood = 0.0
        self.n_seen = 0

    @property
    def proba(self) -> Array:
        """P(z_t | x_1…x_t); before the first observation, the first law."""
        return self._parameters.startprob if self._log_proba is None else np.exp(self._log_proba)

    def update(self, x: Any) -> Array:
        """Take the next observation (NaN: it is missing) and return P(z_t | x_1…x_t)."""
        row = np.asarray(x, dtype=np.float64).reshape(1, -1)
        self.model._check_rows(row)
        lines, codes = self.model._encode(row)
        frame = self.model._log_frames(lines, self._parameters.emission)[codes[0] if codes.size else 0]
        ahead = self._start if self._log_proba is None else logsumexp(self._log_proba[:, None] + self._moves, axis=0)
        joint = ahead + frame
        total = logsumexp(joint)
        if not np.isfinite(total):
            raise DataError(f"{type(self.model).__name__}: the observation {x!r} is impossible after what came before.")
        self._log_proba = joint - total
        self.log_likelihood += float(total)
        self.n_seen += 1
        return np.exp(self._log_proba)

    def predict(self, steps: int = 1) -> Array:
        """Return P(z_{t+steps} | x_1…x_t)."""
        return self.proba @ np.linalg.matrix_power(self._parameters.transmat, steps)
