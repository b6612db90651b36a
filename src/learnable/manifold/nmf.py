r"""Non-negative matrix factorisation: rows as sums of a few parts, X ≈ WH with W ≥ 0 and H ≥ 0.

The objective is, with n rows, d columns and the share r = `l1_ratio`,

    ½‖X − WH‖² + α_W d (r Σ|w| + ½(1 − r)Σw²) + α_H n (r Σ|h| + ½(1 − r)Σh²).

Given H it is a convex problem for each row of W, given W one for each column of H; they are taken in turn, each by
coordinate descent (hierarchical alternating least squares). No step raises the objective. At a stationary point
w_it = max(0, w_it − g_it/G_tt) with the gradient g and G = HHᵀ, and the same for H. In the end W is solved for given H;
the certificate is how far one more step of every coordinate of H moves the product, √(Σ G_tt Δh_tj²) with G = WᵀW, as a
share of ‖X‖.

References: D. Lee and S. Seung, Learning the parts of objects by non-negative matrix factorization, Nature 401 (1999);
A. Cichocki and A.-H. Phan, Fast local algorithms for large scale nonnegative matrix and tensor factorizations, 2009;
N. Gillis and F. Glineur, Accelerated multiplicative updates and hierarchical ALS algorithms, Neural Computation 24
(2012); C. Boutsidis and E. Gallopoulos, SVD based initialization, Pattern Recognition 41 (2008).
"""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from ..core.certificate import Certificate
from ..core.declare import (
    FLOATS,
    MAX_ITER,
    MAX_SECONDS,
    N_JOBS,
    RANDOM_STATE,
    TOLERANCE,
    Boolean,
    Number,
    Options,
    fitted,
    optional,
    param,
    tags,
)
from ..core.errors import DataError, ParameterError
from ..core.estimator import Estimator, Run
from ..core.loaded import law, laws
from ..core.threads import one_thread_blas, resolve_n_jobs, run_tasks
from ..data.door import Table, door, read_features, refuse_extreme_sizes
from ..meta.splits import as_generator
from ..solvers.eigen import singular_triplets
from ._kernels import descend_rows

Array = NDArray[np.float64]

#: Rows of one task.
_ROWS = 512
#: Sweeps over the coordinates of a row for each product with X (of digits with 5 and 16 parts, one takes twice the
#: rounds, eight no fewer), and the share of the first sweep's move that ends them.
_SWEEPS = 2
_SWEPT = 0.1
#: The same for rows that are solved to the end, given H.
_SOLVE_SWEEPS = 2000
_SOLVED = 1e-8


