"""What all linear models share: the weights of classes."""

import numpy as np
import pytest

import learnable as ln
from learnable.core.errors import ParameterError

X, y = np.arange(8.0)[:, None], np.array(["a", "b"] * 4)


@pytest.mark.parametrize("model", [ln.LogisticRegression, ln.LinearSVC, ln.SVC], ids=lambda model: model.__name__)
def test_weights_must_name_the_classes(model):
    """As in scikit-learn: a wrong name is caught where a class has no weight; names of absent classes are fine else."""
    with pytest.raises(ParameterError, match=r"class_weight must name the classes of y; got 'B'.*nothing for 'b'"):
        model(class_weight={"a": 2.0, "B": 1.0}).fit(X, y)
    some = model(class_weight={"a": 2.0}).fit(X, y).decision_function(X)
    more = model(class_weight={"a": 2.0, "b": 1.0, "c": 9.0}).fit(X, y).decision_function(X)
    np.testing.assert_array_equal(some, more)
