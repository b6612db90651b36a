"""The classifier against scikit-learn's, published errors, and Cover and Hart's theorem."""

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier as Reference

import learnable as ln
from learnable import KNeighborsClassifier


@pytest.mark.parametrize("weights", ["uniform", "distance"])
@pytest.mark.parametrize("metric", ["minkowski", "manhattan", "cosine"])
def test_it_is_scikit_learns(weights, metric):
    rng = np.random.default_rng(0)
    X, Q = rng.normal(size=(300, 5)), rng.normal(size=(80, 5))
    y = np.array(["a", "b", "c"])[rng.integers(0, 3, 300)]
    ours = KNeighborsClassifier(7, weights=weights, metric=metric).fit(X, y)
    theirs = Reference(7, weights=weights, metric=metric).fit(X, y)
    np.testing.assert_allclose(ours.predict_proba(Q), theirs.predict_proba(Q), rtol=1e-10, atol=1e-12)
    assert (ours.predict(Q) == theirs.predict(Q)).all()
    assert ours.score(Q, y[:80]) == theirs.score(Q, y[:80])
    assert (ours.predict(None) == theirs.predict(None)).all()  # leave-one-out
    for name in ("classes_", "effective_metric_", "effective_metric_params_", "n_samples_fit_", "outputs_2d_"):
        assert np.all(getattr(ours, name) == getattr(theirs, name))


def test_equal_votes_go_to_the_first_class():
    model = KNeighborsClassifier(2).fit([[0.0], [1.0]], ["b", "a"])
    assert model.predict([[0.5], [0.1]]).tolist() == ["a", "a"]


def test_letters_have_the_reference_error(reference_data):
    """1-NN on the last 4,000 of the 20,000 letters of Frey and Slate (1991): computed by scikit-learn, .0435."""
    pd = pytest.importorskip("pandas")
    table = pd.read_csv(reference_data / "letter_recognition.csv.gz")
    X, y = table.iloc[:, :-1].to_numpy(float), table.iloc[:, -1].to_numpy()
    model = KNeighborsClassifier(1).fit(X[:16_000], y[:16_000])
    assert 1 - model.score(X[16_000:], y[16_000:]) == pytest.approx(0.0435, abs=1e-9)


def test_digits_have_the_reference_error(reference_data):
    """1-NN on MNIST's test set, first 8,000 to train, last 2,000 to test: computed by scikit-learn, .0325."""
    arrays = np.load(reference_data / "mnist_t10k.npz")
    X, y = arrays["X"].reshape(10_000, -1).astype(float), arrays["y"]
    model = KNeighborsClassifier(1).fit(X[:8000], y[:8000])
    assert 1 - model.score(X[8000:], y[8000:]) == pytest.approx(0.0325, abs=1e-9)


def test_the_error_of_one_neighbour_is_cover_and_harts():
    """With many rows the 1-NN error is E[2η(1 − η)], at most 2ε(1 − ε) for Bayes error ε."""
    rng = np.random.default_rng(7)

    def draw(n):
        x = rng.uniform(size=(n, 1))
        return x, (rng.uniform(size=n) < 0.1 + 0.8 * x[:, 0]).astype(int)

    (X, y), (Q, z) = draw(50_000), draw(50_000)
    error = (KNeighborsClassifier(1).fit(X, y).predict(Q) != z).mean()
    t = np.linspace(0, 1, 100_001)
    eta = 0.1 + 0.8 * t
    limit, bayes = (2 * eta * (1 - eta)).mean(), np.minimum(eta, 1 - eta).mean()
    # Training labels are shared by queries: the error also varies with them.
    assert abs(error - limit) < 4 * np.sqrt(2 * 0.25 / 50_000)
    assert bayes < error < 2 * bayes * (1 - bayes) + 4 * np.sqrt(2 * 0.25 / 50_000)


def test_one_class_is_always_predicted():
    model = KNeighborsClassifier(1).fit([[0.0], [1.0]], ["a", "a"])
    assert model.predict([[5.0]]).tolist() == ["a"] and model.predict_proba([[5.0]]).tolist() == [[1.0]]


def test_several_columns_are_several_models(tmp_path):
    rng = np.random.default_rng(0)
    X, Q = rng.normal(size=(2, 60, 3))
    Y = np.column_stack([rng.integers(0, 3, 60), rng.integers(5, 7, 60)])
    model = KNeighborsClassifier(4, weights="distance").fit(X, Y)
    for j in range(2):
        alone = KNeighborsClassifier(4, weights="distance").fit(X, Y[:, j])
        assert (model.predict(Q)[:, j] == alone.predict(Q)).all()
        np.testing.assert_array_equal(model.predict_proba(Q)[j], alone.predict_proba(Q))
        assert model.classes_[j].tolist() == alone.classes_.tolist()
    assert ln.verify(model, X, Y).ok
    ln.save(model, tmp_path / "model.safetensors")
    loaded = ln.load(tmp_path / "model.safetensors")
    assert (loaded.predict(Q) == model.predict(Q)).all() and ln.verify(loaded, X, Y).ok
    model.targets_[0, 1] = 1 - model.targets_[0, 1]
    assert not ln.verify(model, X, Y).ok
