"""k-means over partitions: the same bits whatever is remembered, and however the rows are cut."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from tests.scale.faults import cluster_of, on_dask

from learnable import KMeans
from learnable.data import dask_kept, dask_posts
from learnable.data.blocks import Block
from learnable.data.memory import remembering
from learnable.mixtures.lloyd_parts import PartLloyd, move_rows
from learnable.mixtures.spaces import Space

RNG = np.random.default_rng(0)
CENTRES = RNG.normal(size=(5, 3)) * 2
X = CENTRES[RNG.integers(5, size=900)] + RNG.normal(size=(900, 3)) + 100.0
WEIGHT = RNG.uniform(0.1, 3.0, size=900)


class Cut:
    """Rows that somebody else has cut."""

    n_rows = len(X)

    def by_partition(self):
        return self


def problem(weight=None):
    mean = X.mean(axis=0)
    w = np.ones(len(X)) if weight is None else weight
    reach = float(np.abs(w[:, None] * (X - mean)).max())
    found = PartLloyd(Space(None, Cut(), None, 1.0, mean, 1.0, 1.0, False, reach, float(w.max())), 5)
    found.begin(True)
    return found


def pieces(n_parts, weight=None):
    ends = np.linspace(0, len(X), n_parts + 1).astype(int)
    spans = [slice(a, b) for a, b in pairwise(ends)]
    return [Block(X[own], None, None if weight is None else weight[own], own.start) for own in spans]


def climbed(n_parts, weight=None, remembers=True, n_steps=12):
    """Return the centres after some steps; without a memory, every step begins from nothing."""
    found = problem(weight)
    memories = [{} for _ in range(n_parts)]
    centres = X[:5].copy()
    for _ in range(n_steps):
        total = 0
        for block, memory in zip(pieces(n_parts, weight), memories, strict=True):
            with remembering(memory if remembers else {}):
                total = total + found.expectation(block, centres)[0][0]
        centres = found.maximisation((total,), centres)
    return centres


@pytest.mark.parametrize("weight", [None, WEIGHT])
def test_what_is_remembered_and_how_rows_are_cut_changes_no_bit(weight):
    expected = climbed(1, weight)
    for n_parts, remembers in ((1, False), (3, True), (7, False)):
        assert climbed(n_parts, weight, remembers).tobytes() == expected.tobytes()


@pytest.mark.parametrize("weight", [None, WEIGHT])
def test_steps_are_those_of_plain_lloyd(weight):
    centres = X[:5].copy()
    w = np.ones(len(X)) if weight is None else weight
    for _ in range(12):
        labels = ((X[:, None] - centres) ** 2).sum(axis=2).argmin(axis=1)
        centres = np.array([np.average(X[labels == k], axis=0, weights=w[labels == k]) for k in range(5)])
    np.testing.assert_allclose(climbed(3, weight), centres, rtol=1e-14)


def test_halves_are_the_rounded_numbers_and_follow_the_labels():
    """The twin adds whole numbers of Python."""
    origin = X.mean(axis=0)
    scale = 2.0**20
    before = np.full(len(X), -1, np.int32)
    after = RNG.integers(4, size=len(X)).astype(np.int32)
    limbs = np.zeros((4, 2, 4), np.int64)
    move_rows(X, before, after, WEIGHT, origin, scale, 2.0**24, limbs)
    again = RNG.integers(4, size=len(X)).astype(np.int32)
    move_rows(X, after, again, WEIGHT, origin, scale, 2.0**24, limbs)
    values = np.column_stack([WEIGHT[:, None] * (X - origin) * scale, WEIGHT * 2.0**24])
    for k in range(4):
        for j in range(4):
            expected = sum(round(Fraction(float(v)) * 2**30) for v in values[again == k, j])
            assert int(limbs[k, 0, j]) * 2**30 + int(limbs[k, 1, j]) == expected


def test_a_cluster_in_which_no_row_is_left_gets_the_farthest_row():
    start = np.vstack([X[:3], [[1e4, 1e4, 1e4]], X[4]])
    with cluster_of(2):
        found = KMeans(5, init=start, n_init=1).fit(on_dask(X, 4))
    expected = KMeans(5, init=start, n_init=1).fit(X)
    np.testing.assert_allclose(found.cluster_centers_, expected.cluster_centers_, rtol=1e-12)
    assert np.array_equal(found.labels_, expected.labels_) and len(np.unique(found.labels_)) == 5


def test_on_a_cluster_kept_rows_posts_and_several_starts_change_no_bit(monkeypatch):
    expected = KMeans(5, n_init=2, random_state=0).fit(X)
    found = []
    with cluster_of(2):
        for least, share in ((0, 0.5), (2**40, 0.5), (0, 0.0)):
            monkeypatch.setattr(dask_posts, "LEAST_BYTES", least)
            monkeypatch.setattr(dask_kept, "_SHARE", share)
            found.append(KMeans(5, n_init=2, random_state=0).fit(on_dask(X, 4)))
    for model in found:
        assert model.cluster_centers_.tobytes() == found[0].cluster_centers_.tobytes()
        assert model.inertia_ == found[0].inertia_ and model.n_iter_ == found[0].n_iter_
        assert np.array_equal(model.labels_, found[0].labels_)
        assert model.certificate_.holds
    np.testing.assert_allclose(found[0].cluster_centers_, expected.cluster_centers_, rtol=1e-12)
    assert np.array_equal(found[0].labels_, expected.labels_)
