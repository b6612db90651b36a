"""Best subsets: enumeration, the published tables, the proof and what it refuses."""

import copy
import itertools
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_diabetes
from sklearn.exceptions import ConvergenceWarning
from tests.linear.subset.tables import hald, noisy
from tests.oracles.subsets import best_of_each_size

import learnable as ln
from learnable.core.errors import ModelFileError, ParameterError
from learnable.linear import BestSubset


@settings(max_examples=25, deadline=None)
@given(
    p=st.integers(1, 9),
    n=st.integers(4, 30),
    seed=st.integers(0, 10**6),
    alpha=st.sampled_from([0.0, 0.7]),
    intercept=st.booleans(),
    weighted=st.booleans(),
)
def test_every_size_is_that_of_enumeration(p, n, seed, alpha, intercept, weighted):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) * rng.choice([0.1, 1.0, 10.0], size=p) + 3.0
    y = X @ rng.normal(size=p) + 5.0 * rng.normal(size=n)
    weight = rng.integers(1, 4, size=n).astype(float) if weighted else None
    model = BestSubset(size=(0, p), alpha=alpha, fit_intercept=intercept).fit(X, y, weight)
    expected = best_of_each_size(X, y, weight, intercept, alpha)
    total = expected[0][0]
    for size, objective in zip(model.sizes_.tolist(), model.objective_path_.tolist(), strict=True):
        assert objective == pytest.approx(expected[size][0], rel=1e-8, abs=1e-9 * total)
    assert ln.verify(model, X, y, weight)


@pytest.mark.parametrize("criterion", ["aic", "bic"])
@pytest.mark.parametrize("seed", range(4))
def test_the_criterion_chooses_the_best_of_all_subsets(criterion, seed):
    X, y = noisy(11, seed=seed, spread=3.0)
    model = BestSubset(criterion=criterion).fit(X, y)
    price = 2.0 if criterion == "aic" else np.log(len(y))
    best = min(best_of_each_size(X, y).items(), key=lambda item: len(y) * np.log(item[1][0]) + price * item[0])
    assert np.flatnonzero(model.support_).tolist() == list(best[1][1])
    of_range = BestSubset(size=(0, 11), criterion=criterion).fit(X, y)
    np.testing.assert_array_equal(of_range.support_, model.support_)
    np.testing.assert_allclose(of_range.coef_, model.coef_)


def test_required_columns_are_in_every_subset():
    X, y = noisy(9, seed=3)
    model = BestSubset(size=(2, 9), required=[8, 5]).fit(X, y)
    expected = best_of_each_size(X, y, required=(5, 8))
    assert model.subsets_[:, [5, 8]].all()
    np.testing.assert_allclose(model.objective_path_, [expected[k][0] for k in range(2, 10)])
    assert ln.verify(model, X, y)


def test_the_subsets_of_the_cement_data():
    """The least of all sixteen fits by size; the best single column is not among the best two."""
    X, y = hald()
    model = BestSubset(size=(0, 4)).fit(X, y)
    expected = [2715.76307692, 883.86691690, 57.90448318, 47.97272940, 47.86363935]
    np.testing.assert_allclose(model.objective_path_, expected, rtol=1e-9)
    chosen = [np.flatnonzero(row).tolist() for row in model.subsets_]
    assert chosen == [[], [3], [0, 1], [0, 1, 3], [0, 1, 2, 3]]
    two = BestSubset(size=2).fit(X, y)
    np.testing.assert_allclose([two.intercept_, *two.coef_[:2]], [52.57734888, 1.46830574, 0.66225049], rtol=1e-7)


def test_the_best_five_columns_of_the_diabetes_data():
    X, y = load_diabetes(return_X_y=True, scaled=False)
    model = BestSubset(size=5).fit(X, y)
    assert np.flatnonzero(model.support_).tolist() == [1, 2, 3, 6, 8]
    assert model.objective_path_[0] == pytest.approx(1287881.155, abs=1e-2)


def test_the_subsets_of_the_prostate_data(reference_data):
    """Residual sums of squares of the 67 training rows of The Elements of Statistical Learning, section 3.3."""
    table = np.genfromtxt(reference_data / "prostate.csv", delimiter=",", names=True, dtype=None, encoding=None)
    X = np.column_stack(
        [table[name] for name in ("lcavol", "lweight", "age", "lbph", "svi", "lcp", "gleason", "pgg45")]
    )
    y, train = table["lpsa"], np.array([str(word)[0] in "T1" for word in table["train"]])
    X = (X - X.mean(axis=0)) / X.std(axis=0, ddof=1)
    model = BestSubset(size=(0, 8)).fit(X[train], y[train])
    expected = [96.2814, 44.5286, 37.0918, 34.9077, 32.8150, 32.0694, 30.5398, 29.4373, 29.4264]
    np.testing.assert_allclose(model.objective_path_, expected, atol=6e-5)
    two = BestSubset(size=2).fit(X[train], y[train])
    np.testing.assert_allclose([two.intercept_, two.coef_[0], two.coef_[1]], [2.4774, 0.7397, 0.3163], atol=6e-5)
    assert np.mean((two.predict(X[~train]) - y[~train]) ** 2) == pytest.approx(0.492482, abs=1e-6)


