# SPDX-License-Identifier: Apache-2.0
"""``blazar.wsgi.api:application``; reads ``$OS_BLAZAR_CONFIG_DIR/blazar.conf``, by default that of ``/etc/blazar``."""

from blazar.cmd import config
from blazar.cmd.api import build, configure

application = build(configure([], files=config.default_files()))
