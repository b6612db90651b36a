"""The two steps: expected counts against enumeration, sums that do not depend on threads."""

import numpy as np
import pytest
from tests.oracles.hidden_paths import posteriors
from tests.sequences.models import given

from learnable.sequences.baum_welch import Block


def blocks_of(model, X, offsets):
    lines, codes = model._encode(np.asarray(X, dtype=float))
    return Block(lines, codes, np.array(offsets))


def test_expected_counts_are_those_of_all_paths():
    model = given("poisson")
    X = np.asarray(model.sample(9, random_state=0)[0], dtype=float)
    parameters = model._fitted()
    (first, pairs, rows, totals), log = model._problem(1).expectation(blocks_of(model, X, [0, 4, 9]), parameters)
    frames = model._emission().log_frames(X, parameters.emission)
    parts = [posteriors(frames[lo:hi], model.startprob_, model.transmat_) for lo, hi in ((0, 4), (4, 9))]
    gamma = np.concatenate([part[1] for part in parts])
    np.testing.assert_allclose(log, parts[0][0] + parts[1][0], rtol=1e-12)
    np.testing.assert_allclose(first, gamma[0] + gamma[4], atol=1e-12)
    np.testing.assert_allclose(pairs, sum(part[2].sum(axis=0) for part in parts), atol=1e-12)
    np.testing.assert_allclose(rows, np.repeat(gamma.sum(axis=0)[:, None], 2, axis=1), atol=1e-12)
    np.testing.assert_allclose(totals, gamma.T @ X, atol=1e-11)


@pytest.mark.threaded
def test_sums_over_many_rows_have_the_same_bits_for_any_threads():
    model = given("diag")
    X = model.sample(40_000, random_state=0)[0]
    one, two = (model._problem(n).expectation(blocks_of(model, X, [0, 40_000]), model._fitted()) for n in (1, 2))
    assert one[1] == two[1]
    for a, b in zip(one[0], two[0], strict=True):
        np.testing.assert_array_equal(a, b)


def test_the_step_divides_counts_and_adds_the_prior():
    model = given("categorical").set_params(transmat_prior=2.0)
    counts = np.array([[4.0, 1.0, 1.0], [0.0, 0.0, 0.0], [1.0, 2.0, 3.0]])
    statistics = (np.array([1.0, 1.0, 0.0]), counts, np.ones((3, 4)))
    start, A, _ = model._problem(1).maximisation(statistics, model._fitted())
    np.testing.assert_allclose(start, [0.5, 0.5, 0.0])
    np.testing.assert_allclose(A, (counts + 1) / (counts + 1).sum(axis=1, keepdims=True))
