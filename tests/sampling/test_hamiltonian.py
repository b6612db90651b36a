"""HMC and NUTS: the integrator's laws, the recursion of the book, known moments, adaptation, faults that are named."""

import numpy as np
import pytest
from tests.oracles.nuts import Stream, nuts_step
from tests.sampling import densities

import learnable as ln
from learnable.core.errors import DataError, ParameterError
from learnable.sampling import Positive, Real, hmc, mcse_mean, mcse_sd, nuts, resume
from learnable.sampling import _hamiltonian_kernels as kernels
from learnable.sampling.metrics import diagonal_metric, fit_dense, fit_low_rank, warmup_plan
from learnable.sampling.starts import starting_points
from learnable.sampling.targets import Target

quiet = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def quartic(x):
    return -0.25 * float((x**4).sum()) - 0.5 * float(x @ x), -(x**3) - x


def target_of(density, d):
    return Target("nuts", density, None, d, needs_gradient=True)


def start_of(density, u, p):
    """Return the four rows that a leapfrog step works on."""
    return np.array([u, p, density(u)[1], density(u)[1]])


def leap(density, end, epsilon, n, scale=None):
    d = end.shape[1]
    target = target_of(density, d)  # the kernel has its address only
    problem = target.problem()
    metric = diagonal_metric(np.ones(d) if scale is None else scale)
    for _ in range(n):
        value, _ = kernels.leapfrog(problem, metric, end, epsilon, np.empty(d))
    return value


def test_leapfrog_is_reversible_and_preserves_volume():
    rng = np.random.default_rng(0)
    u, p = rng.normal(size=(2, 2))
    end = start_of(quartic, u, p)
    leap(quartic, end, 0.1, 25)
    end[1] *= -1
    leap(quartic, end, 0.1, 25)
    np.testing.assert_allclose(end[0], u, atol=1e-12)
    np.testing.assert_allclose(-end[1], p, atol=1e-12)

    def flow(z):
        state = start_of(quartic, z[:2], z[2:])
        leap(quartic, state, 0.1, 5)
        return state[:2].ravel()

    h, z = 1e-6, np.r_[u, p]
    jacobian = np.array([(flow(z + h * e) - flow(z - h * e)) / (2 * h) for e in np.eye(4)])
    assert abs(np.linalg.det(jacobian) - 1) < 1e-7


def test_the_energy_error_is_of_second_order():
    u, p = np.array([0.3, -1.1]), np.array([0.7, 0.2])
    errors = []
    for n in (20, 40, 80, 160):
        end = start_of(quartic, u, p)
        value = leap(quartic, end, 1.0 / n, n)
        errors.append(abs(0.5 * end[1] @ end[1] - value - (0.5 * p @ p - quartic(u)[0])))
    rates = np.log2(np.array(errors[:-1]) / errors[1:])
    np.testing.assert_allclose(rates, 2.0, atol=0.1)


@quiet
@pytest.mark.parametrize("max_depth", [1, 3, 8])
def test_a_step_is_that_of_the_recursion(max_depth):
    d, scale, epsilon = 3, np.array([1.0, 0.5, 2.0]), 0.2
    rng = np.random.default_rng(max_depth)
    target = target_of(quartic, d)
    plan = np.zeros(0, dtype=np.int64)
    depths = []
    for _ in range(30):
        u = rng.normal(size=d)
        words = rng.integers(0, 2**64, size=(1, 4), dtype=np.uint64)
        value, gradient = quartic(u)
        pace = np.zeros(5)
        pace[kernels.LOG_MEAN_STEP] = np.log(epsilon)
        clock = np.zeros(4, dtype=np.int64)
        motion = kernels.Motion(u.copy(), gradient.copy(), np.array([value]), pace, np.zeros((2, 4, d)), clock)
        draws, infos = np.empty((1, d)), np.empty((1, 8))
        stop = np.zeros(1, dtype=np.int64)
        metric = diagonal_metric(scale)
        kernels.run(target.problem(), metric, motion, words, plan, max_depth, 0, 0.8, draws, draws[:0], infos, stop)
        used = infos[0, kernels.STEP_SIZE]
        stream = Stream(words[0])  # one number is for the jitter
        assert used == pytest.approx(epsilon * (1 + 0.1 * (2 * stream.uniform() - 1)), rel=1e-14)
        expected, depth, count = nuts_step(quartic, u, scale, used, max_depth, stream.s)
        np.testing.assert_allclose(draws[0], expected, atol=1e-10)
        assert infos[0, kernels.DEPTH] == depth and infos[0, kernels.N_STEPS] == count
        depths.append(depth)
    assert max(depths) == min(max_depth, max(depths)) and len(set(depths)) >= (1 if max_depth == 1 else 2)


