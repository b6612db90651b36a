"""What models with centres share."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import cdist

from learnable import KMeans, MiniBatchKMeans
from learnable.core.errors import DataError, ModelFileError, ParameterError

RNG = np.random.default_rng(0)
X = 4 * RNG.normal(size=(3, 4))[RNG.integers(3, size=300)] + RNG.normal(size=(300, 4))
MODELS = [KMeans(3, random_state=0), MiniBatchKMeans(3, random_state=0)]
by_name = pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)


@by_name
def test_predictions_are_the_nearest_centres(model):
    model.fit(X)
    new = RNG.normal(size=(50, 4))
    squares = cdist(new, model.cluster_centers_, "sqeuclidean")
    assert model.predict(new).tolist() == squares.argmin(axis=1).tolist()
    assert model.predict(sp.csr_array(new)).tolist() == squares.argmin(axis=1).tolist()
    np.testing.assert_allclose(model.transform(new), np.sqrt(squares))
    assert model.score(new) == pytest.approx(-squares.min(axis=1).sum())
    weight = RNG.uniform(size=50)
    assert model.score(new, sample_weight=weight) == pytest.approx(-weight @ squares.min(axis=1))
    assert model.fit_predict(X).tolist() == model.labels_.tolist() == model.predict(X).tolist()
    np.testing.assert_array_equal(model.fit_transform(X), model.transform(X))
    assert model.get_feature_names_out().tolist() == [f"{type(model).__name__.lower()}{k}" for k in range(3)]


@by_name
def test_rows_without_weight_are_labelled_too(model):
    weight = np.r_[np.zeros(5), np.ones(295)]
    model.fit(X, sample_weight=weight)
    assert model.labels_.tolist() == model.predict(X).tolist()


@by_name
def test_a_callable_and_an_array_start(model):
    seen = []

    def first_rows(rows, K, random_state):
        seen.append(type(random_state).__name__)
        return rows[:K]

    from_callable = type(model)(3, init=first_rows, n_init=1, random_state=0).fit(X)
    assert seen == ["RandomState"]
    given = type(model)(3, init=X[:3], random_state=0).fit(X)
    if isinstance(model, KMeans):
        np.testing.assert_array_equal(given.cluster_centers_, from_callable.cluster_centers_)
    with pytest.raises(ParameterError, match="init must be finite and of shape"):
        type(model)(3, init=X[:2]).fit(X)
    with pytest.raises(ParameterError, match="init must be an array of numbers"):
        type(model)(2, init=[["a", "b"], ["c", "d"]]).fit(X)


@by_name
def test_broken_models_are_refused(model):
    model.fit(X)
    for centres in (model.cluster_centers_[:2], model.cluster_centers_ * np.nan, None):
        twin = model._draft()
        twin.__dict__.update(vars(model) | {"cluster_centers_": centres})
        with pytest.raises(ModelFileError, match="cluster_centers_"):
            twin._check_loaded()


@by_name
def test_more_clusters_than_rows(model):
    with pytest.raises(DataError, match="n_samples=2 should be >= n_clusters=3"):
        model.fit(X[:2])
