from learnable.core.registry import REGISTRY
from learnable.evaluation.comparison.warm import warm_models


def test_every_model_of_data_is_fitted_dense_and_sparse():
    warmed = list(warm_models())
    assert [w.name for w in warmed] == [name for name, entry in REGISTRY.items() if entry.traits]
    assert all(w.failure is None for w in warmed)
