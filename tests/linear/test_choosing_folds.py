"""Cross-validation by the moments of the folds, and several targets, on Dask and from files: those of memory."""

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.model_selection import KFold
from tests.data.on_disk import streamed

from learnable import ElasticNetCV, Lasso, LassoCV, LinearRegression, Ridge, RidgeClassifierCV, RidgeCV, verify
from learnable.core.errors import DataError, ParameterError
from learnable.solvers.systems.moments import centred_moments, fold_moments

N = 203
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 5)) + 30.0
Y = X[:, :3] @ RNG.normal(size=(3, 3)) + RNG.normal(size=(N, 3))
W = RNG.random(N) + 0.1
ALPHAS = np.geomspace(1e-3, 1e3, 7)


@pytest.fixture(autouse=True)
def one_after_the_other():
    with dask.config.set(scheduler="synchronous"):
        yield


def lazy(array, height=60):
    return da.from_array(array, chunks=(height, *array.shape[1:]))


CHOICES = [
    (LassoCV(alphas=20), "mse_path_"),
    (ElasticNetCV(l1_ratio=[0.5, 1.0], alphas=10, cv=4, rule="1se"), "mse_path_"),
    (LassoCV(alphas=10, fit_intercept=False, cv=KFold(3)), "mse_path_"),
    (RidgeCV(ALPHAS, cv=5), "criterion_path_"),
    (RidgeCV(ALPHAS, cv=3, fit_intercept=False), "criterion_path_"),
]


@pytest.mark.parametrize(("model", "path"), CHOICES, ids=str)
@pytest.mark.parametrize("weighted", [False, True])
def test_folds_on_dask_are_those_of_memory(model, path, weighted):
    weight = (W,) if weighted else ()
    wanted = type(model)(**model.get_params()).fit(X, Y[:, 0], *weight)
    found = model.fit(lazy(X), lazy(Y[:, 0]), *map(lazy, weight))
    np.testing.assert_allclose(getattr(found, path), getattr(wanted, path), rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(found.alpha_, wanted.alpha_, rtol=1e-12)
    np.testing.assert_allclose(found.coef_, wanted.coef_, rtol=1e-9, atol=1e-10)
    assert found.certificate_.holds and found.certificate_.fingerprint == wanted.certificate_.fingerprint
    assert verify(found, X, Y[:, 0], *weight)


def test_folds_from_files_are_those_of_memory(tmp_path):
    frame = pd.DataFrame(X, columns=list("abcde")).assign(y=Y[:, 0])
    found = LassoCV(alphas=10).fit(streamed(frame, tmp_path, 2), "y")
    wanted = LassoCV(alphas=10).fit(frame, "y")
    np.testing.assert_allclose(found.coef_, wanted.coef_, rtol=1e-10)


def test_moments_of_folds_do_not_depend_on_the_partitions():
    """Sorted rows, whose first are far from the others."""
    order = np.argsort(X[:, 0])
    model = Ridge()
    bounds = np.array([0, 50, 120, N])
    found = []
    for height in (N, 60, 7):
        table = Ridge._door(model._draft(), lazy(1e4 * X[order], height), lazy(Y[order, 0], height), None)
        found.append(fold_moments(table.blocks, bounds))
    for other in found[1:]:
        for a, b in zip(found[0].outside, other.outside, strict=True):
            np.testing.assert_allclose(a.gram, b.gram, rtol=1e-11, atol=1e-6)
    whole = centred_moments(Ridge._door(model._draft(), 1e4 * X[order], Y[order, 0], None).blocks)
    np.testing.assert_allclose(found[0].whole.gram, whole.gram, rtol=1e-11, atol=1e-3)
    np.testing.assert_allclose(sum(own.weight for own in found[0].inside), whole.weight)


@pytest.mark.parametrize("cv", [KFold(3, shuffle=True), [(np.arange(100), np.arange(100, N))], 1])
def test_other_folds_are_refused(cv):
    with pytest.raises(ParameterError, match="LassoCV: with files and Dask, cv must be a number of folds"):
        LassoCV(cv=cv).fit(lazy(X), lazy(Y[:, 0]))
    with pytest.raises(DataError, match="more folds than there are rows"):
        LassoCV(cv=500).fit(lazy(X), lazy(Y[:, 0]))
    with pytest.raises(ParameterError, match="of a classifier, cv need all rows in memory"):
        RidgeClassifierCV(cv=3).fit(lazy(X), lazy(Y[:, 0] > np.median(Y[:, 0])))


def test_groups_that_no_splitter_asks_for_are_refused():
    with sklearn.config_context(enable_metadata_routing=True), pytest.raises(TypeError, match="groups"):
        LassoCV().fit(lazy(X), lazy(Y[:, 0]), groups=np.arange(N) % 3)


# Several targets.


@pytest.mark.parametrize(
    "model", [LinearRegression(), Ridge(), Ridge(alpha=[1.0, 1.0, 50.0]), LinearRegression(positive=True)], ids=str
)
def test_several_targets_on_dask_are_those_of_memory(model):
    found = type(model)(**model.get_params()).fit(lazy(X), lazy(Y, 50), lazy(W))
    wanted = model.fit(X, Y, W)
    np.testing.assert_allclose(found.coef_, wanted.coef_, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(found.intercept_, wanted.intercept_, rtol=1e-10)
    assert found.certificate_.fingerprint == wanted.certificate_.fingerprint
    assert verify(found, X, Y, W) and verify(found, lazy(X), lazy(Y), lazy(W))
    assert found.predict(lazy(X)).compute().shape == Y.shape


def test_several_targets_in_a_frame_of_their_own():
    frame = dd.from_pandas(pd.DataFrame(X, columns=list("abcde")), npartitions=3)
    targets = dd.from_pandas(pd.DataFrame(Y, columns=list("pqr")), npartitions=3)
    np.testing.assert_allclose(Ridge().fit(frame, targets).coef_, Ridge().fit(X, Y).coef_, rtol=1e-10)
    assert Ridge().fit(lazy(X), lazy(Y[:, :1])).coef_.shape == Ridge().fit(X, Y[:, :1]).coef_.shape


def test_what_is_wrong_with_several_targets_is_said():
    bad = Y.copy()
    bad[100, 2] = np.nan
    with pytest.raises(DataError, match="Ridge: Input y contains NaN: row 40 of partition 1"):
        Ridge().fit(lazy(X), lazy(bad))
    with pytest.raises(DataError, match="Lasso: y must have one dimension on Dask; got 2"):
        Lasso().fit(lazy(X), lazy(Y))
