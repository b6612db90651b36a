"""What machines share: γ, files, and invariants of what is loaded."""

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.svm
from tests.kernel.kernel_tables import curved, peak_bytes, rings

import learnable as ln
from learnable.core.errors import ModelFileError


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("gamma", ["scale", "auto", 0.7])
def test_gamma(gamma, make):
    X, y, _ = rings(40)
    theirs = sklearn.svm.SVC(gamma=gamma).fit(make(X), y)
    assert ln.SVC(gamma=gamma).fit(make(X), y).gamma_ == pytest.approx(theirs._gamma)


MODELS = {
    "SVC": ln.SVC(),
    "NuSVC": ln.NuSVC(nu=0.2, kernel="poly", coef0=1.0),
    "SVR": ln.SVR(kernel="linear"),
    "NuSVR": ln.NuSVR(),
    "OneClassSVM": ln.OneClassSVM(),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_a_round_trip_through_a_file(name, make, tmp_path):
    X, y, _ = curved(50) if name.endswith("R") else rings(50, 3)
    model = MODELS[name].fit(make(X), y)
    ln.save(model, tmp_path / "m.safetensors")
    loaded = ln.load(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    assert ln.verify(loaded, make(X), y)


def round_trip(model, path):
    ln.save(model, path)
    return ln.load(path)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("dual_coef_", lambda a: a[:, 1:].copy()),
        ("dual_coef_", lambda a: a * np.nan),
        ("support_", lambda a: a + np.int32(1000)),
        ("support_vectors_", lambda a: a[:, :1].copy()),
        ("support_vectors_", lambda a: a * np.inf),
        ("intercept_", lambda a: np.zeros(7)),
        ("n_support_", lambda a: a + np.int32(1)),
        ("gamma_", lambda a: -1.0),
        ("shape_fit_", lambda a: (0, 2)),
    ],
)
def test_a_damaged_model_is_refused(name, change, tmp_path):
    X, y, _ = rings(50, 3)
    model = ln.SVC().fit(X, y)
    with np.errstate(invalid="ignore"):
        setattr(model, name, change(getattr(model, name)))
    with pytest.raises(ModelFileError):
        round_trip(model, tmp_path / "m.safetensors")


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", ["SVC", "SVR", "OneClassSVM"])
@pytest.mark.parametrize(("n", "d", "cache"), [(9000, 10, 1), (3000, 300, 20)])
def test_memory_is_what_the_docstring_says(name, n, d, cache):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    y = X[:, 0] * X[:, 1] > 0.3 * rng.standard_normal(n)
    model = getattr(ln, name)(cache_size=cache, n_jobs=2)
    model.fit(X[:2100], y[:2100])  # kernels are compiled
    peak = peak_bytes(lambda: model.fit(X, y))
    rows = max(cache * 2**20, min(1024, n) * n * 4)
    assert peak < 4 * X.nbytes + rows + 2 * 32 * 2**20  # two threads
