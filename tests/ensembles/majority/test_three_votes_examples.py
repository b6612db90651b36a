"""Sources of examples."""

import numpy as np
import pytest

from learnable.core.errors import DataError
from learnable.core.estimator import Run
from learnable.ensembles.majority.three_votes import OracleExamples, TableExamples


def test_rows_are_drawn_by_weight_and_counted():
    y = np.array([0, 1, 1])
    source = TableExamples(np.eye(3), y, np.array([1.0, 2.0, 1.0]), np.random.default_rng(0), 10_000, Run())
    batch = source.draw(8000)
    shares = np.bincount(batch.rows, minlength=3) / 8000
    np.testing.assert_allclose(shares, [0.25, 0.5, 0.25], atol=0.03)
    assert source.n_calls == 8000 and not source.spent and (batch.y == y[batch.rows]).all()
    source.draw(2000)
    assert source.spent


def test_an_oracle_must_keep_its_columns():
    widths = iter([2, 3])
    source = OracleExamples(
        lambda m: (np.zeros((m, next(widths))), np.zeros(m, int)), np.array([0, 1]), None, 100, Run()
    )
    source.draw(5)
    with pytest.raises(DataError, match="2 columns before, now 3"):
        source.draw(5)
