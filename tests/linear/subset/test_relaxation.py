"""Best subsets by relaxations: enumeration for every variant, proofs that are replayed, bounds never too high."""

import itertools

import numpy as np
import pytest
from scipy.optimize import nnls

import learnable as ln
from learnable import BestSubset, BestSubsetClassifier, LogisticRegression
from learnable.core.errors import ParameterError
from learnable.linear.subset.relaxation import LogisticLoss, SquaredLoss, fill, relax

GROUPS = [[0, 1], [4, 5, 6]]


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(40, 8)) @ (np.eye(8) + 0.4 * rng.normal(size=(8, 8)))
    return X, X @ [1.0, 0.5, 0, -1.0, 0.3, 0.3, 0.4, 0] + 2.0 * rng.normal(size=40)


def objective(X, y, columns, alpha, positive=False):
    Z, t = X - X.mean(axis=0), y - y.mean()
    A = np.vstack([Z[:, columns], np.sqrt(alpha) * np.eye(len(columns))])
    b = np.r_[t, np.zeros(len(columns))]
    if not columns:
        return t @ t
    beta = nnls(A, b)[0] if positive else np.linalg.lstsq(A, b, rcond=None)[0]
    return float(((b - A @ beta) ** 2).sum())


@pytest.mark.parametrize("alpha", [0.0, 2.0])
@pytest.mark.parametrize("positive", [False, True])
def test_groups_and_signs_are_those_of_enumeration(rows, alpha, positive):
    X, y = rows
    units = [[0, 1], [2], [3], [4, 5, 6], [7]]
    model = BestSubset(size=(0, 5), groups=GROUPS, alpha=alpha, positive=positive).fit(X, y)
    for size, value, subset in zip(model.sizes_, model.objective_path_, model.subsets_, strict=True):
        every = [list(itertools.chain(*some)) for some in itertools.combinations(units, size)]
        assert value == pytest.approx(min(objective(X, y, one, alpha, positive) for one in every), rel=1e-8)
        assert sorted(np.flatnonzero(subset)) in [sorted(one) for one in every]
    assert model.certificate_.holds
    assert (model.coef_ >= 0).all() or not positive
    assert ln.verify(model, X, y)


def test_more_columns_than_rows_are_proven_with_a_ridge_and_refused_without():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 60))
    y = X[:, [3, 20, 41]] @ [2.0, -1.5, 1.0] + 0.3 * rng.normal(size=30)
    model = BestSubset(size=3, alpha=2.0).fit(X, y)
    assert np.flatnonzero(model.support_).tolist() == [3, 20, 41]
    assert model.certificate_.kind == "gap"
    assert model.certificate_.holds
    assert ln.verify(model, X, y)
    with pytest.raises(ParameterError, match="alpha > 0"):
        BestSubset(size=3, positive=True).fit(X, y)


def test_logistic_subsets_are_those_of_enumeration(rows):
    X, y = rows
    labels = np.where(y > 0, "up", "down")
    model = BestSubsetClassifier(size=(0, 3), alpha=0.5, required=[2]).fit(X, labels)

    def cost(columns):
        fit = LogisticRegression(C=2.0, tol=1e-12).fit(X[:, columns], labels)
        score = (X[:, columns] @ fit.coef_[0] + fit.intercept_[0]) * np.where(labels == "up", 1.0, -1.0)
        return np.logaddexp(0.0, -score).sum() + 0.25 * fit.coef_[0] @ fit.coef_[0]

    for size, value in zip(model.sizes_, model.objective_path_, strict=True):
        every = [list(some) for some in itertools.combinations(range(8), size) if 2 in some]
        assert value == pytest.approx(min(cost(one) for one in every), rel=1e-7)
    assert model.certificate_.holds
    assert ln.verify(model, X, labels)
    assert model.predict_proba(X).sum(axis=1) == pytest.approx(1.0)


def test_separable_classes_are_no_problem():
    X = np.random.default_rng(1).normal(size=(30, 5))
    model = BestSubsetClassifier(size=1).fit(X, X[:, 2] > 0)
    assert np.flatnonzero(model.support_).tolist() == [2]
    assert model.certificate_.holds


