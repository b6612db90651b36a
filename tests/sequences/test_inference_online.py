"""Filtering one observation at a time is filtering all of them."""

import numpy as np
import pytest
from tests.sequences.models import KINDS, given, holes

from learnable import CategoricalHMM
from learnable.core.errors import DataError


@pytest.mark.parametrize("kind", KINDS)
def test_online_is_batch(kind):
    model = given(kind)
    X = holes(model.sample(40, random_state=0)[0])
    online = model.online()
    steps = np.array([online.update(x) for x in X])
    np.testing.assert_allclose(steps, model.filter_proba(X), atol=1e-11)
    assert online.log_likelihood == pytest.approx(model.score(X), rel=1e-11)
    np.testing.assert_allclose(online.predict(3), model.predict_ahead(X, steps=3)[0, -1], atol=1e-11)
    assert online.n_seen == 40
    online.reset()
    np.testing.assert_allclose(online.update(X[0]), steps[0], rtol=1e-12)


def test_the_impossible_is_refused():
    model = CategoricalHMM(2)
    model.startprob_, model.transmat_, model.emissionprob_ = np.array([1.0, 0.0]), np.eye(2), np.eye(2)
    with pytest.raises(DataError, match="impossible"):
        model.online().update([1])
