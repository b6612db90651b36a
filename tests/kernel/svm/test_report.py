"""The report of a machine: cases, slacks and every condition, evaluated independently."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.kernel.svm_tables import gaussian, noisy, separable

from learnable.core.errors import DataError
from learnable.kernel import SVC, NuSVC
from learnable.solvers import quadratic_program


def test_three_cases_on_paper():
    """Rows 0, 1 against 2, 3 and a stray 0.5: the machine has slope 1, and the stray is at its bound."""
    X, y = np.array([[0.0], [1.0], [2.0], [3.0], [0.5]]), np.array(["a", "a", "b", "b", "b"])
    report = SVC(kernel="linear", C=1.0, tol=1e-8).fit(X, y).kkt_report(X, y)
    assert report.classes == ("a", "b")
    assert report.case[4] == "bound" and report.slack[4] > 1
    assert report.counts == {"non-support": 1, "margin": 2, "bound": 2}
    assert "1 on the wrong side" in repr(report)


@settings(max_examples=20)
@given(st.integers(0, 1000), st.sampled_from([0.1, 1.0, 100.0]), st.booleans(), st.sampled_from(["auto", "primal"]))
def test_all_conditions_hold_within_the_tolerance(seed, C, fit_intercept, solver):
    X, y = noisy(60, 2, seed)
    model = SVC(C=C, gamma=0.5, tol=1e-4, fit_intercept=fit_intercept, solver=solver).fit(X, y)
    report = model.kkt_report(X, y)
    assert report.violation == pytest.approx(model.certificate_.value, rel=1e-3, abs=1e-8)
    assert max(report.outside, report.inside) <= 1e-4 * (1 + 1e-6)
    assert report.box == 0.0 and report.balance <= 1e-12
    assert report.gap == pytest.approx(model.certificate_.bound, rel=1e-2, abs=1e-9)
    assert report.primal >= report.dual - 1e-9


@settings(max_examples=10)
@given(st.integers(0, 1000), st.sampled_from([1e-12, 1.0, 1e12]))
def test_the_dual_is_that_of_the_general_program(seed, C):
    X, y = noisy(40, 2, seed)
    report = SVC(C=C, gamma=5.0, tol=1e-6).fit(X, y).kkt_report(X, y)
    Q = gaussian(X, 5.0) * np.outer(y, y)
    best = -quadratic_program(Q, -np.ones(40), lower=0.0, upper=C, A=y[None], b=[0.0]).value
    assert report.dual == pytest.approx(best, rel=1e-4)
    assert report.dual <= best * (1 + 1e-9)


def test_every_number_is_the_definition():
    X, y = noisy(70, 2)
    model = SVC(C=3.0, gamma=0.5, tol=1e-5).fit(X, y)
    report = model.kkt_report(X, y)
    alpha = np.zeros(70)
    alpha[model.support_] = np.abs(model.dual_coef_[0])
    f = gaussian(X, 0.5) @ (alpha * y)
    margin = y * (f + model.intercept_[0])
    np.testing.assert_allclose(report.alpha, alpha, atol=1e-15)
    np.testing.assert_allclose(report.margin, margin, atol=1e-10)
    np.testing.assert_allclose(report.slack, np.maximum(0.0, 1.0 - margin), atol=1e-10)
    norm = np.sqrt((alpha * y) @ f)
    assert report.margin_width == pytest.approx(2 / norm)
    assert report.primal == pytest.approx(0.5 * norm**2 + 3.0 * report.slack.sum())
    assert report.dual == pytest.approx(alpha.sum() - 0.5 * norm**2)
    assert (report.case == np.where(alpha == 0, "non-support", np.where(alpha >= 3.0, "bound", "margin"))).all()


def test_rows_that_are_no_support_vectors_can_go():
    X, y = noisy(80, 2)
    model = SVC(gamma=0.5, tol=1e-7).fit(X, y)
    keep = model.kkt_report(X, y).case != "non-support"
    again = SVC(gamma=0.5, tol=1e-7).fit(X[keep], y[keep])
    np.testing.assert_allclose(again.decision_function(X), model.decision_function(X), atol=1e-5)


def test_pairs_of_several_classes_and_left_out_rows():
    X, y = noisy(90)
    y = np.where(X[:, 1] > 0.6, 2.0, y)
    weight = np.ones(90)
    weight[::10] = 0.0
    model = SVC(tol=1e-5).fit(X, y, weight)
    reports = model.kkt_report(X, y, weight)
    assert set(reports) == {(-1.0, 1.0), (-1.0, 2.0), (1.0, 2.0)}
    assert max(report.violation for report in reports.values()) == pytest.approx(model.certificate_.value, rel=1e-3)
    for (first, second), report in reports.items():
        assert set(y[report.rows].tolist()) == {first, second}
        assert (np.where(y[report.rows] == second, 1.0, -1.0) == report.y).all()
        assert not (report.rows % 10 == 0).any()


def test_a_hard_margin_and_a_given_kernel():
    X, y = separable(40)
    report = SVC(C=np.inf, kernel="linear", tol=1e-7).fit(X, y).kkt_report(X, y)
    assert report.counts["bound"] == 0 and report.slack.max() <= 1e-6
    assert report.gap <= 1e-5
    K = X @ X.T
    given_ = SVC(C=np.inf, kernel="precomputed", tol=1e-7).fit(K, y).kkt_report(K, y)
    assert given_.margin_width == pytest.approx(report.margin_width, rel=1e-6)


def test_other_data_are_refused():
    X, y = noisy(30)
    model = SVC().fit(X, y)
    with pytest.raises(DataError, match="these are others"):
        model.kkt_report(X + 1e-9, y)
    with pytest.raises(DataError, match="these are others"):
        model.kkt_report(X, -y)


@pytest.mark.parametrize("nu", [0.5, 0.7])
def test_a_nu_machine_is_that_of_its_costs(nu):
    """Law: divided by ρ it is the SVC with C = 1/ρ; rows with slack, and all with α > 0, are shares around ν."""
    X, y = noisy(120, 2, 3)
    weight = np.linspace(0.5, 1.5, 120)
    model = NuSVC(nu=nu, gamma=0.5, tol=1e-8).fit(X, y, sample_weight=weight)
    report = model.kkt_report(X, y, weight)
    C = float(report.cost[0] / weight[0])  # 1/ρ; the tolerance is that of the machine before it is divided
    assert max(report.outside, report.inside, report.violation) <= 4 * model.tol * C and report.box < 1e-9
    assert report.balance < 1e-9 and report.gap < 1e-6 and report.counts["margin"] >= 2
    share = weight / weight.sum()
    assert share[report.slack > 1e-6].sum() <= nu <= share[report.alpha > 0].sum()
    same = SVC(C=C, gamma=0.5, tol=1e-8).fit(X, y, sample_weight=weight).kkt_report(X, y, weight)
    np.testing.assert_array_equal(report.case, same.case)
    assert report.primal == pytest.approx(same.primal, rel=1e-6)


def test_a_nu_machine_of_several_classes_has_a_report_for_each_pair():
    rng = np.random.default_rng(0)
    y = np.arange(90) % 3
    X = rng.normal(size=(90, 2)) + 1.5 * y[:, None]
    reports = NuSVC(nu=0.3, tol=1e-6).fit(X, y).kkt_report(X, y)
    assert set(reports) == {(0, 1), (0, 2), (1, 2)}
    assert all(report.violation <= 4e-6 * report.cost.max() for report in reports.values())
