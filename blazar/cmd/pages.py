# SPDX-License-Identifier: Apache-2.0
"""Put the web pages in front of the application, as ``[ui]`` says."""

from __future__ import annotations

import logging
import time
from typing import Any

from keystoneauth1 import loading
from oslo_config import cfg
from oslo_middleware import http_proxy_to_wsgi

from blazar.api.http.access import Wsgi
from blazar.api.web.keystone import Keystone
from blazar.api.web.origin import origin_of
from blazar.api.web.pages import Pages, read_built
from blazar.api.web.sessions import Sessions, StandaloneSession
from blazar.api.web.signing_in import Clocks, SessionSettings
from blazar.clouds.openstack.options import tls_verification
from blazar.cmd.config import ConfigurationError
from blazar.model.base.clock import SystemClock

LOG = logging.getLogger(__name__)

GUARD = "keystone_authtoken"
"""The section with the login that validates tokens."""
_MAKE_A_KEY = "make one by: openssl rand -base64 32 | tr +/ -_"


def without_keystone(app: Wsgi, conf: cfg.ConfigOpts) -> Wsgi | None:
    """Return the application with pages whose users say who they are; None if there are no pages."""
    if not conf.ui.enabled:
        return None
    if (built := read_built()) is None:
        LOG.warning("The web pages are not part of this installation, so /ui/ is not served")
        return None
    return Pages(StandaloneSession(app), built)


def before_keystone(guarded: Wsgi, conf: cfg.ConfigOpts) -> Wsgi:
    """Return the guarded application with pages whose users sign in at Keystone, or as it is without pages.

    ConfigurationError if ``[ui]`` is invalid.
    """
    settings = _settings(conf)
    if not conf.ui.enabled:
        return guarded
    if not settings.keys:
        LOG.info("The web pages are not served, as [ui] session_keys is not set; %s", _MAKE_A_KEY)
        return guarded
    if (built := read_built()) is None:
        LOG.warning("The web pages are not part of this installation, so /ui/ is not served")
        return guarded
    return Pages(sessions(guarded, conf, settings), built, public_url=settings.public_url)


def sessions(guarded: Wsgi, conf: cfg.ConfigOpts, settings: SessionSettings) -> Sessions:
    """Return the guarded application with sessions; ConfigurationError if a key is none."""
    clocks = Clocks(SystemClock().now, time.monotonic)
    try:
        return Sessions(guarded, _keystone(conf), settings, clocks)
    except ValueError as error:
        raise ConfigurationError(
            f"[ui] session_keys has a value that is not 32 bytes in URL-safe base64; {_MAKE_A_KEY}"
        ) from error


def _settings(conf: cfg.ConfigOpts) -> SessionSettings:
    url = conf.ui.public_url
    if url and not origin_of(url):
        raise ConfigurationError(f"[ui] public_url {url!r} is no URL such as https://cloud.example/reservation")
    conf.register_opts(http_proxy_to_wsgi.OPTS, group="oslo_middleware")
    return SessionSettings(
        keys=tuple(conf.ui.session_keys),
        methods=tuple(conf.ui.sign_in_methods),
        domains=tuple(conf.ui.domains),
        public_url=url or None,
        proxies=conf.ui.proxies if conf.oslo_middleware.enable_proxy_headers_parsing else 0,
    )


def _keystone(conf: cfg.ConfigOpts) -> Keystone:
    """Return the Keystone that ``[keystone_authtoken]`` names, where users sign in as themselves."""
    section: Any = conf.keystone_authtoken
    plugin = loading.load_auth_from_conf_options(conf, "keystone_authtoken")
    if plugin is None or not getattr(plugin, "auth_url", None):
        raise ConfigurationError("[keystone_authtoken] has no auth_url, where users of the web pages could sign in")
    cert = (section.certfile, section.keyfile) if section.certfile and section.keyfile else section.certfile
    return Keystone(plugin.auth_url, verify=tls_verification(conf, GUARD), cert=cert)
