# SPDX-License-Identifier: Apache-2.0
"""Processes: each reads the configuration, puts the rooms together, and runs until it is told to stop."""
