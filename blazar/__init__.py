# SPDX-License-Identifier: Apache-2.0
"""Blazar, the reservation service of OpenStack clouds."""

__version__ = "0.1.0"

STANDS_FOR = "18.0.0"
"""The release of the existing Blazar in whose place this one can run: its API, options, policies and notifications."""

RELEASE = f"{__version__} (in the place of OpenStack's Blazar {STANDS_FOR})"
"""What a program says when it is asked for its version."""
