# SPDX-License-Identifier: Apache-2.0
"""Requests that make no sense, each with the answer it gets. Data: who runs them brings the world.

Placeholders in paths and bodies: ``{lease}`` pending and ours, ``{active}``, ``{ended}``, ``{foreign}`` of another
project, ``{reservation}`` of ``{lease}``, ``{running}`` the reservation of ``{active}``, ``{host}`` registered;
``{instances}`` pending with its reservation ``{servers}``, ``{used}`` active with servers and its ``{booted}``;
``{address}`` free and ``{taken}`` promised, ``{addresses}`` pending with its ``{planned}``, ``{holding}`` active with
its ``{attached}``.
"""

from __future__ import annotations

from tests.api.bad_requests.floating_ips import FLOATING_IPS, RESERVED_IPS
from tests.api.bad_requests.frames import BODIES, FRAMES
from tests.api.bad_requests.hosts import HOSTS
from tests.api.bad_requests.instances import INSTANCES
from tests.api.bad_requests.leases import CHANGES, CREATION

ALL = [*CREATION, *INSTANCES, *CHANGES, *BODIES, *HOSTS, *FLOATING_IPS, *RESERVED_IPS, *FRAMES]
