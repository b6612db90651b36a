"""TableEncoder: its laws, its oracles, and tables that are not as they should be."""

import datetime as dt
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from tests.data.messy import messy_columns, messy_frame

from learnable import load, save
from learnable.core import DataError, DataTypeError, ParameterError
from learnable.data import TableEncoder
from learnable.data import encoder_fit as encoder_numbers
from learnable.data.encoder_input import read_schema

FRAME, TARGET = messy_frame()
LABELS = np.array(["low", "middle", "high"])[np.digitize(TARGET, np.quantile(TARGET, [0.3, 0.6]))]
TARGETS = {"none": None, "regression": TARGET, "binary": LABELS == "low", "multiclass": LABELS}


def dense(Z):
    return Z.toarray() if sp.issparse(Z) else Z


def same_state(a, b):
    """Assert that two encoders have the same fitted attributes, bit for bit."""
    assert a.sparse_ == b.sparse_
    np.testing.assert_array_equal(a.sources_, b.sources_)
    np.testing.assert_array_equal(a.feature_names_in_, b.feature_names_in_)
    for first, second in zip(a.columns_, b.columns_, strict=True):
        assert first.keys() == second.keys()
        for key, value in first.items():
            np.testing.assert_array_equal(value, second[key], err_msg=f"{first['name']}: {key}")


# ---- laws ----


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(0, 200), max_size=6), st.sampled_from(sorted(TARGETS)), st.booleans())
@example([41, 42], "binary", True)  # a piece of one row without weight
def test_cut_into_any_pieces_the_table_gives_the_same_encoder(cuts, task, weighted):
    y = TARGETS[task]
    weight = np.random.default_rng(0).integers(0, 3, len(FRAME)) * 0.5 if weighted else None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(encoder_numbers, "most_rows", lambda columns: 64)
        whole = TableEncoder(n_text_features=16).fit(FRAME, y, weight)
        pieces = clone(whole)
        classes = None if y is None or task == "regression" else np.unique(y)
        pieces._begin(read_schema("test", FRAME), classes=classes, n_targets=int(task == "regression"))
        for rows in np.split(np.arange(len(FRAME)), sorted(cuts)):
            some = None if y is None else y[rows]
            pieces._update(FRAME.iloc[rows], some, None if weight is None else weight[rows])
        pieces._finish()
    same_state(whole, pieces)


@pytest.mark.parametrize("task", TARGETS)
def test_the_rows_of_the_fit_are_encoded_alike_in_pieces(task):
    encoder = TableEncoder(sparse=False)
    whole = encoder.fit_transform(FRAME, TARGETS[task])
    pieces = [encoder._encode(encoder._open(FRAME.iloc[s : s + 33]), first_row=s) for s in range(0, 200, 33)]
    np.testing.assert_array_equal(np.concatenate(pieces), whole)
    parts = [encoder.transform(FRAME.iloc[s : s + 7]) for s in range(0, 200, 7)]
    np.testing.assert_array_equal(np.concatenate(parts), encoder.transform(FRAME))


@pytest.mark.parametrize("task", TARGETS)
def test_sparse_and_dense_are_the_same_numbers(task):
    y = TARGETS[task]
    thin, full = TableEncoder(sparse=True), TableEncoder(sparse=False)
    a, b = thin.fit_transform(FRAME, y), full.fit_transform(FRAME, y)
    assert isinstance(a, sp.csr_array) and isinstance(b, np.ndarray)
    assert a.has_canonical_format and a.dtype == np.float64
    np.testing.assert_array_equal(a.toarray(), b)
    np.testing.assert_array_equal(thin.transform(FRAME).toarray(), full.transform(FRAME))


