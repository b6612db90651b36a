r"""One door for symmetric eigenproblems and thin singular value decompositions, with what is proven of each pair.

Of a symmetric matrix A and an approximate pair (λ̂, v), ‖v‖ = 1, with residual r = ‖Av − λ̂v‖:

    |λ̂ − λ| ≤ r for some eigenvalue λ,        sin ∠(v, its eigenspace) ≤ r / gap,

where gap is the distance of λ̂ from the other eigenvalues. Where the gap is no larger than the residual, the axis is
arbitrary within the eigenspace, and the pair is reported as such. How many eigenvalues lie below a number is counted by
the inertia of LDLᵀ = A − σI (Sylvester), which tells whether any was missed.

Signs are fixed: the first of the largest entries of each vector, in absolute value, is positive.

References: B. Parlett, The symmetric eigenvalue problem, 1980 (chapters 3, 11 and 13); N. Halko, P.-G. Martinsson and
J. Tropp, Finding structure with randomness, SIAM Review 53 (2011), 217–288 (equation 4.3 and algorithm 4.4).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.linalg import eigh, ldl, qr, svd
from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh, splu

from ..core import Array, DataError, NDArray, ParameterError, interruptible, one_thread_blas

#: Eigenpairs must satisfy Av = λv to this share of ‖A‖, and be orthonormal to this.
PAIR_TOLERANCE = 1e-12
#: Singular values below this share of the largest lose digits in the Gram matrix, whose condition is squared:
#: (1e-5)² leaves six digits of sixteen.
GRAM_CONDITION = 1e-5
#: Below this order LAPACK on the whole matrix is as quick as Lanczos for a few pairs.
_DENSE_ORDER = 400
#: Of the order of the matrix, above which share of the pairs Lanczos loses to LAPACK.
_FEW = 0.15
#: The same for a matrix in memory of at most so many rows, where the whole spectrum costs little: 51 pairs of 2,000
#: take 0.46 s by LAPACK and 0.69 s by Lanczos if no eigenvalue stands out, 0.43 s and 0.27 s if they fall like 1/i.
_FEW_IN_MEMORY = 0.025
_MEMORY_ORDER = 2500
#: Vectors of a block: a product with so many costs little more than with one, for a matrix that is read from memory.
#: Blocks that a Krylov space may have before Lanczos takes over.
_BLOCK = 12
_MOST_BLOCKS = 12
_OVERSAMPLES = 10
#: ARPACK's tolerance, relative to eigenvalues of the inverse: the residuals end at 1e-15 of the matrix, as with zero,
#: after 23 solves instead of 31 on a swiss roll.
_FINEST_INVERSE = 1e-12
_MOST_POWERS = 200
_EPSILON = float(np.finfo(np.float64).eps)


class EigenPairs(NamedTuple):
    """Some eigenpairs of a symmetric matrix, in the order asked for."""

    values: Array  #: (k,)
    vectors: Array  #: (n, k), orthonormal columns, signs fixed
    residuals: Array  #: (k,), ‖Av − λv‖: some eigenvalue is this near
    gaps: Array  #: (k,), distance to the nearest other eigenvalue that is known; inf where there is none
    size: float  #: ‖A‖₂ as far as it is known, the unit of the residuals
    n_iter: int = 1

    @property
    def worst(self) -> float:
        """The largest relative residual, or departure from orthonormality: the value of a certificate."""
        k = len(self.values)
        inner = np.abs(self.vectors.T @ self.vectors - np.eye(k)).max(initial=0.0)
        unit = self.size if self.size > 0 else 1.0
        return float(max(self.residuals.max(initial=0.0) / unit, inner))

    @property
    def angles(self) -> Array:
        """Upper bounds on the sine of the angle between each vector and its eigenspace; 1 says nothing."""
        with np.errstate(divide="ignore", invalid="ignore"):
            bound = self.residuals / np.maximum(self.gaps - self.residuals, 0.0)
        return np.minimum(np.where(self.residuals == 0.0, 0.0, bound), 1.0)

    @property
    def arbitrary(self) -> NDArray[np.bool_]:
        """Which axes rounding may turn: gaps below √ε ‖A‖."""
        return np.asarray(self.gaps <= np.sqrt(_EPSILON) * self.size)


class SingularTriplets(NamedTuple):
    """Some singular triplets of a matrix, the largest first."""

    left: Array  #: (n, k), U
    values: Array  #: (k,), s
    right: Array  #: (k, d), Vᵀ
    residuals: Array  #: (k,), √(‖Av − su‖² + ‖Aᵀu − sv‖²): some singular value is this near
    method: str
    n_iter: int = 1


def fix_signs(vectors: Array, *others: Array) -> None:
    """Make the first of the largest entries of each column positive, in place; columns of `others` follow.

    Entries within 1e-9 of the largest count as equal, so that rounding does not choose between them.
    """
    if not vectors.size:
        return
    size = np.abs(vectors)
    at = (size >= (1.0 - 1e-9) * size.max(axis=0)).argmax(axis=0)
    signs = np.where(vectors[at, np.arange(vectors.shape[1])] < 0, -1.0, 1.0)
    for columns in (vectors, *others):
        columns *= signs


def symmetric_pairs(
    A: Any,
    k: int,
    *,
    largest: bool = True,
    method: str = "auto",
    tol: float = 0.0,
    max_iter: int | None = None,
    shift: float | None = None,
    budget: int = 0,
    owner: str = "eigen",
) -> EigenPairs:
    """Return the k largest or smallest eigenvalues of a symmetric matrix and their eigenvectors.

    Parameters
    ----------
    A : (n, n) array, sparse array or LinearOperator
        Symmetric.
    k : int
        How many pairs.
    largest : bool
        Largest first; or smallest first.
    method : {"auto", "dense", "block", "lanczos", "shift-invert"}
        LAPACK on the whole matrix; a Krylov space of blocks, for the largest of a dense matrix with a few that stand
        out, followed by ARPACK; ARPACK; ARPACK with (A − σI)⁻¹ by a sparse factor. One that does not converge is
        followed by LAPACK, up to 10,000 rows.
    tol : float
        Of ARPACK, relative to the eigenvalue; 0 is machine precision.
    max_iter : int, optional
        Of ARPACK.
    shift : float, optional
        σ of "shift-invert", below the spectrum and near its end.
    budget : int
        Restarts that ARPACK may spend on the matrix itself before it is factored: worth it where the factor fills up,
        as in graphs of neighbours in more than three dimensions.
    owner : str
        Named by errors.

    Returns
    -------
    EigenPairs

    Examples
    --------
    >>> import numpy as np
    >>> pairs = symmetric_pairs(np.array([[2.0, 1.0], [1.0, 2.0]]), 1)
    >>> pairs.values.round(12), pairs.vectors.ravel().round(3), bool(pairs.worst < 1e-12)
    (array([3.]), array([0.707, 0.707]), True)
    """
    n = A.shape[0]
    if A.ndim != 2 or A.shape[1] != n or not 1 <= k <= n:
        raise ParameterError(f"{owner}: {k} eigenpairs were asked of a matrix of shape {A.shape}.")
    operator = isinstance(A, LinearOperator)
    if method == "auto":
        in_memory = isinstance(A, np.ndarray) and n <= _MEMORY_ORDER
        few = n > _DENSE_ORDER and k + 1 < (_FEW_IN_MEMORY if in_memory else _FEW) * n
        shifted = sp.issparse(A) and not largest and shift is not None
        iterative = "shift-invert" if shifted else "lanczos"
        method = iterative if few else "dense"
    if k + 1 >= n:
        method = "dense"
    wanted = min(n, k + 1)  # the next one, too: it bounds the gap of the last
    found = None
    if method == "block" and largest:
        found = _block_pairs(A, wanted, max(tol, PAIR_TOLERANCE / 10.0))
        method = "lanczos"
    if method == "shift-invert" and budget > 0:
        found = _budget_pairs(A, k, tol, budget)
    if found is not None:
        values, vectors = found
    elif method == "dense":
        values, vectors = _dense_pairs(_as_dense(A), wanted, largest)
    else:
        try:
            values, vectors = _lanczos_pairs(A, wanted, largest, tol, max_iter, shift if "shift" in method else None)
        except ArpackError:
            if operator or n > 10_000:
                raise DataError(
                    f"{owner}: the eigenvalue iteration did not converge on {n:,} rows; raise max_iter or tol, or ask "
                    "for fewer components."
                ) from None
            values, vectors = _dense_pairs(_as_dense(A), wanted, largest)
    order = np.argsort(-values if largest else values, kind="stable")
    values = values[order]
    vectors = np.ascontiguousarray(vectors[:, order])
    with one_thread_blas():
        residuals = np.sqrt(((A @ vectors - vectors * values) ** 2).sum(axis=0))
    size = max(float(np.abs(values).max(initial=0.0)), _size_of(A))
    gaps = gaps_between(values)[:k]
    vectors = np.ascontiguousarray(vectors[:, :k])
    fix_signs(vectors)
    return EigenPairs(values[:k], vectors, residuals[:k], gaps, size)


def gaps_between(values: Array) -> Array:
    """Return how far each of some sorted values is from its nearest neighbour; inf for a single one."""
    steps = np.abs(np.diff(values))
    return np.asarray(np.minimum(np.concatenate([[np.inf], steps]), np.concatenate([steps, [np.inf]])))


def _dense_pairs(A: Array, k: int, largest: bool) -> tuple[Array, Array]:
    n = len(A)
    ends = (n - k, n - 1) if largest else (0, k - 1)
    # All pairs by divide and conquer, which is quicker than bisection and never loses orthogonality.
    if k > n // 4:
        values, vectors = interruptible(eigh, A, check_finite=False)
        part = slice(ends[0], ends[1] + 1)
        return values[part], vectors[:, part]
    with one_thread_blas():  # half of it waits for memory, and two threads lose seconds where another process is busy
        values, vectors = interruptible(eigh, A, subset_by_index=ends, check_finite=False)
    return values, vectors


def _block_pairs(A: Array, k: int, tol: float) -> tuple[Array, Array] | None:
    """Return the k largest pairs within the span of Ω, AΩ, A²Ω, … (G. Golub and R. Underwood, 1977), or None.

    The last of them, the smallest, is known to a tenth of its distance from the one before.

    The matrix is read once for each block: five to eight times where the pairs wanted stand out, against some fifty of
    Lanczos with single vectors.
    """
    n = len(A)
    block = np.random.default_rng(0).standard_normal((n, _BLOCK))
    basis = np.empty((n, 0))
    images = np.empty((n, 0))
    with one_thread_blas():
        for _ in range(_MOST_BLOCKS):
            for _ in range(2):  # twice is enough to be orthogonal to machine precision
                block -= basis @ (basis.T @ block)
                block = qr(block, mode="economic", check_finite=False)[0]
            image = np.asarray(A @ block)
            basis = np.hstack([basis, block])
            images = np.hstack([images, image])
            inner = basis.T @ images
            values, turn = eigh((inner + inner.T) / 2.0, check_finite=False)
            values = values[-k:]
            turn = turn[:, -k:]
            missed = np.sqrt(((images @ turn - (basis @ turn) * values) ** 2).sum(axis=0))
            # The first of these, the next pair, bounds a gap only: a tenth of the gap is near enough.
            known = missed[0] <= 0.1 * (values[1] - values[0])
            if known and missed[1:].max(initial=0.0) <= tol * float(np.abs(values).max()):
                return values, basis @ turn
            block = image
    return None


def _budget_pairs(A: Any, k: int, tol: float, budget: int) -> tuple[Array, Array] | None:
    """Return the k smallest pairs of a sparse matrix by Lanczos on cI − A, or None after so many restarts.

    The eigenvalues wanted are the largest of cI − A, near c: ARPACK's tolerance, relative to them, is reached early.
    """
    n = A.shape[0]
    top = float(np.abs(A).sum(axis=1).max())  # no eigenvalue is larger (Gershgorin)
    turned = sp.csr_array(top * sp.eye_array(n) - A)
    start = np.random.default_rng(0).uniform(-1.0, 1.0, n)
    basis = min(n, 2 * k + 20)
    with one_thread_blas():
        try:
            vectors = eigsh(turned, k, which="LA", tol=tol, maxiter=budget, v0=start, ncv=basis)[1]
        except ArpackError:
            return None
    return _rayleigh_ritz(A, vectors)


def _lanczos_pairs(
    A: Any, k: int, largest: bool, tol: float, max_iter: int | None, shift: float | None
) -> tuple[Array, Array]:
    n = A.shape[0]
    start = np.random.default_rng(0).uniform(-1.0, 1.0, n)
    # A basis of 2k + 20 vectors: fewer restarts than ARPACK's own 2k + 1, for a few percent of memory.
    basis = min(n, 2 * k + 20)
    with one_thread_blas():
        if shift is None:
            which = "LA" if largest else "SA"
            vectors = eigsh(A, k, which=which, tol=tol, maxiter=max_iter, v0=start, ncv=basis)[1]
        else:
            # Near its end the spectrum of the inverse is spread wide: 13 solves of 29 suffice on a swiss roll.
            basis = min(n, 2 * k + 6)
            inverse = _inverse_of(sp.csc_array(A - shift * sp.eye_array(n)))
            finest = max(tol, _FINEST_INVERSE)
            vectors = eigsh(
                A, k, sigma=shift, which="LM", tol=finest, maxiter=max_iter, v0=start, ncv=basis, OPinv=inverse
            )[1]
    # ARPACK's vectors are orthonormal to its tolerance only; Rayleigh and Ritz make them so.
    return _rayleigh_ritz(A, vectors)


def _inverse_of(A: sp.csc_array) -> LinearOperator:
    """Return the inverse of a positive definite matrix as an operator.

    Positive definite matrices need no pivots, so the order may follow the pattern of the symmetric matrix alone: of
    graphs of neighbours, half the entries and a third of the time of SuperLU's order for general matrices.
    """
    factor = _symmetric_factor(A)
    return LinearOperator(A.shape, matvec=factor.solve, matmat=factor.solve, dtype=np.dtype(np.float64))


def _symmetric_factor(A: sp.csc_array) -> Any:
    """Return SuperLU's factor of a symmetric matrix, without pivots where none is zero.

    Panels of four columns: for 10,000 rows of a swiss roll 25 ms (the Laplacian of neighbours) and 89 ms (the matrix of
    local weights), with SuperLU's own panels 31 and 106.
    """
    options = {"SymmetricMode": True}
    return splu(A, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, panel_size=4, relax=4, options=options)


def _rayleigh_ritz(A: Any, basis: Array) -> tuple[Array, Array]:
    """Return the best pairs within the span of some vectors."""
    with one_thread_blas():
        Q = qr(basis, mode="economic", check_finite=False)[0]
        inner = Q.T @ (A @ Q)
        values, turn = eigh((inner + inner.T) / 2.0, check_finite=False)
        return values, Q @ turn


def _as_dense(A: Any) -> Array:
    if isinstance(A, LinearOperator):
        A = A @ np.eye(A.shape[0])
        return np.asarray((A + A.T) / 2.0)
    return np.asarray(A.toarray() if sp.issparse(A) else A, dtype=np.float64)


def _size_of(A: Any) -> float:
    """Return a lower bound of ‖A‖₂ that costs nothing: the largest entry; 0 for an operator."""
    if isinstance(A, LinearOperator):
        return 0.0
    numbers = A.data if sp.issparse(A) else A
    return max(float(numbers.max(initial=0.0)), -float(numbers.min(initial=0.0)))


def count_below(A: Any, shift: float) -> int | None:
    """Return how many eigenvalues of a symmetric matrix are below a number, by the inertia of A − σI = LDLᵀ.

    None where it cannot be had: a sparse factorisation that had to pivot, or lost its digits.

    Examples
    --------
    >>> import numpy as np
    >>> count_below(np.diag([1.0, 2.0, 3.0]), 2.5)
    2
    """
    n = A.shape[0]
    if not sp.issparse(A):
        D = ldl(np.asarray(A, dtype=np.float64) - shift * np.eye(n), check_finite=False)[1]
        return int((np.linalg.eigvalsh(D) < 0).sum()) if n < 200 else _negative_blocks(D)
    shifted = sp.csc_array(A - shift * sp.eye_array(n))
    try:
        factor = _symmetric_factor(shifted)
    except RuntimeError:  # exactly singular: σ is an eigenvalue
        return None
    if not np.array_equal(factor.perm_r, factor.perm_c):
        return None
    order = np.argsort(factor.perm_c)
    error = factor.L @ factor.U - shifted[order][:, order]
    pivots = factor.U.diagonal()
    # By Weyl's inequality the factor's matrix has eigenvalues within ‖error‖ of those wanted.
    if np.abs(error).sum(axis=0).max() > 1e-8 * np.abs(pivots).max():
        return None
    return int((pivots < 0).sum())


def _negative_blocks(D: Array) -> int:
    """Count the negative eigenvalues of a block-diagonal matrix of 1 × 1 and 2 × 2 blocks."""
    n = len(D)
    count = 0
    i = 0
    while i < n:
        if i + 1 < n and D[i + 1, i] != 0.0:
            count += int((np.linalg.eigvalsh(D[i : i + 2, i : i + 2]) < 0).sum())
            i += 2
        else:
            count += int(D[i, i] < 0)
            i += 1
    return count


def singular_triplets(
    A: Any,
    k: int,
    *,
    method: str = "auto",
    tol: float = 0.0,
    max_iter: int | None = None,
    n_power: int | None = None,
    n_oversamples: int = _OVERSAMPLES,
    random_state: np.random.Generator | None = None,
    owner: str = "eigen",
) -> SingularTriplets:
    """Return the k largest singular values of a matrix and their vectors.

    Parameters
    ----------
    A : (n, d) array, sparse array or LinearOperator
        Any matrix; an operator needs products with its transpose.
    k : int
        How many triplets.
    method : {"auto", "dense", "gram", "lanczos", "randomized"}
        LAPACK's SVD; eigenvectors of AᵀA or AAᵀ, followed by the SVD where a value wanted is below 1e-5 of the largest;
        ARPACK on AᵀA; random subspace with power iterations, each re-orthogonalised.
    tol : float
        Of "lanczos" and "randomized": relative residual at which they stop; 0 is 1e-13.
    max_iter : int, optional
        Of "lanczos".
    n_power : int, optional
        Power iterations of "randomized"; by default until `tol`, at most 200.
    n_oversamples : int
        Additional random vectors of "randomized".
    random_state : Generator, optional
        Of "randomized"; by default seeded with 0.
    owner : str
        Named by errors.

    Examples
    --------
    >>> import numpy as np
    >>> found = singular_triplets(np.array([[3.0, 0.0], [0.0, 4.0]]), 2)
    >>> found.values.round(12), found.right.round(12)
    (array([4., 3.]), array([[0., 1.], [1., 0.]]))
    """
    n, d = A.shape
    if not 1 <= k <= min(n, d):
        raise ParameterError(f"{owner}: {k} singular values were asked of a matrix of shape {A.shape}.")
    implicit = sp.issparse(A) or isinstance(A, LinearOperator)
    if method == "auto":
        few = min(n, d) > _DENSE_ORDER and k + 1 < _FEW * min(n, d)
        method = "gram" if max(n, d) > 4 * min(n, d) and not implicit else "dense"
        method = "lanczos" if few else method
    if k + 1 >= min(n, d) and method == "lanczos":
        method = "dense"
    if method == "gram":
        found = _gram_triplets(A, k)
        if found is None:  # too ill-conditioned for the Gram matrix
            method = "dense"
    if method == "dense":
        found = _dense_triplets(A, k)
    elif method == "lanczos":
        found = _lanczos_triplets(A, k, tol, max_iter, owner)
    elif method == "randomized":
        rng = np.random.default_rng(0) if random_state is None else random_state
        found = _random_triplets(A, k, tol or 1e-13, n_power, n_oversamples, rng)
    if found is None:
        raise ParameterError(f"{owner}: there is no method {method!r} for singular values.")
    left, values, right, n_iter = found
    right_columns = np.ascontiguousarray(right.T)
    left = np.ascontiguousarray(left)
    fix_signs(right_columns, left)
    with one_thread_blas():
        there = ((A @ right_columns - left * values) ** 2).sum(axis=0)
        back = ((A.T @ left - right_columns * values) ** 2).sum(axis=0)
    residuals = np.sqrt(there + back)
    return SingularTriplets(left, values, np.ascontiguousarray(right_columns.T), residuals, method, n_iter)


_Found = tuple[Array, Array, Array, int]


def _dense_triplets(A: Any, k: int) -> _Found:
    if isinstance(A, LinearOperator):
        A = A @ np.eye(A.shape[1])
    dense = np.asarray(A.toarray() if sp.issparse(A) else A, dtype=np.float64)
    left, values, right = interruptible(svd, dense, full_matrices=False, check_finite=False)
    return left[:, :k], values[:k], right[:k], 1


def _gram_triplets(A: Any, k: int) -> _Found | None:
    """Return the triplets by the smaller Gram matrix; None where its squared condition number costs digits."""
    n, d = A.shape
    wide = d > n
    with one_thread_blas():
        gram = A @ A.T if wide else A.T @ A
    pairs = symmetric_pairs(_as_dense(gram), k, method="auto")
    values = np.sqrt(np.maximum(pairs.values, 0.0))
    if values[-1] <= GRAM_CONDITION * values[0]:
        return None
    with one_thread_blas():
        if wide:
            return pairs.vectors, values, np.asarray((A.T @ pairs.vectors / values).T), 1
        return np.asarray(A @ pairs.vectors / values), values, pairs.vectors.T, 1


def _lanczos_triplets(A: Any, k: int, tol: float, max_iter: int | None, owner: str) -> _Found:
    n, d = A.shape
    wide = d > n

    def product(v: Any) -> Any:
        return A @ (A.T @ v) if wide else A.T @ (A @ v)

    order = min(n, d)
    gram = LinearOperator((order, order), matvec=product, matmat=product, dtype=np.float64)
    basis = symmetric_pairs(gram, k, method="lanczos", tol=tol, max_iter=max_iter, owner=owner).vectors
    return (*_ritz_triplets(A, basis, wide, k), 1)


def _ritz_triplets(A: Any, basis: Array, wide: bool, k: int) -> tuple[Array, Array, Array]:
    """Return the triplets within the span of orthonormal vectors, of the left ones if A is wide."""
    with one_thread_blas():
        image = np.asarray((A.T if wide else A) @ basis)
        left, values, turn = svd(image, full_matrices=False, check_finite=False)
    inner = basis @ turn.T
    if wide:
        return inner[:, :k], values[:k], left.T[:k]
    return left[:, :k], values[:k], inner.T[:k]


def _random_triplets(
    A: Any, k: int, tol: float, n_power: int | None, n_oversamples: int, rng: np.random.Generator
) -> _Found:
    """Return triplets by a random subspace and power iterations, re-orthogonalised at each (Halko, algorithm 4.4)."""
    n, d = A.shape
    width = min(k + n_oversamples, n, d)
    basis = rng.standard_normal((d, width))
    most = _MOST_POWERS if n_power is None else n_power
    with one_thread_blas():
        for step in range(most + 1):
            Q = qr(np.asarray(A @ basis), mode="economic", check_finite=False)[0]
            image = np.asarray(A.T @ Q)
            turn, values, right = svd(image.T, full_matrices=False, check_finite=False)
            left = Q @ turn
            if step == most:
                break
            if n_power is None:
                miss = np.sqrt(((A @ right[:k].T - left[:, :k] * values[:k]) ** 2).sum(axis=0)).max()
                if miss <= tol * values[0]:
                    break
            basis = qr(image, mode="economic", check_finite=False)[0]
    return left[:, :k], values[:k], right[:k], step + 1


def missed_norm(A: Any, left: Array, rng: np.random.Generator, n_probes: int = 10) -> float:
    """Return a bound on ‖(I − UUᵀ)A‖₂ that fails with probability 10^−n_probes (Halko et al., equation 4.3)."""
    probes = rng.standard_normal((A.shape[1], n_probes))
    with one_thread_blas():
        image = np.asarray(A @ probes)
        image -= left @ (left.T @ image)
    return float(10.0 * np.sqrt(2.0 / np.pi) * np.sqrt((image**2).sum(axis=0)).max())
