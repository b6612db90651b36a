"""Short codes are categories with a prefix; free text is reduced for models of dense columns."""

import numpy as np
import pandas as pd
import pytest

import learnable as ln
from learnable.core.errors import ModelFileError
from learnable.data import TableEncoder
from learnable.data.encoder_categories import reduction


def cabins(n=600, seed=0):
    """Codes such as C85 whose letter decides the target, most of them missing."""
    rng = np.random.default_rng(seed)
    deck = rng.choice(list("ABCDE"), n)
    code = [f"{d}{k}" for d, k in zip(deck, rng.integers(1, 150, n), strict=True)]
    y = np.isin(deck, ["A", "C"]) + 0.3 * rng.normal(size=n)
    column = [None if gap else value for gap, value in zip(rng.random(n) < 0.5, code, strict=True)]
    return pd.DataFrame({"cabin": column, "x": rng.normal(size=n)}), y


def reviews(n=300, seed=0):
    rng = np.random.default_rng(seed)
    good, bad = ["great", "lovely", "superb", "fine", "bright"], ["awful", "broken", "dull", "poor", "sad"]
    y = rng.integers(2, size=n)
    filler = [f"w{k}" for k in range(200)]
    texts = [" ".join([*rng.choice(good if label else bad, 3), *rng.choice(filler, 6)]) for label in y]
    return pd.DataFrame({"text": texts, "x": rng.normal(size=n)}), np.where(y, "yes", "no")


def test_short_codes_are_categories_with_their_prefix():
    X, y = cabins()
    encoder = TableEncoder().fit(X, y)
    names = encoder.get_feature_names_out().tolist()
    assert encoder.columns_[0]["kind"] == "category" and len(names) < 12
    assert {f"cabin: prefix={deck}" for deck in "ABCDE"} <= set(names) and "cabin: mean target" in names
    Z = encoder.transform(X)
    is_a = X["cabin"].str.startswith("A").fillna(False).to_numpy(dtype=bool)
    assert np.array_equal(Z[:, names.index("cabin: prefix=A")] == 1.0, is_a)
    unseen = encoder.transform(pd.DataFrame({"cabin": ["A9999", "Z1", None], "x": [0.0] * 3}))
    assert unseen[:, names.index("cabin: prefix=A")].tolist() == [1.0, 0.0, 0.0]


@pytest.mark.parametrize("sparse", [True, False])
def test_the_prefix_helps_and_is_the_same_sparse_and_dense(sparse):
    X, y = cabins()
    known = X["cabin"].notna().to_numpy()
    encoder = TableEncoder(sparse=sparse)
    seen, Z = encoder.fit_transform(X[:400], y[:400]), encoder.transform(X)
    Z = Z.toarray() if sparse else Z
    assert np.array_equal(Z, TableEncoder(sparse=False).fit(X[:400], y[:400]).transform(X))
    model = ln.Ridge().fit(seen, y[:400])
    test = np.flatnonzero(known & (np.arange(600) >= 400))
    assert model.score(Z[test], y[test]) > 0.5


def test_values_that_begin_alike_have_no_prefix():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"code": [f"v{k}" for k in rng.integers(200, size=500)]})
    names = TableEncoder().fit(X, rng.normal(size=500)).get_feature_names_out().tolist()
    assert names == ["code: mean target"]


def test_reduced_text_is_the_projection_on_the_singular_vectors():
    X, _ = reviews()
    hashed = TableEncoder(scale=False, sparse=True).fit(X[["text"]]).transform(X[["text"]])
    encoder = TableEncoder(n_text_components=5, scale=False, sparse=False).fit(X[["text"]])
    _, s, V = np.linalg.svd(hashed.toarray(), full_matrices=False)
    Z = encoder.transform(X[["text"]])
    assert Z.shape == (300, 5) and encoder.get_feature_names_out()[0] == "text: text component 0"
    assert np.allclose(np.linalg.norm(Z, axis=0), s[:5])
    assert np.allclose(np.abs(Z), np.abs(hashed @ V[:5].T), atol=1e-8)
    scaled = reduction(hashed, 5, scale=True)
    assert np.allclose(np.mean((hashed @ scaled) ** 2, axis=0), 1.0)


def test_in_pieces_the_table_gives_the_same_vectors():
    X, _ = reviews()
    whole = TableEncoder(n_text_components=4).fit(X)
    pieces = TableEncoder(n_text_components=4)
    pieces._begin([(name, "text" if name == "text" else "number") for name in X.columns])
    for start in range(0, 300, 70):
        pieces._update(X.iloc[start : start + 70])
    pieces._finish()
    assert np.array_equal(whole.transform(X), pieces.transform(X))


@pytest.mark.parametrize(
    "model",
    [
        ln.GaussianNB(),
        ln.LinearDiscriminantAnalysis(),
        ln.QuadraticDiscriminantAnalysis(solver="eigen", shrinkage="auto"),
    ],
    ids=lambda model: type(model).__name__,
)
def test_models_of_dense_columns_learn_from_text_and_are_verified(model, tmp_path):
    X, y = reviews()
    fitted = ln.TableModel(model).fit(X, y)
    assert fitted.model_.n_features_in_ == 33 and fitted.score(X, y) > 0.85
    ln.save(fitted, tmp_path / "model.safetensors")
    loaded = ln.load(tmp_path / "model.safetensors")
    assert np.array_equal(loaded.predict_proba(X), fitted.predict_proba(X)) and ln.verify(loaded, X, y)
    loaded.encoder_.columns_[0]["reduction"] = loaded.encoder_.columns_[0]["reduction"][:, :-1]
    with pytest.raises(ModelFileError, match="sources_"):
        loaded.encoder_._check_loaded()
    loaded.encoder_.columns_[0]["reduction"] = np.full((3, 2), np.nan)
    with pytest.raises(ModelFileError, match="record of column 'text'"):
        loaded.encoder_._check_loaded()
