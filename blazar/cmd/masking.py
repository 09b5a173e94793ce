# SPDX-License-Identifier: Apache-2.0
"""Keeps cookies out of the log: libraries write the headers of every call at level DEBUG, and mask tokens only."""

from __future__ import annotations

import logging
import re

HIDDEN = "***"
_COOKIE = re.compile(r"""((?:set-)?cookie2?["']?\s*[:=,]\s*)(?:"[^"]*"|'[^']*'|[^"'\r\n]+)""", re.IGNORECASE)


class CookieFilter(logging.Filter):
    """Masks what follows ``Cookie`` and ``Set-Cookie`` in a record's text."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Let every record pass, without the values of cookies."""
        if record.levelno <= logging.DEBUG:
            text = record.getMessage()
            if "ookie" in text.lower():
                record.msg, record.args = _COOKIE.sub(rf"\g<1>{HIDDEN}", text), None
        return True


def mask_cookies() -> None:
    """Mask cookies in everything that the handlers of the root logger write."""
    for handler in logging.getLogger().handlers:
        if not any(isinstance(known, CookieFilter) for known in handler.filters):
            handler.addFilter(CookieFilter())
