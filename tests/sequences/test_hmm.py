"""What all hidden Markov models promise: laws of the fit, answers against enumeration, errors, files."""

import numpy as np
import pytest
from hypothesis import given as each
from hypothesis import settings
from hypothesis import strategies as st
from sklearn.base import clone
from tests.oracles.hidden_paths import posteriors
from tests.sequences.models import KINDS, given, holes

import learnable as ln
from learnable import GMMHMM, CategoricalHMM, GaussianHMM, PoissonHMM
from learnable.core.errors import DataError, ParameterError

pytestmark = pytest.mark.filterwarnings("ignore:.*stopped after")
ALL = pytest.mark.parametrize("kind", KINDS)


def frames_of(model, X):
    lines, codes = model._encode(X)
    log = model._emission().log_frames(lines, model._fitted().emission)
    return log[codes] if codes.size else log


@settings(max_examples=25)
@each(st.sampled_from(KINDS), st.integers(0, 10_000), st.booleans())
def test_the_bound_never_falls_and_is_the_log_likelihood(kind, seed, missing):
    X = given(kind, seed=seed).sample(80, random_state=seed)[0]
    X = holes(X, seed) if missing else X
    model = clone(given(kind)).set_params(n_iter=25, tol=0.0, random_state=seed)
    model.fit(X, [30, 1, 49])
    rises = np.diff(model.bound_history_)
    assert (rises >= -1e-9 * abs(model.bound_history_[1:])).all()
    flat = not isinstance(model, (GaussianHMM, GMMHMM))  # there the default prior of the covariances is not flat
    prior = 0.0 if flat else model._emission().log_prior(model._fitted().emission)
    assert model.score(X, [30, 1, 49]) + prior == pytest.approx(model.bound_history_[-1], rel=1e-10)


@ALL
def test_answers_are_those_of_enumeration(kind):
    model = given(kind)
    X = holes(model.sample(11, random_state=1)[0])
    total = 0.0
    for lo, hi in ((0, 6), (6, 11)):
        log, single, pairs, best = posteriors(frames_of(model, X[lo:hi]), model.startprob_, model.transmat_)
        total += log
        assert model.score(X[lo:hi]) == pytest.approx(log, rel=1e-11)
        np.testing.assert_allclose(model.predict_proba(X[lo:hi]), single, atol=1e-11)
        np.testing.assert_allclose(model.pairwise_proba(X[lo:hi]), pairs, atol=1e-11)
        assert model.decode(X[lo:hi])[0] == pytest.approx(best, rel=1e-11)
    assert model.score(X, [6, 5]) == pytest.approx(total, rel=1e-11)
    np.testing.assert_array_equal(model.decode(X, [6, 5], "map")[1], model.predict_proba(X, [6, 5]).argmax(axis=1))


@ALL
def test_prediction_is_filtering_with_missing_rows_to_come(kind):
    model = given(kind)
    X = np.array(model.sample(30, random_state=2)[0], dtype=float)
    gap = np.full((4, X.shape[1]), np.nan)
    longer = model.filter_proba(np.concatenate([X, gap]))
    np.testing.assert_allclose(model.predict_ahead(X, steps=4)[0], longer[-4:], atol=1e-12)
    assert model.forecast(X, steps=4).shape[:2] == (1, 4)


@ALL
def test_sampling_follows_the_model(kind):
    model = given(kind)
    X, z = model.sample(20_000, random_state=0)
    np.testing.assert_allclose(np.bincount(z, minlength=3) / 20_000, model.get_stationary_distribution(), atol=0.05)
    if kind == "categorical":
        means = [np.bincount(X[z == k, 0], minlength=4) / (z == k).sum() for k in range(3)]
    else:
        means = [X[z == k].mean(axis=0) for k in range(3)]
    np.testing.assert_allclose(means, model._expected(np.eye(3)), atol=0.25)
    assert model.sample(5, random_state=1, currstate=2)[1][0] == 2


