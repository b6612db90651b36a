"""Losses by name."""

import numpy as np
import pytest

from learnable.core.errors import DataError
from learnable.ensembles.loss_names import LOSSES, flat, for_classes, n_scores, named_loss, targets_of
from learnable.risk.losses import MulticlassHingeLoss, SoftmaxLoss


def test_many_classes_have_losses_of_their_own():
    assert for_classes(named_loss("log_loss"), 3) == SoftmaxLoss()
    assert for_classes(named_loss("hinge"), 3) == MulticlassHingeLoss()
    assert n_scores(SoftmaxLoss(), 3) == 3 and n_scores(named_loss("hinge"), 2) == 1
    with pytest.raises(DataError, match="Only binary"):
        for_classes(named_loss("exponential"), 3)


def test_every_named_loss_has_a_gradient_that_its_targets_fit():
    codes = np.array([0, 1, 1])
    for loss in LOSSES.values():
        y = targets_of(loss, codes + 1 if loss == LOSSES["gamma"] else codes)
        assert loss.gradient(y, flat(np.zeros((3, 1)))).shape == (3,)
