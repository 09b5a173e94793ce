# SPDX-License-Identifier: Apache-2.0
"""What becomes of a live migration, as a file says that is named by the id of its server.

Without a file it is over at once. The file's text is one of:

* ``fail``: it fails in the background, and the server stays where it is;
* ``hang``: it stays "running" until it is aborted or the file is removed, with
  which it completes;
* ``post-copy``: it is beyond the point of return, which Nova lets nobody abort,
  until the file is removed, with which it completes.

The text may change while a migration waits. The folder is ``moves``, beside
the state paths of all hosts.
"""

import os
import threading
import time

import nova.conf

CONF = nova.conf.CONF
INTERVAL = 0.1


class Moves:
    def __init__(self):
        self._aborted = {}
        self._lock = threading.Lock()

    def await_end(self, instance, migration):
        """Return the status with which the migration ends: completed, failed or cancelled."""
        aborted = threading.Event()
        with self._lock:
            self._aborted[instance.uuid] = aborted
        try:
            while text := _told(instance.uuid):
                if text == "fail":
                    return "failed"
                if aborted.is_set():
                    return "cancelled"
                if text == "post-copy" and migration.status == "running":
                    # The words of the libvirt driver.
                    migration.status = "running (post-copy)"
                    migration.save()
                time.sleep(INTERVAL)
            return "completed"
        finally:
            with self._lock:
                del self._aborted[instance.uuid]

    def abort(self, instance):
        with self._lock:
            if instance.uuid in self._aborted:
                self._aborted[instance.uuid].set()


def _told(uuid):
    folder = os.path.join(os.path.dirname(CONF.state_path), "moves")
    try:
        with open(os.path.join(folder, uuid)) as file:
            return file.read().strip()
    except OSError:
        return ""
