# SPDX-License-Identifier: Apache-2.0
"""The regions that a request for a lease names, in a reservation's ``region`` or in its requirement. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from blazar.model.errors import InvalidInput, pointing_at
from blazar.model.regions import Regions
from blazar.model.requests import LeaseRequest
from blazar.model.requirements import keys, parse_requirement
from blazar.model.resource import REGION
from blazar.resources.parameters import quoted

REQUIREMENT = "resource_properties"


@dataclass(frozen=True, slots=True)
class Located:
    """The region that a reservation names, None if it names none or several; those that it allows; other parameters."""

    region: str | None
    allowed: tuple[str, ...]
    parameters: Mapping[str, Any]


def located_in(regions: Regions, request: LeaseRequest) -> Sequence[Located]:
    """Return the region of each reservation with its parameters. InvalidInput if there is no such region."""
    found = []
    for number, each in enumerate(request.reservations):
        with pointing_at(f"/reservations/{number}"):
            found.append(_located(regions, each.parameters, strict=request.exact))
    return found


def settled(located: Sequence[Located], number: int) -> str:
    """Return the region of a reservation that must have one before its resources are known.

    The one that it names, or else the first that it allows: preferably one that another of the lease names.
    """
    mine = located[number]
    named = [each.region for each in located if each.region is not None]
    return mine.region or next(name for name in (*named, *mine.allowed) if name in mine.allowed)


def _located(regions: Regions, given: Mapping[str, Any], *, strict: bool) -> Located:
    every = tuple(regions)
    if not regions:
        if strict and REGION in given:
            raise InvalidInput("region: the regions of this service have no names; leave it out", pointer="/region")
        return Located(None, every, given)
    rest = {name: value for name, value in given.items() if name != REGION}
    asked = given.get(REGION)
    if asked is not None and asked not in every:
        raise InvalidInput(
            f"region is {quoted(asked)}; give one of {', '.join(every)}",
            code="unknown_reference",
            pointer="/region",
            data={"allowed": list(every)},
        )
    wanted = parse_requirement(given.get(REQUIREMENT), field=REQUIREMENT)
    if asked is not None:
        if REGION in keys(wanted) and asked not in (allowed := regions.allowed(wanted)):
            raise InvalidInput(
                f"region is {quoted(asked)}, and {REQUIREMENT} allows {', '.join(allowed) or 'none'}; leave one out",
                pointer="/region",
            )
        return Located(str(asked), (str(asked),), rest)
    if REGION not in keys(wanted):
        return Located(None, every, rest)
    regions.check(wanted, REQUIREMENT)
    allowed = regions.allowed(wanted)
    return Located(allowed[0] if len(allowed) == 1 else None, allowed, rest)
