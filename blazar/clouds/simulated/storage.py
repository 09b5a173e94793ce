# SPDX-License-Identifier: Apache-2.0
"""Storage of the state of a simulated cloud: in memory, or in a file."""

from __future__ import annotations

import fcntl
import json
import os
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Protocol

from blazar.clouds.simulated.state import State


class StateStorage(Protocol):
    """Has one state, which one thread of one process opens at a time."""

    def open(self, *, to_change: bool) -> AbstractContextManager[State]:
        """Open the state; changes are stored only if it was opened for them and no exception leaves the block."""


class MemoryStorage:
    """Stores the state in the process."""

    def __init__(self, initial: State) -> None:
        self._state = initial
        self._lock = threading.RLock()

    @contextmanager
    def open(self, *, to_change: bool) -> Iterator[State]:
        """Open the state. A call of the cloud checks before it changes anything, so nothing has to be undone."""
        with self._lock:
            yield self._state


class FileStorage:
    """Stores the state in a JSON file that several processes may share.

    A lock file serialises them; a change replaces the whole file, so that a crash at any moment leaves either the old
    state or the new one.
    """

    def __init__(self, path: Path, initial: State) -> None:
        self._path = path
        self._lock_path = path.with_name(path.name + ".lock")
        self._lock = threading.RLock()
        path.parent.mkdir(parents=True, exist_ok=True)
        with self._locked():
            if not path.exists():
                self._write(initial)

    @contextmanager
    def open(self, *, to_change: bool) -> Iterator[State]:
        """Open the state that is in the file."""
        with self._locked():
            state = State.from_json(json.loads(self._path.read_text(encoding="utf-8")))
            yield state
            if to_change:
                self._write(state)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with self._lock, self._lock_path.open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _write(self, state: State) -> None:
        new = self._path.with_name(self._path.name + ".new")
        with new.open("w", encoding="utf-8") as file:
            json.dump(state.to_json(), file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(new, self._path)
