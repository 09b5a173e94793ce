# SPDX-License-Identifier: Apache-2.0
"""A second bill of a simulated month, from a log of its own, by somebody who has only read ``docs/prices.md``."""
