"""LassoCV and ElasticNetCV: scikit-learn's folds and errors, the one-standard-error rule, weights."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
import sklearn.linear_model as sk
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GroupKFold, KFold
from tests.linear.sparse_tables import sparse_tables

from learnable import ElasticNetCV, Lasso, LassoCV, verify
from learnable.core.errors import ParameterError
from learnable.evaluation.comparison.clock import cut_of

RNG = np.random.default_rng(4)
X = RNG.standard_normal((90, 40))
Y = X[:, :5] @ [1.0, -2.0, 0.5, 3.0, 1.0] + 2 * RNG.standard_normal(90) + 1.0


def test_folds_errors_and_choice_are_scikit_learns():
    ours = LassoCV(alphas=20, eps=1e-2, tol=1e-12).fit(X, Y)
    theirs = sk.LassoCV(alphas=20, eps=1e-2, tol=1e-10, max_iter=100_000).fit(X, Y)
    np.testing.assert_allclose(ours.alphas_, theirs.alphas_, rtol=1e-12)
    np.testing.assert_allclose(ours.mse_path_, theirs.mse_path_, rtol=1e-6)
    assert ours.alpha_ == theirs.alpha_ or ours.alpha_ == pytest.approx(theirs.alpha_, rel=1e-12)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-6)
    assert verify(ours, X, Y)


def test_the_elastic_net_chooses_its_ratio_too():
    weight = RNG.integers(1, 4, 90).astype(float)
    ours = ElasticNetCV(l1_ratio=[0.2, 0.9], alphas=10, tol=1e-12, cv=3).fit(X, Y, weight)
    theirs = sk.ElasticNetCV(l1_ratio=[0.2, 0.9], alphas=10, tol=1e-12, max_iter=100_000, cv=3).fit(X, Y, weight)
    np.testing.assert_allclose(ours.mse_path_, theirs.mse_path_, rtol=1e-6)
    assert ours.l1_ratio_ == theirs.l1_ratio_ and ours.alpha_ == pytest.approx(theirs.alpha_)
    assert verify(ours, X, Y, weight)


def test_one_standard_error_is_sparser_and_within_the_error():
    best, simple = LassoCV().fit(X, Y), LassoCV(rule="1se").fit(X, Y)
    mean = best.mse_path_.mean(axis=1)
    error = best.mse_path_.std(axis=1, ddof=1) / np.sqrt(5)
    low = int(np.argmin(mean))
    allowed = np.flatnonzero(mean <= mean[low] + error[low])
    assert simple.alpha_ == best.alphas_[allowed[0]] > best.alpha_
    assert np.count_nonzero(simple.coef_) <= np.count_nonzero(best.coef_)


def test_the_fit_is_that_of_the_lasso_at_the_chosen_penalty():
    model = LassoCV(cv=KFold(4, shuffle=True, random_state=0), tol=1e-10).fit(sp.csr_array(X), Y)
    again = Lasso(alpha=model.alpha_, tol=1e-10).fit(X, Y)
    np.testing.assert_allclose(model.coef_, again.coef_, atol=1e-7)


@pytest.mark.threaded
def test_the_number_of_threads_does_not_change_a_bit():
    one, two = (LassoCV(n_jobs=n, alphas=10).fit(X, Y) for n in (1, 2))
    assert (one.mse_path_ == two.mse_path_).all() and (one.coef_ == two.coef_).all()


@given(sparse_tables(most_columns=15), st.sampled_from([1.0, 0.5]), st.sampled_from(["min", "1se"]))
@settings(max_examples=40, deadline=None)
def test_nothing_breaks_and_every_certificate_is_verified(table, l1_ratio, rule):
    T, y, weight, _ = table
    weight = None if weight is None else np.maximum(weight, 1e-3)  # every fold needs some weight
    model = ElasticNetCV(l1_ratio=l1_ratio, cv=3, alphas=6, eps=0.02, rule=rule, max_iter=100_000).fit(T, y, weight)
    assert np.isfinite(model.mse_path_).all() and model.certificate_.holds
    assert verify(model, T, y, weight), str(verify(model, T, y, weight))


def test_what_cannot_be_is_refused():
    with pytest.raises(ParameterError, match="LassoCV: cv=100"):
        LassoCV(cv=100).fit(X, Y)
    with pytest.raises(ParameterError, match=r"ElasticNetCV: Automatic alpha grid .* l1_ratio=0"):
        ElasticNetCV(l1_ratio=0.0).fit(X, Y)


def test_parameters_of_splitters_are_routed_or_refused_with_the_remedy():
    X, y = np.random.default_rng(0).normal(size=(20, 3)), np.arange(20.0)
    groups = np.arange(20) % 2
    with pytest.raises(ParameterError, match="enable_metadata_routing"):
        LassoCV().fit(X, y, groups=groups)
    with sklearn.config_context(enable_metadata_routing=True):
        routed = LassoCV(alphas=5, cv=GroupKFold(2).set_split_request(groups=True)).fit(X, y, groups=groups)
    given = LassoCV(alphas=5, cv=list(GroupKFold(2).split(X, y, groups))).fit(X, y)
    assert np.array_equal(routed.mse_path_, given.mse_path_)


def path(*lengths, n_alphas=20):
    """Errors that fall along the path, known as far as each fold came."""
    falling = np.linspace(2.0, 1.0, n_alphas)
    return np.array([[falling[a] if a < length else np.inf for length in lengths] for a in range(n_alphas)])


@pytest.mark.parametrize(
    ("lengths", "chosen"),
    [
        ((20, 20, 20, 20, 20), 19),
        ((20, 20, 20, 0, 0), 19),  # folds without any time do not decide that the largest penalty is the best
        ((20, 20, 20, 20, 3), 19),
        ((15, 12, 9, 4, 0), 8),  # what at least half of the folds reached
        ((7, 0, 0, 0, 0), 6),
        ((0, 0, 0, 0, 0), 10),
        ((1, 1, 1, 1, 1), 10),
    ],
)
def test_without_time_the_penalty_is_the_best_of_those_that_folds_share(lengths, chosen):
    model = LassoCV(max_seconds=1.0)
    if min(lengths) < 20:
        with pytest.warns(ConvergenceWarning, match=f"left no time for {20 - min(lengths)} of 20 penalties"):
            assert model._choose(path(*lengths)[None]) == (0, chosen)
    else:
        assert model._choose(path(*lengths)[None]) == (0, chosen)
    one_error = LassoCV(max_seconds=1.0, rule="1se")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        assert one_error._choose(path(*lengths)[None])[1] <= chosen


def test_with_time_enough_a_limit_changes_nothing():
    free, limited = LassoCV().fit(X, Y), LassoCV(max_seconds=600.0).fit(X, Y)
    assert (free.mse_path_ == limited.mse_path_).all() and (free.coef_ == limited.coef_).all()


def test_with_hardly_any_time_the_fit_says_so_and_is_cut():
    with pytest.warns(ConvergenceWarning, match="raise max_seconds|Raise max_seconds"):
        model = LassoCV(max_seconds=1e-9).fit(X, Y)
    cut = cut_of(model)
    assert np.isinf(model.mse_path_).any() and cut["unit"] == "penalties" and 0 <= cut["done"] < cut["of"] == 100
    assert cut_of(LassoCV(max_seconds=600.0).fit(X, Y)) is None
