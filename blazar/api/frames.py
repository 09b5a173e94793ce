# SPDX-License-Identifier: Apache-2.0
"""The error of requests that are invalid before their content is looked at."""

from __future__ import annotations

from collections.abc import Mapping


class BadFrame(Exception):
    """The request is invalid HTTP or JSON, found before its content is validated; rendered in shape B.

    ``code``, ``header`` and ``data`` are what is said from 1.1 on, where the code decides the status, too.
    """

    def __init__(
        self,
        status: int,
        message: str,
        *,
        code: str = "invalid_json",
        header: str | None = None,
        more: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.code = code
        self.header = header
        self.more = more or {}
