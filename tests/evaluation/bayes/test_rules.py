"""The best rules for known distributions: no other rule does better, and they are what the textbook says."""

import numpy as np
import pytest
from scipy.stats import norm

from learnable.core.errors import DataError, ParameterError
from learnable.evaluation import bayes_classifier, bayes_predictor, bayes_risk
from learnable.probability import Bernoulli, JointTable, MultivariateNormal, Normal


def test_the_rule_is_the_largest_of_the_weighted_densities():
    rule = bayes_classifier([Normal(0.0, 1.0), Normal(2.0, 1.0)], [0.8, 0.2], labels=["no", "yes"])
    cut = 1.0 + np.log(0.8 / 0.2) / 2.0
    assert rule.predict([cut - 1e-9, cut + 1e-9]).tolist() == ["no", "yes"]
    weights = np.array([0.8 * norm.pdf(0.7), 0.2 * norm.pdf(0.7, 2.0)])
    np.testing.assert_allclose(rule.predict_proba([0.7])[0], weights / weights.sum(), rtol=1e-12)


def test_costs_move_the_boundary():
    rule = bayes_classifier([Normal(0.0, 1.0), Normal(2.0, 1.0)], costs=[[0.0, 1.0], [10.0, 0.0]])
    assert rule.predict([1.0 - np.log(10) / 2 - 1e-9, 1.0 - np.log(10) / 2 + 1e-9]).tolist() == [0, 1]
    p = rule.predict_proba([0.3])[0]
    np.testing.assert_allclose(rule.expected_costs([0.3])[0], [10.0 * p[1], p[0]], rtol=1e-12)


def test_an_array_of_distributions_is_as_good_as_a_list():
    batch = MultivariateNormal([[0.0, 0.0], [1.0, 2.0]], np.eye(2))
    rule = bayes_classifier(batch)
    other = bayes_classifier([batch[0], batch[1]])
    X = np.random.default_rng(0).normal(size=(20, 2))
    assert np.array_equal(rule.predict_proba(X), other.predict_proba(X))


def test_columns_of_a_distribution_on_the_line_are_independent():
    rule = bayes_classifier([Bernoulli([0.2, 0.9]), Bernoulli([0.5, 0.5])])
    np.testing.assert_allclose(rule.predict_proba([[1, 1]])[0], np.array([0.18, 0.25]) / 0.43, rtol=1e-12)


def test_a_point_that_is_impossible_keeps_the_priors():
    rule = bayes_classifier([Bernoulli(0.2), Bernoulli(0.5)], [0.3, 0.7])
    np.testing.assert_allclose(rule.predict_proba([3.0])[0], [0.3, 0.7])


def test_regression_function_of_a_normal_vector_is_linear():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(3, 3))
    cov, mean = A @ A.T + np.eye(3), rng.normal(size=3)
    for target in (-1, 0, 1):
        others = [j for j in range(3) if j != target % 3]
        beta = np.linalg.solve(cov[np.ix_(others, others)], cov[others, target])
        rule = bayes_predictor(MultivariateNormal(mean, cov), target=target)
        X = rng.normal(size=(5, 2))
        np.testing.assert_allclose(rule.predict(X), mean[target] + (X - mean[others]) @ beta, rtol=1e-10)
        left = cov[target, target] - cov[target, others] @ beta
        assert float(bayes_risk(rule)) == pytest.approx(left, rel=1e-10)


def test_regression_function_of_a_table_is_the_conditional_mean():
    table = JointTable([[0.1, 0.2], [0.3, 0.4]], names=["x", "y"], values={"y": [-1.0, 3.0]})
    rule = bayes_predictor(table)
    np.testing.assert_allclose(rule.predict([0, 1]), [(-0.1 + 0.6) / 0.3, (-0.3 + 1.2) / 0.7])
    total = sum(
        p * (y - m) ** 2
        for row, m in zip(table.p, rule.predict([0, 1]), strict=True)
        for p, y in zip(row, (-1, 3), strict=True)
    )
    assert float(bayes_risk(rule)) == pytest.approx(total, rel=1e-12)


def test_bad_arguments_are_named():
    with pytest.raises(ParameterError, match="at least two"):
        bayes_classifier([Normal(0.0, 1.0)])
    with pytest.raises(ParameterError, match="priors must be 2 probabilities"):
        bayes_classifier([Normal(0.0, 1.0), Normal(1.0, 1.0)], [0.5, 0.6])
    with pytest.raises(ParameterError, match="costs a finite table"):
        bayes_classifier([Normal(0.0, 1.0), Normal(1.0, 1.0)], costs=np.eye(3))
    with pytest.raises(ParameterError, match="target must be"):
        bayes_predictor(MultivariateNormal([0.0, 1.0], np.eye(2)), target=5)
    with pytest.raises(DataError, match="is on the line"):
        bayes_classifier([Normal(0.0, 1.0), Normal(1.0, 1.0)]).predict([[0.0, 1.0]])
