import threading

import pytest
import sklearn

import learnable as ln
from learnable.core import config
from learnable.core.config import wants_progress
from learnable.core.errors import ParameterError


@pytest.fixture(autouse=True)
def settings():
    """Begin with nothing set, and leave what was set before."""
    token = config._progress.set(None)
    yield
    config._progress.reset(token)


def test_progress_is_on_unless_the_environment_says_no(monkeypatch):
    monkeypatch.delenv("LEARNABLE_PROGRESS", raising=False)
    assert ln.get_config() == {"progress": True, **sklearn.get_config()}
    for word in ("0", "false", "No", " off "):
        monkeypatch.setenv("LEARNABLE_PROGRESS", word)
        assert not ln.get_config()["progress"]
    monkeypatch.setenv("LEARNABLE_PROGRESS", "1")
    assert wants_progress()


def test_what_is_set_stays_and_goes_before_the_environment(monkeypatch):
    monkeypatch.setenv("LEARNABLE_PROGRESS", "0")
    ln.set_config(progress=True)
    assert wants_progress()
    ln.set_config()
    assert wants_progress()


def test_a_context_puts_back_what_was_set_even_after_an_error():
    ln.set_config(progress=True)

    def stumble():
        with ln.config_context(progress=False):
            assert not wants_progress()
            raise KeyError

    with pytest.raises(KeyError):
        stumble()
    assert wants_progress()


def test_threads_do_not_share_what_one_of_them_sets():
    ln.set_config(progress=False)
    seen = []
    thread = threading.Thread(target=lambda: seen.append(ln.get_config()["progress"]))
    thread.start()
    thread.join()
    assert seen == [True]


@pytest.mark.parametrize("value", [1, "yes", 0.0])
def test_other_values_are_refused(value):
    with pytest.raises(ParameterError, match="progress must be True or False"):
        ln.set_config(progress=value)


def test_settings_of_scikit_learn_are_passed_on():
    before = sklearn.get_config()
    with ln.config_context(progress=False, transform_output="pandas"):
        assert sklearn.get_config()["transform_output"] == "pandas"
        assert ln.get_config()["transform_output"] == "pandas"
        ln.set_config(assume_finite=True)
        assert sklearn.get_config()["assume_finite"]
    assert sklearn.get_config() == before


def test_a_setting_that_nobody_knows_is_refused():
    with pytest.raises(TypeError, match="colour"):
        ln.set_config(colour="blue")
    with pytest.raises(TypeError, match="colour"), ln.config_context(colour="blue"):
        pass
