r"""Independent checks of the linear models' certificates: the definitions, evaluated in plain NumPy.

Nothing here is shared with the fits but the reading of column names: moments, scores, dual points and the checksum
of the data are computed again, in extended precision where sums cancel.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..core.errors import VerificationError
from ..core.verification import Recheck
from ..data.door import take_named_columns

Array = NDArray[Any]

_CHUNK_ROWS = 4096
_CLOSED_FORM_ROUNDING = 1e-13
_GAP_ROUNDING = 1e-12


class Rows(NamedTuple):
    """Training data as plain arrays: X dense or CSR, y (n, k) or codes (n,), weights (n,)."""

    X: Any
    y: Array
    weight: Array

    def chunks(self) -> Iterator[tuple[Array, Array, Array]]:
        """Yield dense rows, targets and weights in extended precision, a few thousand at a time."""
        for start in range(0, self.X.shape[0], _CHUNK_ROWS):
            part = slice(start, start + _CHUNK_ROWS)
            X = self.X[part].toarray() if sp.issparse(self.X) else self.X[part]
            yield X.astype(np.longdouble), self.y[part].astype(np.longdouble), self.weight[part].astype(np.longdouble)


def least_squares(model: Any, X: Any, y: Any, sample_weight: Any) -> Recheck:
    """Recompute the certificate of a LinearRegression."""
    return _check_quadratic(model, X, y, sample_weight, alpha=np.zeros(1))


def ridge(model: Any, X: Any, y: Any, sample_weight: Any) -> Recheck:
    """Recompute the certificate of a Ridge or RidgeCV."""
    alpha = model.alpha_ if hasattr(model, "alpha_") else model.alpha
    return _check_quadratic(model, X, y, sample_weight, alpha=np.atleast_1d(np.asarray(alpha, dtype=float)))


def logistic(model: Any, X: Any, y: Any, sample_weight: Any) -> Recheck:
    """Recompute the certificate of a LogisticRegression."""
    X, y, sample_weight = take_named_columns("verify", X, y, sample_weight)
    labels = np.asarray(y).ravel()
    codes = np.full(len(labels), -1)
    for code, label in enumerate(model.classes_.tolist()):
        codes[labels == label] = code
    if (codes < 0).any():
        raise VerificationError(
            f"verify: the data hold the label {labels[codes < 0][0]!r}, which the model does not know."
        )
    rows = _plain_rows(model, X, codes, sample_weight)
    K = len(model.classes_)
    own_weight = _class_weights(model.class_weight, model.classes_, rows.y)
    W = np.asarray(model.coef_, dtype=np.longdouble)
    b = np.asarray(model.intercept_, dtype=np.longdouble)
    if K == 2:  # scores (0, z): the same probabilities, half the symmetric parameters
        W, b = np.vstack([0 * W, W]), np.r_[0 * b, b]
    N = np.zeros(K, dtype=np.longdouble)
    X_sum = np.zeros((K, W.shape[1]), dtype=np.longdouble)
    for Z, t, s in rows.chunks():
        s = s * own_weight[t.astype(int)]
        members = s[:, None] * np.eye(K)[t.astype(int)]
        N += members.sum(axis=0)
        X_sum += members.T @ Z
    centre = X_sum.sum(axis=0) / N.sum() if model.fit_intercept else np.zeros(W.shape[1])
    X_sum -= np.outer(N, centre)
    level = b + W @ centre
    loss, square = np.longdouble(0.0), np.zeros(W.shape[1], dtype=np.longdouble)
    slopes, slope_sum = np.zeros_like(W), np.zeros(K, dtype=np.longdouble)
    for Z, t, s in rows.chunks():
        Z, t = Z - centre, t.astype(int)
        s = s * own_weight[t]
        z = Z @ W.T + level
        z -= z.max(axis=1, keepdims=True)
        norm = np.log(np.exp(z).sum(axis=1))
        loss += (s * (norm - z[np.arange(len(t)), t])).sum()
        r = s[:, None] * (np.exp(z - norm[:, None]) - np.eye(K)[t])
        slopes += r.T @ Z
        slope_sum += r.sum(axis=0)
        square += (s[:, None] * Z * Z).sum(axis=0)
    if np.isinf(model.C):
        free = slice(1, None) if K == 2 else slice(None)
        value = _relative_slope(slopes[free], slope_sum[free] * bool(model.fit_intercept), square, N.sum())
        return Recheck(value, _CLOSED_FORM_ROUNDING, _fingerprint(rows, model.classes_))
    gap = _duality_gap(model, W, level, slopes, slope_sum, loss, N, X_sum, K)
    return Recheck(gap, _GAP_ROUNDING, _fingerprint(rows, model.classes_))


def _duality_gap(
    model: Any, W: Array, level: Array, slopes: Array, slope_sum: Array, loss: Any, N: Array, X_sum: Array, K: int
) -> float:
    """Evaluate P − D at the model's probabilities, mixed with a constant distribution until they are feasible."""
    C = np.longdouble(model.C)
    free = slice(1, None) if K == 2 else slice(None)
    primal = 0.5 * (W * W).sum() + C * loss
    # −Σ s Σ u log u = Σ s(loss) − Σ s(u − e)·z
    entropy = C * (loss - (slopes * W).sum() - slope_sum @ level)
    w_u = -C * slopes[free]
    if model.fit_intercept:
        mix = max(np.longdouble(0.0), (slope_sum / (N + slope_sum)).max()) * (1 + 1e-9)
        mix = min(mix, np.longdouble(1.0))
        if mix > 0:
            v = np.maximum(mix * (N + slope_sum) - slope_sum, 0)
            v = v / v.sum()
            logs = np.log(np.where(v > 0, v, 1))
            w_v = -C * (np.outer(v, X_sum.sum(axis=0)) - X_sum)[free]
            entropy = (1 - mix) * entropy - mix * C * N.sum() * (v * logs).sum()
            w_u = (1 - mix) * w_u + mix * w_v
    dual = entropy - 0.5 * (w_u * w_u).sum()
    return float((primal - dual) / max(abs(dual), 1e-8 * C * N.sum() * np.log(K)))