@pytest.mark.parametrize("task", ["regression", "binary", "multiclass"])
def test_a_mean_target_never_sees_the_fold_of_its_row(task):
    y = np.asarray(TARGETS[task])
    encoder = TableEncoder(scale=False, sparse=False)
    before = encoder.fit_transform(FRAME, y)
    city = encoder.sources_ == list(FRAME.columns).index("city")
    assert city.sum() == (3 if task == "multiclass" else 1)
    for fold in range(5):
        own = np.flatnonzero(np.arange(len(y)) % 5 == fold)
        changed = y.copy()
        changed[own] = y[own][::-1] * -3.0 if task == "regression" else np.roll(y[own], 1)
        after = TableEncoder(scale=False, sparse=False).fit_transform(FRAME, changed)
        np.testing.assert_allclose(after[own][:, city], before[own][:, city], rtol=1e-9)
        others = np.setdiff1d(np.arange(len(y)), own)
        assert not np.allclose(after[others][:, city], before[others][:, city])


def test_libraries_and_containers_give_the_same_features():
    columns, y = messy_columns()
    expected = dense(TableEncoder().fit_transform(FRAME, y))
    objects = np.array(list(zip(*columns.values(), strict=True)), dtype=object)
    tables = {
        "pandas": pd.DataFrame(columns),
        "polars": pl.DataFrame(columns),
        "arrow": pa.table(columns),
        "objects": objects,
        "rows": objects.tolist(),
    }
    for name, table in tables.items():
        encoder = TableEncoder()
        np.testing.assert_array_equal(dense(encoder.fit_transform(table, y)), expected, err_msg=name)
        np.testing.assert_array_equal(dense(encoder.transform(table)), dense(encoder.fit(FRAME, y).transform(FRAME)))


def test_an_encoder_of_one_library_encodes_the_rows_of_another():
    columns, y = messy_columns()
    encoder = TableEncoder().fit(FRAME, y)
    expected = dense(encoder.transform(FRAME))
    for table in (pd.DataFrame(columns), pl.DataFrame(columns), pa.table(columns)):
        np.testing.assert_array_equal(dense(encoder.transform(table)), expected)


@pytest.mark.parametrize("task", TARGETS)
def test_whole_weights_are_repeated_rows(task):
    y, weight = TARGETS[task], np.random.default_rng(1).integers(0, 3, len(FRAME))
    rows = np.repeat(np.arange(len(FRAME)), weight)
    options = {"text": "words", "sparse": False, "max_categories": 30}
    few = FRAME.drop(columns="note")  # whether text is free depends on how often it repeats
    a = TableEncoder(**options).fit(few, y, weight)
    b = TableEncoder(**options).fit(few.iloc[rows], None if y is None else np.asarray(y)[rows])
    assert a.get_feature_names_out().tolist() == b.get_feature_names_out().tolist()
    np.testing.assert_allclose(a.transform(few), b.transform(few), rtol=1e-9, atol=1e-12)


# ---- oracles ----


def test_numbers_are_those_of_scaler_and_imputer():
    X = np.random.default_rng(2).normal(5, 3, (500, 6))
    X[np.random.default_rng(3).random(X.shape) < 0.2] = np.nan
    X[:, 5] = np.arange(500)  # nothing missing: no flag
    Z = TableEncoder().fit_transform(X)
    scaler, imputer = StandardScaler(), SimpleImputer(strategy="median", add_indicator=True)
    expected = imputer.fit_transform(scaler.fit_transform(X))
    order = [*(c for j in range(5) for c in (j, 6 + j)), 5]
    np.testing.assert_allclose(Z, expected[:, order], rtol=1e-10, atol=1e-12)


def test_means_can_fill_gaps():
    X = np.array([[1.0], [2.0], [np.nan], [9.0]])
    expected = SimpleImputer(strategy="mean", add_indicator=True).fit_transform(X)
    np.testing.assert_allclose(TableEncoder(scale=False, fill="mean").fit_transform(X), expected)


def test_categories_are_those_of_one_hot_encoder():
    frame = FRAME[["kind"]]
    expected = OneHotEncoder(sparse_output=False).fit_transform(frame.fillna("~"))  # sorted last
    np.testing.assert_array_equal(TableEncoder().fit_transform(frame), expected)


