"""The encoder keeps scikit-learn's contract for transformers."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from learnable.data import TableEncoder


@parametrize_with_checks([TableEncoder()])
def test_sklearn_contract(estimator, check):
    check(estimator)
