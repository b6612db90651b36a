import json
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

import learnable as ln
from learnable.cli.fit import build_model, worse_than_guessing


def test_a_model_is_fitted_saved_and_described(learnable):
    code, out, err = learnable(
        "fit", "numbers.csv", "-t", "y", "-m", "Ridge", "--set", "alpha=2.5", "-o", "r.safetensors"
    )
    assert code == 0 and err == "" and "closed-form" in out and "learnable predict r.safetensors numbers.csv" in out
    model = ln.load("r.safetensors")
    assert model.estimator_.model_.alpha == 2.5 and model.target_name_ == "y" and model.method == "cv+"


def test_json_is_all_that_is_printed(learnable):
    code, out, _ = learnable("fit", "classes.csv", "-t", "label", "-m", "LogisticRegression", "--json")
    record = json.loads(out)
    assert code == 0 and record["certificate"]["holds"] and record["features"] == ["u", "v"]
    assert 0.5 < record["train_score"] <= 1.0


@pytest.mark.sampled(6)
@pytest.mark.parametrize("method", ["split", "jackknife+", "none"])
def test_intervals_can_be_chosen(learnable, method):
    code, _, _ = learnable("fit", "numbers.csv", "-t", "y", "-m", "Ridge", "--intervals", method)
    assert code == 0
    assert hasattr(ln.load("model.safetensors"), "predict_interval") == (method != "none")
    code, _, _ = learnable("verify", "model.safetensors", "numbers.csv")
    assert code == 0


def test_the_seed_reaches_models_that_have_one():
    assert build_model("Ridge", [], seed=5).random_state == 5
    assert build_model("Ridge", ["random_state=1"], seed=5).random_state == 1


@pytest.mark.long
def test_a_gaussian_process_suits_targets_of_any_size(learnable):
    """The example of the help: house prices, and a kernel of amplitude one."""
    kernel = "kernel=Matern(nu=1.5) + White()"
    arguments = (
        "fit",
        "demo:houses",
        "-m",
        "GaussianProcessRegressor",
        "--set",
        kernel,
        "--intervals",
        "split",
        "--json",
    )
    code, out, _ = learnable(*arguments)
    record = json.loads(out)
    assert code == 0 and record["held_out_score"] > 0.8 and record["warnings"] == []
    assert any("standardised" in note for note in record["notes"])
    code, out, _ = learnable(*arguments, "--set", "normalize_y=False")
    record = json.loads(out)
    assert record["held_out_score"] < 0 and "worse than the mean of the target" in record["warnings"][0]
    assert not any("standardised" in note for note in record["notes"])


def test_the_score_on_held_out_rows_is_that_of_the_folds(learnable):
    code, out, _ = learnable("fit", "numbers.csv", "-t", "y", "-m", "Ridge", "--json")
    record = json.loads(out)
    assert code == 0 and record["held_out_score"] < record["train_score"] and record["warnings"] == []
    code, out, _ = learnable("fit", "numbers.csv", "-t", "y", "-m", "Ridge")
    assert "R² on rows that a fit had not seen" in out and "warning" not in out


def test_a_classifier_that_is_worse_than_a_guess_is_warned_about():
    problem = SimpleNamespace(y=np.array([0] * 90 + [1] * 10))
    assert "most frequent class" in worse_than_guessing("binary", None, 0.85, problem)
    assert worse_than_guessing("binary", None, 0.95, problem) is None


def test_columns_of_text_are_read_when_fitting_predicting_and_verifying(folder, learnable):
    rng = np.random.default_rng(0)
    cost = rng.integers(1000, 90_000, 120)
    days = rng.integers(0, 365, 120)
    day = [str(np.datetime64("2023-01-01") + int(d)) for d in days]
    table = pa.table(
        {
            "sold": [f"{d[8:]}/{d[5:7]}/{d[:4]}" for d in day],
            "cost": [f"${c:,}" for c in cost],
            "price": [f"${c * 2 + 50 * d:,}" for c, d in zip(cost.tolist(), days.tolist(), strict=True)],
        }
    )
    pyarrow.csv.write_csv(table, "sales.csv")
    code, out, err = learnable("fit", "sales.csv", "-t", "price", "-m", "LinearRegression")
    assert code == 0 and err == "" and "regression of 'price'" in out
    assert "'cost' is read as amounts in $ with a decimal point" in out and "dates, day, month, year" in out
    assert "--as cost=text keeps it as text" in out and "unseen" not in out
    score = float(out.partition("R² on its own training rows: ")[2].partition(" ")[0])
    assert score > 0.99
    assert learnable("verify", "model.safetensors", "sales.csv")[0] == 0
    code, out, _ = learnable("predict", "model.safetensors", "sales.csv")
    assert code == 0 and len(out.splitlines()) == 121
    code, out, _ = learnable("fit", "sales.csv", "-t", "price", "-m", "LinearRegression", "--as", "cost=text")
    assert code == 0 and "'cost' is read as" not in out
    assert learnable("fit", "sales.csv", "-t", "price", "-m", "Ridge", "--as", "cost")[0] == 2
    assert learnable("fit", "sales.csv", "-t", "price", "-m", "Ridge", "--as", "cost=roman")[0] == 1


def test_a_summary_has_coefficients_in_the_units_of_the_columns(learnable):
    code, out, _ = learnable("fit", "numbers.csv", "-t", "y", "-m", "LinearRegression", "--summary")
    assert code == 0
    assert "std. error" in out
    assert "residual degrees of freedom" in out
    code, out, _ = learnable("fit", "classes.csv", "-t", "label", "-m", "LogisticRegression", "--summary", "--json")
    assert code == 0
    assert "pulled towards zero" in json.loads(out)["summary"]
    free = ("-m", "LogisticRegression", "--set", "C=inf")
    code, out, _ = learnable("fit", "classes.csv", "-t", "label", *free, "--summary", "--force")
    assert code == 0
    assert "logit link, of class" in out
    code, out, _ = learnable("fit", "numbers.csv", "-t", "y", "-m", "GLM", "--summary", "--json", "--force")
    rows = json.loads(out)["summary"]
    assert {"estimate", "std_error", "p_value", "lower", "upper"} < set(rows[0])


def test_models_without_standard_errors_say_why_and_show_what_they_have(learnable):
    code, out, _ = learnable("fit", "numbers.csv", "-t", "y", "-m", "Ridge", "--summary", "--intervals", "none")
    assert code == 0
    assert "no standard errors" in out and "pulled towards zero" in out
    assert "Coefficients, the largest first" in out and "per standard deviation" in out
    tree = ("fit", "numbers.csv", "-t", "y", "-m", "DecisionTreeRegressor", "--intervals", "none", "--force")
    code, out, _ = learnable(*tree, "--summary", "--json")
    found = json.loads(out)
    assert code == 0 and "not a likelihood model" in found["summary"]
    assert "Importance of the columns" in found["shown_instead"]
