"""Transformers of this package keep scikit-learn's contract; the models are checked with all others in `linear`."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from learnable.kernel import KernelPCA, Nystroem, RBFSampler


@parametrize_with_checks([KernelPCA(), Nystroem(n_components=5), RBFSampler(n_components=5)])
def test_sklearn_contract(estimator, check):
    check(estimator)
