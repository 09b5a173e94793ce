# SPDX-License-Identifier: Apache-2.0
"""blazar-api and blazar-manager, whose log has thirty minutes in one.

``python -m tests.slow.alerts.programs blazar-manager --config-file FOLDER/blazar-manager/blazar.conf``

The manager has a simulated cloud, whose images take an hour, and a clock that a file in the folder sets wrong.
"""

from __future__ import annotations

import sys
from contextlib import ExitStack
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

from blazar.clouds.simulated import Durations, FileStorage, of_size
from blazar.cmd import api, manager, monitoring_options
from blazar.manager.events import records
from blazar.manager.repair import problems
from blazar.model.base import log_lines
from blazar.model.base.clock import SystemClock
from blazar.model.problems.troubles import TroubleLimits
from tests.people import PeopledCloud

HOSTS = 4
TIMES = 30
"""How much faster than in a real cloud."""


class WrongClock(SystemClock):
    """The clock of a machine, which is off by as many seconds as a file says."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self._file = file

    def now(self) -> datetime:
        """Return what the clock shows."""
        off = self._file.read_text(encoding="utf-8") if self._file.exists() else ""
        return super().now() + timedelta(seconds=float(off or 0))


def simulated(folder: Path) -> PeopledCloud:
    """Return a way to the cloud of a folder."""
    storage = FileStorage(folder / "cloud.json", of_size(HOSTS))
    return PeopledCloud(storage, clock=SystemClock(), durations=Durations(snapshot=timedelta(hours=1)))


def main() -> int:
    """Be the program that is named first."""
    name = sys.argv.pop(1)
    folder = Path(sys.argv[-1]).parents[1]
    with ExitStack() as patches:
        patches.enter_context(mock.patch.object(log_lines, "MINUTE", log_lines.MINUTE / TIMES))
        patches.enter_context(mock.patch.object(records, "FIRST_MARK", records.FIRST_MARK / TIMES))
        overdue = {event: after / TIMES for event, after in records.OVERDUE_AFTER.items()}
        patches.enter_context(mock.patch.object(records, "OVERDUE_AFTER", overdue))
        limits = replace(TroubleLimits(), failed=TroubleLimits().failed / TIMES)
        patches.enter_context(mock.patch.object(problems, "TroubleLimits", return_value=limits))
        for option in monitoring_options.OPTIONS:
            if option.name == "sample_interval":
                option.type.min = 1
        patches.enter_context(
            mock.patch.multiple(
                manager,
                credentials=lambda *_, **__: SimpleNamespace(auth=None, region=None),
                Access=lambda _: SimpleNamespace(session=None, log_in=lambda: "service", list_looks=dict),
                open_cloud=lambda *_, **__: simulated(folder).cloud,
                SystemClock=lambda: WrongClock(folder / "clock"),
            )
        )
        return {"blazar-api": api, "blazar-manager": manager}[name].main()


if __name__ == "__main__":
    sys.exit(main())
