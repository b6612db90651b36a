"""The checker of ID3: honest fits pass, forgeries do not."""

from dataclasses import replace

import numpy as np
import pytest

from learnable import verify
from learnable.core.errors import VerificationError
from learnable.trees import ID3Classifier

RNG = np.random.default_rng(0)
X = RNG.integers(0, 3, size=(60, 4)).astype(str)
Y = np.where((X[:, 0] == "1") & (X[:, 1] != "2"), "yes", "no")


def forged(**arrays):
    model = ID3Classifier().fit(X, Y)
    model.tree_ = replace(model.tree_, **{name: change(getattr(model.tree_, name)) for name, change in arrays.items()})
    return model


@pytest.mark.parametrize("split", ["multiway", "binary"])
@pytest.mark.parametrize("criterion", ["information_gain", "gain_ratio"])
@pytest.mark.parametrize(
    "more", [{}, {"max_depth": 1}, {"min_samples_split": 20}, {"min_gain": 0.1}, {"class_weight": "balanced"}]
)
def test_every_honest_fit_is_verified(split, criterion, more):
    noisy = np.where(RNG.random(60) < 0.2, "no", Y)
    weight = RNG.uniform(0.5, 2.0, size=60)
    model = ID3Classifier(split=split, criterion=criterion, **more).fit(X, noisy, weight)
    verdict = verify(model, X, noisy, weight)
    assert verdict, str(verdict)
    assert abs(verdict.value) <= 1e-9


@pytest.mark.parametrize(
    "change",
    [
        {"value": lambda v: v * 1.001},
        {"value": lambda v: v[:, ::-1]},
        {"feature": lambda f: np.where(f == 0, 3, f).astype(np.int32)},
        {"gain": lambda g: g * 1.001},
        {"impurity": lambda h: h + 1e-3},
        {"n_rows": lambda n: n + 1},
    ],
)
def test_a_forged_tree_is_caught(change):
    verdict = verify(forged(**change), X, Y)
    assert not verdict and verdict.value > 1e-9


def test_a_leaf_that_should_have_been_split_is_caught():
    model = ID3Classifier(max_depth=1).fit(X, Y)
    model.max_depth = None
    assert not verify(model, X, Y)


def test_swapped_labels_other_words_and_other_data_are_caught():
    model = ID3Classifier().fit(X, Y)
    assert verify(model, X, Y)
    assert not verify(model, X, np.where(Y == "yes", "no", "yes"))
    assert not verify(model, X[:-1], Y[:-1])
    assert not verify(model, np.where(X == "0", "zero", X), Y)
    model.classes_ = model.classes_[::-1]
    assert not verify(model, X, Y)
    with pytest.raises(VerificationError, match="4 features"):
        verify(model, X[:, :2], Y)
