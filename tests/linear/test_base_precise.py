"""Gaps in extended precision: what 53 digits cannot resolve is computed again, or stated as what rounding may do."""

from fractions import Fraction

import numpy as np
import pytest

import learnable as ln
from learnable.data.blocks import Blocks, Part
from learnable.linear.sparse.elastic_net import _long_residual


def table(scale, seed=0, shape=(60, 4)):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=shape)
    y = X @ [1.0, -2.0, 0.5, 0.0] + rng.normal(size=len(X))
    return X * scale, y


def exact_cross(X, y, W):
    """Return Σ (x − x̄)r with r = y − ȳ − wᵀ(x − x̄), in rational arithmetic."""
    rows = [[Fraction(v) for v in row] for row in X.tolist()]
    t = [Fraction(v) for v in y.tolist()]
    w = [Fraction(v) for v in W[:, 0].tolist()]
    n, d = len(rows), len(w)
    mean = [sum(row[j] for row in rows) / n for j in range(d)]
    level = sum(t) / n
    away = [[row[j] - mean[j] for j in range(d)] for row in rows]
    r = [t[i] - level - sum(a * b for a, b in zip(away[i], w, strict=True)) for i in range(n)]
    cross = [float(sum(away[i][j] * r[i] for i in range(n))) for j in range(d)]
    return np.array(cross), float(sum(v * v for v in r))


@pytest.mark.parametrize("scale", [1.0, 2.0**40, 2.0**-40])
def test_correlations_are_right_far_below_the_last_digit_of_their_terms(scale):
    X, y = table(scale)
    W = np.linalg.lstsq(X - X.mean(axis=0), y - y.mean())[0][:, None]
    cross, square = _long_residual(Blocks([Part(X, y, None)]), W, intercept=True)
    expected, expected_square = exact_cross(X, y, W)
    terms = np.linalg.norm(X, axis=0) * np.linalg.norm(y)
    assert np.abs(cross[:, 0] - expected).max() <= 1e-18 * terms.max()
    assert square == pytest.approx(expected_square, rel=1e-15)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("model", [ln.Lasso(alpha=0.1), ln.ElasticNet(alpha=0.1), ln.LassoCV(alphas=[0.1], cv=3)])
def test_a_penalty_below_rounding_is_not_claimed_to_be_met(model):
    X, y = table(1e13)
    model.fit(X, y)
    verdict = ln.verify(model, X, y)
    assert verdict.value == pytest.approx(model.certificate_.value, rel=0.01)
    assert not model.certificate_.holds


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_rows_beyond_memory_state_what_rounding_may_do(tmp_path):
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    X, y = table(1e13)
    columns = {f"x{j}": X[:, j] for j in range(4)}
    pq.write_table(pa.table(columns | {"y": y}), tmp_path / "rows.parquet")
    model = ln.Lasso(alpha=0.1).fit(str(tmp_path / "rows.parquet"), "y")
    assert model.certificate_.value > model.tol
    assert ln.Lasso(alpha=0.1).fit(*table(1.0)).certificate_.holds


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_margins_of_huge_columns_claim_what_is_found(loss):
    for seed in range(4):
        X, y = table(1e13, seed)
        model = ln.LinearSVC(loss=loss, max_iter=100).fit(X, y > 0)
        verdict = ln.verify(model, X, y > 0)
        assert verdict.value == pytest.approx(model.certificate_.value, rel=0.01, abs=1e-9)