def test_many_categories_without_a_target_are_those_of_one_hot_encoder():
    frame = FRAME[["city"]].dropna()
    peer = OneHotEncoder(max_categories=7, sparse_output=False, handle_unknown="ignore").fit(frame)
    Z = TableEncoder(max_categories=7).fit_transform(frame)
    assert Z.shape == (len(frame), 7)
    mine, theirs = Z @ Z.T, peer.transform(frame) @ peer.transform(frame).T
    np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("analyzer", ["words", "characters"])
def test_text_is_that_of_hashing_vectorizer(analyzer):
    words = analyzer == "words"
    peer = HashingVectorizer(
        n_features=64, analyzer="word" if words else "char_wb", ngram_range=(1, 2) if words else (2, 4)
    )
    encoder = TableEncoder(text=analyzer, n_text_features=64)
    Z = dense(encoder.fit_transform(FRAME[["note"]]))
    assert encoder.columns_[0]["analyzer"] == analyzer
    np.testing.assert_allclose(Z[:, :64], peer.transform(FRAME["note"].fillna("")).toarray())
    np.testing.assert_array_equal(Z[:, 64], FRAME["note"].isna())


def test_scaled_mean_targets_have_variance_one():
    encoder = TableEncoder(sparse=False).fit(FRAME, TARGET)
    Z = encoder.transform(FRAME)[:, encoder.sources_ == 4]
    np.testing.assert_allclose((Z**2).mean(axis=0), 1.0, rtol=1e-10)


def test_dates_have_a_trend_and_cycles():
    days = pd.date_range("2020-01-01", periods=800, freq="D")
    encoder = TableEncoder(scale=False)
    Z = encoder.fit_transform(pd.DataFrame({"d": days}))
    assert [name.split(": ")[1] for name in encoder.get_feature_names_out()] == [
        "days", "sine of the year", "cosine of the year", "sine of the week", "cosine of the week",
    ]  # fmt: skip
    assert Z[0, 0] == 18262 and (np.diff(Z[:, 0]) == 1).all()
    monday = days.day_of_week == 0
    np.testing.assert_allclose(Z[monday][:, 3:], np.tile([0.0, 1.0], (monday.sum(), 1)), atol=1e-9)
    np.testing.assert_allclose(Z[days.day_of_year == 1][:, 1:3], np.tile([0.0, 1.0], (3, 1)), atol=1e-9)
    np.testing.assert_allclose((Z[:, 1:] ** 2).sum(axis=1), 2.0)


def test_times_have_a_daily_cycle_on_the_clock_of_the_fit():
    hours = pd.DataFrame({"t": pd.date_range("2024-03-30", periods=72, freq="h", tz="Europe/Rome")})
    encoder = TableEncoder().fit(hours)
    assert encoder.columns_[0]["zone"] == "Europe/Rome"
    Z = encoder.transform(hours)
    np.testing.assert_allclose(Z[hours["t"].dt.hour == 6][:, 5:7], [[1.0, 0.0]] * 3, atol=1e-9)
    elsewhere = pd.DataFrame({"t": hours["t"].dt.tz_convert("UTC")})
    np.testing.assert_array_equal(encoder.transform(elsewhere), Z)
    np.testing.assert_array_equal(encoder.transform(pl.from_pandas(elsewhere)), Z)


# ---- what is unusual ----


def test_every_kind_is_found():
    encoder = TableEncoder().fit(FRAME, TARGET)
    kinds = {record["name"]: record["kind"] for record in encoder.columns_}
    assert kinds == {
        "size": "number", "rooms": "number", "new": "boolean", "kind": "category", "city": "category", "sold": "date",
        "note": "text", "country": "constant", "blank": "empty",
    }  # fmt: skip
    assert [record["missing"] for record in encoder.columns_] == FRAME.isna().sum().tolist()
    assert {7, 8}.isdisjoint(encoder.sources_)


