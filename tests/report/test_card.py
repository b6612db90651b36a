import re
from html import unescape

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from learnable.core.registry import estimator_names, registered_class
from learnable.linear import LogisticRegression, Ridge
from learnable.report import card

pytestmark = pytest.mark.sampled(1)  # every case is a promise of its own


def plain(html):
    return unescape(re.sub(r"<[^>]*>", " ", re.sub(r"<style>.*?</style>", "", html)))


def test_only_parameters_that_differ_are_shown():
    text = plain(card(Ridge(alpha=0.5, solver="svd")))
    assert "alpha=0.5" in text and "solver='svd'" in text and "fit_intercept" not in text
    assert "not fitted" in text
    assert "defaults" in plain(card(Ridge()))


def test_a_fitted_card_says_shape_classes_and_proof():
    X = pd.DataFrame({"a": [0.0, 1.0, 2.0, 3.0], "b": [1.0, 0.0, 1.0, 0.5]})
    text = " ".join(plain(card(LogisticRegression().fit(X, ["no", "no", "<yes>", "no"]))).split())
    assert "2 columns: a, b" in text
    assert "<yes> and no" in text
    assert "solved to" in text and ": at most" in text and "proven" not in text


@pytest.mark.filterwarnings("ignore:.*stopped after")
def test_a_fit_that_stopped_early_says_so():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 5))
    model = LogisticRegression(max_iter=1, tol=1e-15, C=1e6).fit(X, X[:, 0] > rng.normal(size=200))
    assert "stopped at" in plain(card(model))


@pytest.mark.parametrize("name", estimator_names())
def test_every_estimator_has_a_card(name):
    try:
        estimator = registered_class(name)()
    except TypeError:
        estimator = registered_class(name)(Ridge())
    assert type(estimator).__name__ in card(estimator)


def test_odd_parameters_do_not_break_a_card():
    odd = Ridge(alpha=np.arange(10_000.0))
    assert len(card(odd)) < 4000
    assert "Pipeline" in card(make_pipeline(StandardScaler(), Ridge()))


def test_a_card_brings_no_colours_of_its_own():
    style = re.search(r"<style>(.*?)</style>", card(Ridge()))[1]
    assert not re.search(r"#[0-9a-f]{3,6}|(?<!s)rgb|(?<!-)color:(?!inherit)", style)
