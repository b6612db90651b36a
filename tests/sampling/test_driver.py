"""The driver: the same draws for any number of threads, after a resume, whatever cuts a run; limits and progress."""

import _thread
import itertools
import threading
import time
import warnings

import numpy as np
import pytest

import learnable as ln
from learnable.core.errors import DataError, ParameterError
from learnable.probability import Normal
from learnable.sampling import ESS, compiled, gibbs, metropolis_block, metropolis_hastings, resume, sample
from learnable.sampling.states import Sampler, Variable, flatten, pack_stream, unflatten, unpack_stream

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def value_only(x, scale):
    total = 0.0
    for i in range(x.size):
        total -= 0.5 * x[i] * x[i] * scale[i]
    return total


FAST = {}


def fast():
    if not FAST:
        FAST["density"] = compiled(value_only, np.array([1.0, 2.0, 3.0]), gradient=False)
    return FAST["density"]


def slow_density(x):
    return -0.5 * float(x @ x)


RUNS = {
    "python": lambda n, **more: metropolis_hastings(slow_density, x0=[0.0, 1.0], n_draws=n, n_warmup=60, **more),
    "compiled": lambda n, **more: metropolis_hastings(fast(), parameters=3, n_draws=n, n_warmup=60, **more),
    "gibbs": lambda n, **more: gibbs(
        {
            "x": lambda v: Normal(0.5 * v["y"], 1.0),
            "y": metropolis_block(lambda y, v: -0.5 * float((y - 0.5 * v["x"]) ** 2)),
        },
        {"x": 0.0, "y": 1.0},
        n_draws=n,
        n_warmup=30,
        **more,
    ),
}


@pytest.mark.parametrize("kind", RUNS)
def test_the_same_bits_for_one_and_two_threads_and_after_a_resume(kind, tmp_path):
    run = RUNS[kind]
    whole = run(150, random_state=3, n_jobs=1)
    np.testing.assert_array_equal(run(150, random_state=3, n_jobs=2).draws, whole.draws)
    first = run(70, random_state=3)
    np.testing.assert_array_equal(resume(first, 80).draws, whole.draws)
    np.testing.assert_array_equal(resume(resume(first, 4), 76).stats.get("accept", 0), whole.stats.get("accept", 0))
    ln.save(first, tmp_path / "chains.safetensors")
    loaded = ln.load(tmp_path / "chains.safetensors")
    with pytest.raises(ParameterError, match="pass sampler="):
        resume(loaded, 80)
    np.testing.assert_array_equal(resume(loaded, 80, sampler=first._sampler).draws, whole.draws)
    assert not np.array_equal(run(150, random_state=4).draws, whole.draws)


@pytest.mark.parametrize("kind", RUNS)
def test_thinning_keeps_every_third_step(kind):
    every = RUNS[kind](60, random_state=5)
    np.testing.assert_array_equal(RUNS[kind](20, random_state=5, thin=3).draws, every.draws[:, 2::3])


@pytest.mark.parametrize("kind", ["python", "compiled", "gibbs"])
def test_single_steps_are_the_chain(kind):
    chains = RUNS[kind](20, random_state=6, keep_warmup=True)
    sampler = chains._sampler
    rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence(6).spawn(4)[2]))
    start = {"x": 0.0, "y": 1.0} if kind == "gibbs" else [0.0, 1.0]
    if kind == "compiled":
        chains = metropolis_hastings(
            fast(), x0=[1.0, 0.0, 2.0], n_draws=20, n_warmup=60, random_state=6, keep_warmup=True
        )
        start = [1.0, 0.0, 2.0]
    state = sampler.init(start, rng)
    kept = []
    for _ in range(sampler.n_warmup + 20):
        before = flatten(state)
        copies = {name: np.array(a) for name, a in before.items()}
        state, _ = sampler.step(state, rng)
        for name, array in before.items():
            np.testing.assert_array_equal(array, copies[name])  # states are immutable
        kept.append(sampler.draw(state))
    np.testing.assert_array_equal(kept, np.concatenate([chains.warmup[2], chains.draws[2]]))


def test_time_limit_keeps_the_draws_and_a_resume_goes_on():
    def lazy(x):
        time.sleep(0.002)
        return slow_density(x)

    chains = metropolis_hastings(lazy, x0=[0.0], n_draws=100_000, n_warmup=0, random_state=0, max_seconds=1.0, n_jobs=1)
    assert 4 <= chains.n_draws < 100_000
    whole = metropolis_hastings(slow_density, x0=[0.0], n_draws=chains.n_draws + 20, n_warmup=0, random_state=0)
    np.testing.assert_array_equal(chains.draws, whole.draws[:, : chains.n_draws])
    np.testing.assert_array_equal(resume(chains, 20, sampler=whole._sampler).draws, whole.draws)


