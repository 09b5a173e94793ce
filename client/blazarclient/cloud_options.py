# SPDX-License-Identifier: Apache-2.0
"""The options of a cloud and of logging in, and the variables that say the same.

Defaults are not put into the parser: what is written on the command line has to be told from what a variable says,
since ``--os-token`` beats ``OS_PASSWORD``. Nothing here imports keystoneauth, unless a kind of login is named that has
options of its own.
"""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

SERVICE_TYPE = "reservation"
API_VERSIONS = ("1",)
TIME_LIMIT = 600.0
"""Seconds for an answer where a request cannot be sent twice, unless ``--timeout`` says otherwise."""


@dataclass(frozen=True)
class Option:
    """An option with a value. ``variables``: those that say the same, the first that is set counts."""

    flags: tuple[str, ...]
    help: str
    variables: tuple[str, ...] = ()
    metavar: str = "<text>"

    @property
    def dest(self) -> str:
        """Its attribute of the parsed options."""
        return self.flags[0].lstrip("-").replace("-", "_")


def _os(name: str, help_: str, *others: str, metavar: str = "<text>") -> Option:
    names = (name, *others)
    variables = tuple("OS_" + each.replace("-", "_").upper() for each in names)
    return Option(tuple(f"--os-{each}" for each in names), help_, variables, metavar)


_CREDENTIAL = "application-credential"

LOGIN: Sequence[Option] = (
    _os("auth-type", "kind of login; found out if it is not given", "auth-plugin", metavar="<name>"),
    _os("auth-url", "URL of Keystone", metavar="<url>"),
    _os("username", "name of the user", "user-name", metavar="<name>"),
    _os("user-id", "id of the user", metavar="<id>"),
    _os("user-domain-name", "domain of the user", metavar="<name>"),
    _os("user-domain-id", "id of the domain of the user", metavar="<id>"),
    _os("password", "password of the user"),
    _os("passcode", "one-time password of the user"),
    _os("project-name", "project to act in", "tenant-name", metavar="<name>"),
    _os("project-id", "id of the project to act in", "tenant-id", metavar="<id>"),
    _os("project-domain-name", "domain of the project", metavar="<name>"),
    _os("project-domain-id", "id of the domain of the project", metavar="<id>"),
    _os("domain-name", "domain to act in, instead of a project", metavar="<name>"),
    _os("domain-id", "id of the domain to act in", metavar="<id>"),
    _os("default-domain-name", "domain of user and project, where none is given", metavar="<name>"),
    _os("default-domain-id", "id of the domain of user and project, where none is given", metavar="<id>"),
    _os("system-scope", "all: act on the whole cloud, instead of in a project", metavar="<scope>"),
    _os("trust-id", "id of the trust to use", metavar="<id>"),
    Option(
        (f"--os-{_CREDENTIAL}-id", "--os-application_credential_id"),
        "id of the application credential to log in with",
        ("OS_APPLICATION_CREDENTIAL_ID",),
        "<id>",
    ),
    Option(
        (f"--os-{_CREDENTIAL}-name", "--os-application_credential_name"),
        "name of the application credential to log in with",
        ("OS_APPLICATION_CREDENTIAL_NAME",),
        "<name>",
    ),
    Option(
        (f"--os-{_CREDENTIAL}-secret", "--os-application_credential_secret"),
        "secret of the application credential",
        ("OS_APPLICATION_CREDENTIAL_SECRET",),
    ),
    _os("token", "token to use instead of a password"),
    _os("endpoint", "URL of the service, where there is no Keystone", "url", metavar="<url>"),
)

CONNECTION: Sequence[Option] = (
    _os("cacert", "file with the certificates of authorities that are trusted", metavar="<file>"),
    _os("cert", "file with the certificate of this client", metavar="<file>"),
    _os("key", "file with the key of this client's certificate", metavar="<file>"),
    Option(("--tls-ciphers",), "ciphers that are allowed, as OpenSSL writes them", ("OS_TLS_CIPHERS",), "<ciphers>"),
    Option(("--tls-min-version",), "lowest version of TLS, 1.2 or 1.3", ("OS_TLS_MIN_VERSION",), "<version>"),
)

SERVICE: Sequence[Option] = (
    _os("region-name", "region of the service", metavar="<name>"),
    _os("interface", "endpoint to use: public, internal or admin", metavar="<name>"),
    _os("service-type", "type of the service in the catalog (default: reservation)", metavar="<type>"),
    _os("service-name", "name of the service in the catalog", metavar="<name>"),
    _os("endpoint-override", "URL of the service, instead of the one in the catalog", metavar="<url>"),
    _os("reservation-api-version", "version of the API (default: 1)", metavar="<version>"),
    Option(("--endpoint-type",), "deprecated: --os-interface", ("OS_ENDPOINT_TYPE",), "<name>"),
    Option(("--service-type",), "deprecated: --os-service-type", ("BLAZAR_SERVICE_TYPE",), "<type>"),
)

