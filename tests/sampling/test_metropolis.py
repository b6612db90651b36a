"""Metropolis–Hastings, Gibbs and tempering: laws on finite spaces, known moments, Geweke's test, adaptation."""

import math

import numpy as np
import pytest
from scipy import stats
from tests.oracles import metropolis as oracle
from tests.sampling import densities

from learnable.core.errors import DataError, ParameterError
from learnable.probability import Gamma, MultivariateNormal, Normal
from learnable.sampling import (
    Conditional,
    Custom,
    CycleOf,
    Hamiltonian,
    Independence,
    MetropolisHastings,
    MixtureOf,
    RandomWalk,
    compiled_sweep,
    gibbs,
    mcse_mean,
    mcse_sd,
    metropolis_block,
    metropolis_hastings,
    nuts_block,
    resume,
    tempered,
)
from learnable.sampling._metropolis_kernels import walk
from learnable.sampling.gibbs import Gibbs
from learnable.sampling.proposals import as_proposal
from learnable.sampling.random import beta, gamma, normal, uniform
from learnable.sampling.targets import Target
from learnable.sampling.tempered import Tempered

quiet = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

P = np.array([0.1, 0.4, 0.2, 0.25, 0.05])  # a target on five places


def log_p(x):
    k = round(float(x[0]))
    return float(np.log(P[k])) if 0 <= k < 5 and k == x[0] else -np.inf


def hop(x, rng):
    """A proposal that is not symmetric: one to the right with probability 0.7, to the left with 0.3, on a ring."""
    side = 1 if rng.random() < 0.7 else -1
    return (x + side) % 5, np.log(0.3 / 0.7) * side


def hop_matrix():
    """Its transition matrix by the formula."""
    T = np.zeros((5, 5))
    for i in range(5):
        for side, q, back in ((1, 0.7, 0.3), (-1, 0.3, 0.7)):
            j = (i + side) % 5
            T[i, j] += q * min(1.0, P[j] * back / (P[i] * q))
        T[i, i] += 1 - T[i].sum()
    return T


def counted(sampler, n, seed, place):
    """Return how often each place follows each, in n independent steps from every place."""
    rng = np.random.default_rng(seed)
    found = np.zeros((5, 5))
    for i in range(5):
        state = sampler.init(place(i), rng)
        for _ in range(n):
            new, _ = sampler.step(state, rng)
            found[i, round(float(sampler.draw(new)[0]))] += 1
    return found / n


def test_the_formula_has_detailed_balance_and_steps_follow_it():
    T = hop_matrix()
    flow = P[:, None] * T
    np.testing.assert_allclose(flow, flow.T, atol=1e-15)
    np.testing.assert_allclose(P @ T, P)
    target = Target("test", log_p, None, 1, needs_gradient=False)
    found = counted(MetropolisHastings(target, Custom(hop), 0), 4000, 0, lambda i: [float(i)])
    z = (found - T) / np.sqrt(np.maximum(T * (1 - T), 1e-12) / 4000)
    assert np.abs(z[T > 0]).max() < 4 and (found[T == 0] == 0).all()


@quiet
@pytest.mark.parametrize(
    "proposal",
    [
        Custom(hop),
        MixtureOf([hop, lambda x, rng: np.array([float(rng.integers(5))])], [0.3, 0.7]),
        CycleOf([hop, lambda x, rng: np.array([float(rng.integers(5))])]),
    ],
    ids=["own", "mixture", "cycle"],
)
def test_every_kernel_leaves_the_target_invariant(proposal):
    """From independent draws of the target, one step gives draws of the target."""
    target = Target("test", log_p, None, 1, needs_gradient=False)
    sampler = MetropolisHastings(target, proposal, 0)
    rng = np.random.default_rng(1)
    after = np.zeros(5)
    n = 8000
    for i in rng.choice(5, n, p=P):
        state, _ = sampler.step(sampler.init([float(i)], rng), rng)
        after[int(state.u[0])] += 1
    z = (after - n * P) / np.sqrt(n * P * (1 - P))
    assert np.abs(z).max() < 4


