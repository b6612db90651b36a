"""Population structure: the sampler's law is that of enumeration, the likelihood never falls, published numbers."""

import itertools
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import beta as beta_law
from scipy.stats import kstest
from tests.mutations import unnoticed
from tests.oracles import admixture as oracle

import learnable as ln
from learnable.core.errors import DataError, ParameterError
from learnable.sampling import mcse_mean
from learnable.sampling.metropolis import step_words
from learnable.topics import (
    Genotypes,
    PopulationSampler,
    PopulationStructure,
    align_columns,
    log_evidence,
    places,
    read_genotypes,
    simulate_genotypes,
)
from learnable.topics._kernels import draw_pairs
from learnable.topics.copies import copies_of
from learnable.topics.structure_ml import Likelihood, feasible_rows, maximise, spectral_start, start_frequencies
from learnable.topics.structure_start import least_squares_start, on_simplex

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

TINY = Genotypes.from_alleles([[[0, 1], [2, 2]], [[1, 1], [0, -1]]])  # seven copies, two and three alleles
PAIRS = Genotypes.from_alleles([[[0, 1], [1, 1]], [[1, 1], [0, -1]]])  # seven copies, two alleles


def all_joints(table, K, alpha, lam, admixture):
    """Return log p(genotypes, z) of all assignments, and the counts of copies that each of them has."""
    shape = table.alleles.shape
    words = table.alleles + table.starts[:-1][None, :, None]
    known = table.alleles >= 0
    rows = np.broadcast_to(np.arange(shape[0])[:, None, None], shape)
    logs = []
    states = []
    for spelled in itertools.product(range(K), repeat=known.sum() if admixture else shape[0]):
        z = np.zeros(shape, dtype=int)
        if admixture:
            z[known] = spelled
            logs.append(oracle.log_joint(table, z, K, alpha, lam))
        else:
            z = np.broadcast_to(np.array(spelled)[:, None, None], shape)
            logs.append(oracle.log_joint_whole(table, spelled, K, lam))
        own = np.zeros((shape[0], K), dtype=np.int32)
        np.add.at(own, (rows[known], z[known]), 1)
        copies = np.zeros((table.starts[-1], K), dtype=np.int32)
        np.add.at(copies, (words[known], z[known]), 1)
        states.append(own.tobytes() + copies.tobytes())
    return np.array(logs), states


@pytest.mark.parametrize("table", [TINY, PAIRS], ids=["three alleles", "two alleles"])
@pytest.mark.parametrize("admixture", [True, False])
def test_the_law_is_that_of_all_assignments(table, admixture):
    logs, states = all_joints(table, 2, 0.6, 0.8, admixture)
    p = np.exp(logs - logs.max())
    p /= p.sum()
    names = {state: number for number, state in enumerate(dict.fromkeys(states))}  # several assignments share counts
    number = np.array([names[state] for state in states])
    law = np.bincount(number, p)
    level = np.bincount(number, logs) / np.bincount(number)
    np.testing.assert_allclose(level[number], logs)  # the joint is a function of the counts
    sampler = PopulationSampler(table, 2, admixture=admixture, alpha=0.6, lam=0.8)
    rng = np.random.default_rng(0)
    state = sampler.init(None, rng)
    found = np.empty(8000, dtype=np.int64)
    for t in range(len(found)):
        state, _ = sampler.step(state, rng)
        found[t] = names[state.own.tobytes() + state.copies.tobytes()]
    for cell in np.argsort(law)[-10:]:
        hit = (found == cell).astype(float)[None]
        assert abs(hit.mean() - law[cell]) < 4.5 * mcse_mean(hit), cell
    values = level[found][None]
    assert abs(values.mean() - p @ logs) < 4 * mcse_mean(values)