def test_a_wider_table_is_proven_and_the_proof_is_walked_again():
    X, y = noisy(26, n=200, seed=1, spread=3.0)
    model = BestSubset(size=(0, 26)).fit(X, y)
    assert model.certificate_.holds
    assert ln.verify(model, X, y)
    assert (np.diff(model.objective_path_) <= 1e-9).all()


def test_without_its_proof_a_model_is_searched_again():
    X, y = noisy(10, seed=2)
    model = BestSubset(size=(0, 10)).fit(X, y)
    model.proof_ = model.proof_[:0]
    assert ln.verify(model, X, y)
    worse = copy.deepcopy(model)
    worse.subsets_[3] = np.roll(worse.subsets_[3], 1)
    assert not ln.verify(worse, X, y)


def second_best(model, X, y):
    """Return the model with another subset in the place of the best, in every number, as a forger would."""
    forged = copy.deepcopy(model)
    swapped = model.support_.copy()
    swapped[np.flatnonzero(swapped)[-1]] = False
    swapped[np.flatnonzero(~model.support_)[-1]] = True
    fit = ln.LinearRegression().fit(X[:, swapped], y)
    forged.coef_ = np.zeros(X.shape[1])
    forged.coef_[swapped] = fit.coef_
    forged.intercept_ = fit.intercept_
    forged.support_ = swapped
    forged.subsets_ = swapped[None]
    forged.objective_path_ = np.array([((y - fit.predict(X[:, swapped])) ** 2).sum()])
    return forged


def test_a_forged_incumbent_is_refused():
    X, y = noisy(10, seed=4)
    model = BestSubset(size=3).fit(X, y)
    assert ln.verify(model, X, y)
    verdict = ln.verify(second_best(model, X, y), X, y)
    assert not verdict
    assert "gap" in verdict.reasons[0]


@pytest.mark.parametrize("change", ["no leaf", "a leaf more", "twice", "all pruned"])
def test_a_forged_proof_is_refused(change):
    X, y = noisy(8, seed=5)
    model = BestSubset(size=(0, 8)).fit(X, y)
    proof = model.proof_
    forged = {
        "no leaf": proof[:-1],
        "a leaf more": np.r_[proof, -1],
        "twice": np.r_[proof[0], proof],
        "all pruned": proof[:1] * 0 - 1,
    }
    model.proof_ = forged[change].astype(np.int16)
    assert not ln.verify(model, X, y)


def test_the_time_limit_leaves_a_gap_that_is_true():
    X, y = noisy(60, n=300, seed=6, spread=30.0)
    with pytest.warns(ConvergenceWarning, match="raise max_seconds"):
        model = BestSubset(size=(0, 30), max_seconds=0.01).fit(X, y)
    assert 0 < model.certificate_.value < 10
    verdict = ln.verify(model, X, y)
    assert verdict.value == pytest.approx(model.certificate_.value, rel=1e-6)
    assert len(verdict.reasons) == 1  # that it is above the tolerance, and nothing else


def test_dependent_columns_and_constants():
    X, y = noisy(5, seed=7)
    wide = np.column_stack([X, X[:, 0], X[:, 1] + X[:, 2], np.ones(len(y))])
    model = BestSubset(size=(0, 8)).fit(wide, y)
    expected = best_of_each_size(wide, y)
    np.testing.assert_allclose(model.objective_path_, [expected[k][0] for k in range(9)], rtol=1e-8)
    assert ln.verify(model, wide, y)


def test_more_columns_than_rows():
    X, y = noisy(12, n=7, seed=8)
    model = BestSubset(size=(0, 3)).fit(X, y)
    expected = best_of_each_size(X, y)
    np.testing.assert_allclose(model.objective_path_, [expected[k][0] for k in range(4)], rtol=1e-7)
    assert ln.verify(model, X, y)
    assert ln.verify(BestSubset(alpha=1.0).fit(X, y), X, y)


