r"""Independent checks of the linear models' certificates: the definitions, evaluated in plain NumPy.

Nothing here is shared with the fits but the reading of column names: sums, scores, dual points and the checksum of the
data are computed again, in extended precision, whose digits and range make centring and scaling unnecessary.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..core.errors import VerificationError
from ..core.verification import Recheck
from ..data.sources import is_external, named_columns, pieces_of

Array = NDArray[Any]

_CHUNK_ELEMENTS = 2**19
_CLOSED_FORM_ROUNDING = 1e-13
_GAP_ROUNDING = 1e-13


class Rows(NamedTuple):
    """Training data as plain arrays, with X in pieces that are read again in every pass."""

    pieces: Callable[[], Iterator[Any]]  #: consecutive rows of X, dense or CSR, without those of weight zero
    n_columns: int
    y: Array  #: (n, k) targets or (n,) codes
    weight: Array  #: (n,)

    def chunks(self) -> Iterator[tuple[Any, Array, Array]]:
        """Yield some rows (dense or CSR), their targets and weights at a time, in extended precision."""
        done = 0
        for piece in self.pieces():
            step = max(1, _CHUNK_ELEMENTS // (1 if sp.issparse(piece) else max(1, self.n_columns)))
            for start in range(0, piece.shape[0], step):
                X = piece[start : start + step]
                part = slice(done, done + X.shape[0])
                done += X.shape[0]
                yield (
                    X.astype(np.longdouble),
                    self.y[part].astype(np.longdouble),
                    self.weight[part].astype(np.longdouble),
                )


@np.errstate(all="ignore")  # a model may hold anything; NaN and infinity then fail the comparison
def least_squares(model: Any, X: Any, y: Any, sample_weight: Any) -> Recheck:
    """Recompute the certificate of a LinearRegression."""
    return _check_quadratic(model, X, y, sample_weight, alpha=np.zeros(1))


@np.errstate(all="ignore")
def ridge(model: Any, X: Any, y: Any, sample_weight: Any) -> Recheck:
    """Recompute the certificate of a Ridge or RidgeCV."""
    alpha = model.alpha_ if hasattr(model, "alpha_") else model.alpha
    return _check_quadratic(model, X, y, sample_weight, alpha=np.atleast_1d(np.asarray(alpha, dtype=float)))


def _check_quadratic(model: Any, X: Any, y: Any, sample_weight: Any, alpha: Array) -> Recheck:
    """Evaluate the equations Σ w r (x − x̄) = αβ, Σ w r = 0 that define a (ridge) least squares fit."""
    X, y, sample_weight = named_columns("verify", X, y, sample_weight)
    rows = _plain_rows(model, X, _numbers(y), sample_weight)
    B = np.atleast_2d(model.coef_).T.astype(np.longdouble)
    b = np.atleast_1d(np.asarray(model.intercept_, dtype=np.longdouble))
    d, k = B.shape
    if rows.y.shape[1] != k:
        raise VerificationError(f"verify: the model has {k} targets, the data {rows.y.shape[1]}.")
    if not model.fit_intercept and b.any():
        return Recheck(np.inf, 0.0, _fingerprint(rows))
    W, x_sum, y_sum, total, x_square, y_square, r_square, g = (
        np.zeros(shape, dtype=np.longdouble) for shape in ((), d, k, k, d, k, k, (d, k))
    )
    for Z, t, s in rows.chunks():
        r = t - b - Z @ B
        W, x_sum, y_sum, total = W + s.sum(), x_sum + Z.T @ s, y_sum + s @ t, total + s @ r
        x_square, y_square, r_square = x_square + (Z * Z).T @ s, y_square + s @ t**2, r_square + s @ r**2
        g = g + Z.T @ (s[:, None] * r)
    x_mean, y_mean = x_sum / W, y_sum / W
    if not model.fit_intercept:
        x_mean, y_mean, total = 0 * x_mean, 0 * y_mean, 0 * total
    g = g - np.outer(x_mean, total) - alpha * B
    x_square, y_square = np.maximum(x_square - W * x_mean**2, 0), np.maximum(y_square - W * y_mean**2, 0)
    if model.certificate_.kind == "gap":
        gap, offset = (g**2).sum(axis=0) / alpha, total**2 / W  # what the best intercept would gain
        dual = r_square - offset + alpha * (B**2).sum(axis=0) - gap
        value = (gap + offset) / np.maximum(dual, 1e-8 * y_square)
        return Recheck(float(np.max(value)), 1e-14, _fingerprint(rows))
    if getattr(model, "positive", False):
        g = np.where(B > 0, g, np.maximum(g, 0)) if (B >= 0).all() else np.full_like(g, np.inf)
    root = np.sqrt(W)
    share = 1e-14 / max(model.certificate_.tolerance, 1e-12) * root  # digits that rounding blurs at a large mean
    x_size, y_size = np.sqrt(x_square) + share * abs(x_mean), np.sqrt(y_square) + share * abs(y_mean)
    terms = y_size + x_size @ abs(B) + share * abs(b)
    size = np.outer(x_size, terms) + alpha * abs(B).max(axis=0)
    worst = max(_largest_ratio(abs(g), size), _largest_ratio(abs(total), root * terms))
    return Recheck(worst, _CLOSED_FORM_ROUNDING, _fingerprint(rows))


def _largest_ratio(numerator: Array, denominator: Array) -> float:
    ratio = np.where(denominator > 0, numerator / np.where(denominator > 0, denominator, 1), np.inf)
    return float(np.max(np.where(numerator == 0, 0, ratio), initial=0.0))  # NaN stays NaN


@np.errstate(all="ignore")
def logistic(model: Any, X: Any, y: Any, sample_weight: Any) -> Recheck:
    """Recompute the certificate of a LogisticRegression."""
    X, y, sample_weight = named_columns("verify", X, y, sample_weight)
    rows = _plain_rows(model, X, np.asarray([] if y is None else y).ravel(), sample_weight)
    rows = rows._replace(y=_codes(model.classes_, rows.y))
    K, fingerprint = len(model.classes_), _fingerprint(rows, model.classes_)
    rows = rows._replace(weight=rows.weight * _class_weights(model.class_weight, model.classes_, rows)[rows.y])
    W, b = np.asarray(model.coef_, dtype=np.longdouble), np.asarray(model.intercept_, dtype=np.longdouble)
    if K == 2:  # scores (0, z): the same probabilities
        W, b = np.vstack([0 * W, W]), np.r_[0 * b, b]
    scores = np.concatenate([Z @ W.T for Z, _, _ in rows.chunks()])
    offset = scores.mean(axis=0)  # large where columns lie far from zero; it belongs to the intercept
    scores, b = scores - offset, b + offset
    best = _best_intercept(scores, rows, b) if model.fit_intercept and np.isfinite(model.C) else b
    N, slope_sum, square, slopes, members = (
        np.zeros(shape, dtype=np.longdouble) for shape in (K, K, W.shape[1], W.shape, W.shape)
    )
    start = 0
    for Z, t, s in rows.chunks():
        part, codes = slice(start, start + len(s)), t.astype(int)
        start += len(s)
        own = s[:, None] * np.eye(K)[codes]
        r = s[:, None] * _probabilities(scores[part] + best) - own
        N, slope_sum, square = N + own.sum(axis=0), slope_sum + r.sum(axis=0), square + (Z * Z).T @ s
        slopes, members = slopes + (Z.T @ r).T, members + (Z.T @ own).T
    centre = np.zeros(W.shape[1])
    if model.fit_intercept:
        centre = members.sum(axis=0) / N.sum()
        members, slopes = members - np.outer(N, centre), slopes - np.outer(slope_sum, centre)
        square = np.maximum(square - N.sum() * centre**2, 0)
    if not model.fit_intercept and np.any(model.intercept_):
        return Recheck(np.inf, 0.0, fingerprint)
    free = slice(1, None) if K == 2 else slice(None)  # the scores that are parameters
    if np.isinf(model.C):
        size = np.sqrt(N.sum() * np.r_[N.sum(), square])
        slope = np.column_stack([slope_sum[free] * bool(model.fit_intercept), slopes[free]])
        value = float(np.max(abs(slope) / np.where(size > 0, size, np.inf)))
        return Recheck(value, _CLOSED_FORM_ROUNDING, fingerprint)
    C = np.longdouble(model.C)
    primal = 0.5 * (W * W).sum() + C * _loss(scores + b, rows)
    loss, level = _loss(scores + best, rows), best - offset + W @ centre
    dual = _dual_value(C, W, level, slopes, slope_sum, loss, N, members, free, model.fit_intercept)
    start_value = C * N.sum() * np.log(K)  # P₀; the fit sums terms of this size in float64
    size = max(dual, 1e-8 * start_value)
    return Recheck(float((primal - dual) / size), _GAP_ROUNDING + float(3e-13 * start_value / size), fingerprint)


def _probabilities(scores: Array) -> Array:
    e = np.exp(scores - scores.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def _loss(scores: Array, rows: Rows) -> Any:
    z = scores - scores.max(axis=1, keepdims=True)
    own = z[np.arange(len(z)), rows.y]
    return (rows.weight * (np.log(np.exp(z).sum(axis=1)) - own)).sum()


def _best_intercept(scores: Array, rows: Rows, b: Array) -> Array:
    """Minimise the likelihood over the intercepts alone: then the probabilities have the right class sums."""
    N = np.bincount(rows.y, rows.weight, len(b))
    for _ in range(30):
        p = _probabilities(scores + b)
        slope = rows.weight @ p - N
        H = np.diag(rows.weight @ p) - (p * rows.weight[:, None]).T @ p
        step = np.zeros_like(b)
        if not np.isfinite(H).all():
            break
        step[1:] = np.linalg.lstsq(H[1:, 1:].astype(float), slope[1:].astype(float), rcond=1e-14)[0]
        if not np.isfinite(step).all() or abs(step).max() > 10:
            break  # far from the optimum; the mixture below makes any point feasible
        b = b - step
        if abs(step).max() < 1e-18 * (1 + abs(b).max()):
            break
    return b


def _dual_value(
    C: Any,
    W: Array,
    b: Array,
    slopes: Array,
    slope_sum: Array,
    loss: Any,
    N: Array,
    members: Array,
    free: slice,
    intercept: bool,
) -> Any:
    """Evaluate the dual at the model's probabilities, mixed with a constant distribution until they are feasible."""
    # −Σ s Σ u log u = Σ s(loss) − Σ s(u − e)·z
    entropy = C * (loss - (slopes * W).sum() - slope_sum @ b)
    w_u = -C * slopes[free]
    mix = np.clip((slope_sum / (N + slope_sum)).max() * (1 + 1e-9), 0, 1) if intercept else 0
    if mix > 0:
        v = np.maximum(mix * (N + slope_sum) - slope_sum, 0)
        v = v / v.sum()
        entropy = (1 - mix) * entropy - mix * C * N.sum() * (v * np.log(np.where(v > 0, v, 1))).sum()
        w_u = (1 - mix) * w_u - mix * C * (np.outer(v, members.sum(axis=0)) - members)[free]
    return entropy - 0.5 * (w_u * w_u).sum()


