"""What mixtures learn of a table before they start."""

import numpy as np
import pytest
from tests.mixtures.draws import KNOWN, PAIRS, rows_of

from learnable import probability
from learnable.core.errors import DataError, ParameterError
from learnable.data.blocks import Blocks, Part
from learnable.mixtures.mixture import family_problem, is_family


def problem_of(name, X, known=None, weight=None):
    return family_problem(
        "Test", getattr(probability, name), 2, Blocks([Part(X, None, weight)]), known or {}, 0.0, 1.0, 1
    )


@pytest.mark.parametrize("name", PAIRS)
def test_the_centre_is_the_estimate_of_greatest_likelihood(name):
    X, _ = rows_of(name, 80)
    w = np.random.default_rng(0).uniform(0.5, 2.0, 80)
    family = getattr(probability, name)
    problem = problem_of(name, X, KNOWN.get(name), w)
    events = X.reshape(-1, 2, 2) if family._event_rank == 2 else X
    for key, value in family.fit_mle(events, w, **KNOWN.get(name, {})).parameters.items():
        np.testing.assert_allclose(problem.centre.parameters[key], value, rtol=1e-7)


def test_what_is_known_comes_from_the_rows():
    assert problem_of("Categorical", np.array([[0.0], [3.0], [1.0]])).example.n_categories == 4
    assert problem_of("Categorical", np.array([[0.0], [3.0], [1.0]]), {"n_categories": 6}).example.n_categories == 6
    assert problem_of("Multinomial", np.array([[1.0, 4.0], [2.0, 3.0]])).known == {"n": 5.0}


@pytest.mark.parametrize(
    "name, X, error, message",
    [
        ("Multinomial", [[1.0, 4.0], [2.0, 2.0]], DataError, "with the sum n"),
        ("Beta", [[0.5], [1.0]], DataError, "between 0 and 1"),
        ("Gamma", [[0.0], [1.0]], DataError, "> 0"),
        ("Wishart", [[1.0, 2.0, 2.0, 1.0], [1.0, 0.0, 0.0, 1.0]], DataError, "positive definite"),
        ("Normal", [[1.0], [1.0]], DataError, "constant"),
        ("Binomial", [[1.0], [2.0]], ParameterError, "number of trials"),
    ],
)
def test_rows_that_do_not_fit_are_refused(name, X, error, message):
    with pytest.raises(error, match=message):
        problem_of(name, np.array(X))


def test_families_are_exponential_families():
    assert is_family(probability.Poisson) and not is_family(probability.StudentT) and not is_family("Poisson")
