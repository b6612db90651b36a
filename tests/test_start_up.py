"""What a fresh process imports: Numba where a kernel is called, scikit-learn's large modules nowhere."""

import subprocess
import sys

import pytest

import learnable as ln
from learnable.core.registry import estimator_names

LARGE = [
    f"sklearn.{name}"
    for name in ("metrics", "model_selection", "pipeline", "preprocessing", "linear_model", "tree", "ensemble", "svm")
]
X = [[0.0, 1.0], [1.0, 0.0], [2.0, 3.0], [3.0, 1.0], [4.0, 0.5], [5.0, 2.5]]
Y = [0, 0, 1, 0, 1, 1]
LINEAR = ["LinearRegression", "Ridge", "Lasso", "LogisticRegression", "PoissonRegressor", "LinearSVC", "Perceptron"]


def fresh(code, *arguments):
    """Run code in a fresh process; return what it printed."""
    command = [sys.executable, "-W", "ignore", "-c", f"import sys\nX, y = {X}, {Y}\n{code}", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.parametrize("name", LINEAR)
def test_a_loaded_linear_model_predicts_without_numba(tmp_path, name):
    model = getattr(ln, name)().fit(X, Y)
    ln.save(model, tmp_path / "model.safetensors")
    code = f"""
import numpy as np, learnable as ln
model = ln.load(sys.argv[1])
one = model.predict(X[:1])
print([name for name in ["numba", "llvmlite", *{LARGE}] if name in sys.modules], model.predict(np.array(X)).tolist())
"""
    assert fresh(code, str(tmp_path / "model.safetensors")) == f"[] {model.predict(X).tolist()}"


@pytest.mark.parametrize("name", ["LinearRegression", "Ridge"])
def test_small_least_squares_need_no_numba(name):
    code = f"import learnable as ln\nprint(ln.{name}().fit(X, y).certificate_.fingerprint, 'numba' in sys.modules)"
    fingerprint = getattr(ln, name)().fit(X, Y).certificate_.fingerprint
    assert fresh(code) == f"{fingerprint} False"


def test_many_fits_are_worth_the_import():
    assert (
        fresh("import learnable as ln\nfor _ in range(25): ln.Ridge().fit(X, y)\nprint('numba' in sys.modules)")
        == "True"
    )


@pytest.mark.parametrize("name", ["Ridge", "LogisticRegression", "RandomForestClassifier", "GaussianNB", "LinearSVC"])
def test_a_fit_imports_no_large_module_of_scikit_learn(name):
    code = f"import learnable as ln\nln.{name}().fit(X, y)\nprint([name for name in {LARGE} if name in sys.modules])"
    assert fresh(code) == "[]"


def test_no_models_module_imports_scikit_learns_own_models():
    own = LARGE[LARGE.index("sklearn.linear_model") :]
    selectors = {"RFE", "RFECV", "SequentialFeatureSelector"}  # they share a mixin, whose package imports models
    names = [name for name in estimator_names() if name not in selectors]
    code = f"import learnable as ln\nfor name in {names}: getattr(ln, name)\n"
    assert fresh(f"{code}print([name for name in {own} if name in sys.modules])") == "[]"
