"""Basis expansions: each function where it belongs, splines that are scikit-learn's, and files without code."""

import tracemalloc

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import SplineTransformer

import learnable as ln
from learnable import BasisExpansion, LinearRegression
from learnable.core._soundness import check_model
from learnable.core.errors import DataError, ModelFileError, ParameterError
from learnable.linear import BSplines
from learnable.linear.features import basis as module
from learnable.linear.features.basis import FUNCTIONS


def draw(n=30, d=3, seed=0):
    return np.random.default_rng(seed).uniform(0.1, 2.0, size=(n, d))


def radius(X):
    return np.sqrt((X**2).sum(axis=1))


def test_functions_stand_in_their_order_with_their_names():
    X = draw()
    entries = ["square", ("log", 1), radius, (np.exp, 0), (lambda x: np.column_stack([x, x**2]), 2)]
    basis = BasisExpansion(entries, include_bias=True).fit(X)
    expected = [np.ones(30), *(X**2).T, np.log(X[:, 1]), radius(X), np.exp(X[:, 0]), X[:, 2], X[:, 2] ** 2]
    np.testing.assert_allclose(basis.transform(X), np.column_stack(expected), rtol=1e-15)
    names = ["1", "square(x0)", "square(x1)", "square(x2)", "log(x1)", "radius", "exp(x0)", "f6(x2)_0", "f6(x2)_1"]
    assert basis.get_feature_names_out().tolist() == names
    assert basis.n_output_features_ == 9


def test_columns_may_be_named_and_names_given():
    frame = pd.DataFrame(draw(), columns=["a", "b", "c"])
    basis = BasisExpansion([("sin", "b"), ("identity", 2)]).set_output(transform="pandas").fit(frame)
    assert basis.transform(frame).columns.tolist() == ["sin(b)", "c"]
    own = BasisExpansion(["cos"], names=["u", "v", "w"]).fit(frame)
    assert own.get_feature_names_out().tolist() == ["u", "v", "w"]
    with pytest.raises(ParameterError, match="names must have one for each of 3"):
        BasisExpansion(["cos"], names=["u"]).fit(frame)


@pytest.mark.parametrize("degree", [1, 2, 3, 5])
@pytest.mark.parametrize("knots", [5, [0.0, 0.5, 0.7, 2.0]], ids=["spaced", "given"])
@pytest.mark.parametrize("extrapolation", ["constant", "continue"])
def test_splines_are_scikit_learns(degree, knots, extrapolation):
    X, new = draw(d=2), np.random.default_rng(1).uniform(-1, 3, size=(50, 2))
    ours = BasisExpansion([BSplines(knots, degree, extrapolation)]).fit(X)
    given_knots = knots if isinstance(knots, int) else np.tile(np.array(knots)[:, None], 2)
    theirs = SplineTransformer(
        n_knots=5,
        degree=degree,
        knots="uniform" if isinstance(knots, int) else given_knots,
        extrapolation=extrapolation,
    ).fit(X)
    np.testing.assert_allclose(ours.transform(X), theirs.transform(X), atol=1e-12)
    np.testing.assert_allclose(ours.transform(new), theirs.transform(new), rtol=1e-9, atol=1e-9)
    assert ours.get_feature_names_out().tolist() == theirs.get_feature_names_out().tolist()


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=8, unique=True).map(sorted),
    st.integers(0, 4),
    st.integers(0, 1000),
)
def test_splines_are_positive_add_up_to_one_and_reach_over_few_intervals(knots, degree, seed):
    if np.diff(knots).min() < 1e-6 * (knots[-1] - knots[0]):
        return
    x = np.random.default_rng(seed).uniform(knots[0], knots[-1], size=(40, 1))
    B = BasisExpansion([BSplines(knots, degree)]).fit_transform(x)
    assert B.shape == (40, len(knots) + degree - 1)
    assert (B >= -1e-12).all() and ((B > 1e-12).sum(axis=1) <= degree + 1).all()
    np.testing.assert_allclose(B.sum(axis=1), 1.0, rtol=1e-9)


def test_a_linear_model_of_splines_fits_a_cubic_exactly():
    x = np.linspace(0, 3, 50)[:, None]
    y = 1 + x[:, 0] - x[:, 0] ** 2 + 0.2 * x[:, 0] ** 3
    model = make_pipeline(BasisExpansion([BSplines(6, 3)]), LinearRegression(fit_intercept=False)).fit(x, y)
    np.testing.assert_allclose(model.predict(x), y, atol=1e-10)


def test_outside_the_knots_an_error_may_be_asked_for():
    basis = BasisExpansion([BSplines([0.0, 1.0, 2.0], 2, "error")]).fit([[1.0]])
    with pytest.raises(DataError, match=r"2.5 lies outside the knots, 0 to 2"):
        basis.transform([[2.5]])


