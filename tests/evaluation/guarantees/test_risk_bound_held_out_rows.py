"""Held-out rows count their uses: planned models share δ, further ones get ever less of it."""

import re

import numpy as np
import pytest
from scipy.stats import beta

import learnable as ln
from learnable.core.errors import DataError, ParameterError
from learnable.evaluation import HeldOutRows, Ladder
from learnable.evaluation.guarantees import bounds_of_predictions


def table():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    return X, (X[:, 0] + 0.3 * rng.normal(size=400) > 0).astype(int)


def test_planned_models_share_delta_and_further_ones_get_less():
    X, y = table()
    rows = HeldOutRows(X[200:], y[200:], planned=2, delta=0.1)
    models = [
        ln.GaussianNB(),
        ln.LogisticRegression(),
        ln.DecisionTreeClassifier(max_depth=1),
        ln.KNeighborsClassifier(3),
    ]
    levels = [rows.judge(model.fit(X[:200], y[:200])).best.delta for model in models]
    assert levels == pytest.approx([0.05, 0.05, 0.1 / 12, 0.1 / 20])
    assert rows.uses == 4
    assert rows.judge(models[0]).best.delta == pytest.approx(0.05)  # the same predictions are no new use
    assert rows.uses == 4


def test_rows_that_a_model_saw_are_refused():
    X, y = table()
    with pytest.raises(DataError, match="fitted to these rows"):
        HeldOutRows(X, y).judge(ln.LogisticRegression().fit(X, y))
    with pytest.raises(ParameterError):
        HeldOutRows(X, y, planned=0)


class Sign:
    """Predicts by the sign of a column; it remembers nothing, as a submission to a leaderboard does not."""

    def __init__(self, signs):
        self.signs = signs

    def predict(self, X):
        return (X @ self.signs > 0).astype(int)


def test_a_ladder_survives_boosting_by_its_answers():
    """Labels are coins. Keeping columns whose error was below one half fools a plain leaderboard, not a ladder."""
    rng = np.random.default_rng(1)
    n, d = 2000, 400
    X = rng.choice([-1.0, 1.0], size=(n, d))
    y = rng.integers(0, 2, n)
    ladder = Ladder(X, y, step=0.03)
    plain, told = np.zeros(d), np.zeros(d)
    before = 1.0
    for j in range(d):
        unit = np.eye(d)[j]
        plain[j] = 1.0 if (Sign(unit).predict(X) != y).mean() < 0.5 else -1.0
        answer = ladder.submit(Sign(unit))
        told[j] = 1.0 if answer < before else 0.0
        before = answer
    fooled = (Sign(plain).predict(X) != y).mean()
    assert fooled < 0.4  # its true error is one half
    assert abs(ladder.submit(Sign(told)) - 0.5) <= ladder.radius(0.05)
    assert ladder.best > 0.44
    assert ladder.submitted == d + 1


def test_a_ladder_tells_only_steps():
    X, y = table()
    ladder = Ladder(X[200:], y[200:], step=0.1)
    answers = [ladder.submit(model.fit(X[:200], y[:200])) for model in (ln.GaussianNB(), ln.LogisticRegression())]
    assert answers == sorted(answers, reverse=True)
    assert np.round(np.array(answers) / 0.1) * 0.1 == pytest.approx(answers)
    with pytest.raises(DataError, match="fitted to these rows"):
        ladder.submit(ln.GaussianNB().fit(X[200:], y[200:]))
    with pytest.raises(ParameterError):
        Ladder(X, y, step=0.0)


@pytest.mark.parametrize("errors", [3, 17, 34, 90])
def test_the_sentence_claims_no_less_than_is_proven(errors):
    y = np.arange(799) % 2
    said = y.copy()
    said[:errors] = 1 - said[:errors]
    order = np.random.default_rng(0).permutation(799)
    found = bounds_of_predictions(y[order], said[order], 2)
    percent = float(re.search(r"error is below ([\d.]+) %", found.sentence)[1])
    exact = 100.0 * beta.ppf(0.95, errors + 1, 799 - errors)
    assert exact <= percent + 1e-9 and percent < exact + 0.1