@pytest.mark.parametrize("metric", ["diagonal", "low-rank", "dense"])
def test_a_normal_of_condition_10000_in_100_dimensions(metric):
    variance = np.geomspace(1e-2, 1e2, 100)
    chains = nuts(densities.normal(1 / variance), 100, metric=metric, n_draws=600, random_state=1)
    assert chains.n_divergences == 0 and max(chains.rhat.values()) < 1.03
    z = np.abs(chains.draws.mean(axis=(0, 1))) / mcse_mean(chains.draws)
    assert z.max() < 4.5 and (z**2).mean() < 1.6
    z = np.abs(chains.draws.std(axis=(0, 1)) - np.sqrt(variance)) / mcse_sd(chains.draws)
    assert z.max() < 4.5


@pytest.mark.parametrize("metric", ["low-rank", "dense"])
def test_correlations_are_learned(metric):
    rng = np.random.default_rng(0)
    basis = np.linalg.qr(rng.normal(size=(20, 20)))[0]
    covariance = (basis * np.r_[1000.0, 300.0, np.ones(18)]) @ basis.T
    target = densities.correlated(np.linalg.inv(covariance))
    learned = nuts(target, 20, metric=metric, n_warmup=800, random_state=2)
    plain = nuts(target, 20, n_warmup=800, random_state=2)
    per_gradient = [min(c.ess.values()) / c.stats["n_steps"].sum() for c in (learned, plain)]
    assert per_gradient[0] > 3 * per_gradient[1]
    found = np.cov(learned["x"].reshape(-1, 20).T)
    np.testing.assert_allclose(np.trace(found), np.trace(covariance), rtol=0.15)
    assert learned.certificate_.holds


def test_eight_schools_has_the_exact_moments(reference_data):
    exact = {}
    with open(reference_data / "mcmc" / "posteriordb_small" / "exact_moments.csv") as file:
        next(file)
        for line in file:
            posterior, name, mean, sd, *_ = line.strip().split(",")
            if posterior.startswith("eight"):
                exact[name] = float(mean), float(sd)
    parameters = {"z": Real(8), "mu": Real(), "tau": Positive()}
    chains = nuts(densities.schools(), parameters, n_draws=4000, random_state=3, target_accept=0.97)
    assert max(chains.rhat.values()) < 1.01 and min(chains.ess.values()) > 400 and chains.n_divergences <= 5
    assert bool(ln.verify(chains)) == chains.certificate_.holds
    theta = chains["mu"][:, :, None] + chains["tau"][:, :, None] * chains["z"]
    found = {"mu": chains["mu"], "tau": chains["tau"]} | {f"theta[{j + 1}]": theta[:, :, j] for j in range(8)}
    for name, (mean, sd) in exact.items():
        assert abs(found[name].mean() - mean) < 4 * mcse_mean(found[name]), name
        assert abs(found[name].std() - sd) < 4 * mcse_sd(found[name]), name


@quiet
def test_the_funnel_says_that_it_is_one_and_its_other_form_does_not():
    centred = nuts(densities.funnel(), 10, n_draws=1000, random_state=0)
    assert not centred.certificate_.holds
    assert centred.n_divergences > 0 and any("non-centred" in fault for fault in centred.warnings())
    free = nuts(densities.normal(np.r_[1 / 9, np.ones(9)]), 10, n_draws=1000, random_state=0)
    assert free.certificate_.holds and free.n_divergences == 0


