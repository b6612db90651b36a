"""`verify` accepts every honest fit, in any container and row order, and catches every change that matters."""

import copy
import dataclasses

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from sklearn import linear_model as peer
from sklearn.datasets import load_breast_cancer, load_iris

from learnable import LinearRegression, LogisticRegression, Ridge, RidgeCV, load, save, verify
from learnable.core import DataError, VerificationError

pytestmark = pytest.mark.filterwarnings("error::sklearn.exceptions.ConvergenceWarning")

RNG = np.random.default_rng(0)
N = 80
X = RNG.normal(size=(N, 4)) * [1.0, 2.0, 0.5, 3.0] + [0.0, 1.0, -2.0, 5.0]
TARGET = X @ [1.0, -2.0, 3.0, 0.5] + RNG.normal(size=N)
TARGETS = np.column_stack([TARGET, TARGET**2 / 10, RNG.normal(size=N)])
TWO = (TARGET - np.median(TARGET) + RNG.normal(size=N) > 0).astype(int)
THREE = np.digitize(TARGET + RNG.normal(size=N), np.quantile(TARGET, [0.3, 0.7]))
WEIGHT = RNG.uniform(0.2, 2.0, N)

MODELS = {
    "least squares": (LinearRegression(), TARGET),
    "least squares, no intercept": (LinearRegression(fit_intercept=False), TARGET),
    "least squares, three targets": (LinearRegression(), TARGETS),
    "least squares, positive": (LinearRegression(positive=True), TARGET),
    "ridge": (Ridge(), TARGET),
    "ridge, no intercept": (Ridge(alpha=3.0, fit_intercept=False), TARGET),
    "ridge, three targets": (Ridge(), TARGETS),
    "ridge, alpha per target": (Ridge(alpha=[0.1, 1.0, 10.0]), TARGETS),
    "ridge, svd": (Ridge(solver="svd"), TARGET),
    "ridge, conjugate gradients": (Ridge(solver="sparse_cg"), TARGET),
    "ridge, conjugate gradients, loose": (Ridge(solver="sparse_cg", tol=1e-3), TARGET),
    "ridge, conjugate gradients, three targets": (Ridge(solver="lsqr"), TARGETS),
    "ridge, conjugate gradients, no penalty": (Ridge(solver="sparse_cg", alpha=0.0), TARGET),
    "ridge, alpha zero": (Ridge(alpha=0.0), TARGET),
    "ridge, positive": (Ridge(positive=True), TARGET),
    "ridge cv": (RidgeCV(), TARGET),
    "ridge cv, gcv": (RidgeCV(criterion="gcv"), TARGET),
    "ridge cv, folds": (RidgeCV(cv=3), TARGET),
    "ridge cv, alpha per target": (RidgeCV(alpha_per_target=True), TARGETS),
    "logistic": (LogisticRegression(), TWO),
    "logistic, no intercept": (LogisticRegression(fit_intercept=False), TWO),
    "logistic, loose": (LogisticRegression(tol=1e-3), TWO),
    "logistic, maximum likelihood": (LogisticRegression(C=np.inf), TWO),
    "logistic, strong penalty": (LogisticRegression(C=1e-3), TWO),
    "logistic, weak penalty": (LogisticRegression(C=1e4), TWO),
    "logistic, class weights": (LogisticRegression(class_weight={0: 3.0}), TWO),
    "logistic, balanced": (LogisticRegression(class_weight="balanced"), TWO),
    "logistic, lbfgs": (LogisticRegression(solver="lbfgs"), TWO),
    "logistic, newton-cg": (LogisticRegression(solver="newton-cg"), TWO),
    "softmax": (LogisticRegression(), THREE),
    "softmax, no intercept": (LogisticRegression(fit_intercept=False), THREE),
    "softmax, maximum likelihood": (LogisticRegression(C=np.inf), THREE),
    "softmax, balanced": (LogisticRegression(class_weight="balanced"), THREE),
    "softmax, lbfgs": (LogisticRegression(solver="lbfgs", max_iter=500), THREE),
}
every_model = pytest.mark.parametrize("name", MODELS)
#: At a loose tolerance a small change is within what the certificate allows.
TIGHT = [name for name in MODELS if "loose" not in name]
every_tight_model = pytest.mark.parametrize("name", TIGHT)


