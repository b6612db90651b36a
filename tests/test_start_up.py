"""What a fresh process imports: Numba where a kernel is called, scikit-learn's large modules nowhere."""

import subprocess
import sys

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


def test_loaded_linear_models_predict_without_numba(tmp_path):
    models = [getattr(ln, name)().fit(X, Y) for name in LINEAR]
    paths = [str(tmp_path / f"{name}.safetensors") for name in LINEAR]
    for model, path in zip(models, paths, strict=True):
        ln.save(model, path)
    # One process: what any of them imported would be seen after the next ones too.
    code = f"""
import numpy as np, learnable as ln
for path in sys.argv[1:]:
    model = ln.load(path)
    one = model.predict(X[:1])
    found = model.predict(np.array(X)).tolist()
    print([name for name in ["numba", "llvmlite", *{LARGE}] if name in sys.modules], found)
"""
    assert fresh(code, *paths).splitlines() == [f"[] {model.predict(X).tolist()}" for model in models]


def test_small_least_squares_need_no_numba():
    names = ["LinearRegression", "Ridge"]
    code = f"""
import learnable as ln
for name in {names}:
    print(getattr(ln, name)().fit(X, y).certificate_.fingerprint, "numba" in sys.modules)
"""
    fingerprints = [getattr(ln, name)().fit(X, Y).certificate_.fingerprint for name in names]
    assert fresh(code).splitlines() == [f"{fingerprint} False" for fingerprint in fingerprints]


def test_many_fits_are_worth_the_import():
    assert (
        fresh("import learnable as ln\nfor _ in range(25): ln.Ridge().fit(X, y)\nprint('numba' in sys.modules)")
        == "True"
    )


def test_no_fit_imports_a_large_module_of_scikit_learn():
    names = ["Ridge", "LogisticRegression", "RandomForestClassifier", "GaussianNB", "LinearSVC"]
    code = f"""
import learnable as ln
for name in {names}:
    getattr(ln, name)().fit(X, y)
    print(name, [large for large in {LARGE} if large in sys.modules])
"""
    assert fresh(code).splitlines() == [f"{name} []" for name in names]


def test_no_models_module_imports_scikit_learns_own_models():
    own = LARGE[LARGE.index("sklearn.linear_model") :]
    selectors = {"RFE", "RFECV", "SequentialFeatureSelector"}  # they share a mixin, whose package imports models
    names = [name for name in estimator_names() if name not in selectors]
    code = f"import learnable as ln\nfor name in {names}: getattr(ln, name)\n"
    assert fresh(f"{code}print([name for name in {own} if name in sys.modules])") == "[]"
