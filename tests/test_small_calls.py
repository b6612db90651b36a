"""Small tables and serving: nothing is started, waited for or asked that a small call does not need."""

import threading

import numpy as np
import pytest
from sklearn.base import clone

import learnable as ln
from learnable.core import estimator as estimator_module
from learnable.core import threads
from learnable.core.errors import ParameterError
from learnable.data.door import is_frame

SERVED = [
    ln.LinearRegression(),
    ln.Ridge(),
    ln.Lasso(alpha=0.1),
    ln.LogisticRegression(),
    ln.GaussianNB(),
    ln.KMeans(n_clusters=3, random_state=0),
    ln.DecisionTreeClassifier(random_state=0),
    ln.DecisionTreeRegressor(random_state=0),
    ln.RandomForestClassifier(n_estimators=5, random_state=0),
    ln.HistGradientBoostingClassifier(max_iter=5, random_state=0),
]
LOCK_FREE = [model for model in SERVED if not isinstance(model, (ln.GaussianNB, ln.KMeans))]


def table():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, 120)
    return rng.standard_normal((120, 4)) + codes[:, None], codes


def fitted(model):
    X, y = table()
    return clone(model).fit(X, y)


@pytest.mark.threaded
@pytest.mark.parametrize("model", SERVED, ids=lambda model: type(model).__name__)
def test_eight_threads_predict_what_one_does(model):
    model = fitted(model)
    X, _ = table()
    expected = [model.predict(X[i : i + 1]) for i in range(len(X))]
    wrong = []

    def serve(first):
        for i in range(first, first + len(X)):
            row = i % len(X)
            if not np.array_equal(model.predict(X[row : row + 1]), expected[row]):
                wrong.append(row)

    helpers = [threading.Thread(target=serve, args=(13 * k,)) for k in range(8)]
    for helper in helpers:
        helper.start()
    for helper in helpers:
        helper.join()
    assert not wrong


@pytest.mark.parametrize("model", LOCK_FREE, ids=lambda model: type(model).__name__)
def test_one_row_is_predicted_while_somebody_holds_the_limits_of_blas(model):
    model = fitted(model)
    X, _ = table()
    done = threading.Event()

    def serve():
        model.predict(X[:1])
        done.set()

    with threads._blas.changed:
        helper = threading.Thread(target=serve)
        helper.start()
        served = done.wait(20)
    helper.join()
    assert served


@pytest.mark.threaded
def test_a_short_factorisation_runs_on_the_calling_thread_and_a_long_one_does_not():
    def where(matrix):
        return threading.current_thread()

    assert threads.interruptible(where, np.eye(20)) is threading.main_thread()
    assert threads.interruptible(where, np.zeros(threads._SHORT + 1)) is not threading.main_thread()


@pytest.mark.threaded
def test_blas_has_all_its_threads_in_a_short_factorisation():
    def counts(matrix):
        return [library.get_num_threads() for library in threads._controller().lib_controllers]

    assert threads.interruptible(counts, np.eye(3)) == counts(None)


@pytest.mark.parametrize("observed", [True, False])
def test_a_context_for_callbacks_is_made_only_where_there_are_some(observed):
    class Callback:
        seen = 0

        def setup(self, estimator, context):
            pass

        def on_fit_task_begin(self, estimator, context):
            pass

        def on_fit_task_end(self, estimator, context):
            Callback.seen += 1

        def teardown(self, estimator, context):
            pass

    X, y = table()
    model = ln.Ridge()
    if observed:
        model.set_callbacks(Callback())
    assert estimator_module._is_observed(model) is observed
    model.fit(X, y)
    assert Callback.seen == int(observed)
    assert not hasattr(model, "_callback_fit_ctx")


def test_subclasses_with_fewer_arguments_are_checked_too():
    class Strong(ln.Ridge):
        def __init__(self, alpha=100.0):
            super().__init__(alpha=alpha)

    X, y = table()
    assert np.array_equal(Strong().fit(X, y).coef_, ln.Ridge(alpha=100.0).fit(X, y).coef_)
    with pytest.raises(ParameterError, match="alpha"):
        Strong(alpha=-1.0).fit(X, y)


@pytest.mark.parametrize("value", [np.zeros((2, 2)), [[1.0]], ((1.0,),), np.ma.zeros((2, 2))])
def test_plain_tables_are_no_frames(value):
    assert not is_frame(value)