def fitted(name, weight=None, X=X):
    model, y = MODELS[name]
    return copy.deepcopy(model).fit(X, y, weight), y


# ---- what must be accepted ----


@pytest.mark.sampled(4)
@every_model
@pytest.mark.parametrize("weighted", [False, True])
def test_every_model_and_option_is_verified(name, weighted):
    weight = WEIGHT if weighted else None
    model, y = fitted(name, weight)
    verdict = verify(model, X, y, weight)
    assert verdict, str(verdict)
    assert verdict.value <= model.certificate_.tolerance


@pytest.mark.sampled(6)
@every_model
@pytest.mark.parametrize("storage", [sp.csr_array, np.float32, "fortran"], ids=["sparse", "float32", "fortran"])
def test_every_storage_is_verified(name, storage):
    table = (
        np.asfortranarray(X) if storage == "fortran" else storage(X) if storage is sp.csr_array else X.astype(storage)
    )
    model, y = fitted(name, X=table)
    assert verify(model, table, y), str(verify(model, table, y))
    dense = table.toarray() if sp.issparse(table) else table
    assert verify(model, np.asarray(dense, dtype=np.float64), y)
    assert verify(model, sp.csc_array(dense.astype(np.float64)), y)


@every_model
def test_the_order_of_the_rows_does_not_matter(name):
    model, y = fitted(name, WEIGHT)
    order = np.random.default_rng(1).permutation(N)
    assert verify(model, X[order], y[order], WEIGHT[order])


@every_model
def test_a_saved_and_loaded_model_is_verified(name, tmp_path):
    model, y = fitted(name, WEIGHT)
    save(model, tmp_path / "model.safetensors")
    again = load(tmp_path / "model.safetensors")
    assert again.certificate_ == model.certificate_
    assert verify(again, X, y, WEIGHT)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame, pa.table], ids=["pandas", "polars", "arrow"])
@pytest.mark.parametrize("name", ["least squares", "ridge", "ridge cv", "logistic", "softmax"])
def test_frames_are_verified_with_targets_and_weights_by_name(frame, name):
    model, y = MODELS[name]
    columns = {f"x{j}": X[:, j] for j in range(4)}
    table = frame(columns | {"target": y, "w": WEIGHT})
    model = copy.deepcopy(model).fit(table, "target", "w")
    assert verify(model, table, "target", "w")
    assert verify(model, X, y, WEIGHT)
    assert verify(model, frame(columns), y, WEIGHT)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame, pa.table], ids=["pandas", "polars", "arrow"])
def test_frames_of_mixed_columns_are_verified(frame):
    table = frame({"a": X[:, 0], "b": np.arange(N), "c": np.arange(N) % 3 == 0, "y": np.array(["no", "yes"])[TWO]})
    model = LogisticRegression().fit(table, "y")
    assert verify(model, table, "y")


@pytest.mark.parametrize(
    "labels", [["n", "y"], [False, True], [-1, 1], [10, 3], [0.0, 1.0], np.array(["b", "a"], dtype=object)], ids=repr
)
@pytest.mark.parametrize(
    "container", [np.asarray, list, pd.Series, pl.Series], ids=["array", "list", "pandas", "polars"]
)
def test_labels_of_every_kind_and_container_are_verified(labels, container):
    y = np.asarray(labels)[TWO]
    y = y.tolist() if container is list or y.dtype == object else y
    model = LogisticRegression().fit(X, container(y))
    assert verify(model, X, container(y))
    other = (np.asarray(labels)[1 - TWO]).tolist()
    assert not verify(model, X, container(other))


def test_lists_of_rows_are_verified():
    model = Ridge().fit(X.tolist(), TARGET.tolist(), WEIGHT.tolist())
    assert verify(model, X.tolist(), TARGET.tolist(), WEIGHT.tolist())


def test_targets_in_a_single_column_are_verified():
    model = Ridge().fit(X, TARGET)
    assert verify(model, X, TARGET[:, None])
    with pytest.warns(UserWarning, match="column-vector"):
        model = LogisticRegression().fit(X, TWO[:, None])
    assert verify(model, X, TWO[:, None]) and verify(model, X, TWO)


