import json

import pytest

import learnable as ln
from learnable.cli.fit import build_model


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
