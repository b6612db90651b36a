"""Diffusion maps: the circle, diffusion distances, density taken out, new rows, the checker."""

import numpy as np
import pytest

from learnable import load, save, verify
from learnable.core.errors import DataError
from learnable.manifold import DiffusionMaps

X = np.random.default_rng(0).normal(size=(40, 3))


def circle(n, uneven=0.0):
    angle = 2 * np.pi * np.arange(n) / n
    angle = angle + uneven * np.sin(angle)
    return np.column_stack([np.cos(angle), np.sin(angle)])


@pytest.mark.parametrize("uneven", [0.0, 0.5])
def test_the_generator_of_a_circle_has_squares_as_eigenvalues(uneven):
    model = DiffusionMaps(6, epsilon=0.005, alpha=1.0).fit(circle(800, uneven))
    speed = -np.log(model.eigenvalues_)
    np.testing.assert_allclose(speed / speed[:2].mean(), [1, 1, 4, 4, 9, 9], rtol=0.02)


def test_with_all_coordinates_distances_are_those_of_the_walk():
    t = 2
    model = DiffusionMaps(39, time=t, epsilon=2.0, alpha=0.5).fit(X)
    K = np.exp(-((X[:, None] - X) ** 2).sum(axis=2) / 2.0)
    q = K.sum(axis=1)
    K = K / np.sqrt(np.outer(q, q))
    d = K.sum(axis=1)
    P = np.linalg.matrix_power(K / d[:, None], t)
    law = d / d.sum()
    walk = ((P[:, None] - P) ** 2 / law).sum(axis=2)
    shown = ((model.embedding_[:, None] - model.embedding_) ** 2).sum(axis=2)
    np.testing.assert_allclose(shown, walk, atol=1e-9)
    np.testing.assert_allclose(law @ model.embedding_, 0.0, atol=1e-9)


@pytest.mark.parametrize("settings", [{}, {"alpha": 0.0, "time": 3}, {"epsilon": 1.0, "time": 0}], ids=str)
def test_rows_of_the_fit_keep_their_coordinates(settings):
    model = DiffusionMaps(3, **settings).fit(X)
    assert verify(model, X)
    np.testing.assert_allclose(model.transform(X), model.embedding_, atol=1e-9)
    new = np.random.default_rng(1).normal(size=(5, 3))
    np.testing.assert_allclose(model.transform(new)[2:3], model.transform(new[2:3]), atol=1e-12)
    assert np.isfinite(model.transform(1e6 * new)).all()


def test_hard_tables_end_well(tmp_path):
    twice = np.vstack([X, X])
    model = DiffusionMaps().fit(twice)
    np.testing.assert_allclose(model.embedding_[:40], model.embedding_[40:], atol=1e-9)
    assert verify(model, twice)
    assert np.isfinite(DiffusionMaps().fit(np.ones((5, 2))).embedding_).all()
    with pytest.raises(DataError, match="n_samples = 1"):
        DiffusionMaps().fit(X[:1])
    save(model, tmp_path / "map.safetensors")
    assert load(tmp_path / "map.safetensors").transform(X).tobytes() == model.transform(X).tobytes()
