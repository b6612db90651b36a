"""`penalty`, as scikit-learn still takes it: with its warning, and the same problem as `C` and `l1_ratio` state."""

import warnings

import numpy as np
import pytest
from sklearn import linear_model

from learnable import LogisticRegression, verify

RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 4))
Y = (X[:, 0] + RNG.logistic(size=80) > 0).astype(int)
SAME = {
    "l2": ({"penalty": "l2", "C": 0.3}, {"C": 0.3}),
    "l1": ({"penalty": "l1", "C": 0.3}, {"C": 0.3, "l1_ratio": 1.0}),
    "elastic net": ({"penalty": "elasticnet", "l1_ratio": 0.4}, {"l1_ratio": 0.4}),
    "none": ({"penalty": None}, {"C": np.inf}),
    "liblinear, l1": ({"penalty": "l1", "solver": "liblinear"}, {"l1_ratio": 1.0, "solver": "liblinear"}),
    "l1_ratio None": ({"l1_ratio": None}, {}),
}


@pytest.mark.parametrize("name", SAME)
def test_old_spellings_state_the_same_problem(name):
    old, new = SAME[name]
    with pytest.warns(FutureWarning, match="deprecated in version 1.8"):
        model = LogisticRegression(**old).fit(X, Y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.array_equal(model.coef_, LogisticRegression(**new).fit(X, Y).coef_)
        assert verify(model, X, Y)
    model.coef_ = model.coef_ * 1.001
    assert not verify(model, X, Y)


@pytest.mark.parametrize("old", [{"penalty": "l2"}, {"l1_ratio": None}, {"penalty": None, "C": 2.0}])
def test_the_warnings_are_those_of_scikit_learn(old):
    said = []
    for cls in (LogisticRegression, linear_model.LogisticRegression):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            cls(**old).fit(X, Y)
        said.append({(str(w.message), w.category) for w in caught})
    assert said[0] == said[1]


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize(
    "wrong, words",
    [
        ({"penalty": None, "solver": "liblinear"}, "penalty=None is not supported for the liblinear solver"),
        ({"C": np.inf, "solver": "liblinear"}, "penalty=None is not supported for the liblinear solver"),
        ({"penalty": "elasticnet", "l1_ratio": None}, "l1_ratio must be specified"),
    ],
)
def test_contradictions_are_refused(wrong, words):
    with pytest.raises(ValueError, match=words):
        LogisticRegression(**wrong).fit(X, Y)
