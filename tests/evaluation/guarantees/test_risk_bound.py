"""Bounds on the risk of fitted models: every model of the registry gets an answer, and answers cover the truth."""

import copy
import math

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import binom
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tests.registered import fitted, small_table

import learnable as ln
from learnable.core.errors import DataError, ParameterError
from learnable.core.registry import estimator_names
from learnable.evaluation import plan_rows, rows_needed
from learnable.evaluation.guarantees.families import out_of_bag_losses, threshold_bits
from learnable.evaluation.guarantees.neighbours import boundary_rows
from learnable.evaluation.guarantees.risk_bound import bounds_of_predictions, risk_bound
from learnable.theory import bounds
from learnable.theory.concentration import binomial_upper, kl_upper

NOISE = 0.1


def draw(rng, n, d=2):
    """Rows whose label is the sign of the first column, wrong with probability 0.1: the Bayes risk is 0.1."""
    X = rng.normal(size=(n, d))
    return X, ((X[:, 0] > 0) ^ (rng.random(n) < NOISE)).astype(int)


GRID = np.random.default_rng(99).normal(size=(4000, 2))
TRUTH = GRID[:, 0] > 0


def true_risk(model):
    """The risk given the rows of a grid: each is wrong with probability 0.1 or 0.9."""
    wrong = np.asarray(model.predict(GRID)).astype(bool) != TRUTH
    return float(np.where(wrong, 1.0 - NOISE, NOISE).mean())


# Every model of the registry.


@pytest.mark.parametrize("name", estimator_names())
def test_every_registered_model_gets_an_answer(name):
    model, X, y = fitted(name)
    model = copy.deepcopy(model)
    numeric = y is not None and y.dtype.kind == "f"
    target_range = (float(np.min(y)) - 1.0, float(np.max(y)) + 1.0) if numeric else None
    found = risk_bound(model, X, y, kind="training", target_range=target_range)
    assert found.bounds or found.reasons
    assert found.sentence
    for bound in found.bounds:
        assert bound.kind == "training"
        assert bound.value >= bound.empirical - 1e-9 or "compression" in bound.name
        assert bound.statement and bound.source and bound.inputs and bound.assumptions
        assert bound.verdict in {"vacuous", "useless", "informative"}
        assert math.isfinite(bound.value)
    values = [bound.value for bound in found.bounds if not bound.broken]
    assert values == sorted(values)
    found.to_dict()


@pytest.mark.parametrize("name", ["Ridge", "LogisticRegression", "SVC", "RandomForestClassifier", "TableModel"])
def test_held_out_rows_get_an_answer(name):
    model, _, y = fitted(name)
    X, y = small_table(name, seed=1)
    found = risk_bound(
        copy.deepcopy(model), X, y, kind="held-out", target_range=(-20, 20) if y.dtype.kind == "f" else None
    )
    assert len(found.bounds) == 3
    assert all(bound.kind == "held-out" for bound in found.bounds)


# Numbers.


def test_held_out_bounds_are_the_formulas():
    rng = np.random.default_rng(0)
    X, y = draw(rng, 700)
    model = ln.LogisticRegression().fit(X[:200], y[:200])
    errors = int((model.predict(X[200:]) != y[200:]).sum())
    one = risk_bound(model, X[200:], y[200:])
    assert one.best.value == pytest.approx(binomial_upper(errors, 500, 0.05))
    assert one.bounds[1].value == pytest.approx(kl_upper(errors / 500, math.log(20) / 500))
    ten = risk_bound(model, X[200:], y[200:], uses=10)
    assert ten.best.value == pytest.approx(binomial_upper(errors, 500, 0.005))
    assert "10 models" in ten.best.assumptions[2].detail


@pytest.mark.parametrize("clean", [False, True])
def test_compression_is_computed_from_the_support_vectors(clean):
    rng = np.random.default_rng(1)
    X, y = draw(rng, 400)
    y = (X[:, 0] > 0).astype(int) if clean else y
    model = ln.SVC(kernel="linear", C=1000.0 if clean else 1.0, tol=1e-6).fit(X, y)
    found = risk_bound(model, X, y)
    bound = next(bound for bound in found.bounds if bound.name == "sample compression")
    others = np.setdiff1d(np.arange(400), model.support_)
    errors = int((model.predict(X[others]) != y[others]).sum())
    expected = bounds.compression_bound(400, len(model.support_), errors, 0.05 / 3)
    assert bound.value == pytest.approx(expected)
    assert bound.assumptions[1].holds is None
    # A bound that says nothing is not worth another fit.
    assert ("0 of 400" if clean else "not fitted again") in bound.assumptions[1].detail
    assert (bound.verdict == "informative") == clean


