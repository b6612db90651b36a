"""One verdict for all: the same words and the same record for EM, optima, trees and chains."""

import json
import warnings

import numpy as np
import pytest

import learnable as ln
from learnable.core.errors import DataError
from learnable.evaluation import diagnose
from learnable.sampling import Chains

X = np.random.default_rng(0).normal(size=(80, 2)) + np.repeat([[0, 0], [4, 4]], 40, axis=0)
Y = X @ [1.0, -1.0]

FITS = {
    "k-means": (lambda: ln.KMeans(2, random_state=0).fit(X), "local"),
    "mixture": (lambda: ln.GaussianMixture(2, random_state=0).fit(X), "local"),
    "variational": (lambda: ln.VariationalGaussianMixture(2, random_state=0, max_iter=2000).fit(X), "local"),
    "hidden Markov model": (lambda: ln.GaussianHMM(2, n_iter=500, random_state=0).fit(X), "local"),
    "ridge": (lambda: ln.Ridge().fit(X, Y), "proven"),
    "lasso": (lambda: ln.Lasso(alpha=0.1).fit(X, Y), "proven"),
    "chains": (lambda: Chains.from_arrays({"x": np.random.default_rng(1).normal(size=(4, 600))}), "statistical"),
}


@pytest.mark.parametrize("name", FITS)
def test_the_same_record_for_all(name):
    make, sure = FITS[name]
    found = diagnose(make())
    assert found and found.converged and found.sure == sure and found.value <= found.tolerance
    assert set(found.to_dict()) == {"converged", "sure", "value", "tolerance", "kind", "reason", "advice"}
    json.dumps(found.to_dict())
    assert str(found).startswith(f"converged ({sure}): ")


def test_what_has_not_converged_says_what_to_do():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        short = diagnose(ln.GaussianMixture(2, random_state=0, max_iter=1, tol=1e-12, init_params="random").fit(X))
    assert not short and any("raise max_iter" in one for one in short.advice)
    rng = np.random.default_rng(1)
    apart = diagnose(Chains.from_arrays({"x": rng.normal(size=(4, 600)) + np.array([0, 0, 0, 5])[:, None]}))
    assert not apart and "groups of chains 0, 1, 2 | 3" in str(apart)


def test_what_was_never_fitted_is_refused():
    with pytest.raises(DataError, match="has no certificate; fit it first"):
        diagnose(ln.Ridge())