@every_model
def test_rows_of_zero_weight_are_no_part_of_the_data(name):
    model, y = fitted(name, WEIGHT)
    more, extra = np.r_[X, X[:7] + 1.0], np.r_[WEIGHT, np.zeros(7)]
    assert verify(model, more, np.r_[y, y[:7]], extra)


def test_a_class_without_weight_is_no_part_of_the_data():
    weight = np.where(THREE == 1, 0.0, 1.0)
    model = LogisticRegression().fit(X, THREE, weight)
    assert model.classes_.tolist() == [0, 2]
    assert verify(model, X, THREE, weight)


def test_a_single_weight_for_all_rows_is_verified():
    model = Ridge().fit(X, TARGET, 2.5)
    assert verify(model, X, TARGET, 2.5) and verify(model, X, TARGET, np.full(N, 2.5))


@pytest.mark.parametrize(
    "shape", [(2, 1), (3, 5), (5, 40), (5000, 3)], ids=["two rows", "small wide", "wide", "several chunks"]
)
def test_every_shape_is_verified(shape):
    rng = np.random.default_rng(2)
    rows = rng.normal(size=shape) + 3.0
    y = rng.normal(size=shape[0])
    codes = np.r_[0, 1, rng.integers(0, 2, shape[0] - 2)]
    for model, target in [
        (LinearRegression(), y),
        (Ridge(), y),
        (Ridge(solver="sparse_cg"), y),
        (RidgeCV(), y),
        (LogisticRegression(), codes),
    ]:
        verdict = verify(model.fit(rows, target), rows, target)
        assert verdict, f"{model}: {verdict}"


@pytest.mark.parametrize("shift", [1e3, 1e6, 1e9])
@pytest.mark.parametrize("name", ["least squares", "ridge", "ridge cv", "logistic", "softmax"])
def test_columns_far_from_zero_are_verified(name, shift):
    """Dates and coordinates: the mean dwarfs the spread."""
    rows = np.round(X * 64) / 64 + shift
    model, y = fitted(name, X=rows)
    verdict = verify(model, rows, y)
    assert verdict, str(verdict)


@pytest.mark.parametrize("scale", [1e-150, 1e-20, 1e20, 1e150])
@pytest.mark.parametrize("name", ["least squares", "ridge", "ridge cv"])
def test_columns_of_extreme_scale_are_verified(name, scale):
    rows = X * [1.0, scale, 1.0, 1.0]
    model, y = fitted(name, X=rows)
    verdict = verify(model, rows, y)
    assert verdict, str(verdict)


# ---- what must be caught ----


@every_tight_model
def test_each_coefficient_changed_by_a_thousandth_is_caught(name):
    model, y = fitted(name)
    for place in zip(*np.nonzero(model.coef_), strict=True):
        forged = copy.deepcopy(model)
        forged.coef_[place] *= 1.001
        assert not verify(forged, X, y), f"coefficient {place}"


@pytest.mark.parametrize("data", [load_breast_cancer, load_iris], ids=["breast cancer", "iris"])
def test_each_coefficient_of_a_real_fit_changed_by_a_thousandth_is_caught(data):
    rows, y = data(return_X_y=True)
    rows = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    for model in (LogisticRegression(), LogisticRegression(solver="lbfgs", max_iter=1000), Ridge(), LinearRegression()):
        model.fit(rows, y)
        assert verify(model, rows, y)
        for place in np.ndindex(model.coef_.shape):
            forged = copy.deepcopy(model)
            forged.coef_[place] *= 1.001
            assert not verify(forged, rows, y), f"{model}, coefficient {place}"


@every_tight_model
def test_a_changed_intercept_is_caught(name):
    model, y = fitted(name)
    if np.ndim(y) == 2 and np.ndim(model.intercept_) == 0:
        model.intercept_ = model.intercept_ + np.zeros(y.shape[1])
    for target in range(np.size(model.intercept_)):
        forged = copy.deepcopy(model)
        change = np.zeros(np.shape(model.intercept_))
        change[(target,) * change.ndim] = 1e-3 * (1 + np.abs(np.ravel(model.intercept_)[target]))
        forged.intercept_ = model.intercept_ + change
        assert not verify(forged, X, y), f"intercept {target}"


@pytest.mark.sampled(6)
@every_model
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_coefficients_that_are_not_numbers_are_caught(name, value):
    for attribute in ("coef_", "intercept_"):
        model, y = fitted(name)
        setattr(model, attribute, getattr(model, attribute) + value)
        assert not verify(model, X, y)