def test_pac_bayes_margin_is_that_of_the_formula_and_scale_invariant():
    rng = np.random.default_rng(2)
    X, y = draw(rng, 500)
    model = ln.LinearSVC(fit_intercept=True).fit(X, y)
    bound = next(b for b in risk_bound(model, X, y).bounds if b.name == "PAC-Bayes margin")
    lifted = np.column_stack([X, np.ones(500)])
    w = np.r_[model.coef_.ravel(), np.ravel(model.intercept_)[0]]
    margins = (2 * y - 1) * (lifted @ w) / np.linalg.norm(w) / np.linalg.norm(lifted, axis=1)
    assert bound.value == pytest.approx(bounds.linear_pac_bayes(margins, 0.05 / 8)[0])


def test_kernel_margins_of_a_linear_kernel_are_those_of_the_weights():
    rng = np.random.default_rng(3)
    X, y = draw(rng, 200)
    model = ln.SVC(kernel="linear", tol=1e-6).fit(X, y)
    bound = next(b for b in risk_bound(model, X, y).bounds if b.name == "PAC-Bayes margin")
    lifted = np.column_stack([X, np.ones(200)])
    w = np.r_[np.ravel(model.coef_), model.intercept_[0]]
    margins = (2 * y - 1) * (lifted @ w) / np.linalg.norm(w) / np.linalg.norm(lifted, axis=1)
    assert bound.value == pytest.approx(bounds.linear_pac_bayes(margins, 0.05 / 3)[0], rel=1e-6)


def test_losses_out_of_bag_are_those_of_the_trees():
    rng = np.random.default_rng(4)
    X, y = draw(rng, 120)
    model = ln.RandomForestClassifier(n_estimators=8, min_samples_leaf=3, random_state=0).fit(X, y)
    from learnable.evaluation.guarantees.record import gather

    losses, seen = out_of_bag_losses(gather(model, X, y, None))
    shares = np.stack([tree.predict_proba(X)[np.arange(120), y] for tree in model.estimators_])
    assert np.allclose(losses[seen], (1.0 - shares)[seen])
    for t, rows in enumerate(model.estimators_samples_):
        assert not seen[t, rows].any()
    mean = np.stack([tree.predict_proba(X) for tree in model.estimators_]).mean(axis=0)
    assert np.allclose(mean, model.predict_proba(X))
    bag = ln.BaggingClassifier(ln.LogisticRegression(), n_estimators=8, random_state=0).fit(X, y)
    losses, seen = out_of_bag_losses(gather(bag, X, y, None))
    shares = np.stack([one.predict_proba(X)[np.arange(120), y] for one in bag.estimators_])
    assert np.allclose(losses[seen], (1.0 - shares)[seen])


@pytest.mark.filterwarnings("ignore")
def test_networks_are_bounded_by_their_norms():
    """scikit-learn's network, and the same network with a constant input and no biases."""
    from sklearn.neural_network import MLPClassifier

    rng = np.random.default_rng(16)
    X, y = draw(rng, 300)
    model = MLPClassifier((5,), random_state=0, max_iter=20).fit(X, y)
    found = risk_bound(model, X, y, kind="training")
    bound = next(b for b in found.bounds if "network" in b.name)
    first = np.block([[model.coefs_[0], np.zeros((2, 1))], [model.intercepts_[0][None], np.ones((1, 1))]])
    second = np.vstack([model.coefs_[1], model.intercepts_[1][None]])
    lifted = np.column_stack([X, np.ones(300)])
    scores = np.maximum(lifted @ first, 0.0) @ second
    assert ((scores.ravel() > 0) == model.predict(X).astype(bool)).all()
    product = np.linalg.norm(first) * np.linalg.norm(second)
    assert bound.inputs["product of norms"] == pytest.approx(product)
    assert bound.value >= 1.0 - model.score(X, y)