def test_random_scan_gibbs_is_reversible_and_both_scans_are_invariant():
    joint = np.random.default_rng(2).dirichlet(np.ones(6)).reshape(2, 3)
    conditionals = {
        "a": lambda v, rng: float(rng.random() < joint[1, int(v["b"])] / joint[:, int(v["b"])].sum()),
        "b": lambda v, rng: float(rng.choice(3, p=joint[int(v["a"])] / joint[int(v["a"])].sum())),
    }
    rng = np.random.default_rng(3)
    n = 12_000
    for scan in ("systematic", "random"):
        sampler = Gibbs(conditionals, {"a": 0.0, "b": 0.0}, scan, 0)
        flow = np.zeros((6, 6))
        for cell in rng.choice(6, n, p=joint.ravel()):
            state = sampler.init({"a": float(cell // 3), "b": float(cell % 3)}, rng)
            a, b = sampler.draw(sampler.step(state, rng)[0])
            flow[cell, int(3 * a + b)] += 1
        z = (flow.sum(axis=0) - n * joint.ravel()) / np.sqrt(n * joint.ravel() * (1 - joint.ravel()))
        assert np.abs(z).max() < 4
        i, j = np.triu_indices(6, 1)
        both = flow[i, j] + flow[j, i]
        z = (flow[i, j] - flow[j, i])[both > 20] / np.sqrt(both[both > 20])
        if scan == "random":
            assert np.abs(z).max() < 4  # detailed balance
        else:
            assert np.abs(z).max() > 4  # the whole sweep is not reversible


def test_a_conditional_is_always_accepted():
    rho = 0.8
    target = MultivariateNormal([0.0, 0.0], [[1.0, rho], [rho, 1.0]])
    parts = [
        Conditional(0, lambda x: Normal(rho * x[1], np.sqrt(1 - rho**2))),
        Conditional(1, lambda x: Normal(rho * x[0], np.sqrt(1 - rho**2))),
    ]
    chains = metropolis_hastings(
        lambda x: float(target.logpdf(x)), CycleOf(parts), x0=[0.0, 0.0], n_draws=1500, n_warmup=50, random_state=0
    )
    np.testing.assert_allclose(chains.stats["accept"], 1.0, atol=1e-9)
    product = chains["x"][:, :, 0] * chains["x"][:, :, 1]
    assert abs(product.mean() - rho) < 4 * mcse_mean(product)


@quiet
def test_a_rejected_proposal_repeats_the_state():
    chains = metropolis_hastings(lambda x: -0.5 * float(x @ x), 2.4, x0=[0.0], n_draws=800, random_state=1)
    x, taken = chains["x"][:, :, 0], chains.stats["accepted"]
    same = x[:, 1:] == x[:, :-1]
    np.testing.assert_array_equal(same, taken[:, 1:] == 0)
    assert same.any()


@pytest.mark.parametrize("d", [1, 4])
def test_the_walk_adapts_to_scales_and_acceptance_and_is_frozen(d):
    sd = np.geomspace(0.1, 10, d)
    chains = metropolis_hastings(
        densities.normal(1 / sd**2), parameters=d, n_draws=20_000, n_warmup=4000, random_state=2, keep_warmup=True
    )
    aim = 0.44 if d == 1 else 0.234
    assert abs(chains.stats["accept"].mean() - aim) < 0.06
    assert (np.abs(chains.draws.std(axis=(0, 1)) - sd) < 4.5 * mcse_sd(chains.draws)).all()
    factors = chains.states["state.factor"]
    later = metropolis_hastings(densities.normal(1 / sd**2), parameters=d, n_draws=50, n_warmup=4000, random_state=2)
    np.testing.assert_array_equal(later.states["state.factor"], factors)  # nothing changes after warm-up


def test_the_compiled_walk_is_that_of_the_paper():
    rng = np.random.default_rng(11)
    precision = np.array([1.0, 4.0, 0.25])
    words = rng.integers(0, 2**64, size=(200, 4), dtype=np.uint64)
    target = Target("test", densities.normal(precision), None, 3, needs_gradient=False)
    u = np.array([0.5, -1.0, 2.0])
    expected, S = oracle.walk(lambda x: -0.5 * float(precision @ x**2), u, np.eye(3), words, 120, 0.234)
    value = np.array([-0.5 * float(precision @ u**2)])
    factor, draws, infos = np.eye(3), np.empty((200, 3)), np.empty((200, 3))
    clock, stop = np.array([0, 120], dtype=np.int64), np.zeros(1, dtype=np.int64)
    walk(target.problem(), words, u.copy(), value, factor, clock, 0.234, draws, infos, stop)
    np.testing.assert_allclose(draws, expected, atol=1e-8)
    np.testing.assert_allclose(np.tril(factor), S, atol=1e-8)


@pytest.mark.long
def test_independence_proposals_have_the_right_moments():
    chains = metropolis_hastings(
        lambda x: 2.0 * math.log(x[0]) - x[0],  # a gamma law of shape 3
        Independence(Gamma(2.0, 0.5)),
        x0=[1.0],
        n_draws=5000,
        random_state=3,
    )
    assert abs(chains["x"].mean() - 3.0) < 4 * mcse_mean(chains["x"][:, :, 0])
    assert abs(chains["x"].std() - np.sqrt(3.0)) < 4 * mcse_sd(chains["x"][:, :, 0])


def test_an_ising_line_has_the_correlations_of_its_transfer_matrix():
    J, n = 0.7, 6

    def spin(i):
        def conditional(values, rng):
            s = values["s"].copy()
            field = J * ((s[i - 1] if i else 0.0) + (s[i + 1] if i < n - 1 else 0.0))
            s[i] = 1.0 if rng.random() < 1 / (1 + np.exp(-2 * field)) else -1.0
            return s

        return conditional

    steps = [spin(i) for i in range(n)]

    def sweep(values, rng):
        for step in steps:
            values = {**values, "s": step(values, rng)}
        return values["s"]

    chains = gibbs({"s": sweep}, {"s": np.ones(n)}, n_draws=3000, n_warmup=100, random_state=4)
    for k in (1, 2, 3):
        product = chains["s"][:, :, 0] * chains["s"][:, :, k]
        assert abs(product.mean() - np.tanh(J) ** k) < 4 * mcse_mean(product)


def test_blocks_of_all_kinds_in_one_sampler():
    """y ~ N(μ, 1/τ), μ around one of two centres: the class is discrete, μ by NUTS, τ by Metropolis; exact moments."""
    y = np.array([0.5, 2.5, 3.0])
    centres = np.array([0.0, 2.0])

    def pick(v, rng):
        logs = [-0.5 * float((v["mu"] - c) ** 2) for c in centres]
        p = np.exp(np.array(logs) - max(logs))
        return float(rng.random() < p[1] / p.sum())

    def mu_density(mu, v):
        c = centres[int(v["k"])]
        value = -0.5 * float(v["tau"] * ((y - mu) ** 2).sum()) - 0.5 * float((mu - c) ** 2)
        return value, float(v["tau"]) * (y - mu).sum() - (mu - c)

    def tau_density(tau, v):
        if tau <= 0:
            return -np.inf
        return float((1.5 + 2.0 - 1) * np.log(tau) - tau * (2.0 + 0.5 * ((y - v["mu"]) ** 2).sum()))

    chains = gibbs(
        {"k": pick, "mu": nuts_block(mu_density), "tau": metropolis_block(tau_density, RandomWalk(0.5))},
        {"k": 0.0, "mu": 1.0, "tau": 1.0},
        n_draws=3000,
        n_warmup=300,
        random_state=5,
    )
    mu = np.linspace(-6, 8, 1401)[:, None]
    tau = np.linspace(0.002, 12, 1200)[None]
    log_q = 2.5 * np.log(tau) - tau * (2.0 + 0.5 * ((y[:, None, None] - mu) ** 2).sum(axis=0))
    weights = [np.exp(log_q - 0.5 * (mu - c) ** 2) for c in centres]
    total = sum(w.sum() for w in weights)
    exact = {
        "k": weights[1].sum() / total,
        "mu": sum((w * mu).sum() for w in weights) / total,
        "tau": sum((w * tau).sum() for w in weights) / total,
    }
    for name, value in exact.items():
        assert abs(chains[name].mean() - value) < 4.5 * mcse_mean(chains[name]), name


def normal_sweep(x, stream, rho):
    s = np.sqrt(1.0 - rho * rho)
    x[0] = rho * x[1] + s * normal(stream)
    x[1] = rho * x[0] + s * normal(stream)


@pytest.mark.long
def test_a_compiled_sweep_has_the_moments_of_its_normal():
    chains = gibbs(compiled_sweep(normal_sweep, 0.6), [0.0, 0.0], n_draws=20_000, n_warmup=10, random_state=6)
    x = chains["x"]
    assert (np.abs(x.mean(axis=(0, 1))) < 4 * mcse_mean(x)).all()
    product = x[:, :, 0] * x[:, :, 1]
    assert abs(product.mean() - 0.6) < 4 * mcse_mean(product)


def numbers_sweep(x, stream):
    x[0] = uniform(stream)
    x[1] = gamma(stream, 0.4)
    x[2] = gamma(stream, 3.5)
    x[3] = beta(stream, 2.0, 0.7)
    x[4] = normal(stream)


def test_compiled_random_numbers_follow_their_laws():
    chains = gibbs(compiled_sweep(numbers_sweep), np.ones(5), n_draws=5000, n_warmup=0, random_state=7)
    x = chains["x"].reshape(-1, 5)
    laws = [stats.uniform(), stats.gamma(0.4), stats.gamma(3.5), stats.beta(2.0, 0.7), stats.norm()]
    assert min(stats.kstest(x[:, j], law.cdf).pvalue for j, law in enumerate(laws)) > 1e-3


@quiet
@pytest.mark.parametrize("kind", ["walk", "gibbs", "hmc", "nuts"])
def test_geweke_joint_distribution(kind):
    """θ ~ N(0, 1), y | θ ~ N(θ, 1): alternate y | θ and one transition for θ | y; both must keep their joint law."""
    data = {"y": 0.0}

    def log_density(x):
        return -0.5 * float(x[0] ** 2) - 0.5 * float((data["y"] - x[0]) ** 2), np.array([data["y"] - 2 * x[0]])

    target = Target("test", log_density, None, 1, needs_gradient=kind in ("hmc", "nuts"))
    fixed = {"n_warmup": 0, "metric": np.ones(1)}  # a first metric from the gradient would depend on the point
    samplers = {
        "walk": lambda: MetropolisHastings(target, RandomWalk(1.0, adapt=False), 0),
        "gibbs": lambda: MetropolisHastings(target, Conditional(0, lambda x: Normal(data["y"] / 2, np.sqrt(0.5))), 0),
        "hmc": lambda: Hamiltonian(target, step_size=0.5, n_leapfrog=3, **fixed),
        "nuts": lambda: Hamiltonian(target, step_size=0.7, **fixed),
    }
    sampler = samplers[kind]()
    rng = np.random.default_rng(8)
    n = 4000
    found = np.empty((n, 2))
    theta = rng.normal()
    for t in range(n):
        data["y"] = theta + rng.normal()
        state, _ = sampler.step(sampler.init([theta], rng), rng)
        theta = float(sampler.draw(state)[0])
        found[t] = theta, data["y"]
    theta, y = found.T
    for values, mean in ((theta, 0.0), (theta**2, 1.0), (y, 0.0), (y**2, 2.0), (theta * y, 1.0)):
        assert abs(values.mean() - mean) < 4 * mcse_mean(values[None])


def test_replicas_keep_their_laws():
    """From independent draws of all tempered laws, N(0, 1/β), one step gives such draws, exchanges included."""
    target = Target("test", lambda x: -0.5 * float(x @ x), None, 1, needs_gradient=False)
    sampler = Tempered(target, 3, 9.0, 1, 0)
    rng = np.random.default_rng(10)
    n = 4000
    found = np.empty((n, 3))
    for t in range(n):
        u = rng.normal(size=(3, 1)) / np.sqrt(sampler.betas)[:, None]
        state = sampler.init(u[0], rng)._replace(u=u, values=-0.5 * u[:, 0] ** 2)
        found[t] = sampler.step(state, rng)[0].u[:, 0]
    scaled = found * np.sqrt(sampler.betas)
    assert np.abs(scaled.mean(axis=0) * np.sqrt(n)).max() < 4
    assert np.abs((scaled**2 - 1).mean(axis=0) * np.sqrt(n / 2)).max() < 4
    assert np.abs((scaled[:, 0] * scaled[:, 1]).mean() * np.sqrt(n)) < 4


@quiet
@pytest.mark.long
def test_tempering_finds_modes_that_a_walk_misses():
    def modes(x):
        place = float(x[0])
        right = math.log(0.25) - 0.5 * (place - 8) ** 2
        left = math.log(0.75) - 0.5 * (place + 8) ** 2
        return max(right, left) + math.log1p(math.exp(-abs(right - left)))

    chains = tempered(modes, 1, n_draws=4000, n_warmup=1000, random_state=9)
    share = (chains["x"][:, :, 0] > 0).astype(float)
    assert abs(share.mean() - 0.25) < 4 * mcse_mean(share)
    assert chains.groups == [[0, 1, 2, 3]] and 0.1 < chains.stats["exchange"].mean() < 0.95
    walk = metropolis_hastings(modes, x0=[[8.0], [8.0], [-8.0], [-8.0]], n_draws=4000, random_state=9)
    assert len(walk.groups) > 1 and not walk.certificate_.holds


@quiet
def test_tempering_is_the_same_for_any_number_of_threads_and_after_a_resume():
    def run(n, **more):
        return tempered(densities.normal([1.0, 4.0]), 2, n_draws=n, n_warmup=50, random_state=1, **more)

    whole = run(60, n_jobs=1)
    np.testing.assert_array_equal(run(60, n_jobs=2).draws, whole.draws)
    np.testing.assert_array_equal(resume(run(20), 40).draws, whole.draws)
    z = whole.states["state.betas"]
    assert (np.diff(z, axis=1) < 0).all() and (z[:, 0] == 1).all()


def test_faults_are_named():
    with pytest.raises(DataError, match="the log density at the start is -inf"):
        metropolis_hastings(lambda x: -np.inf, x0=[0.0])
    with pytest.raises(DataError, match="is NaN at"):
        metropolis_hastings(lambda x: 0.0 if x[0] == 0 else np.nan, x0=[0.0])
    with pytest.raises(ParameterError, match="proposal must keep the shape"):
        metropolis_hastings(lambda x: 0.0, lambda x, rng: np.zeros(3), x0=[0.0])
    with pytest.raises(ParameterError, match="proposal must be a Proposal"):
        as_proposal("walk")
    with pytest.raises(ParameterError, match="scale must be positive"):
        metropolis_hastings(lambda x: 0.0, RandomWalk(-1.0), x0=[0.0])
    with pytest.raises(DataError, match="x0 must be finite; got nan"):
        metropolis_hastings(lambda x: 0.0, parameters=1, x0=[np.nan])
    with pytest.raises(DataError, match=r"x0 must have shape \(1,\) or \(4, 1\); got \(2,\)"):
        metropolis_hastings(lambda x: 0.0, parameters=1, x0=[0.0, 1.0])
    with pytest.raises(DataError, match="x0 has no values"):
        gibbs({}, {})
    with pytest.raises(ParameterError, match="each name needs both"):
        gibbs({"a": lambda v: Normal(0, 1)}, {"b": 0.0})
    with pytest.raises(ParameterError, match="scan must be"):
        gibbs({"a": lambda v: Normal(0, 1)}, {"a": 0.0}, scan="zigzag")
    with pytest.raises(DataError, match="returned nan, which is not finite"):
        gibbs({"a": lambda v, rng: np.nan}, {"a": 0.0})
    with pytest.raises(DataError, match=r"must return shape \(\); got \(2,\)"):
        gibbs({"a": lambda v, rng: np.zeros(2)}, {"a": 0.0})
    with pytest.raises(DataError, match="x0 must be a dict"):
        gibbs({"a": lambda v, rng: 0.0}, 3.0)
    with pytest.raises(ParameterError, match="n_temperatures must be"):
        tempered(lambda x: 0.0, 1, n_temperatures=1)
    with pytest.raises(ParameterError, match="hottest must be above 1"):
        tempered(lambda x: 0.0, 1, hottest=0.5)
