# SPDX-License-Identifier: Apache-2.0
"""``blazar.wsgi.api:application``; reads ``$OS_BLAZAR_CONFIG_DIR/blazar.conf``, by default that of ``/etc/blazar``."""

import atexit

from blazar.cmd import config, monitoring, tracing
from blazar.cmd.api import build, configure

_conf = configure([], files=config.default_files())
atexit.register(tracing.start(_conf, "blazar-api"))
application = build(_conf)
# One of the processes of a WSGI server has the port, and answers for all of them.
monitoring.open_port(_conf, monitoring.list_pages(), is_shared=True)
