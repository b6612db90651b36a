"""The desk: one process that reads tables and answers questions, so that a bad file cannot harm the server.

Questions and answers are JSON, one per line. A question that takes too long, or that kills the process, costs that
question; the next one finds a new desk.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
from importlib import import_module
from typing import Any, Final

from .store import RefusedError

_LINE: Final = 2**27  # bytes of an answer
_SHARE_OF_MEMORY: Final = 0.7


class Desk:
    """Asks a process of its own; starts it when it is first needed.

    Parameters
    ----------
    seconds : float
        What a question may take.
    """

    def __init__(self, seconds: float = 120.0) -> None:
        self.seconds = seconds
        self._process: asyncio.subprocess.Process | None = None
        self._lock = asyncio.Lock()

    @property
    def busy(self) -> bool:
        """Whether a question is being answered."""
        return self._lock.locked()

    async def ask(self, question: str, **values: Any) -> Any:
        """Return the answer; refuse with the reason if there is none."""
        async with self._lock:
            try:
                async with asyncio.timeout(self.seconds):
                    found = await self._ask({"question": question} | values)
            except TimeoutError:
                await self.close()
                raise RefusedError(
                    f"This took longer than {self.seconds:g} s and was ended. Use fewer rows or columns.", 504
                ) from None
        if "error" in found:
            raise RefusedError(str(found["error"]), 422)
        return found["answer"]

    async def _ask(self, question: dict[str, Any]) -> dict[str, Any]:
        process = self._process
        if process is None or process.returncode is not None:
            process = await self.open()
        if process.stdin is None or process.stdout is None:
            raise RefusedError("The reader of tables has no pipes.", 500)
        try:
            process.stdin.write(json.dumps(question).encode() + b"\n")
            await process.stdin.drain()
            line = await process.stdout.readline()
        except (OSError, ValueError):
            line = b""
        if not line:
            await self.close()
            raise RefusedError("The reader of tables ended: the file may be damaged or too large for memory.", 422)
        found: dict[str, Any] = json.loads(line)
        return found

    async def open(self) -> asyncio.subprocess.Process:
        """Start the process."""
        self._process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "learnable.page.desk",
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
            limit=_LINE, start_new_session=True,
        )  # fmt: skip
        return self._process

    async def close(self) -> None:
        """End the process."""
        process = self._process
        self._process = None
        if process is None:
            return
        with contextlib.suppress(ProcessLookupError, OSError):
            process.kill()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), 5.0)


def main() -> None:
    """Answer questions until the input ends."""
    from ..evaluation.comparison.race import free_memory, limit_memory
    from ..evaluation.comparison.record import plain
    from .answers import answer

    # What every table needs, loaded before the first one comes.
    for name in ("pyarrow.csv", "learnable.data.files", "learnable.data.profile"):
        import_module(name)
    room = free_memory()
    limit_memory(None if room is None else int(_SHARE_OF_MEMORY * room))
    descriptor = os.dup(1)
    os.dup2(os.open(os.devnull, os.O_RDWR), 1)  # what libraries print is no answer
    with os.fdopen(descriptor, "w", encoding="utf-8", errors="replace") as out:
        for line in sys.stdin:
            out.write(json.dumps(plain(answer(json.loads(line))), allow_nan=False) + "\n")
            out.flush()


if __name__ == "__main__":
    main()
