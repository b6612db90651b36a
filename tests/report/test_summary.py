import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_diabetes
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tests.registered import fitted

import learnable as ln
from learnable.core.errors import DataError
from learnable.core.registry import estimator_names
from learnable.report.facts import OBJECTIVES, number
from learnable.report.summary import rows_of

pytestmark = pytest.mark.sampled(1)  # every case is a promise of its own


#: They are fitted through other models and keep no number of rows.
UNCOUNTED = {"BlendRegressor", "BlendClassifier", "OneVsOneClassifier", "PolynomialFeatures", "BasisExpansion"}
UNCOUNTED |= {"TableEncoder", "Nystroem", "RBFSampler"}


@pytest.mark.parametrize("name", estimator_names())
def test_every_registered_estimator_is_described(name):
    model, X, _ = fitted(name)
    found = ln.summary(model)
    text = str(found)
    assert text.startswith((f"{name}, fitted to ", "TableModel: Ridge on an encoded table, fitted to "))
    assert max(len(line) for line in text.splitlines()) <= 80 or found.inference is not None
    counted = f"{len(X)} rows and {X.shape[1]} column"
    assert (counted in found.title) == (name not in UNCOUNTED)
    assert dict(found.lines)["Settings"]
    certificate = getattr(model, "certificate_", None)
    if certificate is not None and certificate.kind != "none":
        assert certificate.sentence in dict(found.lines)["Solved" if certificate.holds else "Not solved"]
    assert not re.search(r"\bnan\b", text)
    HTMLParser().feed(found._repr_html_())


def test_rows_of_weight_zero_are_not_counted():
    X, y = load_diabetes(return_X_y=True)
    weight = np.r_[np.zeros(40), np.ones(len(y) - 40)]
    assert rows_of(ln.Ridge().fit(X, y, weight)) == len(y) - 40


def test_coefficients_are_sorted_named_and_zeros_counted():
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    model = ln.Lasso(alpha=1.0).fit(X, y)
    (grid,) = ln.summary(model).grids
    sizes = [abs(float(row[1])) for row in grid.rows]
    assert sizes == sorted(sizes, reverse=True)
    largest = X.columns[np.argmax(np.abs(model.coef_))]
    assert grid.rows[0][0] == largest
    assert grid.note == f"{int((model.coef_ == 0).sum())} of 10 columns have coefficient zero."


def test_likelihood_models_show_the_table_of_infer():
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    model = ln.LinearRegression().fit(X, y)
    alone = ln.summary(model)
    assert alone.inference is None and alone.grids[0].title.startswith("Coefficients")
    joined = ln.summary(model, X, y)
    np.testing.assert_array_equal(joined.inference.std_error, ln.infer(model, X, y).std_error)
    assert str(ln.infer(model, X, y)).splitlines()[1] in str(joined)
    assert not any(grid.title.startswith("Coefficients") for grid in joined.grids)
    assert "std. error" in joined._repr_html_()
    glm = ln.GLM(family="poisson").fit(X, np.round(y))
    assert str(glm.summary()).splitlines()[0] in str(ln.summary(glm))


def test_a_penalised_model_has_coefficients_without_errors():
    X, y = load_diabetes(return_X_y=True)
    assert ln.summary(ln.Ridge().fit(X, y), X, y).inference is None


def test_the_score_is_that_of_the_rows_given():
    X, y = load_diabetes(return_X_y=True)
    model = ln.Ridge().fit(X, y)
    assert dict(ln.summary(model, X, y).lines)["Score"].startswith(f"{model.score(X, y):.4g}: R²")
    with pytest.raises(DataError, match="score on these rows cannot be computed"):
        ln.summary(model, X[:, :3], y)


def test_a_fit_that_was_cut_says_so_with_its_remedy():
    X, y = load_diabetes(return_X_y=True)
    with pytest.warns(Warning, match="stopped after"):
        model = ln.GaussianMixture(n_components=3, max_iter=1, tol=1e-9, random_state=0).fit(X, y)
    lines = dict(ln.summary(model).lines)
    assert "Solved" not in lines and "The tolerance is not reached" in lines["Not solved"]


def test_pipelines_show_their_last_step():
    X, y = load_diabetes(return_X_y=True)
    text = str(ln.summary(make_pipeline(StandardScaler(), ln.Ridge(alpha=3.0)).fit(X, y), X, y))
    assert text.startswith("StandardScaler → Ridge, fitted to 442 rows and 10 columns")
    assert "alpha=3.0" in text and "Score" in text


def test_names_are_escaped_in_notebooks_and_cut_in_terminals():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(30, 2)), columns=["<script>alert(1)</script>", "x" * 300])
    found = ln.summary(ln.Ridge().fit(X, rng.normal(size=30)))
    assert "<script>" not in found._repr_html_()
    assert max(len(line) for line in str(found).splitlines()) <= 80


def test_chains_and_solved_processes_are_described():
    from learnable.sampling import Chains

    draws = np.random.default_rng(0).normal(size=(4, 200))
    assert "mu" in str(ln.summary(Chains.from_arrays({"mu": draws})))
    P = np.array([[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [1.0, 0.0]]])
    solved = ln.decisions.policy_iteration(ln.MDP(P, np.array([[0.0, 1.0], [1.0, 0.0]]), gamma=0.9))
    text = str(ln.summary(solved))
    assert text.startswith("MDPSolution") and "Solved" in text


def test_what_is_not_fitted_or_no_model_is_refused():
    with pytest.raises(NotFittedError):
        ln.summary(ln.Ridge())
    with pytest.raises(DataError, match="neither a fitted estimator nor a result"):
        ln.summary(object())


def test_numbers_are_short():
    assert [number(v) for v in (-0.0, 12.0, 1234567.0, 0.123456, np.nan)] == ["0", "12", "1.235e+06", "0.1235", "nan"]


def test_no_objective_is_named_twice():
    assert len({name for name, _ in OBJECTIVES}) == len(OBJECTIVES)
    assert all(re.fullmatch(r"[a-z_]+_", name) for name, _ in OBJECTIVES)
