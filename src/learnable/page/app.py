"""The page as an ASGI application: routes, and what each of them says.

Paths that the browser names are ids; what is read and written lies in the session's folder. Errors are one line of
JSON with the reason.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import re
import secrets
import sys
from collections.abc import AsyncIterator, Callable
from functools import wraps
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, HTMLResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from ..core.errors import LearnableError
from ..data.demo import DEMO_TARGETS
from .commands import forms
from .desk import Desk
from .guard import REPORT_POLICY, SCENE_POLICY, Guard, Pass
from .runs import FILES, Run, Runs
from .store import RefusedError, Store, check_name, plain_name

_TYPES: Final = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
_VIEW: Final = re.compile(r"/[a-z]+/[0-9a-f]{12}")
_VERIFY_SECONDS: Final = 300.0
_MOST_LISTENERS: Final = 40
_MOST_MOVES: Final = 200  # of points of a scene
_MOST_SCENES: Final = 12  # of the laboratory, kept in memory
#: Questions about a run that the browser may ask, and the values it may give with each.
_ASKABLE: Final = {
    "summary": ("model",),
    "model": ("model",),
    "threshold": ("cost", "model"),
    "confusion": ("model",),
    "slices": ("column", "model"),
    "errors": ("by", "start", "count", "model"),
    "effect": ("column", "model"),
    "explain": ("row", "values", "model"),
    "form": (),
    "predict": ("values",),
}
#: Those that read the table too.
_OF_TABLE: Final = ("model", "slices", "errors", "effect", "explain", "form", "predict")


def _bare(text: str, head: str = "") -> str:
    """Return a page of one sentence of ours."""
    return f"<!doctype html><html lang=en><meta charset=utf-8>{head}<title>learnable</title><p>{text}</p></html>"


def _has_lab() -> bool:
    """Tell whether the laboratory is installed, without loading it."""
    return "learnable.lab" in sys.modules or find_spec("learnable.lab") is not None


def told(handler: Callable[..., Any]) -> Callable[..., Any]:
    """Turn what goes wrong in a handler into one line of JSON with its reason."""

    @wraps(handler)
    async def handle(self: Any, request: Request) -> Response:
        try:
            found: Response = await handler(self, request)
        except RefusedError as error:
            return JSONResponse({"error": str(error)}, error.status)
        except LearnableError as error:
            return JSONResponse({"error": str(error)}, 422)
        except OSError as error:
            return JSONResponse({"error": f"{error.strerror or error}."}, 507)
        except ClientDisconnect:
            return JSONResponse({"error": "The browser went away."}, 400)
        return found

    return handle


class Page:
    """The application with its parts.

    Parameters
    ----------
    store : Store
        The session's folder.
    desk : Desk, optional
        Who answers questions; a process of its own by default.

    Examples
    --------
    >>> from learnable.page.app import Page
    >>> from learnable.page.store import Store
    >>> with Store() as store:
    ...     page = Page(store)
    ...     page.start_path.startswith("/start?token=")
    True
    """

    def __init__(self, store: Store, desk: Any = None) -> None:
        self.store = store
        self.runs = Runs(store)
        self.desk = desk or Desk(store.limits.answer)
        self.checker = desk or Desk(store.limits.answer)  # for what takes long, so that the desk stays free
        self.given = Pass()
        self.listeners = 0
        self.scenes_made: dict[str, str] = {}
        self.static = {entry.name: entry.read_bytes() for entry in (files(__package__) / "static").iterdir()}
        self.static["report.css"] = (files("learnable.report") / "templates" / "report.css").read_bytes()
        routes = [
            Route("/start", self.start),
            Route("/", self.index),
            Route("/static/{name}", self.asset),
            Route("/api/state", self.state),
            Route("/api/tables", self.upload, methods=["POST"]),
            Route("/api/demo", self.demo, methods=["POST"]),
            Route("/api/tables/{table}", self.profile),
            Route("/api/tables/{table}/rows", self.rows),
            Route("/api/tables/{table}/target", self.target, methods=["POST"]),
            Route("/api/tables/{table}/check", self.check, methods=["POST"]),
            Route("/api/runs", self.begin, methods=["POST"]),
            Route("/api/runs/{run}", self.run),
            Route("/api/runs/{run}/events", self.events),
            Route("/api/runs/{run}/stop", self.stop, methods=["POST"]),
            Route("/api/runs/{run}/ask/{question}", self.ask, methods=["POST"]),
            Route("/api/runs/{run}/predict-file", self.predict_file, methods=["POST"]),
            Route("/api/runs/{run}/verify", self.verify, methods=["POST"]),
            Route("/runs/{run}/report", self.report),
            Route("/runs/{run}/files/{name}", self.download),
            Route("/api/lab", self.scenes),
            Route("/api/lab", self.stage, methods=["POST"]),
            Route("/lab/{number}", self.scene),
        ]
        self.app = Guard(Starlette(routes=routes, lifespan=self._lifespan), self.given)

    @property
    def start_path(self) -> str:
        """The path of the link that opens the page."""
        return f"/start?token={self.given.token}"

    @contextlib.asynccontextmanager
    async def _lifespan(self, app: Any) -> AsyncIterator[None]:
        if isinstance(self.desk, Desk):
            await self.desk.open()  # it loads its libraries while the user looks for a file
        yield
        await self.runs.close()
        await self.desk.close()
        await self.checker.close()

    # The page itself ------------------------------------------------------------------------------------------------

    async def start(self, request: Request) -> Response:
        """Exchange the token for the cookie; a browser that has the cookie passes."""
        known = self.given.is_known(request.headers.get("cookie"))
        if not known and not self.given.redeem(request.query_params.get("token", "")):
            text = "This link has been used, or is not the one that `learnable page` printed. "
            return HTMLResponse(_bare(text + "End the command and start it again."), 403)
        # Not a redirect: the browser would take it for a part of a visit that another site began, and keep the cookie.
        view = request.query_params.get("view", "")
        place = f"/#{view}" if _VIEW.fullmatch(view) else "/"
        answer = HTMLResponse(_bare("One moment …", f'<meta http-equiv="refresh" content="0; url={place}">'))
        if not known:
            answer.headers["Set-Cookie"] = self.given.cookie()
        return answer

    async def index(self, request: Request) -> Response:
        """Return the page; the rest of it is drawn by its scripts."""
        return Response(self.static["index.html"], media_type="text/html; charset=utf-8")

    async def asset(self, request: Request) -> Response:
        """Return a script or a style of the page."""
        name = request.path_params["name"]
        if name not in self.static:
            return JSONResponse({"error": "There is no such file."}, 404)
        return Response(self.static[name], media_type=_TYPES.get(Path(name).suffix, "application/octet-stream"))

    async def state(self, request: Request) -> Response:
        """Return everything that the page needs to begin: tables, runs, forms, limits."""
        from importlib.metadata import PackageNotFoundError, version

        try:
            number = version("learnable")
        except PackageNotFoundError:
            number = ""
        return JSONResponse(
            {
                "version": number,
                "tables": [table.public() for table in self.store.tables.values()],
                "runs": [run.public() for run in self.runs.runs.values()],
                "forms": forms(),
                "demos": [name.removeprefix("demo:") for name in DEMO_TARGETS],
                "upload": self.store.limits.upload,
                "lab": _has_lab(),
                "kept": None if self.store.temporary else str(self.store.folder),
            }
        )

    # Tables ---------------------------------------------------------------------------------------------------------

    @told
    async def upload(self, request: Request) -> Response:
        """Take up a table from the browser: the body is the file, the query has its name."""
        table = await self.store.add_upload(request.query_params.get("name", ""), _length(request), request.stream())
        return JSONResponse(table.public(), 201)

    @told
    async def demo(self, request: Request) -> Response:
        """Take up a built-in table."""
        given = await self._body(request)
        return JSONResponse(self.store.add_demo(f"demo:{given.get('name')}").public(), 201)

    @told
    async def profile(self, request: Request) -> Response:
        """Return what a table holds."""
        table = self.store.table(request.path_params["table"])
        start, count = (_whole(request, name, default) for name, default in (("start", 0), ("count", 30)))
        folder = str(self.store.folder_of(table))
        found = await self.desk.ask("profile", path=table.path, folder=folder, start=start, count=count)
        return JSONResponse(table.public() | found)

    @told
    async def rows(self, request: Request) -> Response:
        """Return a page of a table's rows."""
        table = self.store.table(request.path_params["table"])
        wanted = {name: _whole(request, name, default) for name, default in (("start", 0), ("count", 20), ("first", 0))}
        return JSONResponse(await self.desk.ask("rows", path=table.path, **wanted))

    @told
    async def target(self, request: Request) -> Response:
        """Return what a target is."""
        table = self.store.table(request.path_params["table"])
        given = await self._body(request)
        return JSONResponse(await self.desk.ask("target", path=table.path, target=str(given.get("target"))))

    @told
    async def check(self, request: Request) -> Response:
        """Return what a comparison would make of a target; a long table takes seconds: a newer check ends an older."""
        table = self.store.table(request.path_params["table"])
        given = await self._body(request)
        if self.checker.busy:
            await self.checker.close()
        return JSONResponse(await self.checker.ask("check", path=table.path, target=str(given.get("target"))))

    # Runs -----------------------------------------------------------------------------------------------------------

    @told
    async def begin(self, request: Request) -> Response:
        """Start a run."""
        given = await self._body(request)
        table = self.store.table(given.get("table"))
        run = await self.runs.start(given.get("kind"), table, given.get("settings") or {})
        return JSONResponse(run.public(), 201)

    @told
    async def run(self, request: Request) -> Response:
        """Return what was asked, how it stands, and which files there are."""
        return JSONResponse(self._run(request).public())

    @told
    async def events(self, request: Request) -> Response:
        """Tell what happens as it happens (server-sent events); a browser that comes back goes on where it was."""
        run = self._run(request)
        if self.listeners >= _MOST_LISTENERS:
            raise RefusedError("Too many tabs listen. Close some.", 429)
        last = request.headers.get("last-event-id", request.query_params.get("after", "-1"))
        start = int(last) + 1 if last.lstrip("-").isdigit() else 0

        async def stream() -> AsyncIterator[str]:
            self.listeners += 1
            try:
                yield "retry: 1000\n\n"
                async for number, event in run.follow(start):
                    yield ": \n\n" if event is None else f"id: {number}\ndata: {json.dumps(event)}\n\n"
                if run.is_over:  # otherwise the server is about to end
                    yield f"event: over\ndata: {json.dumps(run.public())}\n\n"
            finally:
                self.listeners -= 1

        return StreamingResponse(stream(), media_type="text/event-stream")

    @told
    async def stop(self, request: Request) -> Response:
        """Stop a run; what is done stays."""
        run = self._run(request)
        await self.runs.stop(run)
        return JSONResponse(run.public())

    @told
    async def ask(self, request: Request) -> Response:
        """Answer a question about a finished comparison."""
        run = self._run(request)
        question = request.path_params["question"]
        if question not in _ASKABLE or run.request["kind"] != "compare":
            raise RefusedError("There is no such question.", 404)
        given = await self._body(request)
        values = {name: given[name] for name in _ASKABLE[question] if given.get(name) is not None}
        if question in _OF_TABLE:
            values["path"] = self._table_of(run)
        # A model that is fitted again may take long; the desk stays free for the questions of other views.
        desk = self.checker if question == "model" else self.desk
        return JSONResponse(await desk.ask(question, run=str(run.folder), **values))

    @told
    async def predict_file(self, request: Request) -> Response:
        """Predict the rows of a file from the browser."""
        run = self._run(request)
        _, suffix = check_name(request.query_params.get("name", ""))
        self.store.check_room(_length(request))
        upload = run.folder / f"new-rows{suffix}"
        upload.unlink(missing_ok=True)
        try:
            await self.store.write_upload(upload, request.stream())
            output = str(run.folder / "predictions.csv")
            found = await self.desk.ask("predict_file", run=str(run.folder), upload=str(upload), output=output)
        finally:
            upload.unlink(missing_ok=True)
        return JSONResponse(found)

    @told
    async def verify(self, request: Request) -> Response:
        """Re-derive what the kept model proves, by the tool's own command in a process of its own."""
        run = self._run(request)
        if not (run.folder / "model.safetensors").is_file():
            raise RefusedError("This run kept no model.", 404)
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "learnable", "verify", "model.safetensors", self._table_of(run),
            cwd=run.folder, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
        try:
            async with asyncio.timeout(_VERIFY_SECONDS):
                out, _ = await process.communicate()
        except TimeoutError:
            process.kill()
            raise RefusedError(f"The check took longer than {_VERIFY_SECONDS:g} s and was ended.", 504) from None
        lines = out.decode("utf-8", "replace").splitlines()[:40]
        return JSONResponse({"ok": process.returncode == 0, "lines": lines})

    @told
    async def report(self, request: Request) -> Response:
        """Return a run's report for a frame: it runs no script and asks for nothing."""
        run = self._run(request)
        file = run.folder / "report.html"
        if not file.is_file():
            raise RefusedError("This run has no report.", 404)
        headers = {"Content-Security-Policy": REPORT_POLICY, "X-Frame-Options": "SAMEORIGIN"}
        return Response(file.read_bytes(), media_type="text/html; charset=utf-8", headers=headers)

    @told
    async def download(self, request: Request) -> Response:
        """Return a file of a run, to be saved and not shown."""
        run = self._run(request)
        name = request.path_params["name"]
        if name not in FILES or not (run.folder / name).is_file():
            raise RefusedError("There is no such file.", 404)
        stem = plain_name(Path(run.request["name"]).stem, "table")
        shown = f"{stem}-{name}"
        headers = {"Content-Security-Policy": "default-src 'none'; sandbox"}
        return FileResponse(run.folder / name, media_type=FILES[name], filename=shown, headers=headers)

    # The laboratory -------------------------------------------------------------------------------------------------

    @told
    async def scenes(self, request: Request) -> Response:
        """List the scenes of the laboratory."""
        return JSONResponse(await self.desk.ask("scenes"))

    @told
    async def stage(self, request: Request) -> Response:
        """Make a scene, on the built-in table or on one of the session, and say where it is."""
        given = await self._body(request)
        values: dict[str, Any] = {"path": self.store.table(given["table"]).path} if given.get("table") else {}
        values["moves"] = _moves(given.get("moves"))
        page = await self.desk.ask("scene", name=str(given.get("name")), **values)
        number = secrets.token_hex(6)
        self.scenes_made[number] = page
        while len(self.scenes_made) > _MOST_SCENES:
            self.scenes_made.pop(next(iter(self.scenes_made)))
        return JSONResponse({"id": number}, 201)

    @told
    async def scene(self, request: Request) -> Response:
        """Return a scene for a frame: its scripts run in an origin of their own."""
        page = self.scenes_made.get(request.path_params["number"])
        if page is None:
            raise RefusedError("There is no such scene.", 404)
        headers = {"Content-Security-Policy": SCENE_POLICY, "X-Frame-Options": "SAMEORIGIN"}
        return HTMLResponse(page, headers=headers)

    # Helpers --------------------------------------------------------------------------------------------------------

    def _run(self, request: Request) -> Run:
        return self.runs.get(request.path_params["run"])

    def _table_of(self, run: Run) -> str:
        """Return the path of a run's table."""
        return str(run.request["path"])

    async def _body(self, request: Request) -> dict[str, Any]:
        """Return a request's JSON object."""
        size = 0
        parts = []
        async for part in request.stream():
            size += len(part)
            if size > self.store.limits.request:
                raise RefusedError("The request is too large.", 413)
            parts.append(part)
        try:
            found = json.loads(b"".join(parts) or b"{}")
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            raise RefusedError("The request must be a JSON object.")
        return found


def _moves(given: Any) -> list[list[float]]:
    """Return where points of a scene were moved: row, x and y each, the last ones if there are many."""
    found = []
    for move in (given if isinstance(given, list) else [])[-_MOST_MOVES:]:
        numbers = isinstance(move, list) and len(move) == 3 and all(type(part) in (int, float) for part in move)
        if not numbers or not all(math.isfinite(part) for part in move):
            raise RefusedError("A move is a row and two finite numbers.")
        found.append([float(part) for part in move])
    return found


def _length(request: Request) -> int | None:
    """Return how long a request says its body is."""
    given = request.headers.get("content-length", "")
    return int(given) if given.isdigit() else None


def _whole(request: Request, name: str, default: int) -> int:
    """Return a whole number of the query."""
    given = request.query_params.get(name, str(default))
    if not given.isdigit() or len(given) > 12:
        raise RefusedError(f"{name} must be a whole number.")
    return int(given)
