r"""An independent check of hidden Markov models: one more step of expectation–maximisation, by its definition.

Nothing here is shared with the fits but the reading of tables: densities are SciPy's, the recursions run in logarithms,
row after row, and every expected count is summed as the textbook writes it. The value is the rise of the objective by
that step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
from scipy.special import logsumexp
from scipy.stats import multivariate_normal, norm, poisson

from ..core import AnyArray, Recheck, VerificationError
from ..data.checking import fingerprint_of, plain_rows

State = dict[str, AnyArray]

Expected = tuple[float, AnyArray, AnyArray, AnyArray]

#: The objective is a sum over rows; its digits beyond this share are rounding.
ROUNDING = 1e-11

#: So closely the objective must be what the fit recorded; any change of the parameters moves it more.
AGREEMENT = 1e-10


def hmm(model: Any, X: Any, lengths: Any, sample_weight: Any) -> Recheck:
    """Recompute the certificate of a CategoricalHMM, GaussianHMM or PoissonHMM; `lengths` stand in the place of y."""
    own = {"CategoricalHMM": ["emissionprob_"], "PoissonHMM": ["lambdas_"], "GaussianHMM": ["means_", "covars_"]}
    return recheck(model, X, lengths, own[type(model).__name__], expect, maximise, log_prior)


@np.errstate(all="ignore")  # a model may hold anything; NaN then fails the comparison
def recheck(
    model: Any,
    X: Any,
    lengths: Any,
    names: list[str],
    expect: Callable[..., Expected],
    maximise: Callable[..., State],
    log_prior: Callable[..., float],
) -> Recheck:
    """Return what one more step adds to the objective, given the names of the emissions' attributes and the steps."""
    table = X.to_numpy() if hasattr(X, "to_numpy") else X
    rows = np.asarray(table, dtype=np.float64)
    sizes = [len(rows)] if lengths is None else [int(size) for size in np.asarray(lengths)]
    if rows.ndim != 2 or sum(sizes) != len(rows):
        raise VerificationError(f"verify: the data have shape {rows.shape}, the lengths the sum {sum(sizes)}.")
    firsts = np.cumsum([0, *sizes[:-1]])
    stamps = np.arange(len(rows)) + np.where(np.isin(np.arange(len(rows)), firsts), 0.5, 0.0)
    fingerprint = fingerprint_of(plain_rows(model, rows, stamps, None))
    now: State = {name: np.asarray(getattr(model, name), dtype=float) for name in ["startprob_", "transmat_", *names]}
    laws = [now[name] for name in ("startprob_", "transmat_", "emissionprob_", "weights_") if name in now]
    if any((law < 0).any() or not np.allclose(law.sum(axis=-1), 1.0, rtol=0, atol=1e-9) for law in laws):
        return Recheck(np.inf, ROUNDING, fingerprint)
    try:
        before, *expected = expect(model, rows, sizes, now)
        new = maximise(model, rows, now, *expected)
        after = expect(model, rows, sizes, new)[0] + log_prior(model, new)
    except (np.linalg.LinAlgError, ValueError):  # covariances that are none
        return Recheck(np.inf, ROUNDING, fingerprint)
    before += log_prior(model, now)
    recorded = np.asarray(getattr(model, "bound_history_", np.nan), dtype=float).ravel()[-1]
    if not abs(recorded - before) <= AGREEMENT * max(abs(before), 1.0):  # the model is not where its climb ended
        return Recheck(np.inf, ROUNDING, fingerprint)
    return Recheck(float(max(after - before, 0.0) / max(abs(before), 1.0)), ROUNDING, fingerprint)


def expect(model: Any, X: AnyArray, sizes: list[int], state: State) -> Expected:
    """Return log p(x), P(z_t | x), the sum of the first ones and the sum over pairs."""
    logb = _log_densities(model, X, state)
    start = np.log(state["startprob_"])
    moves = np.log(state["transmat_"])
    K = len(start)
    total = 0.0
    gamma = np.empty((len(X), K))
    first = np.zeros(K)
    pairs = np.zeros((K, K))
    for lo, size in zip(np.cumsum([0, *sizes[:-1]]), sizes, strict=True):
        b = logb[lo : lo + size]
        alpha = np.empty((size, K))
        beta = np.zeros((size, K))
        alpha[0] = start + b[0]
        for t in range(1, size):
            alpha[t] = b[t] + _log_sum(alpha[t - 1][:, None] + moves, 0)
        for t in range(size - 2, -1, -1):
            beta[t] = _log_sum(moves + b[t + 1] + beta[t + 1], 1)
            pairs += np.exp(alpha[t][:, None] + moves + b[t + 1] + beta[t + 1] - _log_sum(alpha[t] + beta[t], 0))
        found = logsumexp(alpha[-1])
        total += found
        gamma[lo : lo + size] = np.exp(alpha + beta - found)
        first += gamma[lo]
    return float(total), gamma, first, pairs


