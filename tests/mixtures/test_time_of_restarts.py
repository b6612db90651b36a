"""All restarts together keep to `max_seconds`."""

import warnings

import numpy as np
import pytest

import learnable as ln
from learnable.core.estimator import Run

X = np.random.default_rng(0).normal(size=(400, 4))
MODELS = [
    ln.KMeans(5, n_init=1000, max_seconds=60.0),
    ln.MiniBatchKMeans(5, n_init=1000, max_seconds=60.0),
    ln.GaussianMixture(5, n_init=1000, max_seconds=60.0),
    ln.VariationalGaussianMixture(5, n_init=1000, max_seconds=60.0),
    ln.GaussianHMM(3, n_init=1000, max_seconds=60.0),
]


@pytest.mark.parametrize("model", MODELS, ids=lambda m: type(m).__name__)
def test_no_restart_begins_when_the_time_is_up(model, monkeypatch):
    """The clock is set by hand: it is up at the third question, long before a thousand restarts."""
    asked = []

    def is_up(run):
        asked.append(run)
        return len(asked) > 2

    monkeypatch.setattr(Run, "should_stop", is_up)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.set_params(random_state=0).fit(X)
    assert len(asked) < 50
