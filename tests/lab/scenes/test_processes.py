"""A Gaussian process: with the kernel fixed, no observation makes any function value less certain."""

import numpy as np

from learnable.lab import SCENES


def test_observations_only_add_certainty():
    steps = SCENES["gp"].steps(n_points=6)
    spread = np.array([step.numbers["mean sd"] for step in steps])
    assert spread[0] == 1.0 and (np.diff(spread[:-1]) < 0).all()  # the last step chooses another kernel
    assert steps[0].note and not steps[0].certificates
    assert {step.certificates["model"].kind for step in steps[1:-1]} == {"closed-form"}
    assert steps[-1].certificates["model"].kind == "stationarity"
    assert steps[-1].numbers["log p(y)"] > steps[-2].numbers["log p(y)"]
