# SPDX-License-Identifier: Apache-2.0
"""The API under gunicorn: ``gunicorn -c /etc/blazar/gunicorn.conf.py``, with OS_BLAZAR_CONFIG_DIR=/etc/blazar.

Needs ``/opt/blazar/bin/pip install gunicorn``. Metrics ([monitoring] listen) need a folder, in which the processes
count together: that of RuntimeDirectory= of a systemd unit, or another one in PROMETHEUS_MULTIPROC_DIR.
"""

import os
import pathlib

_runtime = os.environ.get("RUNTIME_DIRECTORY")
_metrics = os.environ.get("PROMETHEUS_MULTIPROC_DIR") or (f"{_runtime}/metrics" if _runtime else None)
if _metrics:
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = _metrics


def on_starting(server: object) -> None:
    """Begin to count: what an earlier start has left is gone."""
    if _metrics:
        pathlib.Path(_metrics).mkdir(parents=True, exist_ok=True)
        for left in pathlib.Path(_metrics).glob("*.db"):
            left.unlink()


wsgi_app = "blazar.wsgi.api:application"
bind = "0.0.0.0:1234"
worker_class = "gthread"
workers = 2  # processes
threads = 16  # concurrent requests per process
preload_app = False  # each process has its own connections to the message bus
timeout = 90  # more than rpc_response_timeout (30 by default)
graceful_timeout = 30
limit_request_field_size = 32768  # tokens may be long
accesslog = None  # the application logs each request itself, with its ids and its project
keepalive = 75  # longer than proxies keep idle connections open
worker_connections = 1000  # per process; a client that sends half a request holds a thread, see docs/operating.md
control_socket_disable = True  # newer gunicorns create a socket in the user's home; older ones ignore this
