# SPDX-License-Identifier: Apache-2.0
"""Mask cookies in the log: libraries log the headers of every call at level DEBUG and mask tokens only."""

from __future__ import annotations

import logging
import re

HIDDEN = "***"
_COOKIE = re.compile(r"""((?:set-)?cookie2?["']?\s*[:=,]\s*)(?:"[^"]*"|'[^']*'|[^"'\r\n]+)""", re.IGNORECASE)


class CookieFilter(logging.Filter):
    """Masks the values of ``Cookie`` and ``Set-Cookie`` headers in log records."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Return True for every record, after masking the values of cookies."""
        if record.levelno <= logging.DEBUG:
            text = record.getMessage()
            if "ookie" in text.lower():
                record.msg, record.args = _COOKIE.sub(rf"\g<1>{HIDDEN}", text), None
        return True


def mask_cookies() -> None:
    """Mask cookies in all output of the handlers of the root logger."""
    for handler in logging.getLogger().handlers:
        if not any(isinstance(known, CookieFilter) for known in handler.filters):
            handler.addFilter(CookieFilter())
