"""Any density for each class: families, priors, known distributions, estimators."""

import numpy as np
import pytest
from sklearn.mixture import GaussianMixture
from sklearn.neighbors import KernelDensity

from learnable import GaussianNB, GenerativeClassifier, QuadraticDiscriminantAnalysis, load, save, verify
from learnable.core.errors import DataError, ParameterError, VerificationError
from learnable.evaluation import bayes_classifier
from learnable.probability import Gamma, Laplace, Normal, NormalInverseGamma, NormalWishart, Poisson, StudentT


def make(n=400, seed=0):
    rng = np.random.default_rng(seed)
    y = np.array(["few", "many", "more"])[rng.integers(0, 3, n)]
    rate = np.array([[1.0, 3.0], [4.0, 2.0], [6.0, 6.0]])[np.unique(y, return_inverse=True)[1]]
    return rng.gamma(2.0, rate), rng.poisson(rate).astype(float), y


def test_with_normal_densities_it_is_the_known_models():
    X, _, y = make()
    np.testing.assert_allclose(
        GenerativeClassifier().fit(X, y).predict_proba(X),
        GaussianNB(var_smoothing=0).fit(X, y).predict_proba(X),
        rtol=1e-9,
    )
    np.testing.assert_allclose(
        GenerativeClassifier("MultivariateNormal").fit(X, y).predict_joint_log_proba(X),
        QuadraticDiscriminantAnalysis().fit(X, y).predict_joint_log_proba(X),
        rtol=1e-9,
    )


@pytest.mark.parametrize("family", ["Normal", "MultivariateNormal", "Gamma", "Exponential", "Poisson", "InverseGamma"])
def test_families_are_fitted_by_maximum_likelihood_and_verified(family, tmp_path):
    positive, counts, y = make()
    X = counts if family == "Poisson" else positive
    w = np.random.default_rng(1).uniform(0.5, 2, len(y))
    model = GenerativeClassifier(family).fit(X, y, w)
    for k, label in enumerate(model.classes_):
        alone = type(model.densities()[k]).fit_mle(X[y == label], w[y == label])
        for name, value in alone.parameters.items():
            np.testing.assert_allclose(model.densities()[k].parameters[name], value, rtol=1e-7, err_msg=name)
    assert verify(model, X, y, w)
    save(model, tmp_path / "m.safetensors")
    assert np.array_equal(load(tmp_path / "m.safetensors").predict_proba(X), model.predict_proba(X))
    first = next(iter(model.fitted_[0]["parameters"]))
    model.fitted_[0]["parameters"][first] = model.fitted_[0]["parameters"][first] * 1.001
    assert not verify(model, X, y, w)


def test_with_the_right_family_it_tends_to_the_bayes_classifier():
    X, _, y = make(60_000)
    model = GenerativeClassifier(Gamma).fit(X, y)
    truth = bayes_classifier([Gamma(2.0, 1.0 / np.array(r)) for r in ([1.0, 3.0], [4.0, 2.0], [6.0, 6.0])])
    np.testing.assert_allclose(model.predict_proba(X[:300]), truth.predict_proba(X[:300]), atol=0.03)


def test_conjugate_priors_give_the_posterior_predictive():
    X, _, y = make()
    model = GenerativeClassifier(NormalInverseGamma(1.0, 0.5, 2.0, 3.0)).fit(X, y)
    same = GaussianNB(
        prior={"mean": 1.0, "kappa": 0.5, "shape": 2.0, "rate": 3.0}, integrate=True, var_smoothing=0
    ).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X), same.predict_proba(X), rtol=1e-8)
    assert GenerativeClassifier(NormalWishart([0.0, 0.0], 1.0, 4.0, np.eye(2))).fit(X, y).score(X, y) > 0.5


@pytest.mark.parametrize(
    "density", [GaussianMixture(2, random_state=0), KernelDensity(bandwidth=0.7), "StudentT", Laplace]
)
def test_other_densities_classify_and_prove_nothing(density):
    X, _, y = make()
    model = GenerativeClassifier(density).fit(X, y)
    assert model.score(X, y) > 0.55 and model.certificate_.kind == "none"
    with pytest.raises(VerificationError, match="proves nothing"):
        verify(model, X, y)


def test_a_mixture_a_class_sees_what_one_normal_cannot():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 500)
    X = np.where(y == 0, rng.choice([-3.0, 3.0], 1000), 0.0)[:, None] + 0.5 * rng.normal(size=(1000, 1))
    assert GenerativeClassifier(GaussianMixture(2, random_state=0)).fit(X, y).score(X, y) > 0.99


def test_every_label_may_have_its_own():
    X, _, y = make()
    known = Normal([2.0, 6.0], [1.5, 4.0])
    model = GenerativeClassifier({"few": known, "many": StudentT, "more": GaussianMixture(1)}).fit(X, y)
    assert model.densities()[0].mean.tolist() == [2.0, 6.0]
    with pytest.raises(ParameterError, match="density has no entry for the class 'more'"):
        GenerativeClassifier({"few": known, "many": "Normal"}).fit(X, y)


def test_what_is_wrong_is_named():
    X, _, y = make()
    with pytest.raises(ParameterError, match="density must be"):
        GenerativeClassifier("Nothing").fit(X, y)
    with pytest.raises(DataError, match="class 'few' has no such density: Poisson"):
        GenerativeClassifier(Poisson).fit(X, y)
    with pytest.raises(DataError, match="column 1 is constant in class 'few'"):
        GenerativeClassifier().fit(np.column_stack([X[:, 0], np.where(y == "few", 1.0, X[:, 1])]), y)
    with pytest.raises(DataError, match="takes no weights"):
        GenerativeClassifier(GaussianMixture(1)).fit(X, y, np.arange(1.0, len(y) + 1))
