import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import StackingRegressor
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from tests.evaluation.comparison.tables import numbers

import learnable as ln
from learnable.cli.predict import predictions
from learnable.cli.verify import check_model
from learnable.core.errors import DataError


@pytest.fixture
def fitted(learnable):
    assert learnable("fit", "numbers.csv", "-t", "y", "-m", "Ridge")[0] == 0
    return ln.load("model.safetensors")


def test_a_certificate_that_holds_gives_exit_code_0(learnable, fitted):
    code, out, err = learnable("verify", "model.safetensors", "numbers.csv")
    assert code == 0 and err == "" and "ConformalRegressor of TableModel of Ridge: verified" in out
    code, out, _ = learnable("verify", "model.safetensors", "numbers.csv", "-t", "y", "--json")
    assert code == 0 and json.loads(out)["ok"] is True


def test_a_forged_model_gives_exit_code_1(learnable, fitted):
    inner = fitted.estimator_.model_
    inner.coef_ = inner.coef_ * 1.001
    ln.save(fitted, "forged.safetensors")
    code, out, _ = learnable("verify", "forged.safetensors", "numbers.csv")
    assert code == 1 and "NOT verified" in out
    code, out, _ = learnable("verify", "forged.safetensors", "numbers.csv", "--json")
    assert code == 1 and json.loads(out)["ok"] is False and json.loads(out)["reasons"]


def test_the_model_behind_the_intervals_has_a_line_of_its_own(learnable, fitted):
    out = learnable("verify", "model.safetensors", "numbers.csv")[1].splitlines()
    assert len(out) == 3 and out[1].startswith("TableModel of Ridge: verified: closed-form")
    record = json.loads(learnable("verify", "model.safetensors", "numbers.csv", "--json")[1])
    inner = fitted.estimator_.model_.certificate_
    assert record["inner"]["ok"] and record["inner"]["inner"] is None
    assert record["inner"]["recorded"] == pytest.approx(inner.value, rel=1e-12)
    fitted.estimator_.model_.coef_ = fitted.estimator_.model_.coef_ * 1.001
    ln.save(fitted, "forged.safetensors")
    out = learnable("verify", "forged.safetensors", "numbers.csv")[1].splitlines()
    assert "of the model inside, the closed-form is" in out[0] and out[1].startswith(
        "TableModel of Ridge: NOT verified"
    )


def test_the_risk_of_numbers_needs_a_range(learnable, fitted):
    out = learnable("verify", "model.safetensors", "numbers.csv")[1].splitlines()
    assert out[-1].startswith("risk: nothing is proven about its risk: a squared loss has no largest value")


def test_the_risk_of_classes_is_bounded(learnable):
    assert learnable("fit", "classes.csv", "-t", "label", "-m", "LogisticRegression")[0] == 0
    record = json.loads(learnable("verify", "model.safetensors", "classes.csv", "--json")[1])
    assert record["ok"] and record["risk"]["bounds"][0]["name"] == "finite class (description)"
    assert record["risk"]["bounds"][0]["verdict"] == "vacuous"


def test_other_rows_give_exit_code_1(learnable, fitted):
    pyarrow.csv.write_csv(numbers(seed=1), "other.csv")
    code, out, _ = learnable("verify", "model.safetensors", "other.csv")
    assert code == 1 and "NOT verified" in out and "risk:" not in out


def test_a_file_that_does_not_know_its_target_asks_for_it(learnable, fitted):
    del fitted.target_name_
    ln.save(fitted, "nameless.safetensors")
    code, _, err = learnable("verify", "nameless.safetensors", "numbers.csv")
    assert code == 1 and "--target" in err
    assert learnable("verify", "nameless.safetensors", "numbers.csv", "-t", "y")[0] == 0


def test_a_table_without_the_columns_is_said(learnable, fitted):
    pyarrow.csv.write_csv(numbers().select(["x", "y"]), "short.csv")
    code, _, err = learnable("verify", "model.safetensors", "short.csv")
    assert code == 1 and "no column 'kind'" in err


def test_workflows_of_scikit_learn_are_verified_and_predict_from_a_table(tmp_path):
    """A pipeline of transformers and a stack: the tool reads the table as PyArrow, whatever they were fitted with."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {"a": rng.normal(size=120), "b": rng.normal(size=120), "town": rng.choice(["x", "y", "z"], 120)}
    )
    table["y"] = 2.0 * table["a"] + (table["town"] == "x") + 0.1 * rng.normal(size=120)
    X, y = table[["a", "b", "town"]], table["y"]
    columns = [("numbers", StandardScaler(), ["a", "b"]), ("town", OneHotEncoder(), ["town"])]
    pipeline = Pipeline([("columns", ColumnTransformer(columns)), ("model", ln.Ridge())])
    stack = StackingRegressor([("ridge", pipeline)], final_estimator=ln.LinearRegression(), cv=3)
    arrow = pa.Table.from_pandas(table, preserve_index=False)
    for model in (pipeline.fit(X, y), stack.fit(X, y)):
        file = tmp_path / f"{type(model).__name__}.safetensors"
        ln.save(model, file)
        loaded = ln.load(file)
        assert check_model(loaded, arrow, "y")
        [found] = predictions(loaded, arrow)
        np.testing.assert_allclose(found["prediction"].to_numpy(), model.predict(X), rtol=1e-12)
        changed = arrow.set_column(3, "y", pa.array(y + 1.0 * (np.arange(120) == 7)))
        assert not check_model(loaded, changed, "y")


def test_a_model_without_names_takes_a_table_of_its_columns_alone():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 2))
    y = X[:, 0]
    model = make_pipeline(StandardScaler(), ln.Ridge()).fit(X, y)
    table = pa.table({"a": X[:, 0], "b": X[:, 1], "y": y})
    assert check_model(model, table, "y")
    with pytest.raises(DataError, match=r"verify: the model was fitted to 2 column\(s\) without names"):
        check_model(model, table.append_column("c", table["a"]), "y")
    with pytest.raises(DataError, match=r"predict: the model was fitted to 2 column\(s\) without names"):
        next(predictions(model, table))