def test_what_was_read_off_all_rows_is_paid_for_or_refused():
    rng = np.random.default_rng(17)
    X, y = draw(rng, 300)
    fixed = ln.SVC(gamma=0.5).fit(X, y)
    read = ln.SVC(gamma="scale").fit(X, y)
    for model, nats in ((fixed, 0.0), (read, 64 * math.log(2))):
        bound = next(b for b in risk_bound(model, X, y).bounds if b.name == "PAC-Bayes margin")
        assert bound.inputs["nats read off the rows"] == pytest.approx(nats)
    forest = ln.RandomForestClassifier(5, class_weight="balanced", random_state=0).fit(X, y)
    assert "balanced" in risk_bound(forest, X, y).reasons[0]
    scaled = ln.evaluation.guarantees.families.description_bits
    plain, words = scaled(ln.Ridge().fit(X, y))
    assert "64 bits" in words
    wrapped, words = scaled(ln.meta.TableModel(ln.Ridge()).fit(X, y))
    assert "file" in words and wrapped > plain  # the encoder is part of what was learnt


def test_online_to_batch_is_never_taken_for_a_bound_of_the_last_vector():
    rng = np.random.default_rng(18)
    X, y = draw(rng, 400)
    found = risk_bound(ln.Perceptron(max_iter=5, tol=None).fit(X, y), X, y)
    bound = next(b for b in found.bounds if b.name.startswith("online"))
    w, mistakes = np.zeros(3), 0
    for row, label in zip(np.column_stack([X, np.ones(400)]), 2 * y - 1, strict=True):
        if label * (row @ w) <= 0:
            w += label * row
            mistakes += 1
    assert bound.value == pytest.approx(bounds.online_to_batch(mistakes, 400, 0.05 / 10))
    assert bound.broken and found.best is not bound


def test_leave_one_out_of_neighbours_is_that_of_refits():
    rng = np.random.default_rng(5)
    X, y = draw(rng, 40)
    for weights in ("uniform", "distance"):
        model = ln.KNeighborsClassifier(3, weights=weights).fit(X, y)
        bound = risk_bound(model, X, y).bounds[0]
        wrong = 0
        for i in range(40):
            rows = np.delete(np.arange(40), i)
            wrong += ln.KNeighborsClassifier(3, weights=weights).fit(X[rows], y[rows]).predict(X[[i]])[0] != y[i]
        assert bound.inputs["leave-one-out error"] == pytest.approx(wrong / 40)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_the_boundary_rows_of_nearest_neighbours_define_the_rule(d):
    rng = np.random.default_rng(19)
    X = rng.normal(size=(400, d))
    y = (X[:, 0] > 0.3).astype(int) + (X[:, -1] > 1.0)
    kept = boundary_rows(X, y)
    assert len(kept) < 400
    model = ln.KNeighborsClassifier(1).fit(X, y)
    again = ln.KNeighborsClassifier(1).fit(X[kept], y[kept])
    fresh = 3.0 * rng.normal(size=(5000, d))
    assert (again.predict(fresh) == model.predict(fresh)).all()
    found = risk_bound(model, X, y)
    bound = next(b for b in found.bounds if b.name == "sample compression")
    assert bound.value == pytest.approx(bounds.compression_bound(400, len(kept), 0, 0.05 / 2))
    noisy = ln.KNeighborsClassifier(1).fit(np.repeat(X, 2, axis=0), np.tile([0, 1], 400))
    reasons = risk_bound(noisy, np.repeat(X, 2, axis=0), np.tile([0, 1], 400)).reasons
    assert any("equal rows have different labels" in reason for reason in reasons)


def test_short_thresholds_cost_fewer_bits():
    assert threshold_bits([0.5]) == 19.0  # a power of two has no fraction
    assert threshold_bits([0.75, -3.0]) == 20.0 + 20.0
    assert threshold_bits([math.pi]) == 65.0
    assert threshold_bits([0.0]) == 19.0
    # Kraft's inequality: the short forms of all lengths and the long form together cost at most one.
    assert 0.5 + 0.5 * sum(2.0 ** (m - 6 - m) for m in range(53)) <= 1.0


