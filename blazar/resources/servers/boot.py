# SPDX-License-Identifier: Apache-2.0
"""Boots the servers of reservations one by one, finds them, and deletes them.

A server of a reservation is known by its recorded id, or else by the private flavor of the reservation: the project has
access to that only while one is being booted, so that nobody else boots into the capacity. Names, tags and metadata
are for users: they can change them, and nothing follows from them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta

from blazar.clouds.ports import Cloud
from blazar.clouds.ports.booting import ServerRequest
from blazar.clouds.ports.compute import Server
from blazar.model.base.errors import CloudRefused, CloudUnavailable, Conflict, NotFound
from blazar.model.base.json_text import Json
from blazar.model.base.reasons import Cause, ReasonCode
from blazar.model.base.values import dataclass, replace
from blazar.model.leases.reservation import Content
from blazar.model.leases.states import ReservationStatus
from blazar.resources.contract.actions import RECHECK_LATER, RECHECK_SOON
from blazar.resources.contract.values import NotYet, Reference, Task
from blazar.resources.floating_ips.registration import reservation_tag
from blazar.resources.instances.reservation_flavor import ReservationFlavor
from blazar.resources.networks.assignment import NETWORK_ID
from blazar.resources.servers.parameters import ServerParameters
from blazar.resources.volumes.assignment import Record as Volumes


class Ties:
    """Ties to servers what reservations of the same lease have: once, at the start."""

    def __init__(self, cloud: Cloud) -> None:
        self._volumes = cloud.volumes
        self._network = cloud.network

    def ensure_ties(self, task: Task, servers: Sequence[str]) -> NotYet | None:
        """Ensure that servers have their volumes and addresses; return what is waited for, None if they have.

        The volumes of a reservation go to the servers in turn, and are attached one after the other, so that devices
        are in the order of the request. Of addresses each server gets one, as far as there are any. CloudRefused.
        """
        wanted = ServerParameters.of(task.reservation.parameters)
        for reference in wanted.volumes:
            ids = Volumes.of(task.referent(str(reference.reservation)).cloud_ids).ids
            for number, volume_id in enumerate(ids):
                if waiting := self._attach_volume(task, volume_id, servers[number % len(servers)]):
                    return waiting
        if wanted.floating_ip is not None:
            self._attach_addresses(str(wanted.floating_ip.reservation), servers)
        return None

    def _attach_volume(self, task: Task, volume_id: str, server_id: str) -> NotYet | None:
        found = self._volumes.volume(volume_id)
        if found is None:
            raise CloudRefused(f"volume {volume_id}, which server {server_id} was to have, is gone")
        if any(attachment.server_id == server_id for attachment in found.attachments) and found.status == "in-use":
            return None
        if found.status == "available":
            try:
                self._volumes.begin_attachment(volume_id, server_id, project_id=task.lease.project_id)
            except Conflict as error:
                raise CloudUnavailable(f"volume {volume_id} cannot be attached yet: {error.message}") from error
            except NotFound as error:
                raise CloudRefused(f"volume {volume_id} cannot be attached: {error.message}") from error
            found = self._volumes.volume(volume_id)
            if found is not None and found.status == "in-use":
                return None
        return NotYet(RECHECK_SOON, f"volume {volume_id} is being attached to server {server_id}")

    def _attach_addresses(self, reservation_id: str, servers: Sequence[str]) -> None:
        found = sorted(self._network.floating_ips(tag=reservation_tag(reservation_id)), key=lambda ip: ip.address)
        for address, server_id in zip(found, servers, strict=False):
            if not address.attached:
                self._network.attach_floating_ip(address.id, server_id)


SERVER_IDS, BUILDING, DOOMED, TRIES, LOOKS = "server_ids", "building", "doomed", "tries", "looks"

MOST_TRIES = 3
"""How often in a row a server may fail while it is booted."""

MOST_LOOKS = 75
"""How often Nova is asked for a server that is being built, first every second, then every ten: ten minutes."""

QUOTA_PAUSE = timedelta(minutes=5)
"""When a project may have no more servers, its users have to mend that."""

MEND_QUOTA = "delete one, or ask for a larger quota"


@dataclass(frozen=True, slots=True)
class ServersRecord:
    """What is recorded of a reservation: the ids of its servers, which of them are not known to have been ACTIVE, those
    that failed and are being deleted, how many have failed in a row, and how often one that is built was looked at.
    """

    ids: tuple[str, ...] = ()
    building: tuple[str, ...] = ()
    doomed: tuple[str, ...] = ()
    tries: int = 0
    looks: int = 0

    @classmethod
    def of(cls, content: Content) -> ServersRecord:
        """Return what a reservation keeps."""
        ids, building, doomed = (_read_texts(content.values.get(key)) for key in (SERVER_IDS, BUILDING, DOOMED))
        tries, looks = (content.values.get(key) for key in (TRIES, LOOKS))
        return cls(
            ids, building, doomed, tries if isinstance(tries, int) else 0, looks if isinstance(looks, int) else 0
        )

    @property
    def values(self) -> Json:
        """Return it as a reservation keeps it; what is over leaves no trace."""
        kept = {BUILDING: list(self.building), DOOMED: list(self.doomed), TRIES: self.tries, LOOKS: self.looks}
        return {SERVER_IDS: list(self.ids), **{key: value for key, value in kept.items() if value}}

    def without(self, ids: Iterable[str]) -> ServersRecord:
        """Return it without some servers."""
        gone = frozenset(ids)
        ids, building, doomed = (
            tuple(id_ for id_ in ids if id_ not in gone) for ids in (self.ids, self.building, self.doomed)
        )
        return replace(self, ids=ids, building=building, doomed=doomed)


class Boot:
    """Ensures the servers of reservations."""

    def __init__(self, cloud: Cloud) -> None:
        self._compute = cloud.compute
        self._booting = cloud.booting
        self._flavor = ReservationFlavor(cloud.compute)
        self._ties = Ties(cloud)

    def ensure_servers(self, task: Task, record: ServersRecord) -> ServersRecord | tuple[ServersRecord, NotYet]:
        """Ensure the servers of a reservation, whose capacity is there; return what is recorded then.

        While something is waited for, it is returned with that. Each new id is recorded before the next server is
        booted. What users have deleted of the servers that had been ACTIVE is not booted again. CloudRefused.
        """
        wanted = ServerParameters.of(task.reservation.parameters)
        there = {server.id: server for server in self._compute.servers_of_flavor(task.reservation.id)}
        record = self._update_record(task, record, there)
        while not record.doomed and not record.building and len(record.ids) < sum(task.counts.values()):
            with self._allow_booting(task, wanted):
                made = self._boot_server(task, wanted, [server.name for server in there.values()])
            if isinstance(made, NotYet):
                return record, made
            record = replace(record, ids=(*record.ids, made), building=(made,), looks=0)
            there = {server.id: server for server in self._compute.servers_of_flavor(task.reservation.id)}
            record = self._update_record(task, record, there)
        if record.doomed:
            return record, NotYet(RECHECK_LATER, f"server {record.doomed[0]} failed, is deleted and made again")
        if record.building:
            return self._await_building(task, record)
        self.stop_booting(task)
        if task.reservation.status is ReservationStatus.PENDING and (tying := self._ties.ensure_ties(task, record.ids)):
            return record, tying
        return replace(record, tries=0, looks=0)

    def stop_booting(self, task: Task) -> None:
        """Ensure that nobody can boot with the flavor, and that the key pair is gone.

        Done once more when no server is to be booted: a manager that was killed or stood still may have left them.
        """
        self._flavor.take_access(task.reservation.id)
        if ServerParameters.of(task.reservation.parameters).public_key is not None:
            self._booting.delete_key(_key_name(task))

    def delete_servers(self, task: Task) -> int:
        """Delete the recorded servers, whatever flavor they have by now, and the key pair; return how many are left."""
        left = 0
        for server_id in ServersRecord.of(task.reservation.cloud_ids).ids:
            if self._booting.booted_server(server_id) is not None:
                self._compute.begin_server_deletion(server_id)
                left += self._booting.booted_server(server_id) is not None
        if ServerParameters.of(task.reservation.parameters).public_key is not None:
            self._booting.delete_key(_key_name(task))
        return left

    def resized_servers(self, task: Task, *, besides: Collection[str]) -> tuple[Server, ...]:
        """Return the recorded servers to which their users have given another flavor, on whatever host they are."""
        there = {server.id for server in self._compute.servers_of_flavor(task.reservation.id)}
        ids = [
            id_ for id_ in ServersRecord.of(task.reservation.cloud_ids).ids if id_ not in there and id_ not in besides
        ]
        found = [server for id_ in ids if (server := self._booting.booted_server(id_)) is not None]
        return tuple(Server(server.id, server.name, server.project_id, "", None, server.status) for server in found)

    def deleted_servers(self, reservation_id: str, ids: Collection[str]) -> frozenset[str]:
        """Return which servers of a reservation Nova does not know any more, whatever flavor they have."""
        there = {server.id for server in self._compute.servers_of_flavor(reservation_id)}
        return frozenset(id_ for id_ in ids if id_ not in there and self._booting.booted_server(id_) is None)

    def _update_record(self, task: Task, record: ServersRecord, there: Mapping[str, Server]) -> ServersRecord:
        """Return a record after a look at the servers: of what was found, what is ready, and what has failed."""
        new = [id_ for id_ in reversed(list(there)) if id_ not in record.ids and id_ not in record.doomed]
        record = replace(record, ids=(*record.ids, *new), building=(*record.building, *new))
        gone = [id_ for id_ in record.doomed if self._booting.booted_server(id_) is None]
        for server_id in record.building:
            found = self._booting.booted_server(server_id)
            if found is None:
                gone.append(server_id)
            elif found.status == "ERROR":
                return self._replace_failed_server(
                    record.without(gone), server_id, found.fault or "Nova does not say why"
                )
            elif found.status != "BUILD":
                building = tuple(id_ for id_ in record.building if id_ != server_id)
                record = replace(record, building=building, tries=0, looks=0)
        record = record.without(gone)
        # Of those that users have deleted, only as many are remembered as there is room for.
        if (surplus := len(record.ids) - sum(task.counts.values())) <= 0:
            return record
        lost = [id_ for id_ in record.ids if id_ not in there and self._booting.booted_server(id_) is None]
        return record.without(lost[:surplus])

    def _replace_failed_server(self, record: ServersRecord, server_id: str, why: str) -> ServersRecord:
        self._compute.begin_server_deletion(server_id)
        if record.tries + 1 >= MOST_TRIES:
            raise CloudRefused(f"server {server_id} could not be booted, nor could those before it: {why}")
        left = record.without([server_id])
        return replace(left, doomed=(*left.doomed, server_id), tries=record.tries + 1, looks=0)

    def _await_building(self, task: Task, record: ServersRecord) -> tuple[ServersRecord, NotYet]:
        record = replace(record, looks=record.looks + 1)
        first = record.building[0]
        text = f"server {first} is being built"
        if record.looks > MOST_LOOKS:
            record = self._replace_failed_server(record, first, "it was being built for too long")
            return record, NotYet(RECHECK_LATER, f"server {first} was being built for too long, and is made again")
        pause = RECHECK_SOON * min(10, 1 + record.looks // 3)
        return record, NotYet(pause, text, Cause(ReasonCode.RESOURCE_NOT_READY, servers=len(record.building)))

    def _boot_server(self, task: Task, wanted: ServerParameters, names: Sequence[str]) -> str | NotYet:
        """Boot one server; return its id."""
        request = ServerRequest(
            name=wanted.choose_name(task.reservation.id, names),
            flavor_id=task.reservation.id,
            image_id=wanted.image,
            networks=_network_ids(task, wanted),
            tag=f"reservation:{task.reservation.id}",
            key_name=None if wanted.public_key is None else _key_name(task),
            user_data=wanted.user_data,
            metadata=wanted.metadata,
            security_groups=wanted.security_groups,
        )
        try:
            return self._booting.begin_boot(task.lease.project_id, request)
        except CloudRefused as error:
            if error.cause.code is not ReasonCode.QUOTA_EXCEEDED:
                raise
            why = f"the project may have no more servers ({error.message}); {MEND_QUOTA}"
            return NotYet(QUOTA_PAUSE, why, error.cause)

    @contextmanager
    def _allow_booting(self, task: Task, wanted: ServerParameters) -> Iterator[None]:
        """Let the project boot with the flavor, and the service user with the key pair, for the time of a block."""
        try:
            self._flavor.give_access(task, starting=False)
            if wanted.public_key is not None:
                try:
                    self._booting.import_key(_key_name(task), wanted.public_key)
                except Conflict:
                    # A manager that was killed has left it; the key may have changed since.
                    self._booting.delete_key(_key_name(task))
                    self._booting.import_key(_key_name(task), wanted.public_key)
            yield
        finally:
            self.stop_booting(task)


def _network_ids(task: Task, wanted: ServerParameters) -> tuple[str, ...] | str:
    """Return the networks of servers, those of the same lease by the ids that they have."""
    if isinstance(wanted.networks, str):
        return wanted.networks
    return tuple(network if isinstance(network, str) else _network_id(task, network) for network in wanted.networks)


def _network_id(task: Task, reference: Reference) -> str:
    found = task.referent(str(reference.reservation)).cloud_ids.values.get(NETWORK_ID)
    if not isinstance(found, str):
        raise CloudRefused(f"reservation {reference.reservation} has no network for servers")
    return found


def _key_name(task: Task) -> str:
    return f"reservation-{task.reservation.id}"


def _read_texts(value: object) -> tuple[str, ...]:
    return tuple(str(text) for text in value) if isinstance(value, list | tuple) else ()