@pytest.mark.threaded
@ALL
def test_threads_give_the_same_bits(kind):
    X = given(kind).sample(3000, random_state=0)[0]
    fits = [
        clone(given(kind)).set_params(n_iter=5, tol=0.0, random_state=0, n_jobs=n).fit(X, [2000, 1000]) for n in (1, 2)
    ]
    np.testing.assert_array_equal(fits[0].bound_history_, fits[1].bound_history_)
    np.testing.assert_array_equal(fits[0].transmat_, fits[1].transmat_)


@ALL
def test_the_order_of_sequences_does_not_matter(kind):
    X = np.array(given(kind).sample(90, random_state=3)[0], dtype=float)
    start = given(kind, seed=5)
    start.set_params(init_params="", n_iter=8, tol=0.0)
    one = clone(start)
    for name in ("startprob_", "transmat_", *start._letters.values()):
        setattr(one, name, getattr(start, name))
    start.fit(X, [40, 50])
    one.fit(np.concatenate([X[40:], X[:40]]), [50, 40])
    np.testing.assert_allclose(start.transmat_, one.transmat_, rtol=1e-9)
    np.testing.assert_allclose(start.bound_history_, one.bound_history_, rtol=1e-11)


def test_zeros_stay_zero_and_structures_are_kept():
    X = given("diag", K=4).sample(300, random_state=0)[0]
    right = GaussianHMM(4, structure="left-right", transmat_prior=1.5, n_iter=20, random_state=0).fit(X, [100] * 3)
    assert (right.transmat_[np.tril_indices(4, -1)] == 0).all() and (right.transmat_[np.triu_indices(4, 2)] == 0).all()
    np.testing.assert_array_equal(right.startprob_, [1, 0, 0, 0])
    assert right.n_parameters() == 0 + 3 + 16
    banded = GaussianHMM(4, structure="banded", n_iter=20, random_state=0).fit(X)
    assert (banded.transmat_[abs(np.subtract.outer(range(4), range(4))) > 1] == 0).all()
    table = np.array([[1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1], [1, 0, 0, 1]])
    cyclic = GaussianHMM(4, structure=table, n_iter=20, random_state=0).fit(X)
    assert (cyclic.transmat_[table == 0] == 0).all()
    assert (np.diff(right.predict(X, [100] * 3).reshape(3, 100)) >= 0).all()


@ALL
def test_a_flat_prior_is_no_prior_and_a_strong_one_rules(kind):
    X = given(kind).sample(60, random_state=0)[0]
    plain, flat = (
        clone(given(kind)).set_params(n_iter=7, tol=0.0, random_state=0, transmat_prior=prior).fit(X)
        for prior in (1.0, np.ones((3, 3)))
    )
    np.testing.assert_array_equal(plain.transmat_, flat.transmat_)
    strong = clone(given(kind)).set_params(n_iter=50, transmat_prior=1e9, startprob_prior=1e9, random_state=0).fit(X)
    np.testing.assert_allclose(strong.transmat_, 1 / 3, atol=1e-6)
    np.testing.assert_allclose(strong.startprob_, 1 / 3, atol=1e-6)


def test_parameters_that_are_not_named_stay():
    given_model = given("diag")
    X = given_model.sample(100, random_state=0)[0]
    before = given_model.means_.copy()
    given_model.set_params(params="tc", init_params="", n_iter=5).fit(X)
    np.testing.assert_array_equal(given_model.means_, before)


