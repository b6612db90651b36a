"""`verify` refuses a model of which any fitted array was changed: a little, permuted, swapped or shortened."""

import copy
import warnings

import numpy as np
import pytest

import learnable as ln

RNG = np.random.default_rng(0)
X = np.concatenate([RNG.normal(size=(40, 3)) + centre for centre in ([0, 0, 0], [6, 1, 0], [0, 7, 2])])
X = X[RNG.permutation(len(X))] * [1.0, 2.0, 0.5]
LABELS = (X[:, 0] > 2).astype(int) + (X[:, 1] > 5)
COUNTS = RNG.poisson(np.repeat([2.0, 9.0, 4.0], 40))[:, None]
SYMBOLS = np.repeat([0, 1, 2, 0], 30)[:, None] ^ (RNG.random((120, 1)) < 0.1)

MODELS = {
    "KMeans": (ln.KMeans(3, random_state=0), X, None),
    "KMeans mahalanobis": (ln.KMeans(3, random_state=0, metric="mahalanobis"), X, None),
    "MiniBatchKMeans": (ln.MiniBatchKMeans(3, random_state=0), X, None),
    "KMedoids": (ln.KMedoids(3, random_state=0), X, None),
    "GaussianMixture full": (ln.GaussianMixture(3, random_state=0, tol=1e-6), X, None),
    "GaussianMixture diag": (ln.GaussianMixture(3, random_state=0, tol=1e-6, covariance_type="diag"), X, None),
    "NearestNeighbors": (ln.NearestNeighbors(), X, None),
    "KNeighborsClassifier": (ln.KNeighborsClassifier(), X, LABELS),
    "KNeighborsRegressor": (ln.KNeighborsRegressor(), X, X[:, 0]),
    "GaussianHMM": (ln.GaussianHMM(2, random_state=0, n_iter=200, tol=1e-8), X, None),
    "CategoricalHMM": (ln.CategoricalHMM(2, random_state=0, n_iter=500, tol=1e-8), SYMBOLS, None),
    "PoissonHMM": (ln.PoissonHMM(2, random_state=0, n_iter=200, tol=1e-8), COUNTS, None),
    "GMMHMM": (ln.GMMHMM(2, 2, random_state=0, n_iter=300, tol=1e-6), X, None),
}
#: Arrays that only describe the climb: no method reads them. How often a mini-batch centre won depends on the batches.
HISTORIES = {"inertia_history_", "bound_history_", "counts_"}


def a_little(a):
    out = a.copy()
    at = np.unravel_index(np.abs(a).argmax(), a.shape)
    out[at] = out[at] * (1 + 1e-3) if a.dtype.kind == "f" else out[at] - 1
    return out


def permuted(a):
    return np.ascontiguousarray(np.roll(a, 1, axis=0))


def swapped(a):
    out = a.copy()
    flat = out.reshape(-1)
    other = np.flatnonzero(flat != flat[0])
    if len(other):
        flat[0], flat[other[0]] = flat[other[0]].copy(), flat[0].copy()
    return out


def shortened(a):
    return a[:-1].copy()


def fitted_arrays(model):
    for name, value in vars(model).items():
        if name.endswith("_") and isinstance(value, np.ndarray) and value.size and name not in HISTORIES:
            yield name, value


def cases():
    for title, (model, rows, y) in MODELS.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fitted = copy.deepcopy(model).fit(rows) if y is None else copy.deepcopy(model).fit(rows, y)
        for name, value in fitted_arrays(fitted):
            for change in (a_little, permuted, swapped, shortened):
                if value.dtype.kind in "fiub" and not np.array_equal(change(value), value):
                    yield pytest.param(fitted, rows, y, name, change, id=f"{title}-{name}-{change.__name__}")


def is_verified(model, rows, y):
    try:
        return bool(ln.verify(model, rows, y))
    except (ValueError, TypeError, IndexError, AttributeError):
        return False


@pytest.mark.sampled(8)
@pytest.mark.parametrize(("model", "rows", "y", "name", "change"), list(cases()))
def test_a_changed_array_is_refused(model, rows, y, name, change):
    assert is_verified(model, rows, y)
    changed = copy.deepcopy(model)
    setattr(changed, name, change(getattr(model, name)))
    assert not is_verified(changed, rows, y)
