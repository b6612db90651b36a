"""Samplers against nutpie, blackjax, emcee and a hand-written loop; diagnostics against arviz-stats.

Four chains, two threads, the same number of draws, warm-up steps as each library advises. Effective draws, of the worst
parameter, are counted by one function for all (`ess_bulk` and `ess_tail`, which the tests compare with the R package
posterior); the qualities say how many there are per second and per gradient, because a time says nothing without them.
The worst of a thousand parameters differs by a tenth from seed to seed: every contender draws with three seeds, and the
mean counts. Time for compiling is in the first call.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cache
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from .harness import OURS, Row

N_CHAINS = 4
N_DRAWS = 1000
SEEDS = (0, 1, 2)


class Problem(NamedTuple):
    name: str
    data: tuple[np.ndarray, ...]
    dimension: int
    n_draws: int


def normal_density(x: Any, gradient: Any, precision: Any) -> float:
    """Independent normals."""
    value = 0.0
    for i in range(x.size):
        gradient[i] = -precision[i] * x[i]
        value += 0.5 * gradient[i] * x[i]
    return value


def logistic_density(x: Any, gradient: Any, X: Any, y: Any) -> float:
    """Logistic regression with standard normal priors."""
    n, d = X.shape
    value = 0.0
    for j in range(d):
        gradient[j] = -x[j]
        value -= 0.5 * x[j] * x[j]
    for i in range(n):
        z = 0.0
        row = X[i]
        for j in range(d):
            z += row[j] * x[j]
        e = np.exp(-abs(z))
        share = 1.0 / (1.0 + e) if z >= 0.0 else e / (1.0 + e)
        value += y[i] * z - max(z, 0.0) - np.log1p(e)
        slope = y[i] - share
        for j in range(d):
            gradient[j] += slope * row[j]
    return value


def schools_density(x: Any, gradient: Any, y: Any, sigma: Any) -> float:
    """Groups of one observation each, not centred: x = (z, μ, log τ), τ half-Cauchy."""
    n = y.size
    mu, tau = x[n], np.exp(x[n + 1])
    value = -0.5 * mu * mu / 25.0 - np.log1p(tau * tau / 25.0) + x[n + 1]
    by_mu = -mu / 25.0
    by_tau = -2.0 * tau / (25.0 + tau * tau)
    for j in range(n):
        r = (y[j] - mu - tau * x[j]) / sigma[j]
        value -= 0.5 * r * r + 0.5 * x[j] * x[j]
        slope = r / sigma[j]
        gradient[j] = slope * tau - x[j]
        by_mu += slope
        by_tau += slope * x[j]
    gradient[n] = by_mu
    gradient[n + 1] = by_tau * tau + 1.0
    return value


DENSITIES = {"normal": normal_density, "logistic": logistic_density, "schools": schools_density}


def make_normal(quick: bool) -> Problem:
    """Return a normal of condition 10⁴ in 100 dimensions."""
    return Problem("normal", (1 / np.geomspace(1e-2, 1e2, 100),), 100, 200 if quick else N_DRAWS)


def make_logistic(quick: bool) -> Problem:
    """Return 1,000 rows of 25 columns."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 25))
    y = (rng.random(1000) < 1 / (1 + np.exp(-X @ rng.normal(size=25)))).astype(np.float64)
    return Problem("logistic", (X, y), 25, 200 if quick else N_DRAWS)


def make_schools(quick: bool) -> Problem:
    """Return the eight schools."""
    y = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
    sigma = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])
    return Problem("schools", (y, sigma), 10, 200 if quick else N_DRAWS)


def make_groups(quick: bool) -> Problem:
    """Return 1,000 groups."""
    rng = np.random.default_rng(1)
    n = 100 if quick else 1000
    y = 3.0 + 2.0 * rng.normal(size=n) + rng.normal(size=n)
    return Problem("schools", (y, np.ones(n)), n + 2, 200 if quick else N_DRAWS)


