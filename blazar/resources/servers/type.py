# SPDX-License-Identifier: Apache-2.0
"""virtual:server: servers that are booted for the project at the start, on capacity that nobody else can use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from blazar.clouds.ports import Cloud
from blazar.clouds.ports.booting import BootImage
from blazar.clouds.ports.compute import Server
from blazar.clouds.ports.projects import Quota
from blazar.model.base.errors import Conflict, InvalidInput
from blazar.model.base.json_text import Json
from blazar.model.base.reasons import ReasonCode
from blazar.model.leases.reservation import Content, Reservation
from blazar.model.leases.states import ReservationStatus
from blazar.model.resources.resource import Resource
from blazar.resources.contract.actions import BEFORE_END, RECHECK_SOON, deletion_progress, update_values, with_action
from blazar.resources.contract.parameters import by_service
from blazar.resources.contract.probes import MadeById
from blazar.resources.contract.type import Needs
from blazar.resources.contract.values import Done, Given, NotYet, Progress, Reference, ResolutionNeeded, Task, Unusable
from blazar.resources.hosts.aggregates.freepool import NotInFreepool
from blazar.resources.hosts.flavors import format_reservable_flavor
from blazar.resources.hosts.gpus import FIELDS as GPU_FIELDS
from blazar.resources.hosts.options import HostSettings
from blazar.resources.instances.common import REQUIREMENTS, Instances, policy_of
from blazar.resources.instances.reservation_flavor import ServerTemplate, template_of
from blazar.resources.instances.virtual import SIZES
from blazar.resources.servers.access import PUBLIC_KEY, mask_user_data
from blazar.resources.servers.boot import MEND_QUOTA, Boot, ServersRecord
from blazar.resources.servers.checks import ResolvedServers, ServerChecks
from blazar.resources.servers.parameters import (
    DEFAULTS,
    FLAVOR,
    IMAGE,
    KEY_NAME,
    ServerParameters,
)
from blazar.resources.servers.schema import SCHEMA


class VirtualServer(Instances):
    """The resource type ``virtual:server``."""

    resource_type = "virtual:server"
    schema = SCHEMA
    fixed = (
        "name",
        IMAGE,
        FLAVOR,
        *SIZES,
        *GPU_FIELDS,
        "affinity",
        "networks",
        KEY_NAME,
        PUBLIC_KEY,
        "user_data",
        "metadata",
        "security_groups",
        "volumes",
        "floating_ip",
    )
    free = ("amount", *REQUIREMENTS, BEFORE_END)
    word = "server"
    opens_flavor = False

    def __init__(self, cloud: Cloud, settings: HostSettings) -> None:
        super().__init__(cloud, settings)
        self._checks = ServerChecks(cloud)
        self._boot = Boot(cloud)
        self.quotas = cloud.quotas
        self.schema = settings.gpus.show_in(SCHEMA)

    def read(self, content: Content) -> ServerParameters:
        """Return the parameters that a reservation keeps."""
        return ServerParameters.of(content)

    def resolve(self, given: Given, *, project_id: str, reservation: Reservation | None = None) -> Given:
        """Return a request's parameters with what they name, which the project can use. NotFound, RoleMissing."""
        if not isinstance(given, ResolvedServers):
            given = Given(_write_ids_as_strings(given.values))
        return self._checks.resolve(given, project_id=project_id, reservation=reservation)

    def parameters(self, given: Given) -> Content:
        """Return the parameters, with the sizes of the flavor and the text of the key; other keys are left out."""
        values = {**DEFAULTS, **with_action(_write_ids_as_strings(given.values))}
        resolved = _require_resolved(given)
        if values.get(IMAGE) is None:
            raise InvalidInput(
                "Missing parameter image (a virtual:server reservation needs the id of an image)", at=f"/{IMAGE}"
            )
        if values[FLAVOR] is None and (missing := [size for size in SIZES if values.get(size) is None]):
            raise InvalidInput(
                f"Missing parameter {', '.join(missing)} (a virtual:server reservation needs a flavor, or "
                f"{', '.join(SIZES)})"
            )
        if values[PUBLIC_KEY] is None:
            values[PUBLIC_KEY] = resolved.public_key
        source = (
            None if resolved.flavor is None else format_reservable_flavor(resolved.flavor, FLAVOR, self._settings.pci)
        )
        return _make_parameters(
            ServerParameters.checked(_with_sizes(values, resolved, given.values), source, self._settings.gpus),
            resolved.image,
        )

    def changed(self, current: Content, change: Given) -> Content:
        """Return the current parameters, updated with the known ones of ``change``."""
        before = self.read(current)
        known = before.values
        values = dict(update_values(known, Given(_write_ids_as_strings(change.values))))
        if values == known:
            return current
        resolved = _require_resolved(change)
        source = before.source_flavor
        if FLAVOR in change.values and values[FLAVOR] != before.flavor:
            source = (
                None
                if resolved.flavor is None
                else format_reservable_flavor(resolved.flavor, FLAVOR, self._settings.pci)
            )
        flavored = values[FLAVOR] is not None
        if flavored and resolved.flavor is None:
            for size in SIZES:
                if values[size] != known[size]:
                    raise InvalidInput(
                        f"{size} is what the flavor says; give another flavor to change it", at=f"/{size}"
                    )
        if KEY_NAME in change.values and values[KEY_NAME] != before.key_name and change.values.get(PUBLIC_KEY) is None:
            values[PUBLIC_KEY] = resolved.public_key
        sized = _with_sizes(values, resolved, change.values) if resolved.flavor is not None else values
        wanted = ServerParameters.checked(sized, source, self._settings.gpus, before.gpus_of_each)
        return _make_parameters(wanted, resolved.image)

    def masked(self, given: Json) -> Json:
        """Return the parameters of a request without the user data."""
        return mask_user_data(given)

    def references(self, parameters: Content) -> tuple[Reference, ...]:
        """Return the networks, volumes and addresses of the same lease that the servers get."""
        return self.read(parameters).references

    def needs(self, parameters: Content) -> Needs:
        """Return the servers with their sizes, and a port for each network that is named."""
        wanted = self.read(parameters)
        ports = 0 if isinstance(wanted.networks, str) else len(wanted.networks)
        needs = {Quota.SERVERS: 1, Quota.VCPUS: wanted.vcpus, Quota.MEMORY_MB: wanted.memory_mb, Quota.PORTS: ports}
        return {quota: amount * wanted.amount for quota, amount in needs.items()}

    def template(self, parameters: Content) -> ServerTemplate:
        """Return a template of the flavor, or of the sizes."""
        wanted = self.read(parameters)
        policy = policy_of(wanted.affinity)
        if (source := wanted.source) is not None:
            return template_of(source, policy=policy)
        return ServerTemplate(
            wanted.vcpus,
            wanted.memory_mb,
            wanted.disk_gb,
            extra_specs=wanted.like.extra_specs,
            removable=self._settings.gpus.names_of_specs,
            policy=policy,
        )

    def must_prepare_again(self, before: Content, after: Content) -> bool:
        """Return whether the flavor or the server group changes."""
        return self.template(before) != self.template(after)

    def prepare(self, task: Task) -> Content:
        """Ensure flavor, server group, aggregate and resource class; what is recorded of servers stays."""
        return _add_record(super().prepare(task), ServersRecord.of(task.reservation.cloud_ids))

    def start(self, task: Task) -> Progress:
        """Ensure the reserved capacity on the hosts, and that the servers on it are ACTIVE."""
        starting = task.reservation.status is ReservationStatus.PENDING
        template = self.template(task.reservation.parameters)
        try:
            opened = self._capacity.open_capacity(task, template, starting=starting, access=False)
        except NotInFreepool as error:
            raise Unusable(by_service(task.resources, error.reasons)) from error
        if opened.missing:
            return NotYet(RECHECK_SOON, opened.missing)
        booted = self._boot.ensure_servers(task, ServersRecord.of(task.reservation.cloud_ids))
        if isinstance(booted, ServersRecord):
            return Done(_add_record(opened.cloud_ids, booted))
        record, waiting = booted
        if not starting and waiting.cause.code is ReasonCode.QUOTA_EXCEEDED:
            # Who asked for more waits for the answer, and can mend it.
            raise Conflict(waiting.reason, public=f"the project may have no more servers; {MEND_QUOTA}").because(
                waiting.cause
            )
        return replace(waiting, cloud_ids=_add_record(opened.cloud_ids, record))

    def servers_to_save(self, task: Task) -> tuple[Server, ...]:
        """Return the servers that may have work on them, those too that have another flavor by now."""
        found = super().servers_to_save(task)
        return (*found, *self._boot.resized_servers(task, besides={server.id for server in found}))

    def gone(self, made: MadeById) -> frozenset[str]:
        """Return which servers are gone: one list for each reservation."""
        return frozenset().union(*(self._boot.deleted_servers(id_, ids) for id_, ids in made.items()))

    def end(self, task: Task) -> Progress:
        """Ensure that all servers are gone, then flavor, server group, aggregate and reserved capacity."""
        resized = self._boot.delete_servers(task)
        left = max(resized, self._capacity.remove_capacity(task))
        return deletion_progress(left) if left else Done()

    def restore(self, task: Task, surplus: tuple[Resource, ...]) -> Progress:
        """Ensure capacity and servers from before the change: those that it has booted are deleted."""
        if task.reservation.status is ReservationStatus.ACTIVE:
            self._boot.stop_booting(task)
        restored = super().restore(task, surplus)
        if not isinstance(restored, Done) or restored.cloud_ids is None:
            return restored
        return Done(_add_record(restored.cloud_ids, ServersRecord.of(task.reservation.cloud_ids)))