@pytest.mark.parametrize("kind", ["categorical", "poisson", "full", "mixture"])
def test_files_keep_every_answer(kind, tmp_path):
    X = given(kind).sample(60, random_state=0)[0]
    model = clone(given(kind)).set_params(n_iter=100, random_state=0).fit(X)
    ln.save(model, tmp_path / "m.safetensors")
    loaded = ln.load(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    assert ln.verify(loaded, X)


@pytest.mark.parametrize("lengths", [[10], [30, -10], [10.5, 9.5], [[20]], "ab", [0, 20], [20, 0]], ids=str)
def test_bad_lengths_are_refused(lengths):
    with pytest.raises(DataError, match="PoissonHMM: lengths must be integers >= 1 with the sum 20"):
        PoissonHMM().fit(np.ones((20, 1), dtype=int), lengths)


def test_bad_settings_and_rows_are_refused():
    X = np.ones((20, 1))
    with pytest.raises(ParameterError, match="transmat_prior"):
        PoissonHMM(transmat_prior=0.5).fit(X)
    with pytest.raises(ParameterError, match="params and init_params"):
        PoissonHMM(params="stx").fit(X)
    with pytest.raises(ParameterError, match="structure"):
        PoissonHMM(2, structure=np.eye(3)).fit(X)
    with pytest.raises(DataError, match="counts"):
        PoissonHMM().fit(X - 2)
    with pytest.raises(DataError, match="symbols"):
        CategoricalHMM().fit(X + 0.5)
    with pytest.raises(DataError, match="raise n_features"):
        CategoricalHMM(n_features=2).fit(X * 2)
    with pytest.raises(DataError, match="overflow"):
        GaussianHMM().fit(X * 1e200)
    with pytest.raises(DataError, match="inf"):
        GaussianHMM().fit(np.where(np.arange(20)[:, None] == 3, np.inf, 1.0))
    model = PoissonHMM(2)
    model.startprob_, model.transmat_ = [0.5, 0.5], [[0.5, 0.6], [0.5, 0.5]]
    model.lambdas_ = [[1.0], [2.0]]
    with pytest.raises(ParameterError, match="transmat_ must be probabilities"):
        model.score(X)


def test_degenerate_data_have_right_answers():
    one = PoissonHMM(1).fit([[3]])
    assert one.lambdas_[0, 0] == 3 and one.predict([[3]]).tolist() == [0]
    gap = np.r_[np.zeros(5), np.full(10_000, np.nan), np.full(5, 9.0)][:, None]
    model = PoissonHMM(2, n_iter=500, n_init=3, tol=1e-9, random_state=0).fit(gap)
    assert np.sort(model.lambdas_[:, 0]) == pytest.approx([0, 9], abs=1e-3)
    constant = GaussianHMM(2, n_iter=50, random_state=0).fit(np.full((30, 2), 5.0))
    np.testing.assert_allclose(constant.means_, 5.0)
    with pytest.raises(DataError, match="collapsed"):
        GaussianHMM(1, covars_prior=0.0, n_iter=50).fit(np.full((30, 2), 5.0))
    everything_missing = GaussianHMM(2, n_iter=5, random_state=0).fit(np.full((30, 2), np.nan))
    assert everything_missing.score(np.full((30, 2), np.nan)) == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_degenerate_rows_end_in_certified_models(kind):
    X = np.zeros((12, 1 if kind == "categorical" else 2))
    X[:6] = 2.0
    cases = [(np.full_like(X, np.nan), None), (X[:3], [1, 1, 1]), (np.full_like(X, 2.0), None), (X, [6, 6])]
    for rows, lengths in cases:  # all missing, more states than rows, one row again and again, two
        model = clone(given(kind, K=4)).set_params(n_iter=300, random_state=0).fit(rows, lengths)
        np.testing.assert_allclose(model.predict_proba(rows, lengths).sum(axis=1), 1.0)
        assert ln.verify(model, rows, lengths)


def test_a_gap_forgets_and_its_middle_is_the_stationary_law():
    model = given("mixture")
    X = np.array(model.sample(40, random_state=0)[0], dtype=float)
    gap = np.concatenate([X, np.full((5000, 2), np.nan), X])
    np.testing.assert_allclose(model.predict_proba(gap)[2540], model.get_stationary_distribution(), atol=1e-12)


def test_a_variance_that_rounding_hides_is_refused():
    X = np.random.default_rng(0).integers(1, 4, (40, 2)) * 1e140
    with pytest.raises(DataError, match="GaussianHMM: a covariance collapsed"):
        GaussianHMM(2, n_iter=200, random_state=0).fit(X)


def test_columns_of_very_different_size_are_verified():
    X = np.random.default_rng(0).normal(size=(40, 2)) * [1e140, 1e-3]
    model = GaussianHMM(2, n_iter=300, covars_prior=1e-12, min_covar=1e-12, random_state=0).fit(X)
    assert model.converged_ and ln.verify(model, X)
