"""`verify` covers every array that a fitted kernel machine stores: whatever is changed in any of them is refused."""

import copy
import warnings

import numpy as np
import pytest
import scipy.sparse as sp

import learnable as ln
from learnable.core.errors import VerificationError

from .kernel_tables import curved, rings

#: What no public method reads: how long the fit took, and the scores of a search that is over.
NOT_READ = {"n_iter_", "fit_status_", "certificate_", "best_score_", "criterion_path_"}


def shared_words(A, B):
    """Return how many words two texts share, for all pairs of texts."""
    return np.array([[len(set(a.split()) & set(b.split())) + 0.1 * (a == b) for b in B] for a in A], dtype=float)


def texts(n):
    rng = np.random.default_rng(1)
    return [" ".join(f"w{word}" for word in rng.integers(0, 12, size=6)) for _ in range(n)]


MODELS = {
    "SVC": (ln.SVC(), "classes", np.asarray),
    "SVC, two classes": (ln.SVC(kernel="linear"), "two", np.asarray),
    "SVC, weights of classes": (ln.SVC(kernel="poly", class_weight="balanced"), "classes", np.asarray),
    "SVC, without offset": (ln.SVC(fit_intercept=False), "two", np.asarray),
    "SVC, sparse": (ln.SVC(), "classes", sp.csr_array),
    "SVC, probabilities": (ln.SVC(probability=True), "classes", np.asarray),
    "SVC, probabilities of two": (ln.SVC(probability=True, gamma=0.5), "two", sp.csr_array),
    "SVC, given matrix": (ln.SVC(kernel="precomputed"), "classes", lambda X: X @ X.T),
    "SVC, a function of texts": (ln.SVC(kernel=shared_words), "two", lambda X: texts(len(X))),
    "NuSVC": (ln.NuSVC(nu=0.3), "classes", np.asarray),
    "NuSVC, probabilities": (ln.NuSVC(nu=0.3, probability=True), "two", np.asarray),
    "SVR": (ln.SVR(), "numbers", np.asarray),
    "SVR, sparse": (ln.SVR(kernel="linear"), "numbers", sp.csr_array),
    "SVR, no tube": (ln.SVR(epsilon=0.0), "numbers", np.asarray),
    "NuSVR": (ln.NuSVR(nu=0.3), "numbers", np.asarray),
    "OneClassSVM": (ln.OneClassSVM(nu=0.3), "none", np.asarray),
    "KernelRidge": (ln.KernelRidge(kernel="rbf", alpha=0.1), "numbers", np.asarray),
    "KernelRidge, linear": (ln.KernelRidge(alpha=0.1), "numbers", np.asarray),
    "KernelRidge, given matrix": (ln.KernelRidge(kernel="precomputed"), "numbers", lambda X: X @ X.T),
    "KernelRidgeCV": (ln.KernelRidgeCV(kernel="rbf"), "numbers", np.asarray),
    "KernelRidgeClassifier": (ln.KernelRidgeClassifier(kernel="rbf"), "classes", np.asarray),
    "KernelLogisticRegression": (ln.KernelLogisticRegression(), "classes", np.asarray),
    "KernelLogisticRegression, two": (ln.KernelLogisticRegression(kernel="poly"), "two", np.asarray),
    "KernelPCA": (ln.KernelPCA(n_components=3, kernel="rbf"), "none", np.asarray),
    "KernelPCA, inverse": (ln.KernelPCA(kernel="poly", degree=2, fit_inverse_transform=True), "none", np.asarray),
    "KernelPCA, given matrix": (ln.KernelPCA(kernel="precomputed"), "none", lambda X: X @ X.T),
}


def data_of(name):
    """Return an unfitted model with its rows and targets."""
    model, kind, as_rows = MODELS[name]
    X, y, _ = curved(60) if kind == "numbers" else rings(60, 2 if kind == "two" else 3)
    return copy.deepcopy(model), as_rows(np.asarray(X)), None if kind == "none" else y


def changes_of(value, seed):
    """Yield the name and the result of every change: by a share of 1e-3, permuted, shortened, swapped."""
    rng = np.random.default_rng(seed)
    if isinstance(value, list):
        yield "shortened", value[:-1]
        yield "permuted", value[::-1]
        return
    if np.ndim(value) == 0:
        yield "by 1e-3", type(value)(value * 1.001) if isinstance(value, float) else value + 1
        return
    dense = np.asarray(value.toarray() if sp.issparse(value) else value)
    back = type(value) if sp.issparse(value) else np.asarray
    if dense.dtype.kind == "f":
        yield "all by 1e-3", back(dense * 1.001)
        one = dense.copy()
        places = np.argwhere(np.abs(dense) > 1e-2 * np.abs(dense).max(initial=0.0))
        if len(places):
            one[tuple(places[rng.integers(len(places))])] *= 1.001
            yield "one by 1e-3", back(one)
    elif dense.dtype.kind in "iu":
        one = dense.copy()
        one.flat[rng.integers(dense.size)] += 1
        yield "one by 1", back(one)
    for axis in range(dense.ndim):
        yield f"shortened along {axis}", back(np.delete(dense, -1, axis=axis))
        yield f"reversed along {axis}", back(np.flip(dense, axis=axis))
        yield f"permuted along {axis}", back(np.take(dense, rng.permutation(dense.shape[axis]), axis=axis))
        if dense.shape[axis] > 1:
            order = np.arange(dense.shape[axis])
            i, j = rng.choice(len(order), size=2, replace=False)
            order[[i, j]] = order[[j, i]]
            yield f"swapped along {axis}", back(np.take(dense, order, axis=axis))


def is_refused(model, X, y):
    try:
        return not ln.verify(model, X, y)
    except VerificationError:
        return True


def same(a, b):
    if sp.issparse(a):
        return a.shape == b.shape and abs(a - b).max() == 0
    return np.array_equal(a, b)


@pytest.mark.sampled(6)
@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("name", MODELS)
def test_every_stored_array_is_covered(name):
    model, X, y = data_of(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        model.fit(X, y)
    assert ln.verify(model, X, y), str(ln.verify(model, X, y))
    stored = [a for a in vars(model) if a.endswith("_") and not a.startswith("_") and a not in NOT_READ]
    assert stored
    missed = []
    for attribute in stored:
        before = getattr(model, attribute)
        if isinstance(before, (tuple, dict)) or before is None or (np.ndim(before) and not np.size(before)):
            continue
        for seed in range(3):
            for what, after in changes_of(before, seed):
                if same(before, after):
                    continue
                changed = copy.copy(model)
                setattr(changed, attribute, after)
                if not is_refused(changed, X, y):
                    missed.append(f"{attribute} {what}")
    assert not missed, missed