def _write_ids_as_strings(values: Json) -> Json:
    """Return parameters with the ids as strings, which the command line sends as numbers if they have only digits."""
    ids = {key: str(values[key]) for key in (FLAVOR, IMAGE) if type(values.get(key)) is int}
    return {**values, **ids}


def _require_resolved(given: Given) -> ResolvedServers:
    if not isinstance(given, ResolvedServers):
        raise ResolutionNeeded
    return given


def _add_record(ids: Content, record: ServersRecord) -> Content:
    return Content({**ids.values, **record.values})


def _with_sizes(values: Json, resolved: ResolvedServers, given: Json) -> Json:
    """Return parameters with the sizes of their flavor; InvalidInput if a request also gives another size."""
    if resolved.flavor is None:
        return values
    sizes: Mapping[str, int] = {size: getattr(resolved.flavor, size) for size in SIZES}
    for size, value in sizes.items():
        if given.get(size) not in (None, value):
            raise InvalidInput(f"{size} is given, and it is {value} in the flavor; leave it out", at=f"/{size}")
    return {**values, **sizes}


def _make_parameters(wanted: ServerParameters, image: BootImage | None) -> Content:
    """Return parameters as a reservation keeps them; InvalidInput if Nova would not boot such servers."""
    field = FLAVOR if wanted.flavor is not None else "disk_gb"
    if not wanted.disk_gb:
        raise InvalidInput(
            f"{field}: the servers would have no disk, and Nova lets only operators boot such servers from an image; "
            f"use one with a disk",
            at=f"/{field}",
        )
    if image is not None and wanted.disk_gb < max(image.min_disk_gb, image.size_gb):
        raise InvalidInput(
            f"{field}: image {image.id} needs a disk of {max(image.min_disk_gb, image.size_gb)} GiB, and the servers "
            f"have {wanted.disk_gb}",
            at=f"/{field}",
        )
    field = FLAVOR if wanted.flavor is not None else "memory_mb"
    if image is not None and wanted.memory_mb < image.min_memory_mb:
        raise InvalidInput(
            f"{field}: image {image.id} needs {image.min_memory_mb} MiB of memory, and the servers have "
            f"{wanted.memory_mb}",
            at=f"/{field}",
        )
    return wanted.content
