# SPDX-License-Identifier: Apache-2.0
"""How many files, and so connections, a process may have open."""

from __future__ import annotations

import resource
import sys


def allow(wanted: int) -> int:
    """Raise the limit of this process to so many, as far as the system lets it; return how many it may have open."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return sys.maxsize
    if soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(hard, wanted)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return soft
