# SPDX-License-Identifier: Apache-2.0
"""Entry points of the processes: each reads the configuration, assembles the packages and runs until stopped."""

import os

if os.path.expanduser("~") == "~":
    # The user of a container may have no home, and libraries look for it when they are imported.
    os.environ["HOME"] = "/"