class NMF(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Estimator):
    r"""Non-negative matrix factorisation: X ≈ WH, ‖X − WH‖² least over W ≥ 0 and H ≥ 0, as far as descent finds it.

    The minimum is local: another start may end elsewhere. `transform` solves the convex problem of each row given H, to
    the end; `fit_transform` returns the same numbers. Unlike scikit-learn's, `tol` bounds the optimality conditions
    themselves (see `certificate_`), and other divergences and their multiplicative updates are not offered.
    Memory: O((n + d)k) besides the rows.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable.manifold import NMF
    >>> parts = np.array([[1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 2.0]])
    >>> X = np.array([[1.0, 0.0], [0.0, 1.0], [2.0, 1.0]]) @ parts
    >>> model = NMF(2).fit(X)
    >>> bool(model.reconstruction_err_ < 1e-3), bool((model.components_ >= 0).all())
    (True, True)
    """

    _theory = "nonnegative-factors"

    n_components: Any = param(
        optional(Number(low=1, integer=True)) | Options("auto"),
        'k; None is the number of columns, as is "auto" unless H is given.',
        default="auto",
        kw_only=False,
    )
    init: Any = param(
        optional(Options("random", "nndsvd", "nndsvda", "nndsvdar", "custom")),
        "Where to start: positive parts of singular vectors, with their zeros kept, replaced by the mean of X or by "
        "small random numbers; random; W and H as given to fit_transform. None is nndsvda, or random if k > min(n, d).",
        default=None,
    )
    solver: str = param(Options("cd"), "Coordinate descent.", default="cd")
    beta_loss: Any = param(Options("frobenius"), "Squared error.", default="frobenius")
    tol: float = param(
        TOLERANCE, "Ends when one more step of every coordinate moves WH by less than this share of ‖X‖.", default=1e-4
    )
    max_iter: int = param(MAX_ITER, "Rounds of W and H.", default=200)
    random_state: Any = param(RANDOM_STATE, "Of random starts.", default=None)
    alpha_W: float = param(Number(low=0.0), "α_W.", default=0.0)
    alpha_H: Any = param(Number(low=0.0) | Options("same"), 'α_H; "same" is α_W.', default="same")
    l1_ratio: float = param(Number(low=0.0, high=1.0), "r, how much of the penalty is absolute.", default=0.0)
    verbose: int = param(Number(low=0, integer=True) | Boolean(), "Kept for compatibility.", default=0)
    shuffle: bool = param(Boolean(), "Kept for compatibility; coordinates keep their order.", default=False)
    max_seconds: float | None = param(MAX_SECONDS, "Time after which the best so far is returned.", default=None)
    n_jobs: int | None = param(N_JOBS, "Threads; the result does not depend on it.", default=None)

    components_: Array = fitted("(n_components, n_features)", "H.", low=0.0)
    reconstruction_err_: float = fitted("()", "‖X − WH‖.", low=0.0)
    penalties_: Array = fitted("(4,)", "Absolute and squared penalty of each w, then of each h.", low=0.0)
    n_components_: int = fitted("int", "k.")
    n_iter_: int = fitted("int", "Rounds.")
    n_features_in_: int = fitted("int", "Number of columns.")
    certificate_: Certificate = fitted(
        "Certificate", "`stationarity`: by how much one more step of every coordinate moves WH, as a share of ‖X‖."
    )

    _door = staticmethod(door(target="none"))
    _remedy = "Maximum number of iterations reached: increase max_iter or tol"
    _tags = tags(sparse=True, positive_only=True, preserves_dtype=FLOATS)

    def fit(self, X: Any, y: Any = None, W: Any = None, H: Any = None) -> Self:  # type: ignore[override]
        """Find H for the rows of X; y is ignored.

        Parameters
        ----------
        X : array, sparse array or dataframe of shape (n_samples, n_features)
            Numbers that are not negative.
        y : ignored
            For compatibility.
        W, H : arrays of shape (n_samples, n_components) and (n_components, n_features), optional
            Where to start, with init="custom".
        """
        self.fit_transform(X, W=W, H=H)
        return self

    def fit_transform(self, X: Any, y: Any = None, W: Any = None, H: Any = None) -> Array:
        """Find W and H for the rows of X and return W."""
        self._start = (W, H)
        try:
            super().fit(X)
            found: Array = self._W
        finally:
            for name in ("_start", "_W"):
                self.__dict__.pop(name, None)
        return found

    def _fit(self, table: Table, run: Run) -> Certificate:
        X = self._read(table)
        n, d = X.shape
        W, H = self._begin(X)
        k = len(H)
        of_h = self.alpha_W if self.alpha_H == "same" else float(self.alpha_H)
        r = self.l1_ratio
        self.penalties_ = np.array(
            [self.alpha_W * d * r, self.alpha_W * d * (1.0 - r), of_h * n * r, of_h * n * (1.0 - r)]
        )
        size = _norm(X) or 1.0
        columns = sp.csr_array(X.T) if sp.issparse(X) else X.T
        V = np.ascontiguousarray(H.T)
        threads = resolve_n_jobs(self.n_jobs)
        goal = 0.5 * self.tol
        for iteration in range(1, self.max_iter + 1):
            moved = _descend(X, W, V, self.penalties_[:2], _SWEEPS, _SWEPT, threads)
            moved += _descend(columns, V, W, self.penalties_[2:], _SWEEPS, _SWEPT, threads)
            value = float(np.sqrt(moved)) / size
            if value <= goal:
                solved = self._solve(X, W, V, threads)
                value = self._residual(columns, V, solved, threads) / size
                if value <= self.tol:
                    break
                goal *= 0.5  # the rows of W had been further from the end than those of H
            if run.progress(iteration, value):
                solved = self._solve(X, W, V, threads)
                value = self._residual(columns, V, solved, threads) / size
                break
        else:
            solved = self._solve(X, W, V, threads)
            value = self._residual(columns, V, solved, threads) / size
        self.components_ = np.ascontiguousarray(V.T)
        self.n_components_ = k
        self.n_iter_ = iteration
        self.reconstruction_err_ = float(np.sqrt(_square_left(X, solved, self.components_)))
        run.previous._W = solved.astype(table.X.dtype, copy=False)
        return Certificate("stationarity", value, self.tol, n_iter=iteration)

    def _solve(self, X: Any, W: Array, V: Array, threads: int) -> Array:
        """Return the rows of W that are best given H, from a start; a part without any entry has no share in them."""
        solved = np.where((V != 0).any(axis=0), W, 0.0)
        _descend(X, solved, V, self.penalties_[:2], _SOLVE_SWEEPS, _SOLVED, threads)
        return solved

    def _residual(self, columns: Any, V: Array, W: Array, threads: int) -> float:
        """Return how far one more step of every coordinate of H moves the product, H left as it is."""
        return float(np.sqrt(_descend(columns, V.copy(), W, self.penalties_[2:], 1, 0.0, threads)))

    def _read(self, table: Table) -> Any:
        """Return the rows as float64; raise where they are negative."""
        if table.X is None:
            raise DataError("NMF: the rows must be in memory.")
        refuse_extreme_sizes(table.X, None, "NMF")
        return _not_negative("NMF (input X)", table.X)

    def _begin(self, X: Any) -> tuple[Array, Array]:
        """Return W and H to start from."""
        n, d = X.shape
        given = self._start
        if self.init == "custom":
            if given[0] is None or given[1] is None:
                raise ParameterError("NMF: init='custom' needs both W and H; pass them to fit_transform.")
            W = np.array(_not_negative("NMF (input W)", np.atleast_2d(given[0])), order="C")
            H = np.array(_not_negative("NMF (input H)", np.atleast_2d(given[1])), order="C")
            k = len(H) if self.n_components in (None, "auto") else self.n_components
            for name, given_shape, shape in (("H", H.shape, (k, d)), ("W", W.shape, (n, k))):
                if given_shape != shape:
                    which = "first" if given_shape[0] != shape[0] else "second"
                    raise DataError(
                        f"NMF: Array with wrong {which} dimension passed to NMF (input {name}): it must have shape "
                        f"{shape}; got {given_shape}."
                    )
            return W, H
        if given[0] is not None or given[1] is not None:
            warnings.warn("NMF: W and H are not used unless init='custom'.", RuntimeWarning, stacklevel=5)
        k = d if self.n_components in (None, "auto") else self.n_components
        init = self.init or ("nndsvda" if k <= min(n, d) else "random")
        if init != "random" and k > min(n, d):
            raise ParameterError(
                f"NMF: init={init!r} can only be used when n_components <= min(n_samples, n_features) = {min(n, d)}."
            )
        rng = as_generator(self.random_state)
        mean = float(X.mean())
        if init == "random":
            scale = np.sqrt(mean / k)
            H = scale * np.abs(rng.standard_normal((k, d)))
            return scale * np.abs(rng.standard_normal((n, k))), H
        W, H = positive_parts(X, k)
        if init != "nndsvd":
            for factor in (W, H):
                zero = factor == 0
                noise = np.abs(rng.standard_normal(int(zero.sum()))) / 100.0 if init == "nndsvdar" else 1.0
                factor[zero] = mean * noise
        return W, H

    def transform(self, X: Any) -> Array:
        """Return W of rows, given H: the solution of the convex problem of each row.

        Parameters
        ----------
        X : array, sparse array or dataframe of shape (n_samples, n_features)
            Numbers that are not negative.

        Returns
        -------
        array of shape (n_samples, n_components)
            Float32 for float32.
        """
        check_is_fitted(self)
        table = read_features(self, X)
        rows = _not_negative("NMF (input X)", table)
        W = np.zeros((rows.shape[0], len(self.components_)))
        V = np.ascontiguousarray(self.components_.T)
        return np.asarray(self._solve(rows, W, V, resolve_n_jobs(self.n_jobs)), dtype=table.dtype)

    def inverse_transform(self, X: Any) -> Array:
        """Return WH for given W."""
        check_is_fitted(self)
        W = np.asarray(X.toarray() if sp.issparse(X) else X, dtype=np.float64)
        if W.ndim != 2 or W.shape[1] != len(self.components_):
            raise DataError(f"NMF: inverse_transform needs {len(self.components_)} columns; got shape {W.shape}.")
        return np.asarray(W @ self.components_)

    @property
    def _n_features_out(self) -> int:
        return int(self.components_.shape[0])

    _laws = laws(
        law(
            "n_components_ is not the number of components_",
            lambda model: model.n_components_ == len(model.components_),
        ),
    )


