"""Gaussian naive Bayes against scikit-learn's, quadrature over its parameters, and the laws of its sums."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.naive_bayes import GaussianNB as Reference
from tests.oracles.generative import normal_predictive

from learnable import GaussianNB, verify
from learnable.core.errors import DataError, ParameterError
from learnable.evaluation import bayes_classifier
from learnable.probability import MultivariateNormal

PRIOR = {"mean": 0.5, "kappa": 2.0, "shape": 1.5, "rate": 0.7}


def make(n=300, d=4, K=3, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, K, n)
    X = rng.normal(size=(n, d)) * rng.uniform(0.3, 3, (K, d))[y] + rng.normal(size=(K, d))[y] * 2
    return X, y


@pytest.mark.parametrize("priors", [None, [0.2, 0.3, 0.5]])
def test_it_is_scikit_learns(priors):
    X, y = make()
    ours, theirs = GaussianNB(priors=priors).fit(X, y), Reference(priors=priors).fit(X, y)
    for name in ("classes_", "class_count_", "class_prior_", "theta_", "var_", "epsilon_"):
        np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), rtol=1e-12, err_msg=name)
    for method in ("predict", "predict_proba", "predict_log_proba", "predict_joint_log_proba"):
        np.testing.assert_allclose(
            getattr(ours, method)(X), getattr(theirs, method)(X), rtol=1e-9, atol=1e-13, err_msg=method
        )


def test_weights_count_rows():
    X, y = make(60)
    w = np.random.default_rng(1).integers(0, 4, 60)
    weighted, repeated = GaussianNB().fit(X, y, w), GaussianNB().fit(np.repeat(X, w, axis=0), np.repeat(y, w))
    np.testing.assert_allclose(weighted.var_, repeated.var_, rtol=1e-12)
    np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), rtol=1e-10)


@settings(max_examples=10)
@given(st.integers(0, 10_000), st.integers(1, 5))
def test_partial_fits_equal_one_fit(seed, pieces):
    X, y = make(80, seed=seed)
    X[np.random.default_rng(seed).random(X.shape) < 0.1] = np.nan
    whole, parts = GaussianNB().fit(X, y), GaussianNB()
    for rows in np.array_split(np.arange(80), pieces):
        parts.partial_fit(X[rows], y[rows], classes=[0, 1, 2])
    np.testing.assert_allclose(parts.theta_, whole.theta_, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(parts.var_, whole.var_, rtol=1e-9)
    assert parts.certificate_.fingerprint == whole.certificate_.fingerprint
    assert verify(parts, X, y)


def test_digits_survive_a_large_mean():
    X, y = make()
    far = X + 1e9
    near, moved = GaussianNB(var_smoothing=0).fit(X, y), GaussianNB(var_smoothing=0).fit(far, y)
    exact = GaussianNB(var_smoothing=0).fit(far - 1e9, y)  # what rounding left of the data
    np.testing.assert_allclose(moved.var_, exact.var_, rtol=1e-10)
    assert np.abs(moved.var_ / near.var_ - 1).max() < 1e-6


def test_rows_sorted_by_class_need_a_second_pass_and_get_it():
    X, y = make(4000, d=2)
    X = X + np.array([0, 1e7, -1e7])[y][:, None]
    order = np.argsort(y, kind="stable")
    a, b = GaussianNB(var_smoothing=0).fit(X, y), GaussianNB(var_smoothing=0).fit(X[order], y[order])
    np.testing.assert_allclose(a.var_, b.var_, rtol=1e-9)
    assert verify(b, X[order], y[order])


def test_missing_values_are_integrated_out():
    """The posterior with an entry missing is the posterior of the model without that column."""
    X, y = make()
    model = GaussianNB(var_smoothing=0).fit(X, y)
    holes = X.copy()
    holes[:, [1, 3]] = np.nan
    narrow = GaussianNB(var_smoothing=0).fit(X[:, [0, 2]], y)
    np.testing.assert_allclose(model.predict_proba(holes), narrow.predict_proba(X[:, [0, 2]]), rtol=1e-9)
    nothing = np.full((1, 4), np.nan)
    np.testing.assert_allclose(model.predict_proba(nothing)[0], model.class_prior_, rtol=1e-12)


def test_missing_values_in_the_fit_leave_their_column_to_the_other_rows():
    X, y = make(120)
    X[::3, 0] = np.nan
    model = GaussianNB(var_smoothing=0).fit(X, y)
    alone = GaussianNB(var_smoothing=0).fit(X[~np.isnan(X[:, 0])][:, :1], y[~np.isnan(X[:, 0])])
    np.testing.assert_allclose(model.theta_[:, :1], alone.theta_, rtol=1e-12)
    np.testing.assert_allclose(model.var_[:, :1], alone.var_, rtol=1e-12)


def test_integrated_density_is_the_integral_over_the_posterior():
    X, y = np.array([[0.3], [1.1], [-0.4], [2.0], [2.4], [3.1], [1.7]]), [0, 0, 0, 1, 1, 1, 1]
    model = GaussianNB(prior=PRIOR, integrate=True, var_smoothing=0).fit(X, y)
    joint = np.exp(model.predict_joint_log_proba([[0.9]]))[0] / model.class_prior_
    for k, sample in enumerate((X[:3, 0], X[3:, 0])):
        expected = normal_predictive(0.9, sample, **PRIOR)
        assert joint[k] == pytest.approx(expected, rel=1e-4)


def test_with_many_rows_integrating_changes_little_and_with_few_it_is_cautious():
    X, y = make(20_000, K=2)
    plain, careful = GaussianNB().fit(X, y), GaussianNB(integrate=True).fit(X, y)
    np.testing.assert_allclose(plain.predict_proba(X[:200]), careful.predict_proba(X[:200]), atol=5e-3)
    few, labels = [[0.0], [0.1], [5.0], [5.1]], [0, 0, 1, 1]
    sure, unsure = (GaussianNB(integrate=b).fit(few, labels).predict_proba([[1.5]])[0] for b in (False, True))
    assert sure[0] > 1 - 1e-6 and 0.5 < unsure[0] < 0.99


def test_a_strong_prior_rules_and_a_weak_one_does_not():
    X, y = make()
    strong = GaussianNB(prior={"mean": 7.0, "kappa": 1e9, "shape": 1e9, "rate": 1e9}).fit(X, y)
    np.testing.assert_allclose(strong.theta_, 7.0, rtol=1e-5)
    weak = GaussianNB(prior={"mean": 7.0, "kappa": 1e-9, "shape": 1e-9, "rate": 1e-9}, var_smoothing=0).fit(X, y)
    np.testing.assert_allclose(weak.theta_, weak.mean_, rtol=1e-6)
    posterior = GaussianNB(integrate=True).fit(X, y).posterior()
    assert posterior.batch_shape == (3, 4)


def test_on_independent_features_it_tends_to_the_bayes_classifier():
    rng = np.random.default_rng(3)
    mean, std = rng.normal(size=(2, 3)), rng.uniform(0.5, 2, (2, 3))
    y = rng.integers(0, 2, 200_000)
    X = rng.normal(mean[y], std[y])
    best = bayes_classifier([MultivariateNormal(m, np.diag(s**2)) for m, s in zip(mean, std, strict=True)])
    model = GaussianNB(priors=[0.5, 0.5]).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X[:500]), best.predict_proba(X[:500]), atol=0.02)
    exact = GaussianNB(priors=[0.5, 0.5], var_smoothing=0).fit(X, y)
    exact.theta_, exact.var_ = mean, std**2
    np.testing.assert_allclose(exact.predict_proba(X[:500]), best.predict_proba(X[:500]), rtol=1e-9)


def test_reference_errors(reference_data):
    """Test errors that scikit-learn 1.9.1 gives on the Pima split, and on 4,000 of the letters."""
    pd = pytest.importorskip("pandas")
    train, test = (pd.read_csv(reference_data / f"pima_ripley_{part}.csv") for part in ("train", "test"))
    model = GaussianNB().fit(train.iloc[:, :-1], train.iloc[:, -1])
    assert 1 - model.score(test.iloc[:, :-1], test.iloc[:, -1]) == pytest.approx(0.240964, abs=1e-6)
    letters = pd.read_csv(reference_data / "letter_recognition.csv.gz")
    X, y = letters.iloc[:, :-1].to_numpy(float), letters.iloc[:, -1].to_numpy()
    assert 1 - GaussianNB().fit(X[:16_000], y[:16_000]).score(X[16_000:], y[16_000:]) == pytest.approx(0.37475)


@pytest.mark.threaded
def test_the_same_bits_for_every_number_of_threads():
    X, y = make(50_000, d=30)
    one, two = (GaussianNB(n_jobs=n).fit(X, y) for n in (1, 2))
    assert np.array_equal(one.var_, two.var_) and np.array_equal(one.predict_proba(X), two.predict_proba(X))


class TestDegenerateData:
    def test_one_row_a_class(self):
        model = GaussianNB().fit([[0.0, 1.0], [2.0, 5.0]], ["a", "b"])
        assert model.predict([[0.1, 1.1], [1.9, 4.0]]).tolist() == ["a", "b"]
        with pytest.raises(DataError, match="too little for a posterior without a prior"):
            GaussianNB(integrate=True).fit([[0.0], [1.0]], ["a", "b"]).predict_proba([[0.0]])

    def test_a_constant_column_says_nothing(self):
        X, y = make()
        wide = np.column_stack([X, np.full(len(X), 0.1)])
        np.testing.assert_allclose(
            GaussianNB().fit(wide, y).predict_proba(wide), GaussianNB().fit(X, y).predict_proba(X), rtol=1e-7
        )
        with pytest.raises(DataError, match=r"GaussianNB: column 4 is constant in class 0"):
            GaussianNB(var_smoothing=0).fit(wide, y)

    def test_a_class_that_is_never_seen_is_never_predicted(self):
        X, y = make()
        model = GaussianNB().partial_fit(X, y, classes=[0, 1, 2, 3])
        assert (model.predict_proba(X)[:, 3] == 0).all() and model.class_count_[3] == 0

    def test_weights_of_a_billion(self):
        X, y = make()
        big, one = GaussianNB().fit(X, y, np.full(len(X), 1e9)), GaussianNB().fit(X, y)
        np.testing.assert_allclose(big.predict_proba(X), one.predict_proba(X), rtol=1e-10)

    @pytest.mark.parametrize("scale", [1e-120, 1e120])
    def test_extreme_units(self, scale):
        X, y = make()
        model = GaussianNB().fit(X * scale, y)
        np.testing.assert_allclose(
            model.predict_proba(X * scale), GaussianNB().fit(X, y).predict_proba(X), rtol=1e-6, atol=1e-300
        )

    def test_numbers_beyond_squares_are_refused(self):
        with pytest.raises(DataError, match=r"GaussianNB: sums of squares of X overflow.*rescale"):
            GaussianNB().fit([[1e200], [-1e200], [0.0]], [0, 1, 1])

    def test_a_point_too_far_from_every_class_is_named(self):
        model = GaussianNB().fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
        with pytest.raises(DataError, match="row 1 has probability zero under every class"):
            model.predict([[0.0], [1e200]])


def test_bad_parameters_are_named():
    X, y = make(30)
    for bad, words in (
        ({"priors": [0.5, 0.5]}, "Number of priors must match"),
        ({"priors": [0.5, 0.4, 0.4]}, "sum of the priors should be 1"),
        ({"prior": {"mean": 0}}, "prior must have the keys"),
        ({"prior": PRIOR | {"mean": [1.0, 2.0]}}, "one per column"),
        ({"var_smoothing": -1.0}, "var_smoothing must be"),
    ):
        with pytest.raises(ParameterError, match=words):
            GaussianNB(**bad).fit(X, y)
    with pytest.raises(ParameterError, match="classes must be passed on the first call"):
        GaussianNB().partial_fit(X, y)
    with pytest.raises(DataError, match="do not exist in the initial classes"):
        GaussianNB().partial_fit(X, y, classes=[0, 1])
