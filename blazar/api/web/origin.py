# SPDX-License-Identifier: Apache-2.0
"""Which site a request comes from: only our own pages may use the cookie."""

from __future__ import annotations

import hmac
import ipaddress
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from blazar.api.web.answers import PageRefusal

READS = ("GET", "HEAD", "OPTIONS")
_FORWARDED_FOR = re.compile(r"""\bfor=["\[]*([0-9a-f:.]+)""", re.IGNORECASE)
_DEFAULT_PORTS = {"http": 80, "https": 443}


def own_origin(environ: Mapping[str, Any], public_url: str | None) -> str:
    """Return the origin of our pages, such as ``https://cloud.example``.

    It is that of ``public_url``; without it, what the request says of itself, after the proxy's headers.
    """
    if public_url is not None:
        return origin_of(public_url)
    return origin_of(f"{environ.get('wsgi.url_scheme', 'http')}://{environ.get('HTTP_HOST', '')}")


def origin_of(url: str) -> str:
    """Return the origin of a URL as browsers write it; empty if the URL has none."""
    try:
        parts = urlsplit(url.strip().lower())
        port = parts.port
    except ValueError:
        return ""
    if parts.scheme not in _DEFAULT_PORTS or not parts.hostname:
        return ""
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{parts.scheme}://{host}" + (f":{port}" if port not in (None, _DEFAULT_PORTS[parts.scheme]) else "")


def as_seen_at(url: str) -> dict[str, str]:
    """Return what the environment of a request says of scheme, host and mount point if it was sent below a URL."""
    origin = urlsplit(origin_of(url))
    return {
        "wsgi.url_scheme": origin.scheme,
        "HTTP_HOST": origin.netloc,
        "SCRIPT_NAME": urlsplit(url).path.rstrip("/"),
    }


def is_loopback(origin: str) -> bool:
    """Return whether an origin is this machine, where http is as good as https."""
    host = urlsplit(origin).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def check_site(environ: Mapping[str, Any], own: str) -> None:
    """Raise PageRefusal if a page of another site may have made the request.

    Another port of this host is another site too, although browsers send it our cookies.
    """
    site, origin = environ.get("HTTP_SEC_FETCH_SITE"), environ.get("HTTP_ORIGIN")
    if site is not None:
        is_own = site == "same-origin"
    elif origin is not None:
        is_own = bool(own) and origin_of(origin) == own
    else:
        is_own = environ["REQUEST_METHOD"] in READS
    if not is_own:
        raise PageRefusal(
            403,
            "not_same_origin",
            f"This request was not made by a page of {own or 'this service'}; open its own pages. (If you did, the "
            f"operator has to set [ui] public_url to the address in your browser.)",
        )


def check_token(environ: Mapping[str, Any], csrf: str) -> None:
    """Raise PageRefusal if a change lacks the token that only our pages know."""
    given = environ.get("HTTP_X_CSRF_TOKEN", "")
    if environ["REQUEST_METHOD"] not in READS and not hmac.compare_digest(given.encode(), csrf.encode()):
        raise PageRefusal(403, "csrf", "The header X-CSRF-Token is not that of the session; GET /ui/session tells it.")


def client_address(environ: Mapping[str, Any], proxies: int) -> str:
    """Return the IP address of the client; ``unknown`` if it cannot be told.

    ``proxies`` says how many proxies of our own add the address they see to the end of ``X-Forwarded-For`` (or of
    ``Forwarded``); what stands before that was written by the client. 0: there is no proxy, or it adds nothing.
    """
    addresses = [part.strip() for part in environ.get("HTTP_X_FORWARDED_FOR", "").split(",") if part.strip()]
    addresses = addresses or _FORWARDED_FOR.findall(environ.get("HTTP_FORWARDED", ""))
    given = addresses[-min(proxies, len(addresses))] if proxies and addresses else environ.get("REMOTE_ADDR", "")
    try:
        return str(ipaddress.ip_address(given))
    except ValueError:
        return "unknown"