def test_a_tree_on_zeros_and_ones_has_the_textbooks_bound():
    rng = np.random.default_rng(6)
    X = rng.integers(0, 2, (1000, 10)).astype(float)
    y = (X[:, 0] + X[:, 1] > 1).astype(int)
    model = ln.DecisionTreeClassifier(max_depth=2).fit(X, y)
    bound = next(b for b in risk_bound(model, X, y, 0.15).bounds if "MDL" in b.name)
    nodes = bound.inputs["nodes"]
    assert nodes == 2 * model.get_n_leaves() - 1
    assert bound.value == pytest.approx(bounds.tree_bound(1.0 - model.score(X, y), 1000, nodes, 10, 0.05))


# The truth.

FAMILIES = {
    "logistic": lambda: ln.LogisticRegression(),
    "svc": lambda: ln.SVC(C=1.0),
    "tree": lambda: ln.DecisionTreeClassifier(max_depth=2),
    "forest": lambda: ln.RandomForestClassifier(n_estimators=5, random_state=0),
    "adaboost": lambda: ln.AdaBoostClassifier(n_estimators=5),
    "neighbours": lambda: ln.KNeighborsClassifier(1),
    "naive Bayes": lambda: ln.GaussianNB(),
    "perceptron": lambda: ln.Perceptron(max_iter=5),
    "bagging": lambda: ln.BaggingClassifier(ln.GaussianNB(), n_estimators=5, random_state=0),
}

#: Further families, which only the long simulation goes through.
MORE_FAMILIES = {
    "linear SVM": lambda: ln.LinearSVC(),
    "discriminant": lambda: ln.LinearDiscriminantAnalysis(),
    "quadratic discriminant": lambda: ln.QuadraticDiscriminantAnalysis(),
    "kernel logistic": lambda: ln.KernelLogisticRegression(gamma=0.5),
    "kernel ridge": lambda: ln.KernelRidgeClassifier(gamma=0.5),
    "ν-machine": lambda: ln.NuSVC(nu=0.3, gamma=0.5),
    "extra trees": lambda: ln.ExtraTreesClassifier(n_estimators=5, bootstrap=True, random_state=0),
    "gradient boosting": lambda: ln.HistGradientBoostingClassifier(max_iter=3, max_depth=2, random_state=0),
    "network": lambda: ln.MLPClassifier((3,), max_iter=10, random_state=0),
    "three neighbours": lambda: ln.KNeighborsClassifier(3),
}


def count_misses(name, draws, delta=0.2, n=60):
    """How often the risk of the fitted model lies above its tightest bound of each kind."""
    rng = np.random.default_rng(11)
    misses = {"training": 0, "held-out": 0}
    make = {**FAMILIES, **MORE_FAMILIES}[name]
    for _ in range(draws):
        X, y = draw(rng, n)
        fresh, truth = draw(rng, 50)
        model = make().fit(X, y)
        risk = true_risk(model)
        for kind, rows in (("training", (X, y)), ("held-out", (fresh, truth))):
            bound = risk_bound(model, *rows, delta, kind=kind).of(kind)
            misses[kind] += bound is not None and risk > bound.value
    return misses


@pytest.mark.sampled(6)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", sorted(FAMILIES))
def test_bounds_cover_the_true_risk(name):
    draws, delta = 60, 0.2
    misses = count_misses(name, draws, delta)
    limit = binom.isf(1e-4, draws, delta)
    assert misses["training"] <= limit
    assert misses["held-out"] <= limit


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", sorted({**FAMILIES, **MORE_FAMILIES}))
def test_bounds_cover_the_true_risk_over_a_thousand_draws(name):
    misses = count_misses(name, 1000, 0.2)
    limit = binom.isf(1e-4, 1000, 0.2)
    assert misses["training"] <= limit
    assert misses["held-out"] <= limit


def test_held_out_bounds_are_not_far_too_wide():
    """An exact bound at δ = 0.2 must fail about that often, not never."""
    misses = count_misses("naive Bayes", 150, 0.2)
    assert misses["held-out"] >= 5


REGRESSIONS = {
    "ridge": lambda: ln.Ridge(),
    "lasso": lambda: ln.Lasso(0.01),
    "stable ridge": lambda: ln.Ridge(500.0, fit_intercept=False),
}
MORE_REGRESSIONS = {
    "least squares": lambda: ln.LinearRegression(),
    "kernel ridge": lambda: ln.KernelRidge(alpha=200.0, kernel="rbf", gamma=0.5),
    "tree": lambda: ln.DecisionTreeRegressor(max_depth=2),
    "boosting": lambda: ln.HistGradientBoostingRegressor(max_iter=3, max_depth=2, random_state=0),
    "support vectors": lambda: ln.LinearSVR(),
}


