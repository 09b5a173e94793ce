# SPDX-License-Identifier: Apache-2.0
"""The options of the web pages: whether they are served, who may sign in, and for how long."""

from __future__ import annotations

from oslo_config import cfg, types

SECTION = "ui"

OPTIONS: list[cfg.Opt] = [
    cfg.BoolOpt(
        "enabled",
        default=True,
        help="Serve the web pages at /ui/, and lead browsers there that open the service's address. blazar-api serves "
        "them only if session_keys is set, too.",
    ),
    cfg.ListOpt(
        "session_keys",
        default=[],
        secret=True,
        help="Keys that encrypt the sessions of users who have signed in, the same for all processes of the API. Make "
        "one by: openssl rand -base64 32 | tr +/ -_ . The first one encrypts, all of them decrypt: to replace a key, "
        "put the new one in front, and remove the old one a day later.",
    ),
    cfg.StrOpt(
        "public_url",
        help="URL by which browsers reach the API, such as https://cloud.example/reservation. Needed behind a proxy "
        "that ends TLS, unless [oslo_middleware] enable_proxy_headers_parsing is set.",
    ),
    cfg.ListOpt(
        "sign_in_methods",
        item_type=types.String(choices=["password", "application_credential", "token"]),
        default=["password", "application_credential"],
        help="How users can sign in: by name and password (and one-time passcode, if Keystone asks for it), by "
        "application credential, or by a token that they got elsewhere.",
    ),
    cfg.ListOpt(
        "domains",
        default=[],
        help="Names of domains to choose from when signing in, the usual one first; if empty, users type the name.",
    ),
    cfg.IntOpt(
        "proxies",
        default=1,
        min=1,
        max=10,
        help="With [oslo_middleware] enable_proxy_headers_parsing: number of proxies in a row that append the address "
        "of their client to X-Forwarded-For. Attempts to sign in are limited by the address that the outermost one has "
        "seen.",
    ),
]
