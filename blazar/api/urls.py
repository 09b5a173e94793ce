# SPDX-License-Identifier: Apache-2.0
"""URLs of the service as its clients use them."""

from __future__ import annotations

import re
import urllib.parse

from flask import request


def link(path: str) -> str:
    """Return the URL of a path; the prefix of a proxy or mount point is part of the URL that clients use."""
    return request.host_url.rstrip("/") + request.script_root + path


FEEDS = "/feeds/"
"""What follows it in a path is the secret of a feed."""


LONGEST = 200
"""Characters of a path in a log."""


def logged(path: str) -> str:
    """Return a path as a log may have it: quoted, so that it cannot forge a line, and without the secret of a feed."""
    if (found := _FEED.match(path)) is not None and not _FEED_BY_ID.fullmatch(path):
        path = path[: found.end()] + "***"
    quoted = urllib.parse.quote(path, safe="/*")
    return quoted if len(quoted) <= LONGEST else f"{quoted[: LONGEST - 1]}…"


# A path that is not quite that of a feed may have its secret all the same.
_FEED = re.compile(r"(?:.*?/)?feeds(?:/|%2f)", re.IGNORECASE | re.DOTALL)
_FEED_BY_ID = re.compile(r"/v1/feeds/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
