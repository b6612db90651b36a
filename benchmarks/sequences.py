"""Hidden Markov models against hmmlearn, with its quicker implementation ("scaling"), from the same start.

A fit takes ten steps from given parameters; the quality is −log p(x) of the fitted parameters, by one function for all
contenders (`score`, whose recursion the tests compare with the enumeration of all paths). Decoding is judged by
−log p(x, z) of the path, computed here.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from .harness import OURS, Row

HMMLEARN = "hmmlearn"
MODULES = {OURS: "learnable.sequences", HMMLEARN: "hmmlearn.hmm"}


class Data(NamedTuple):
    cls: str
    start: dict[str, np.ndarray]  #: attributes that a climb starts from
    X: np.ndarray
    lengths: list[int]


def build(library: str, data: Data, **parameters: Any) -> Any:
    """Return an unfitted model that has the start's attributes."""
    more = {} if library == OURS else {"implementation": "scaling"}
    model = getattr(import_module(MODULES[library]), data.cls)(
        len(data.start["startprob_"]), init_params="", **more, **parameters
    )
    for name, values in data.start.items():
        setattr(model, name, values.copy())
    return model


def fitter(library: str) -> Callable[[Data], Any]:
    """Return the function that takes ten steps."""

    def fit(data: Data) -> Any:
        tolerance = 0.0 if library == OURS else -np.inf
        return build(library, data, n_iter=10, tol=tolerance).fit(data.X, data.lengths)

    return fit


def decoder(library: str) -> Callable[[Data], Any]:
    """Return the function that finds the best path of the start's parameters."""

    def decode(data: Data) -> SimpleNamespace:
        return SimpleNamespace(states=build(library, data).decode(data.X, data.lengths)[1])

    return decode


def negative_log_likelihood(model: Any, data: Data) -> dict[str, float]:
    """Return −log p(x) under the fitted parameters."""
    fitted = {name: getattr(model, name) for name in data.start}
    if data.cls == "GaussianHMM" and np.ndim(fitted["covars_"]) == 3:  # hmmlearn shows full matrices
        fitted["covars_"] = np.array([np.diag(matrix) for matrix in fitted["covars_"]])
    return {"objective": -float(build(OURS, data._replace(start=fitted)).score(data.X, data.lengths))}


def path_cost(found: Any, data: Data) -> dict[str, float]:
    """Return −log p(x, z) of a path of a Gaussian model."""
    z, start = found.states, data.start
    mean, variance = start["means_"][z], start["covars_"][z]
    total = -0.5 * (np.log(2 * np.pi * variance) + (data.X - mean) ** 2 / variance).sum()
    first = np.cumsum([0, *data.lengths[:-1]])
    inner = np.setdiff1d(np.arange(len(z)), first)
    total += np.log(start["startprob_"][z[first]]).sum() + np.log(start["transmat_"][z[inner - 1], z[inner]]).sum()
    return {"objective": -float(total)}


def gaussian(T: int, size: int) -> Callable[[bool], Data]:
    """Return T rows of four columns from ten states, in sequences of a size."""

    def make(quick: bool) -> Data:
        rng, K = np.random.default_rng(0), 10
        n = T // 50 if quick else T
        one = min(size, n)
        truth = {
            "startprob_": np.full(K, 1 / K),
            "transmat_": 0.5 * np.eye(K) + 0.5 * rng.dirichlet(np.ones(K), K),
            "means_": 2 * rng.normal(size=(K, 4)),
            "covars_": np.ones((K, 4)),
        }
        data = Data("GaussianHMM", truth, np.empty((0, 4)), [one] * (n // one))
        X = build(OURS, data).sample(one * (n // one), random_state=0)[0]
        return data._replace(X=X, start={**truth, "means_": truth["means_"] + 0.3 * rng.normal(size=(K, 4))})

    return make


def symbols(T: int) -> Callable[[bool], Data]:
    """Return T of thirty symbols from twenty states."""

    def make(quick: bool) -> Data:
        rng, K = np.random.default_rng(0), 20
        n = T // 50 if quick else T
        truth = {
            "startprob_": np.full(K, 1 / K),
            "transmat_": 0.5 * np.eye(K) + 0.5 * rng.dirichlet(np.ones(K), K),
            "emissionprob_": rng.dirichlet(np.full(30, 0.5), K),
        }
        data = Data("CategoricalHMM", truth, np.empty((0, 1)), [n])
        X = build(OURS, data).sample(n, random_state=0)[0]
        near = truth["emissionprob_"] + rng.random((K, 30)) / 60
        return data._replace(X=X, start={**truth, "emissionprob_": near / near.sum(axis=1, keepdims=True)})

    return make


def row(name: str, job: str, size: str, make: Callable[[bool], Data]) -> Row:
    return Row(
        name,
        job,
        size,
        make,
        {lib: fitter(lib) for lib in MODULES},
        negative_log_likelihood,
        {HMMLEARN: 5.0},
        tolerance=1e-7,
        same_steps=True,
    )


ROWS = [
    row("hmm_gaussian", "GaussianHMM, diagonal, ten steps", "K = 10, T = 200,000 × 4", gaussian(200_000, 200_000)),
    row("hmm_gaussian_many", "GaussianHMM, diagonal, ten steps", "K = 10, 1,000 × 200 × 4", gaussian(200_000, 200)),
    row("hmm_categorical", "CategoricalHMM, ten steps", "K = 20, T = 1,000,000", symbols(1_000_000)),
    Row(
        "hmm_viterbi",
        "the best path of a GaussianHMM",
        "K = 10, T = 200,000 × 4",
        gaussian(200_000, 200_000),
        {lib: decoder(lib) for lib in MODULES},
        path_cost,
        {HMMLEARN: 5.0},
    ),
]