def test_time_that_is_up_before_the_first_draw_is_an_error():
    def lazy(x):
        time.sleep(0.01)
        return slow_density(x)

    with pytest.raises(DataError, match=r"max_seconds=0.1 passed after \d+ of 1000 steps of warm-up"):
        metropolis_hastings(lazy, x0=[0.0], random_state=0, max_seconds=0.1)


def test_ctrl_c_keeps_what_is_drawn():
    def lazy(x):
        time.sleep(0.001)
        return slow_density(x)

    timer = threading.Timer(1.5, _thread.interrupt_main)
    timer.start()
    with pytest.warns(RuntimeWarning, match="interrupted; the .* draws so far are kept"):
        chains = metropolis_hastings(lazy, x0=[0.0], n_draws=100_000, n_warmup=0, random_state=0, n_jobs=1)
    assert chains.n_draws >= 4


def test_stopping_at_a_precision_happens_at_fixed_checkpoints():
    run = {"x0": [0.0, 1.0], "n_draws": 20_000, "n_warmup": 200, "random_state": 1, "until": ESS(400)}
    chains = metropolis_hastings(slow_density, **run)
    assert chains.n_draws < 20_000 and chains.n_draws % 1000 == 0
    assert min(chains.ess.values()) >= 400 and max(chains.rhat.values()) <= 1.01
    np.testing.assert_array_equal(metropolis_hastings(slow_density, **run, n_jobs=1).draws, chains.draws)


def test_progress_tells_steps_acceptance_and_time():
    seen = []
    metropolis_hastings(slow_density, x0=[0.0], n_draws=3000, n_warmup=300, random_state=1, progress=seen.append)
    steps = [p.step for p in seen]
    assert steps == sorted(set(steps)) and steps[-1] == 3300 == seen[-1].n_steps
    assert all(0 <= p.accept <= 1 for p in seen) and all(p.seconds_left >= 0 for p in seen)
    assert "warm-up" in str(seen[0]) and "drawing" in str(seen[-1])
    assert any(p.ess == p.ess for p in seen)


def test_errors_of_a_density_are_raised_as_they_are():
    calls = itertools.count()

    def broken(x):
        if next(calls) > 50:
            raise ZeroDivisionError("in the density")
        return slow_density(x)

    with pytest.raises(ZeroDivisionError, match="in the density"):
        metropolis_hastings(broken, x0=[0.0], random_state=0)
    with pytest.raises(ZeroDivisionError, match="in the density"):
        metropolis_hastings(broken, parameters={"x": 1}, x0={"x": [0.0]}, random_state=0)


def test_bad_arguments_are_refused_with_the_rule():
    def run(**bad):
        return metropolis_hastings(slow_density, **{"x0": [0.0], **bad})

    for name in ("n_draws", "thin", "n_chains"):
        for value in (0, -1, 2.5, True):
            with pytest.raises(ParameterError, match=f"{name} must be"):
                run(**{name: value})
    with pytest.raises(ParameterError, match="n_warmup must be an integer of at least 0"):
        run(n_warmup=-1)
    with pytest.raises(ParameterError, match="max_seconds must be positive"):
        run(max_seconds=0)
    with pytest.raises(ParameterError, match="until must be ESS"):
        run(until=400)
    with pytest.raises(ParameterError, match="random_state"):
        run(random_state="seed")


def test_your_own_pair_of_init_and_step():
    class Autoregression(Sampler):
        name, variables, info_names = "ar", (Variable("x"),), ()

        def init(self, x, rng):
            return float(x)

        def step(self, state, rng):
            return 0.5 * state + rng.normal(), ()

        def draw(self, state):
            return np.array([state])

    chains = sample(Autoregression(), [0.0, 5.0], n_draws=4000, random_state=0)
    assert abs(chains["x"].std() - np.sqrt(4 / 3)) < 0.05
    with pytest.raises(ParameterError, match="0 starts"):
        sample(Autoregression(), [])


def test_streams_and_states_survive_packing():
    rng = np.random.default_rng(9)
    rng.integers(0, 5, size=3, dtype=np.int32)  # half a word is left over
    twin = unpack_stream(pack_stream(rng))
    np.testing.assert_array_equal(rng.integers(0, 9, 50, dtype=np.int32), twin.integers(0, 9, 50, dtype=np.int32))
    state = ({"a": np.arange(3.0)}, 2, (1.5, np.eye(2)))
    back = unflatten(({"a": np.zeros(3)}, 0, (0.0, np.zeros((2, 2)))), flatten(state))
    np.testing.assert_array_equal(back[0]["a"], np.arange(3.0))
    assert back[1] == 2 and back[2][0] == 1.5


def test_a_resume_says_what_it_lacks():
    chains = RUNS["python"](50, random_state=0)
    with pytest.raises(DataError, match="do not say where they ended"):
        resume(chains.thinned(2), 10)
    other = RUNS["compiled"](50, random_state=0)
    with pytest.raises(DataError, match="the sampler draws"):
        resume(chains, 10, sampler=other._sampler)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        resume(chains, 10)