def _log_sum(values: AnyArray, axis: int) -> AnyArray:
    top = np.max(values, axis=axis, keepdims=True)
    top = np.where(np.isfinite(top), top, 0.0)
    return np.log(np.exp(values - top).sum(axis=axis)) + np.squeeze(top, axis=axis)


def _log_densities(model: Any, X: AnyArray, state: State) -> AnyArray:
    K = len(state["startprob_"])
    gone = np.isnan(X)
    out = np.zeros((len(X), K))
    if "emissionprob_" in state:
        seen = ~gone[:, 0]
        out[seen] = np.log(state["emissionprob_"].T[X[seen, 0].astype(int)])
    elif "lambdas_" in state:
        for k in range(K):
            out[:, k] = np.where(gone, 0.0, poisson.logpmf(np.where(gone, 0, X), state["lambdas_"][k])).sum(axis=1)
    elif model.covariance_type in ("diag", "spherical"):  # a matrix of columns of very different size looks singular
        for k in range(K):
            spread = np.sqrt(state["covars_"][k] * np.ones(X.shape[1]))
            out[:, k] = np.where(gone, 0.0, norm.logpdf(np.where(gone, 0.0, X), state["means_"][k], spread)).sum(axis=1)
    else:
        full = _full(model, state)
        for pattern in np.unique(gone, axis=0):
            rows = (gone == pattern).all(axis=1)
            there = ~pattern
            for k in range(K if there.any() else 0):
                law = multivariate_normal(state["means_"][k, there], full[k][np.ix_(there, there)])
                out[rows, k] = law.logpdf(X[rows][:, there])
    return out


def _full(model: Any, state: State) -> AnyArray:
    K, d = state["means_"].shape
    C = state["covars_"]
    kind = model.covariance_type
    if kind == "full":
        return C
    return np.array([C if kind == "tied" else np.diag(C[k] * np.ones(d)) for k in range(K)])


def maximise(model: Any, X: AnyArray, state: State, gamma: AnyArray, first: AnyArray, pairs: AnyArray) -> State:
    """Return the parameters after one M-step."""
    new = dict(state)
    if "s" in model.params:
        new["startprob_"] = shares(first, model.startprob_prior, state["startprob_"])
    if "t" in model.params:
        new["transmat_"] = shares(pairs, model.transmat_prior, state["transmat_"])
    gone = np.isnan(X)
    if "emissionprob_" in state and "e" in model.params:
        counts = np.array(
            [[gamma[X[:, 0] == o, k].sum() for o in range(state["emissionprob_"].shape[1])] for k in range(len(first))]
        )
        new["emissionprob_"] = shares(counts, model.emissionprob_prior, state["emissionprob_"])
    if "lambdas_" in state and "l" in model.params:
        a, b = (_by_state(p) for p in (model.lambdas_prior, model.lambdas_weight))
        top = a + gamma.T @ np.where(gone, 0.0, X)
        bottom = b + gamma.T @ ~gone
        new["lambdas_"] = np.where(bottom > 0, top / bottom, state["lambdas_"])
    if "means_" in state:
        new.update(maximise_gaussian(model, X, state, gamma))
    return new


def shares(counts: AnyArray, prior: Any, now: AnyArray) -> AnyArray:
    """Return rows ∝ counts + prior − 1; zeros stay zero."""
    raised = np.where(now > 0, counts + np.asarray(prior, dtype=float) - 1, 0.0)
    total = raised.sum(axis=-1, keepdims=True)
    return np.where(total > 0, raised / total, now)


def _by_state(values: Any) -> AnyArray:
    array = np.asarray(values, dtype=float)
    return array[:, None] if array.ndim == 1 else array