def _codes(classes: Array, labels: Array) -> Array:
    codes = np.full(len(labels), -1)
    for code, label in enumerate(classes.tolist()):
        codes[labels == label] = code
    if (codes < 0).any():
        raise VerificationError(f"verify: the model does not know the label {labels[codes < 0][0]!r} of the data.")
    return codes


def _class_weights(class_weight: Any, classes: Array, rows: Rows) -> Array:
    if class_weight is None:
        return np.ones(len(classes))
    if isinstance(class_weight, str):
        return rows.weight.sum() / (len(classes) * np.bincount(rows.y, rows.weight, len(classes)))
    return np.array([class_weight.get(label, 1.0) for label in classes.tolist()], dtype=float)


def _numbers(y: Any) -> Array:
    try:
        targets = np.asarray(y, dtype=np.float64)
        return targets.reshape(len(targets), -1)
    except (TypeError, ValueError) as error:
        raise VerificationError(f"verify: y does not hold the targets of a fit: {error}") from error


def _plain_rows(model: Any, X: Any, y: Array, sample_weight: Any) -> Rows:
    names = list(getattr(model, "feature_names_in_", []))
    pieces = (lambda: map(_plain, pieces_of("verify", X, names))) if is_external(X) else (lambda: iter([_plain(X)]))
    shapes = [piece.shape for piece in pieces()] or [(0, 0)]
    n, d = sum(shape[0] for shape in shapes), shapes[0][1]
    if d != model.n_features_in_ or n != len(y):
        raise VerificationError(
            f"verify: the model has {model.n_features_in_} features; the data have shape ({n}, {d}) "
            f"with {len(y)} targets."
        )
    try:
        weight = np.ones(1) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        weight = np.broadcast_to(weight, (n,))
    except (TypeError, ValueError) as error:
        raise VerificationError(f"verify: the data are not the table of a fit: {error}") from error
    if (weight == 0).any():
        kept = weight > 0
        starts = np.cumsum([0] + [shape[0] for shape in shapes]).tolist()
        every = pieces

        def pieces() -> Iterator[Any]:
            for piece, start in zip(every(), starts, strict=False):
                yield piece[kept[start : start + piece.shape[0]]]

        y, weight = y[kept], weight[kept]
    return Rows(pieces, d, y, weight)


