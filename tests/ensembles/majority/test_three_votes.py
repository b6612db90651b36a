"""The recursion's algebra."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from learnable.core.estimator import Run
from learnable.ensembles.majority.three_votes import (
    Recursion,
    TableExamples,
    boosted_error,
    half_wrong_chances,
    needed_error,
    vote_errors,
    votes_of_three,
)


@given(st.floats(1e-12, 0.5))
def test_the_map_and_its_inverse(error):
    assert abs(boosted_error(needed_error(error)) - error) <= 1e-12
    assert boosted_error(error) <= error + 1e-15


@given(st.integers(0, 10**6))
def test_votes_are_majorities_and_their_errors_follow_the_formula(seed):
    """z + a₃(w + y), with w from a₁, a₂ and y: the notes' (11.3), corrected."""
    rng = np.random.default_rng(seed)
    n = 60
    y, D = rng.integers(0, 2, n), rng.random(n) + 0.01
    D /= D.sum()
    opinions = [np.where(rng.random(n) < 0.7, y, 1 - y) for _ in range(3)]
    h1, h2, h3 = opinions
    votes = np.array([[0, 1, 2]])
    said = votes_of_three(3, votes, opinions, n)
    assert (said == (h1 + h2 + h3 >= 2)).all()
    if (h1 == h2).all() or (h1 == y).all() or (h1 != y).all():
        return
    a1, a2, a3, error = vote_errors(3, votes, opinions, y, D)[0]
    right = D @ ((h1 != y) & (h2 == y))
    z, w = a1 - right, (1 - a1) * (2 * a2 - 1 + right / a1)
    assert abs(w - D @ ((h1 == y) & (h2 != y))) < 1e-12
    assert abs(error - (z + a3 * (w + right))) < 1e-12
    if max(a1, a2, a3) < 0.5:
        assert error <= boosted_error(max(a1, a2, a3)) + 1e-12


def test_filtered_examples_have_the_distributions_of_the_text():
    """z-tests of EX₂ and EX₃ against their chances, filters on top of filters included."""
    rng = np.random.default_rng(0)
    n = 12
    y, weight = rng.integers(0, 2, n), rng.random(n) + 0.2
    examples = TableExamples(np.arange(n)[:, None], y, weight, np.random.default_rng(1), 10**8, Run())
    examples.says = lambda learner, X: learner
    opinions = [np.where(rng.random(n) < 0.7, y, 1 - y) for _ in range(3)]
    for opinion in opinions:
        examples.add(opinion)
    recursion = Recursion(examples, None, 0.1, 100, Run())
    from learnable.ensembles.majority.three_votes import Source

    base = Source(examples.draw, examples.chances())
    half = recursion._half_wrong(0, base)
    differing = recursion._differing(0, 1, half)
    wrong = opinions[0] != y
    np.testing.assert_allclose(half.chances, half_wrong_chances(weight / weight.sum(), wrong))
    for source in (base, half, differing):
        m = 200_000
        counts = np.bincount(source.draw(m).rows, minlength=n)
        expected = m * source.chances
        spread = np.sqrt(np.maximum(expected * (1 - source.chances), 1e-9))
        assert (np.abs(counts - expected) <= 4.5 * spread).all()
