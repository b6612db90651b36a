"""Polynomial features: as many as there are monomials, each the product it is named for, in scikit-learn's order."""

import time
from itertools import combinations, combinations_with_replacement
from math import comb

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import preprocessing as peer
from sklearn.pipeline import make_pipeline

import learnable as ln
from learnable import PolynomialFeatures, Ridge
from learnable.core._soundness import check_model
from learnable.core.errors import DataError, ModelFileError, ParameterError

DEGREES = [0, 1, 2, 3, 5, (0, 2), (1, 1), (2, 2), (2, 3), (3, 3)]


def draw(n=7, d=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    X[rng.random(X.shape) < 0.4] = 0.0
    return X


def test_two_features_of_degree_two_have_six_monomials():
    assert PolynomialFeatures(2).fit(np.zeros((1, 2))).n_output_features_ == 6


@settings(max_examples=40, deadline=None)
@given(d=st.integers(1, 9), p=st.integers(1, 6))
def test_the_count_is_the_binomial_coefficient(d, p):
    X = np.ones((2, d))
    assert PolynomialFeatures(p).fit_transform(X).shape[1] == comb(d + p, p)
    once = PolynomialFeatures(p, interaction_only=True).fit_transform(X).shape[1]
    assert once == sum(comb(d, q) for q in range(p + 1))


@pytest.mark.parametrize("degree", DEGREES, ids=str)
@pytest.mark.parametrize("interaction_only", [False, True])
@pytest.mark.parametrize("include_bias", [False, True])
def test_values_names_and_powers_are_scikit_learns(degree, interaction_only, include_bias):
    settings = {"degree": degree, "interaction_only": interaction_only, "include_bias": include_bias}
    if degree == 0 and not include_bias:
        with pytest.raises(ParameterError, match="to zero and include_bias to False would result in an empty"):
            PolynomialFeatures(**settings).fit(draw())
        return
    ours, theirs = PolynomialFeatures(**settings).fit(draw()), peer.PolynomialFeatures(**settings).fit(draw())
    expected = theirs.transform(draw())
    np.testing.assert_allclose(ours.transform(draw()), expected, rtol=1e-14)
    sparse = ours.transform(sp.csr_array(draw()))
    np.testing.assert_allclose(sparse.toarray(), expected, rtol=1e-14)
    assert sparse.has_canonical_format and sparse.nnz == np.count_nonzero(expected)
    assert ours.get_feature_names_out().tolist() == theirs.get_feature_names_out().tolist()
    np.testing.assert_array_equal(ours.powers_, theirs.powers_)
    assert ours.n_output_features_ == theirs.n_output_features_


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 5), st.integers(1, 4), st.booleans(), st.integers(0, 50))
def test_each_column_is_the_product_of_its_combination(d, p, interaction_only, seed):
    X = draw(5, d, seed)
    choose = combinations if interaction_only else combinations_with_replacement
    expected = [X[:, list(c)].prod(axis=1) for q in range(p + 1) for c in choose(range(d), q)]
    poly = PolynomialFeatures(p, interaction_only=interaction_only)
    np.testing.assert_allclose(poly.fit_transform(X), np.column_stack(expected), rtol=1e-13)
    np.testing.assert_allclose(poly.transform(sp.csc_array(X)).toarray(), np.column_stack(expected), rtol=1e-13)


def test_the_type_the_order_and_the_frame_are_kept():
    X = draw()
    assert PolynomialFeatures().fit_transform(X.astype(np.float32)).dtype == np.float32
    assert PolynomialFeatures().fit_transform(sp.csr_array(X.astype(np.float32))).dtype == np.float32
    assert PolynomialFeatures(order="F").fit_transform(X).flags.f_contiguous
    frame = pd.DataFrame(X, columns=list("abcd"))
    out = PolynomialFeatures().set_output(transform="pandas").fit_transform(frame)
    assert out.columns[:6].tolist() == ["1", "a", "b", "c", "d", "a^2"]


def test_a_linear_model_of_them_fits_a_polynomial():
    x = np.linspace(-1, 1, 30)[:, None]
    y = 1 - 2 * x[:, 0] + 0.5 * x[:, 0] ** 3
    model = make_pipeline(PolynomialFeatures(3), Ridge(alpha=1e-12)).fit(x, y)
    np.testing.assert_allclose(model.predict(x), y, atol=1e-9)


def test_a_wide_sparse_table_is_never_made_dense():
    X = sp.random_array((50, 40_000), density=2e-4, format="csr", rng=np.random.default_rng(0))
    out = PolynomialFeatures(2, include_bias=False).fit_transform(X)
    assert out.shape == (50, 40_000 + comb(40_001, 2))
    k = np.diff(X.indptr)
    assert out.nnz == np.sum(k + k * (k + 1) // 2)
    assert out.indices.dtype == np.int32


def test_more_features_than_there_is_room_for_are_refused():
    with pytest.raises(DataError, match="too large to be indexed: all monomials of 300 features of degree 0 to 12"):
        PolynomialFeatures(12).fit(np.zeros((1, 300)))
    with pytest.raises(DataError, match="do not fit into memory"):
        PolynomialFeatures(9).fit_transform(np.zeros((1, 300)))


def test_products_of_more_features_than_there_are_are_none_as_in_scikit_learn():
    for X in (np.ones((3, 2)), sp.csr_array(np.ones((3, 2)))):
        out = PolynomialFeatures((3, 3), interaction_only=True, include_bias=False).fit_transform(X)
        assert out.shape == (3, 0)


@pytest.mark.parametrize("degree", [1, 2, 3])
def test_columns_come_back_as_columns(degree):
    X = sp.random_array((20, 5), density=0.3, rng=np.random.default_rng(0), format="csc")
    out = PolynomialFeatures(degree).fit_transform(X)
    assert out.format == "csc"
    np.testing.assert_array_equal(out.toarray(), PolynomialFeatures(degree).fit_transform(X.toarray()))


@pytest.mark.parametrize("n_features", [2, 10**6, 10**18, 2**4000, -1, "2"])
@pytest.mark.parametrize("degree", [2, (0, 1000), 10**6, (0, 10**6)])
def test_what_a_file_claims_about_its_size_is_checked_at_once(n_features, degree):
    forged = PolynomialFeatures().fit(np.zeros((1, 3)))
    forged.n_features_in_, forged.degree = n_features, degree
    started = time.process_time()
    with pytest.raises((ModelFileError, ParameterError)):
        check_model(forged, "forged")
    assert time.process_time() - started < 5


@pytest.mark.parametrize("wrong", [{"degree": -1}, {"degree": (2, 1)}, {"degree": 1.5}, {"order": "K"}])
def test_parameters_out_of_range_are_refused(wrong):
    with pytest.raises(ParameterError, match=f"PolynomialFeatures: {next(iter(wrong))}"):
        PolynomialFeatures(**wrong).fit(draw())


def test_a_round_trip_through_a_file(tmp_path):
    poly = PolynomialFeatures((2, 3), interaction_only=True).fit(draw())
    ln.save(poly, tmp_path / "p.safetensors")
    np.testing.assert_array_equal(ln.load(tmp_path / "p.safetensors").transform(draw()), poly.transform(draw()))
    poly.n_output_features_ += 1
    with pytest.raises(ModelFileError, match="n_output_features_"):
        ln.save(poly, tmp_path / "p.safetensors")
    with pytest.raises(DataError, match="changed after the fit"):
        poly.transform(draw())
