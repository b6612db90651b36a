"""Who may talk to the page: this machine's user, in the browser that was given the link, and nobody else.

The server listens on 127.0.0.1, which every program and every web page open on this machine can reach. So:

- a request must name this machine as its host: a foreign name that resolves to 127.0.0.1 (DNS rebinding) is refused;
- the link printed at the start holds a token that works once; it is exchanged for a cookie that scripts cannot read
  and that browsers do not send along from other sites;
- pages of other origins are refused even where browsers would send the cookie: another port of this machine is the
  same *site*. What changes something needs our own header besides, which other origins cannot set;
- every answer forbids scripts, styles, frames and requests but our own.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable
from http.cookies import CookieError, SimpleCookie
from typing import Any, Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import HTMLResponse, JSONResponse, Response

HEADER: Final = "x-learnable"
HEADER_VALUE: Final = "page"
#: Names by which a browser on this machine knows it; any port, for those who come through an SSH tunnel.
_HOST: Final = re.compile(r"(127\.0\.0\.1|localhost|\[::1\])(:[0-9]{1,5})?")
_SAFE_METHODS: Final = ("GET", "HEAD")

_COMMON: Final = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=(), usb=(), payment=()",
}
#: Of the page itself. Scripts may make markup of text through one policy alone, which takes figures (static/dom.js).
PAGE_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "frame-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types learnable-figure"
)
#: Of a report in a frame: no scripts at all, nothing from anywhere; the page may measure its height.
REPORT_POLICY: Final = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'self'; sandbox allow-same-origin"
)
#: Of a scene of the laboratory: its own scripts, but an origin of its own, so that it reaches nothing of the page.
SCENE_POLICY: Final = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'self'; sandbox allow-scripts"
)


class Pass:
    """The one-time token and the cookie it is exchanged for.

    Examples
    --------
    >>> from learnable.page.guard import Pass
    >>> given = Pass()
    >>> token = given.token
    >>> given.redeem(token), given.redeem(token)
    (True, False)
    """

    def __init__(self) -> None:
        self.token = secrets.token_urlsafe(32)
        self.cookie_name = f"learnable-{secrets.token_hex(4)}"  # two sessions on one machine share a cookie jar
        self._secret = secrets.token_urlsafe(32)
        self._used = False

    def redeem(self, token: str) -> bool:
        """Take the token, once; tell whether it is the right one."""
        if self._used or not secrets.compare_digest(token.encode(), self.token.encode()):
            return False
        self._used = True
        return True

    def cookie(self) -> str:
        """Return the header that sets the cookie: for this session of the browser, this host, no script."""
        return f"{self.cookie_name}={self._secret}; Path=/; HttpOnly; SameSite=Strict"

    def is_known(self, header: str | None) -> bool:
        """Tell whether a Cookie header holds the secret."""
        try:
            found = SimpleCookie(header or "").get(self.cookie_name)
        except CookieError:
            return False
        return found is not None and secrets.compare_digest(found.value.encode(), self._secret.encode())


class Guard:
    """An ASGI application around the page's: refuses what must not pass, and sets the headers of what does.

    Parameters
    ----------
    app : ASGI application
        The page.
    given : Pass
        The token and the cookie.
    public : iterable of str
        Paths that need no cookie.
    """

    def __init__(self, app: Any, given: Pass, public: Iterable[str] = ("/start",)) -> None:
        self.app = app
        self.given = given
        self.public = frozenset(public)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request, or let the page do it."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":  # there are no web sockets here
            await send({"type": "websocket.close", "code": 1008})
            return
        refusal = self.refuse(scope)

        async def send_with_headers(message: Any) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _COMMON.items():
                    headers.setdefault(name, value)
                headers.setdefault("Content-Security-Policy", PAGE_POLICY)
            await send(message)

        await (self.app if refusal is None else refusal)(scope, receive, send_with_headers)

    def refuse(self, scope: Any) -> Response | None:
        """Return the refusal of a request; None if it may pass."""
        headers = Headers(scope=scope)
        path = scope["path"]
        host = headers.get("host", "")
        if _HOST.fullmatch(host) is None:
            return _refusal(path, 421, "This page answers only to 127.0.0.1 and localhost.")
        method = scope["method"]
        site = headers.get("sec-fetch-site")
        origin = headers.get("origin")
        if origin is not None and origin != f"http://{host}":
            return _refusal(path, 403, "This request comes from another page and is refused.")
        if path not in (*self.public, "/") and site not in (None, "same-origin", "none"):
            return _refusal(path, 403, "This request comes from another page and is refused.")
        if path not in self.public and not self.given.is_known(headers.get("cookie")):
            return _refusal(
                path,
                403,
                "Open the link that `learnable page` printed: it holds a key that works once. If another browser has "
                "used it, end the command and start it again.",
            )
        if method not in _SAFE_METHODS and (headers.get(HEADER) != HEADER_VALUE or site not in (None, "same-origin")):
            return _refusal(path, 403, "This request does not come from the page and is refused.")
        return None


def _refusal(path: str, status: int, text: str) -> Response:
    if path.startswith("/api/"):
        return JSONResponse({"error": text}, status)
    from html import escape

    page = f"<!doctype html><html lang=en><meta charset=utf-8><title>learnable</title><p>{escape(text)}</p></html>"
    return HTMLResponse(page, status)
