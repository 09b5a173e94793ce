# SPDX-License-Identifier: Apache-2.0
"""Who asks, and where the service is: options, ``OS_*`` variables, and ``clouds.yaml``."""

from __future__ import annotations

import argparse
import getpass
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from keystoneauth1 import adapter as adapters
from keystoneauth1 import exceptions as keystone
from keystoneauth1 import loading

from blazarclient.cloud_options import API_VERSIONS, SERVICE, TIME_LIMIT, WITHOUT_KEYSTONE, Given, versioned
from blazarclient.exception import CommandError, NotAuthorized
from blazarclient.sessions import connect_soon

USER_AGENT = "python-blazarclient"

_SCOPES: Sequence[tuple[str, ...]] = (
    ("os_project_id", "os_project_name", "os_project_domain_id", "os_project_domain_name"),
    ("os_domain_id", "os_domain_name"),
    ("os_system_scope",),
    ("os_trust_id",),
)
"""Only one of them can be asked for; what the command line names takes the place of what variables name."""

USUAL_DOMAIN = "default"
"""The id of the domain that Keystone itself makes."""

_NOBODY = (
    "Nobody is logged in: name a cloud of clouds.yaml with --os-cloud, or source the openrc file of your project "
    "(OS_AUTH_URL, OS_USERNAME, OS_PASSWORD, OS_PROJECT_NAME)"
)


def adapter(options: argparse.Namespace, environment: Mapping[str, str] = os.environ) -> Any:
    """Return an adapter for the service. NotAuthorized if nothing says how to log in."""
    given = Given(options, environment)
    version = given.get("os_reservation_api_version")
    if version and version not in API_VERSIONS:
        raise CommandError(
            f"--os-reservation-api-version is {version}; this client speaks {', '.join(API_VERSIONS)}", code=400
        )
    cloud = given.get("os_cloud")
    kind = None if cloud else _kind(given)
    if kind is None:
        return _of_cloud(given, _cloud_name(cloud, environment), _files(environment))
    session = loading.session.Session().load_from_argparse_arguments(_connection(given), auth=_plugin(given, kind))
    endpoint = given.get("os_endpoint_override")
    if endpoint is None and kind in WITHOUT_KEYSTONE:
        endpoint = given.get("os_endpoint")
        if not endpoint:
            raise NotAuthorized(f"Login of the kind {kind} needs the URL of the service; give it with --os-endpoint")
    return _adapter(given, session, endpoint)


def _adapter(given: Given, session: Any, endpoint: str | None, **usual: Any) -> Any:
    connect_soon(session)
    return adapters.Adapter(
        session,
        service_type=given.service_type,
        service_name=given.get("os_service_name"),
        region_name=given.get("os_region_name") or usual.get("region_name"),
        interface=given.interface or usual.get("interface") or "public",
        endpoint_override=_checked(endpoint),
        user_agent=USER_AGENT,
    )


def _checked(endpoint: str | None) -> str | None:
    if endpoint is None:
        return None
    parts = urlsplit(endpoint)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise CommandError(f"The URL of the service is {endpoint!r}; write it as https://host:1234/v1", code=400)
    return versioned(endpoint)


def _kind(given: Given) -> str | None:
    """Return the kind of login that is named, or that fits to what is given; None if nothing is."""
    if kind := given.get("os_auth_type"):
        return str(kind)
    if given.get("os_auth_url"):
        if given.written("os_token"):
            return "token"
        if any(given.get(f"os_application_credential_{part}") for part in ("id", "secret")):
            return "v3applicationcredential"
        named = given.get("os_username") or given.get("os_user_id")
        return "token" if given.get("os_token") and not (named and given.get("os_password")) else "password"
    if given.get("os_endpoint"):
        return "admin_token" if given.get("os_token") else "none"
    return None


def _plugin(given: Given, kind: str) -> Any:
    try:
        loader = loading.get_plugin_loader(kind)
    except keystone.NoMatchingPlugin:
        raise NotAuthorized(
            f"There is no kind of login {kind}; usual ones are password, token, v3applicationcredential and none"
        ) from None
    values = {option.dest: _value(given, option) for option in loader.get_options()}
    _one_scope(given, values)
    _add_domains(values)
    if "username" in values and "password" in values and kind not in WITHOUT_KEYSTONE:
        _ask_password(values)
    try:
        return loader.load_from_options_getter(lambda option: values.get(option.dest))
    except keystone.MissingRequiredOptions as error:
        missing = ", ".join(f"--os-{option.name.replace('_', '-')}" for option in error.options)
        raise NotAuthorized(f"Login of the kind {kind} needs {missing}") from None
    except keystone.ClientException as error:
        raise NotAuthorized(f"Login of the kind {kind} is incomplete: {str(error).rstrip('.')}") from None


def _value(given: Given, option: Any) -> Any:
    found = given.get(f"os_{option.dest}", option.argparse_envvars)
    return option.default if found is None else found