@quiet
def test_rosenbrock_has_its_means():
    def rosenbrock(x):
        a, b = 1 - x[0], x[1] - x[0] ** 2
        return -(a * a + 5 * b * b), np.array([2 * a + 20 * b * x[0], -10 * b])

    chains = nuts(rosenbrock, 2, n_draws=3000, random_state=4, target_accept=0.95)
    x = chains["x"]
    assert abs(x[:, :, 0].mean() - 1.0) < 4 * mcse_mean(x[:, :, 0])
    assert abs(x[:, :, 1].mean() - 1.5) < 4 * mcse_mean(x[:, :, 1])  # E x² = 1 + 1/2
    assert abs(x[:, :, 0].std() - np.sqrt(0.5)) < 4 * mcse_sd(x[:, :, 0])


def test_hmc_has_the_moments_of_a_normal():
    chains = hmc(densities.normal([1.0, 4.0, 0.25]), 3, n_leapfrog=6, n_draws=3000, random_state=5)
    z = chains.draws.mean(axis=(0, 1)) / mcse_mean(chains.draws)
    assert np.abs(z).max() < 4
    z = (chains.draws.std(axis=(0, 1)) - np.array([1.0, 0.5, 2.0])) / mcse_sd(chains.draws)
    assert np.abs(z).max() < 4
    assert abs(chains.stats["accept"].mean() - 0.8) < 0.1 and (chains.stats["n_steps"] == 6).all()


@quiet
@pytest.mark.parametrize("metric", ["diagonal", "low-rank", "dense"])
def test_the_same_bits_for_any_number_of_threads_and_after_a_resume(metric, tmp_path):
    target = densities.normal([1.0, 9.0, 100.0])
    run = {"random_state": 7, "metric": metric, "n_warmup": 120, "keep_warmup": True}
    whole = nuts(target, {"a": Real(2), "b": Positive()}, n_draws=60, n_jobs=1, **run)
    other = nuts(target, {"a": Real(2), "b": Positive()}, n_draws=60, n_jobs=2, **run)
    np.testing.assert_array_equal(whole.draws, other.draws)
    np.testing.assert_array_equal(whole.warmup, other.warmup)
    part = nuts(target, {"a": Real(2), "b": Positive()}, n_draws=25, **run)
    np.testing.assert_array_equal(resume(part, 35).draws, whole.draws)
    ln.save(part, tmp_path / "c.safetensors")
    loaded = resume(ln.load(tmp_path / "c.safetensors"), 35, sampler=part._sampler)
    np.testing.assert_array_equal(loaded.draws, whole.draws)
    sampler = part._sampler
    rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence(7).spawn(4)[1]))
    state = sampler.init(starting_points(sampler.target, None, 4, np.random.SeedSequence(7))[1], rng)
    for i in range(130):
        state, _ = sampler.step(state, rng)
        if i < 120:
            np.testing.assert_array_equal(sampler.draw(state), whole.warmup[1, i])


@quiet
def test_python_functions_and_compiled_ones_give_the_same_chain():
    precision = np.array([1.0, 4.0])
    fast = nuts(densities.normal(precision), 2, n_draws=100, random_state=1)

    def slow(x):
        gradient = -precision * x
        return float(sum(0.5 * gradient * x)), gradient

    np.testing.assert_allclose(nuts(slow, 2, n_draws=100, random_state=1).draws, fast.draws, atol=1e-8)
    named = nuts(lambda p: (slow(p["x"])[0], {"x": slow(p["x"])[1]}), {"x": 2}, n_draws=100, random_state=1)
    np.testing.assert_allclose(named.draws, fast.draws, atol=1e-8)


def test_numeric_gradients_in_few_dimensions_only():
    chains = nuts(lambda x: -0.5 * float(x @ x), 2, n_draws=500, random_state=1)
    assert abs(chains["x"].std() - 1) < 0.1
    with pytest.raises(DataError, match="numeric ones are refused for 21 parameters, more than 20"):
        nuts(lambda x: -0.5 * float(x @ x), 21)


