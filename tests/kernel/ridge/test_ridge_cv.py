"""The path of penalties from one eigendecomposition, and the choice among them."""

import numpy as np
import pytest
from sklearn.metrics import mean_absolute_error
from sklearn.model_selection import KFold
from tests.kernel.kernel_tables import curved, peak_bytes

from learnable import KernelRidge, KernelRidgeCV, verify
from learnable.core.errors import DataError, ParameterError
from learnable.kernel import kernel_ridge_path

ALPHAS = [1e-3, 1e-2, 0.1, 1.0, 10.0]
X, y, weight = curved()
_, Y, _ = curved(targets=2)


@pytest.mark.parametrize("weights", [None, weight], ids=["equal", "weighted"])
def test_leave_one_out_errors_are_those_of_kernel_ridge(weights):
    model = KernelRidgeCV(ALPHAS, store_cv_results=True).fit(X, y, weights)
    w = np.ones(len(X)) if weights is None else weights
    for number, alpha in enumerate(ALPHAS):
        squares = (y - KernelRidge(alpha=alpha, kernel="rbf").leave_one_out(X, y, weights)) ** 2
        np.testing.assert_allclose(model.cv_results_[:, number], squares, rtol=1e-7, atol=1e-12)
        np.testing.assert_allclose(model.criterion_path_[number], -(w * squares).sum() / w.sum(), rtol=1e-8)
    assert model.alpha_ == ALPHAS[int(np.argmax(model.criterion_path_))]
    chosen = KernelRidge(alpha=model.alpha_, kernel="rbf").fit(X, y, weights)
    np.testing.assert_allclose(model.predict(X), chosen.predict(X), rtol=1e-9)
    assert verify(model, X, y, weights)


def test_generalised_cross_validation_from_its_definition():
    model = KernelRidgeCV(ALPHAS, criterion="gcv").fit(X, y)
    K = np.exp(-((X[:, None] - X) ** 2).sum(axis=2) / 3)
    for number, alpha in enumerate(ALPHAS):
        H = K @ np.linalg.inv(K + alpha * np.eye(len(K)))
        score = np.mean((y - H @ y) ** 2) / (1 - np.trace(H) / len(K)) ** 2
        np.testing.assert_allclose(model.criterion_path_[number], -score, rtol=1e-8)


def test_folds_are_fits_to_the_other_rows():
    folds = KFold(4)
    model = KernelRidgeCV(ALPHAS, cv=folds).fit(X, Y)
    scores = [
        np.mean([KernelRidge(alpha=a, kernel="rbf").fit(X[i], Y[i]).score(X[j], Y[j]) for i, j in folds.split(X)])
        for a in ALPHAS
    ]
    np.testing.assert_allclose(model.criterion_path_, scores, rtol=1e-8)


def test_a_penalty_for_each_target_and_another_score():
    each = KernelRidgeCV(ALPHAS, alpha_per_target=True).fit(X, Y)
    for k in range(2):
        assert each.alpha_[k] == KernelRidgeCV(ALPHAS).fit(X, Y[:, k]).alpha_
    model = KernelRidgeCV(ALPHAS, scoring="neg_mean_absolute_error", store_cv_results=True).fit(X, y)
    errors = [mean_absolute_error(y, model.cv_results_[:, a]) for a in range(len(ALPHAS))]
    np.testing.assert_allclose(model.criterion_path_, -np.array(errors), rtol=1e-12)


@pytest.mark.parametrize("targets", [y, Y], ids=["one", "two"])
def test_the_path_has_the_coefficients_of_every_penalty(targets):
    path = kernel_ridge_path(X, targets, ALPHAS, gamma=0.4, sample_weight=weight)
    for number, alpha in enumerate(ALPHAS):
        model = KernelRidge(alpha=alpha, kernel="rbf", gamma=0.4).fit(X, targets, weight)
        np.testing.assert_allclose(path[number], model.dual_coef_, rtol=1e-8, atol=1e-10)


def test_refusals():
    with pytest.raises(ParameterError, match="cv=None"):
        KernelRidgeCV(cv=3, store_cv_results=True).fit(X, y)
    with pytest.raises(DataError, match="at least 2 rows"):
        KernelRidgeCV().fit([[1.0]], [1.0])
    with pytest.raises(ParameterError, match="alphas must be"):
        KernelRidgeCV([0.0]).fit(X, y)
    with pytest.raises(ParameterError, match="scoring='nonsense'"):
        KernelRidgeCV(scoring="nonsense").fit(X, y)
    with pytest.raises(ParameterError, match="kernel_ridge_path: alphas"):
        kernel_ridge_path(X, y, [-1.0])


def test_memory_is_what_the_docstring_says():
    Z, t, _ = curved(700, 4)
    KernelRidgeCV(ALPHAS).fit(Z[:50], t[:50])
    assert peak_bytes(lambda: KernelRidgeCV(ALPHAS).fit(Z, t)) <= 41 * 700**2 + 2e6
