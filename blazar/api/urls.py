# SPDX-License-Identifier: Apache-2.0
"""URLs of the service as its clients use them."""

from __future__ import annotations

import urllib.parse

from flask import request


def link(path: str) -> str:
    """Return the URL of a path; the prefix of a proxy or mount point is part of the URL that clients use."""
    return request.host_url.rstrip("/") + request.script_root + path


FEEDS = "/feeds/"
"""What follows it in a path is the secret of a feed."""


def logged(path: str) -> str:
    """Return a path as a log may have it: quoted, so that it cannot forge a line, and without the secret of a feed."""
    return f"{FEEDS}***" if path.startswith(FEEDS) else urllib.parse.quote(path)
