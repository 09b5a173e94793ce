# SPDX-License-Identifier: Apache-2.0
"""Where hooks may be: checks of a URL, and of the address that a connection is made to."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Collection
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from urllib.parse import SplitResult, urlsplit

from blazar.model.base.errors import InvalidInput

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

LONGEST_URL = 1024

METADATA = frozenset(
    ipaddress.ip_address(text) for text in ("169.254.169.254", "fd00:ec2::254", "100.100.100.200", "168.63.129.16")
)
"""Addresses of the metadata services of clouds, not all of which are link-local."""

THIS_NETWORK = ipaddress.ip_network("0.0.0.0/8")

_URL = re.compile(r"[!-~]+")
_NAME = re.compile(r"(\*\.)?[a-z0-9_-]+(\.[a-z0-9_-]+)*\.?")


@dataclass(frozen=True, slots=True)
class Allowed:
    """Where an operator allows hooks: names of hosts in small letters, networks, and whether TLS may be missing."""

    hosts: frozenset[str] = frozenset()
    networks: tuple[Network, ...] = ()
    http: bool = False

    @classmethod
    def of(cls, hosts: Collection[str], networks: Collection[str], *, http: bool) -> Allowed:
        """Return what the options say; InvalidInput names the option."""
        names = frozenset(host.lower().rstrip(".") for host in hosts)
        for name in names:
            if not _NAME.fullmatch(name):
                raise InvalidInput(
                    f"[generic] allowed_hosts has {name[:80]!r}; give a name, or *.NAME for all below it"
                )
        try:
            return cls(names, tuple(ipaddress.ip_network(text) for text in networks), http)
        except ValueError as error:
            raise InvalidInput(f"[generic] allowed_networks: {error}; give networks such as 10.20.0.0/16") from error

    def check_url(self, url: str) -> SplitResult:
        """Return the parts of a URL that may be called, as far as the URL itself tells. InvalidInput."""
        parts = _split_url(url)
        if parts.scheme == "http" and not self.http:
            raise InvalidInput(
                "hook_url begins with http://; give an https:// URL, or have the operator set [generic] allow_http",
                at="/hook_url",
            )
        host = _host(parts)
        try:
            address = ipaddress.ip_address(host)
        except ValueError:
            # Its addresses are not known before a connection is made.
            if self.hosts and not self.networks and not self._lists_host(host):
                raise InvalidInput(
                    f"hook_url: host {host[:80]} is not in [generic] allowed_hosts", at="/hook_url"
                ) from None
        else:
            if (obstacle := self.obstacle(host, address)) is not None:
                raise InvalidInput(f"hook_url: {obstacle}", at="/hook_url")
        return parts

    def obstacle(self, host: str, address: Address) -> str | None:
        """Return why a connection to an address of a host must not be made; None if it may."""
        forms = _add_embedded_ipv4(address)
        if all(any(form in network for network in self.networks) for form in forms):
            return None
        if special := next((found for form in forms if (found := _describe_special(form)) is not None), None):
            return f"{address} is {special}, and no network of [generic] allowed_networks has it"
        if not (self.hosts or self.networks) or self._lists_host(host):
            return None
        return f"{host[:80]} ({address}) is neither in allowed_hosts nor in allowed_networks of [generic]"

    def _lists_host(self, host: str) -> bool:
        name = host.lower().rstrip(".")
        if name in self.hosts:
            return True
        labels = name.split(".")
        return any("*." + ".".join(labels[number:]) in self.hosts for number in range(1, len(labels)))


def _split_url(url: str) -> SplitResult:
    problem = None
    try:
        parts = urlsplit(url)
        if not _URL.fullmatch(url) or len(url) > LONGEST_URL or parts.scheme not in ("http", "https"):
            problem = f"give an https:// URL of at most {LONGEST_URL} printable ASCII characters"
        elif not parts.hostname or parts.port == 0:
            problem = "it names no host, or the port 0"
        elif "@" in parts.netloc:
            problem = "leave out the user name and password; calls are signed instead"
        elif parts.fragment:
            problem = "leave out the part after #, which is never sent"
    except ValueError:
        problem = "its host or port cannot be read"
    if problem:
        # The URL is not repeated: it may have a secret in it.
        raise InvalidInput(f"hook_url cannot be used: {problem}", at="/hook_url")
    return parts


def _host(parts: SplitResult) -> str:
    if parts.hostname is None:
        raise InvalidInput("hook_url names no host", at="/hook_url")
    return parts.hostname


def _add_embedded_ipv4(address: Address) -> tuple[Address, ...]:
    """Return an address, and the IPv4 address that an IPv6 address stands for."""
    if isinstance(address, IPv6Address):
        if address.ipv4_mapped is not None:
            return (address.ipv4_mapped,)
        if address.sixtofour is not None:
            return (address, address.sixtofour)
    return (address,)


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
