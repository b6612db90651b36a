"""Fixtures of the tests of model files."""

import pytest
from tests.core.toys import register


@pytest.fixture(scope="module")
def toys():
    """Let files name the toy models."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        register(monkeypatch)
        yield


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.safetensors"
