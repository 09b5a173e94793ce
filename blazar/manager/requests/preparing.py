# SPDX-License-Identifier: Apache-2.0
"""What reservations have in the cloud before their start: made with a new lease, and again by a change."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from blazar.manager.common.runtime import Runtime
from blazar.manager.lease import lifecycle
from blazar.manager.lease.ordering import in_order
from blazar.manager.lease.references import waits_at_start
from blazar.model.lease import Lease
from blazar.resources.base import Task


def prepared(runtime: Runtime, lease: Lease, ids: Collection[str]) -> Lease:
    """Make the cloud objects that these reservations need before their start; return the lease with their cloud ids.

    Each is prepared after those that it refers to. CloudError.
    """
    for id_ in in_order(waits_at_start(runtime, lease)):
        reservation = lease.reservation(id_)
        if reservation is None or id_ not in ids:
            continue
        # No resources are read: objects from before the start belong to the reservation as a whole.
        cloud_ids = runtime.type_of(reservation).prepare(Task(lease, reservation, ()))
        made = replace(reservation, cloud_ids=cloud_ids, unassigned=frozenset())
        lease = lifecycle.with_reservations(lease, [made])
    return lease
