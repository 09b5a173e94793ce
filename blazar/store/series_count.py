# SPDX-License-Identifier: Apache-2.0
"""How many series a project may have."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blazar.model.exceeded import Exceeded
from blazar.model.series_details import SeriesStatus
from blazar.store.tables import series

_LIVE = [str(status) for status in (SeriesStatus.CREATING, SeriesStatus.ACTIVE, SeriesStatus.DELETING)]


def check_count(connection: Connection, project_id: str, most: int) -> None:
    """Check that a project may have another series; one statement. UsageDenied if it has ``most`` already."""
    live = (series.c.project_id == project_id, series.c.deleted_at.is_(None), series.c.status.in_(_LIVE))
    count = connection.execute(sa.select(sa.func.count()).select_from(series).where(*live)).scalar_one()
    if count >= most:
        raise Exceeded("series_per_project", "series", most, 1, count).denied(
            f"the project has {count} series that have not ended; the limit is {most} (series_per_project); delete "
            "one, or wait until one ends"
        )
