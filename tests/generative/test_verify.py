"""The checkers accept every honest model and no forged one; a round trip through a file changes nothing."""

import numpy as np
import pytest
import scipy.sparse as sp
from tests.mutations import arrays_of, unnoticed

import learnable as ln
from learnable.core.errors import ModelFileError


def data(kind):
    rng = np.random.default_rng(0)
    y = np.array(["a", "b", "c"])[rng.integers(0, 3, 200)]
    if kind == "counts":
        return rng.poisson(2.0, (200, 4)).astype(float), y
    return rng.normal(size=(200, 4)) * [1.0, 10.0, 0.1, 1.0] + [0.0, 1e6, 0.0, 5.0] + (y == "b")[:, None], y


CASES = [
    (ln.GaussianNB(), "numbers", ["theta_", "var_", "class_prior_", "mean_", "square_", "class_count_"]),
    (ln.GaussianNB(prior={"mean": 0.0, "kappa": 1.0, "shape": 1.0, "rate": 1.0}), "numbers", ["theta_", "var_"]),
    (ln.MultinomialNB(), "counts", ["feature_log_prob_", "feature_count_", "class_log_prior_"]),
    (ln.BernoulliNB(binarize=1.5), "counts", ["feature_log_prob_", "feature_count_", "observed_"]),
    (ln.CategoricalNB(), "counts", ["class_log_prior_", "class_count_"]),
    (ln.LinearDiscriminantAnalysis(), "numbers", ["coef_", "intercept_", "means_", "scalings_", "xbar_", "priors_"]),
    (ln.LinearDiscriminantAnalysis("eigen", "auto"), "numbers", ["coef_", "covariance_", "scalings_"]),
    (ln.QuadraticDiscriminantAnalysis(), "numbers", ["means_", "whiten_", "priors_"]),
]


@pytest.mark.parametrize(("model", "kind", "members"), CASES, ids=lambda case: str(case)[:40])
def test_honest_models_are_verified_and_forged_ones_are_not(model, kind, members, tmp_path):
    X, y = data(kind)
    w = np.random.default_rng(1).uniform(0.5, 2.0, 200)
    model = ln.core.registry.registered_class(type(model).__name__)(**model.get_params()).fit(X, y, w)
    assert ln.verify(model, X, y, w), str(ln.verify(model, X, y, w))
    assert not ln.verify(model, X, y)  # other weights
    assert not ln.verify(model, np.vstack([X[1:], X[:1] + 1]), np.r_[y[1:], y[:1]], w)
    path = tmp_path / "model.safetensors"
    ln.save(model, path)
    loaded = ln.load(path)
    assert np.array_equal(loaded.predict_proba(X), model.predict_proba(X)) and ln.verify(loaded, X, y, w)
    for name in members:
        forged = ln.load(path)
        array = getattr(forged, name).copy()
        array.flat[0] += 1e-3 * (abs(array.flat[0]) + np.abs(array).mean())
        setattr(forged, name, array)
        assert not ln.verify(forged, X, y, w), name
        if name == "scalings_":  # there may be fewer directions
            continue
        setattr(forged, name, array[..., :-1])
        with pytest.raises(ModelFileError):
            ln.save(forged, tmp_path / "bad.safetensors")
    swapped = ln.load(path)
    swapped.classes_ = swapped.classes_[::-1].copy()
    assert not ln.verify(swapped, X, y, w)


def test_sparse_rows_are_verified():
    X, y = data("counts")
    for model in (ln.MultinomialNB(alpha=0.5), ln.BernoulliNB(alpha=0.0)):
        assert ln.verify(model.fit(sp.csr_array(X), y), sp.csr_array(X), y)
        assert ln.verify(model, X, y)


_RNG = np.random.default_rng(5)
_X = _RNG.normal(size=(60, 3)) * [1.0, 2.0, 0.5] + [3.0, 0.0, 1.0]
_COUNTS = _RNG.poisson(2.0, size=(60, 4))
_CODES = np.digitize(_X[:, 0] + 0.5 * _RNG.normal(size=60), [2.5, 3.5])
_CASES = {
    "GaussianNB": (ln.GaussianNB(), _X),
    "BernoulliNB": (ln.BernoulliNB(binarize=1.0), _COUNTS),
    "MultinomialNB": (ln.MultinomialNB(), _COUNTS),
    "CategoricalNB": (ln.CategoricalNB(), _COUNTS),
    "LDA": (ln.LinearDiscriminantAnalysis(store_covariance=True), _X),
    "LDA by eigenvalues": (ln.LinearDiscriminantAnalysis(solver="eigen", shrinkage="auto"), _X),
    "LDA by equations": (ln.LinearDiscriminantAnalysis(solver="lsqr"), _X),
    "QDA": (ln.QuadraticDiscriminantAnalysis(store_covariance=True), _X),
    "QDA by eigenvalues": (ln.QuadraticDiscriminantAnalysis(solver="eigen", shrinkage=0.1), _X),
    "densities": (ln.GenerativeClassifier(), _X),
}


@pytest.mark.parametrize("name", _CASES)
def test_a_change_of_any_fitted_array_is_noticed(name):
    model, X = _CASES[name]
    model.fit(X, _CODES)
    assert ln.verify(model, X, _CODES)
    assert len(arrays_of(model)) > 2
    assert unnoticed(model, X, _CODES) == []
