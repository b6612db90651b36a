import json

from learnable.core.registry import REGISTRY


def test_every_model_says_what_it_is_and_what_it_certifies(learnable):
    code, out, _ = learnable("models", "--json")
    rows = {row["name"]: row for row in json.loads(out)}
    assert code == 0 and set(rows) == {name for name, entry in REGISTRY.items() if entry.traits is not None}
    for row in rows.values():
        assert row["family"] and row["certifies"] and row["tasks"]
        assert isinstance(row["generative"], bool) and isinstance(row["parametric"], bool)
    code, out, _ = learnable("models")
    assert code == 0 and all(name in out for name in rows)


def test_models_of_several_targets_say_so_and_fit_refuses_them(learnable):
    _, out, _ = learnable("models", "--json")
    several = {row["name"] for row in json.loads(out) if row["targets"] == "several"}
    assert several == {"MultiTaskLasso", "MultiTaskElasticNet", "MultiTaskLassoCV", "MultiTaskElasticNetCV"}
    assert "several" in learnable("models")[1]
    code, _, err = learnable("fit", "numbers.csv", "-t", "y", "-m", "MultiTaskElasticNet")
    assert code == 1 and "predicts several targets per row" in err and "use ElasticNet" in err