def test_starts_and_gradients_that_cannot_be_are_named():
    names = {"mu": Real(), "tau": Positive()}

    def wrong(p):
        return -0.5 * p["mu"] ** 2 - p["tau"], {"mu": -p["mu"], "tau": 1.0}

    with pytest.raises(DataError, match=r"the gradient by tau is .*, but differences of the log density give"):
        nuts(wrong, names, random_state=0)
    with pytest.raises(DataError, match=r"x0\['tau'\] must be above 0; got -1"):
        nuts(wrong, names, x0={"mu": 0.0, "tau": -1.0})
    with pytest.raises(DataError, match="none of 100 random starts has a finite density; the last was mu ="):
        nuts(lambda p: (-np.inf, {"mu": 0.0, "tau": 0.0}), names)
    with pytest.raises(DataError, match=r"the gradient by x\[0\], x\[1\] is not finite at the start"):
        nuts(lambda x: (-0.5 * float(x @ x), np.full(2, np.nan)), 2)
    with pytest.raises(DataError, match=r"the gradient by x\[0\], x\[1\] is zero at the start"):
        nuts(lambda x: (0.0, 0 * x), 2)
    with pytest.raises(DataError, match=r"the log density at the start mu = 0\., tau = 1\. is -inf"):
        nuts(lambda p: (-np.inf, {"mu": 0.0, "tau": 0.0}), names, x0={"mu": 0.0, "tau": 1.0})
    with pytest.raises(DataError, match="the gradient lacks tau"):
        nuts(lambda p: (0.0, {"mu": 0.0}), names)
    with pytest.raises(DataError, match="the gradient must have 2 numbers; got 3"):
        nuts(lambda x: (0.0, np.zeros(3)), 2)


@pytest.mark.parametrize(
    "bad, message",
    [
        ({"target_accept": 1.0}, "target_accept must lie between 0 and 1"),
        ({"max_depth": 0}, "max_depth must be an integer from 1 to 20"),
        ({"metric": "round"}, "metric must be 'diagonal'"),
        ({"metric": np.ones(5)}, "must be 2 variances or a 2 × 2 covariance"),
        ({"n_warmup": 0}, "pass step_size="),
        ({"step_size": -1.0}, "step_size must be positive"),
        ({"n_chains": 0}, "n_chains must be"),
        ({"n_draws": 0}, "n_draws must be"),
        ({"parameters": None}, "say what is sampled"),
        ({"log_density": 3.0}, "log_density must be a function"),
    ],
)
def test_bad_arguments_are_refused(bad, message):
    with pytest.raises(ParameterError, match=message):
        nuts(**{"log_density": quartic, "parameters": 2, **bad})
    if "max_depth" not in bad:
        with pytest.raises(ParameterError, match=message):
            hmc(**{"log_density": quartic, "parameters": 2, **bad})


def test_the_plan_of_the_warm_up():
    plan = warmup_plan(400)
    switches = np.flatnonzero(plan & kernels.SWITCH)
    assert (np.diff(switches[switches < 120]) == 10).all()
    assert (plan[:340] & kernels.FIT_METRIC).all() and not (plan[340:] & kernels.FIT_METRIC).any()
    assert (plan[340:] & kernels.LATE).all() and len(warmup_plan(0)) == 0


def test_metrics_of_normal_draws_are_their_covariance():
    rng = np.random.default_rng(0)
    basis = np.linalg.qr(rng.normal(size=(8, 8)))[0]
    covariance = (basis * np.r_[500.0, 1e-3, np.ones(6)]) @ basis.T
    draws = rng.multivariate_normal(np.zeros(8), covariance, size=40)
    gradients = -draws @ np.linalg.inv(covariance)
    for fit in (fit_dense, fit_low_rank):
        metric = fit(draws, gradients)
        columns = []
        for e in np.eye(8):
            out = np.empty(8)
            kernels.to_move(metric, np.ascontiguousarray(e), out)
            columns.append(out)
        F = np.array(columns).T
        for g in rng.normal(size=(3, 8)):
            out = np.empty(8)
            kernels.to_force(metric, g, out)
            np.testing.assert_allclose(out, F.T @ g, atol=1e-10)
        ratio = np.linalg.eigvals(np.linalg.solve(covariance, F @ F.T)).real
        assert ratio.min() > 0.4 and ratio.max() < 2.5
    assert fit_dense(draws[:5], gradients[:5]) is None
