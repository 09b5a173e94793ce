# SPDX-License-Identifier: Apache-2.0
"""The session in standalone mode: there is none, a page sends the name that its user has chosen as the token."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from blazar.api.middleware import Wsgi
from blazar.api.web.answers import Refusal, answer
from blazar.api.web.pages import SESSION


class StandaloneSession:
    """Tells the pages that there is no sign-in; everything else goes to the application behind it."""

    def __init__(self, app: Wsgi) -> None:
        self._app = app

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        """Serve a request."""
        app = self._app
        path = environ.get("PATH_INFO", "")
        if path == SESSION and environ["REQUEST_METHOD"] in ("GET", "HEAD"):
            app = answer({"mode": "standalone"})
        elif path == SESSION:
            detail = "Without Keystone there is no session; send X-Auth-Token: USER:PROJECT with each request."
            app = Refusal(405, "no_session", detail).response()
            app.headers["Allow"] = "GET, HEAD"
        elif path.startswith(f"{SESSION}/"):
            app = Refusal(404, "not_found", "This URL does not exist; a page asks /ui/session.").response()
        return app(environ, start_response)
