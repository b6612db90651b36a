"""Freeze what every registered model answers, and check later that it still does.

    python -m benchmarks.golden freeze FOLDER [--models A B ...]
    python -m benchmarks.golden check FOLDER [--models A B ...]

`freeze` fits each model, in each setting below, to a small table and writes three files per case: the model file, the
answers of its prediction methods, and its certificate. `check` reads the old model files, which must give the same
answers to the last bit but one part in 10¹², fits again, and compares: answers within 1e-6 of the largest of each
method, certificates of the same kind and tolerance that hold as before. It prints one line per difference and exits
with 1 if there is one. Cases that could not be fitted are recorded as such, and must fail likewise.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.base import is_classifier, is_regressor
from sklearn.utils import get_tags

import learnable as ln
from learnable.core.registry import REGISTRY, estimator_names
from learnable.evaluation.comparison.warm import _built, tasks_of

#: The methods that answer for rows.
METHODS = (
    "predict",
    "predict_proba",
    "predict_log_proba",
    "decision_function",
    "score_samples",
    "transform",
    "kneighbors",
)
#: Relative difference between answers of two fits, and of one model file read twice.
REFITTED = 1e-6
LOADED = 1e-12
#: Settings that choose another method or another problem; each is tried beside the default.
SETTINGS: dict[str, tuple[dict[str, Any], ...]] = {
    "LinearRegression": ({"fit_intercept": False}, {"positive": True}),
    "Ridge": ({"solver": "sparse_cg"}, {"solver": "gd"}, {"alpha": 0.0}, {"solver": "svd"}, {"positive": True}),
    "BayesianLinearRegression": ({"fit_intercept": False},),
    "LogisticRegression": (
        {"solver": "lbfgs"},
        {"solver": "newton-cg"},
        {"solver": "newton-cholesky"},
        {"solver": "liblinear"},
        {"solver": "saga", "l1_ratio": 1.0},
        {"solver": "saga", "l1_ratio": 0.5},
        {"l1_ratio": 0.5, "C": 0.3},
        {"C": np.inf},
        {"solver": "gd"},
        {"fit_intercept": False},
    ),
    "PoissonRegressor": ({"solver": "newton-cholesky"}, {"alpha": 0.0}, {"fit_intercept": False}),
    "GammaRegressor": ({"solver": "newton-cholesky"}, {"alpha": 0.0}),
    "TweedieRegressor": ({"power": 1.5}, {"power": 3.0}, {"power": 0.0}, {"power": 0.0, "link": "log"}, {"power": 1.0}),
    "LinearSVC": (
        {"loss": "hinge"},
        {"penalty": "l1", "dual": False},
        {"multi_class": "crammer_singer"},
        {"dual": False},
        {"fit_intercept": False},
    ),
    "LinearSVR": ({"loss": "squared_epsilon_insensitive", "dual": True}, {"epsilon": 0.5}, {"C": 30.0}),
    "ElasticNet": ({"l1_ratio": 0.1}, {"positive": True}, {"precompute": True}, {"fit_intercept": False}),
    "Lasso": ({"alpha": 0.02}, {"positive": True}),
    "Perceptron": ({"penalty": "l2"}, {"penalty": "l1"}),
    "SVC": (
        {"kernel": "linear"},
        {"kernel": "poly"},
        {"kernel": "sigmoid"},
        {"C": 100.0},
        {"probability": True},
        {"break_ties": True, "decision_function_shape": "ovr"},
        {"tol": 1e-8},
    ),
    "SVR": ({"kernel": "linear"}, {"C": 100.0}, {"tol": 1e-8}),
    "NuSVC": ({"nu": 0.2},),
    "NuSVR": ({"nu": 0.2},),
    "OneClassSVM": ({"nu": 0.1},),
    "GaussianProcessClassifier": ({"optimizer": None}, {"multi_class": "softmax"}),
    "KernelRidge": ({"kernel": "rbf"}, {"kernel": "poly"}, {"kernel": "rbf", "solver": "cg"}),
    "KernelLogisticRegression": ({"kernel": "linear"}, {"C": 100.0}),
    "GaussianProcessRegressor": ({"normalize_y": True, "alpha": 0.1}, {"optimizer": None}),
    "RandomForestRegressor": ({"criterion": "poisson"},),
    "HistGradientBoostingRegressor": (
        {"loss": "poisson"},
        {"loss": "absolute_error"},
        {"loss": "quantile", "quantile": 0.3},
    ),
    "GradientBoostingRegressor": ({"loss": "huber"}, {"loss": "quantile"}),
    "GaussianMixture": ({"covariance_type": "diag"}, {"covariance_type": "tied"}, {"n_components": 2}),
    "LinearDiscriminantAnalysis": ({"solver": "lsqr"}, {"solver": "eigen", "shrinkage": 0.3}),
}
#: Rows and columns by name; solvers choose other methods for other shapes.
SHAPES = {"": (90, 4), "wide": (60, 150), "long": (1500, 12)}
#: Packages whose models are also fitted to the other shapes; but for Gaussian processes, which take minutes.
_SHAPED = ("learnable.linear.", "learnable.kernel.")
#: Members of ensembles and rounds, so that a case takes a fraction of a second.
_BRIEF = {"n_estimators": 8, "alphas": 5, "n_mix": 2, "n_clusters": 3, "n_restarts_optimizer": 0}


class Case(NamedTuple):
    """One fit: a model, what it predicts, its settings, whether the rows are sparse, and the shape of the table."""

    name: str
    task: str
    settings: dict[str, Any]
    sparse: bool
    shape: str = ""

    @property
    def label(self) -> str:
        chosen = "-".join(f"{key}={value}" for key, value in self.settings.items()).replace("/", "_")
        parts = (self.name, self.task, chosen[:120], "sparse" if self.sparse else "", self.shape)
        return "~".join(part for part in parts if part)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=("freeze", "check"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--models", nargs="+")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    names = arguments.models or estimator_names()
    if arguments.action == "freeze":
        arguments.folder.mkdir(parents=True, exist_ok=True)
        for case in cases(names):
            _freeze(case, arguments.folder)
        return
    frozen = [case for case in cases(names) if (arguments.folder / f"{case.label}.json").exists()]
    differences = [f"{case.label}: {what}" for case in frozen for what in _differences(case, arguments.folder)]
    print("\n".join(differences))
    print(f"{len(frozen)} cases checked, {len(differences)} differences")
    sys.exit(bool(differences))


def cases(names: list[str] | tuple[str, ...]) -> Iterator[Case]:
    """Yield the cases of some models: each task, each setting, and the first one with sparse rows."""
    for name in names:
        for task in tasks_of(name):
            chosen = [*(REGISTRY[name].variants or ({},)), *SETTINGS.get(name, ())]
            for settings in [{}, *(one for one in chosen if one)]:
                yield Case(name, task, settings, sparse=False)
            yield Case(name, task, {}, sparse=True)
            if REGISTRY[name].path.startswith(_SHAPED) and REGISTRY[name].traits and "GaussianProcess" not in name:
                for settings in [{}, *SETTINGS.get(name, ())]:
                    for shape in ("wide", "long"):
                        yield Case(name, task, settings, sparse=False, shape=shape)
                for shape in ("wide", "long"):
                    yield Case(name, task, {}, sparse=True, shape=shape)


def fitted(case: Case) -> tuple[Any, Any]:
    """Return the fitted model of a case, and rows to ask it about."""
    model = _built(case.name)
    known = model.get_params(deep=False)
    few = {key: value for key, value in _BRIEF.items() if type(known.get(key)) is int}
    if "max_leaf_nodes" in known and "max_iter" in known:
        few["max_iter"] = 8
    if "random_state" in known:
        few["random_state"] = 0
    model.set_params(**(few | case.settings))
    tags = get_tags(model)
    if case.sparse and not tags.input_tags.sparse:
        raise TypeError("takes no sparse rows")
    n_rows, n_columns = SHAPES[case.shape]
    X, y = _table(model, case.task, np.random.default_rng(0), n_rows, n_columns)
    asked, _ = _table(model, case.task, np.random.default_rng(1), 40, n_columns)
    asked = np.clip(asked, X.min(axis=0), X.max(axis=0))
    if case.sparse:
        X = sp.csr_array(np.where(np.abs(X) > 0.5, X, 0.0))
        asked = sp.csr_array(np.where(np.abs(asked) > 0.5, asked, 0.0))
    if y is None:
        model.fit(X)
    else:
        model.fit(X, y)
    return model, asked


def _table(model: Any, task: str, rng: np.random.Generator, n_rows: int, n_columns: int) -> tuple[Any, Any]:
    name = type(model).__name__
    tags = get_tags(model)
    X = rng.normal(size=(n_rows, n_columns))
    trend = X[:, :4] @ np.array([1.0, -0.7, 0.4, 0.0]) + 0.6 * rng.normal(size=n_rows)
    y: Any = 1.0 + np.floor(np.exp(0.6 * trend)) + (0.0 if "Poisson" in name else 0.25 * (trend > 0.0))
    if is_classifier(model) or (task != "regression" and not is_regressor(model)):
        y = np.digitize(trend, [0.0] if task == "binary" else [-0.6, 0.6])
        if name == "Perceptron":
            X[:, 0] += 4.0 * y
    if not tags.target_tags.single_output:
        y = np.column_stack([y, X[:, 1] - X[:, 3] + rng.normal(size=n_rows)])
    if tags.input_tags.positive_only:
        X = np.floor(np.abs(3.0 * X))
    if name.endswith("HMM"):
        counts = np.minimum(np.abs(2.0 * X[:, :1]), 3.0).astype(np.int64)
        return (counts if name in ("CategoricalHMM", "PoissonHMM") else X[:, :2]), None
    return X, y


def _answers(model: Any, X: Any) -> dict[str, np.ndarray[Any, Any]]:
    """Return what the prediction methods say, as plain arrays of numbers or texts."""
    found = {}
    for method in METHODS:
        if callable(getattr(model, method, None)):
            try:
                value = getattr(model, method)(X)
            except (AttributeError, NotImplementedError):  # a method that these settings do not have
                continue
            for part, array in enumerate(value if isinstance(value, tuple) else (value,)):
                array = array.toarray() if sp.issparse(array) else np.asarray(array)
                found[f"{method}-{part}"] = array if array.dtype.kind in "fiub" else array.astype(str)
    return found


def _record(model: Any) -> dict[str, Any]:
    certificate = getattr(model, "certificate_", None)
    if certificate is None:
        return {"certificate": None}
    stated = {"kind": certificate.kind, "tolerance": certificate.tolerance, "holds": bool(certificate.holds)}
    return {"certificate": stated, "value": float(certificate.value)}


def _freeze(case: Case, folder: Path) -> None:
    try:
        model, asked = fitted(case)
        answers = _answers(model, asked)
    except Exception as error:
        (folder / f"{case.label}.json").write_text(json.dumps({"failure": type(error).__name__, "says": str(error)}))
        return
    record = _record(model)
    try:
        ln.save(model, folder / f"{case.label}.safetensors")
    except Exception as error:
        record["not saved"] = f"{type(error).__name__}: {error}"
    np.savez(folder / f"{case.label}.npz", **answers)
    (folder / f"{case.label}.json").write_text(json.dumps(record))


def _differences(case: Case, folder: Path) -> Iterator[str]:
    """Yield what differs from the frozen case."""
    record = json.loads((folder / f"{case.label}.json").read_text())
    try:
        model, asked = fitted(case)
    except Exception as error:
        if record.get("failure") != type(error).__name__:
            yield f"fit raises {type(error).__name__}: {error}"
        return
    if "failure" in record:
        yield f"fit raised {record['failure']} before ({record['says']})"
        return
    with np.load(folder / f"{case.label}.npz", allow_pickle=False) as stored:
        before = dict(stored)
    if "not saved" not in record:
        try:
            loaded = ln.load(folder / f"{case.label}.safetensors")
            yield from _compared("loaded", before, _answers(loaded, asked), LOADED)
        except Exception as error:
            yield f"old model file: {type(error).__name__}: {error}"
    yield from _compared("refitted", before, _answers(model, asked), REFITTED)
    now = _record(model)["certificate"]
    if now != record["certificate"]:
        yield f"certificate {record['certificate']} is {now}"


def _compared(what: str, before: dict[str, Any], now: dict[str, Any], limit: float) -> Iterator[str]:
    for method in before.keys() | now.keys():
        if method not in before or method not in now:
            yield f"{what}, {method}: only {'before' if method in before else 'now'}"
            continue
        old = before[method]
        new = now[method]
        if old.shape != new.shape or (old.dtype.kind == "U") != (new.dtype.kind == "U"):
            yield f"{what}, {method}: {old.dtype}{old.shape} is {new.dtype}{new.shape}"
        elif old.dtype.kind == "U":
            if (old != new).any():
                yield f"{what}, {method}: {np.mean(old != new):.0%} of the texts differ"
        else:
            finite = np.isfinite(old)
            scale = np.abs(old[finite].astype(float)).max(initial=1e-300)
            same = np.array_equal(old[~finite], new[~finite], equal_nan=True)
            distance = np.abs(old[finite].astype(float) - new[finite].astype(float)).max(initial=0.0) / scale
            if not same or not distance <= limit:
                yield f"{what}, {method}: relative difference {distance:.2g}, above {limit:g}"


if __name__ == "__main__":
    main()
