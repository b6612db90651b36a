"""The desk: questions in a process of its own, which may die or take too long without harm to the page."""

import asyncio
import os
import signal

import pytest

from learnable.page.desk import Desk
from learnable.page.store import RefusedError


def test_a_question_after_the_desk_was_killed_finds_a_new_one():
    async def work():
        desk = Desk(60.0)
        first = await desk.ask("rows", path="demo:houses", count=1)
        os.kill(desk._process.pid, getattr(signal, "SIGKILL", signal.SIGTERM))
        with pytest.raises(RefusedError, match="ended"):
            await desk.ask("rows", path="demo:houses", count=1)
        again = await desk.ask("rows", path="demo:houses", count=1)
        with pytest.raises(RefusedError, match="no file"):
            await desk.ask("rows", path="/nowhere/table.csv")
        await desk.close()
        return first, again

    first, again = asyncio.run(work())
    assert first == again and first["total"] == 1200


def test_a_question_that_takes_too_long_is_ended():
    async def work():
        desk = Desk(0.01)
        with pytest.raises(RefusedError, match=r"longer than 0\.01 s") as refused:
            await desk.ask("profile", path="demo:houses", folder=".")
        assert refused.value.status == 504 and desk._process is None

    asyncio.run(work())
