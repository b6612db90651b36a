"""The data as a check reads them: plain numbers, codes, class weights, and the checksum of the fit, recomputed."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from learnable import LogisticRegression, Ridge
from learnable.core.errors import VerificationError
from learnable.data.checking import class_weights_of, codes_of, fingerprint_of, numbers_of, plain_rows

RNG = np.random.default_rng(0)
X = RNG.normal(size=(50, 3)) * (RNG.random((50, 3)) < 0.6)
Y = RNG.normal(size=50)
WEIGHT = RNG.integers(0, 3, 50).astype(float)


def rows_of(table, y=Y, weight=WEIGHT):
    return plain_rows(Ridge().fit(X, Y), table, numbers_of(y), weight)


@pytest.mark.parametrize("table", [X, X.tolist(), sp.csr_array(X), sp.coo_array(X), pd.DataFrame(X), pl.DataFrame(X)])
def test_every_container_holds_the_same_rows_without_those_of_weight_zero(table):
    rows = rows_of(table)
    kept = WEIGHT > 0
    parts = [(Z.toarray() if sp.issparse(Z) else Z, t, s) for Z, t, s in rows.chunks()]
    assert all(part.dtype == np.longdouble for chunk in parts for part in chunk)
    for found, expected in zip(zip(*parts, strict=True), (X, Y[:, None], WEIGHT), strict=True):
        assert np.array_equal(np.concatenate(found), expected[kept])


@given(seed=st.integers(0, 10**6), n=st.integers(2, 40), d=st.integers(1, 5), k=st.integers(1, 3), sparse=st.booleans())
def test_the_checksum_is_that_of_the_fit_whatever_the_order_of_the_rows(seed, n, d, k, sparse):
    rng = np.random.default_rng(seed)
    table, targets = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.7), rng.normal(size=(n, k))
    weight = rng.uniform(0.5, 2.0, n)
    model = Ridge().fit(sp.csr_array(table) if sparse else table, targets, weight)
    order = rng.permutation(n)
    shuffled = sp.csr_array(table[order]) if rng.random() < 0.5 else table[order]
    rows = plain_rows(model, shuffled, targets[order], weight[order])
    assert fingerprint_of(rows) == model.certificate_.fingerprint
    changed = plain_rows(model, shuffled, np.nextafter(targets[order], np.inf), weight[order])
    assert fingerprint_of(changed) != model.certificate_.fingerprint


def test_labels_belong_to_the_checksum():
    labels = np.where(Y > 0, "yes", "no")
    model = LogisticRegression().fit(X, labels)
    codes = codes_of(model.classes_, labels)
    assert np.array_equal(model.classes_[codes], labels)
    rows = plain_rows(model, X, codes, None)
    assert fingerprint_of(rows, model.classes_) == model.certificate_.fingerprint
    assert fingerprint_of(rows, model.classes_[::-1]) != model.certificate_.fingerprint
    with pytest.raises(VerificationError, match="does not know the label 'perhaps'"):
        codes_of(model.classes_, np.array(["yes", "perhaps"]))


def test_class_weights_are_ones_those_given_or_balanced():
    classes, codes = np.array(["a", "b"]), (np.arange(50) % 5 == 0).astype(int)
    rows = plain_rows(Ridge().fit(X, Y), X, codes, WEIGHT)
    assert class_weights_of(None, classes, rows).tolist() == [1, 1]
    assert class_weights_of({"b": 4.0}, classes, rows).tolist() == [1, 4]
    balanced = class_weights_of("balanced", classes, rows)[rows.y] * rows.weight
    assert balanced[rows.y == 0].sum() == pytest.approx(balanced[rows.y == 1].sum())
    assert balanced.sum() == pytest.approx(WEIGHT.sum())


@pytest.mark.parametrize(
    ("table", "y", "weight", "words"),
    [
        (X[:, :2], Y, None, "the model has 3 features"),
        (X[:9], Y, None, "50 targets"),
        (X[0], Y, None, "two dimensions"),
        (np.full((50, 3), "word"), Y, None, "not the table of a fit"),
        (X, Y, np.ones(7), "not the table of a fit"),
    ],
)
def test_what_cannot_be_the_data_of_the_fit_is_refused(table, y, weight, words):
    with pytest.raises(VerificationError, match=words):
        rows_of(table, y, weight)


def test_targets_have_to_be_numbers():
    with pytest.raises(VerificationError, match="y does not hold the targets"):
        numbers_of(["one", "two"])
