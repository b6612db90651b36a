import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.calibration import CalibratedClassifierCV
from sklearn.cluster import DBSCAN
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Perceptron
from sklearn.metrics import accuracy_score, r2_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from learnable.core.errors import DataError, DataTypeError
from learnable.linear import LinearRegression, LinearSVC, LogisticRegression, PoissonRegressor, Ridge
from learnable.report import Report, report


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"size": rng.normal(size=150), "age": rng.normal(size=150), "town": rng.choice(["A", "B"], 150)}
    )
    return frame.assign(price=2 * frame["size"] - frame["age"] + (frame["town"] == "A") + 0.3 * rng.normal(size=150))


X_COLUMNS = ["size", "age"]


def test_a_regressor_on_its_training_rows(table):
    model = LinearRegression().fit(table[X_COLUMNS], table["price"])
    page = report(model, table[X_COLUMNS], table["price"])
    record = page.record
    score = r2_score(table["price"], model.predict(table[X_COLUMNS]))
    assert record["winner"]["holdout"]["score"] == pytest.approx(score, rel=1e-12)
    assert record["data"]["target"] == "price"
    assert "fitted on these very rows" in page.html
    assert "150</data> rows given" in page.html
    assert "Hold-out" not in page.html and "hold-out" not in page.html
    details = record["details"]["LinearRegression"]
    assert {entry["name"] for entry in details["coefficients"]} == set(X_COLUMNS)
    assert all(entry["low"] < entry["value"] < entry["high"] for entry in details["coefficients"])
    assert details["importances"][0]["name"] == "size"
    assert record["leaderboard"][0]["certificate"]["holds"]
    assert record["leaderboard"][1]["mean"] == pytest.approx(0.0, abs=1e-12)


def test_other_rows_are_known_to_be_others(table):
    model = Ridge().fit(table[X_COLUMNS][:100], table["price"][:100])
    assert "not the rows it was fitted on" in report(model, table[X_COLUMNS][100:], table["price"][100:]).html


def test_a_target_by_name_in_pandas_and_polars(table):
    pandas, polars = table[[*X_COLUMNS, "price"]], pl.from_pandas(table[[*X_COLUMNS, "price"]])
    model = Ridge().fit(pandas, "price")
    first, second = report(model, pandas, "price").record, report(model, polars, "price").record
    assert first["winner"] == second["winner"]
    assert [c["name"] for c in first["data"]["profile"]] == [c["name"] for c in second["data"]["profile"]]


def test_a_path(table, tmp_path):
    file = tmp_path / "houses.csv"
    table[[*X_COLUMNS, "price"]].to_csv(file, index=False)
    model = Ridge().fit(table[X_COLUMNS], table["price"])
    page = report(model, file, "price", file=tmp_path / "report.html")
    assert page.record["data"]["source"] == "houses.csv"
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == page.html


@pytest.mark.parametrize("labels", [["no", "yes"], [0, 1], [False, True], ["a", "b", "c"]])
def test_a_classifier(table, labels):
    y = np.array(labels)[np.digitize(table["price"], np.linspace(-1, 1, len(labels) + 1)[1:-1])]
    model = LogisticRegression().fit(table[X_COLUMNS].to_numpy(), y)
    record = report(model, table[X_COLUMNS].to_numpy(), y).record
    assert record["data"]["task"] == ("binary" if len(labels) == 2 else "multiclass")
    expected = accuracy_score(y, model.predict(table[X_COLUMNS].to_numpy()))
    assert record["winner"]["holdout"]["score"] == pytest.approx(expected)
    details = record["details"]["LogisticRegression"]
    assert details["roc"] and details["confusion"]["labels"] == [str(label) for label in labels]
    assert np.sum(details["confusion"]["counts"]) == 150
    assert record["leaderboard"][1]["mean"] == pytest.approx(np.unique(y, return_counts=True)[1].max() / 150)


def test_labels_that_the_model_has_never_seen(table):
    y = np.where(table["price"] > 0, "b", "a")
    model = LogisticRegression().fit(table[X_COLUMNS], y)
    y = y.astype(object)
    y[:5] = "new"
    record = report(model, table[X_COLUMNS], y).record
    assert record["data"]["classes"] == ["a", "b", "new"]
    assert record["details"]["LogisticRegression"]["confusion"]["counts"][2][2] == 0