def test_unseen_and_missing_values_are_never_an_error():
    encoder = TableEncoder(sparse=False).fit(
        FRAME.dropna(subset=["kind", "city", "size"]), TARGET[FRAME[["kind", "city", "size"]].notna().all(axis=1)]
    )
    strange = FRAME.iloc[:2].assign(
        kind=["castle", None], city=["nowhere", None], size=[np.nan, np.nan], note=["", None]
    )
    Z = encoder.transform(strange)
    names = encoder.get_feature_names_out()
    assert not Z[:, [name.startswith("kind=") for name in names]].any()
    np.testing.assert_array_equal(Z[:, names == "city: mean target"], 0.0)  # the overall mean
    record = encoder.columns_[0]
    np.testing.assert_allclose(Z[:, names == "size"], (record["fill"] - record["mean"]) / record["scale"])
    assert np.isfinite(Z).all()


def test_columns_are_found_by_name():
    encoder = TableEncoder().fit(FRAME, TARGET)
    shuffled = FRAME[FRAME.columns[::-1]].assign(more=1)
    np.testing.assert_array_equal(dense(encoder.transform(shuffled)), dense(encoder.transform(FRAME)))
    with pytest.raises(DataError, match=r"(?s)TableEncoder: .*now missing.*- city"):
        encoder.transform(FRAME.drop(columns="city"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"size": "large"}, "column 'size' held numbers in the fit; now it holds text ('large' in row 0). Convert"),
        ({"size": dt.date(2020, 1, 1)}, "column 'size' held numbers in the fit; now it holds dates"),
        ({"kind": 3}, "column 'kind' held text in the fit; now it holds numbers (3 in row 0). Convert it to text"),
        ({"sold": "01/02/2020"}, "column 'sold' held dates in the fit; now it holds text"),
        ({"sold": "2020-01-32"}, "column 'sold' held dates in the fit; now it holds text"),
        ({"sold": 5.0}, "column 'sold' held dates in the fit; now it holds numbers"),
        ({"new": 2}, "column 'new' held truth values in the fit; now row 0 holds 2. Pass True and False, or 0 and 1"),
        ({"new": "yes"}, "column 'new' held truth values in the fit; now it holds text"),
        ({"size": np.inf}, "column 'size' contains infinity, first in row 0. Replace it"),
        ({"rooms": -np.inf}, "column 'rooms' contains infinity, first in row 0"),
    ],
)
@pytest.mark.parametrize("library", ["pandas", "polars", "arrow"])
def test_a_column_of_another_type_is_refused_by_name(change, message, library):
    encoder = TableEncoder().fit(FRAME, TARGET)
    columns = {name: values[:3] for name, values in messy_columns()[0].items()}
    columns |= {name: [value] * 3 for name, value in change.items()}
    make = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "arrow": pa.table}[library]
    with pytest.raises(DataError) as caught:
        encoder.transform(make(columns))
    assert str(caught.value).startswith(f"TableEncoder: {message}")


@pytest.mark.parametrize("library", ["pandas", "polars", "arrow"])
def test_dates_of_the_fit_may_come_as_text_with_the_year_first(library):
    encoder = TableEncoder(sparse=False).fit(FRAME, TARGET)
    make = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "arrow": pa.table}[library]
    columns = {name: values[:20] for name, values in messy_columns()[0].items()}
    text = [None if value is None else value.strftime("%Y-%m-%d %H:%M:%S") for value in columns["sold"]]
    assert any(text)
    np.testing.assert_array_equal(encoder.transform(make(columns | {"sold": text})), encoder.transform(make(columns)))


@pytest.mark.parametrize("name", list(FRAME.columns))
def test_a_column_without_any_value_is_read_as_missing(name):
    encoder = TableEncoder(sparse=False).fit(FRAME, TARGET)
    few = FRAME.iloc[:4]
    for gaps in (np.full(4, np.nan), [None] * 4, pd.array([None] * 4, dtype="string")):
        Z = encoder.transform(few.assign(**{name: gaps}))
        assert np.isfinite(Z).all() and Z.shape == encoder.transform(few).shape


