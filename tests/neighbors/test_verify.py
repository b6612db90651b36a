"""The checker accepts every honest model and no forged one."""

import numpy as np
import pytest
import scipy.sparse as sp

import learnable as ln
from learnable import KNeighborsClassifier, KNeighborsRegressor
from learnable.core.errors import VerificationError
from learnable.neighbors.verify import neighbors


def data(n=150):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    return X, np.array(["no", "yes"])[(X[:, 0] > 0).astype(int)]


@pytest.mark.parametrize(
    "metric", ["euclidean", "manhattan", "chebyshev", "sqeuclidean", "cosine", "hamming", "canberra"]
)
@pytest.mark.parametrize("sparse", [False, True])
def test_honest_models_are_verified(metric, sparse):
    X, y = data()
    if sparse and metric in ("chebyshev", "hamming", "canberra"):
        pytest.skip("scikit-learn has no such distance of sparse rows")
    X = sp.csr_array(np.where(abs(X) > 0.4, X, 0)) if sparse else X
    model = KNeighborsClassifier(metric=metric).fit(X, y, np.arange(150) % 4)
    verdict = ln.verify(model, X, y, np.arange(150) % 4)
    assert verdict, str(verdict)
    order = np.random.default_rng(1).permutation(150)
    assert bool(ln.verify(model, X[order], y[order], (np.arange(150) % 4)[order]))


def forge_row(model):
    model.rows_ = model.rows_ * np.where(np.arange(len(model.rows_)) == 17, 1.001, 1.0)[:, None]


def forge_label(model):
    model.targets_ = np.where(np.arange(len(model.targets_)) == 17, 1 - model.targets_, model.targets_)


def forge_classes(model):
    model.classes_ = model.classes_[::-1].copy()


def forge_weights(model):
    model.row_weights_ = np.full(len(model.rows_), 2.0)


def forge_metric(model):
    model.effective_metric_ = "manhattan"  # predictions still come from the old search


def forge_search(model):
    right = type(model).kneighbors
    model.kneighbors = lambda X, n_neighbors: [a[:, ::-1] for a in right(model, X, n_neighbors + 1)][:2]


@pytest.mark.parametrize(
    "forge",
    [forge_row, forge_label, forge_classes, forge_weights, forge_metric, forge_search],
    ids=lambda f: f.__name__,
)
def test_forged_models_are_not(forge):
    X, y = data()
    model = KNeighborsClassifier().fit(X, y)
    assert bool(ln.verify(model, X, y))
    forge(model)
    try:
        verdict = bool(ln.verify(model, X, y))
    except ValueError:  # rows of other shapes cannot even be compared
        verdict = False
    assert not verdict


def test_a_neighbour_too_few_too_far_or_twice_is_found():
    X, _ = data()
    model = KNeighborsRegressor(3).fit(X, np.arange(150.0))
    honest = neighbors(model, X, np.arange(150.0), None)
    assert honest.value < 1e-14
    for spoil in (
        lambda d, r: (d * (1 + 1e-6), r),
        lambda d, r: (d, np.roll(r, 1, axis=0)),
        lambda d, r: (d, np.repeat(r[:, :1], 3, axis=1)),
    ):
        model.kneighbors = lambda X, n_neighbors, spoil=spoil: spoil(
            *KNeighborsRegressor.kneighbors(model, X, n_neighbors)
        )
        assert neighbors(model, X, np.arange(150.0), None).value > 1e-7


def test_other_data_are_not_those_of_the_fit():
    X, y = data()
    model = KNeighborsClassifier().fit(X, y)
    assert "not those of the fit" in str(ln.verify(model, X + 1.0, y))
    with pytest.raises(VerificationError, match="features"):
        ln.verify(model, X[:, :2], y)
    with pytest.raises(VerificationError, match="table of a fit"):
        ln.verify(model, np.full_like(X, np.nan), y)
