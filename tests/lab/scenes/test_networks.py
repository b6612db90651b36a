"""Back-propagation: the loss falls, and the certificate is the largest entry of the gradient that is drawn."""

import numpy as np
import pytest

from learnable.lab import SCENES


def test_the_loss_falls_and_the_certificate_is_the_gradient():
    steps = SCENES["backprop"].steps(n_units=3)
    loss = np.array([step.numbers["loss"] for step in steps])
    assert (np.diff(loss) <= 0).all() and loss[-1] < 0.5 * loss[0]
    for step in steps:
        assert step.certificates["model"].value == pytest.approx(step.numbers["largest gradient"], rel=1e-6)
