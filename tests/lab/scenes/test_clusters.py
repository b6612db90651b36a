"""k-means and EM in scenes: the models' own numbers, and the laws that they obey."""

import warnings

import numpy as np
import pytest

from learnable import GaussianMixture
from learnable.lab import SCENES
from learnable.lab.tables import old_faithful


def test_inertia_never_rises_and_the_last_step_is_at_rest():
    steps = SCENES["kmeans"].steps()
    inertia = np.array([step.numbers["inertia"] for step in steps])
    assert (np.diff(inertia) <= 1e-9 * inertia[0]).all() and len(inertia) > 4
    assert steps[-1].certificates["model"].holds
    assert not steps[0].certificates["model"].holds


def test_the_log_likelihood_never_falls_and_is_that_of_the_model():
    X, _, start = SCENES["em"].read()
    steps = SCENES["em"].steps()
    reached = np.array([step.numbers["log-likelihood"] for step in steps])
    assert (np.diff(reached) > 0).all()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = GaussianMixture(2, tol=1e-6, max_iter=len(steps), **start).fit(X)
    assert reached[-1] == pytest.approx(model.score_samples(X).sum(), rel=1e-5)
    assert steps[-1].certificates["model"].value == model.certificate_.value


def test_the_built_in_table_is_old_faithful():
    rows = old_faithful()
    assert rows.shape == (272, 2)
    np.testing.assert_allclose(rows.mean(axis=0), [3.487783, 70.897059], atol=1e-6)  # R, datasets::faithful
    assert rows[0].tolist() == [3.6, 79.0] and rows[-1].tolist() == [4.467, 74.0]
