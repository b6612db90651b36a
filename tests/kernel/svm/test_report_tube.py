"""The report of a regression: cases, slacks and every condition, evaluated independently."""

import numpy as np
import pytest

from learnable.core.errors import DataError
from learnable.kernel import SVR, NuSVR


def _curve(n=80, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-3, 3, size=(n, 1))
    return X, np.sin(X[:, 0]) + 0.3 * rng.normal(size=n)


@pytest.mark.parametrize("C", [0.1, 10.0])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_all_conditions_hold_within_the_tolerance(C, fit_intercept):
    X, t = _curve()
    weight = np.r_[0.0, np.linspace(0.5, 2.0, 79)]
    model = SVR(C=C, gamma=0.7, epsilon=0.2, tol=1e-6, fit_intercept=fit_intercept).fit(X, t, sample_weight=weight)
    report = model.kkt_report(X, t, weight)
    assert len(report.rows) == 79 and report.rows[0] == 1
    assert report.violation == pytest.approx(model.certificate_.value, rel=1e-2, abs=1e-9)
    assert max(report.short, report.beyond) <= 2e-6 and report.box < 1e-12 and report.balance < 1e-9
    assert report.gap == pytest.approx(model.certificate_.bound, rel=1e-2, abs=1e-9)
    np.testing.assert_allclose(report.residual, (t - model.predict(X))[1:], atol=1e-9)
    assert (np.abs(report.residual)[report.case == "inside"] <= 0.2 + 2e-6).all()
    assert (np.abs(report.residual)[report.case == "bound"] >= 0.2 - 2e-6).all()
    assert (report.slack[report.case == "edge"] <= 2e-6).all() and set(report.rows[report.beta != 0]) == set(
        model.support_
    )


def test_the_tube_of_a_nu_machine_is_its_own():
    X, t = _curve()
    model = NuSVR(nu=0.4, C=5.0, gamma=0.7, tol=1e-7).fit(X, t)
    report = model.kkt_report(X, t)
    assert report.epsilon == model.epsilon_ and report.violation < 1e-6 and report.gap < 1e-6
    assert (report.slack > 1e-6).mean() <= 0.4 <= (report.beta != 0).mean()
    assert f"tube ±{model.epsilon_:.4g}" in repr(report)
    same = SVR(C=5.0, gamma=0.7, epsilon=float(model.epsilon_), tol=1e-7).fit(X, t).kkt_report(X, t)
    assert same.primal == pytest.approx(report.primal, rel=1e-5) and same.counts["bound"] == report.counts["bound"]


def test_a_flat_target_needs_no_row_and_other_data_are_refused():
    X, _ = _curve(20)
    model = SVR().fit(X, np.ones(20))
    report = model.kkt_report(X, np.ones(20))
    assert report.counts == {"inside": 20, "edge": 0, "bound": 0} and report.norm == 0.0 == report.violation
    with pytest.raises(DataError, match="SVR: kkt_report needs the rows, targets and weights of the fit"):
        model.kkt_report(X + 1.0, np.ones(20))
