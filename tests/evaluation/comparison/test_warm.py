"""Small fits of registered models; `make test` fits all of them before any test, to compile their kernels."""

import pytest

from learnable.core.registry import REGISTRY, estimator_names
from learnable.evaluation.comparison.warm import warm_models

#: The first estimator of every package.
FIRST = list({REGISTRY[name].path.rpartition(".")[0]: name for name in reversed(estimator_names())}.values())


def test_a_model_of_every_package_is_fitted_dense_and_sparse():
    warmed = list(warm_models(FIRST))
    assert [w.name for w in warmed] == FIRST
    assert [w for w in warmed if w.failure is not None] == []


@pytest.mark.long
def test_every_model_is_fitted_dense_and_sparse():
    warmed = list(warm_models())
    assert [w.name for w in warmed] == estimator_names()
    assert [w for w in warmed if w.failure is not None] == []