def test_truth_values_may_be_numbers_and_numbers_truth_values():
    encoder = TableEncoder(scale=False).fit(pd.DataFrame({"b": [True, False, None], "n": [0, 1, 2]}))
    Z = encoder.transform(pd.DataFrame({"b": [1, 0, None], "n": [True, False, True]}))
    np.testing.assert_array_equal(Z[:, [0, -1]], [[1, 1], [0, 0], [0.5, 1]])


def test_a_column_of_mixed_types_is_a_category():
    encoder = TableEncoder().fit(pd.DataFrame({"m": np.array(["a", 1, 2.0, None], dtype=object)}))
    assert encoder.get_feature_names_out().tolist() == ["m=1", "m=2", "m=a", "m=(missing)"]
    np.testing.assert_array_equal(
        encoder.transform(pd.DataFrame({"m": [1.0, 2.0, np.nan]})), [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 0, 1]]
    )


@pytest.mark.parametrize(
    "table",
    [pd.DataFrame([[1, 2]], columns=["a", "a"]), pa.table([[1], [2]], names=["a", "a"])],
    ids=["pandas", "arrow"],
)
def test_two_columns_of_one_name_are_refused(table):
    with pytest.raises(DataError, match=r"TableEncoder: .*'a'.*Rename the columns"):
        TableEncoder().fit(table)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (pd.DataFrame({"a": [], "b": []}), r"0 sample\(s\)"),
        (pd.DataFrame(index=range(3)), r"0 feature\(s\)"),
        (np.empty((0, 3)), r"0 sample\(s\)"),
        ([1, 2, 3], "Expected 2D array"),
        (3.0, "X must be a table"),
        (pd.DataFrame({"a": [1], "b": ["x"]}), "no column has two values in 1 sample; constant or empty: 'a', 'b'"),
        (pd.DataFrame({"a": [1, 1], "b": [None, None]}), "no column has two values in 2 samples"),
        (np.full((5, 2), np.nan), "no column has two values in 5 samples"),
    ],
)
def test_tables_without_anything_to_learn_are_refused(table, message):
    with pytest.raises(DataError, match=message):
        TableEncoder().fit(table)


def test_sparse_input_is_refused():
    with pytest.raises(DataTypeError, match="Sparse data was passed for X"):
        TableEncoder().fit(sp.csr_array(np.eye(3)))


def test_a_column_with_gaps_and_one_value_is_its_flag():
    encoder = TableEncoder().fit(pd.DataFrame({"a": [1.0, None, 1.0], "b": ["x", None, "x"]}))
    assert encoder.get_feature_names_out().tolist() == ["a=(missing)", "b=x", "b=(missing)"]


def test_names_are_unique():
    table = pd.DataFrame({"a": ["b", "c"], "a=b": [1, 2], "a=(missing)": [3, 4], "d": ["(missing)", None]})
    names = TableEncoder().fit(table).get_feature_names_out().tolist()
    assert len(set(names)) == len(names) == 6


def test_the_type_of_objects_is_that_of_all_rows():
    late = [None] * 150 + list(range(10)) * 5
    words = ["a", "b"] * 75 + [3] * 50
    encoder = TableEncoder().fit(pd.DataFrame({"n": late, "m": words}, dtype=object))
    assert [record["input"] for record in encoder.columns_] == ["number", "mixed"]


def test_arrow_files_are_read_in_pieces():
    columns, y = messy_columns()
    table = pa.table(columns)
    encoder = TableEncoder()
    encoder._begin(read_schema("test", table.schema.empty_table()), n_targets=1)
    for start in range(0, 200, 30):
        encoder._update(table.slice(start, 30), y[start : start + 30])
    same_state(encoder._finish(), TableEncoder().fit(table, y))


def test_objects_that_are_no_float64():
    with pytest.raises(DataError, match="column 'a' holds an integer that is too large for float64"):
        TableEncoder().fit(pd.DataFrame({"a": [10**400, 1]}, dtype=object))


