from learnable.core.registry import estimator_names
from learnable.evaluation.comparison import cases, warm


def test_it_names_every_model_and_how_long_it_took(learnable, monkeypatch):
    """That every case can be run is tested where it is written, in `evaluation.comparison`."""
    fitted = []
    monkeypatch.setattr(warm, "_fit_and_predict", lambda model, X, task: fitted.append(type(model).__name__))
    monkeypatch.setattr(cases, "other_cases", lambda: iter(()))
    monkeypatch.setattr(cases, "examples", lambda: iter(()))
    code, out, err = learnable("warmup")
    assert code == 0 and err == "" and "ready after" in out
    names = estimator_names()
    assert all(name in out for name in names) and set(fitted) == set(names)
    assert "what is no model" in out and "documented examples" in out


def test_a_case_that_fails_is_named(learnable, monkeypatch):
    monkeypatch.setattr(cases, "warm_cases", lambda: iter([warm.Warmed("Broken", 0.1, "ValueError: no")]))
    code, out, err = learnable("warmup")
    assert code == 1 and "Broken" in out and "1 case(s)" in err