@pytest.mark.parametrize("name", sorted(REGRESSIONS))
def test_regression_bounds_cover_the_clipped_risk(name):
    clipped_risk_is_covered(name, 60)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", sorted({**REGRESSIONS, **MORE_REGRESSIONS}))
def test_regression_bounds_cover_the_clipped_risk_over_a_thousand_draws(name):
    clipped_risk_is_covered(name, 1000)


def clipped_risk_is_covered(name, draws, delta=0.2):
    rng = np.random.default_rng(12)
    make = {**REGRESSIONS, **MORE_REGRESSIONS}[name]
    population = rng.uniform(-1, 1, (20_000, 2))
    targets = np.clip(0.5 * population[:, 0] + 0.3 * rng.normal(size=20_000), -1, 1)
    misses = {"training": 0, "held-out": 0}
    for _ in range(draws):
        rows = rng.integers(0, 20_000, 140)
        X, y = population[rows], targets[rows]
        model = make().fit(X[:80], y[:80])
        risk = ((np.clip(model.predict(population), -1, 1) - targets) ** 2).mean()
        for kind, part in (("training", slice(0, 80)), ("held-out", slice(80, 140))):
            bound = risk_bound(model, X[part], y[part], delta, target_range=(-1, 1)).of(kind)
            misses[kind] += bound is not None and risk > bound.value
    limit = binom.isf(1e-4, draws, delta)
    assert misses["training"] <= limit
    assert misses["held-out"] <= limit


# Words.


def test_verdicts():
    rng = np.random.default_rng(7)
    X, y = draw(rng, 3000)
    good = ln.LogisticRegression().fit(X[:1000], y[:1000])
    assert risk_bound(good, X[1000:], y[1000:]).best.verdict == "informative"
    coins = rng.integers(0, 2, 3000)
    chance = ln.LogisticRegression().fit(X[:1000], coins[:1000])
    useless = risk_bound(chance, X[1000:], coins[1000:])
    assert useless.best.verdict == "useless" and useless.sentence.endswith("useless, a constant guess may do as well")
    few = ln.DecisionTreeClassifier().fit(X[:60], coins[:60])
    assert risk_bound(few, X[:60], coins[:60]).bounds[-1].verdict == "vacuous"


def test_both_kinds_at_once_and_rows_needed():
    rng = np.random.default_rng(8)
    X, y = draw(rng, 3000)
    model = ln.LogisticRegression().fit(X[:2000], y[:2000])
    both = risk_bound(model, X[2000:], y[2000:], X_train=X[:2000], y_train=y[:2000])
    assert both.of("held-out").value < both.of("training").value
    assert "held-out rows): informative" in both.sentence
    needed = rows_needed(model, X[2000:], y[2000:])
    exact = both.of("held-out")
    rate = exact.empirical
    n = needed["Clopper–Pearson"]
    width = exact.value - rate
    assert binomial_upper(rate * n, n, 0.05) - rate <= width / 2 * 1.001
    assert binomial_upper(rate * 0.99 * n, 0.99 * n, 0.05) - rate > width / 2
    assert rows_needed(model, X[:2000], y[:2000], width=0.02)["VC, relative deviations"] > 2000


def test_choices_on_the_same_rows_widen_training_bounds():
    rng = np.random.default_rng(9)
    X, y = draw(rng, 500)
    model = ln.LogisticRegression().fit(X, y)
    assert risk_bound(model, X, y, choices=100).best.value > risk_bound(model, X, y).best.value


# Refusals.


