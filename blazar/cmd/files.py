# SPDX-License-Identifier: Apache-2.0
"""The limit of open files, and so of connections, of this process."""

from __future__ import annotations

import resource
import sys


def allow(wanted: int) -> int:
    """Raise the limit of open files to ``wanted`` or the system's hard limit; return the limit that applies."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return sys.maxsize
    if soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(hard, wanted)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return soft
