# SPDX-License-Identifier: Apache-2.0
"""``connection.reservation`` for openstacksdk.

::

    connection = openstack.connect(cloud="mine")
    blazarclient.sdk.register(connection)
    for lease in connection.reservation.leases(status="ACTIVE"):
        …

or, without a line of code, in clouds.yaml: ``vendor_hook: blazarclient.sdk:register``.
"""

from __future__ import annotations

from typing import cast

from openstack import connection as openstack_connection
from openstack import service_description

from blazarclient.library.transport import SERVICE_TYPE
from blazarclient.sdk.proxy import Proxy

__all__ = ["Proxy", "register", "reservation"]


class ReservationService(service_description.ServiceDescription):
    """How openstacksdk finds the service, and what it puts before it."""

    supported_versions = {"1": Proxy}


def register(connection: openstack_connection.Connection) -> None:
    """Give a connection, and those made later in this process, our ``reservation``; nobody is logged in by that.

    The ``reservation`` of openstacksdk has no methods of its own; what it can do (``get("/leases")``), ours can, too.
    """
    service = ReservationService(SERVICE_TYPE)
    # It may have been used already; openstacksdk keeps what it has made.
    service.__delete__(connection)
    connection.add_service(service)


def reservation(connection: openstack_connection.Connection) -> Proxy:
    """Return ``connection.reservation`` with its type, registering it if need be."""
    ours = isinstance(getattr(type(connection), SERVICE_TYPE, None), property)
    # One that was used before another connection was registered has kept openstacksdk's own.
    if not ours or not isinstance(connection.reservation, Proxy):
        register(connection)
    return cast(Proxy, connection.reservation)
