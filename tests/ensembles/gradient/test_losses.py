"""Losses of boosting: derivatives, starts and leaves by definition; joint quantiles that cannot cross."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from learnable.core.errors import DataError, ParameterError
from learnable.ensembles.gradient.distribution import JointQuantiles
from learnable.ensembles.gradient.losses import (
    BoostingLoss,
    CustomClasses,
    Link,
    Targets,
    class_loss,
    quantiles_by_leaf,
    regression_loss,
)
from learnable.risk.losses import HingeLoss, SoftmaxLoss

SMOOTH = [
    *((name, regression_loss("t", name, None)) for name in ("squared_error", "poisson", "gamma")),
    *((name, class_loss("t", name, 2)) for name in ("log_loss", "exponential")),
    ("softmax", class_loss("t", "log_loss", 3)),
]
KINKED = [
    ("absolute_error", regression_loss("t", "absolute_error", None)),
    ("quantile", regression_loss("t", "quantile", 0.3)),
    ("joint", regression_loss("t", "quantile", [0.1, 0.5, 0.8])),
]


def parts_of(base):
    return [base, *(part for own in base.__subclasses__() for part in parts_of(own))]


@pytest.mark.parametrize("base", [BoostingLoss, Targets, Link])
def test_each_part_of_a_loss_has_three_methods_and_no_others(base):
    asked = {name for name, member in vars(base).items() if callable(member) and not name.startswith("__")}
    assert len(asked) == 3
    for part in parts_of(base):
        own = {name for name, member in vars(part).items() if callable(member) and name != "__init__"}
        assert own <= asked | {"__init_subclass__"}, part


def sample(name, n=60, seed=0):
    """Return targets that suit a loss."""
    rng = np.random.default_rng(seed)
    if name in ("log_loss", "exponential"):
        return np.where(rng.random(n) < 0.4, 1.0, -1.0)
    if name == "softmax":
        return rng.integers(0, 3, n)
    return rng.exponential(2.0, n) + 0.1


@pytest.mark.parametrize("name, loss", SMOOTH + KINKED[-1:], ids=lambda v: v if isinstance(v, str) else "")
def test_derivatives_are_those_of_the_value(name, loss):
    y, rng = sample(name), np.random.default_rng(1)
    F, e = rng.normal(size=(loss.n_outputs, len(y))), 1e-6
    g, h = loss.derivatives(y, F)
    for k in range(loss.n_outputs):
        up, down = F.copy(), F.copy()
        up[k] += e
        down[k] -= e
        np.testing.assert_allclose(g[k], (loss.value(y, up) - loss.value(y, down)) / (2 * e), rtol=1e-6, atol=1e-7)
        if loss.smooth:
            slope = (loss.derivatives(y, up)[0][k] - loss.derivatives(y, down)[0][k]) / (2 * e)
            # K scores that move together get Friedman's factor K/(K − 1) on the diagonal.
            together = 1.5 if name == "softmax" else 1.0
            np.testing.assert_allclose(h[k], together * slope, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name, loss", SMOOTH + KINKED, ids=lambda v: v if isinstance(v, str) else "")
def test_no_constant_is_better_than_the_start(name, loss, weighted):
    y = sample(name)
    w = np.random.default_rng(3).uniform(0.5, 3.0, len(y)) if weighted else None
    start = loss.targets.start(loss, y, w)

    def total(constant):
        value = loss.value(y, np.tile(constant[:, None], (1, len(y))))
        return float(value.sum() if w is None else w @ value)

    for k in range(loss.n_outputs):
        for side in (-1e-3, 1e-3, 0.2, -0.2):
            moved = start.copy()
            moved[k] += side
            assert total(moved) >= total(start) - 1e-9


@pytest.mark.parametrize("name, loss", KINKED + SMOOTH, ids=lambda v: v if isinstance(v, str) else "")
def test_leaf_values_minimise_the_loss_of_their_leaf(name, loss):
    y, rng = sample(name, 90), np.random.default_rng(2)
    leaf, w = rng.integers(0, 3, len(y)).astype(np.int32), rng.uniform(0.5, 2.0, len(y))
    F = np.tile(loss.targets.start(loss, y, w)[:, None], (1, len(y))) + 0.1 * rng.normal(size=(loss.n_outputs, len(y)))
    for k in range(loss.n_outputs):
        best = loss.best_leaf_values(k, leaf, 3, y, F, w)

        def total(values, k=k):
            moved = F.copy()
            moved[k] += values[leaf]
            return np.bincount(leaf, w * loss.value(y, moved), 3)

        for side in (-0.3, -1e-3, 1e-3, 0.3):
            assert (total(best + side) >= total(best) - 1e-9).all()


@settings(max_examples=50)
@given(
    x=hnp.arrays(float, st.integers(1, 30), elements=st.integers(-5, 5)), level=st.sampled_from([0.1, 0.25, 0.5, 0.9])
)
def test_quantiles_are_numpys_and_a_weight_is_a_repetition(x, level):
    leaf = np.zeros(len(x), np.int32)
    found = quantiles_by_leaf(leaf, 1, x, None, level)[0]
    assert found == pytest.approx(np.quantile(x, level, method="averaged_inverted_cdf"))
    times = np.arange(len(x)) % 3 + 1
    repeated = np.repeat(x, times)
    weighted = quantiles_by_leaf(leaf, 1, x, times.astype(float), level)[0]
    assert weighted == pytest.approx(np.quantile(repeated, level, method="averaged_inverted_cdf"))


@given(F=hnp.arrays(float, (4, 3), elements=st.floats(-30, 30)))
def test_joint_quantiles_never_cross_whatever_the_scores(F):
    q = JointQuantiles(np.array([0.1, 0.4, 0.6, 0.9])).link.predict(F)
    assert (np.diff(q, axis=1) >= 0).all()


def test_one_joint_level_is_the_single_quantile():
    y = sample("quantile")
    joint, single = regression_loss("t", "quantile", [0.3]), regression_loss("t", "quantile", 0.3)
    F = np.random.default_rng(0).normal(size=(1, len(y)))
    np.testing.assert_allclose(joint.value(y, F), single.value(y, F))
    np.testing.assert_allclose(joint.targets.start(joint, y, None), single.targets.start(single, y, None))


def test_a_loss_of_ones_own_is_the_built_in_one():
    y = sample("softmax")
    own, built_in = CustomClasses(SoftmaxLoss(), 3), class_loss("t", "log_loss", 3)
    F = np.random.default_rng(0).normal(size=(3, len(y)))
    np.testing.assert_allclose(own.value(y, F), built_in.value(y, F))
    np.testing.assert_allclose(own.derivatives(y, F)[0], built_in.derivatives(y, F)[0], atol=1e-12)
    hinge = class_loss("t", HingeLoss(), 2)
    assert not hinge.smooth and not hinge.link.has_probability


@pytest.mark.parametrize("levels", [[0.5, 0.5], [0.9, 0.1], [0.0, 0.5], 1.0])
def test_levels_must_ascend_between_zero_and_one(levels):
    with pytest.raises(ParameterError, match="quantile must be a level > 0 and < 1"):
        regression_loss("Model", "quantile", levels)


def test_bad_targets_are_named():
    with pytest.raises(DataError, match=r"Model: loss='gamma' requires strictly positive y. The smallest target is 0"):
        regression_loss("Model", "gamma", None).targets.check("Model", np.array([0.0, 1.0]))
    with pytest.raises(DataError, match="exponential' is only suitable for a binary classification; got 3"):
        class_loss("Model", "exponential", 3)
    with pytest.raises(DataError, match="squares overflow"):
        regression_loss("Model", "squared_error", None).targets.check("Model", np.array([-1e200, 1e200]))
