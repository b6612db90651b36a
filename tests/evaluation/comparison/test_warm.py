from learnable.core.registry import estimator_names
from learnable.evaluation.comparison.warm import warm_models


def test_every_model_is_fitted_dense_and_sparse():
    warmed = list(warm_models())
    assert [w.name for w in warmed] == estimator_names()
    assert all(w.failure is None for w in warmed)
