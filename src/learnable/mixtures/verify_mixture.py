r"""Independent check of mixtures of exponential families: the objective before and after one more EM step.

Each family is written out here from its textbook: t(x), log h(x), ⟨η, t⟩ − A(η) as a function of its parameters, and
the parameters of greatest likelihood given a mean of t(x), by closed forms or by bracketing a root. Nothing is shared
with the fits but the reading of the table.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import betaln, digamma, gammaln, multigammaln, xlog1py, xlogy

from ..core import AnyArray, Recheck
from ..data.blocks import map_reduce
from ..data.checking import read_table
from .verify_gaussian import _join, _rows_of


@np.errstate(all="ignore")  # a model may hold anything; NaN and infinity then fail the comparison
def mixture_model(model: Any, X: Any, y: Any, sample_weight: Any) -> Recheck:
    """Recompute the certificate of a MixtureModel: what one more step adds to the objective, per unit of weight."""
    table = read_table(model, X, None, sample_weight)
    rows, w = map_reduce(table.blocks, _rows_of, _join)
    wrong = Recheck(np.inf, 0.0, table.fingerprint)
    K = model.n_components
    d = model.n_features_in_
    pi = np.asarray(model.weights_)
    known = getattr(model, "known_labels_", None)
    if pi.shape != (K,) or not abs(pi.sum() - 1) < 1e-9 or not (pi >= 0).all():
        return wrong
    if model.family_ not in _FAMILIES or (known is not None and len(known) != len(rows)):
        return wrong
    family = _FAMILIES[model.family_](rows, w, model)
    theta = [{name: np.asarray(value)[k] for name, value in model.parameters_.items()} for k in range(K)]
    means = np.stack([family.mean(**each) for each in theta]).reshape(K, -1)
    if not np.allclose(means, model.means_, rtol=1e-9, atol=1e-12 * np.abs(rows).max()):
        return wrong
    given = {"rows": 1.0} if isinstance(model.prior, str) else model.prior or {}
    kappa = given.get("rows", 0.0)
    alpha = given.get("alpha", 1.0)
    tau = family.average(w)
    centre = family.solve(tau)

    def objective(pi: AnyArray, theta: list[Any]) -> tuple[float, AnyArray]:
        logs = np.stack([np.log(p) + family.log_density(each) for p, each in zip(pi, theta, strict=True)], axis=1)
        if known is not None:
            logs[(known >= 0)[:, None] & (np.arange(K) != known[:, None])] = -np.inf
        top = logs.max(axis=1, keepdims=True)
        sums = np.exp(logs - top).sum(axis=1, keepdims=True)
        value = float(w @ (top + np.log(sums))[:, 0])
        value += float((alpha - 1) * np.log(pi).sum()) if alpha != 1 else 0.0
        if kappa:
            value += kappa * float(sum(np.sum(family.score(tau, **p) - family.score(tau, **centre)) for p in theta))
        return value, np.exp(logs - top) / sums

    before, r = objective(pi, theta)
    counts = w @ r
    stepped = []
    for k in range(K):
        n = counts[k] + kappa
        stepped.append(family.solve((counts[k] * family.average(w * r[:, k]) + kappa * tau) / n) if n > 0 else theta[k])
    shares = np.maximum(counts + alpha - 1, 0.0)
    after = objective(shares / shares.sum(), stepped)[0]
    size = 1.0 + abs(before) / w.sum()
    blur = 1e-15 * family.magnitude(w)  # large counts: log h(x) and the rest nearly cancel
    if not abs(before / w.sum() - model.lower_bound_) <= 1e-9 * size + blur or d != rows.shape[1]:
        return wrong
    rise = (after - before) / w.sum()
    return Recheck(max(rise, 0.0) if np.isfinite(rise) else np.inf, 1e-11 * size + blur, table.fingerprint)


class _Family:
    """One family on a table; numbers have one member for each column, t(x) then is (n, d, S)."""

    def __init__(self, X: AnyArray, w: AnyArray, model: Any) -> None:
        self.X = X
        self.known = {name: np.asarray(v)[0] for name, v in model.parameters_.items() if name == "n"}
        self.n_categories = np.asarray(model.parameters_["p"]).shape[-1] if model.family_ == "Categorical" else 0
        self.t = self.statistic(X)

    def average(self, w: AnyArray) -> AnyArray:
        return np.tensordot(w / w.sum(), self.t, axes=1) if w.sum() > 0 else np.zeros(self.t.shape[1:])

    def log_density(self, theta: dict[str, Any]) -> AnyArray:
        value = self.log_base(self.X) + self.score(self.t, **theta)
        return np.asarray(value if value.ndim == 1 else value.sum(axis=1), dtype=np.float64)

    def magnitude(self, w: AnyArray) -> float:
        size = np.abs(self.log_base(self.X)).reshape(len(w), -1).sum(axis=1)
        return float(w @ size / w.sum())

    def log_base(self, X: AnyArray) -> Any:
        return np.zeros(X.shape if self.t.ndim == 3 else len(X))

    statistic: Any
    score: Any
    solve: Any
    mean: Any


class _Normal(_Family):
    """About the means and in units of the spread of the table, so that little cancels."""

    def __init__(self, X: AnyArray, w: AnyArray, model: Any) -> None:
        self.shift = np.average(X, axis=0, weights=w)
        self.scale = np.sqrt(np.average((X - self.shift) ** 2, axis=0, weights=w))
        super().__init__(X, w, model)

    def statistic(self, X: AnyArray) -> AnyArray:
        z = ((X - self.shift) / self.scale).astype(np.longdouble)
        return np.stack([z, z * z], axis=-1)

    def log_base(self, X: AnyArray) -> Any:
        return -0.5 * np.log(2 * np.pi) - np.broadcast_to(np.log(self.scale), X.shape)

    def score(self, t: AnyArray, mean: AnyArray, std: AnyArray) -> Any:
        m = (mean - self.shift) / self.scale
        s = std / self.scale
        return -(t[..., 1] - 2 * m * t[..., 0] + m * m) / (2 * s * s) - np.log(s)

    def solve(self, t: AnyArray) -> dict[str, Any]:
        spread = np.sqrt(t[..., 1] - t[..., 0] ** 2)
        return {"mean": t[..., 0] * self.scale + self.shift, "std": spread * self.scale}

    def mean(self, mean: AnyArray, std: AnyArray) -> AnyArray:
        return mean


class _MultivariateNormal(_Normal):
    def statistic(self, X: AnyArray) -> AnyArray:
        z = (X - self.shift) / self.scale
        return np.concatenate([z, (z[:, :, None] * z[:, None, :]).reshape(len(z), -1)], axis=1)

    def log_base(self, X: AnyArray) -> Any:
        return np.full(len(X), -0.5 * X.shape[1] * np.log(2 * np.pi) - np.log(self.scale).sum())

    def score(self, t: AnyArray, mean: AnyArray, cov: AnyArray) -> Any:
        d = len(self.scale)
        m = (mean - self.shift) / self.scale
        S = cov / np.outer(self.scale, self.scale)
        P = np.linalg.inv(S)
        first = t[..., :d]
        second = t[..., d:]
        return -0.5 * (second @ P.ravel() - 2 * first @ P @ m + m @ P @ m + np.linalg.slogdet(S)[1])

    def solve(self, t: AnyArray) -> dict[str, Any]:
        d = len(self.scale)
        cov = t[d:].reshape(d, d) - np.outer(t[:d], t[:d])
        return {"mean": t[:d] * self.scale + self.shift, "cov": cov * np.outer(self.scale, self.scale)}

    def mean(self, mean: AnyArray, cov: AnyArray) -> AnyArray:
        return mean


class _Poisson(_Family):
    statistic = staticmethod(lambda X: X[..., None])
    log_base = staticmethod(lambda X: -gammaln(X + 1))
    score = staticmethod(lambda t, rate: xlogy(t[..., 0], rate) - rate)
    solve = staticmethod(lambda t: {"rate": t[..., 0]})
    mean = staticmethod(lambda rate: rate)


class _Exponential(_Family):
    statistic = staticmethod(lambda X: X[..., None])
    score = staticmethod(lambda t, rate: np.log(rate) - rate * t[..., 0])
    solve = staticmethod(lambda t: {"rate": 1 / t[..., 0]})
    mean = staticmethod(lambda rate: 1 / rate)


class _Bernoulli(_Family):
    statistic = staticmethod(lambda X: X[..., None])
    score = staticmethod(lambda t, p: xlogy(t[..., 0], p) + xlog1py(1 - t[..., 0], -p))
    solve = staticmethod(lambda t: {"p": np.clip(t[..., 0], 0, 1)})
    mean = staticmethod(lambda p: p)


class _Binomial(_Family):
    statistic = staticmethod(lambda X: X[..., None])
    score = staticmethod(lambda t, n, p: xlogy(t[..., 0], p) + xlog1py(n - t[..., 0], -p))
    mean = staticmethod(lambda n, p: n * p)

    def log_base(self, X: AnyArray) -> Any:
        n = self.known["n"]
        return gammaln(n + 1) - gammaln(X + 1) - gammaln(n - X + 1)

    def solve(self, t: AnyArray) -> dict[str, Any]:
        return {"n": self.known["n"], "p": np.clip(t[..., 0] / self.known["n"], 0, 1)}


class _Categorical(_Family):
    score = staticmethod(lambda t, p: xlogy(t, p).sum(axis=-1))
    solve = staticmethod(lambda t: {"p": t})
    mean = staticmethod(lambda p: (p * np.arange(p.shape[-1])).sum(axis=-1))

    def statistic(self, X: AnyArray) -> AnyArray:
        return (X[..., None] == np.arange(self.n_categories)).astype(np.float64)


class _Multinomial(_Family):
    statistic = staticmethod(lambda X: X)
    log_base = staticmethod(lambda X: gammaln(X.sum(axis=1) + 1) - gammaln(X + 1).sum(axis=1))
    score = staticmethod(lambda t, n, p: xlogy(t, p).sum(axis=-1))
    mean = staticmethod(lambda n, p: n * p)

    def solve(self, t: AnyArray) -> dict[str, Any]:
        return {"n": self.known["n"], "p": t / t.sum()}


class _Gamma(_Family):
    statistic = staticmethod(lambda X: np.stack([np.log(X), X], axis=-1))
    sign = 1.0
    mean = staticmethod(lambda shape, rate: shape / rate)

    def score(self, t: AnyArray, shape: AnyArray, rate: AnyArray) -> Any:
        power = shape - 1 if self.sign > 0 else -shape - 1
        return shape * np.log(rate) - gammaln(shape) + power * t[..., 0] - rate * t[..., 1]

    def solve(self, t: AnyArray) -> dict[str, Any]:
        gap = np.log(t[..., 1]) - self.sign * t[..., 0]  # log a − ψ(a) falls from ∞ to 0
        shape = np.array([_root(lambda u, g=g: u - digamma(np.exp(u)) - g, -30, 60) for g in gap])
        return {"shape": np.exp(shape), "rate": np.exp(shape) / t[..., 1]}


class _InverseGamma(_Gamma):
    statistic = staticmethod(lambda X: np.stack([np.log(X), 1 / X], axis=-1))
    sign = -1.0
    mean = staticmethod(lambda shape, rate: np.where(shape > 1, rate / np.where(shape > 1, shape - 1, 1), np.inf))


class _Dirichlet(_Family):
    statistic = staticmethod(np.log)
    score = staticmethod(lambda t, alpha: ((alpha - 1) * t).sum(axis=-1) - gammaln(alpha).sum() + gammaln(alpha.sum()))
    mean = staticmethod(lambda alpha: alpha / alpha.sum())

    def solve(self, t: AnyArray) -> dict[str, Any]:
        def entries(total: float) -> AnyArray:  # ψ(αₖ) = tₖ + ψ(A)
            return np.array([np.exp(_root(lambda u, v=v: digamma(np.exp(u)) - v, -60, 40)) for v in t + digamma(total)])

        log_total = _root(lambda u: entries(np.exp(u)).sum() / np.exp(u) - 1, -10, 30)
        return {"alpha": entries(np.exp(log_total))}


class _Beta(_Family):
    statistic = staticmethod(lambda X: np.stack([np.log(X), np.log1p(-X)], axis=-1))
    score = staticmethod(lambda t, a, b: (a - 1) * t[..., 0] + (b - 1) * t[..., 1] - betaln(a, b))
    mean = staticmethod(lambda a, b: a / (a + b))

    def solve(self, t: AnyArray) -> dict[str, Any]:
        found = np.stack([_Dirichlet.solve(self, each)["alpha"] for each in t])  # type: ignore[arg-type]
        return {"a": found[:, 0], "b": found[:, 1]}


class _Wishart(_Family):
    inverse = False

    def statistic(self, X: AnyArray) -> AnyArray:
        size = round(float(np.sqrt(X.shape[1])))
        matrices = X.reshape(-1, size, size)
        linear = np.linalg.inv(matrices) if self.inverse else matrices
        return np.concatenate([np.linalg.slogdet(matrices)[1][:, None], linear.reshape(len(X), -1)], axis=1)

    def score(self, t: AnyArray, df: AnyArray, scale: AnyArray) -> Any:
        d = len(scale)
        sign = -1.0 if self.inverse else 1.0
        weight, log_det = (scale, -np.linalg.slogdet(scale)[1]) if self.inverse else (
            np.linalg.inv(scale), np.linalg.slogdet(scale)[1]
        )  # fmt: skip
        power = 0.5 * (sign * df - d - 1)
        constant = 0.5 * df * (d * np.log(2) + log_det) + multigammaln(0.5 * df, d)
        return power * t[..., 0] - 0.5 * t[..., 1:] @ weight.ravel() - constant

    def solve(self, t: AnyArray) -> dict[str, Any]:
        d = round(float(np.sqrt(len(t) - 1)))
        M = t[1:].reshape(d, d)
        sign = -1.0 if self.inverse else 1.0
        gap = np.linalg.slogdet(M)[1] - sign * t[0]

        def excess(u: float) -> float:
            a = 0.5 * (np.exp(u) + d - 1)
            return float(d * np.log(a) - digamma(a - 0.5 * np.arange(d)).sum() - gap)

        df = np.exp(_root(excess, -20, 40)) + d - 1
        return {"df": df, "scale": np.linalg.inv(M) * df if self.inverse else M / df}

    def mean(self, df: AnyArray, scale: AnyArray) -> AnyArray:
        d = len(scale)
        return scale / (df - d - 1) if self.inverse else df * scale


class _InverseWishart(_Wishart):
    inverse = True


def _root(f: Any, low: float, high: float) -> float:
    try:
        return float(brentq(f, low, high, xtol=1e-14, rtol=1e-14))
    except ValueError:  # no sign change: the means are those of a constant
        return np.nan


_FAMILIES: dict[str, Any] = {
    "Normal": _Normal,
    "MultivariateNormal": _MultivariateNormal,
    "Poisson": _Poisson,
    "Exponential": _Exponential,
    "Bernoulli": _Bernoulli,
    "Binomial": _Binomial,
    "Categorical": _Categorical,
    "Multinomial": _Multinomial,
    "Gamma": _Gamma,
    "InverseGamma": _InverseGamma,
    "Beta": _Beta,
    "Dirichlet": _Dirichlet,
    "Wishart": _Wishart,
    "InverseWishart": _InverseWishart,
}