def _plain(X: Any) -> Any:
    """Return a table as a float64 array or CSR array."""
    try:
        if sp.issparse(X):
            X = sp.csr_array(X).astype(np.float64)
            X.sum_duplicates()
            return X
        X = np.asarray(X.to_numpy() if hasattr(X, "to_numpy") else X, dtype=np.float64)
    except (TypeError, ValueError, IndexError) as error:
        raise VerificationError(f"verify: the data are not the table of a fit: {error}") from error
    if X.ndim != 2:
        raise VerificationError(f"verify: X must have two dimensions; the data have shape {X.shape}.")
    return X


def _fingerprint(rows: Rows, classes: Array | None = None) -> str:
    """Compute Σ_rows mix(Σ_j fold(bits xⱼ)·mⱼ) + shape + labels mod 2⁶⁴ again, as `data.fingerprint` defines it."""
    n, d = len(rows.y), rows.n_columns
    k = rows.y.size // max(1, n)
    columns, others = _odd_numbers(range(d)), _odd_numbers([*range(2**33, 2**33 + k), 2**32])
    checksum = 0
    for Z, t, s in rows.chunks():
        rest = np.concatenate([t.reshape(-1, k), s[:, None]], axis=1)
        sums = (_folded(rest) * others).sum(axis=1, dtype=np.uint64)
        if sp.issparse(Z):
            products = np.r_[np.uint64(0), np.cumsum(_folded(Z.data) * columns[Z.indices], dtype=np.uint64)]
            sums += np.diff(products[Z.indptr])
        else:
            sums += (_folded(Z) * columns).sum(axis=1, dtype=np.uint64)
        checksum += int(_scrambled(sums).sum(dtype=np.uint64))
    for number, size in zip(_odd_numbers(range(2**34, 2**34 + 3)).tolist(), (n, d, k), strict=True):
        checksum += number * size
    if classes is not None:
        labels = json.dumps([label if isinstance(label, str) else int(label) for label in classes.tolist()])
        checksum += int.from_bytes(hashlib.blake2b(labels.encode(), digest_size=8).digest(), "little")
    return f"{checksum % 2**64:016x}"


def _folded(values: Array) -> Array:
    bits = np.ascontiguousarray(values.astype(np.float64) + 0.0).view(np.uint64)  # −0.0 becomes 0.0
    bits = bits ^ (bits >> np.uint64(32))
    return bits ^ (bits >> np.uint64(16))


def _odd_numbers(columns: Sequence[int]) -> Array:
    return _scrambled((np.array(columns, dtype=np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)) | np.uint64(
        1
    )


def _scrambled(x: Array) -> Array:
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