@pytest.mark.parametrize(("ploidy", "most"), [(3, 1), (2, 1), (2, 3)])
def test_a_sweep_draws_every_copy_by_its_chances(ploidy, most):
    """Two blocks of loci with one or two alleles, or tokens of loci with four; some copies are missing."""
    rng = np.random.default_rng(2)
    alleles = rng.integers(-1, most + 1, size=(4, 300, ploidy))
    alleles[:, 7] = 0
    table = Genotypes.from_alleles(alleles)
    Q = rng.dirichlet([0.5, 1.0, 2.0], size=4)
    parts = [rng.dirichlet(np.ones(b - a), size=3).T for a, b in itertools.pairwise(table.starts)]
    P = np.concatenate(parts)
    drawn = [copies_of(table, 1).sweep(P, Q, words) for words in step_words(rng, 400)]
    own, copies, spread, spread_of_copies = oracle.expected_copies(table, Q, P)
    for counts, mean, variance in [
        (np.array([one.own for one in drawn]), own, spread),
        (np.array([one.copies for one in drawn]), copies, spread_of_copies),
    ]:
        assert (counts >= 0).all()
        assert (counts.sum(axis=2) == np.rint(mean.sum(axis=1))).all()
        told = variance * len(drawn) > 10.0  # else the number of hits is far from normal
        distance = (np.abs(counts.mean(axis=0) - mean) / np.sqrt(np.maximum(variance, 1e-9) / len(drawn)))[told]
        assert distance.max() < 5.0
        assert 0.8 < (distance**2).mean() < 1.2 or told.sum() < 50
    assert drawn[0].level == pytest.approx(oracle.log_likelihood(table, Q, P), rel=1e-12)


