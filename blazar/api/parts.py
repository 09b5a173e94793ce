# SPDX-License-Identifier: Apache-2.0
"""The parts of the API: those of this package, and those of other packages, found by entry point.

A package that brings a kind of resource names a ``routes.Part`` in the entry point group ``blazar.api.routes``.
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import EntryPoint

from oslo_policy.policy import RuleDefault

from blazar.api.billing import budgets, charges, price_lists, statements
from blazar.api.calendar import routes as calendar
from blazar.api.feeds import routes as feeds
from blazar.api.history import journal
from blazar.api.history import leases as lease_history
from blazar.api.http import openapi
from blazar.api.http.policy import rules_of
from blazar.api.http.routes import Part
from blazar.api.kinds import devices, floating_ips, generic, instances, networks, servers, stacks, volumes
from blazar.api.kinds.hosts import routes as hosts
from blazar.api.leases.part import make_part as make_leases
from blazar.api.maintenance import routes as maintenances
from blazar.api.managers import routes as managers
from blazar.api.power import routes as power
from blazar.api.problems import routes as problems
from blazar.api.reports import routes as reports
from blazar.api.resources import routes as resources
from blazar.api.rules import routes as rules
from blazar.api.search import routes as availability
from blazar.api.series import routes as series
from blazar.api.service import info, versions
from blazar.api.subscriptions import routes as subscriptions
from blazar.api.surgery import routes as surgery
from blazar.api.surgery import transfers
from blazar.model.base import plugins
from blazar.model.base.errors import InvalidInput

NAMESPACE = "blazar.api.routes"
_ADVICE = "'Routes of another package' in docs/contributing/add-a-microversion.md"
BUILTIN: tuple[Part, ...] = (
    versions.PART,
    make_leases(hosts.HELD, networks.HELD, devices.HELD),
    hosts.PART,
    instances.PART,
    floating_ips.PART,
    networks.PART,
    devices.PART,
    generic.PART,
    volumes.PART,
    servers.PART,
    stacks.PART,
    resources.PART,
    calendar.PART,
    feeds.PART,
    subscriptions.PART,
    series.PART,
    maintenances.PART,
    managers.PART,
    power.PART,
    problems.PART,
    reports.PART,
    price_lists.PART,
    rules.PART,
    budgets.PART,
    charges.PART,
    statements.PART,
    surgery.PART,
    transfers.PART,
    lease_history.PART,
    journal.PART,
    availability.PART,
    info.PART,
)


@cache
def all_parts() -> tuple[Part, ...]:
    """Return all parts; InvalidInput, with the reason, if one of another package cannot be used."""
    found = list(BUILTIN)
    for point in plugins.entry_points_of(NAMESPACE).values():
        part = plugins.load(point, plugins.members_of(Part), named=f"Entry point group {NAMESPACE}", advice=_ADVICE)
        _check(point, part, found)
        found.append(part)
    return tuple(found)


def list_rules() -> list[RuleDefault]:
    """Return the policy rules of all parts, for the tools of oslo.policy."""
    return rules_of(all_parts())


def _check(point: EntryPoint, part: Part, others: list[Part]) -> None:
    """Raise InvalidInput if a part has a name, a route, a rule or a component that another part has."""
    for what, names in _names(part).items():
        for other in others:
            if taken := sorted(names & _names(other)[what]):
                raise _name_clash(point, f"{what} {taken[0]}", f"the part {other.name} of the API")
    components = {*part.components, *part.reservations, *(row.body.name for row in part.routes if row.body)}
    if taken := sorted(components & openapi.components(others).keys()):
        raise _name_clash(point, f"component {taken[0]}", "the API")


def _names(part: Part) -> dict[str, set[str]]:
    return {
        "part": {part.name},
        "route": {f"{row.method} {row.url}" for row in part.routes} | {row.name for row in part.routes},
        "policy rule": {rule.name for rule in (*part.rules, *part.views)},
    }


def _name_clash(point: EntryPoint, what: str, owner: str) -> InvalidInput:
    return InvalidInput(
        f"The entry point {point.name} of group {NAMESPACE} brings the {what}, which {owner} has, too; rename it, or "
        f"uninstall its package"
    )