def test_an_exact_fit_takes_the_columns_that_made_it():
    X, _ = noisy(9, seed=9)
    y = 2.0 * X[:, 2] - X[:, 7] + 1.0
    model = BestSubset().fit(X, y)
    assert np.flatnonzero(model.support_).tolist() == [2, 7]
    assert ln.verify(model, X, y)
    assert BestSubset().fit(X, np.full(len(y), 3.0)).support_.sum() == 0


def test_sparse_rows_and_frames_give_the_same_fit():
    pd = pytest.importorskip("pandas")
    X, y = noisy(6, seed=10)
    model = BestSubset(size=3).fit(X, y)
    of_sparse = BestSubset(size=3).fit(sp.csr_array(X), y)
    np.testing.assert_allclose(of_sparse.coef_, model.coef_, rtol=1e-12)
    frame = pd.DataFrame(X, columns=list("abcdef"))
    named = BestSubset(size=3, required=["f"]).fit(frame, y)
    assert named.support_[5]
    assert ln.verify(named, frame, y)


def test_a_file_keeps_the_proof(tmp_path):
    X, y = noisy(6, seed=11)
    model = BestSubset(size=(1, 4)).fit(X, y)
    ln.save(model, tmp_path / "model.safetensors")
    loaded = ln.load(tmp_path / "model.safetensors")
    assert ln.verify(loaded, X, y)
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    model.proof_ = np.array([6, -1, -1], dtype=np.int16)
    with pytest.raises(ModelFileError, match="proof_"):
        ln.save(model, tmp_path / "forged.safetensors")


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ({"size": 7}, "between 0 and the number of columns, 6"),
        ({"size": (3, 2)}, "between 0 and the number of columns, 6"),
        ({"size": 1, "required": [0, 1]}, "`required` holds 2"),
        ({"required": [6]}, "column numbers from 0 to 5"),
        ({"required": ["f"]}, "no column of X"),
        ({"size": 1.5}, "size must be"),
    ],
)
def test_impossible_settings_are_told(setting, words):
    X, y = noisy(6, seed=12)
    with pytest.raises(ParameterError, match=words):
        BestSubset(**setting).fit(X, y)


def test_the_bits_do_not_depend_on_threads():
    X, y = noisy(14, n=3000, seed=13)
    one, two = (BestSubset(size=(0, 14), n_jobs=n).fit(X, y) for n in (1, 2))
    np.testing.assert_array_equal(one.coef_, two.coef_)
    np.testing.assert_array_equal(one.proof_, two.proof_)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("seed", range(12))
def test_nothing_is_claimed_where_columns_fit_the_rows_exactly(seed):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(8, 12)), rng.normal(size=8)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = BestSubset().fit(X, y)
    assert not model.certificate_.holds or ln.verify(model, X, y)
    for settled in ({"size": 1}, {"size": (0, 2)}, {"alpha": 0.1}):
        assert ln.verify(BestSubset(**settled).fit(X, y), X, y)


def test_mallows_criterion_is_that_of_enumeration():
    rng = np.random.default_rng(8)
    X = rng.normal(size=(40, 6))
    y = X @ [1.0, 0.4, 0, 0, -0.3, 0] + rng.normal(size=40)
    model = BestSubset(criterion="cp").fit(X, y)
    Z, t = X - X.mean(axis=0), y - y.mean()

    def rss(columns):
        beta = np.linalg.lstsq(Z[:, columns], t, rcond=None)[0] if columns else np.zeros(0)
        return float(((t - Z[:, columns] @ beta) ** 2).sum())

    variance = rss(list(range(6))) / 33
    every = [list(some) for k in range(7) for some in itertools.combinations(range(6), k)]
    best = min(every, key=lambda one: rss(one) / variance - 40 + 2 * (len(one) + 1))
    assert np.flatnonzero(model.support_).tolist() == best
    assert ln.verify(model, X, y)
    with pytest.raises(ParameterError, match="cp"):
        BestSubset(criterion="cp").fit(X[:6], y[:6])


def test_folds_choose_the_size_and_the_errors_are_checked_by_enumeration():
    rng = np.random.default_rng(9)
    X = rng.normal(size=(50, 5))
    y = X @ [2.0, 0, 0, -1.0, 0] + rng.normal(size=50)
    model = BestSubset(criterion="cv", cv=4).fit(X, y)
    assert model.cv_errors_.shape == (6, 4)
    assert model.sizes_.tolist() == [int(np.argmin(model.cv_errors_.mean(axis=1)))]
    assert {0, 3} <= set(np.flatnonzero(model.support_))
    assert ln.verify(model, X, y)
    model.cv_errors_ = model.cv_errors_ * 1.01
    assert not ln.verify(model, X, y)
