# SPDX-License-Identifier: Apache-2.0
"""JSON answers of ``/ui/session``, and refusals in the form of the API's errors."""

from __future__ import annotations

import json
import uuid
from typing import Any

from werkzeug.wrappers import Response

from blazar.api.web.headers import SECURITY


def answer(body: dict[str, Any], status: int = 200) -> Response:
    """Return JSON that no cache keeps."""
    response = Response(json.dumps(body, separators=(",", ":")), status, mimetype="application/json")
    response.headers.update(SECURITY)
    response.headers["Cache-Control"] = "no-store"
    response.headers["Vary"] = "Cookie"
    return response


class Refusal(Exception):
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