def test_columns_whose_names_are_numbers_have_places():
    encoder = TableEncoder().fit(pd.DataFrame([[1, "a"], [2, "b"]]))
    assert not hasattr(encoder, "feature_names_in_")
    assert encoder.get_feature_names_out().tolist() == ["x0", "x1=a", "x1=b"]
    assert encoder.get_feature_names_out(["p", "q"]).tolist() == ["p", "q=a", "q=b"]
    with pytest.raises(DataTypeError, match="TableEncoder: Feature names are only supported if all"):
        TableEncoder().fit(pd.DataFrame([[1, 2], [3, 4]], columns=["a", 1]))


any_value = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**70), 2**70), st.floats(width=64), st.text(max_size=4), st.decimals(),
    st.dates(), st.datetimes(), st.timedeltas(), st.times(), st.binary(max_size=2), st.just([1]), st.complex_numbers(),
)  # fmt: skip
alike = st.one_of(
    st.lists(kind, min_size=8, max_size=8)
    for kind in (
        st.none() | st.booleans(),
        st.none() | st.integers(-9, 9),
        st.floats(allow_infinity=False, width=32),
        st.none() | st.text(max_size=3),
        st.none() | st.dates(),
        st.none() | st.datetimes(),
        st.none() | st.timedeltas(),
        st.sampled_from(["a", 1, 2.5, None, True]),
        any_value,
    )
)


@settings(deadline=None)
@given(st.lists(alike, min_size=1, max_size=4), st.integers(1, 7))
def test_any_table_is_encoded_or_refused(columns, cut):
    """Whatever the objects: finite features that do not depend on pieces, or an error of ours."""
    objects = np.empty((8, len(columns)), dtype=object)
    for j, values in enumerate(columns):
        for i, value in enumerate(values):
            objects[i, j] = value
    encoder, refusal = TableEncoder(sparse=False, max_categories=4), None
    try:
        encoder.fit(objects, np.arange(8.0))
    except DataError as error:
        refusal = str(error)
    if refusal is not None:
        assert refusal.startswith("TableEncoder: ")
        return
    Z = encoder.transform(objects)
    assert Z.shape == (8, len(encoder.get_feature_names_out())) and np.isfinite(Z).all()
    pieces = [encoder.transform(objects[:cut]), encoder.transform(objects[cut:])]
    np.testing.assert_array_equal(np.concatenate(pieces), Z)


def test_numbers_in_text_stay_text():
    encoder = TableEncoder().fit(pd.DataFrame({"a": ["1,234", "5", "1,234"]}))
    assert encoder.get_feature_names_out().tolist() == ["a=1,234", "a=5"]


def test_text_can_be_left_out_or_kept_as_categories():
    encoder = TableEncoder(text="drop").fit(FRAME)
    assert "note" not in "".join(encoder.get_feature_names_out())
    assert encoder.transform(FRAME).shape == (200, len(encoder.sources_))
    encoder = TableEncoder(text="category").fit(FRAME, TARGET)
    assert encoder.columns_[6]["encoding"] == "target"


def test_several_targets_have_a_mean_each():
    Y = np.column_stack([TARGET, TARGET**2])
    encoder = TableEncoder(scale=False, sparse=False)
    both = encoder.fit_transform(FRAME, Y)[:, encoder.sources_ == 4]
    for j in range(2):
        single = TableEncoder(scale=False, sparse=False)
        one = single.fit_transform(FRAME, Y[:, j])[:, single.sources_ == 4]
        np.testing.assert_allclose(both[:, [j]], one, rtol=1e-12)


def test_two_thousand_columns():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2000))
    X[rng.random(X.shape) < 0.01] = np.nan
    Z = TableEncoder().fit_transform(pd.DataFrame(X, columns=[f"c{j}" for j in range(2000)]))
    assert Z.shape == (300, 2000 + np.isnan(X).any(axis=0).sum()) and np.isfinite(Z).all()


