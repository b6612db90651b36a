"""The first model of docs/adding_a_model.md: it runs, in under sixty lines besides imports, and ends at its optimum."""

import re
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize
from sklearn.base import clone

pytestmark = pytest.mark.sampled(1)  # every case is a promise of its own


PAGE = Path(__file__).parents[1] / "docs" / "adding_a_model.md"


@pytest.fixture(scope="module")
def code():
    text = PAGE.read_text(encoding="utf-8")
    return re.search(r"## A first model.*?```py\n(.*?)```", text, re.DOTALL)[1]


@pytest.fixture(scope="module")
def names(code):
    namespace = {"__name__": "newcomer"}
    exec(compile(code, str(PAGE), "exec", dont_inherit=True), namespace)
    return namespace


def draw(seed=0, n=120):
    rng = np.random.default_rng(seed)
    X = rng.normal([0.0, 1.0, -2.0], size=(n, 3))
    return X, X @ [1.0, -0.5, 0.2] + rng.standard_t(2, size=n), rng.uniform(0.3, 2.0, n)


def test_it_is_short(code):
    written = [line for line in code.splitlines() if line.strip() and not line.startswith(("from ", "import "))]
    assert len(written) < 60


def test_the_loss_and_its_conjugate_obey_fenchel(names):
    loss, rng = names["LogCoshLoss"](), np.random.default_rng(1)
    y, z, u = rng.normal(size=(3, 200))
    assert (loss.value(y, z) + loss.conjugate(y, u) >= u * z - 1e-12).all()
    slope = loss.gradient(y, z)
    np.testing.assert_allclose(loss.value(y, z) + loss.conjugate(y, slope), slope * z, atol=1e-12)
    h = 1e-6
    np.testing.assert_allclose(slope, (loss.value(y, z + h) - loss.value(y, z - h)) / (2 * h), atol=1e-8)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_the_fit_is_the_optimum_of_a_general_solver(names, weighted, storage):
    X, y, s = draw()
    s = s if weighted else np.ones(len(y))
    model = names["LogCoshRegressor"](0.05).fit(storage(X), y, sample_weight=s)
    loss, penalty = names["LogCoshLoss"](), names["GradedPenalty"](0.05)

    def objective(theta):
        return float(s @ loss.value(y, theta[0] + X @ theta[1:])) / s.sum() + penalty.value(theta[1:])

    best = minimize(objective, np.zeros(4), method="BFGS", options={"gtol": 1e-9})
    reached = objective(np.r_[model.intercept_, model.coef_])
    assert reached <= best.fun * (1 + 1e-8)
    assert model.certificate_.kind == "gap" and model.certificate_.holds
    np.testing.assert_allclose(model.coef_, best.x[1:], atol=1e-4)


def test_it_is_an_estimator_like_any_other(names):
    X, y, _ = draw()
    model = clone(names["LogCoshRegressor"](alpha=0.2)).fit(X, y)
    assert model.get_params() == {"alpha": 0.2, "tol": 1e-8, "max_iter": 100}
    assert model.predict(X).shape == (len(y),) and model.score(X, y) > 0
    with pytest.raises(ValueError, match="alpha"):
        names["LogCoshRegressor"](alpha=-1.0).fit(X, y)
