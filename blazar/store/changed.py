# SPDX-License-Identifier: Apache-2.0
"""What tells that the calendar has changed, without reading it: sums that another change never leaves the same.

Each change of a lease raises its revision, and each change of a resource the version of its kind. What a plan says of
those that wait changes nothing. The last allocation tells a new lease from one that was deleted meanwhile, whatever the
clocks of managers say.
"""

from __future__ import annotations

import sqlalchemy as sa

from blazar.model.lease import LeaseStatus
from blazar.store.tables import UtcTime, allocations, inventory_versions, leases

_COUNTED = (leases.c.status != str(LeaseStatus.WAITING), leases.c.deleted_at.is_(None))

LEASES = sa.select(sa.func.count()).where(*_COUNTED).select_from(leases).scalar_subquery()
REVISIONS = sa.select(sa.func.sum(leases.c.revision)).where(*_COUNTED).scalar_subquery()
LAST_DELETION = sa.select(sa.func.max(leases.c.deleted_at, type_=UtcTime)).scalar_subquery()
LAST_ALLOCATION = sa.select(sa.func.max(allocations.c.id)).scalar_subquery()
INVENTORIES = sa.select(sa.func.sum(inventory_versions.c.version)).scalar_subquery()
