# SPDX-License-Identifier: Apache-2.0
"""JSON answers of ``/ui/session``, refusals in the form of the API's errors, and headers of all below ``/ui/``."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any
from urllib.parse import quote

from werkzeug.wrappers import Response

SECURITY: Mapping[str, str] = MappingProxyType(
    {
        "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        "font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; "
        "require-trusted-types-for 'script'; trusted-types 'none'",
        "X-Frame-Options": "DENY",
        "X-Content-Type-Options": "nosniff",
        # With no-referrer, browsers would send Origin: null for forms.
        "Referrer-Policy": "same-origin",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cross-Origin-Resource-Policy": "same-origin",
        "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
    }
)
"""No inline code, no other site, no frames."""


def prefix(environ: Mapping[str, Any]) -> str:
    """Return the path at which a proxy or a WSGI server mounts the service, quoted for a URL; empty at the root.

    It never begins with two slashes, which a browser would read as the name of another host.
    """
    path = quote(str(environ.get("SCRIPT_NAME", "")).encode("latin-1"), safe="/").strip("/")
    return f"/{path}" if path else ""


def answer(body: dict[str, Any], status: int = 200) -> Response:
    """Return JSON that no cache keeps."""
    response = Response(json.dumps(body, separators=(",", ":")), status, mimetype="application/json")
    response.headers.update(SECURITY)
    response.headers["Cache-Control"] = "no-store"
    response.headers["Vary"] = "Cookie"
    return response


class PageRefusal(Exception):
    """A request of a page is refused, for the reason ``code``; ``detail`` is a sentence for the person before it.

    ``more`` are further keys of the body, ``retry_after`` seconds after which another try makes sense.
    """

    def __init__(self, status: int, code: str, detail: str, *, retry_after: int | None = None, **more: Any) -> None:
        super().__init__(detail)
        self.status = status
        self.code = code
        self.detail = detail
        self.retry_after = retry_after
        self.more = more

    def response(self) -> Response:
        """Return the refusal as JSON, with a request id of its own."""
        request_id = f"req-{uuid.uuid4()}"
        item = {
            "status": self.status,
            "code": f"session.{self.code}",
            "title": self.code.replace("_", " ").capitalize(),
            "detail": self.detail,
            "request_id": request_id,
            "links": [],
        }
        response = answer({**self.more, "errors": [item]}, self.status)
        response.headers["x-openstack-request-id"] = request_id
        if self.retry_after is not None:
            response.headers["Retry-After"] = str(self.retry_after)
        return response