@pytest.mark.parametrize("seed", range(5))
def test_no_bound_is_above_what_a_node_holds(seed):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(15, 6))
    A -= A.mean(axis=0)
    units = [np.array([j]) for j in range(6)]
    y = rng.normal(size=15)
    losses = (
        SquaredLoss(A, y - y.mean(), 0.7, units),
        SquaredLoss(A, y - y.mean(), 0.7, units, positive=True),
        LogisticLoss(A, (y > 0).astype(float), np.ones(15), 0.7, units, True),
    )
    for loss in losses:
        inside, free = np.array([1]), np.array([0, 3, 4, 5])
        bound = relax(loss, inside, free, 3, np.inf).bound
        least = min(loss.fit([1, *some])[1] for some in itertools.combinations(free, 2))
        assert bound <= least * (1 + 1e-12)
        assert bound >= 0.5 * least


def test_shares_sum_to_what_is_left():
    for sizes in ([3.0, 1.0, 0.5, 0.1], [1.0, 1.0, 1.0], [5.0, 0.0, 0.0]):
        for total in (1, 2):
            found = fill(np.array(sizes), total)
            assert found.max() <= 1
            assert found.sum() <= total + 1e-9


@pytest.mark.parametrize("attribute", ["subsets_", "objective_path_", "proof_", "coef_", "leaves_"])
def test_forged_proofs_are_refused(rows, attribute):
    X, y = rows
    model = BestSubset(size=3, groups=GROUPS, alpha=1.0).fit(X, y)
    assert ln.verify(model, X, y)
    value = getattr(model, attribute)
    if attribute == "subsets_":
        model.subsets_ = ~value
    elif attribute in ("proof_", "leaves_"):
        setattr(model, attribute, value[:-1])
    else:
        setattr(model, attribute, value * 1.001)
    assert not ln.verify(model, X, y)


def test_a_worse_incumbent_with_its_own_tree_is_refused(rows):
    X, y = rows
    model = BestSubset(size=2, groups=GROUPS, alpha=1.0).fit(X, y)
    worse = min(
        (np.isin(np.arange(8), one) for one in ([2, 3], [2, 7], [3, 7])),
        key=lambda subset: -objective(X, y, np.flatnonzero(subset).tolist(), 1.0),
    )
    forged = BestSubset(size=2, groups=GROUPS, alpha=1.0, required=np.flatnonzero(worse).tolist()).fit(X, y)
    forged.required = None
    assert not ln.verify(forged, X, y)
    assert ln.verify(model, X, y)


def test_the_time_limit_leaves_a_gap_that_is_true():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(60, 30)) + 2 * rng.normal(size=(60, 1))
    y = X @ rng.normal(size=30) + 5 * rng.normal(size=60)
    setting = {"size": 10, "alpha": 0.1, "groups": [[0, 1]]}
    with pytest.warns(UserWarning, match="stopped after"):
        model = BestSubset(max_seconds=0.01, **setting).fit(X, y)
    assert not model.certificate_.holds
    assert np.isfinite(model.certificate_.bound)
    assert not ln.verify(model, X, y)
    longer = BestSubset(method="splicing", **setting).fit(X, y)
    assert longer.objective_path_[0] >= model.objective_path_[0] / (1 + model.certificate_.bound) - 1e-9


def test_splicing_finds_the_columns_and_proves_that_no_exchange_helps():
    rng = np.random.default_rng(6)
    X = rng.normal(size=(80, 300))
    true = [5, 50, 150, 299]
    y = X[:, true] @ [3.0, -2.0, 2.0, 1.5] + rng.normal(size=80)
    model = BestSubset(method="splicing", criterion="ebic").fit(X, y)
    assert np.flatnonzero(model.support_).tolist() == true
    assert model.certificate_.kind == "greedy"
    assert ln.verify(model, X, y)
    model.subsets_[4] = np.isin(np.arange(300), [5, 50, 150, 200])
    assert not ln.verify(model, X, y)


def test_shared_columns_and_empty_groups_are_told(rows):
    X, y = rows
    with pytest.raises(ParameterError, match="share"):
        BestSubset(groups=[[0, 1], [1, 2]]).fit(X, y)
    with pytest.raises(ParameterError, match="groups"):
        BestSubset(groups=[[]]).fit(X, y)
