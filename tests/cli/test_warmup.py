import pytest

from learnable.core.registry import estimator_names
from learnable.decisions import warm as decisions
from learnable.evaluation.comparison import warm


@pytest.mark.parametrize("decided", [["bandits"], pytest.param(None, marks=pytest.mark.long)])
def test_it_names_every_model_and_how_long_it_took(learnable, monkeypatch, decided):
    """That every model can be fitted so is tested where it is done, in `evaluation.comparison`."""
    fitted = []
    if decided is not None:
        monkeypatch.setattr(decisions, "small_decisions", lambda: [(name, None) for name in decided])
    monkeypatch.setattr(warm, "_fit_and_predict", lambda model, X, task: fitted.append(type(model).__name__))
    code, out, err = learnable("warmup")
    assert code == 0 and err == "" and "ready after" in out
    names = estimator_names()
    assert all(name in out for name in names) and set(fitted) == set(names)
    kinds = decided or ["processes", "bandits", "reinforcement learning", "deep reinforcement learning"]
    assert all(kind in out for kind in kinds)


def test_a_model_that_fails_is_named(learnable, monkeypatch):
    monkeypatch.setattr(warm, "warm_models", lambda: iter([warm.Warmed("Broken", 0.1, "ValueError: no")]))
    code, out, err = learnable("warmup")
    assert code == 1 and "Broken" in out and "1 model(s)" in err
