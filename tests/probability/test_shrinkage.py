"""The James–Stein estimator: its formula, its dominance by simulation, and the baseball players."""

import numpy as np
import pytest

from learnable.core.errors import DataError, ParameterError
from learnable.probability import james_stein

P = 8


def gain(theta, runs=2000, n=1, seed=0, **options):
    """Return, in standard errors, how much smaller the squared error is than that of the mean."""
    rng = np.random.default_rng(seed)
    saved = np.empty(runs)
    for r in range(runs):
        x = rng.normal(theta, 1.0, size=(n, theta.size))
        estimate = james_stein(x, **options).estimate
        saved[r] = np.sum((x.mean(axis=0) - theta) ** 2) - np.sum((estimate - theta) ** 2)
    return saved.mean() / (saved.std(ddof=1) / np.sqrt(runs))


@pytest.mark.parametrize("size", [0.0, 2.0, 5.0])
@pytest.mark.parametrize("options", [{"variance": 1.0}, {"variance": 1.0, "positive_part": False}, {"n": 3}], ids=repr)
def test_it_dominates_the_mean(size, options):
    theta = size * np.ones(P) / np.sqrt(P)
    assert gain(theta, **options) > 5.0


def test_it_dominates_towards_any_target():
    theta = np.arange(P) / 4.0 + 10.0
    assert gain(theta, variance=1.0, target="mean") > 5.0
    assert gain(theta, variance=1.0, target=np.full(P, 11.0)) > 5.0


def test_risk_at_the_target_is_two():
    # At θ = t the risk of the plain estimator is 2, whatever p (James and Stein, 1961).
    rng = np.random.default_rng(1)
    losses = np.array(
        [np.sum(james_stein(x, 1.0, positive_part=False).estimate ** 2) for x in rng.normal(size=(5000, P))]
    )
    assert abs(losses.mean() - 2.0) < 4 * losses.std() / np.sqrt(losses.size)


def test_positive_part_is_better():
    rng = np.random.default_rng(2)
    x = rng.normal(0.3, 1.0, size=(5000, P))

    def loss(positive):
        return np.array([np.sum((james_stein(row, 1.0, positive_part=positive).estimate - 0.3) ** 2) for row in x])

    difference = loss(False) - loss(True)
    assert difference.mean() > 4 * difference.std() / np.sqrt(difference.size)


def test_baseball_of_efron_and_morris():
    # Efron and Morris (1975), JASA 70, table 1: 18 players' averages after 45 times at bat, and for the rest of 1970.
    early = np.array(
        [
            0.400,
            0.378,
            0.356,
            0.333,
            0.311,
            0.311,
            0.289,
            0.267,
            0.244,
            0.244,
            0.222,
            0.222,
            0.222,
            0.222,
            0.222,
            0.200,
            0.178,
            0.156,
        ]
    )
    late = np.array(
        [
            0.346,
            0.298,
            0.276,
            0.222,
            0.273,
            0.270,
            0.263,
            0.210,
            0.269,
            0.230,
            0.264,
            0.256,
            0.303,
            0.264,
            0.226,
            0.285,
            0.316,
            0.200,
        ]
    )
    mean = early.mean()
    found = james_stein(early, mean * (1 - mean) / 45, target="mean")
    assert found.factor == pytest.approx(0.212, abs=2e-3)  # printed in Efron and Morris (1977), Scientific American 236
    assert np.sum((early - late) ** 2) / np.sum((found.estimate - late) ** 2) > 3.0


def test_formula_and_limits():
    x = np.array([3.0, -1.0, 2.0, 1.0])
    assert james_stein(x, 1.0).factor == pytest.approx(1 - 2 / 15)
    assert james_stein(x, 0.0).factor == 1.0
    assert james_stein(x, 1e9).factor == 0.0 and james_stein(x, 1e9, positive_part=False).factor < 0.0
    assert np.array_equal(james_stein(x, 1.0, target=x).estimate, x)
    rows = np.random.default_rng(3).normal(size=(5, 4))
    mean, spread = rows.mean(axis=0), np.sum((rows - rows.mean(axis=0)) ** 2)
    assert james_stein(rows, positive_part=False).factor == pytest.approx(
        1 - 2 * spread / (4 * 4 + 2) / 5 / (mean @ mean)
    )


@pytest.mark.parametrize(
    "x, options, error, message",
    [
        ([1.0, 2.0], {"variance": 1.0}, ParameterError, "x must have at least 3 entries for this target, got 2"),
        ([1.0, 2.0, 3.0], {"variance": 1.0, "target": "mean"}, ParameterError, "at least 4 entries"),
        ([1.0, 2.0, 3.0], {}, ParameterError, "variance must be given for one observation"),
        ([1.0, 2.0, 3.0], {"variance": -1.0}, ParameterError, r"variance must be one number >= 0, got -1\.0"),
        ([1.0, np.nan, 3.0], {"variance": 1.0}, DataError, "x must be finite"),
        ([1.0, 2.0, 3.0], {"variance": 1.0, "target": "median"}, ParameterError, "target must be numbers"),
    ],
)
def test_refusals(x, options, error, message):
    with pytest.raises(error, match=f"james_stein: .*{message}"):
        james_stein(x, **options)
