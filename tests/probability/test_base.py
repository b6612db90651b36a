"""What all distributions share: immutability, shapes, texts, errors, reproducible samples."""

import copy
import pickle

import numpy as np
import pytest

from learnable.core.errors import ParameterError
from learnable.probability import Normal, StudentT

MANY = [Normal([0.0, 1.0, 2.0], 0.5), StudentT(3.0, [0.0, 1.0, 2.0], 0.5)]
ONE = [Normal(1.0, 0.5), StudentT(3.0, 1.0, 0.5)]


@pytest.mark.parametrize("distribution", [*ONE, *MANY], ids=repr)
def test_nothing_can_be_changed(distribution):
    for name in ("mean", "scale", "anything"):
        with pytest.raises(AttributeError, match=f"{type(distribution).__name__} is immutable"):
            setattr(distribution, name, 3.0)
    with pytest.raises(TypeError):
        distribution.parameters["mean"] = 3.0


def test_parameters_are_copies_and_read_only():
    mean = np.array([0.0, 1.0])
    distribution = Normal(mean)
    mean[0] = 7.0
    assert distribution.mean[0] == 0.0
    with pytest.raises(ValueError, match="read-only"):
        distribution.mean[0] = 7.0


@pytest.mark.parametrize("distribution", MANY, ids=repr)
def test_parameters_broadcast_and_results_have_their_shape(distribution):
    assert distribution.batch_shape == (3,)
    for member in (distribution.mean, distribution.std, distribution.variance, distribution.entropy()):
        assert member.shape == (3,)
    for method in (distribution.logpdf, distribution.pdf, distribution.cdf, distribution.quantile):
        assert method(0.5).shape == (3,)
        assert method(np.full((4, 1), 0.5)).shape == (4, 3)
    lower, upper = distribution.interval(0.9)
    assert lower.shape == upper.shape == (3,)


@pytest.mark.parametrize("distribution", ONE, ids=repr)
def test_scalars_stay_scalars(distribution):
    assert distribution.batch_shape == ()
    members = [
        distribution.mean,
        distribution.std,
        distribution.variance,
        distribution.entropy(),
        *distribution.interval(),
    ]
    calls = [method(0.5) for method in (distribution.logpdf, distribution.pdf, distribution.cdf, distribution.quantile)]
    for result in (*members, *calls, distribution.sample()):
        assert np.shape(result) == () and isinstance(result, float)


@pytest.mark.parametrize("many, one", list(zip(MANY, ONE, strict=True)), ids=repr)
def test_an_array_of_distributions_equals_its_members(many, one):
    x = 0.3
    assert many.logpdf(x)[1] == one.logpdf(x)
    assert many.cdf(x)[1] == one.cdf(x)
    assert many.quantile(x)[1] == one.quantile(x)
    assert many.interval(0.8)[0][1] == one.interval(0.8)[0]


@pytest.mark.parametrize("distribution", [*ONE, *MANY], ids=repr)
def test_samples_have_their_shape_and_their_seed(distribution):
    assert distribution.sample(5, random_state=0).shape == (5, *distribution.batch_shape)
    assert distribution.sample((2, 4), random_state=0).shape == (2, 4, *distribution.batch_shape)
    assert np.array_equal(distribution.sample(5, random_state=0), distribution.sample(5, random_state=0))
    assert not np.array_equal(distribution.sample(5, random_state=0), distribution.sample(5, random_state=1))
    generator = np.random.default_rng(0)
    first, second = distribution.sample(5, generator), distribution.sample(5, generator)
    assert not np.array_equal(first, second)


@pytest.mark.parametrize("distribution", [*ONE, *MANY], ids=repr)
def test_copies_and_pickles_are_equal(distribution):
    for twin in (copy.deepcopy(distribution), pickle.loads(pickle.dumps(distribution))):
        assert np.array_equal(twin.logpdf(0.3), distribution.logpdf(0.3))
        assert repr(twin) == repr(distribution)


@pytest.mark.parametrize("distribution", [*ONE, *MANY], ids=repr)
def test_parameters_rebuild_the_distribution(distribution):
    twin = type(distribution)(**distribution.parameters)
    assert np.array_equal(twin.cdf(0.3), distribution.cdf(0.3))


def test_texts_are_short():
    assert repr(Normal(0, 1)) == "Normal(mean=0.0, std=1.0)"
    assert repr(StudentT(4, [1, 2])) == "StudentT(df=[4., 4.], loc=[1., 2.], scale=[1., 1.])"
    assert repr(Normal(np.arange(1000))) == "Normal(mean=[  0.,   1., ..., 998., 999.], std=[1., 1., ..., 1., 1.])"
    assert repr(Normal(np.zeros((20, 30)))) == "Normal(mean=<array of shape (20, 30)>, std=<array of shape (20, 30)>)"


@pytest.mark.threaded
@pytest.mark.parametrize("distribution", [*ONE, *MANY], ids=repr)
def test_entropy_in_bits(distribution):
    np.testing.assert_allclose(distribution.entropy(base=2), distribution.entropy() / np.log(2), rtol=1e-15)
    with pytest.raises(ParameterError, match=r"base must be > 1, got 1\.0"):
        distribution.entropy(base=1.0)


@pytest.mark.parametrize("distribution", [*ONE, *MANY], ids=repr)
def test_ends_of_probabilities(distribution):
    assert np.all(distribution.quantile(0.0) == -np.inf)
    assert np.all(distribution.quantile(1.0) == np.inf)
    lower, upper = distribution.interval(0.0)
    np.testing.assert_allclose(lower, distribution.quantile(0.5), rtol=1e-15)
    np.testing.assert_allclose(upper, distribution.quantile(0.5), rtol=1e-15)
    lower, upper = distribution.interval(1.0)
    assert np.all(lower == -np.inf) and np.all(upper == np.inf)


@pytest.mark.parametrize("distribution", [*ONE, *MANY], ids=repr)
@pytest.mark.parametrize("bad", [-0.1, 1.1, np.nan])
def test_bad_probabilities(distribution, bad):
    family = type(distribution).__name__
    with pytest.raises(ParameterError, match=rf"{family}: p must be in \[0, 1\], got"):
        distribution.quantile([0.5, bad])
    with pytest.raises(ParameterError, match=rf"{family}: level must be in \[0, 1\], got"):
        distribution.interval(bad)


def test_shapes_that_do_not_broadcast():
    with pytest.raises(ParameterError, match=r"Normal: parameters .* got mean \(2,\), std \(3,\)"):
        Normal([0.0, 1.0], [1.0, 1.0, 1.0])
