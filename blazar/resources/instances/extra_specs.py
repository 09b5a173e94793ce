# SPDX-License-Identifier: Apache-2.0
"""The extra specs that requests for servers of a size may set on the flavor of their reservation.

An operator says which ones. Those that lead servers out of the reserved capacity are refused whatever he says.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase

from blazar.clouds.ports.compute import Flavor
from blazar.model.base.errors import InvalidInput
from blazar.model.leases.reservation import Content
from blazar.resources.contract.parameters import LONGEST_TEXT, quote
from blazar.resources.hosts.cards import ALIAS
from blazar.resources.hosts.flavors import obstacle_of
from blazar.resources.hosts.guest_cells import find_cell_obstacle

FIELD = "extra_specs"
MOST_SPECS = 64

_NAME = re.compile(r"[A-Za-z0-9_.: -]{1,255}")
"""Nova's syntax of the names of extra specs."""

_OUTSIDE = re.compile(r"(resources|trait|aggregate_instance_extra_specs|capabilities|blazar|reservation)[^:]*:|[^:]*$")
"""Names by which Nova, Placement or our filter choose hosts: these, and all that have no colon."""

_VALUES: Mapping[str, re.Pattern[str]] = {
    "hw:cpu_policy": re.compile("dedicated|shared"),
    "hw:cpu_thread_policy": re.compile("prefer|isolate|require"),
    "hw:emulator_threads_policy": re.compile("isolate|share"),
    **dict.fromkeys(("hw:cpu_sockets", "hw:cpu_cores", "hw:cpu_threads"), re.compile("[1-9][0-9]{0,3}")),
}
"""What Nova takes as values of those that are allowed by default."""


def may_set(name: str, allowed: Sequence[str]) -> bool:
    """Return whether requests may set an extra spec, if those that match a pattern are ``allowed``."""
    return not _OUTSIDE.match(name.strip().lower()) and any(fnmatchcase(name, pattern) for pattern in allowed)


def checked_extra_specs(value: object, allowed: Sequence[str], kept: Mapping[str, str]) -> Mapping[str, str]:
    """Return the extra specs of a request, none for null; InvalidInput names the one that cannot be set.

    Those that the reservation has ``kept`` stay, also if they are no longer allowed.
    """
    if value is None:
        return {}
    if not isinstance(value, Mapping) or len(value) > MOST_SPECS:
        raise InvalidInput(
            f"{FIELD} is {quote(value)}; give an object of at most {MOST_SPECS} names and texts, such as "
            f'{{"hw:cpu_policy": "dedicated"}}',
            at=f"/{FIELD}",
        )
    for name, text in value.items():
        if name not in kept or kept[name] != text:
            _check_extra_spec(name, text, allowed)
    return dict(sorted(value.items()))


def check_cells(flavor: Flavor) -> None:
    """Check that the NUMA cells of servers can be promised. InvalidInput names the extra spec."""
    if (found := find_cell_obstacle(flavor)) is not None:
        name, why = found
        raise _refusal(name, f"{why}; leave it out")


def stored_extra_specs(content: Content) -> Mapping[str, str]:
    """Return the extra specs that a reservation keeps."""
    value = content.values.get(FIELD, {})
    if not isinstance(value, Mapping):
        raise TypeError(f"{FIELD} is {quote(value)}, not an object")
    return {str(name): str(text) for name, text in value.items()}


def _check_extra_spec(name: object, text: object, allowed: Sequence[str]) -> None:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise InvalidInput(f"{FIELD} has {quote(name)}, which is no name of an extra spec", at=f"/{FIELD}")
    if _OUTSIDE.match(name.strip().lower()):
        raise _refusal(name, "could lead servers out of what is reserved, or choose their hosts; leave it out")
    if not may_set(name, allowed):
        others = f"; use {', '.join(allowed)}, or leave it out" if allowed else ", nor is any other; leave it out"
        raise _refusal(name, f"is not allowed here{others}")
    if not isinstance(text, str) or not 1 <= len(text) <= LONGEST_TEXT or not text.isprintable():
        raise _refusal(name, f"is {quote(text)}; give a text of 1 to {LONGEST_TEXT} characters")
    if name == ALIAS:
        raise _refusal(name, "asks for PCI devices, which are reserved by a flavor only; leave it out")
    if obstacle := obstacle_of(name, text):
        raise _refusal(name, f"{obstacle}; leave it out")
    if name in _VALUES and not _VALUES[name].fullmatch(text):
        raise _refusal(name, f"is {quote(text)}, which Nova does not take; see its page on extra specs")


def _refusal(name: str, why: str) -> InvalidInput:
    return InvalidInput(f"{FIELD}: {name[:80]} {why}", at=f"/{FIELD}/{name}")