@cache
def _compiled(name: str, key: int) -> Any:
    from learnable.sampling import compiled

    return compiled(DENSITIES[name], *_DATA[key])


_DATA: dict[int, tuple[np.ndarray, ...]] = {}


def ours(problem: Problem) -> Any:
    """Draw with `nuts`."""
    from learnable.sampling import nuts

    key = id(problem.data)
    _DATA[key] = problem.data
    target = _compiled(problem.name, key)
    start = time.perf_counter()
    runs = [nuts(target, problem.dimension, n_draws=problem.n_draws, random_state=seed) for seed in SEEDS]
    seconds = time.perf_counter() - start
    gradients = sum(float(chains.stats["n_steps"].sum()) for chains in runs)
    return SimpleNamespace(runs=[chains.draws for chains in runs], gradients=gradients, seconds=seconds)


def jax_density(problem: Problem) -> Callable[[Any], Any]:
    """Return the same density for JAX."""
    import jax.numpy as jnp

    data = [jnp.asarray(part) for part in problem.data]
    if problem.name == "normal":
        return lambda x: -0.5 * jnp.sum(data[0] * x * x)
    if problem.name == "logistic":

        def logistic(x: Any) -> Any:
            z = data[0] @ x
            return jnp.sum(data[1] * z - jnp.logaddexp(0.0, z)) - 0.5 * jnp.sum(x * x)

        return logistic
    n = len(problem.data[0])

    def schools(x: Any) -> Any:
        z, mu, log_tau = x[:n], x[n], x[n + 1]
        tau = jnp.exp(log_tau)
        r = (data[0] - mu - tau * z) / data[1]
        prior = -0.5 * mu * mu / 25 - jnp.log1p(tau * tau / 25) + log_tau
        return prior - 0.5 * jnp.sum(r * r) - 0.5 * jnp.sum(z * z)

    return schools


def with_blackjax(problem: Problem) -> Any:
    """Draw with blackjax: window adaptation of 1,000 steps, then NUTS; chains one after the other, compiled."""
    import blackjax
    import jax

    jax.config.update("jax_enable_x64", True)
    density = jax_density(problem)

    def chain(key: Any) -> Any:
        first, warm, last = jax.random.split(key, 3)
        start = jax.random.uniform(first, (problem.dimension,), minval=-2.0, maxval=2.0)
        adapted, _ = blackjax.window_adaptation(blackjax.nuts, density).run(warm, start, num_steps=1000)
        kernel = blackjax.nuts(density, **adapted.parameters).step

        def step(state: Any, key: Any) -> Any:
            state, info = kernel(key, state)
            return state, (state.position, info.num_integration_steps)

        return jax.lax.scan(step, adapted.state, jax.random.split(last, problem.n_draws))[1]

    run = _jitted(problem, chain)
    start = time.perf_counter()
    found = [jax.block_until_ready(run(jax.random.split(jax.random.key(seed), N_CHAINS))) for seed in SEEDS]
    seconds = time.perf_counter() - start
    gradients = sum(float(np.sum(steps)) for _, steps in found)
    return SimpleNamespace(runs=[np.asarray(draws) for draws, _ in found], gradients=gradients, seconds=seconds)


_JITTED: dict[int, Any] = {}


def _jitted(problem: Problem, chain: Any) -> Any:
    import jax

    key = id(problem.data)
    if key not in _JITTED:
        _JITTED[key] = jax.jit(jax.vmap(chain))
    return _JITTED[key]


def with_nutpie(problem: Problem) -> Any:
    """Draw with nutpie from a PyMC model, which it compiles by Numba."""
    import nutpie

    model = _pymc_model(problem)
    settings = {"draws": problem.n_draws, "tune": 400, "chains": N_CHAINS, "cores": 2, "progress_bar": False}
    start = time.perf_counter()
    traces = [nutpie.sample(model, seed=seed, **settings) for seed in SEEDS]
    seconds = time.perf_counter() - start
    runs = []
    for trace in traces:
        flat = [np.asarray(v.values).reshape(N_CHAINS, problem.n_draws, -1) for v in trace.posterior.data_vars.values()]
        runs.append(np.concatenate(flat, axis=2))
    gradients = sum(float(np.asarray(trace.sample_stats["n_steps"].values).sum()) for trace in traces)
    return SimpleNamespace(runs=runs, gradients=gradients, seconds=seconds)


