# SPDX-License-Identifier: Apache-2.0
"""Headers of all that a browser gets below ``/ui/``, and the prefix under which it gets it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any
from urllib.parse import quote

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
