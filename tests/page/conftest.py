"""Pages for the tests: a new one each time, and one with a race that was stopped, for all of them."""

import pytest

pytest.importorskip("starlette", reason="the page needs its extra: pip install 'learnable[page]'")
pytest.importorskip("httpx", reason="the page's tests talk to it through httpx")

from tests.page.pages import DeskHere, Raced, enter

from learnable.page.app import Page
from learnable.page.store import Store


@pytest.fixture
def page(tmp_path):
    return Page(Store(tmp_path / "session"), DeskHere())


@pytest.fixture
def client(page):
    client = enter(page)
    yield client
    client.__exit__(None, None, None)


@pytest.fixture(scope="session")
def raced(tmp_path_factory):
    found = Raced(tmp_path_factory.mktemp("raced") / "session")
    yield found
    found.client.__exit__(None, None, None)