def maximise_gaussian(model: Any, X: AnyArray, state: State, gamma: AnyArray) -> State:
    """Return means and covariances after one M-step."""
    mu = state["means_"]
    full = _full(model, state)
    kind = model.covariance_type
    K, d = mu.shape
    diagonal = kind in ("diag", "spherical")
    mu0, m, C0, c = _gaussian_prior(model, K, d)
    gone = np.isnan(X)
    means = mu.copy()
    top = np.zeros((K, d, d))
    bottom = np.zeros((K, d))
    for k in range(K):
        filled = np.where(gone, 0.0, X)
        rest = np.zeros((d, d))
        used = np.zeros(len(X), dtype=bool)
        for pattern in np.unique(gone, axis=0):
            rows = (gone == pattern).all(axis=1)
            there = ~pattern
            used |= rows & there.any()
            if pattern.any() and there.any() and not diagonal:
                gain = full[k][np.ix_(pattern, there)] @ np.linalg.inv(full[k][np.ix_(there, there)])
                filled[np.ix_(rows, pattern)] = mu[k, pattern] + (X[rows][:, there] - mu[k, there]) @ gain.T
                left = full[k][np.ix_(pattern, pattern)] - gain @ full[k][np.ix_(there, pattern)]
                rest[np.ix_(pattern, pattern)] += gamma[rows, k].sum() * left
        g = gamma[:, k, None] * (~gone if diagonal else used[:, None] * np.ones(d))
        n = g.sum(axis=0)
        if "m" in model.params:
            means[k] = np.where(m[k] + n > 0, (m[k] * mu0[k] + (g * filled).sum(axis=0)) / (m[k] + n), mu[k])
        away = filled - means[k]
        spread = np.diag((g * away**2).sum(axis=0)) if diagonal else (g * away).T @ away + rest
        top[k] = m[k] * np.outer(means[k] - mu0[k], means[k] - mu0[k]) + spread
        bottom[k] = n
    covars = state["covars_"]
    if "c" in model.params:
        if kind == "tied":
            total = c + bottom[:, 0].sum()
            covars = (C0[0] + top.sum(axis=0)) / total if total > 0 else covars
        elif kind == "full":
            covars = np.array(
                [(C0[k] + top[k]) / (c + bottom[k, 0]) if c + bottom[k, 0] > 0 else covars[k] for k in range(K)]
            )
        else:
            sums = np.array([np.diag(C0[k] + top[k]) for k in range(K)])
            if kind == "spherical":
                sums = sums.sum(axis=1)
                bottom = (c + bottom).sum(axis=1) - c
            covars = np.where(c + bottom > 0, sums / (c + bottom), covars)
    return {"means_": means, "covars_": covars}


def _gaussian_prior(model: Any, K: int, d: int) -> tuple[AnyArray, AnyArray, AnyArray, float]:
    """Return μ₀ (K, d), m (K,), C₀ (K, d, d) and c."""
    mu0 = np.asarray(model.means_prior, dtype=float)
    mu0 = np.broadcast_to(mu0[:, None] if mu0.shape == (K,) and d != K else mu0, (K, d))
    m = np.broadcast_to(np.asarray(model.means_weight, dtype=float), (K,))
    matrix = model.covariance_type in ("full", "tied")
    C = np.asarray(model.covars_prior, dtype=float)
    if C.ndim == 0:
        C = C * np.eye(d)
    elif not matrix:
        C = np.array([np.diag(row) for row in np.broadcast_to(C[:, None] if C.shape == (K,) else C, (K, d))])
    return mu0, m, np.broadcast_to(C, (K, d, d)), max(float(model.covars_weight) - (d if matrix else 1), 0.0)


def log_prior(model: Any, state: State) -> float:
    """Return the log-density of the priors, up to a constant."""
    total = 0.0
    for name, prior in (
        ("startprob_", model.startprob_prior),
        ("transmat_", model.transmat_prior),
        ("emissionprob_", getattr(model, "emissionprob_prior", 1.0)),
    ):
        if name in state:
            p = state[name]
            a = np.broadcast_to(np.asarray(prior, dtype=float), p.shape)
            total += float(np.where((p > 0) & (a != 1), (a - 1) * np.log(np.where(p > 0, p, 1.0)), 0.0).sum())
    if "lambdas_" in state:
        rate = state["lambdas_"]
        a, b = (np.broadcast_to(_by_state(p), rate.shape) for p in (model.lambdas_prior, model.lambdas_weight))
        total += float((np.where(a > 0, a * np.log(rate), 0.0) - b * rate).sum())
    if "means_" in state:
        K, d = state["means_"].shape
        mu0, m, C0, c = _gaussian_prior(model, K, d)
        away = state["means_"] - mu0
        full = _full(model, state)
        for k in range(K):
            inverse = np.linalg.inv(full[k])
            once = k == 0 or model.covariance_type != "tied"
            total -= 0.5 * m[k] * away[k] @ inverse @ away[k]
            total -= 0.5 * once * (c * np.linalg.slogdet(full[k])[1] + np.trace(inverse @ C0[k]))
    return float(total)


# An independent check of `GMMHMM`: it is a Gaussian model of K · G states, one for each component.
#
# State (k, g) is entered from (j, h) with probability A_jk w_kg; so the recursions of `verify.py` over all those
# states
# give the probabilities of components, and sums over them what the K states need.


def mixture_hmm(model: Any, X: Any, lengths: Any, sample_weight: Any) -> Recheck:
    """Recompute the certificate of a GMMHMM; `lengths` stand in the place of y."""
    return recheck(model, X, lengths, ["weights_", "means_", "covars_"], _expect, _maximise, _log_prior)


def _expect(model: Any, X: AnyArray, sizes: list[int], state: State) -> Expected:
    weights = state["weights_"]
    means = state["means_"]
    covars = state["covars_"]
    kind = model.covariance_type
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


def _maximise(model: Any, X: AnyArray, state: State, gamma: AnyArray, first: AnyArray, pairs: AnyArray) -> State:
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
    means = state["means_"].reshape(K * G, d)
    covars = state["covars_"]
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
