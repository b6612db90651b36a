"""Once the time is up, a sparse linear fit does at most one more batch of work: counted in epochs, not in seconds."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import learnable as ln
from learnable import ElasticNet, ElasticNetCV, Lasso, LassoCV, MultiTaskLasso, Ridge
from learnable.core.estimator import Run
from learnable.solvers.composite.coordinate import GramQuadratic
from learnable.solvers.composite.designs import ColumnQuadratic

RNG = np.random.default_rng(0)
FACTORS = RNG.normal(size=(12, 300))
X = RNG.normal(size=(150, 12)) @ FACTORS + 0.1 * RNG.normal(size=(150, 300))
Y = X[:, :40] @ RNG.normal(size=40) + RNG.normal(size=150)
BOTH = np.column_stack([Y, X[:, 50] - X[:, 51]])

#: Model, targets, and how many fits run at a time.
CASES = {
    "lasso": (Lasso(alpha=1e-5, max_iter=10**5, tol=1e-12), Y, 1),
    "lasso, two targets": (Lasso(alpha=1e-5, max_iter=10**5, tol=1e-12), BOTH, 2),
    "elastic net": (ElasticNet(alpha=1e-5, l1_ratio=0.9, max_iter=10**5, tol=1e-12), Y, 1),
    "multi-task lasso": (MultiTaskLasso(alpha=1e-5, max_iter=10**5, tol=1e-12), BOTH, 1),
    "lasso cv": (LassoCV(max_iter=10**5, tol=1e-9, cv=3, n_jobs=1), Y, 4),
    "elastic net cv": (ElasticNetCV(max_iter=10**5, tol=1e-9, cv=3, l1_ratio=[0.5, 1.0], n_jobs=1), Y, 7),
}


class Clock:
    """A clock that strikes after some looks at it, and counts the epochs before and after."""

    def __init__(self, looks, monkeypatch):
        self.looks, self.before, self.after = looks, 0, 0
        monkeypatch.setattr(Run, "out_of_time", property(self.look))
        for model in (GramQuadratic, ColumnQuadratic):
            monkeypatch.setattr(model, "epochs", self.counted(model.epochs))

    def look(self, run):
        self.looks -= 1
        return self.looks < 0

    def counted(self, inner):
        def epochs(model, *arguments):
            if self.looks < 0:
                self.after += 1
            else:
                self.before += 1
            return inner(model, *arguments)

        return epochs


@pytest.mark.parametrize("looks", [0, 1, 3, 10, 30])
@pytest.mark.parametrize("name", CASES)
def test_little_is_done_after_the_time_is_up(name, looks, monkeypatch):
    model, y, fits = CASES[name]
    model = type(model)(**model.get_params())
    model.set_params(max_seconds=1e6)
    clock = Clock(looks, monkeypatch)
    with pytest.warns(ConvergenceWarning):
        model.fit(X, y)
    assert clock.looks < 0, "the fit ended before its time was up"
    assert clock.after <= 5 * fits
    assert np.isfinite(model.coef_).all()


@pytest.mark.parametrize("rule", ["min", "1se"])
@pytest.mark.parametrize("looks", [0, 5, 60])
def test_penalties_without_time_have_infinite_errors_and_are_not_chosen(rule, looks, monkeypatch):
    model = LassoCV(cv=3, n_jobs=1, rule=rule, max_seconds=1e6)
    with monkeypatch.context() as patched:
        Clock(looks, patched)
        with pytest.warns(ConvergenceWarning, match="left no time for"):
            model.fit(X, Y)
    finished = np.isfinite(model.mse_path_).all(axis=1)
    assert not finished.all()
    assert not finished.any() or finished[model.alphas_.tolist().index(model.alpha_)]
    verdict = ln.verify(model, X, Y)
    assert verdict or not model.certificate_.holds, str(verdict)


def test_conjugate_gradients_look_at_the_clock_in_every_step(monkeypatch):
    looks = []
    monkeypatch.setattr(Run, "out_of_time", property(lambda run: looks.append(1) or len(looks) > 4))
    with pytest.warns(ConvergenceWarning):
        model = Ridge(alpha=1e-3, solver="sparse_cg", tol=1e-12, max_seconds=1e6).fit(X, Y)
    assert model.n_iter_ <= 6