CLOUD = _os("cloud", "cloud of clouds.yaml", metavar="<name>")
# keystoneauth has it; what it says is the same for every version of this service.
_API_VERSION = Option(("--os-api-version",), argparse.SUPPRESS, (), "<version>")

_GROUPS: Sequence[tuple[str, Sequence[Option]]] = (
    ("login", (CLOUD, *LOGIN)),
    ("service", (*SERVICE, _API_VERSION)),
    ("connection", CONNECTION),
)

_PLAIN = frozenset({"password", "v3password", "token", "v3token", "v3totp", "v3applicationcredential"})
_VERSION = re.compile(r"/v[0-9][0-9.]*(/|$)")
WITHOUT_KEYSTONE = frozenset({"none", "noauth", "admin_token", "http_basic"})
"""Kinds of login that know no catalog."""


def add_options(parser: argparse.ArgumentParser, argv: Sequence[str]) -> None:
    """Add the options of clouds and of logging in; ``argv`` may name a kind of login with options of its own."""
    for title, options in _GROUPS:
        group = parser.add_argument_group(f"options of the {title}")
        for option in options:
            group.add_argument(*option.flags, dest=option.dest, metavar=option.metavar, help=_help(option))
        if title == "login":
            _add_plugin_options(parser, group, argv)
    group.add_argument("--insecure", action="store_true", help="do not check the certificate of servers")
    group.add_argument(
        "--timeout",
        type=_seconds,
        metavar="<seconds>",
        help=f"how long to wait for an answer (default: 60; {TIME_LIMIT:g} if the service is of microversion 1.0)",
    )
    group.add_argument("--collect-timing", action="store_true", help="say how long each request took")


def _help(option: Option) -> str:
    variables = ", ".join(option.variables[:1])
    hidden = option.help == argparse.SUPPRESS or not variables
    return option.help if hidden else f"{option.help} (variable: {variables})"


def _add_plugin_options(parser: argparse.ArgumentParser, group: Any, argv: Sequence[str]) -> None:
    first = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    first.add_argument("--os-auth-type", "--os-auth-plugin")
    named = first.parse_known_args(list(argv))[0].os_auth_type or os.environ.get("OS_AUTH_TYPE")
    if not named or named in _PLAIN | WITHOUT_KEYSTONE:
        return
    from keystoneauth1 import exceptions, loading

    try:
        options = loading.get_plugin_loader(named).get_options()
    except exceptions.NoMatchingPlugin:
        # The error comes with the login; ``help`` needs none and works all the same.
        return
    known = set(parser._option_string_actions)
    for option in options:
        if flags := [flag for flag in option.argparse_args if flag not in known]:
            group.add_argument(*flags, dest=f"os_{option.dest}", metavar=option.metavar, help=option.help)


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0
    if not value > 0:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds above 0")
    return value


def versioned(url: str) -> str:
    """Return the URL of a service with ``/v1`` at its end, whether or not who wrote it knew of versions."""
    plain = url.rstrip("/")
    parts = urlsplit(plain)
    if parts.scheme not in ("http", "https") or _VERSION.search(parts.path):
        return plain
    return f"{plain}/v1"


class Given:
    """What options and variables say."""

    def __init__(self, options: argparse.Namespace, environment: Mapping[str, str] = os.environ) -> None:
        self._options = options
        self._environment = environment
        self._known = {option.dest: option for _, options in _GROUPS for option in options}

    def written(self, name: str) -> Any:
        """Return what the command line itself says of ``os_…``; None if nothing."""
        return getattr(self._options, name, None)

    def get(self, name: str, variables: Iterable[str] = ()) -> Any:
        """Return what the command line says, else the first variable that is set and not empty, else None."""
        written = self.written(name)
        if written is not None:
            return written
        return next(self._values(self._known[name].variables if name in self._known else variables), None)

    def _values(self, variables: Iterable[str]) -> Iterator[str]:
        return (value for variable in variables if (value := self._environment.get(variable)))

    def explicit(self) -> dict[str, Any]:
        """Return what the command line itself says, by attribute."""
        return {key: value for key, value in vars(self._options).items() if value is not None}

    @property
    def interface(self) -> str | None:
        """The endpoint to use, None for the usual one."""
        found: str | None = self.get("os_interface") or self.get("endpoint_type")
        # Old variables say publicURL.
        return found.removesuffix("URL") if found else None

    @property
    def service_type(self) -> str:
        """The type of the service in the catalog."""
        return self.get("os_service_type") or self.get("service_type") or SERVICE_TYPE
