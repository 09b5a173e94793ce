"""virtual:instance: slots for servers of one size, on hosts that are shared with other reservations of the kind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from blazar.clouds.ports import Cloud
from blazar.model.amounts import Amounts
from blazar.model.demand import Affinity, Demand
from blazar.model.errors import Conflict, InvalidInput
from blazar.model.lease import Parameters, ReservationStatus
from blazar.model.requirements import matches
from blazar.model.resource import Resource, ResourceKind
from blazar.resources.actions import (
    BEFORE_END,
    LOOK_AGAIN,
    action_of,
    asked_at,
    checked_action,
    progress,
    with_action,
)
from blazar.resources.base import Action, Done, LookFirst, NotYet, Progress, Unusable, Work
from blazar.resources.parameters import by_service, check_known, quoted, requirement_of, requirement_text, whole_number
from blazar.resources.physical_host import HostSettings
from blazar.resources.pools import NotAtHand
from blazar.resources.slots import Slots, Template
from blazar.resources.snapshots import Snapshots

RESOURCE_TYPE = "virtual:instance"

REQUIREMENTS = ("resource_properties",)
SIZES: Mapping[str, tuple[str, int, str]] = {
    "vcpus": ("VCPU", 1, "the VCPUs of a server, a whole number"),
    "memory_mb": ("MEMORY_MB", 1, "the memory of a server in MiB, a whole number"),
    # Servers that boot from a volume take no disk of their host.
    "disk_gb": ("DISK_GB", 0, "the disk of a server in GiB, a whole number"),
}
"""Parameter → resource class, the least, and what to give."""

FIXED = (*SIZES, "affinity")
"""What can not change any more while servers may be there."""

_AFFINITIES = {None: Affinity.ANY, True: Affinity.TOGETHER, False: Affinity.APART}
_POLICIES = {None: None, True: "affinity", False: "anti-affinity"}
_WORDS = {"none": None, "": None, "true": True, "false": False}


class VirtualInstance:
    """The resource type ``virtual:instance``."""

    resource_type = RESOURCE_TYPE
    kind = ResourceKind.HOST

    def __init__(self, cloud: Cloud, settings: HostSettings) -> None:
        self._settings = settings
        self._slots = Slots(cloud, settings.pools)
        self._snapshots = Snapshots(cloud.compute, settings.image_prefix)

    def parameters(self, given: Parameters) -> Parameters:
        """Return amount, sizes, affinity, requirement and ``before_end``; keys of other types are left out."""
        wanted = ("amount", *FIXED, *REQUIREMENTS)
        missing = [key for key in wanted if key not in given]
        if missing:
            raise InvalidInput(
                f"Missing parameter {', '.join(missing)} (a virtual:instance reservation needs {', '.join(wanted)}; "
                f"affinity may be null and resource_properties empty)"
            )
        return _checked({BEFORE_END: "default", **with_action(given)})

    def changed(self, current: Parameters, change: Parameters) -> Parameters:
        """Return the current parameters with the known ones of ``change`` laid over them."""
        return _checked({**current, **{key: value for key, value in with_action(change).items() if key in current}})

    def action(self, parameters: Parameters) -> Action:
        """Return what is done before the end; an operator's choice that only hosts can do comes to a notification."""
        action = action_of(parameters, self._settings.before_end)
        return Action.NOTIFICATION if action is Action.MIGRATION else action

    def demand(self, parameters: Parameters, *, known: frozenset[str]) -> Demand:
        """Ask for ``amount`` units of the size on hosts that meet the requirement."""
        requirement = requirement_of(parameters, REQUIREMENTS)
        check_known(requirement, known, REQUIREMENTS)
        return Demand(
            kind=self.kind,
            min_units=parameters["amount"],
            max_units=parameters["amount"],
            requirement=requirement,
            unit=Amounts.of({name: parameters[field] for field, (name, _, _) in SIZES.items()}),
            affinity=_AFFINITIES[parameters["affinity"]],
        )

    def demand_again(self, work: Work, parameters: Parameters, *, known: frozenset[str]) -> Demand:
        """Ask for the slots held, and more or fewer; a reservation in use keeps every slot that is in use."""
        fresh = self.demand(parameters, known=known)
        if work.reservation.status is ReservationStatus.PENDING:
            return replace(fresh, preferred=frozenset(work.units))
        self._check_changeable(work, parameters, fresh)
        held = sum(work.units.values())
        amount = fresh.min_units
        if amount == work.reservation.parameters["amount"]:
            # New dates alone bring no new slots, even if some were lost.
            return replace(fresh, min_units=max(1, held), max_units=max(1, held), kept=dict(work.units))
        return replace(fresh, kept=dict(work.units) if amount >= held else _fewer(work, amount))

    def in_use(self, work: Work) -> Mapping[int, int]:
        """Return how many slots have a server."""
        return self._slots.in_use(work)

    def prepares_anew(self, before: Parameters, after: Parameters) -> bool:
        """Tell whether the flavor or the server group change."""
        return any(before[field] != after[field] for field in FIXED)

    def prepare(self, work: Work) -> Parameters:
        """Ensure flavor, server group, aggregate and resource class, which nobody can use before the start."""
        return self._slots.prepare(work, _template(work.reservation.parameters), starting=False)

    def start(self, work: Work) -> Progress:
        """Ensure that the hosts have their slots and the project can boot servers with the flavor."""
        starting = work.reservation.status is ReservationStatus.PENDING
        artefacts = self._slots.prepare(work, _template(work.reservation.parameters), starting=starting)
        try:
            self._slots.open(work)
        except NotAtHand as error:
            raise Unusable(by_service(work.resources, error.reasons)) from error
        return Done(artefacts)

    def before_end(self, work: Work) -> Progress:
        """Ensure an image of every server, if that is the action."""
        if self.action(work.reservation.parameters) is not Action.SNAPSHOT:
            return Done()
        # One that found no host has never run: there is nothing to save.
        servers = [s for s in self._slots.servers(work) if s.host is not None or s.status != "ERROR"]
        tally = self._snapshots.ensure(
            work.reservation.id, servers, project_id=work.lease.project_id, since=asked_at(work)
        )
        return progress(work, tally, "images being made")

    def end(self, work: Work) -> Progress:
        """Ensure that all servers are gone, and then flavor, server group, aggregate and slots."""
        left = self._slots.close(work)
        return NotYet(LOOK_AGAIN, f"{left} servers are being deleted") if left else Done()

    def restore(self, work: Work, surplus: tuple[Resource, ...]) -> Progress:
        """Ensure the slots from before; a reservation that has not started has none."""
        if work.reservation.status is not ReservationStatus.ACTIVE:
            return Done()
        left = self._slots.restore(work)
        return NotYet(LOOK_AGAIN, f"{left} servers are being deleted") if left else Done()

    def _check_changeable(self, work: Work, parameters: Parameters, fresh: Demand) -> None:
        before = work.reservation.parameters
        fixed = [field for field in FIXED if parameters[field] != before[field]]
        if fixed:
            raise Conflict(
                f"{', '.join(fixed)} can not be changed: reservation {work.reservation.id} is "
                f"{work.reservation.status}, and only amount, resource_properties and before_end can"
            )
        if fresh.requirement != requirement_of(before, REQUIREMENTS):
            misfits = sorted(r.name for r in work.resources if not matches(fresh.requirement, r.properties))
            if misfits:
                raise Conflict(
                    f"resource_properties can not be changed like that: reservation {work.reservation.id} is in use on "
                    f"{', '.join(misfits)}, which would no longer match"
                )


