"""The lasso's scene: what the text claims of the bars is the condition of the optimum."""

import numpy as np

from learnable import Lasso
from learnable.lab import SCENES


def test_columns_in_the_model_are_at_the_border_and_no_other_is_beyond():
    X, y, names = SCENES["lasso"].read()
    steps = SCENES["lasso"].steps(n_steps=5)
    assert len(names) == 10 and steps[0].numbers["columns in the model"] == 0
    assert steps[-1].numbers["columns in the model"] > 5
    for step in steps[1:]:
        model = eval(step.code.removeprefix("model = "), {"Lasso": Lasso, "X": X, "y": y})
        pull = np.abs(X.T @ (y - X @ model.coef_)) / len(y)
        active = model.coef_ != 0
        assert active.sum() == step.numbers["columns in the model"]
        np.testing.assert_allclose(pull[active], model.alpha, rtol=1e-4)
        assert (pull <= model.alpha * (1 + 1e-4)).all()
        assert step.certificates["model"].holds
