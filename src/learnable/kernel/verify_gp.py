r"""Independent checks of Gaussian processes: the likelihood and its derivatives, from the kernels' formulas.

Kernel values come from differences of points (`verify_kernels.py`), derivatives from whole matrices ∂K/∂θⱼ or from
differences of
the bound. Coefficients of the mean are removed by an orthonormal basis U of what they cannot reach: with r = Uᵀy and
C = UᵀKU the likelihood is that of r ~ N(0, C), up to a constant, which needs no β at all.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from ..core import AnyArray, Recheck
from ..data.checking import Rows, codes_of, fingerprint_of, numbers_of, plain_rows
from ..data.sources import named_columns
from ..risk import kernels as known
from ..risk.kernels.adopted import as_structures
from .verify_kernels import values

_LOG_2PI = np.log(2 * np.pi)
_SAME = 1e-8  # relative difference at which a stored factor is another one
_STEP = 3e-3  # of differences in θ: their error is its fourth power, and rounding divided by it
_CHUNK = 2**20  # numbers of a piece of the kernel matrix
_FARTHEST = np.log(1e100)  # of a hyperparameter: beyond, sums and squares have no room
_JITTER = 1e-10  # share of the prior's variance that the matrix of inducing points has on its diagonal


@np.errstate(all="ignore")  # a model may hold anything; NaN and infinity then fail the comparison
def gaussian_process_regressor(model: Any, X: Any, y: Any, sample_weight: Any) -> Recheck:
    """Recompute the certificate of a GaussianProcessRegressor."""
    if _compares_things(model):
        rows, fingerprint = _things(X, numbers_of(y), np.asarray(y), None)
    else:
        X, y, sample_weight = named_columns("verify", X, y, sample_weight)
        rows = plain_rows(model, X, numbers_of(y), sample_weight)
        fingerprint = fingerprint_of(rows)
    if not _is_stated(model, model.kernel_) or not _units_agree(model, rows.y):
        return Recheck(np.inf, 0.0, fingerprint)
    try:
        found = _sparse(model, rows) if hasattr(model, "inducing_points_") else _exact(model, rows)
    except (np.linalg.LinAlgError, ValueError, IndexError):  # matrices without inverse, arrays that do not fit together
        found = np.inf, 0.0
    return Recheck(*found, fingerprint)


@np.errstate(all="ignore")
def gaussian_process_classifier(model: Any, X: Any, y: Any, sample_weight: Any) -> Recheck:
    """Recompute the certificate of a GaussianProcessClassifier."""
    if _compares_things(model):
        codes = codes_of(model.classes_, np.asarray(y).ravel())
        rows, fingerprint = _things(X, codes, codes, model.classes_)
    else:
        X, y, sample_weight = named_columns("verify", X, y, sample_weight)
        rows = plain_rows(model, X, np.asarray(y).ravel(), sample_weight)
        rows = rows._replace(y=codes_of(model.classes_, rows.y))
        fingerprint = fingerprint_of(rows, model.classes_)
    points = _points(rows)
    if not np.array_equal(points, model.X_train_) or not all(_is_stated(model, kernel) for kernel in model.kernels_):
        return Recheck(np.inf, 0.0, fingerprint)
    try:
        values, logs = zip(*_processes(model, points, rows.y), strict=True)
    except (np.linalg.LinAlgError, ValueError, IndexError):
        values = (np.inf,)
        logs = (np.nan,)
    log_q = float(np.mean(logs))
    if not abs(model.log_marginal_likelihood_value_ - log_q) <= 1e-7 * (len(points) + abs(log_q)):
        values = (np.inf,)
    return Recheck(np.inf if np.isnan(values).any() else float(max(values)), 1e-8, fingerprint)


def _processes(model: Any, X: AnyArray, codes: AnyArray) -> Any:
    """Yield of each process that was fitted apart the larger of residual and relative gradient, and log q."""
    C = len(model.classes_)
    if hasattr(model, "M_"):
        yield _joint_mode(model, X, (codes == np.arange(C)[:, None]).astype(float))
    elif hasattr(model, "estimators_"):
        pairs = [(first, second) for first in range(C) for second in range(first + 1, C)]
        for (first, second), one, kernel in zip(pairs, model.estimators_, model.kernels_, strict=True):
            some = (codes == first) | (codes == second)
            same = np.array_equal(one.X_train_, X[some]) and np.array_equal(one.kernels_[0].theta, kernel.theta)
            t = (codes[some] == second).astype(float)
            sound = same and _is_stated(one, one.kernels_[0]) and np.array_equal(one.classes_, [0, 1])
            found = _mode(one, one.kernels_[0], X[some], t, 0) if sound else (np.inf, np.nan)
            agrees = abs(one.log_marginal_likelihood_value_ - found[1]) <= 1e-7 * (len(t) + abs(found[1]))
            yield found if agrees else (np.inf, np.nan)
    else:
        kernels = model.kernels_
        for number, kernel in enumerate(kernels):
            t = (codes == (number if len(kernels) > 1 else 1)).astype(float)
            yield _mode(model, kernel, X, t, number)


def _exact(model: Any, rows: Rows) -> tuple[float, float]:
    X = _points(rows)
    kernel = model.kernel_
    if not np.array_equal(X, model.X_train_):
        return np.inf, 0.0
    y = (rows.y - model.y_mean_) / model.y_std_
    if model.mean_ is not None:
        y = y - np.asarray(model.mean_.predict(X)).reshape(y.shape)
    n, t = y.shape
    K = _matrix(kernel, X)
    noise = np.broadcast_to(np.asarray(model.alpha, dtype=float).ravel(), (n,)) + model.jitter_
    largest = K.diagonal().max() + noise.max()
    K = K + np.diag(noise)
    alpha = model.alpha_.reshape(n, t)
    beta = model.beta_.reshape(-1, t)
    H = np.ones((n, int(model.trend_.intercept)))
    if len(model.trend_.columns):
        H = np.hstack([H, X[:, model.trend_.columns]])
    U = np.linalg.qr(H, mode="complete")[0][:, H.shape[1] :] if H.shape[1] else np.eye(n)
    trend = model.trend_.basis(X) @ beta if H.shape[1] else np.zeros((n, t))
    size = largest * abs(alpha).sum(axis=0) + abs(y).max(axis=0) + abs(trend).max(axis=0, initial=0.0)
    residual = float((abs(y - trend - K @ alpha).max(axis=0) / np.where(size > 0, size, 1)).max())
    C = U.T @ K @ U if H.shape[1] else K
    inverse = np.linalg.inv(C)
    a = inverse @ (U.T @ y)
    fit = float(np.sum(a * (U.T @ y)))
    units = np.linalg.slogdet(H.T @ H)[1] if H.shape[1] else 0.0
    log_p = -0.5 * fit - 0.5 * t * (np.linalg.slogdet(C)[1] + units + (n - H.shape[1]) * _LOG_2PI)
    condition = abs(C).sum(axis=0).max() * abs(inverse).sum(axis=0).max()
    rounding = 1e-11 + 1e-14 * float(condition)
    orthogonal = abs(H.T @ alpha).max(initial=0.0) <= 1e-6 * (abs(H).T @ abs(alpha)).max(initial=1.0)
    basis = model.trend_.basis(X)
    agrees = [
        _is_factor(model.L_, K, _SAME * largest),
        np.array_equal(np.reshape(model.y_train_, (n, t)), (rows.y - model.y_mean_) / model.y_std_),
        _solves(model.L_, model.W_, basis),
        abs(model.log_marginal_likelihood_value_ - log_p) <= (1e-7 + 10 * rounding) * (n * t + abs(log_p)),
        residual <= 1e-10,
        orthogonal,
        0.0 <= model.jitter_ <= 1e-3 * largest,
    ]
    if not all(bool(one) for one in agrees):
        return np.inf, 0.0
    if model.certificate_.kind == "closed-form":
        return residual, 1e-13
    S = U @ (a @ a.T - t * inverse) @ U.T
    gradient = 0.5 * np.array([np.sum(S * part) for part in kernel._gradients(X)])
    return _measure(model, kernel, gradient, n * t + fit), rounding


def _sparse(model: Any, rows: Rows) -> tuple[float, float]:
    kernel = model.kernel_
    theta = model.kernel_.theta
    F, size, residual, agrees, rounding = _bound(model, rows, kernel)
    if not agrees or not abs(F - model.log_marginal_likelihood_value_) <= 1e-6 * size:
        return np.inf, 0.0
    if model.certificate_.kind == "closed-form":
        return residual, 1e-11
    gradient = []
    for step in _STEP * np.eye(len(theta)):
        ends = [_bound(model, rows, kernel.with_theta(theta + k * step), check=False)[0] for k in (1, -1, 2, -2)]
        gradient.append((8.0 * (ends[0] - ends[1]) - (ends[2] - ends[3])) / (12.0 * _STEP))
    return _measure(model, kernel, np.array(gradient), size), 2e-7 + rounding / (_STEP * size)


def _bound(model: Any, rows: Rows, kernel: Any, check: bool = True) -> tuple[float, float, float, bool, float]:
    """Return F, size of its gradient, residual of the weights, whether what is stored belongs to it, rounding of F."""
    Z = model.inducing_points_
    m = len(Z)
    t = rows.y.shape[1]
    grown = _own_values(kernel, Z, noise=False).mean() / _own_values(model.kernel_, Z, noise=False).mean()
    L = np.linalg.cholesky(values(kernel, Z, Z) + grown * model.jitter_ * np.eye(m))
    alpha = np.broadcast_to(np.asarray(model.alpha, dtype=float).ravel(), (len(rows.y),))
    A = np.zeros((m, m))
    b = np.zeros((m, t))
    s = 0.0
    slack = 0.0
    logs = 0.0
    done = 0
    for piece in rows.pieces():
        for start in range(0, piece.shape[0], max(1, _CHUNK // m)):
            X = _dense(piece[start : start + max(1, _CHUNK // m)])
            part = slice(done, done + len(X))
            done += len(X)
            y = (rows.y[part] - model.y_mean_) / model.y_std_
            if model.mean_ is not None:
                y = y - np.asarray(model.mean_.predict(X)).reshape(y.shape)
            V = np.linalg.solve(L, values(kernel, Z, X))
            prior = _own_values(kernel, X, noise=False)
            noise = _own_values(kernel, X) - prior + alpha[part]
            A = A + (V / noise) @ V.T
            b = b + (V / noise) @ y
            s = s + np.sum(y * y / noise[:, None])
            logs = logs + np.log(noise).sum()
            slack = slack + np.sum((prior - np.einsum("ij,ij->j", V, V)) / noise)
    w = np.linalg.solve(np.eye(m) + A, b)
    fit = s - np.sum(b * w)
    log_det = np.linalg.slogdet(np.eye(m) + A)[1]
    F = -0.5 * (t * (done * _LOG_2PI + logs + log_det + slack) + fit)
    if not check:
        return F, 0.0, 0.0, True, 0.0
    stored = L.T @ model.alpha_.reshape(m, t)
    size = (1 + abs(A).max()) * abs(w).sum(axis=0) + abs(b).max(axis=0)
    residual = float((abs(stored + A @ stored - b).max(axis=0) / np.where(size > 0, size, 1)).max())
    agrees = [
        abs(model.L_ - L).max() <= 1e-5 * abs(L).max(),
        abs(model.jitter_ - _JITTER * _own_values(kernel, Z, noise=False).mean()) <= 1e-6 * model.jitter_,
        _is_factor(model.B_, np.eye(m) + A, 1e-6 * (1 + abs(A).max())),
        abs(stored - w).max() <= 1e-5 * abs(w).max(),
    ]
    rounding = 4 * np.finfo(float).eps * (t * (slack + np.trace(A) + abs(logs) + log_det) + s)
    return F, done * t + fit, residual, all(bool(one) for one in agrees), float(rounding)


def _mode(model: Any, kernel: Any, X: AnyArray, t: AnyArray, number: int) -> tuple[float, float]:
    """Return the larger of the residual of the mode and the relative gradient, and log q."""
    f = model.f_[number]
    g = model.g_[number]
    K = _matrix(kernel, X)
    pi = 1 / (1 + np.exp(-f))
    residual = abs(f - K @ (t - pi)).max() / (1 + abs(f).max())
    W = pi * (1 - pi)
    B = np.eye(len(f)) + np.sqrt(W)[:, None] * K * np.sqrt(W)
    factor = model.L_[number]
    if not (abs(g - (t - pi)).max() <= 1e-9 and _is_factor(factor, B, _SAME * abs(B).max())):
        return np.inf, np.nan
    log_q = -0.5 * g @ f - np.logaddexp(0, (1 - 2 * t) * f).sum() - 0.5 * np.linalg.slogdet(B)[1]
    if model.optimizer is None or len(kernel.theta) == 0:
        return float(residual), log_q
    R = np.sqrt(W)[:, None] * np.linalg.inv(B) * np.sqrt(W)
    moved = -0.5 * np.diag(K - K @ R @ K) * W * (1 - 2 * pi)
    u = np.linalg.solve(np.eye(len(f)) + W[:, None] * K, moved)
    gradient = np.array([
        0.5 * g @ part @ g - 0.5 * np.sum(R * part) + u @ part @ g for part in kernel._gradients(X)
    ])  # fmt: skip
    return float(max(residual, _measure(model, kernel, gradient, len(f)))), log_q


def _joint_mode(model: Any, X: AnyArray, y: AnyArray) -> tuple[float, float]:
    """Return the larger of residual and relative gradient of the joint mode, and log q; matrices by plain inversion."""
    f = model.f_
    g = model.g_
    kernel = model.kernels_[0]
    K = _matrix(kernel, X)
    one = np.eye(len(X))
    pi = np.exp(f - f.max(axis=0))
    pi = pi / pi.sum(axis=0)
    residual = abs(f - (y - pi) @ K).max() / (1 + abs(f).max())
    E = np.array([np.linalg.inv(one + p[:, None] * K) * p for p in pi])
    roots = [np.sqrt(p)[:, None] * K * np.sqrt(p) + one for p in pi]
    shared = E.sum(axis=0)
    log_det = sum(np.linalg.slogdet(B)[1] for B in roots) + np.linalg.slogdet(shared)[1]
    log_q = np.sum(y * np.log(np.maximum(pi, 1e-300))) - 0.5 * np.sum(f * (y - pi)) - 0.5 * log_det
    agrees = [
        abs(g - (y - pi)).max() <= 1e-9,
        all(_is_factor(L, B, _SAME * abs(B).max()) for L, B in zip(model.L_, roots, strict=True)),
        _is_factor(model.M_, shared, _SAME * abs(shared).max()),
    ]
    if not all(bool(each) for each in agrees):
        return np.inf, np.nan
    if model.optimizer is None or len(kernel.theta) == 0:
        return float(residual), log_q
    EK = E @ K
    inside = np.linalg.solve(shared, EK)
    spread = np.einsum("aji,bji->abi", EK, inside)  # K Eᵃ(Σ E)⁻¹Eᵇ K, on the diagonal
    for c in range(len(y)):
        spread[c, c] += np.diag(K - K @ EK[c])
    own = np.einsum("aai->ai", spread) - 2 * np.einsum("abi,bi->ai", spread, pi)
    s = -0.5 * pi * (own - np.sum(pi * own, axis=0))
    moved = np.einsum("cij,cj->ci", E, s @ K)
    u = s - moved + E @ np.linalg.solve(shared, moved.sum(axis=0))
    R = E - E @ np.linalg.solve(shared, E)
    gradient = [np.sum((0.5 * g + u) @ part * g) - 0.5 * np.sum(R.sum(axis=0) * part) for part in kernel._gradients(X)]
    return float(max(residual, _measure(model, kernel, np.array(gradient), len(X)))), log_q


def _is_factor(L: AnyArray, B: AnyArray, tolerance: float) -> bool:
    """Tell whether L is the lower triangular factor of B with a positive diagonal: there is only one."""
    lower = L.shape == B.shape and np.array_equal(L, np.tril(L)) and bool((np.diag(L) > 0).all())
    return bool(lower and abs(L @ L.T - B).max() <= tolerance)


def _solves(L: AnyArray, W: AnyArray, H: AnyArray) -> bool:
    """Tell whether LW = H."""
    size = abs(L) @ abs(W) + abs(H) if W.shape == H.shape else H
    return W.shape == H.shape and bool((abs(L @ W - H) <= _SAME * size).all())


def _measure(model: Any, kernel: Any, gradient: AnyArray, size: float) -> float:
    """Return the largest derivative that no bound holds back, relative to a size."""
    bounds = np.clip(_stated(model.kernel).bounds, -_FARTHEST, _FARTHEST)
    low, high = (abs(kernel.theta - bounds[:, k]) <= 1e-12 * (1 + abs(bounds[:, k])) for k in (0, 1))
    inside = (kernel.theta >= bounds[:, 0] - 1e-9) & (kernel.theta <= bounds[:, 1] + 1e-9)
    held = (low & (gradient < 0)) | (high & (gradient > 0))
    return float(abs(gradient[~held]).max(initial=0.0) / size) if inside.all() else np.inf


def _stated(kernel: Any) -> Any:
    """Return the kernel that the parameter states; by default a Gaussian one with a variance."""
    return known.Constant(1.0) * known.Gaussian(1.0) if kernel is None else known.as_kernel(kernel)


def _is_stated(model: Any, kernel: Any) -> bool:
    """Tell whether a kernel is the one that the parameters state, with other hyperparameters if they were learned."""
    stated = _stated(model.kernel)
    if isinstance(stated, known.FunctionKernel):
        return isinstance(kernel, known.FunctionKernel)
    if stated.theta.shape != kernel.theta.shape or not np.isfinite(kernel.theta).all():
        return False
    if model.optimizer is None:
        return bool(stated == kernel)
    other = stated.with_theta(kernel.theta)
    return other.formula == kernel.formula and bool(np.allclose(other.theta, kernel.theta, rtol=0, atol=1e-12))


def _units_agree(model: Any, y: AnyArray) -> bool:
    mean = np.zeros(y.shape[1])
    std = np.ones(y.shape[1])
    if model.normalize_y:
        size = np.where(abs(y).max(axis=0) > 0, abs(y).max(axis=0), 1.0)
        mean = size * np.mean(y / size, axis=0)
        std = size * np.std(y / size, axis=0)
        std = np.where(std > 1e-14 * abs(mean), std, 1.0)
    shape = () if y.shape[1] == 1 else (y.shape[1],)
    return bool(
        np.shape(model.y_mean_) == np.shape(model.y_std_) == shape
        and np.allclose(model.y_mean_, mean, rtol=1e-9, atol=1e-12 * std.max())
        and np.allclose(model.y_std_, std, rtol=1e-9)
    )


def _compares_things(model: Any) -> bool:
    """Tell whether the points of a model are no rows of numbers."""
    return hasattr(model, "X_train_") and model.X_train_.dtype.kind != "f"


def _things(X: Any, y: AnyArray, targets: AnyArray, classes: Any) -> tuple[Rows, str]:
    """Return points that are no rows of numbers, and the checksum of what they print."""
    points = as_structures(X)
    labels = None if classes is None else np.asarray(classes).tolist()
    text = "\x00".join([repr(one) for one in points] + [repr(targets.tolist()), repr(labels)])
    return Rows(lambda: iter([points]), 0, y, np.ones(len(y))), hashlib.blake2b(
        text.encode(), digest_size=8
    ).hexdigest()


def _points(rows: Rows) -> AnyArray:
    """Return all rows as one array."""
    pieces = list(rows.pieces())
    return pieces[0] if pieces[0].ndim == 1 else np.vstack([_dense(piece) for piece in pieces])


def _matrix(kernel: Any, X: AnyArray) -> AnyArray:
    if isinstance(kernel, known.ForeignKernel):
        return np.array(kernel.kernel(X), dtype=float)
    K = values(kernel, X, X)
    K[np.arange(len(X)), np.arange(len(X))] = _own_values(kernel, X)
    return K


def _own_values(kernel: Any, X: AnyArray, noise: bool = True) -> AnyArray:
    """Return k(xᵢ, xᵢ), where white parts count if `noise`."""
    if isinstance(kernel, known.Sum):
        return _own_values(kernel.left, X, noise) + _own_values(kernel.right, X, noise)
    if isinstance(kernel, known.Product):
        return _own_values(kernel.left, X, noise) * _own_values(kernel.right, X, noise)
    if isinstance(kernel, known.Scaled):
        return kernel.scale * _own_values(kernel.inner, X, noise)
    if isinstance(kernel, known.Restricted):
        return _own_values(kernel.inner, X[:, list(kernel.columns)], noise)
    if isinstance(kernel, known.White):
        return np.full(len(X), kernel.noise * noise)
    if isinstance(kernel, known.ForeignKernel):
        return np.array(kernel.kernel.diag(X), dtype=float)
    if isinstance(
        kernel, (known.Gaussian, known.Matern, known.DoubleExponential, known.RationalQuadratic, known.Periodic)
    ):
        return np.ones(len(X))
    return np.array([values(kernel, X[[i]], X[[i]], same=True)[0, 0] for i in range(len(X))])


def _dense(X: Any) -> AnyArray:
    return np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)