def _relative_slope(slopes: Array, slope_sum: Array, square: Array, total: Any) -> float:
    size = np.sqrt(total * np.r_[total, square])
    full = np.abs(np.column_stack([slope_sum, slopes]))
    return float(np.max(full / np.where(size > 0, size, np.inf)))


def _check_quadratic(model: Any, X: Any, y: Any, sample_weight: Any, alpha: Array) -> Recheck:
    """Evaluate the equations that define a (ridge) least squares fit."""
    X, y, sample_weight = take_named_columns("verify", X, y, sample_weight)
    targets = np.asarray(y, dtype=np.float64)
    rows = _plain_rows(model, X, targets.reshape(len(targets), -1), sample_weight)
    B = np.atleast_2d(model.coef_).T.astype(np.longdouble)
    b = np.atleast_1d(np.asarray(model.intercept_, dtype=np.longdouble))
    d, k = B.shape
    if rows.y.shape[1] != k:
        raise VerificationError(f"verify: the model has {k} targets, the data {rows.y.shape[1]}.")
    W = np.longdouble(0.0)
    x_mean, y_mean = np.zeros(d, dtype=np.longdouble), np.zeros(k, dtype=np.longdouble)
    if model.fit_intercept:
        for Z, t, s in rows.chunks():
            W, x_mean, y_mean = W + s.sum(), x_mean + s @ Z, y_mean + s @ t
        x_mean, y_mean = x_mean / W, y_mean / W
    x_exponent, y_exponent = _exponents(rows, x_mean, y_mean)
    B = np.ldexp(B, x_exponent[:, None] - y_exponent)
    # y − b − xβ = (y − ȳ) − (x − x̄)β − (b − ȳ + x̄β)
    shift = np.ldexp(b - y_mean + x_mean @ np.ldexp(B, y_exponent - x_exponent[:, None]), -y_exponent)
    g, total = np.zeros((d, k), dtype=np.longdouble), np.zeros(k, dtype=np.longdouble)
    x_square, y_square, r_square, W = np.zeros(d), np.zeros(k), np.zeros(k), np.longdouble(0.0)
    for Z, t, s in rows.chunks():
        Z, t = np.ldexp(Z - x_mean, -x_exponent), np.ldexp(t - y_mean, -y_exponent)
        r = t - Z @ B - shift
        g, total, W = g + Z.T @ (s[:, None] * r), total + s @ r, W + s.sum()
        x_square, y_square, r_square = x_square + s @ Z**2, y_square + s @ t**2, r_square + s @ r**2
    penalty = np.ldexp(np.broadcast_to(alpha, (k,)), -2 * x_exponent[:, None])
    g = g - penalty * B
    if model.certificate_.kind == "gap":
        # P − D = ‖g‖²/α, in the columns' own units
        own = np.ldexp(g, x_exponent[:, None])
        gap = (own**2).sum(axis=0) / alpha
        beta = np.ldexp(B, -x_exponent[:, None])
        value = r_square + alpha * (beta**2).sum(axis=0)
        return Recheck(float(np.max(gap / np.maximum(abs(value - gap), 1e-8 * y_square))), 1e-14, _fingerprint(rows))
    if getattr(model, "positive", False):
        g = np.where(B > 0, g, np.maximum(g, 0))
        if (B < 0).any():
            g = np.full_like(g, np.inf)
    terms = np.sqrt(y_square) + np.sqrt(x_square) @ abs(B)
    size = np.outer(np.sqrt(x_square), terms) + penalty * abs(B)
    worst = np.where(abs(g) > 0, abs(g) / np.where(size > 0, size, 1e-300), 0).max(initial=0.0)
    if model.fit_intercept:
        worst = max(worst, np.max(np.where(terms > 0, abs(total) / np.where(terms > 0, np.sqrt(W) * terms, 1), 0)))
    return Recheck(float(worst), _CLOSED_FORM_ROUNDING, _fingerprint(rows))