@every_model
def test_a_changed_cell_is_caught(name):
    model, y = fitted(name)
    for place in [(0, 0), (17, 2), (N - 1, 3)]:
        other = X.copy()
        other[place] = np.nextafter(other[place], np.inf)
        verdict = verify(model, other, y)
        assert not verdict and "not those of the fit" in str(verdict)


@every_model
def test_other_data_are_caught(name):
    model, y = fitted(name)
    for other in (X + 1e-3, X[:, ::-1], -X, np.roll(X, 1, axis=0)):
        assert "not those of the fit" in str(verify(model, other, y))


@every_model
def test_a_dropped_or_repeated_row_is_caught(name):
    model, y = fitted(name)
    assert not verify(model, X[1:], y[1:])
    assert not verify(model, np.r_[X, X[:1]], np.r_[y, y[:1]])


@every_model
def test_changed_targets_are_caught(name):
    model, y = fitted(name)
    first = y if y.ndim == 1 else y[:, 0]
    different = int(np.argmax(first != first[3]))
    other = y.copy()
    other[3] = y[different]
    assert not verify(model, X, other)
    other[different] = y[3]  # the same targets, two of them exchanged
    assert not verify(model, X, other)


@every_model
def test_changed_weights_are_caught(name):
    model, y = fitted(name, WEIGHT)
    assert not verify(model, X, y)
    assert not verify(model, X, y, 2 * WEIGHT)
    assert not verify(model, X, y, np.roll(WEIGHT, 1))
    other = WEIGHT.copy()
    other[5] = 0.0
    assert not verify(model, X, y, other)


@pytest.mark.parametrize("name", ["logistic", "softmax", "logistic, maximum likelihood", "logistic, loose"])
def test_swapped_class_labels_are_caught(name):
    model, y = fitted(name)
    forged = copy.deepcopy(model)
    forged.classes_ = model.classes_[::-1].copy()
    assert not verify(forged, X, y)
    swapped = y.copy()
    swapped[y == 0], swapped[y == 1] = 1, 0
    assert not verify(model, X, swapped)
    renamed = copy.deepcopy(model)
    renamed.classes_ = model.classes_ + 10
    assert not verify(renamed, X, y + 10)


def test_classes_renamed_in_order_are_other_data():
    model = LogisticRegression().fit(X, np.array(["no", "yes"])[TWO])
    model.classes_ = np.array(["healthy", "ill"])
    assert not verify(model, X, np.array(["healthy", "ill"])[TWO])


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("ridge", {"alpha": 1.001}),
        ("ridge, no intercept", {"alpha": 2.997}),
        ("ridge, alpha per target", {"alpha": [0.1, 1.0, 10.01]}),
        ("ridge, conjugate gradients", {"alpha": 1.1}),
        ("ridge", {"fit_intercept": False}),
        ("ridge, no intercept", {"fit_intercept": True}),
        ("logistic", {"C": 1.01}),
        ("logistic", {"C": np.inf}),
        ("softmax", {"C": 0.99}),
        ("logistic", {"class_weight": "balanced"}),
        ("logistic, class weights", {"class_weight": {0: 3.03}}),
        ("logistic, class weights", {"class_weight": None}),
        ("logistic, no intercept", {"fit_intercept": True}),
        ("least squares, no intercept", {"fit_intercept": True}),
    ],
    ids=str,
)
def test_a_parameter_changed_after_the_fit_is_caught(name, change):
    model, y = fitted(name)
    assert verify(model, X, y)
    model.set_params(**change)
    assert not verify(model, X, y)


def test_a_chosen_penalty_changed_after_the_fit_is_caught():
    model, y = fitted("ridge cv")
    model.alpha_ = model.alpha_ * 1.001
    assert not verify(model, X, y)


@pytest.mark.sampled(6)
@every_model
@pytest.mark.parametrize("factor", [0.1, 0.5, 2.0, 100.0])
def test_a_replaced_certificate_value_is_caught(name, factor):
    """Where the value is larger than the rounding of its own computation."""
    model, y = fitted(name)
    rounding = 1e-11
    certificate = model.certificate_
    model.certificate_ = dataclasses.replace(certificate, value=max(certificate.value, rounding) * factor)
    if abs(model.certificate_.value - certificate.value) > rounding:
        assert not verify(model, X, y)


