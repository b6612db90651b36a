"""A fit to a hostile table ends in an error that names the rule, or in a model whose certificate `verify` confirms.

Constant, duplicated, tiny, huge and far numbers, few rows, single precision: whatever a certificate says of them, an
independent check must find too. A model may say that its certificate does not hold; then it has warned.
"""

import inspect
import warnings

import numpy as np
import pytest
from tests.registered import brief, build, is_sequence_model, small_table

import learnable as ln
from learnable.core.errors import LearnableError
from learnable.core.registry import REGISTRY, estimator_names

FAR = 1e18  # one cell of it drowns the sums of squares of all others


def _one_far(X):
    X = X.copy()
    X[3, X.shape[1] // 2] = FAR
    return X


def _constant_column(X):
    X = X.copy()
    X[:, X.shape[1] // 2] = 3.0
    return X


def _far_from_zero(X):
    X = X.copy()
    X[:, X.shape[1] // 2] += 1e10
    return X


def _far_target(y):
    y = y.copy()
    y[0] = 1e15
    return y


COLUMNS = {
    "as it is": lambda X: X,
    "times 1e6": lambda X: X * 1e6,
    "times 1e-6": lambda X: X * 1e-6,
    "times 1e150": lambda X: X * 1e150,
    "times 1e-150": lambda X: X * 1e-150,
    "times 1e-300": lambda X: X * 1e-300,
    "one far cell": _one_far,
    "a constant column": _constant_column,
    "a column far from zero": _far_from_zero,
    "columns twice": lambda X: np.column_stack([X, X]),
    "rows six times": lambda X: np.repeat(X[: len(X) // 6], 6, axis=0),
    "one row, repeated": lambda X: np.tile(X[:1], (len(X), 1)),
    "zeros": np.zeros_like,
    "single precision": lambda X: X.astype(np.float32),
    "whole numbers": lambda X: np.round(3 * X).astype(np.int64),
}
TARGETS = {
    "constant": lambda y: np.repeat(y[:1], len(y), axis=0),
    "times 1e12": lambda y: y * 1e12,
    "times 1e-12": lambda y: y * 1e-12,
    "times 1e200": lambda y: y * 1e200,
    "one far target": _far_target,
}
ROWS = (1, 2, 3)

#: What rounding defeats, and why.
KNOWN = {
    ("CalibratedClassifier", "times 1e-6"): "scores within 1e-6 of each other: the slope of the sigmoid has no digits",
    ("FactorAnalysis", "one row, repeated"): "a likelihood without bound, held by the floor of the noise",
    ("FactorAnalysis", "3 rows"): "fewer rows than columns: a likelihood without bound, held by the floor of the noise",
    ("OrthogonalMatchingPursuitCV", "one far cell"): "the folds without the far cell choose by digits that it drowned",
    ("MixtureOfExperts", "constant"): "a likelihood without bound, held by its floor: steps are rounding",
}


def _cases():
    for name in estimator_names():
        if REGISTRY[name].checker is None:
            continue
        yield from ((name, kind) for kind in COLUMNS)
        yield from ((name, kind) for kind in TARGETS)
        yield from ((name, f"{rows} rows") for rows in ROWS)


def _table(name, kind):
    X, y = small_table(name)[:2]
    if kind in COLUMNS:
        return COLUMNS[kind](np.asarray(X, dtype=np.float64)), y
    if kind in TARGETS:
        if y is None or (kind != "constant" and np.asarray(y).dtype.kind != "f"):
            pytest.skip("there is no such target")
        return X, TARGETS[kind](np.asarray(y))
    rows = int(kind.split()[0])
    return X[:rows], None if y is None else y[:rows]


@pytest.mark.sampled(12)
@pytest.mark.parametrize(("name", "kind"), [pytest.param(*case, id="-".join(case)) for case in _cases()])
def test_a_certificate_that_holds_is_confirmed(name, kind):
    if (name, kind) in KNOWN:
        pytest.skip(KNOWN[name, kind])
    model = brief(build(name))
    if is_sequence_model(model) and name.startswith(("LSTM", "RNN")):
        pytest.skip("sequences of a network are lists of arrays")
    X, y = _table(name, kind)
    given = (X,) if y is None else (X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model.fit(*given)
        except LearnableError:  # a clear error is an answer
            return
        except np.linalg.LinAlgError:  # a ValueError that says nothing of the data
            raise
        except ValueError:  # of scikit-learn's splitters
            return
        certificate = model.certificate_
        if certificate.kind == "none" or not certificate.holds:
            return
        verdict = ln.verify(model, *given)
    assert verdict, str(verdict)
    for method in ("predict", "transform"):
        if hasattr(model, method) and "n_neighbors" not in inspect.signature(type(model)).parameters:
            found = getattr(model, method)(X)
            found = found.toarray() if hasattr(found, "toarray") else np.asarray(found)
            assert found.dtype.kind != "f" or np.isfinite(found).all()