def _exponents(rows: Rows, x_mean: Array, y_mean: Array) -> tuple[Array, Array]:
    """Return powers of two that bring every column to order one, so that no square overflows."""
    x_top, y_top = np.zeros(len(x_mean), dtype=np.longdouble), np.full(len(y_mean), 1e-300, dtype=np.longdouble)
    for Z, t, _ in rows.chunks():
        x_top = np.maximum(x_top, abs(Z - x_mean).max(axis=0))
        y_top = np.maximum(y_top, abs(t - y_mean).max(axis=0))
    return np.frexp(x_top)[1], np.frexp(y_top)[1]


def _plain_rows(model: Any, X: Any, y: Array, sample_weight: Any) -> Rows:
    if sp.issparse(X):
        X = sp.csr_array(X).astype(np.float64)
    else:
        X = np.asarray(X.to_numpy() if hasattr(X, "to_numpy") else X, dtype=np.float64)
        if X.ndim != 2 and hasattr(X, "shape"):
            raise VerificationError(f"verify: X must have rows and columns; got shape {X.shape}.")
    if X.shape[1] != model.n_features_in_ or X.shape[0] != len(y):
        raise VerificationError(
            f"verify: the model has {model.n_features_in_} features; "
            f"the data have shape {X.shape} with {len(y)} targets."
        )
    weight = np.ones(1) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    weight = np.broadcast_to(weight, (X.shape[0],))
    if (weight == 0).any():
        X, y, weight = X[weight > 0], y[weight > 0], weight[weight > 0]
    return Rows(X, y, weight)


def _class_weights(class_weight: Any, classes: Array, codes: Array) -> Array:
    if class_weight is None:
        return np.ones(len(classes))
    if class_weight == "balanced":
        return len(codes) / (len(classes) * np.bincount(codes, minlength=len(classes)))
    return np.array([class_weight.get(label, 1.0) for label in classes.tolist()], dtype=float)


def _fingerprint(rows: Rows, classes: Array | None = None) -> str:
    """Compute Σ_rows mix(Σ_j fold(bits xⱼ)·mⱼ) + shape + labels mod 2⁶⁴ again, as `data.fingerprint` defines it."""
    n, d = rows.X.shape
    k = rows.y.size // max(1, n)
    columns = [*range(d), *range(2**33, 2**33 + k), 2**32]
    with np.errstate(over="ignore"):
        multipliers = _odd_numbers(columns)
        checksum = 0
        for Z, t, s in rows.chunks():
            values = np.concatenate([Z, t.reshape(len(Z), k), s[:, None]], axis=1).astype(np.float64) + 0.0  # no −0.0
            bits = values.view(np.uint64)
            bits = bits ^ (bits >> np.uint64(32))
            bits = bits ^ (bits >> np.uint64(16))
            checksum += int(_scrambled((bits * multipliers).sum(axis=1, dtype=np.uint64)).sum(dtype=np.uint64))
        for number, size in zip(_odd_numbers(range(2**34, 2**34 + 3)).tolist(), (n, d, k), strict=True):
            checksum += number * size
    if classes is not None:
        labels = json.dumps([label if isinstance(label, str) else int(label) for label in classes.tolist()])
        checksum += int.from_bytes(hashlib.blake2b(labels.encode(), digest_size=8).digest(), "little")
    return f"{checksum % 2**64:016x}"


def _odd_numbers(columns: Sequence[int]) -> Array:
    return _scrambled((np.array(columns, dtype=np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)) | np.uint64(
        1
    )


def _scrambled(x: Array) -> Array:
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
