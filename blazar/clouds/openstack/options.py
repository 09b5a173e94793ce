# SPDX-License-Identifier: Apache-2.0
"""Options of the cloud and of the service user.

The names and defaults are those of existing ``blazar.conf`` files. The section ``[keystone]``, which other services
have too, accepts any authentication plugin, client certificates, and so on. If it names an ``auth_type``, it replaces
the ``os_*`` options.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from keystoneauth1 import exceptions as ksa
from keystoneauth1 import loading
from keystoneauth1.identity import v3
from keystoneauth1.identity.base import BaseIdentityPlugin
from oslo_config import cfg

from blazar.model.base.errors import InvalidInput
from blazar.model.base.values import dataclass, field


@dataclass(frozen=True, slots=True)
class Credentials:
    """The service user and the endpoints of the cloud.

    ``auth`` is any keystoneauth plugin for the service user; ``interfaces`` names the interface in the catalog to use
    for each service. ``verify`` is False, True, or the path of a bundle of certificates.
    """

    auth: BaseIdentityPlugin
    region: str | None = None
    interfaces: Mapping[str, str] = field(default_factory=dict)
    compute_service: str = "compute"
    identity_service: str = "identity"
    verify: bool | str = True
    cert: str | tuple[str, str] | None = None
    timeout: float = 20.0
    """Seconds that a call may take to connect, and again to answer."""
    attempts: int = 3


GROUP = "keystone"
INTERFACES = [
    ("public", "the one that users reach, too"),
    ("internal", "the one of the cloud's own network"),
    ("admin", "the one for operators, where there is one"),
]


def _endpoint_type(service: str) -> cfg.Opt:
    return cfg.StrOpt(
        "endpoint_type",
        default="internal",
        choices=INTERFACES,
        help=f"Which of the endpoints of {service} in the catalog to use.",
    )


DEFAULT_OPTIONS: list[cfg.Opt] = [
    cfg.StrOpt(
        "os_auth_protocol",
        default="http",
        choices=[("http", "without encryption"), ("https", "with TLS")],
        help="Protocol of Keystone. This and the other os_* options up to os_admin_project_domain_name say how the "
        "manager logs in; none of them counts where [keystone] names an auth_type.",
    ),
    cfg.HostAddressOpt("os_auth_host", default="127.0.0.1", help="Host of Keystone."),
    cfg.StrOpt("os_auth_port", default="5000", help="Port of Keystone; empty for that of the protocol."),
    cfg.StrOpt(
        "os_auth_prefix",
        default="",
        help="Path before the version in the URL of Keystone: 'identity' for https://HOST/identity/v3.",
    ),
    cfg.StrOpt("os_auth_version", default="v3", help="Version in the URL of Keystone."),
    cfg.StrOpt("os_admin_username", default="admin", help="Service user; needs the role admin in its project."),
    cfg.StrOpt("os_admin_password", default="blazar", secret=True, help="Password of the service user."),
    cfg.StrOpt("os_admin_project_name", default="admin", help="Project of the service user."),
    cfg.StrOpt("os_admin_user_domain_name", default="Default", help="Domain of the service user."),
    cfg.StrOpt("os_admin_project_domain_name", default="Default", help="Domain of the service user's project."),
    cfg.StrOpt(
        "cafile",
        help="File of the certificate authorities (PEM) that vouch for the cloud's services; without one, those that "
        "Python's requests library trusts.",
    ),
    _endpoint_type("Keystone"),
]
DEFAULT_CLI_OPTIONS: list[cfg.Opt] = [
    cfg.StrOpt("identity_service", default="identity", help="Service type of Keystone in the catalog."),
    cfg.StrOpt("os_region_name", help="Region to act in; without one, the first that the catalog names."),
]
CLOUD_OPTIONS: list[cfg.Opt] = [
    cfg.ListOpt(
        "regions",
        default=[],
        help="Regions of Keystone's catalog to serve, separated by commas. The first one is that of requests that name "
        "none, and of all leases from before. Empty: one region, that of os_region_name.",
    ),
    cfg.FloatOpt("timeout", default=20.0, min=0.1, help="Seconds that a call to another service may take."),
    cfg.IntOpt(
        "attempts",
        default=3,
        min=1,
        max=20,
        help="How often a call to another service is tried before it counts as failed; calls that must not be "
        "repeated are tried once.",
    ),
]
NOVA_OPTIONS: list[cfg.Opt] = [
    _endpoint_type("Nova"),
    cfg.StrOpt(
        "compute_service",
        default="compute",
        deprecated_group="DEFAULT",
        help="Service type of Nova in the catalog.",
    ),
    cfg.StrOpt(
        "nova_client_version",
        default="2",
        deprecated_group="DEFAULT",
        deprecated_for_removal=True,
        deprecated_reason="Every call says itself which microversion it speaks.",
        help="Not used.",
    ),
    cfg.BoolOpt(
        "az_aware",
        default=True,
        help="Note the availability zone of a host when it is registered, so that requirements can ask for it.",
    ),
]
NEUTRON_OPTIONS: list[cfg.Opt] = [
    _endpoint_type("Neutron"),
]
PLACEMENT_OPTIONS: list[cfg.Opt] = [
    _endpoint_type("Placement"),
]
GLANCE_OPTIONS: list[cfg.Opt] = [
    _endpoint_type("Glance"),
]
CINDER_OPTIONS: list[cfg.Opt] = [
    _endpoint_type("Cinder"),
]

SUPPORTED = ("cafile", "certfile", "keyfile", "insecure", "timeout")
SESSION_OPTIONS: list[cfg.Opt] = [
    *loading.get_auth_common_conf_options(),
    # The library has more, for example for ciphers, which would have no effect here.
    *(option for option in loading.get_session_conf_options() if option.dest in SUPPORTED),
]
"""Options of ``[keystone]`` with any authentication plugin."""


def register_keystone_options(conf: cfg.ConfigOpts) -> None:
    """Register the options of ``[keystone]``; the others are registered with those of all packages."""
    loading.register_auth_conf_options(conf, GROUP)
    conf.register_opts(SESSION_OPTIONS, group=GROUP)


def list_keystone_opts() -> list[cfg.Opt]:
    """Return the options of ``[keystone]`` for the sample configuration, with those of the password plugin."""
    return [*SESSION_OPTIONS, *loading.get_auth_plugin_conf_options("password")]


def credentials(conf: cfg.ConfigOpts, *, region: str = "") -> Credentials:
    """Return the credentials that are configured, for a region or else the one that is configured.

    InvalidInput names an option that cannot work.
    """
    section = conf[GROUP]
    for name, path in (
        ("[DEFAULT] cafile", conf.cafile),
        *((f"[{GROUP}] {option}", section[option]) for option in ("cafile", "certfile", "keyfile")),
    ):
        if path and not os.path.exists(path):
            raise InvalidInput(f"{name} is {path}, which does not exist")
    return Credentials(
        auth=_load_auth(conf),
        region=region or next(iter(conf.cloud.regions), conf.os_region_name),
        interfaces={
            "compute": conf.nova.endpoint_type,
            "placement": conf.placement.endpoint_type,
            "image": conf.glance.endpoint_type,
            "network": conf.neutron.endpoint_type,
            "block_storage": conf.cinder.endpoint_type,
            "baremetal": conf.endpoint_type,
            "identity": conf.endpoint_type,
        },
        compute_service=conf.nova.compute_service,
        identity_service=conf.identity_service,
        verify=tls_verification(conf, GROUP),
        cert=(section.certfile, section.keyfile) if section.certfile and section.keyfile else section.certfile,
        timeout=section.timeout or conf.cloud.timeout,
        attempts=conf.cloud.attempts,
    )


def tls_verification(conf: cfg.ConfigOpts, group: str) -> bool | str:
    """Return whom to trust with the login of a section: its cafile, else that of ``[DEFAULT]``; False: anybody."""
    section = conf[group]
    return False if section.insecure else section.cafile or conf.cafile or True


def auth_url(conf: cfg.ConfigOpts) -> str:
    """Return the URL of Keystone from the ``os_auth_*`` options."""
    if conf.os_auth_port and not conf.os_auth_port.isdigit():
        raise InvalidInput(f"[DEFAULT] os_auth_port is {conf.os_auth_port!r}; give a number, or nothing")
    host = f"[{conf.os_auth_host}]" if ":" in conf.os_auth_host else conf.os_auth_host
    port = f":{conf.os_auth_port}" if conf.os_auth_port else ""
    path = "/".join(part.strip("/") for part in (conf.os_auth_prefix, conf.os_auth_version) if part.strip("/"))
    return f"{conf.os_auth_protocol}://{host}{port}/{path}"


def _load_auth(conf: cfg.ConfigOpts) -> BaseIdentityPlugin:
    section = conf[GROUP].auth_section
    if conf[GROUP].auth_type or section:
        # Registered again, because auth_section may name another section.
        loading.register_auth_conf_options(conf, GROUP)
        try:
            plugin = loading.load_auth_from_conf_options(conf, GROUP)
        except ksa.AuthPluginException as error:
            raise InvalidInput(f"[{GROUP}] does not say how to log in: {error}") from error
        except (cfg.NoSuchOptError, ValueError) as error:
            raise InvalidInput(
                f"[{section or GROUP}] does not say how to log in: {error}; if a value has a '$', write '$$'"
            ) from error
        if plugin is None:
            raise InvalidInput(f"[{GROUP}] auth_section is {section!r}, and [{section}] names no auth_type")
        return plugin
    return v3.Password(
        auth_url=auth_url(conf),
        username=conf.os_admin_username,
        password=conf.os_admin_password,
        project_name=conf.os_admin_project_name,
        user_domain_name=conf.os_admin_user_domain_name,
        project_domain_name=conf.os_admin_project_domain_name,
    )
