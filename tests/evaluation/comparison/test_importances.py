"""Of very many columns, those that a model leans on are shuffled, whatever the model."""

import numpy as np
import pytest
import scipy.sparse as sp

from learnable import ExtraTreesRegressor, KNeighborsClassifier, KNeighborsRegressor, Ridge
from learnable.evaluation.comparison.importances import importances, weights_of
from learnable.evaluation.comparison.measures import ranking_measure
from learnable.meta import BlendRegressor


def _wide(n=300, d=120, place=110):
    X = np.random.default_rng(0).normal(size=(n, d))
    return X, 3.0 * X[:, place] + 0.1 * X[:, 0]


@pytest.mark.parametrize(
    "model",
    [
        Ridge(),
        ExtraTreesRegressor(n_estimators=20, random_state=0),
        KNeighborsRegressor(),
        BlendRegressor([Ridge(), ExtraTreesRegressor(n_estimators=20, random_state=0)]),
    ],
    ids=lambda model: type(model).__name__,
)
def test_the_column_that_matters_is_found_beyond_the_first_ones(model):
    X, y = _wide()
    fitted = model.fit(X, y)
    found = importances(fitted, X, y, [f"c{k}" for k in range(120)], ranking_measure("regression"), seed=0)
    assert found[0]["name"] == "c110" and found[0]["value"] > 0


def test_classes_and_sparse_rows_have_their_columns_too():
    X, y = _wide()
    labels = (y > 0).astype(int)
    fitted = KNeighborsClassifier().fit(X, labels)
    names = [f"c{k}" for k in range(120)]
    assert "c110" in [line["name"] for line in importances(fitted, X, labels, names, ranking_measure("binary"), 0)]
    linear = Ridge().fit(sp.csr_array(X), y)
    assert importances(linear, sp.csr_array(X), y, names, ranking_measure("regression"), 0)[0]["name"] == "c110"


def test_a_blend_weighs_columns_as_its_members_do_together():
    X, y = _wide(d=5, place=3)
    blend = BlendRegressor([Ridge(), ExtraTreesRegressor(n_estimators=10, random_state=0)], weights=[3.0, 1.0])
    blend.fit(X, y)
    parts = [weights_of(member, 5) for member in blend.members_]
    np.testing.assert_allclose(weights_of(blend, 5), 0.75 * parts[0] + 0.25 * parts[1])
    assert weights_of(KNeighborsRegressor().fit(X, y), 5) is None