def test_very_many_categories_are_text():
    n = 70_000
    encoder = TableEncoder(n_text_features=32).fit(pd.DataFrame({"w": [f"w{i}" for i in range(n)], "x": np.arange(n)}))
    assert encoder.columns_[0]["kind"] == "text" and encoder.columns_[0]["analyzer"] == "characters"


def test_targets_that_do_not_fit_are_refused():
    with pytest.raises(DataError, match="X has 200 rows, y has 3"):
        TableEncoder().fit(FRAME, [1.0, 2.0, 3.0])
    with pytest.raises(DataError, match="Input y contains NaN"):
        TableEncoder().fit(FRAME, np.where(np.arange(200) == 7, np.nan, TARGET))
    with pytest.raises(DataError, match="there is no column 'price'"):
        TableEncoder().fit(FRAME, "price")
    with pytest.raises(DataError, match="TableEncoder: y is so large that its squares overflow; rescale it"):
        TableEncoder().fit(FRAME, TARGET * 1e200)


def test_a_failed_fit_leaves_the_encoder_as_it_was():
    encoder = TableEncoder().fit(FRAME, TARGET)
    before = dense(encoder.transform(FRAME))
    with pytest.raises(DataError):
        encoder.fit(FRAME.assign(size=np.inf), TARGET)
    np.testing.assert_array_equal(dense(encoder.transform(FRAME)), before)
    encoder.fit(np.eye(3))
    assert not hasattr(encoder, "feature_names_in_")


@pytest.mark.parametrize(
    "bad",
    [{"max_categories": 1}, {"text": "maybe"}, {"scale": 1}, {"sparse": "no"}, {"n_text_features": 0}, {"fill": 0}],
)
def test_parameters_are_checked(bad):
    with pytest.raises(ParameterError, match=f"TableEncoder: {next(iter(bad))} must be"):
        TableEncoder(**bad).fit(FRAME)


# ---- what is kept ----


@pytest.mark.parametrize("task", TARGETS)
def test_saved_and_loaded_it_encodes_alike(task, tmp_path):
    encoder = TableEncoder().fit(FRAME, TARGETS[task])
    save(encoder, tmp_path / "encoder.safetensors")
    again = load(tmp_path / "encoder.safetensors")
    same_state(encoder, again)
    np.testing.assert_array_equal(dense(again.transform(FRAME)), dense(encoder.transform(FRAME)))
    twin = pickle.loads(pickle.dumps(encoder))
    np.testing.assert_array_equal(dense(twin.transform(FRAME)), dense(encoder.transform(FRAME)))


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_output_can_be_a_frame(library):
    encoder = TableEncoder(sparse=False).set_output(transform=library)
    out = encoder.fit_transform(FRAME, TARGET)
    assert type(out).__module__.startswith(library)
    assert list(out.columns) == encoder.get_feature_names_out().tolist()


def test_reading_by_name_takes_target_and_weight_out_of_the_table():
    table = FRAME.assign(price=TARGET, w=1.0)
    a = TableEncoder().fit(table, "price", "w")
    same_state(a, TableEncoder().fit(FRAME, TARGET, np.ones(200)))
    np.testing.assert_array_equal(dense(a.transform(table)), dense(a.transform(FRAME)))


def test_real_tables(reference_data):
    for name, target, kinds in (
        ("adult.csv.gz", "income", {"number", "category"}),
        ("california_housing.csv.gz", "median_house_value", {"number", "category"}),
        ("auto_mpg.csv", "mpg", {"number", "category", "text"}),
        ("text_m10.csv.gz", "label", {"number", "category", "text"}),
        ("dna/splice.csv", "class", {"text"}),
    ):
        table = pd.read_csv(reference_data / name)
        encoder = TableEncoder().fit(table, target)
        assert {record["kind"] for record in encoder.columns_} == kinds, name
        Z = encoder.transform(table)
        assert Z.shape == (len(table), len(encoder.get_feature_names_out()))
        assert np.isfinite(Z.data if sp.issparse(Z) else Z).all()
