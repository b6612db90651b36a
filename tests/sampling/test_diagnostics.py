"""R-hat, effective sample sizes and Monte Carlo errors: reference numbers, laws, damaged input."""

import gzip

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from learnable.core.errors import DataError
from learnable.sampling import _diagnostics_kernels as kernels
from learnable.sampling import (
    autocorrelation,
    ebfmi,
    ess_bulk,
    ess_mean,
    ess_quantile,
    ess_sd,
    ess_tail,
    mcse_mean,
    mcse_quantile,
    mcse_sd,
    rhat,
)
from learnable.sampling import diagnostics as dg


@pytest.fixture(scope="module")
def blocker(reference_data):
    """Chains of Stan's blocker example and their diagnostics by the R package posterior."""
    with gzip.open(reference_data / "mcmc" / "blocker_draws.csv.gz", "rt") as file:
        names = file.readline().strip().split(",")
        rows = np.loadtxt(file, delimiter=",")
    columns = {name: rows[:, j] for j, name in enumerate(names)}
    chains = {}
    for name, values in columns.items():
        chains[name] = np.stack([values[columns["chain"] == c] for c in np.unique(columns["chain"])])
    with open(reference_data / "mcmc" / "blocker_reference_diagnostics.csv") as file:
        header = [word.strip('"') for word in file.readline().strip().split(",")]
        table = {}
        for line in file:
            name, *numbers = line.strip().split(",")
            table[name.strip('"')] = dict(zip(header[1:], map(float, numbers), strict=True))
    return chains, table


MEASURES = {
    "rhat_rank": rhat,
    "ess_bulk": ess_bulk,
    "ess_tail": ess_tail,
    "ess_mean": ess_mean,
    "ess_sd": ess_sd,
    "ess_median": lambda x: ess_quantile(x, 0.5),
    "ess_quantile01": lambda x: ess_quantile(x, 0.01),
    "ess_quantile10": lambda x: ess_quantile(x, 0.1),
    "ess_quantile30": lambda x: ess_quantile(x, 0.3),
    "mcse_mean": mcse_mean,
    "mcse_sd": mcse_sd,
    "mcse_median": lambda x: mcse_quantile(x, 0.5),
    "mcse_quantile01": lambda x: mcse_quantile(x, 0.01),
    "mcse_quantile10": lambda x: mcse_quantile(x, 0.1),
    "mcse_quantile30": lambda x: mcse_quantile(x, 0.3),
}


@pytest.mark.parametrize("measure", MEASURES)
def test_blocker_chains_have_the_numbers_of_posterior(blocker, measure):
    chains, table = blocker
    names = list(table)
    draws = np.stack([chains[name] for name in names], axis=2)
    found = MEASURES[measure](draws)
    np.testing.assert_allclose(found, [table[name][measure] for name in names], rtol=1e-8, atol=1e-10)


def test_the_same_bits_for_any_number_of_jobs():
    x = np.random.default_rng(0).normal(size=(4, 101, 19)).cumsum(axis=1)
    together = dg.convergence(x, n_jobs=2)
    for found, again, measure in zip(together, dg.convergence(x, n_jobs=1), (rhat, ess_bulk, ess_tail), strict=True):
        np.testing.assert_array_equal(found, again)
        np.testing.assert_array_equal(measure(x, n_jobs=2), measure(x, n_jobs=1))
        np.testing.assert_allclose(found, [measure(x[:, :, j]) for j in range(19)], rtol=1e-12)


@pytest.mark.parametrize("n", [4, 5, 7, 50, 301, 1000])
@pytest.mark.parametrize("n_chains", [1, 3])
def test_the_kernel_gives_what_its_numpy_twins_give(n, n_chains):
    """Draws with and without ties, at one place, apart, with one that is not finite, far from zero, or far from one."""
    rng = np.random.default_rng(n)
    x = rng.normal(size=(n_chains, n, 10))
    x[:, :, 1] = np.round(x[:, :, 1])
    x[:, :, 2] = 3.0
    x[:, :, 3] = np.arange(n_chains)[:, None]
    x[0, 1, 4] = np.inf
    x[0, 0, 5] = np.nan
    x[:, :, 6] += 1e9
    x[:, :, 7] = x[:, :, 7] > 1.5
    x[:, :, 8] = np.abs(x[:, :, 8]).cumsum(axis=1)
    x[0, 0, 9] = -1e15
    for found, measure in zip(dg.convergence(x), (rhat, ess_bulk, ess_tail), strict=True):
        np.testing.assert_allclose(found, measure(x), rtol=1e-9)