def _fewer(work: Work, amount: int) -> Mapping[int, int]:
    """Return which slots to keep of more, so that none in use goes, and as few hosts as can be have any."""
    if work.in_use is None:
        raise LookFirst(work)
    kept = {id_: min(units, work.in_use.get(id_, 0)) for id_, units in work.units.items()}
    used = sum(kept.values())
    if used > amount:
        raise Conflict(
            f"amount can not be {amount}: {used} servers use reservation {work.reservation.id}; delete "
            f"{used - amount} of them first"
        )
    for id_ in sorted(kept, key=lambda id_: (-kept[id_], -work.units[id_], id_)):
        more = min(work.units[id_], kept[id_] + amount - sum(kept.values()))
        kept[id_] = more
    return {id_: units for id_, units in kept.items() if units}


def _template(parameters: Parameters) -> Template:
    sizes = {field: parameters[field] for field in SIZES}
    return Template(**sizes, policy=_POLICIES[parameters["affinity"]])


def _checked(parameters: Parameters) -> Parameters:
    action = checked_action(parameters)
    if action == Action.MIGRATION:
        raise InvalidInput(
            f"{BEFORE_END} is 'migration', which servers of an instance reservation can not do: they need its slots, "
            f"and no other host has any; use 'snapshot', 'notification' or 'none'"
        )
    return {
        "amount": whole_number(parameters["amount"], "amount", least=1, what="a whole number of servers"),
        **{
            field: whole_number(parameters[field], field, least=least, what=what)
            for field, (_, least, what) in SIZES.items()
        },
        "affinity": _affinity(parameters["affinity"]),
        **{field: requirement_text(parameters[field], field) for field in REQUIREMENTS},
        BEFORE_END: action,
    }


def _affinity(value: object) -> bool | None:
    """Return the affinity; clients write it as a word as well."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lower() in _WORDS:
        return _WORDS[value.lower()]
    raise InvalidInput(
        f"affinity is {quoted(value)}; give true (all servers on one host), false (each on another) or null"
    )
