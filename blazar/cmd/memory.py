"""The garbage collector, told what kind of program this is."""

from __future__ import annotations

import gc

THRESHOLDS = (50_000, 20, 20)


def settle() -> None:
    """Leave what was made at the start out of every collection, and collect less often.

    A list of ten thousand leases is half a million short-lived values in no cycle; looking through them again and
    again while they are being made takes as long as making them.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)