def test_rows_that_the_model_saw_hold_nothing_out():
    rng = np.random.default_rng(10)
    X, y = draw(rng, 200)
    model = ln.LogisticRegression().fit(X[:100], y[:100])
    with pytest.raises(DataError, match="fitted to these rows"):
        risk_bound(model, X[:100], y[:100], kind="held-out")
    shuffled = rng.permutation(100)
    with pytest.raises(DataError, match="fitted to these rows"):
        risk_bound(model, X[:100][shuffled], y[:100][shuffled], kind="held-out")
    with pytest.raises(DataError, match="these are others"):
        risk_bound(model, X[100:], y[100:], kind="training")
    mixed = risk_bound(model, X[50:150], y[50:150], X_train=X[:100], y_train=y[:100])
    clean = risk_bound(model, X[100:150], y[100:150])
    assert mixed.of("held-out").value > 0.5 > clean.best.value
    assert "50 of 100 rows" in mixed.of("held-out").assumptions[1].detail
    neighbours = ln.KNeighborsClassifier(1).fit(X[:100], y[:100])
    assert risk_bound(neighbours, X[50:100], y[50:100]).best.value == 1.0  # the rows it keeps are found among them


def test_models_without_memory_must_be_told():
    rng = np.random.default_rng(13)
    X, y = draw(rng, 200)
    model = make_pipeline(StandardScaler(), ln.LogisticRegression()).fit(X[:100], y[:100])
    with pytest.raises(DataError, match="does not remember"):
        risk_bound(model, X[100:], y[100:])
    assert risk_bound(model, X[100:], y[100:], kind="held-out").best.name == "Clopper–Pearson"


def test_dependent_rows_are_noticed():
    rng = np.random.default_rng(14)
    X, y = draw(rng, 400)
    model = ln.LogisticRegression().fit(X[:100], y[:100])
    errors = model.predict(X[100:]) != y[100:]
    order = 100 + np.argsort(errors, kind="stable")
    found = risk_bound(model, X[order], y[order])
    assert found.best is None
    assert found.bounds[0].broken[0].assumption.startswith("values are independent")
    assert "nothing is proven" in found.sentence
    assert "its bounds assume that values are independent" in found.sentence


def test_regression_needs_a_range_that_holds():
    model = ln.Ridge().fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0])
    nothing = risk_bound(model, [[3.0]], [3.0])
    assert not nothing.bounds and "target_range" in nothing.sentence
    with pytest.raises(DataError, match="outside target_range"):
        risk_bound(model, [[3.0]], [3.0], target_range=(0, 1))
    with pytest.raises(ParameterError, match="low < high"):
        risk_bound(model, [[3.0]], [3.0], target_range=(1, 0))


@pytest.mark.parametrize("delta", [0.0, 1.0, -1.0, 2.0, math.nan])
def test_levels_outside_the_unit_interval_are_refused(delta):
    model = ln.LogisticRegression().fit([[0.0], [1.0], [2.0], [3.0]], [0, 1, 0, 1])
    with pytest.raises(ParameterError, match="delta"):
        risk_bound(model, [[0.0]], [0], delta)


def test_sparse_rows_and_frames_work():
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(15)
    X, y = draw(rng, 300)
    model = ln.LogisticRegression().fit(sp.csr_array(X[:150]), y[:150])
    assert risk_bound(model, sp.csr_array(X[:150]), y[:150]).best is not None
    frame = pandas.DataFrame(X, columns=["a", "b"]).assign(y=y)
    model = ln.LogisticRegression().fit(frame[:150], "y")
    assert risk_bound(model, frame[150:], "y").best.name == "Clopper–Pearson"
    assert risk_bound(model, frame[:150], "y").best.kind == "training"


def test_plan_is_the_inversion_of_the_bounds():
    plan = plan_rows(0.05, 0.01, models=10)
    assert binomial_upper(0.05 * plan.exact, plan.exact, 0.05) <= 0.06
    assert binomial_upper(0.05 * (plan.exact - 1), plan.exact - 1, 0.05) > 0.06
    assert plan.leaderboard > plan.exact
    assert plan.any_error == 18_445
    assert plan_rows(0.0, 0.01).no_errors == 299
    with pytest.raises(ParameterError):
        plan_rows(0.9, 0.2)


def test_where_neighbours_are_alike_the_sentence_says_what_is_broken():
    truth = np.zeros(600, dtype=int)
    predicted = np.repeat([0, 1], 300)  # right in the first half, wrong in the second
    sentence = bounds_of_predictions(truth, predicted, 2).sentence
    assert sentence.startswith("nothing is proven about its risk: its bounds assume that values are independent")
    assert "which does not hold here (correlation of neighbours" in sentence
