"""Topics of counts on Dask: the variational bound climbs as in memory, from sums of the partitions."""

import dask
import dask.array as da
import numpy as np
import pytest

from learnable import verify
from learnable.core.errors import DataError
from learnable.topics import LatentDirichletAllocation

RNG = np.random.default_rng(0)
TOPICS = RNG.dirichlet(np.full(12, 0.2), size=3)
X = np.array([RNG.multinomial(40, RNG.dirichlet(np.full(3, 0.3)) @ TOPICS) for _ in range(60)]).astype(float)


@pytest.fixture(autouse=True)
def one_after_the_other():
    with dask.config.set(scheduler="synchronous"):
        yield


@pytest.mark.parametrize("height", [60, 25, 7])
def test_topics_on_dask_are_those_of_memory(height):
    settings = {"n_components": 3, "learning_method": "batch", "max_iter": 200, "tol": 1e-5, "random_state": 0}
    wanted = LatentDirichletAllocation(**settings).fit(X)
    found = LatentDirichletAllocation(**settings).fit(da.from_array(X, chunks=(height, 12)))
    np.testing.assert_allclose(found.components_, wanted.components_, rtol=1e-8)
    np.testing.assert_allclose(found.doc_topic_, wanted.doc_topic_, rtol=1e-8)
    np.testing.assert_allclose(found.history_, wanted.history_, rtol=1e-10)
    assert found.n_iter_ == wanted.n_iter_
    assert found.bound_ == pytest.approx(wanted.bound_, rel=1e-10)
    assert found.certificate_.fingerprint == wanted.certificate_.fingerprint
    assert (np.diff(found.history_) >= 0).all()
    assert verify(found, X)


@pytest.mark.parametrize("settings", [{}, {"method": "ml"}, {"learning_method": "online"}], ids=str)
def test_what_cannot_be_merged_is_refused(settings):
    with pytest.raises(DataError, match="needs the counts in memory"):
        LatentDirichletAllocation(3, **settings).fit(da.from_array(X, chunks=(25, 12)))


def test_counts_below_zero_are_told():
    bad = X.copy()
    bad[30, 3] = -1.0
    with pytest.raises(DataError, match="partition 1 holds negative values"):
        LatentDirichletAllocation(3, method="variational").fit(da.from_array(bad, chunks=(25, 12)))
