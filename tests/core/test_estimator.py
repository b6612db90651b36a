import copy
import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.callback import FitCallback, ProgressBar
from sklearn.exceptions import ConvergenceWarning
from tests.core.toys import Halving, Proofless

from learnable.core import Estimator, ParameterError
from learnable.core import estimator as run

X, y = np.arange(6.0).reshape(3, 2), np.array([1.0, 2.0, 6.0])


class Recorder:
    """A callback that writes down what it is told, and asks to stop after `stop_after` iterations."""

    def __init__(self, stop_after=None, fail_at=None):
        self.stop_after, self.fail_at = stop_after, fail_at
        self.log, self.values = [], []

    def setup(self, estimator, context):
        self.log.append("setup")

    def on_fit_task_begin(self, estimator, context):
        self.log.append(f"begin {context.task_name}")

    def on_fit_task_end(self, estimator, context, *, metadata):
        self.log.append(f"end {context.task_name}")
        if metadata:
            self.values.append(metadata["value"])
        if len(self.values) == self.fail_at:
            raise OSError("the display is gone")
        return len(self.values) == self.stop_after

    def teardown(self, estimator, context):
        self.log.append("teardown")


def test_a_fit_sets_its_attributes_and_its_certificate():
    model = Halving()
    assert model.fit(X, y) is model
    assert model.constant_ == pytest.approx(3.0, abs=1e-6)
    assert model.n_features_in_ == 2
    certificate = model.certificate_
    assert certificate.holds and certificate.kind == "gap" and certificate.n_iter == model.n_iter_
    assert certificate.seconds > 0
    assert certificate.fingerprint


def test_parameters_are_checked_by_fit_and_not_before():
    model = Halving(max_iter=0)
    with pytest.raises(ParameterError, match="Halving: max_iter must be an integer >= 1; got 0"):
        model.fit(X, y)
    assert set(vars(model)) == set(model.get_params())


@pytest.mark.parametrize(("trouble", "error"), [("error", ValueError), ("interrupt", KeyboardInterrupt)])
@pytest.mark.parametrize("fitted_before", [False, True])
def test_a_fit_that_breaks_off_leaves_the_estimator_as_it_was(trouble, error, fitted_before):
    model = Halving().set_callbacks(Recorder())
    if fitted_before:
        model.fit(X, y)
    model.set_params(trouble=trouble)
    before = dict(vars(model))
    with pytest.raises(error):
        model.fit(X, 10 * y)
    assert vars(model).keys() == before.keys()
    assert all(vars(model)[name] is before[name] for name in before)


def test_bad_data_leave_the_estimator_as_it_was():
    model = Halving().fit(X, y)
    before = dict(vars(model))
    with pytest.raises(ValueError, match="could not convert"):
        model.fit([["a"]], y)
    assert vars(model) == before


def test_what_the_last_fit_left_behind_vanishes():
    model = Halving(trouble="extra").fit(X, y)
    assert model.extra_
    model.set_params(trouble=None).fit(X, y)
    assert not hasattr(model, "extra_")


def test_a_fit_does_not_see_the_attributes_of_the_last_one_except_through_the_run():
    class Looking(Halving):
        def _fit(self, table, run):
            self.saw_ = (hasattr(self, "constant_"), hasattr(run.previous, "constant_"))
            return super()._fit(table, run)

    model = Looking().fit(X, y)
    assert model.saw_ == (False, False)
    assert model.fit(X, y).saw_ == (False, True)


def test_a_certificate_that_does_not_hold_warns_with_value_tolerance_and_remedy():
    with pytest.warns(ConvergenceWarning) as caught:
        Halving(max_iter=2).fit(X, y)
    [warning] = caught
    assert str(warning.message) == (
        "Halving: stopped after 2 iterations at gap 0.75, above the tolerance 1e-06; "
        "raise max_iter, or scale the columns of X."
    )


@pytest.mark.parametrize("model", [Halving(), Proofless()])
def test_no_warning_where_the_certificate_holds_or_claims_nothing(model):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(X, y)


def test_a_callback_gets_every_iteration():
    recorder = Recorder()
    assert isinstance(recorder, FitCallback)
    model = Halving(max_iter=30).set_callbacks(recorder).fit(X, y)
    n = model.n_iter_
    iterations = [f"{edge} iteration {i}" for i in range(1, n + 1) for edge in ("begin", "end")]
    assert recorder.log == ["setup", "begin fit", *iterations, "end fit", "teardown"]
    np.testing.assert_allclose(recorder.values, 3.0 / 2.0 ** np.arange(1, n + 1))


def test_a_solver_may_report_more_iterations_than_it_announced():
    class TwoPhases(Halving):
        def _fit(self, table, run):
            run.progress(1, 1.0)
            run.progress(2, 1.0)
            return super()._fit(table, run)

    recorder = Recorder()
    TwoPhases(max_iter=1, tol=10.0).set_callbacks(recorder).fit(X, y)
    assert len(recorder.values) == 3


def test_a_callback_can_stop_the_fit():
    with pytest.warns(ConvergenceWarning, match="stopped after 3 iterations"):
        model = Halving().set_callbacks(Recorder(stop_after=3)).fit(X, y)
    assert model.n_iter_ == 3


def test_a_callback_that_fails_is_torn_down_and_leaves_the_estimator_as_it_was():
    recorder = Recorder(fail_at=2)
    model = Halving().set_callbacks(recorder)
    with pytest.raises(OSError, match="the display is gone"):
        model.fit(X, y)
    assert recorder.log[-1] == "teardown"
    assert set(vars(model)) == {*model.get_params(), "_skl_callbacks"}


def test_callbacks_change_nothing_in_the_result():
    assert Halving().set_callbacks(Recorder()).fit(X, y).constant_ == Halving().fit(X, y).constant_


def test_the_progress_bar_of_scikit_learn_works(capsys):
    pytest.importorskip("rich")
    Halving().set_callbacks(ProgressBar()).fit(X, y)
    assert "Halving" in capsys.readouterr().out


def test_max_seconds_returns_the_best_so_far(monkeypatch):
    ticks = iter(range(1000))
    monkeypatch.setattr(run.time, "perf_counter", lambda: float(next(ticks)))
    with pytest.warns(ConvergenceWarning):
        model = Halving(max_seconds=5.0).fit(X, y)
    assert 1 < model.n_iter_ < 10
    assert not model.certificate_.holds
    assert model.certificate_.value == abs(model.constant_ - 3.0)


def test_a_raised_flag_stops_the_fit():
    with pytest.warns(ConvergenceWarning):
        assert Halving(trouble="stop").fit(X, y).n_iter_ == 2


def test_copies_and_pickles_predict_the_same():
    model = Halving().fit(X, y)
    for twin in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert twin.certificate_ == model.certificate_
        np.testing.assert_array_equal(twin.predict(X), model.predict(X))
    assert not hasattr(clone(model), "certificate_")


def test_the_base_class_says_what_a_model_has_to_define():
    class Empty(Estimator):
        _parameters = {}  # noqa: RUF012
        _door = Halving._door

    with pytest.raises(TypeError, match="Empty does not define _fit"):
        Empty().fit(X, y)
