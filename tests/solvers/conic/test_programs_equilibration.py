"""Balanced units: numbers near one, and a way back that rounds nothing."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from tests.solvers.program_cases import parts, random_program

from learnable.core.errors import DataError
from learnable.solvers import Multipliers, QuadraticProgram
from learnable.solvers.conic.programs import equilibrate


@given(st.integers(0, 1000))
def test_the_way_back_is_exact(seed):
    rng = np.random.default_rng(seed)
    given_ = random_program(seed)
    found = equilibrate(given_)
    x = rng.normal(size=len(given_.q))
    assert found.program.value(x) == pytest.approx(found.cost * given_.value(found.point(x)), rel=1e-12)
    np.testing.assert_array_equal(found.point(found.program.lower), given_.lower)
    scaled = Multipliers(
        rng.random(len(given_.h)), rng.normal(size=len(given_.b)), rng.random(len(x)), rng.random(len(x))
    )
    back = found.multipliers(scaled)
    inner = found.program.dual_value(x, scaled)
    assert inner == pytest.approx(found.cost * given_.dual_value(found.point(x), back), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_far_out_numbers_come_near_one(kind):
    P = kind(np.diag([1e250, 1.0, 1e-250]))
    G = kind(np.array([[1e120, 1.0, 1e-130], [0.0, 1e-5, 0.0]]))
    found = equilibrate(QuadraticProgram(P, [1e125, 1.0, 1e-125], G, [1.0, 1e-5]))
    diagonal = found.program.P.diagonal() / found.program.P.diagonal().max()
    assert (diagonal > 1e-3).all()
    rows = abs(found.program.G).max(axis=1)
    rows = rows.toarray() if sp.issparse(rows) else rows
    assert ((rows > 1e-2) & (rows < 1e2)).all()


def test_an_objective_beyond_floating_point_is_refused():
    with pytest.raises(DataError, match="other units"):
        equilibrate(QuadraticProgram(None, [1e300], lower=[-1e300], upper=[1e300]))


def test_empty_rows_and_columns_are_left_alone():
    given_ = random_program(3)
    program = QuadraticProgram(**(parts(given_) | {"G": np.zeros_like(given_.G), "P": np.zeros_like(given_.P)}))
    assert np.isfinite(equilibrate(program).columns).all()
