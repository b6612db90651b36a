"""Joint tables: marginals, conditionals, Bayes' rule, independence, information; by hand and by law."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from learnable.core.errors import DataError, ParameterError
from learnable.probability import JointTable

tables = arrays(np.float64, (2, 3, 2), elements=st.floats(0.01, 1.0)).map(
    lambda p: JointTable(p / p.sum(), list("abc"))
)


def test_bayes_rule_of_a_rare_disease():
    sick = JointTable([0.99, 0.01], ["sick"], {"sick": [False, True]})
    joint = JointTable.from_conditional(sick, [[0.95, 0.05], [0.1, 0.9]], "test", ["negative", "positive"])
    assert joint.probability(test="positive") == pytest.approx(0.99 * 0.05 + 0.01 * 0.9)
    assert joint.condition(test="positive").probability(sick=True) == pytest.approx(0.009 / 0.0585)


@given(table=tables)
def test_chain_rule_and_total_probability(table):
    np.testing.assert_allclose(
        table.conditional("a", ["b", "c"]) * table.marginal(["b", "c"]).p[..., None],
        table.marginal(["b", "c", "a"]).p, rtol=1e-12,
    )  # fmt: skip
    weighted = sum(table.condition(b=k).marginal("a").p * table.probability(b=k) for k in range(3))
    np.testing.assert_allclose(weighted, table.marginal("a").p, rtol=1e-12)


@given(table=tables)
def test_laws_of_information(table):
    information = table.mutual_information("a", "b")
    by_entropies = table.entropy("a") + table.entropy("b") - table.entropy(["a", "b"])
    assert information == pytest.approx(by_entropies, abs=1e-12)
    assert information == pytest.approx(table.entropy("a") - table.entropy("a", given="b"), abs=1e-12)
    chain = table.mutual_information("a", "c") + table.mutual_information("a", "b", given="c")
    assert table.mutual_information("a", ["b", "c"]) == pytest.approx(chain, abs=1e-12)
    assert table.entropy() == pytest.approx(table.entropy("a") + table.entropy(given="a"), abs=1e-12)
    assert table.entropy(base=2) == pytest.approx(table.entropy() / math.log(2))


@given(table=tables)
def test_a_product_is_independent(table):
    p = np.einsum("i,j,k->ijk", *(table.marginal(name).p for name in "abc"))
    product = JointTable(p / p.sum(), list("abc"))
    assert product.is_independent("a", ["b", "c"]) and product.is_independent("a", "b", given="c")
    assert product.mutual_information("a", "b") < 1e-12


def test_common_cause_and_common_effect():
    cause = np.einsum("c,ca,cb->abc", [0.3, 0.7], [[0.9, 0.1], [0.2, 0.8]], [[0.6, 0.4], [0.1, 0.9]])
    table = JointTable(cause, list("abc"))
    assert table.is_independent("a", "b", given="c") and not table.is_independent("a", "b")
    effect = np.zeros((2, 2, 2))
    for a in range(2):
        for b in range(2):
            effect[a, b, a ^ b] = 0.25
    table = JointTable(effect, list("abc"))
    assert table.is_independent("a", "b") and not table.is_independent("a", "b", given="c")
    assert table.mutual_information("a", "b", given="c", base=2) == pytest.approx(1.0)


def test_from_data():
    table = JointTable.from_data({"sky": ["blue", "grey", "grey", "blue"], "rain": [0, 1, 0, 0]}, weights=[1, 2, 1, 0])
    assert table.values == {"sky": ["blue", "grey"], "rain": [0, 1]}
    np.testing.assert_allclose(table.p, [[0.25, 0.0], [0.25, 0.5]])
    smoothed = JointTable.from_data({"x": [0, 0], "y": [0, 1]}, pseudocount=1.0)
    assert smoothed.p.shape == (1, 2)


def test_moments_and_samples():
    table = JointTable([[0.1, 0.2], [0.3, 0.4]], ["x", "y"], {"x": [0, 1], "y": [-1.0, 3.0]})
    draws = table.sample(100_000, random_state=0)
    data = np.stack([draws["x"], draws["y"]])
    np.testing.assert_allclose(table.mean(), [0.7, 1.4])
    np.testing.assert_allclose(data.mean(axis=1), table.mean(), atol=0.03)
    np.testing.assert_allclose(np.cov(data), table.covariance(), atol=0.03)
    assert table.covariance()[0, 0] == pytest.approx(0.21)


def test_impossible_conditions():
    table = JointTable([[0.5, 0.0], [0.5, 0.0]], ["a", "b"])
    with pytest.raises(DataError, match=r"\{'b': 1\} has probability 0"):
        table.condition(b=1)
    assert np.isnan(table.conditional("a", "b")[1]).all()


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda t: JointTable([0.5, 0.6]), r"p must be probabilities >= 0 with the sum 1"),
        (lambda t: JointTable([0.5, 0.5], ["a", "b"]), "names must be 1 different ones"),
        (lambda t: t.marginal("z"), "among a, b, got 'z'"),
        (lambda t: t.condition(a=7), r"a must be one of \[0, 1\], got 7"),
        (lambda t: t.is_independent("a", "a"), "named once each"),
        (lambda t: t.condition(a=0, b=0), "must leave at least one variable"),
        (lambda t: t.entropy(base=1.0), "base must be > 1"),
        (lambda t: JointTable([0.5, 0.5], ["a"], {"a": [1, 1]}), "values of 'a' must be 2 different ones"),
    ],
)
def test_refusals(call, message):
    with pytest.raises(ParameterError, match=f"JointTable: .*{message}"):
        call(JointTable([[0.1, 0.2], [0.3, 0.4]], ["a", "b"]))