def test_a_constant_column_still_has_knots():
    B = BasisExpansion([BSplines(4)]).fit_transform(np.full((5, 1), 7.0))
    np.testing.assert_allclose(B.sum(axis=1), 1.0)


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_every_named_function_can_be_saved(name, tmp_path):
    basis = BasisExpansion([(name, 0), BSplines(4)], include_bias=True).fit(draw())
    ln.save(basis, tmp_path / "b.safetensors")
    loaded = ln.load(tmp_path / "b.safetensors")
    np.testing.assert_array_equal(loaded.transform(draw(seed=1)), basis.transform(draw(seed=1)))
    assert loaded.functions == basis.functions


def test_a_python_function_cannot_be_saved(tmp_path):
    basis = BasisExpansion([("sin", 0), radius]).fit(draw())
    with pytest.raises(ModelFileError, match=r"BasisExpansion.functions\[1\] is a function; only numbers, strings"):
        ln.save(basis, tmp_path / "b.safetensors")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda b: b.knots_.pop(), "knots_ does not fit"),
        (lambda b: b.knots_[0].sort(kind="stable") or b.knots_.__setitem__(0, b.knots_[0][::-1].copy()), "increasing"),
        (lambda b: setattr(b, "widths_", b.widths_[:-1]), "widths_"),
        (lambda b: setattr(b, "n_output_features_", 99), "n_output_features_"),
    ],
)
def test_a_damaged_expansion_is_refused(change, message, tmp_path):
    basis = BasisExpansion([BSplines(4)]).fit(draw())
    change(basis)
    with pytest.raises(ModelFileError, match=message):
        ln.save(basis, tmp_path / "b.safetensors")


@pytest.mark.parametrize(
    ("functions", "error", "message"),
    [
        ([], ParameterError, "functions must be a list"),
        (["sine"], ParameterError, "there is no function 'sine'"),
        ([3], ParameterError, "a function must be"),
        ([("sin", 0, 1)], ParameterError, "a function or a pair"),
        ([("sin", 9)], DataError, "there is no column 9"),
        ([("sin", "a")], DataError, "there is no column 'a'"),
        ([("sin", 0.5)], ParameterError, "a number or a name"),
        ([lambda X: X.sum()], DataError, "must return numbers of shape"),
        ([lambda X: np.array(["a"] * len(X))], DataError, "must return numbers of shape"),
        ([(lambda x: np.log(-x), 0)], DataError, "f0 is not finite at .*in row 0"),
    ],
)
def test_functions_that_are_none_are_refused(functions, error, message):
    with pytest.raises(error, match=message):
        BasisExpansion(functions).fit(draw())


@pytest.mark.parametrize(
    "wrong", [{"knots": 1}, {"knots": [1.0]}, {"knots": [1.0, 1.0]}, {"knots": "x"}, {"knots": [0.0, np.inf]},
              {"degree": -1}, {"degree": 2.5}, {"extrapolation": "linear"}],
)  # fmt: skip
def test_splines_out_of_range_are_refused(wrong):
    with pytest.raises(ParameterError, match="BSplines"):
        BSplines(**wrong)


def test_sparse_tables_and_other_widths_are_refused():
    with pytest.raises(TypeError, match="BasisExpansion: Sparse data"):
        BasisExpansion().fit(sp.csr_array(np.eye(3)))
    moody = BasisExpansion([lambda X: np.ones((len(X), len(X)))]).fit(np.eye(3))
    with pytest.raises(DataError, match="must always give as many"):
        moody.transform(np.eye(3)[:2])


@pytest.mark.parametrize(
    "functions", [["identity"], [BSplines(knots=3)], ["sin", ("cos", 0), BSplines(degree=1)]], ids=str
)
@pytest.mark.parametrize(
    "forgery",
    [
        {"n_features_in_": 10**9},
        {"n_features_in_": 0},
        {"n_features_in_": "2"},
        {"widths_": np.ones(5000, dtype=np.int64)},
        {"widths_": np.zeros(2, dtype=np.int64)},
        {"widths_": [1, 1]},
        {"n_output_features_": 10**12},
        {"knots_": []},
        {"knots_": [np.linspace(0.0, 1.0, 3)] * 5000},
    ],
    ids=str,
)
def test_a_file_cannot_ask_for_more_than_its_own_arrays(functions, forgery):
    forged = BasisExpansion(functions).fit(draw()[:, :2])
    if forgery == {"knots_": []} and functions == ["identity"]:
        return  # no splines, no knots
    vars(forged).update(forgery)
    tracemalloc.start()
    with pytest.raises(ModelFileError):
        check_model(forged, "forged")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2**20


@pytest.mark.parametrize("extrapolation", ["constant", "continue"])
@pytest.mark.parametrize("degree", [0, 1, 3])
def test_many_splines_are_the_same_functions(extrapolation, degree, monkeypatch):
    x, knots = np.linspace(-0.5, 1.5, 101), np.linspace(0.0, 1.0, 40)
    splines = BSplines(knots=40, degree=degree, extrapolation=extrapolation)
    few = splines.evaluate(x, knots)
    monkeypatch.setattr(module, "_MANY_SPLINES", 10)
    np.testing.assert_allclose(splines.evaluate(x, knots), few, rtol=1e-12, atol=1e-12 * np.abs(few).max())