@given(arrays(np.float64, st.integers(1, 60), elements=st.floats(-1e300, 1e300)), st.floats(0, 1e9))
def test_places_by_digits_are_in_order(x, offset):
    x = x + offset
    S = len(x)
    scratch, found, places = np.empty(S), np.zeros(1, dtype=np.int64), np.empty((2, S), dtype=np.int64)
    kernels.sort_all(x[None], scratch, scratch.view(np.uint64), places, np.empty(3 * kernels.DIGITS, np.int64), found)
    if found[0]:
        np.testing.assert_array_equal(x[places[0]], np.sort(x))
        np.testing.assert_array_equal(np.sort(places[0]), np.arange(S))


@pytest.mark.parametrize("phi", [-0.5, 0.0, 0.6, 0.9])
def test_effective_size_of_an_autoregression(phi):
    rng = np.random.default_rng(1)
    n = 20_000
    noise = rng.normal(size=(4, n))
    x = np.empty_like(noise)
    x[:, 0] = noise[:, 0] / np.sqrt(1 - phi**2)
    for t in range(1, n):
        x[:, t] = phi * x[:, t - 1] + noise[:, t]
    expected = 4 * n * (1 - phi) / (1 + phi)
    assert abs(ess_mean(x) / expected - 1) < 0.08
    np.testing.assert_allclose(autocorrelation(x, 3).mean(axis=0), phi ** np.arange(4), atol=0.03)


def test_ranks_make_it_blind_to_monotone_maps_and_see_chains_apart():
    x = np.random.default_rng(2).normal(size=(4, 500))
    assert ess_bulk(np.exp(5 * x)) == ess_bulk(x)
    assert ess_tail(np.exp(5 * x)) == ess_tail(x)
    assert rhat(x) < 1.01
    assert rhat(x + np.arange(4)[:, None]) > 1.3
    assert rhat(x * np.array([1, 1, 1, 4])[:, None]) > 1.05  # the same mean, another spread: found by folding


def test_what_never_moves_or_is_not_finite_has_no_diagnostics():
    x = np.random.default_rng(3).normal(size=(3, 50, 3))
    x[:, :, 0] = 2.0
    x[1, 7, 1] = np.nan
    for measure in (rhat, ess_bulk, ess_tail):
        found = measure(x)
        assert np.isnan(found[:2]).all() and np.isfinite(found[2])
    stuck = np.repeat(np.arange(4.0)[:, None], 50, axis=1)
    assert rhat(stuck) == np.inf


def test_energy_that_a_momentum_draw_bridges():
    rng = np.random.default_rng(4)
    independent = rng.normal(size=(2, 4000))
    np.testing.assert_allclose(ebfmi(independent), 2.0, rtol=0.1)
    assert (ebfmi(independent.cumsum(axis=1)) < 0.1).all()


def test_damaged_input_is_refused():
    with pytest.raises(DataError, match=r"rhat: draws must be .* got shape \(5,\)"):
        rhat(np.zeros(5))
    with pytest.raises(DataError, match="probability must lie between 0 and 1; got 1"):
        ess_quantile(np.zeros((2, 9)), 1)
    with pytest.raises(DataError, match="ebfmi"):
        ebfmi(np.zeros(4))


@pytest.mark.parametrize(("phi", "n"), [(0.0, 300), (0.9, 300), (-0.6, 301), (0.5, 9), (0.5, 7), (0.995, 300)])
def test_lags_one_by_one_give_what_fourier_transforms_give(phi, n):
    rng = np.random.default_rng(3)
    x = rng.normal(size=(5, 4, n))
    for t in range(1, n):
        x[:, :, t] += phi * x[:, :, t - 1]
    x[1] += 1e6
    halves = dg._split(x)
    tau = np.empty(5)
    dg.initial_times(halves, n, np.empty(halves.shape[1:]), tau)
    wanted = dg._times_by_fourier(halves)
    np.testing.assert_allclose(tau, wanted, rtol=1e-8, atol=1e-8)
    few = np.empty(5)
    dg.initial_times(halves, 6, np.empty(halves.shape[1:]), few)
    given_up = few == -2.0
    np.testing.assert_array_equal(few[~given_up], tau[~given_up])
    assert given_up.all() or phi < 0.9