@every_model
def test_a_replaced_fingerprint_is_caught(name):
    model, y = fitted(name)
    model.certificate_ = dataclasses.replace(model.certificate_, fingerprint="0" * 16)
    assert not verify(model, X, y)


def test_a_certificate_of_another_model_is_caught():
    good, bad = LogisticRegression().fit(X, TWO), LogisticRegression().fit(X + 0.5, TWO)
    bad.certificate_ = good.certificate_
    bad.coef_ = good.coef_ * 1.01
    bad.intercept_ = good.intercept_
    assert not verify(bad, X, TWO)


# ---- what cannot be verified ----


@pytest.mark.parametrize("model", [LinearRegression(), Ridge(), RidgeCV(), LogisticRegression()], ids=repr)
def test_an_unfitted_model_is_an_error(model):
    with pytest.raises(VerificationError, match="has no certificate; call fit first"):
        verify(model, X, TWO)


@pytest.mark.parametrize("model", [peer.Ridge(), peer.LogisticRegression(), "model", None], ids=repr)
def test_a_foreign_model_is_an_error(model):
    if hasattr(model, "fit"):
        model.fit(X, TWO)
    with pytest.raises(VerificationError, match="is not a model of this library"):
        verify(model, X, TWO)


def test_a_subclass_is_not_taken_for_its_base():
    class Mine(Ridge):
        pass

    with pytest.raises(VerificationError, match="Mine is not a model of this library"):
        verify(Mine().fit(X, TARGET), X, TARGET)


@pytest.mark.parametrize("name", ["ridge", "logistic"])
def test_a_wrong_number_of_columns_is_an_error(name):
    model, y = fitted(name)
    for rows in (X[:, :3], np.column_stack([X, X[:, 0]]), sp.csr_array(X[:, :3])):
        with pytest.raises(VerificationError, match=r"verify: the model has 4 features; the data have shape"):
            verify(model, rows, y)


@pytest.mark.parametrize("name", ["ridge", "ridge, three targets", "logistic"])
def test_targets_and_weights_of_the_wrong_length_are_an_error(name):
    model, y = fitted(name)
    for arguments in [(X, y[:-1]), (X[:-1], y), (X, y, WEIGHT[:-1]), (X, y, np.ones((N, 2)))]:
        with pytest.raises(VerificationError, match="verify: "):
            verify(model, *arguments)


def test_a_wrong_number_of_targets_is_an_error():
    model, _ = fitted("ridge, three targets")
    with pytest.raises(VerificationError, match="the model has 3 targets, the data 1"):
        verify(model, X, TARGET)


@pytest.mark.parametrize("label", ["maybe", 7, None])
def test_an_unknown_label_is_an_error(label):
    model = LogisticRegression().fit(X, np.array(["no", "yes"])[TWO])
    y = np.array(["no", "yes"], dtype=object)[TWO]
    y[3] = label
    with pytest.raises(VerificationError, match=r"verify: .*does not know"):
        verify(model, X, y)


@pytest.mark.parametrize(
    "rows",
    [X[0], X[:, :, None], "table", None, [["a", "b", "c", "d"]] * N, [[1.0, 2.0], [1.0]]],
    ids=["one dimension", "three dimensions", "text", "None", "text cells", "ragged"],
)
@pytest.mark.parametrize("name", ["ridge", "logistic"])
def test_data_that_are_no_table_are_an_error(name, rows):
    model, y = fitted(name)
    with pytest.raises(DataError if isinstance(rows, str) else VerificationError, match="verify: "):
        verify(model, rows, y)


@pytest.mark.parametrize("name", ["ridge", "logistic"])
def test_no_targets_are_an_error(name):
    model, _ = fitted(name)
    with pytest.raises(VerificationError, match="verify: "):
        verify(model, X)


def is_verified(*arguments):
    try:
        return bool(verify(*arguments))
    except VerificationError:
        return False


@pytest.mark.parametrize("name", ["ridge", "logistic"])
def test_missing_values_are_never_verified(name):
    model, y = fitted(name)
    rows = X.copy()
    rows[2, 1] = np.nan
    assert not is_verified(model, rows, y)
