"""Mixtures of any exponential family: laws of EM, published fits, special cases, every way up the same hill."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm, poisson
from sklearn.exceptions import ConvergenceWarning
from tests.mixtures.draws import KNOWN, PAIRS, rows_of

import learnable as ln
from learnable import GaussianMixture, MixtureModel, probability
from learnable.core.errors import DataError, ModelFileError, ParameterError
from learnable.solvers import em


def quiet_fit(model, *args, **kwargs):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(*args, **kwargs)


def make(name, K=2, **settings):
    return MixtureModel(name, K, **({"known": KNOWN.get(name), "random_state": 0, "tol": 1e-7} | settings))


def test_poisson_mixture_of_the_earthquakes(reference_data):
    counts = np.loadtxt(reference_data / "series" / "earthquakes.csv", delimiter=",", skiprows=1)[:, -1:]
    model = make("Poisson", tol=1e-10, max_iter=5000).fit(counts)
    # Zucchini and MacDonald (2009), table 1.3: independent mixture of two Poisson distributions, −log L = 360.369.
    assert model.score_samples(counts).sum() == pytest.approx(-360.369, abs=5e-4)
    assert bool(ln.verify(model, counts))


def test_old_faithful_by_every_way_up(reference_data):
    X = np.loadtxt(reference_data / "old_faithful.csv", delimiter=",", skiprows=1, usecols=(0, 1))
    for way in ({}, {"accelerate": True}, {"solver": "lbfgs"}):
        model = make("MultivariateNormal", max_iter=2000, tol=1e-9, **way).fit(X)
        assert model.score_samples(X).sum() == pytest.approx(-1130.264, abs=1e-3)  # mclust, VVV, two components
        assert bool(ln.verify(model, X)) and model.converged_


class GroupedNormals:
    """Two normal distributions of which only the counts of intervals are known (the rows of a table of intervals)."""

    def expectation(self, table, theta):
        low, high, count = table
        pi, mu, sigma = theta
        a, b = (low[:, None] - mu) / sigma, (high[:, None] - mu) / sigma
        mass = norm.cdf(b) - norm.cdf(a)
        with np.errstate(invalid="ignore"):
            edges = [np.nan_to_num(z * norm.pdf(z)) for z in (a, b)]
        first = mu * mass + sigma * (norm.pdf(a) - norm.pdf(b))
        # E[x²; interval] from E[z²; interval] = mass + aφ(a) − bφ(b)
        second = mu**2 * mass + 2 * mu * sigma * (norm.pdf(a) - norm.pdf(b)) + sigma**2 * (mass + edges[0] - edges[1])
        total = mass @ pi
        r = count[:, None] * pi / total[:, None]
        return ((r * mass).sum(0), (r * first).sum(0), (r * second).sum(0)), float(count @ np.log(total))

    def maximisation(self, statistics, theta):
        n, first, second = statistics
        return n / n.sum(), first / n, np.sqrt(second / n - (first / n) ** 2)

    def log_prior(self, theta):
        return 0.0

    def pack(self, theta):
        return np.concatenate([np.log(theta[0]), theta[1], np.log(theta[2])])

    def unpack(self, z):
        return np.exp(z[:2]) / np.exp(z[:2]).sum(), z[2:4], np.exp(z[4:])


def test_pearsons_crabs(reference_data):
    upper, count = np.loadtxt(reference_data / "pearson_crabs.csv", delimiter=",", skiprows=1).T
    intervals = (np.r_[-np.inf, upper[:-1]], upper, count)
    # Two normal distributions of Pearson's 1000 crabs (1894), maximum likelihood of the grouped counts.
    start = (np.array([0.4, 0.6]), np.array([0.63, 0.66]), np.array([0.02, 0.012]))
    problem = GroupedNormals()
    found = em(problem, [intervals], [start], tol=1e-10, max_iter=5000, pack=problem.pack, unpack=problem.unpack)
    assert found.converged
    pi, mu, sigma = found.parameters
    np.testing.assert_allclose([pi[0], *mu, *sigma], [0.45276, 0.632616, 0.654687, 0.018619, 0.012483], rtol=2e-4)
    # The middles of the intervals say nearly the same.
    used = count > 0
    middles = (upper - 0.002)[used]
    middles[-1] = upper[-2] + 0.002
    model = make("Normal", tol=1e-8, max_iter=50_000, accelerate=True).fit(middles[:, None], sample_weight=count[used])
    order = np.argsort(model.means_[:, 0])
    np.testing.assert_allclose(model.means_[order, 0], mu, atol=1.5e-3)  # intervals are 4e-3 wide
    np.testing.assert_allclose(model.parameters_["std"][order, 0], sigma, rtol=0.05)
    np.testing.assert_allclose(model.weights_[order], pi, atol=0.05)


@pytest.mark.parametrize("name", PAIRS)
def test_one_component_is_the_maximum_likelihood_estimate(name):
    X, _ = rows_of(name)
    w = np.random.default_rng(0).uniform(0.5, 2.0, len(X))
    model = make(name, 1).fit(X, sample_weight=w)
    family = getattr(probability, name)
    events = X.reshape(-1, 2, 2) if family._event_rank == 2 else X
    best = family.fit_mle(events, w, **KNOWN.get(name, {}))
    for key, value in best.parameters.items():
        np.testing.assert_allclose(model.parameters_[key][0], value, rtol=1e-6)
    assert model.lower_bound_ == pytest.approx(np.average(model.score_samples(X), weights=w), rel=1e-9)


@pytest.mark.parametrize("name", PAIRS)
def test_the_two_members_are_found_and_verified(name):
    X, labels = rows_of(name, 400)
    model = make(name).fit(X)
    share = np.mean(model.predict(X) == labels)
    assert max(share, 1 - share) > 0.9
    assert (np.diff(model.bound_history_) >= -1e-10).all()
    verdict = ln.verify(model, X)
    assert bool(verdict), str(verdict)
    # By the definition of a mixture, with the densities of `probability`.
    events = X.reshape(-1, 2, 2) if getattr(probability, name)._event_rank == 2 else X
    parts = [np.asarray(each.logpdf(events)) for each in model.densities()]
    parts = [each.sum(axis=1) if each.ndim == 2 else each for each in parts]
    np.testing.assert_allclose(model.score_samples(X), np.logaddexp(*(np.log(model.weights_)[:, None] + parts)))
    drawn, origin = model.sample(500, random_state=1)
    assert drawn.shape == (500, X.shape[1]) and np.isfinite(model.score_samples(drawn)).all()
    assert np.bincount(origin, minlength=2).sum() == 500


@given(
    st.integers(0, 2**31),
    st.sampled_from(["Normal", "MultivariateNormal", "Poisson", "Gamma", "Bernoulli", "Categorical", "Dirichlet"]),
    st.sampled_from([None, "default", {"rows": 3.0, "alpha": 2.0}]),
    st.booleans(),
    st.sampled_from(["kmeans", "random", "k-means++", "random_from_data"]),
    st.sampled_from(["em", "squarem", "lbfgs"]),
)
@settings(max_examples=25)
def test_laws(seed, name, prior, weighted, init, way):
    X, _ = rows_of(name, 60, seed)
    w = np.random.default_rng(seed).integers(0, 3, len(X)) + 0.5 if weighted else None
    how = {"accelerate": way == "squarem", "solver": "lbfgs" if way == "lbfgs" else "em"}
    model = make(name, 2, prior=prior, init_params=init, random_state=seed, max_iter=60, tol=1e-5, **how)
    quiet_fit(model, X, sample_weight=w)
    history = model.bound_history_
    assert (np.diff(history) >= -1e-9 * (1 + abs(history[0]))).all()
    assert model.weights_.sum() == pytest.approx(1.0)
    verdict = ln.verify(model, X, sample_weight=w)
    if model.certificate_.holds:
        assert bool(verdict), str(verdict)
    else:  # the recomputed value agrees even where it is above the tolerance
        assert verdict.value == pytest.approx(model.certificate_.value, rel=0.01, abs=1e-9)


def test_normal_families_are_gaussian_mixtures():
    X, _ = rows_of("MultivariateNormal", 300)
    for name, kind in (("Normal", "diag"), ("MultivariateNormal", "full")):
        ours = make(name, tol=1e-10, max_iter=2000).fit(X)
        peer = GaussianMixture(2, covariance_type=kind, reg_covar=0.0, tol=1e-10, max_iter=2000, random_state=0).fit(X)
        assert ours.lower_bound_ == pytest.approx(peer.lower_bound_, abs=1e-8)
        assert ours.bic(X) == pytest.approx(peer.bic(X), rel=1e-6) and ours.aic(X) == pytest.approx(
            peer.aic(X), rel=1e-6
        )


def test_a_far_origin_costs_no_digits():
    X, _ = rows_of("Normal", 200)
    near, far = make("Normal").fit(X), make("Normal").fit(X + 1e7)
    assert far.lower_bound_ == pytest.approx(near.lower_bound_, rel=1e-7)
    np.testing.assert_allclose(
        np.sort(far.parameters_["std"], axis=0), np.sort(near.parameters_["std"], axis=0), rtol=1e-6
    )


def test_a_prior_keeps_components_from_collapsing():
    X = np.concatenate([rows_of("Gamma", 40)[0], np.repeat([[300.0, 300.0]], 4, axis=0)])
    with pytest.raises(DataError, match="too few different rows"):
        make("Gamma", 3, max_iter=2000).fit(X)
    model = make("Gamma", 3, prior="default", max_iter=2000).fit(X)
    assert model.parameters_["shape"].max() < 1e4 and bool(ln.verify(model, X))
    flat = make("Poisson", prior={"rows": 0.0, "alpha": 1.0}).fit(rows_of("Poisson")[0])
    plain = make("Poisson").fit(rows_of("Poisson")[0])
    assert flat.bound_history_.tolist() == plain.bound_history_.tolist()
    heavy = make("Poisson", prior={"rows": 1e9}).fit(rows_of("Poisson")[0])  # the prior alone: one member for all
    np.testing.assert_allclose(heavy.parameters_["rate"], [rows_of("Poisson")[0].mean(axis=0)] * 2, rtol=1e-4)


def test_known_labels():
    X, labels = rows_of("Poisson", 200)
    model = make("Poisson").fit(X, labels=labels)
    for k in range(2):
        np.testing.assert_allclose(model.parameters_["rate"][k], X[labels == k].mean(axis=0))
    assert bool(ln.verify(model, X))
    some = np.where(np.arange(len(X)) % 10 == 0, labels, -1)
    partly = make("Poisson", init_params="random").fit(X, labels=some)
    assert partly.means_[0, 0] < partly.means_[1, 0]  # the labels say which is which
    with pytest.raises(DataError, match="labels must lie between"):
        make("Poisson").fit(X, labels=labels + 1)


def test_zero_probabilities_are_allowed():
    X = np.array([[0, 0], [0, 1], [0, 0], [0, 9], [0, 8], [0, 10]])
    model = make("Poisson", prior=None).fit(X)
    assert (model.parameters_["rate"][:, 0] == 0).all() and np.isfinite(model.score_samples(X)).all()
    assert np.isneginf(model.score_samples([[1, 1]])).all()
    np.testing.assert_allclose(model.predict_proba([[1, 1]])[0], model.weights_)
    with pytest.raises(DataError, match="whole numbers"):
        make("Poisson").fit(X + 0.5)


@pytest.mark.threaded
def test_threads_weights_files_and_warm_starts(tmp_path, monkeypatch):
    X, _ = rows_of("Poisson", 60)
    rng = np.random.default_rng(0)
    big = rng.poisson(3.0, (20_000, 20))
    fits = [quiet_fit(make("Poisson", 3, n_jobs=jobs, max_iter=2), big) for jobs in (1, 2)]
    assert fits[0].parameters_["rate"].tobytes() == fits[1].parameters_["rate"].tobytes()
    w = rng.integers(0, 3, 60)
    weighted, repeated = make("Poisson").fit(X, sample_weight=w), make("Poisson").fit(np.repeat(X, w, axis=0))
    np.testing.assert_allclose(np.sort(weighted.means_, axis=0), np.sort(repeated.means_, axis=0), rtol=1e-3)
    warm = make("Poisson", warm_start=True, tol=1e-9).fit(X)
    bound = warm.lower_bound_
    assert warm.fit(X).bound_history_[0] == pytest.approx(bound, rel=1e-12) and warm.n_iter_ <= 2
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    pq.write_table(pa.table({f"x{j}": X[:, j] for j in range(2)}), tmp_path / "rows.parquet")
    monkeypatch.setattr("learnable.data.files.Files.is_small", lambda self: False)
    memory, disk = (make("Poisson").fit(data) for data in (X, str(tmp_path / "rows.parquet")))
    np.testing.assert_allclose(disk.means_, memory.means_, rtol=1e-10)
    da = pytest.importorskip("dask.array")
    lazy = make("Poisson").fit(da.from_array(X, chunks=(20, 2)))
    np.testing.assert_allclose(lazy.means_, memory.means_, rtol=1e-10)


@pytest.mark.parametrize("name", ["MultivariateNormal", "Categorical", "Binomial", "Wishart"])
def test_files_round_trip(name, tmp_path):
    X, _ = rows_of(name)
    model = make(name).fit(X)
    ln.save(model, tmp_path / "m.safetensors")
    loaded = ln.load(tmp_path / "m.safetensors")
    assert loaded.predict_proba(X).tobytes() == model.predict_proba(X).tobytes() and bool(ln.verify(loaded, X))
    loaded.parameters_ = {key: value[:1] for key, value in loaded.parameters_.items()}
    with pytest.raises(ModelFileError, match="parameters_"):
        loaded._check_loaded()


@pytest.mark.parametrize(
    "parameters, error, message",
    [
        ({"n_components": 0}, ParameterError, "n_components"),
        ({"component": "StudentT"}, ParameterError, "exponential family"),
        ({"component": "Nobody"}, ParameterError, "exponential family"),
        ({"component": "Binomial"}, ParameterError, "number of trials"),
        ({"known": {"rate": 1.0}}, ParameterError, "does not know"),
        ({"component": "Binomial", "known": {"n": 2.5}}, ParameterError, "integer >= 1"),
        ({"prior": {"beta": 1.0}}, ParameterError, "keys among"),
        ({"prior": {"alpha": 0.5}}, ParameterError, "alpha >= 1"),
        ({"solver": "newton"}, ParameterError, "solver"),
        ({"component": "Bernoulli"}, DataError, "0 or 1"),
        ({"component": "Wishart"}, DataError, "square matrices"),
        ({"n_components": 101}, DataError, "n_samples=100"),
    ],
)
def test_bad_parameters(parameters, error, message):
    X, _ = rows_of("Poisson")
    with pytest.raises(error, match=message):
        MixtureModel(**({"component": "Poisson", "n_components": 2} | parameters)).fit(X)


def test_degenerate_data():
    X, _ = rows_of("Normal")
    with pytest.raises(DataError, match="constant"):
        make("Normal").fit(np.column_stack([X, np.ones(len(X))]))
    same = make("Poisson").fit(np.full((10, 2), 3.0))
    np.testing.assert_allclose(same.means_, 3.0)
    with pytest.raises(DataError, match="overflow"):
        make("Normal").fit(X * 1e200)
    with pytest.raises(DataError, match="Gamma"):
        make("Gamma").fit(np.ones((10, 1)))
    with pytest.raises(DataError, match="depend on each other"):
        make("MultivariateNormal").fit(np.column_stack([X, X.sum(axis=1)]))
    with pytest.raises(DataError, match="number the categories"):
        make("Categorical").fit(np.array([[0.0], [1e12], [1.0]]))
    large = make("Poisson").fit(np.round(rows_of("Poisson")[0] + 1e9))
    assert bool(ln.verify(large, np.round(rows_of("Poisson")[0] + 1e9)))


def test_densities_are_those_of_the_family():
    X = np.array([[0], [1], [2], [9], [10], [11]])
    model = make("Poisson").fit(X)
    by_hand = sum(model.weights_[k] * poisson(model.parameters_["rate"][k, 0]).pmf(X[:, 0]) for k in range(2))
    np.testing.assert_allclose(np.exp(model.score_samples(X)), by_hand, rtol=1e-12)
