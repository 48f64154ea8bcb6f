"""The server of the page: for the browser of this machine and this user alone.

It listens on the loopback address. Every address begins with a random token, which only the person who started it is
told; requests for anything else, for another host (a name that was bound to this address later) or from another page
are refused. Bodies are JSON of limited size, and answers never come from a cache.
"""

import json
import secrets
import sys
import traceback
import warnings
from collections.abc import Callable
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from typing import Any

from pdofm.errors import PdofmError, SolveError
from pdofm.studio.reading import FieldError
from pdofm.studio.work import FILES, Session

ADDRESS = "127.0.0.1"
"""The loopback address: other machines cannot reach it."""

LONGEST_BODY = 2**20
"""Bytes of a request, at most."""

IDLE = 60
"""Seconds after which a connection without requests is closed."""

STATIC = {
    "": ("index.html", "text/html; charset=utf-8"),
    "studio.css": ("studio.css", "text/css; charset=utf-8"),
    **{
        name: (name, "text/javascript; charset=utf-8")
        for name in ("studio.js", "form.js", "picture.js", "sketch.js", "presets.js")
    },
}
"""The files of the page, by the address below the token."""

HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}


def serve(port: int = 0) -> None:
    """Serve the page until Ctrl-C, and print its address."""
    warnings.simplefilter("ignore", UserWarning)  # the page shows verdicts; these would say them again
    with Studio(port) as server, suppress(KeyboardInterrupt):
        print(server.url, flush=True)
        print("Open this address in a browser; it is for you alone. Ctrl-C ends the page.", file=sys.stderr, flush=True)
        server.serve_forever()


class Studio(ThreadingHTTPServer):
    """The server, its token, and the session of its user.

    Args:
        port: where it listens; 0 for any free one.
    """

    daemon_threads = True

    def __init__(self, port: int = 0):
        if not 0 <= port < 2**16:
            raise SolveError(f"The port is {port}; expected a number from 0 (any free one) to 65535.")
        self.token = secrets.token_urlsafe(32)
        self.session = Session()
        try:
            super().__init__((ADDRESS, port), _Handler)
        except OSError as error:
            message = f"Port {port} cannot be used: {error.strerror}. Give another one, or 0 for any free one."
            raise SolveError(message) from error

    @property
    def url(self) -> str:
        """The address of the page."""
        return f"http://{ADDRESS}:{self.server_port}/{self.token}/"

    @property
    def hosts(self) -> tuple[str, str]:
        """What a browser calls this server."""
        return f"{ADDRESS}:{self.server_port}", f"localhost:{self.server_port}"

    @property
    def actions(self) -> dict[str, Callable[[dict[str, Any]], dict[str, Any]]]:
        """What can be asked for, by the address below the token."""
        session = self.session
        return {
            "check": session.check,
            "solve": session.begin,
            "compare": session.begin_comparison,
            "stop": lambda given: session.stop(),
            "state": lambda given: session.state(),
            "picture": session.picture,
            "drag": session.drag,
        }


class _Handler(BaseHTTPRequestHandler):
    server: Studio  # type: ignore[override]
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "pdofm", ""
    timeout = IDLE
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        name = self._allowed()
        if name is None:
            return
        if name in STATIC:
            file, kind = STATIC[name]
            self._answer((files("pdofm.studio") / "static" / file).read_bytes(), kind)
        elif name in FILES:
            self._try(lambda: self.server.session.file(name), FILES[name], name)
        else:
            self._refuse(HTTPStatus.NOT_FOUND, "There is no such page.")

    def do_POST(self) -> None:
        name = self._allowed()
        if name is None:
            return
        given = self._body()
        if given is None:
            return
        action = self.server.actions.get(name)
        if action is None:
            self._refuse(HTTPStatus.NOT_FOUND, "There is no such action.")
        else:
            self._try(lambda: json.dumps(action(given), allow_nan=False).encode(), "application/json")

    def _allowed(self) -> str | None:
        """The address below the token, if the request has the token and comes from the page itself; else refuses it."""
        _, token, *rest = [*self.path.split("/", 2), "", ""][:3]
        host, origin = self.headers.get("Host", ""), self.headers.get("Origin")
        has_token = secrets.compare_digest(token.encode(), self.server.token.encode())
        is_ours = origin is None or origin in [f"http://{each}" for each in self.server.hosts]
        from_page = self.headers.get("Sec-Fetch-Site", "none") in ("same-origin", "none")
        if has_token and host in self.server.hosts and is_ours and from_page:
            return rest[0]
        self._refuse(HTTPStatus.FORBIDDEN, "Open the page with the address that pdofm studio has printed.")
        return None

    def _body(self) -> dict[str, Any] | None:
        """The JSON object of a request; else refuses it."""
        length = self.headers.get("Content-Length", "")
        if self.headers.get_content_type() != "application/json" or not length.isdecimal():
            self._refuse(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "A request is JSON with a Content-Length.")
        elif int(length) > LONGEST_BODY:
            self._refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"A request has at most {LONGEST_BODY} bytes.")
        else:
            try:
                given = json.loads(self.rfile.read(int(length)))
            except (ValueError, RecursionError):
                given = None
            if isinstance(given, dict):
                return given
            self._refuse(HTTPStatus.BAD_REQUEST, "A request is a JSON object.")
        return None

    def _try(self, make: Callable[[], bytes], kind: str, name: str = "") -> None:
        """Answer with what `make` returns; an error of pdofm becomes a message."""
        try:
            body = make()
        except PdofmError as error:
            field = error.field if isinstance(error, FieldError) else ""
            self._answer(json.dumps({"error": str(error), "field": field}).encode(), "application/json", status=422)
        except Exception as error:  # noqa: BLE001 (the page would wait for an answer)
            traceback.print_exc()
            message = f"This is an error of pdofm: {type(error).__name__}; the terminal shows where."
            self._answer(json.dumps({"error": message, "field": ""}).encode(), "application/json", status=500)
        else:
            self._answer(body, kind, name)

    def _answer(self, body: bytes, kind: str, name: str = "", status: int = HTTPStatus.OK) -> None:
        self.send_response(status)
        for header, text in {**HEADERS, "Content-Type": kind, "Content-Length": str(len(body))}.items():
            self.send_header(header, text)
        if name:
            self.send_header("Content-Disposition", f'attachment; filename="{name}"')
        self.end_headers()
        self.wfile.write(body)

    def _refuse(self, status: HTTPStatus, message: str) -> None:
        self.close_connection = True  # a body that was not read must not be taken for a request
        self._answer(json.dumps({"error": message}).encode(), "application/json", status=status)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 (its name in the base class)
        """Nothing: the addresses contain the token."""
