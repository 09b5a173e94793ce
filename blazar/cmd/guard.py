# SPDX-License-Identifier: Apache-2.0
"""The login of ``[keystone_authtoken]``, with which the API validates the tokens of its users."""

from __future__ import annotations

from keystoneauth1 import exceptions as ksa
from keystoneauth1 import loading
from keystoneauth1.session import Session
from keystonemiddleware import opts
from oslo_config import cfg

from blazar.clouds.openstack.options import verification
from blazar.cmd.config import ConfigurationError

GROUP = "keystone_authtoken"

PATIENCE = 3.0
"""Seconds that Keystone has to answer."""


def is_given(conf: cfg.ConfigOpts) -> bool:
    """Return whether there is such a login; a machine with managers only needs none."""
    loading.register_auth_conf_options(conf, GROUP)
    return bool(conf[GROUP].auth_type or conf[GROUP].auth_section)


def log_in(conf: cfg.ConfigOpts) -> None:
    """Log in; ConfigurationError if Keystone refuses the user. ClientException if it does not answer."""
    for group, options in opts.list_auth_token_opts():
        conf.register_opts(options, group)
    section = conf[GROUP]
    cert = (section.certfile, section.keyfile) if section.certfile and section.keyfile else section.certfile
    try:
        login = loading.load_auth_from_conf_options(conf, GROUP)
        Session(auth=login, verify=verification(conf, GROUP), cert=cert, timeout=PATIENCE).get_token()
    except ksa.Unauthorized as error:
        raise ConfigurationError(
            f"Keystone does not accept the user of [{GROUP}]: wrong user, password, project or domain ({error})"
        ) from error
