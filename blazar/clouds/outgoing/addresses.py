# SPDX-License-Identifier: Apache-2.0
"""Where what is called may be: checks of a URL, and of the address that a connection is made to."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Collection
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from urllib.parse import SplitResult, urlsplit

from blazar.model.base.errors import InvalidInput
from blazar.model.base.values import dataclass

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

LONGEST_URL = 1024

LONGEST_HOST, LONGEST_LABEL = 253, 63
"""Characters of a name of DNS, and of each of its parts."""

METADATA = frozenset(
    ipaddress.ip_address(text) for text in ("169.254.169.254", "fd00:ec2::254", "100.100.100.200", "168.63.129.16")
)
"""Addresses of the metadata services of clouds, not all of which are link-local."""

THIS_NETWORK = ipaddress.ip_network("0.0.0.0/8")

UNROUTED = (ipaddress.ip_network("3fff::/20"), ipaddress.ip_network("5f00::/16"))
"""IPv6 addresses of examples and of segment routing (RFC 9637, RFC 9602), which older libraries take as global."""

TRANSLATED = (ipaddress.ip_network("64:ff9b::/96"), ipaddress.ip_network("64:ff9b:1::/48"))
"""IPv6 addresses that gateways translate to IPv4, some of them global as Python sees it."""

_URL = re.compile(r"[!-~]+")
_NAME = re.compile(r"(\*\.)?[a-z0-9_-]+(\.[a-z0-9_-]+)*\.?")


HTTPS_PORT = 443
FIRST_FREE_PORT = 1024
"""Services of the system listen on smaller ports: members may name none of them but that of HTTPS."""


@dataclass(frozen=True, slots=True)
class TargetNames:
    """What sentences about a URL name: its field in a request, and the section of the options about it.

    ``plain`` is the option that allows calls without TLS; None where there is none.
    """

    field: str = "hook_url"
    section: str = "generic"
    networks: str = "allowed_networks"
    plain: str | None = "allow_http"


GENERIC = TargetNames()


@dataclass(frozen=True, slots=True)
class Allowed:
    """Where calls may go: names of hosts in small letters, networks, and whether TLS may be missing.

    ``public``: who names the URL is not trusted with the networks of the cloud, so that besides the ``networks`` only
    addresses are called that everybody could call from anywhere, by HTTPS, on no port of a service of the system.
    """

    hosts: frozenset[str] = frozenset()
    networks: tuple[Network, ...] = ()
    http: bool = False
    public: bool = False
    named: TargetNames = GENERIC

    @classmethod
    def of(
        cls, hosts: Collection[str], networks: Collection[str], *, http: bool, named: TargetNames = GENERIC
    ) -> Allowed:
        """Return what the options say; InvalidInput names the option."""
        names = frozenset(host.lower().rstrip(".") for host in hosts)
        for name in names:
            if not _NAME.fullmatch(name):
                raise InvalidInput(
                    f"[{named.section}] allowed_hosts has {name[:80]!r}; give a name, or *.NAME for all below it"
                )
        return cls(names, _parse_networks(networks, named), http, named=named)

    @classmethod
    def public_only(cls, networks: Collection[str], *, named: TargetNames) -> Allowed:
        """Return what members may name: the internet, and these networks; InvalidInput names the option."""
        return cls(networks=_parse_networks(networks, named), public=True, named=named)

    def check_url(self, url: str) -> SplitResult:
        """Return the parts of a URL that may be called, as far as the URL itself tells. InvalidInput."""
        field, section = self.named.field, self.named.section
        parts = _split_url(url, field)
        if parts.scheme == "http" and not self.http:
            plain = self.named.plain
            mend = "" if plain is None else f", or have the operator set [{section}] {plain}"
            raise InvalidInput(f"{field} begins with http://; give an https:// URL{mend}", at=f"/{field}")
        if self.public and (parts.port or HTTPS_PORT) != HTTPS_PORT and (parts.port or 0) < FIRST_FREE_PORT:
            raise InvalidInput(
                f"{field} has the port {parts.port}; leave it out, or give one from {FIRST_FREE_PORT} on",
                at=f"/{field}",
            )
        host = _host(parts, field)
        try:
            address = ipaddress.ip_address(host)
        except ValueError:
            # Its addresses are not known before a connection is made.
            if self.hosts and not self.networks and not self._lists_host(host):
                raise InvalidInput(
                    f"{field}: host {host[:80]} is not in [{section}] allowed_hosts", at=f"/{field}"
                ) from None
        else:
            if (obstacle := self.obstacle(host, address)) is not None:
                raise InvalidInput(f"{field}: {obstacle}", at=f"/{field}")
        return parts

    def obstacle(self, host: str, address: Address) -> str | None:
        """Return why a connection to an address of a host must not be made; None if it may."""
        forms = _add_embedded_ipv4(address)
        if all(any(form in network for network in self.networks) for form in forms):
            return None
        section, networks = self.named.section, self.named.networks
        describe = _describe_inner if self.public else _describe_special
        if special := next((found for form in forms if (found := describe(form)) is not None), None):
            return f"{address} is {special}, and no network of [{section}] {networks} has it"
        if self.public or not (self.hosts or self.networks) or self._lists_host(host):
            return None
        return f"{host[:80]} ({address}) is neither in allowed_hosts nor in {networks} of [{section}]"

    def _lists_host(self, host: str) -> bool:
        name = host.lower().rstrip(".")
        if name in self.hosts:
            return True
        labels = name.split(".")
        return any("*." + ".".join(labels[number:]) in self.hosts for number in range(1, len(labels)))


def _parse_networks(networks: Collection[str], named: TargetNames) -> tuple[Network, ...]:
    try:
        return tuple(ipaddress.ip_network(text) for text in networks)
    except ValueError as error:
        option = f"[{named.section}] {named.networks}"
        raise InvalidInput(f"{option}: {error}; give networks such as 10.20.0.0/16") from error


def _split_url(url: str, field: str) -> SplitResult:
    problem = None
    try:
        parts = urlsplit(url)
        if not _URL.fullmatch(url) or len(url) > LONGEST_URL or parts.scheme not in ("http", "https"):
            problem = f"give an https:// URL of at most {LONGEST_URL} printable ASCII characters"
        elif not parts.hostname or parts.port == 0:
            problem = "it names no host, or the port 0"
        elif not _is_host_name(parts.hostname):
            problem = "the name of its host has an empty part, one of more than 63 characters, or more than 253"
        elif "@" in parts.netloc:
            problem = "leave out the user name and password; a URL is stored, and shown"
        elif parts.fragment:
            problem = "leave out the part after #, which is never sent"
    except ValueError:
        problem = "its host or port cannot be read"
    if problem:
        # The URL is not repeated: it may have a secret in it.
        raise InvalidInput(f"{field} cannot be used: {problem}", at=f"/{field}")
    return parts


def _is_host_name(host: str) -> bool:
    """Return whether a name can be looked up at all: else the library raises what is no error of a connection."""
    labels = host.removesuffix(".").split(".")
    return len(host) <= LONGEST_HOST and all(0 < len(label) <= LONGEST_LABEL for label in labels)


def _host(parts: SplitResult, field: str) -> str:
    if parts.hostname is None:
        raise InvalidInput(f"{field} names no host", at=f"/{field}")
    return parts.hostname


def _add_embedded_ipv4(address: Address) -> tuple[Address, ...]:
    """Return an address, and the IPv4 addresses that an IPv6 address stands for."""
    if isinstance(address, IPv6Address):
        if address.ipv4_mapped is not None:
            return (address.ipv4_mapped,)
        if address.sixtofour is not None:
            return (address, address.sixtofour)
        if address.teredo is not None:
            return (address, *address.teredo)
        if any(address in network for network in TRANSLATED):
            # A gateway of the site makes IPv4 of it (RFC 6052).
            return (address, IPv4Address(int(address) & 0xFFFFFFFF))
    return (address,)


def _describe_inner(address: Address) -> str | None:
    """Return what an address is that not everybody could call from anywhere."""
    if (special := _describe_special(address)) is not None:
        return special
    if any(address in network for network in TRANSLATED):
        return "an address that a gateway translates to IPv4"
    if not address.is_global or any(address in network for network in UNROUTED):
        return "an address of a private network"
    return None


def _describe_special(address: Address) -> str | None:
    if address in METADATA:
        return "the address of a metadata service"
    if address.is_loopback or address.is_unspecified or address in THIS_NETWORK:
        return "an address of this machine"
    if address.is_link_local:
        return "a link-local address"
    if address.is_multicast:
        return "a multicast address"
    if address.is_reserved or (isinstance(address, IPv6Address) and address.is_site_local):
        return "a reserved address"
    return None
