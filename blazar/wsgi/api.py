# SPDX-License-Identifier: Apache-2.0
"""``blazar.wsgi.api:application``; reads ``$OS_BLAZAR_CONFIG_DIR/blazar.conf``, by default that of ``/etc/blazar``."""

import atexit

from blazar.cmd import config, health, monitoring, tracing
from blazar.cmd.api import build, configure
from blazar.messaging import transport
from blazar.observe.readiness import Liveness
from blazar.rpc.client import RemoteManager

_conf = configure([], files=config.default_files())
atexit.register(tracing.start(_conf, "blazar-api"))
_manager = RemoteManager(_conf, transport(_conf))
_readiness = health.make_api_readiness(_conf, _manager)
application = build(_conf, _manager, _readiness)
# One of the processes of a WSGI server has the port, and answers for all of them.
_pages = monitoring.list_pages() | health.list_pages(Liveness({}), _readiness)
monitoring.open_port(_conf, _pages, is_shared=True)
if _conf.monitoring.listen:
    _readiness.start()
