"""An independent check of `GMMHMM`: it is a Gaussian model of K · G states, one for each component.

State (k, g) is entered from (j, h) with probability A_jk w_kg; so the recursions of `verify.py` over all those states
give the probabilities of components, and sums over them what the K states need.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np

from ..core.checking import Recheck
from .verify import Array, Expected, State, expect, log_prior, maximise_gaussian, recheck, shares


def mixture_hmm(model: Any, X: Any, lengths: Any, sample_weight: Any) -> Recheck:
    """Recompute the certificate of a GMMHMM; `lengths` stand in the place of y."""
    return recheck(model, X, lengths, ["weights_", "means_", "covars_"], _expect, _maximise, _log_prior)


def _expect(model: Any, X: Array, sizes: list[int], state: State) -> Expected:
    weights, means, covars, kind = state["weights_"], state["means_"], state["covars_"], model.covariance_type
    K, G, d = means.shape
    full = np.empty((K, G, d, d))
    for k in range(K):
        for g in range(G):
            C = covars[k] if kind == "tied" else covars[k, g]
            full[k, g] = C if kind in ("tied", "full") else np.diag(C * np.ones(d))
    moves = np.einsum("jk,kg->jkg", state["transmat_"], weights).reshape(K, K * G)
    expanded = {
        "startprob_": (state["startprob_"][:, None] * weights).ravel(),
        "transmat_": np.repeat(moves, G, axis=0),
        "means_": means.reshape(K * G, d),
        "covars_": full.reshape(K * G, d, d),
    }
    return expect(SimpleNamespace(covariance_type="full"), X, sizes, expanded)


def _maximise(model: Any, X: Array, state: State, gamma: Array, first: Array, pairs: Array) -> State:
    K, G, _ = state["means_"].shape
    new = dict(state)
    if "s" in model.params:
        new["startprob_"] = shares(first.reshape(K, G).sum(axis=1), model.startprob_prior, state["startprob_"])
    if "t" in model.params:
        counts = pairs.reshape(K, G, K, G).sum(axis=(1, 3))
        new["transmat_"] = shares(counts, model.transmat_prior, state["transmat_"])
    if "w" in model.params:
        seen = ~np.isnan(X).all(axis=1)
        new["weights_"] = shares(gamma[seen].sum(axis=0).reshape(K, G), model.weights_prior, state["weights_"])
    found = [maximise_gaussian(part, X, own, gamma[:, rows]) for part, own, rows in _parts(model, state)]
    for name in ("means_", "covars_"):
        new[name] = np.concatenate([each[name].ravel() for each in found]).reshape(state[name].shape)
    return new


def _log_prior(model: Any, state: State) -> float:
    laws = {"startprob_": state["startprob_"], "transmat_": state["transmat_"]}
    a = np.broadcast_to(np.asarray(model.weights_prior, dtype=float), state["weights_"].shape)
    w = state["weights_"]
    total = log_prior(model, laws) + float(np.where((w > 0) & (a != 1), (a - 1) * np.log(w), 0.0).sum())
    return total + sum(log_prior(part, own) for part, own, _ in _parts(model, state))


def _parts(model: Any, state: State) -> Iterator[tuple[Any, State, slice]]:
    """Yield Gaussian models of components: those of each state if tied, else all."""
    K, G, d = state["means_"].shape
    means, covars = state["means_"].reshape(K * G, d), state["covars_"]
    prior = model.min_covar if model.covars_prior is None else model.covars_prior
    mean0 = np.broadcast_to(np.asarray(model.means_prior, dtype=float), (K, G, d)).reshape(K * G, d)
    weight0 = np.broadcast_to(np.asarray(model.means_weight, dtype=float), (K, G)).ravel()
    size = G if model.covariance_type == "tied" else K * G
    if np.ndim(prior) == 1:
        prior = np.broadcast_to(prior, (size, d))
    for lo in range(0, K * G, size):
        rows = slice(lo, lo + size)
        part = SimpleNamespace(
            covariance_type=model.covariance_type,
            params=model.params,
            means_prior=mean0[rows],
            means_weight=weight0[rows],
            covars_prior=prior,
            covars_weight=0.0 if model.covars_weight is None else model.covars_weight,
            startprob_prior=1.0,
            transmat_prior=1.0,
        )
        own = covars[lo // G] if model.covariance_type == "tied" else covars.reshape(K * G, *covars.shape[2:])
        yield part, {"means_": means[rows], "covars_": own}, rows
