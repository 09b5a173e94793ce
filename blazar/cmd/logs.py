# SPDX-License-Identifier: Apache-2.0
"""The log of a process, without cookies: libraries log the headers of calls at level DEBUG and mask tokens only."""

from __future__ import annotations

import logging
import re

from oslo_config import cfg
from oslo_log import log

from blazar.cmd.config import ConfigurationError

HIDDEN = "***"
_COOKIE = re.compile(r"""((?:set-)?cookie2?["']?\s*[:=,]\s*)(?:"[^"]*"|'[^']*'|[^"'\r\n]+)""", re.IGNORECASE)


def start(conf: cfg.ConfigOpts) -> None:
    """Set up the log as configured; ConfigurationError if it cannot be written."""
    try:
        log.setup(conf, "blazar")
    except (log.LogConfigError, OSError, ValueError) as error:
        raise ConfigurationError(
            f"the log cannot be written; check log_config_append, log_file and log_dir: {error}"
        ) from error
    mask_cookies()


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