def test_frequencies_of_two_alleles_are_beta_numbers():
    """Shapes above and below one, priors for all alleles and for each; loci from their own streams."""
    n = 4000
    counts = np.tile(np.array([[0, 1, 30], [0, 0, 2]], dtype=np.int32), (n, 1))
    words = np.arange(4, dtype=np.uint64)
    for prior in (np.full((1, 1), 1.0), np.full((1, 1), 0.3), np.tile([[0.2, 1.5, 4.0], [2.0, 1.0, 0.1]], (n, 1))):
        found = np.empty((2 * n, 3))
        draw_pairs(counts, prior, words, 0, n, found)
        np.testing.assert_allclose(found[0::2] + found[1::2], 1.0, rtol=1e-15)
        shapes = (counts + prior)[:2]
        for k in range(3):
            assert kstest(found[0::2, k], beta_law(*shapes[:, k]).cdf).pvalue > 1e-3
        apart = np.empty_like(found)
        draw_pairs(counts, prior, words, n // 2, n, apart)
        draw_pairs(counts, prior, words, 0, n // 2, apart)
        np.testing.assert_array_equal(apart, found)


def test_counts_of_many_individuals_do_not_overflow():
    table = Genotypes.from_dosage(np.full((40_000, 2), 2))
    drawn = copies_of(table, 1).sweep(np.ones((4, 2)), np.full((40_000, 2), 0.5), np.arange(4, dtype=np.uint64))
    assert drawn.copies[:, 0].tolist()[0::2] == [0, 0]
    assert (drawn.copies.sum(axis=1) == [0, 80_000, 0, 80_000]).all()
    assert (np.abs(drawn.copies[1::2] - 40_000) < 700).all()  # five standard deviations
    assert (drawn.own.sum(axis=1) == 4).all()


def test_the_evidence_is_the_sum_over_all_assignments():
    logs, _ = all_joints(TINY, 2, 0.6, 0.8, True)
    exact = logs.max() + np.log(np.exp(logs - logs.max()).sum())
    value, error = log_evidence(TINY, 2, alpha=0.6, lam=0.8, n_draws=600, n_warmup=50, random_state=0)
    assert abs(value - exact) < 4 * error + 0.01
    assert error < 0.1


@pytest.mark.parametrize("starts", [[0, 2, 5], [0, 2, 4]], ids=["three alleles", "two alleles"])
def test_alpha_frequencies_and_ancestors_keep_the_prior_when_data_are_drawn_anew(starts):
    """Geweke (2004): parameters and data in turn, each given the other, have the prior as their law."""
    rng = np.random.default_rng(3)
    starts = np.array(starts)
    Q = rng.dirichlet([1.0, 1.0], size=3)
    P = np.concatenate([rng.dirichlet(np.ones(b - a), size=2).T for a, b in itertools.pairwise(starts)])
    alphas = []
    shares = []
    state = None
    for _ in range(2500):
        table = simulate_genotypes(Q, P, starts, 2, rng)
        sampler = PopulationSampler(table, 2, lam=1.0)
        # z given the new data, Q and P: the last part of a step.
        own, copies, _ = sampler.copies.sweep(P, Q, step_words(rng, 1)[0])
        fresh = sampler.init(None, rng)
        alpha = np.array([1.0]) if state is None else state.alpha
        state, _ = sampler.step(fresh._replace(own=own, copies=copies, alpha=alpha), rng)
        Q, P = state.Q, state.P
        alphas.append(float(state.alpha[0]))
        shares.append(P[0, 0])
    for draws, mean in [(alphas, 5.0), (shares, 0.5)]:  # α is uniform on (0, 10], p of two alleles on (0, 1)
        assert abs(np.mean(draws) - mean) < 4 * mcse_mean(np.array(draws)[None])


@pytest.mark.long
def test_places_keep_their_prior_when_data_are_drawn_anew():
    """Geweke's test of the parameters of places: α is uniform on (0, 10], r on (0, 20], α_ck has the mean α."""
    rng = np.random.default_rng(5)
    where = np.array([0, 0, 1, 1])
    lengths = np.array([3, 4, 3, 4])
    prior = places.start(2, 2, 1.0)
    found = []
    for _ in range(20_000):
        Q = places.draw_proportions(prior, np.zeros((4, 2), dtype=np.int32), where, rng)
        own = np.array([rng.multinomial(n, q) for n, q in zip(lengths, Q, strict=True)], dtype=np.int32)
        prior = places.draw(prior, own, where, rng, learns_alpha=True)
        found.append([prior.alpha, prior.strength, float((prior.local - prior.alpha).mean())])
    for draws, mean in zip(np.array(found).T, [5.0, 10.0, 0.0], strict=True):
        assert abs(draws.mean() - mean) < 4 * mcse_mean(draws[None])


def test_places_help_weak_data_and_are_checked(tmp_path):
    rng = np.random.default_rng(1)
    L = 30
    P = rng.dirichlet([2.0, 2.0], size=(L, 2)).transpose(0, 2, 1).reshape(2 * L, 2)
    where = np.repeat(["north", "south"], 20)
    Q = np.vstack([rng.dirichlet([9.0, 0.5], size=20), rng.dirichlet([0.5, 9.0], size=20)])
    table = simulate_genotypes(Q, P, np.arange(0, 2 * L + 1, 2), 2, rng)

    def error(model):
        return min(np.abs(model.Q_ - Q).mean(), np.abs(model.Q_[:, ::-1] - Q).mean())

    settings_ = {"n_draws": 300, "n_warmup": 200, "n_chains": 2, "random_state": 0}
    plain = PopulationStructure(2, **settings_).fit(table, where)
    informed = PopulationStructure(2, place_prior=True, **settings_).fit(table, where)
    assert not hasattr(plain, "place_alpha_")
    assert error(informed) < error(plain)
    assert informed.places_ == ["north", "south"]
    assert informed.place_alpha_.argmax(axis=1).tolist() in ([0, 1], [1, 0])
    ln.save(informed, tmp_path / "model.safetensors")
    loaded = ln.load(tmp_path / "model.safetensors")
    value = ln.verify(loaded, table, where).value
    assert value == pytest.approx(informed.certificate_.value)
    assert np.isfinite(value)
    loaded.place_alpha_[0, 0] *= 1.001
    assert ln.verify(loaded, table, where).value == np.inf
    assert any("not those of the fit" in reason for reason in ln.verify(informed, table, where[::-1]).reasons)


@pytest.mark.parametrize(
    ("settings_", "y", "message"),
    [
        ({"method": "ml"}, ["a"] * 4, "needs method='gibbs'"),
        ({"admixture": False}, ["a"] * 4, "needs method='gibbs'"),
        ({}, None, "the place of each individual"),
        ({}, ["a"] * 3, "one place per individual"),
        ({}, ["a", None, "b", "b"], "the place of individual 1 is missing"),
    ],
)
def test_places_that_cannot_be_used_are_refused(settings_, y, message):
    with pytest.raises((ParameterError, DataError), match=message):
        PopulationStructure(2, place_prior=True, **settings_).fit(np.ones((4, 3)), y)


def two_populations(n=24, L=40, seed=0, ploidy=2):
    rng = np.random.default_rng(seed)
    P = rng.dirichlet([1.0, 1.0], size=(L, 2)).transpose(0, 2, 1).reshape(2 * L, 2)
    Q = rng.dirichlet([0.3, 0.3], size=n)
    return simulate_genotypes(Q, P, np.arange(0, 2 * L + 1, 2), ploidy, rng), Q, P


@settings(max_examples=12)
@given(st.integers(0, 10_000), st.integers(1, 3), st.integers(1, 4))
def test_the_likelihood_is_that_of_the_copies_and_never_falls(seed, ploidy, K):
    rng = np.random.default_rng(seed)
    most = int(rng.integers(1, 4))
    alleles = rng.integers(-1, most, size=(7, 5, ploidy))
    table = Genotypes.from_alleles(alleles)
    Q = feasible_rows(rng.dirichlet(np.ones(K), size=7))
    P = start_frequencies(table, Q)
    likelihood = Likelihood(table, 1)
    exact = oracle.log_likelihood(table, Q, P)
    assert likelihood.value(Q, likelihood.moved(P)) == pytest.approx(exact, abs=1e-9)
    found = maximise(likelihood, Q, P, tol=1e-9, max_iter=30, progress=lambda i, value: False)
    assert (np.diff(found.history) >= 0).all()
    assert found.history[-1] == pytest.approx(oracle.log_likelihood(table, found.Q, found.P), abs=1e-6)
    if (alleles >= 0).any(axis=(1, 2)).all() and (alleles >= 0).any(axis=(0, 2)).all():
        new = oracle.em_step(table, Q, P)
        moved = likelihood.em_step(Q, likelihood.moved(P))
        np.testing.assert_allclose(moved[0], new[0], atol=1e-7)
        np.testing.assert_allclose(likelihood.frequencies(moved[1]), new[1], atol=1e-7)


def test_proportions_and_frequencies_are_recovered():
    table, Q, P = two_populations(60, 150)
    ml = PopulationStructure(2, method="ml", random_state=0).fit(table)
    posterior = PopulationStructure(2, n_draws=80, n_warmup=80, n_kept=80, random_state=0).fit(table)
    for model in (ml, posterior):
        order = align_columns(Q, model.Q_)
        assert np.abs(model.Q_[:, order] - Q).mean() < 0.06
        assert np.abs(model.P_[:, order] - P).mean() < 0.09
    low, high = posterior.Q_interval(0.9)
    order = align_columns(Q, posterior.Q_)
    inside = (low[:, order] <= Q) & (high[:, order] >= Q)
    assert 0.8 <= inside[:, 0].mean() <= 1.0  # 60 individuals: 0.9 ± 0.1
    low, high = posterior.P_interval(0.9)
    assert 0.8 <= ((low[:, order] <= P) & (high[:, order] >= P)).mean() <= 0.97
    assert ml.certificate_.kind == "ascent"
    assert ml.certificate_.holds
    assert posterior.certificate_.kind == "chain"


@pytest.mark.parametrize(
    "setting",
    [{"method": "ml"}, {}, {"admixture": False}, {"frequencies": "correlated"}, {"method": "ml", "admixture": False}],
    ids=str,
)
def test_the_same_bits_for_any_number_of_threads_a_round_trip_and_a_check(setting, tmp_path):
    table, _, _ = two_populations(20, 140)
    brief = {"n_draws": 12, "n_warmup": 8, "n_kept": 6, "n_chains": 2, "random_state": 1, **setting}
    one = PopulationStructure(2, n_jobs=1, **brief).fit(table)
    two = PopulationStructure(2, n_jobs=2, **brief).fit(table)
    np.testing.assert_array_equal(one.Q_, two.Q_)
    np.testing.assert_array_equal(one.P_, two.P_)
    ln.save(one, tmp_path / "m.safetensors")
    np.testing.assert_array_equal(ln.load(tmp_path / "m.safetensors").transform(table), one.transform(table))
    if one.certificate_.holds:
        assert ln.verify(one, table)


@pytest.mark.parametrize("most", [1, 2])
def test_threads_within_a_chain_give_the_same_bits(most):
    table, _, _ = two_populations(60, 400)
    if most == 2:  # 48,000 copies, more than one thread is worth it
        alleles = table.alleles.copy()
        alleles[0, :, 0] = 2
        table = Genotypes.from_alleles(alleles)
    draws = []
    for threads in (1, 2):
        sampler = PopulationSampler(table, 3, threads=threads)
        sampler.copies.threads = threads
        rng = np.random.default_rng(0)
        state = sampler.init(None, rng)
        for _ in range(3):
            state, _ = sampler.step(state, rng)
        draws.append(state)
    np.testing.assert_array_equal(draws[0].copies, draws[1].copies)
    assert draws[0].level == draws[1].level
    np.testing.assert_array_equal(draws[0].Q, draws[1].Q)


def test_every_number_of_a_posterior_is_checked():
    table, _, _ = two_populations(12, 60)
    model = PopulationStructure(2, admixture=False, n_draws=800, n_warmup=50, n_kept=8, n_chains=2, random_state=0).fit(
        table
    )
    assert ln.verify(model, table), str(ln.verify(model, table))
    # One of 1,600 draws of which nothing was kept: R-hat and the effective sample size hardly see it.
    within = {("trace_", "one entry"), ("trace_", "swapped")}
    assert set(unnoticed(model, table)) <= within


def test_one_population_has_its_closed_forms(reference_data):
    cats = read_genotypes(reference_data / "genetics" / "nancycats.str")
    value, error = log_evidence(cats, 1)
    assert value == pytest.approx(-7893.448391, abs=1e-6)  # computed exactly, apart from this code
    assert error == 0.0
    model = PopulationStructure(1, method="ml").fit(cats)
    assert model.log_likelihood_ == pytest.approx(-7662.174925, abs=1e-4)
    assert model.transform(cats).min() == 1.0


@pytest.mark.long
def test_hapmap_reaches_the_published_likelihood(reference_data):
    """ADMIXTURE 1.3.0, K = 3: −3799887.171935, with its frequencies kept above 1e-5; ours may come nearer to 0."""
    folder = reference_data / "genetics" / "hapmap3"
    table = read_genotypes(folder / "hapmap3.bed")
    model = PopulationStructure(3, method="ml", n_init=1, random_state=0).fit(table)
    assert -3799887.17 < model.log_likelihood_ < -3799870
    dosage = table.dosage.astype(float)  # the likelihood again, from Q and P alone
    F = model.Q_ @ model.P_[1::2].T
    known = dosage >= 0
    exact = (dosage * np.log(F) + (2 - dosage) * np.log1p(-F))[known].sum()
    assert model.log_likelihood_ == pytest.approx(exact, rel=1e-10)
    groups = np.array((folder / "hapmap3.pops").read_text().split())
    published = {"CEU": [0.0037, 0.0, 0.9963], "YRI": [0.0004, 0.9989, 0.0007], "MEX": [0.6983, 0.01, 0.2917]}
    published["ASW"] = [0.0272, 0.7846, 0.1881]
    expected = np.array([published[group] for group in groups])
    order = align_columns(expected, model.Q_)
    for group, means in published.items():
        np.testing.assert_allclose(model.Q_[groups == group][:, order].mean(axis=0), means, atol=0.002)


def test_fast_structure_agrees(reference_data):
    """fastStructure, K = 3, simple prior: its Q is a variational posterior mean."""
    folder = reference_data / "genetics" / "faststructure_original"
    table = read_genotypes(folder / "testdata.bed")
    published = np.loadtxt(folder / "testoutput_simple.3.meanQ")
    model = PopulationStructure(3, method="ml", n_init=1, random_state=0).fit(table)
    order = align_columns(published, model.Q_)
    assert np.abs(model.Q_[:, order] - published).mean() < 0.07
    assert np.corrcoef(model.Q_[:, order].ravel(), published.ravel())[0, 1] > 0.97


def test_a_start_by_least_squares_is_near_the_maximum():
    """Rows go to the nearest point of the simplex, and the start is far above that from corners of the cloud."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(20, 4))
    near = on_simplex(rows)
    np.testing.assert_allclose(near.sum(axis=1), 1.0)
    assert (near >= 0).all()
    for other in rng.dirichlet(np.ones(4), size=50):
        assert (((near - rows) ** 2).sum(axis=1) <= ((other - rows) ** 2).sum(axis=1) + 1e-12).all()
    Q = rng.dirichlet(np.full(3, 0.3), size=60)
    P = rng.dirichlet([1.0, 1.0, 1.0], size=(200, 3)).transpose(0, 2, 1).reshape(600, 3)
    alleles = simulate_genotypes(Q, P, np.arange(0, 601, 3), random_state=rng).alleles.copy()
    alleles[rng.random(alleles.shape[:2]) < 0.1] = -1
    table = Genotypes.from_alleles(alleles, n_alleles=np.full(200, 3))
    corners = spectral_start(table, 3, rng)
    likelihood = Likelihood(table)
    begun = likelihood.value(*(corners, start_frequencies(table, corners)))
    found_Q, found_P = least_squares_start(table, corners)
    np.testing.assert_allclose(found_Q.sum(axis=1), 1.0)
    np.testing.assert_allclose(np.add.reduceat(found_P, table.starts[:-1], axis=0), 1.0)
    reached = maximise(likelihood, found_Q, found_P, tol=1e-8, max_iter=100, progress=lambda i, level: False)
    start = likelihood.value(found_Q, found_P)
    assert begun < start < reached.history[-1]
    assert reached.history[-1] - start < 0.5 * (reached.history[-1] - begun)


def test_odd_tables_have_right_answers():
    table, _, _ = two_populations(16, 30)
    alleles = table.alleles.copy()
    alleles[:, 0] = 0  # a locus with one allele
    alleles[0] = -1  # an individual without genotypes
    alleles[:, 1] = -1  # a locus that was never typed
    odd = Genotypes.from_alleles(alleles, n_alleles=np.full(30, 2))
    for more in ({"method": "ml"}, {"n_draws": 8, "n_warmup": 4}, {"method": "ml", "admixture": False}):
        model = PopulationStructure(2, n_kept=4, random_state=0, **more).fit(odd)
        assert np.isfinite(model.Q_).all()
        assert np.isfinite(model.P_).all()
        np.testing.assert_allclose(model.transform(odd)[0], 0.5)
        if more.get("method") == "ml":
            np.testing.assert_allclose(model.Q_[0], 0.5)
    many = PopulationStructure(20, method="ml", n_init=1, max_iter=5).fit(odd)  # more populations than individuals
    assert many.Q_.shape == (16, 20)
    with pytest.raises(DataError, match="all genotypes are missing"):
        PopulationStructure(2).fit(np.full((3, 2), np.nan))
    with pytest.raises(DataError, match="X has 30 loci, the fit had 5"):
        PopulationStructure(2, method="ml", n_init=1).fit(np.ones((4, 5))).transform(table)
    with pytest.raises(ParameterError, match="intervals need draws"):
        many.Q_interval()


def test_alleles_are_matched_by_their_names():
    rng = np.random.default_rng(0)
    text = np.where(rng.random((20, 8, 2)) < np.linspace(0.1, 0.9, 20)[:, None, None], "101", "99")
    fit_on = Genotypes.from_alleles((text == "101").astype(int), allele_names=(("99", "101"),) * 8)
    other = Genotypes.from_alleles((text == "99").astype(int), allele_names=(("101", "99"),) * 8)
    model = PopulationStructure(2, method="ml", random_state=0).fit(fit_on)
    np.testing.assert_allclose(model.transform(other), model.transform(fit_on))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        strange = Genotypes.from_alleles(np.zeros((1, 8, 2), dtype=int), allele_names=(("77",),) * 8)
        np.testing.assert_allclose(model.transform(strange), 0.5)
    assert any("has not seen" in str(one.message) for one in caught)


def test_f_st_is_zero_between_equals_and_one_between_fixed_populations():
    model = PopulationStructure(2, method="ml", random_state=0).fit(np.repeat([[0, 0, 0], [2, 2, 2]], 10, axis=0))
    np.testing.assert_allclose(model.fst(), [[0, 1], [1, 0]], atol=1e-6)
    model.P_[:] = 0.5
    np.testing.assert_allclose(model.fst(), 0, atol=1e-12)
    again = model.simulate(4, random_state=0)
    assert again.fingerprint == model.simulate(4, random_state=0).fingerprint
