"""ID3: Mitchell's tree, the notes' four points, and the pseudo-code as an oracle."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.oracles import id3 as oracle

import learnable as ln
from learnable import ID3Classifier
from learnable.core.errors import DataError, DataTypeError, ModelFileError, ParameterError
from learnable.trees import export_text, information_gain

POINTS = [(1, 1, 1), (1, 0, 0), (1, 1, 0), (0, 0, 1)]
LABELS = [1, 1, 0, 0]


@pytest.fixture(scope="module")
def tennis(reference_data):
    table = pd.read_csv(reference_data / "play_tennis.csv")
    return table[["outlook", "temperature", "humidity", "wind"]], table["play"]


def test_gains_of_the_book(tennis):
    # T. M. Mitchell, Machine Learning, 1997, section 3.4: 0.246, 0.029, 0.151, 0.048 (cut off, not rounded)
    X, y = tennis
    np.testing.assert_allclose(information_gain(X, y), [0.24675, 0.02922, 0.15184, 0.04813], atol=1e-5)
    # Figure 3.4, the sunny branch: humidity .970, temperature .570, wind .019
    sunny = X["outlook"] == "Sunny"
    found = information_gain(X.loc[sunny, ["humidity", "temperature", "wind"]], y[sunny])
    np.testing.assert_allclose(found, [0.97095, 0.57095, 0.01997], atol=1e-5)


def test_the_tree_of_the_book(tennis):
    X, y = tennis
    model = ID3Classifier().fit(X, y)
    assert export_text(model).splitlines() == [
        "|--- outlook = Overcast",
        "|   |--- class: Yes",
        "|--- outlook = Rain",
        "|   |--- wind = Strong",
        "|   |   |--- class: No",
        "|   |--- wind = Weak",
        "|   |   |--- class: Yes",
        "|--- outlook = Sunny",
        "|   |--- humidity = High",
        "|   |   |--- class: No",
        "|   |--- humidity = Normal",
        "|   |   |--- class: Yes",
    ]
    assert model.score(X, y) == 1.0 and model.get_depth() == 2 and model.get_n_leaves() == 5
    assert model.certificate_.holds and ln.verify(model, X, y)


def test_four_points_where_greed_errs():
    np.testing.assert_allclose(information_gain(POINTS, LABELS), [0.31128, 0.0, 0.0], atol=1e-5)
    model = ID3Classifier(max_depth=2).fit(POINTS, LABELS)
    assert model.tree_.feature[0] == 0
    assert (model.predict(POINTS) != LABELS).sum() == 1
    assert oracle.fewest_errors_of_two_questions(POINTS, LABELS) == 0


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_it_is_the_pseudo_code(data):
    seed = data.draw(st.integers(0, 10**6))
    rng = np.random.default_rng(seed)
    n, d = data.draw(st.integers(1, 40)), data.draw(st.integers(1, 4))
    X = rng.integers(0, data.draw(st.integers(1, 5)), size=(n, d))
    y = rng.integers(0, data.draw(st.integers(1, 3)), size=n)
    weight = rng.integers(1, 4, size=n).astype(float)
    ratio, depth = data.draw(st.booleans()), data.draw(st.sampled_from([None, 1, 2]))
    criterion = "gain_ratio" if ratio else "information_gain"
    model = ID3Classifier(criterion=criterion, max_depth=depth).fit(X, y, weight)
    tree = oracle.grow(X.tolist(), y.tolist(), weight.tolist(), ratio=ratio, max_depth=depth)
    new = rng.integers(0, 6, size=(50, d))  # some of these categories are new
    assert model.predict(new).tolist() == [oracle.predict(tree, row) for row in new.tolist()]
    assert ln.verify(model, X, y, weight)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), binary=st.booleans(), ratio=st.booleans())
def test_the_entropy_never_rises_and_pure_leaves_are_reached(seed, binary, ratio):
    rng = np.random.default_rng(seed)
    X, y = rng.integers(0, 4, size=(60, 3)), rng.integers(0, 3, size=60)
    split, criterion = ("multiway", "binary")[binary], ("information_gain", "gain_ratio")[ratio]
    model = ID3Classifier(split=split, criterion=criterion).fit(X, y)
    tree = model.tree_
    for node, below in enumerate(tree.children()):
        if below:
            inside = sum(tree.value[c].sum() * tree.impurity[c] for c in below) / tree.value[node].sum()
            assert tree.gain[node] == pytest.approx(tree.impurity[node] - inside, abs=1e-12)
            assert tree.gain[node] >= 0
    # Only rows that agree in every column may end together with other labels.
    for leaf in np.unique(model.apply(X)):
        rows = model.apply(X) == leaf
        assert tree.impurity[leaf] == 0 or len(np.unique(X[rows], axis=0)) == 1
    assert ln.verify(model, X, y)


def test_binary_columns_give_the_same_tree_either_way():
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 2, size=(80, 5)), rng.integers(0, 2, size=80)
    multiway, binary = (ID3Classifier(split=split).fit(X, y) for split in ("multiway", "binary"))
    np.testing.assert_array_equal(multiway.tree_.feature[0], binary.tree_.feature[0])
    np.testing.assert_array_equal(multiway.predict_proba(X), binary.predict_proba(X))


def test_a_binary_tree_asks_about_one_value():
    X, y = [["a"], ["b"], ["c"], ["d"]] * 3, [0, 1, 0, 0] * 3
    model = ID3Classifier(split="binary").fit(X, y)
    assert model.get_n_leaves() == 2
    assert model.predict([["b"], ["a"], ["never seen"]]).tolist() == [1, 0, 0]


def test_the_gain_ratio_resists_an_identifier():
    rng = np.random.default_rng(1)
    useful, noise = rng.integers(0, 2, size=40), rng.integers(0, 2, size=(40, 2))
    X, y = np.column_stack([np.arange(40), useful, noise]), np.where(rng.random(40) < 0.1, 1 - useful, useful)
    assert ID3Classifier().fit(X, y).tree_.feature[0] == 0
    assert ID3Classifier(criterion="gain_ratio").fit(X, y).tree_.feature[0] == 1


def test_an_empty_branch_takes_the_majority_above_it():
    X = [["a", "x"], ["a", "x"], ["a", "y"], ["b", "y"], ["b", "y"]]
    model = ID3Classifier().fit(X, [1, 1, 1, 0, 0])
    assert model.predict([["c", "x"]]).tolist() == [1]
    np.testing.assert_allclose(model.predict_proba([["c", "x"]]), [[0.4, 0.6]])


@pytest.mark.parametrize("kind", ["pandas", "polars", "categorical", "list", "object"])
def test_strings_as_they_are_in_any_container(kind):
    rows = [["low", 1], ["high", 2], ["low", 2], [None, 1]]
    y = ["n", "y", "n", "y"]
    frame = pd.DataFrame(rows, columns=["level", "size"])
    X = {
        "pandas": frame,
        "polars": pl.from_pandas(frame),
        "categorical": frame.astype({"level": "category"}),
        "list": rows,
        "object": np.array(rows, dtype=object),
    }[kind]
    model = ID3Classifier().fit(X, y)
    assert model.predict(X).tolist() == y
    assert model.categories_[0].tolist() == ["high", "low", None]
    assert ln.verify(model, X, y)


def test_a_round_trip_gives_the_same_model(tennis, tmp_path):
    X, y = tennis
    X = X.assign(number=np.r_[np.nan, np.arange(13.0)])
    for split in ("multiway", "binary"):
        model = ID3Classifier(split=split, max_depth=3).fit(X, y)
        ln.save(model, tmp_path / "m.safetensors")
        loaded = ln.load(tmp_path / "m.safetensors")
        np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
        assert ln.verify(loaded, X, y)


@pytest.mark.parametrize(
    "forge",
    [
        lambda m: m.categories_.__setitem__(0, m.categories_[0][::-1]),
        lambda m: m.types_.__setitem__(0, "nonsense"),
        lambda m: m.types_.pop(),
        lambda m: setattr(m, "classes_", np.array([0])),
        lambda m: delattr(m, "tree_"),
    ],
)
def test_a_forged_model_is_not_saved(tennis, tmp_path, forge):
    model = ID3Classifier().fit(*tennis)
    forge(model)
    with pytest.raises(ModelFileError):
        ln.save(model, tmp_path / "m.safetensors")


def test_weights_are_repeated_rows():
    rng = np.random.default_rng(3)
    X, y, w = rng.integers(0, 3, size=(30, 3)), rng.integers(0, 2, size=30), rng.integers(0, 3, size=30)
    weighted = ID3Classifier().fit(X, y, w)
    repeated = ID3Classifier().fit(np.repeat(X, w, axis=0), np.repeat(y, w))
    np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X))
    scaled = ID3Classifier().fit(X, y, w * 1e90)
    np.testing.assert_allclose(scaled.predict_proba(X), repeated.predict_proba(X))


def test_class_weights():
    X, y = [["a"], ["a"], ["a"]], [0, 0, 1]
    np.testing.assert_allclose(ID3Classifier(class_weight="balanced").fit(X, y).predict_proba([["a"]]), [[0.5, 0.5]])
    heavy = ID3Classifier(class_weight={1: 4.0}).fit(X, y)
    np.testing.assert_allclose(heavy.predict_proba([["a"]]), [[1 / 3, 2 / 3]])
    assert ln.verify(heavy, X, y)


def test_importances_sum_to_one_and_find_the_column():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, size=(100, 4))
    model = ID3Classifier().fit(X, X[:, 2] > 1)
    np.testing.assert_allclose(model.feature_importances_, [0, 0, 1, 0])


def test_stopping_rules():
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 3, size=(100, 4)), rng.integers(0, 2, size=100)
    assert ID3Classifier(max_depth=1).fit(X, y).get_depth() == 1
    large = ID3Classifier(min_samples_split=30).fit(X, y).tree_
    assert large.n_rows[large.feature >= 0].min() >= 30
    eager = ID3Classifier(min_gain=0.05).fit(X, y)
    assert eager.tree_.gain[eager.tree_.feature >= 0].min(initial=1) >= 0.05
    assert ln.verify(eager, X, y)


@pytest.mark.parametrize(
    "X, y, error, words",
    [
        ([[{}]], [1], DataTypeError, "dict"),
        ([[1, 2], [3]], [0, 1], DataError, "ragged"),
        ([["a"], ["b"]], [0.5, 1.5], DataError, "continuous"),
        ([["a"], ["b"]], [0], DataError, "inconsistent"),
        ([["a"], ["b"]], None, DataError, "requires y"),
        (sp.csr_array(np.eye(2)), [0, 1], DataTypeError, "dense data is required"),
        (np.zeros((0, 2)), [], DataError, "0 sample"),
    ],
)
def test_bad_data_are_refused_by_name(X, y, error, words):
    with pytest.raises(error, match=f"ID3Classifier: .*{words}"):
        ID3Classifier().fit(X, y)


def test_other_columns_than_those_of_the_fit_are_refused():
    model = ID3Classifier().fit([["a", "x"], ["b", "y"]], [0, 1])
    with pytest.raises(DataError, match="3 features, but ID3Classifier is expecting 2"):
        model.predict([["a", "x", "y"]])
    with pytest.raises(DataError, match="held text in the fit; now it holds numbers"):
        model.predict([[1, 2]])


def test_one_class_one_row_and_nothing_but_gaps():
    assert ID3Classifier().fit([["a"]], ["only"]).predict([["b"]]).tolist() == ["only"]
    np.testing.assert_allclose(ID3Classifier().fit([[None], [None]], [0, 1]).predict_proba([[None]]), [[0.5, 0.5]])
    numbers = ID3Classifier().fit([[1e300], [-1e300], [np.nan], [0.0]], [0, 1, 2, 3])
    assert numbers.predict([[1e300], [-1e300], [np.nan], [-0.0]]).tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    "wrong", [{"criterion": "gini"}, {"split": "three"}, {"max_depth": 0}, {"min_gain": -1.0}, {"class_weight": 3}]
)
def test_parameters_are_checked(wrong):
    with pytest.raises(ParameterError, match=f"ID3Classifier: {next(iter(wrong))} must be"):
        ID3Classifier(**wrong).fit([["a"], ["b"]], [0, 1])


def test_gain_refuses_another_criterion():
    with pytest.raises(ParameterError, match="criterion must be"):
        information_gain([["a"]], [0], criterion="gini")