def _one_scope(given: Given, values: dict[str, Any]) -> None:
    written = [scope for scope in _SCOPES if any(given.written(name) for name in scope)]
    if not written:
        return
    for scope in _SCOPES:
        if scope not in written:
            for name in scope:
                values.pop(name.removeprefix("os_"), None)


def _add_domains(values: dict[str, Any]) -> None:
    """Add the domain that nearly every cloud has, where a name needs one and none is given."""
    if values.get("default_domain_id") or values.get("default_domain_name"):
        return
    for noun, name in (("user", "username"), ("project", "project_name")):
        named = values.get(name) and not values.get(f"{noun}_domain_name")
        if named and f"{noun}_domain_id" in values and not values[f"{noun}_domain_id"]:
            values[f"{noun}_domain_id"] = USUAL_DOMAIN


def _ask_password(values: dict[str, Any]) -> None:
    """Add the password if the user can type it."""
    if not values.get("username") and not values.get("user_id"):
        raise NotAuthorized("Nobody is logged in: name the user with --os-username or OS_USERNAME")
    if not values.get("password"):
        if not (sys.stdin and sys.stdin.isatty() and sys.stderr.isatty()):
            raise NotAuthorized("Nobody is logged in: there is no password; set OS_PASSWORD")
        values["password"] = getpass.getpass("Password: ")


def _connection(given: Given) -> argparse.Namespace:
    """Return what keystoneauth reads of options."""
    names = ("os_cacert", "os_cert", "os_key", "tls_ciphers", "tls_min_version")
    rest = {name: given.written(name) for name in ("insecure", "collect_timing")}
    rest["timeout"] = given.written("timeout") or TIME_LIMIT
    return argparse.Namespace(**{name: given.get(name) for name in names}, **rest)


def _cloud_name(named: str | None, environment: Mapping[str, str]) -> str | None:
    """Return the name; None if there is none but a file of clouds. NotAuthorized if there is neither."""
    if not named and not any(path.exists() for path in _files(environment)):
        raise NotAuthorized(_NOBODY)
    return named


def _files(environment: Mapping[str, str]) -> list[Path]:
    if named := environment.get("OS_CLIENT_CONFIG_FILE"):
        return [Path(named)]
    own = Path(environment.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    folders = (Path(), own / "openstack", Path("/etc/openstack"))
    return [folder / f"clouds.{ending}" for folder in folders for ending in ("yaml", "yml", "json")]


def _of_cloud(given: Given, name: str | None, files: Sequence[Path]) -> Any:
    # It costs half a second, and only clouds.yaml needs it.
    import openstack.config
    from openstack import exceptions

    try:
        config = openstack.config.OpenStackConfig(config_files=[str(path) for path in files], load_envvars=False)
        if name is None:
            name = _only(sorted(set(config.get_cloud_names()) - {"defaults"}))
        region = config.get_one(cloud=name, argparse=argparse.Namespace(**_overrides(given)))
        session = region.get_session()
        if session.timeout is None:
            session.timeout = TIME_LIMIT
    except exceptions.ConfigException as error:
        raise NotAuthorized(f"Nobody is logged in: {str(error).rstrip('.')}") from None
    except keystone.ClientException as error:
        raise NotAuthorized(f"The login of cloud {name} is incomplete: {str(error).rstrip('.')}") from None
    endpoint = given.get("os_endpoint_override") or region.get_endpoint(given.service_type)
    if endpoint is None and region.config.get("auth_type") in WITHOUT_KEYSTONE:
        endpoint = region.config["auth"].get("endpoint")
    return _adapter(
        given,
        session,
        endpoint,
        region_name=region.get_region_name(given.service_type),
        interface=region.get_interface(given.service_type),
    )


def _only(names: Sequence[str]) -> str:
    if not names:
        raise NotAuthorized(_NOBODY)
    if len(names) > 1:
        raise NotAuthorized(f"Nobody is logged in: choose a cloud with --os-cloud: {', '.join(names)}")
    return names[0]


def _overrides(given: Given) -> dict[str, Any]:
    """Return what goes before clouds.yaml: the command line, and the variables of the region and of the connection."""
    plain = ("os_auth_type", "os_region_name", "os_cacert", "os_cert", "os_key")
    # These are not of the cloud, or of all of its services.
    others = {"os_cloud", *(option.dest for option in SERVICE), "os_api_version"}
    found = {key: value for key, value in given.explicit().items() if key.startswith("os_")}
    login = {key.removeprefix("os_"): found[key] for key in found if key not in others and key not in plain}
    for name in plain[1:]:
        if value := given.get(name):
            found[name] = value
    return {
        **{name: found[name] for name in plain if name in found},
        "auth": login,
        "insecure": given.written("insecure") or None,
        "os_api_timeout": given.written("timeout"),
    }
