"""Rows that a test needs: the inversion of the bounds, and what the comparison of two models needs in simulation."""

import numpy as np
import pytest
from scipy.stats import norm

from learnable.core.errors import ParameterError
from learnable.evaluation import plan_rows
from learnable.theory.concentration import binomial_upper


def test_plan_is_the_inversion_of_the_bounds():
    plan = plan_rows(0.05, 0.01, models=10)
    assert binomial_upper(0.05 * plan.exact, plan.exact, 0.05) <= 0.06
    assert binomial_upper(0.05 * (plan.exact - 1), plan.exact - 1, 0.05) > 0.06
    assert binomial_upper(0.05 * plan.leaderboard, plan.leaderboard, 0.005) <= 0.06
    assert plan.any_error == 18_445
    assert plan_rows(0.0, 0.01).no_errors == 299


def test_two_models_are_told_apart_as_often_as_stated():
    plan = plan_rows(0.1, 0.03)
    rng = np.random.default_rng(0)
    a = rng.binomial(plan.compare, 0.10, 4000) / plan.compare
    b = rng.binomial(plan.compare, 0.13, 4000) / plan.compare
    error = np.sqrt((a * (1 - a) + b * (1 - b)) / plan.compare)
    power = (np.abs(b - a) > norm.ppf(0.975) * error).mean()
    assert power == pytest.approx(0.8, abs=0.03)


def test_impossible_plans_are_refused():
    with pytest.raises(ParameterError, match="below 1"):
        plan_rows(0.9, 0.2)
    with pytest.raises(ParameterError):
        plan_rows(0.1, 0.0)
