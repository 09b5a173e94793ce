# SPDX-License-Identifier: Apache-2.0
"""Entry points of the processes: each reads the configuration, assembles the packages and runs until stopped."""

import gc
import os

if os.path.expanduser("~") == "~":
    # The user of a container may have no home, and libraries look for it when they are imported.
    os.environ["HOME"] = "/"

THRESHOLDS = (50_000, 20, 20)
"""How many objects are made before garbage is looked for among the young, and how often among the older ones.

A list of ten thousand leases is half a million short-lived values without cycles: by default, collections while they
are created take as long as their creation.
"""

# What a start makes stays: to look for garbage in it again and again takes a tenth of the start.
gc.set_threshold(*THRESHOLDS)