_PYMC: dict[int, Any] = {}


def _pymc_model(problem: Problem) -> Any:
    import nutpie
    import pymc as pm

    key = id(problem.data)
    if key in _PYMC:
        return _PYMC[key]
    with pm.Model() as model:
        if problem.name == "normal":
            pm.Normal("x", 0.0, problem.data[0] ** -0.5, shape=problem.dimension)
        elif problem.name == "logistic":
            x = pm.Normal("x", 0.0, 1.0, shape=problem.dimension)
            pm.Bernoulli("y", logit_p=problem.data[0] @ x, observed=problem.data[1])
        else:
            z = pm.Normal("z", 0.0, 1.0, shape=len(problem.data[0]))
            mu = pm.Normal("mu", 0.0, 5.0)
            tau = pm.HalfCauchy("tau", 5.0)
            pm.Normal("y", mu + tau * z, problem.data[1], observed=problem.data[0])
    _PYMC[key] = nutpie.compile_pymc_model(model)
    return _PYMC[key]


def effective(found: Any, problem: Problem) -> dict[str, float]:
    """Return effective draws of the worst number, in the mean of the seeds, per second and per gradient."""
    from learnable.sampling import diagnostics

    least = []
    rhat = 0.0
    for draws in found.runs:
        worst, bulk, tail = diagnostics.convergence(np.asarray(draws, dtype=np.float64))
        least.append(float(np.nanmin(np.fmin(bulk, tail))))
        rhat = max(rhat, float(np.nanmax(worst)))
    total = sum(least)
    return {
        "ess": total / len(least),
        "ess_per_second": total / found.seconds,
        "ess_per_gradient": total / found.gradients,
        "rhat": rhat,
    }


def walk_density(x: Any, scale: Any) -> float:
    """Independent normals, without a gradient."""
    value = 0.0
    for i in range(x.size):
        value -= 0.5 * x[i] * x[i] * scale[i]
    return value


WALK_SCALE = np.arange(1.0, 11.0)


@cache
def _walk_target() -> Any:
    from learnable.sampling import compiled

    return compiled(walk_density, WALK_SCALE, gradient=False)