def positive_parts(X: Any, k: int) -> tuple[Array, Array]:
    """Return factors from the positive or the negative parts of singular vectors, whichever is larger (NNDSVD)."""
    found = singular_triplets(X, k, owner="NMF")
    W = np.zeros((X.shape[0], k))
    H = np.zeros((k, X.shape[1]))
    for t in range(k):
        sides = []
        for sign in (1.0, -1.0):
            u = np.maximum(sign * found.left[:, t], 0.0)
            v = np.maximum(sign * found.right[t], 0.0)
            sides.append((float(np.linalg.norm(u) * np.linalg.norm(v)), u, v))
        size, u, v = max(sides, key=lambda side: side[0])
        if size > 0:
            scale = np.sqrt(found.values[t] * size)
            W[:, t] = scale * u / np.linalg.norm(u)
            H[t] = scale * v / np.linalg.norm(v)
    return W, H


def _descend(X: Any, W: Array, V: Array, penalty: Array, sweeps: int, tol: float, threads: int) -> float:
    """Descend in W, in place, for X ≈ WVᵀ; return Σ G_tt Δw² of the first sweep, in fixed blocks of rows."""
    n = len(W)
    k = W.shape[1]
    parts = [slice(start, min(n, start + _ROWS)) for start in range(0, n, _ROWS)]
    with one_thread_blas():
        gram = V.T @ V + penalty[1] * np.eye(k)

        def work(task: int) -> float:
            part = parts[task]
            cross = np.ascontiguousarray(np.asarray(X[part] @ V) - penalty[0])
            moves = np.empty(part.stop - part.start)
            descend_rows(W[part], gram, cross, sweeps, tol, moves)
            return float(moves.sum())

        return float(sum(run_tasks(work, len(parts), threads)))


def _not_negative(what: str, X: Any) -> Any:
    rows = sp.csr_array(X.astype(np.float64)) if sp.issparse(X) else np.asarray(X, dtype=np.float64)
    numbers: Array = np.asarray(rows.data if sp.issparse(rows) else rows)
    if (numbers < 0).any():
        raise DataError(f"Negative values in data passed to {what}; subtract the minimum, or use PCA.")
    if np.isnan(numbers).any():
        raise DataError(f"NaN in data passed to {what}; impute it.")
    return rows


def _norm(X: Any) -> float:
    return float(np.linalg.norm(X.data if sp.issparse(X) else X))


def _square_left(X: Any, W: Array, H: Array) -> float:
    """Return ‖X − WH‖² without forming WH for sparse rows."""
    if not sp.issparse(X):
        return float(((X - W @ H) ** 2).sum())
    cross = float((np.asarray(X @ H.T) * W).sum())
    return max(0.0, _norm(X) ** 2 - 2.0 * cross + float(((W.T @ W) * (H @ H.T)).sum()))