def test_models_of_scikit_learn(table):
    encode = make_column_transformer((StandardScaler(), X_COLUMNS), (OneHotEncoder(), ["town"]))
    model = make_pipeline(encode, RandomForestRegressor(5, random_state=0)).fit(
        table.drop(columns="price"), table["price"]
    )
    page = report(model, table, "price")
    assert page.record["winner"]["name"] == "ColumnTransformer → RandomForestRegressor"
    assert "If it was fitted on these rows, expect less" in page.html
    assert {e["name"] for e in page.record["details"][page.record["winner"]["name"]]["importances"]} >= {"size", "town"}
    linear = make_pipeline(encode, Ridge()).fit(table.drop(columns="price"), table["price"])
    record = report(linear, table, "price").record
    names = {entry["name"] for entry in record["details"]["ColumnTransformer → Ridge"]["coefficients"]}
    assert "onehotencoder__town_A" in names
    assert record["leaderboard"][0]["certificate"]["holds"]


@pytest.mark.parametrize(
    "model",
    [Perceptron(), RandomForestClassifier(3), CalibratedClassifierCV(Perceptron(), cv=2)],
    ids=lambda m: type(m).__name__,
)
def test_classifiers_with_and_without_probabilities(table, model):
    y = (table["price"] > 0).to_numpy()
    record = report(model.fit(table[X_COLUMNS], y), table[X_COLUMNS], y).record
    details = record["details"][type(model).__name__]
    assert (details["roc"] is not None) == hasattr(model, "predict_proba")
    assert details["confusion"] is not None


def test_sparse_rows(table):
    X = sp.csr_array(table[X_COLUMNS].to_numpy())
    page = report(Ridge().fit(X, table["price"]), X, table["price"])
    assert page.record["data"]["profile"] == []
    assert page.record["data"]["columns"] == 3


def test_lists_and_tiny_tables():
    page = report(Ridge().fit([[0.0], [1.0]], [0.0, 1.0]), [[0.0], [1.0]], [0.0, 1.0])
    assert page.record["data"]["rows"] == 2
    assert "no interval" not in page.html
    alone = report(Ridge().fit([[0.0], [1.0]], [0.0, 1.0]), [[0.0]], [0.0])
    assert alone.record["winner"]["holdout"]["score"] is None
    assert "has no score: the measure is not defined on these rows" in alone.html


def test_a_target_called_like_a_column(table):
    frame = table[X_COLUMNS].rename(columns={"age": "y"})
    record = report(Ridge().fit(frame, table["price"].to_numpy()), frame, table["price"].to_numpy()).record
    assert record["data"]["target"] == "y (target)"
    assert [column["name"] for column in record["data"]["profile"]] == ["size", "y", "y (target)"]


def test_the_page_can_be_saved_and_shown(table, tmp_path):
    page = report(Ridge().fit(table[X_COLUMNS], table["price"]), table[X_COLUMNS], table["price"])
    assert isinstance(page, Report)
    assert page.save(tmp_path / "a.html").read_text(encoding="utf-8") == page.html
    assert page._repr_html_().startswith('<iframe sandbox=""')
    assert repr(page) == "Report()"


def test_what_cannot_be_reported_is_refused(table):
    X, y = table[X_COLUMNS], table["price"]
    model = Ridge().fit(X, y)
    with pytest.raises(NotFittedError):
        report(Ridge(), X, y)
    with pytest.raises(DataError, match="X has 150 rows, y has 10"):
        report(model, X, y[:10])
    with pytest.raises(DataError, match="Report one target at a time"):
        report(model, X, np.zeros((150, 2)))
    with pytest.raises(DataError, match="no rows"):
        report(model, X[:0], y[:0])
    with pytest.raises(DataError, match="missing or infinite"):
        report(model, X, y.where(y > 0))
    with pytest.raises(DataTypeError, match="needs numbers"):
        report(model, X, ["a"] * 150)
    with pytest.raises(DataTypeError, match="no predict"):
        report(DBSCAN().fit(X), X, y)


def test_coefficients_say_what_they_change(table):
    X, y = table[X_COLUMNS], table["price"]
    counts, classes = np.round(np.exp(y.clip(-2, 2))), (y > 0).astype(int)
    fits = {
        "change of the prediction for": Ridge().fit(X, y),
        "change of the logarithm of the prediction": PoissonRegressor().fit(X, counts),
        "change of the log odds": LogisticRegression().fit(X, classes),
        "change of the score": LinearSVC().fit(X, classes),
    }
    targets = [y, counts, classes, classes]
    for (words, model), target in zip(fits.items(), targets, strict=True):
        assert words in report(model, X, target).html