def walk_ours(n: int) -> Any:
    """Take n steps of random-walk Metropolis in all chains together; nobody else's chains are certified, nor these."""
    from learnable.core.estimator import StopFlag
    from learnable.core.threads import run_tasks
    from learnable.sampling import MetropolisHastings, RandomWalk
    from learnable.sampling.targets import Target

    target = Target("walk", _walk_target(), None, 10, needs_gradient=False)
    sampler = MetropolisHastings(target, RandomWalk(0.4, adapt=False), 0)
    draws, infos = np.empty((N_CHAINS, n // N_CHAINS, 10)), np.empty((N_CHAINS, n // N_CHAINS, 3))

    def run(i: int) -> Any:
        rng = np.random.default_rng(i)
        return sampler.advance(sampler.init(np.zeros(10), rng), rng, draws[i], infos[i], StopFlag())

    run_tasks(run, N_CHAINS, 2)
    return SimpleNamespace(draws=draws)


def walk_emcee(n: int) -> Any:
    """Take n steps of emcee's walkers with a vectorised density."""
    import emcee

    sampler = emcee.EnsembleSampler(40, 10, lambda x: -0.5 * (x * x) @ WALK_SCALE, vectorize=True)
    sampler.run_mcmc(0.1 * np.random.default_rng(0).normal(size=(40, 10)), n // 40, progress=False)
    return SimpleNamespace(draws=sampler.get_chain())


@cache
def _hand_written() -> Any:
    import numba

    @numba.njit(nogil=True)
    def loop(n: int, seed: int, scale: Any) -> Any:
        np.random.seed(seed)  # noqa: NPY002
        d = scale.size
        x, proposed = np.zeros(d), np.zeros(d)
        draws = np.empty((n, d))
        value = 0.0
        for t in range(n):
            new = 0.0
            for i in range(d):
                proposed[i] = x[i] + 0.4 * np.random.normal()  # noqa: NPY002
                new -= 0.5 * proposed[i] * proposed[i] * scale[i]
            if np.log(np.random.random()) < new - value:  # noqa: NPY002
                x[:] = proposed
                value = new
            draws[t] = x
        return draws

    return loop


def walk_by_hand(n: int) -> Any:
    """Take n steps of a loop written for this density, on two threads."""
    from concurrent.futures import ThreadPoolExecutor

    loop = _hand_written()
    with ThreadPoolExecutor(2) as pool:
        parts = list(pool.map(lambda seed: loop(n // N_CHAINS, seed, WALK_SCALE), range(N_CHAINS)))
    return SimpleNamespace(draws=np.stack(parts))


GIBBS_PULL = np.array([0.4])


@cache
def _line() -> Any:
    """A sweep that draws every point of a line given its neighbours: mean `pull` times their sum, variance one."""
    from learnable.sampling import compiled_sweep
    from learnable.sampling.random import normal

    def sweep(x: Any, stream: Any, pull: Any) -> None:
        last = x.size - 1
        for i in range(x.size):
            around = (x[i - 1] if i > 0 else 0.0) + (x[i + 1] if i < last else 0.0)
            x[i] = pull[0] * around + normal(stream)

    return compiled_sweep(sweep, GIBBS_PULL)


def gibbs_ours(n: int) -> Any:
    """Take n sweeps in all chains together."""
    from learnable.core.estimator import StopFlag
    from learnable.core.threads import run_tasks
    from learnable.sampling.gibbs import CompiledGibbs

    sampler = CompiledGibbs(_line(), 10, 0)
    draws = np.empty((N_CHAINS, n // N_CHAINS, 10))

    def run(i: int) -> Any:
        rng = np.random.default_rng(i)
        state = sampler.init(np.zeros(10), rng)
        return sampler.advance(state, rng, draws[i], np.empty((n // N_CHAINS, 0)), StopFlag())

    run_tasks(run, N_CHAINS, 2)
    return SimpleNamespace(draws=draws)


@cache
def _hand_written_sweeps() -> Any:
    import numba

    @numba.njit(nogil=True)
    def loop(n: int, seed: int, pull: float) -> Any:
        np.random.seed(seed)  # noqa: NPY002
        x = np.zeros(12)  # a zero on each side
        draws = np.empty((n, 10))
        for t in range(n):
            for i in range(1, 11):
                x[i] = pull * (x[i - 1] + x[i + 1]) + np.random.normal()  # noqa: NPY002
            draws[t] = x[1:11]
        return draws

    return loop


def gibbs_by_hand(n: int) -> Any:
    """Take n sweeps of a loop written for this normal, on two threads."""
    from concurrent.futures import ThreadPoolExecutor

    loop = _hand_written_sweeps()
    with ThreadPoolExecutor(2) as pool:
        parts = list(pool.map(lambda seed: loop(n // N_CHAINS, seed, GIBBS_PULL[0]), range(N_CHAINS)))
    return SimpleNamespace(draws=np.stack(parts))


def diagnose_ours(x: np.ndarray) -> Any:
    """Compute R-hat, bulk and tail ESS."""
    from learnable.sampling import diagnostics

    return SimpleNamespace(found=diagnostics.convergence(x))


def diagnose_arviz(x: np.ndarray) -> Any:
    """Compute the same by arviz-stats."""
    from arviz_stats.base import array_stats

    axes = {"chain_axis": 0, "draw_axis": 1}
    bulk = array_stats.ess(x, **axes, method="bulk")
    tail = array_stats.ess(x, **axes, method="tail", prob=(0.05, 0.95))
    return SimpleNamespace(found=(array_stats.rhat(x, **axes), bulk, tail))


def distance_from_ours(result: Any, x: np.ndarray) -> dict[str, float]:
    """Return how far the numbers are from ours, relatively: they have to be the same numbers."""
    reference = diagnose_ours(x).found
    return {"objective": max(float(np.abs(a / b - 1).max()) for a, b in zip(result.found, reference, strict=True))}


def first_draw(problem: Problem) -> Any:
    """Compile a density that this process has not seen and draw from it."""
    from learnable.sampling import compiled, nuts

    offset = time.perf_counter()

    def density(x: Any, gradient: Any) -> float:
        value = 0.0
        for i in range(x.size):
            gradient[i] = offset * 0.0 - x[i]
            value -= 0.5 * x[i] * x[i]
        return value

    chains = nuts(compiled(density), 10, n_draws=20, n_warmup=50, random_state=0, check=False)
    return SimpleNamespace(draws=chains.draws)


NUTS = {OURS: ours, "nutpie": with_nutpie, "blackjax": with_blackjax}
NUTS_TARGETS = {"nutpie": 1.0, "blackjax": 3.0}


def nuts_row(name: str, job: str, size: str, make: Callable[[bool], Problem]) -> Row:
    """Return a row of NUTS."""
    return Row(name, job, size, make, NUTS, effective, NUTS_TARGETS, compared=None)


ROWS = [
    nuts_row("nuts_normal", "NUTS: normal of condition 10⁴", "d = 100, 4 × 1,000 draws", make_normal),
    nuts_row("nuts_logistic", "NUTS: logistic regression", "1,000 × 25, 4 × 1,000 draws", make_logistic),
    nuts_row("nuts_schools", "NUTS: eight schools", "d = 10, 4 × 1,000 draws", make_schools),
    nuts_row("nuts_groups", "NUTS: hierarchical model", "1,000 groups, 4 × 1,000 draws", make_groups),
    Row(
        "metropolis_walk",
        "random-walk Metropolis of a compiled density",
        "d = 10, 10⁶ steps",
        lambda quick: 40_000 if quick else 1_000_000,
        {OURS: walk_ours, "hand-written loop": walk_by_hand, "emcee": walk_emcee},
        lambda found, n: {"variance": float(np.var(np.asarray(found.draws).reshape(-1, 10)[:, 0]))},
        {"emcee": 20.0, "hand-written loop": 1.0},
        compared=None,
        same_steps=True,
    ),
    Row(
        "gibbs_sweeps",
        "Gibbs sampling by a compiled sweep",
        "d = 10, 10⁶ sweeps",
        lambda quick: 40_000 if quick else 1_000_000,
        {OURS: gibbs_ours, "hand-written loop": gibbs_by_hand},
        lambda found, n: {"variance": float(np.var(np.asarray(found.draws).reshape(-1, 10)[:, 5]))},
        {"hand-written loop": 1.0},
        compared=None,
        same_steps=True,
    ),
    Row(
        "chain_diagnostics",
        "R-hat, bulk and tail ESS",
        "4 × 10,000 × 200 draws",
        lambda quick: np.random.default_rng(0).normal(size=(4, 1000 if quick else 10_000, 20 if quick else 200)),
        {OURS: diagnose_ours, "arviz-stats": diagnose_arviz},
        distance_from_ours,
        {"arviz-stats": 5.0},
        tolerance=1e-9,
        floor=1.0,
    ),
    Row(
        "first_draw",
        "time to the first draw of a new density, compile included",
        "d = 10",
        make_schools,
        {OURS: first_draw},
        lambda found, problem: {"draws": float(np.asarray(found.draws).size)},
        {},
        compared=None,
        limit_seconds=5.0,
    ),
]
